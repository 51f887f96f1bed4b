"""The rules of the Anthropic Messages API, each with a name, and what a repair does about it.

``docs/rules/anthropic.md`` shows every rule with an example and its source. Roles need not alternate and the first message need
not be the user's: the API gave both rules up. What depends on the model or on other parameters of the request, such as whether
the list may end with an answer, is not a rule here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..fixes import (
    answer_call,
    drop,
    drop_result,
    first_of,
    give_id,
    keep_last,
    list_content,
    move_result,
    name_result,
    object_at,
    order,
    part_at,
)
from ..pairing import NOT_RECORDED, Fields, Finding, Pairing, Path, Slot
from ..repairing import Draft
from ..rulebook import Rule, RuleBook
from ..wire import fields_of, items_of, kind_of, string
from .checks import join_problem, message_problems
from .fields import THINKING, blocks_of, call_id, is_id, result_id
from .hosted import unpaired

BREAKPOINTS: Final = 4
"""How many blocks of a request may carry ``cache_control``."""


# ------------------------------------------------------------------------ calls and results


def _slots(fields: Fields, role: str, id_of: Any, name: str) -> Iterator[Slot]:
    blocks = (items_of(fields.get("content")) or ()) if fields.get("role") == role else ()
    for position, block in enumerate(blocks):
        if (key := id_of(block)) is not None:
            yield Slot(("content", position), key, ("content", position, name))


_PAIRING: Final = Pairing(
    calls=lambda fields: _slots(fields, "assistant", call_id, "id"),
    results=lambda fields: _slots(fields, "user", result_id, "tool_use_id"),
    continues=lambda before, after: before.get("role") == "assistant" and after.get("role") == "user",
    only_results=lambda fields: all(result_id(block) is not None for block in blocks_of(fields)),
    stub=lambda call, id: {"type": "tool_result", "tool_use_id": id, "content": NOT_RECORDED},
    content="content",
    new_id="toolu",
)


# ------------------------------------------------------------------------ the whole list


def _list_problems(contents: Sequence[Fields]) -> Iterator[tuple[int, Finding]]:
    """Yield ids that are used twice, too many breakpoints, and what the provider's own calls miss."""
    known: set[str] = set()
    marks = [(index, path) for index, fields in enumerate(contents) for path in _breakpoints(fields)]
    for index, fields in enumerate(contents):
        for slot in _PAIRING.calls(fields):
            if is_id(slot.key) and slot.key in known:
                text = f"the id {slot.key!r} is that of an earlier call"
                yield index, (f".content[{slot.path[1]}].id", "duplicate-call-id", text)
            known.add(slot.key)
    for index, (content, position, name) in marks[BREAKPOINTS:]:
        yield index, (f".{content}[{position}].{name}", "too-many-breakpoints", "four blocks before it carry one")
    for each in unpaired(contents):
        yield each.index, (f".content[{each.position}]", each.rule, each.message)


def _breakpoints(fields: Fields) -> Iterator[Path]:
    if fields.get("role") in ("user", "assistant", "system"):
        for position, block in enumerate(blocks_of(fields)):
            if (fields_of(block) or {}).get("cache_control") is not None:
                yield "content", position, "cache_control"


# ------------------------------------------------------------------------ fixes


def _drop_empty(draft: Draft, index: int, path: Path) -> str:
    """Remove a message without a content; make it empty where it is the answer that the model goes on from."""
    if index + 1 == len(draft.messages) and draft.fields(index).get("role") == "assistant":
        draft.write(index, path, "")
        return "it was made empty"
    draft.remove(index)
    return "the message was removed"


def _drop_last_thoughts(draft: Draft, index: int, path: Path) -> str:
    blocks = list(items_of(draft.value(index, ("content",))) or ())
    while blocks and kind_of(blocks[-1]) in THINKING:
        blocks.pop()
    return _keep(draft, index, blocks)


def _drop_thoughts(draft: Draft, index: int, path: Path) -> str:
    return _keep(draft, index, [block for block in blocks_of(draft.fields(index)) if kind_of(block) not in THINKING])


def _keep(draft: Draft, index: int, blocks: list[Any]) -> str:
    if blocks:
        draft.write(index, ("content",), blocks)
    else:
        _drop_empty(draft, index, ("content",))
    return "its thoughts were removed"


def _cut_space(draft: Draft, index: int, path: Path) -> str:
    content = draft.value(index, path)
    place = path if isinstance(content, str) else (*path, len(content) - 1, "text")
    draft.write(index, place, string(draft.value(index, place)).rstrip())
    return "the blanks were cut"


_DROP: Final = drop("the block was removed")

RULES: Final[Mapping[str, Rule]] = {
    "no-messages": Rule("reach", "There is at least one message.", "send at least one message"),
    "unreadable-message": Rule("message", "A message is an object.", "pass dictionaries, or the anthropic package's objects"),
    "unknown-role": Rule("message", "The role is user, assistant or system.", "use one of user, assistant, system"),
    "misplaced-system": Rule(
        "join",
        "A system message stands first, where it is meant for the `system` parameter, or between a user message and "
        "the answer to it. Older models take none.",
        "put it first, or between a user message and the answer to it",
    ),
    "malformed-content": Rule(
        "message", "A content is a string or a list.", "make it a string, or a list of blocks", list_content(kind_of)
    ),
    "empty-content": Rule(
        "message",
        "A message says something; a last answer need not, if it has a content.",
        "give it a content, or leave the message out",
        _drop_empty,
    ),
    "empty-text": Rule("message", "A text block has more than blanks.", "leave the block out", _DROP),
    "malformed-block": Rule(
        "message",
        "A block is an object with a type, and has the fields of that type.",
        "make it an object with a 'type' and the fields of that type",
        first_of(object_at("input"), part_at(lambda text: {"type": "text", "text": text})),
    ),
    "block-not-allowed": Rule(
        "message",
        "Calls and thoughts stand in answers, results and images in user messages, words alone in system messages.",
        "leave the block out, or move it to a message of the other role",
    ),
    "unsigned-thinking": Rule(
        "message", "Thoughts come with a signature.", "leave the block out", drop("the block was removed", up=1)
    ),
    "text-after-call": Rule(
        "message",
        "Nothing is said after the calls of an answer.",
        "put the text before the calls",
        order(lambda block: call_id(block) is not None),
        1,
    ),
    "ends-with-thinking": Rule(
        "message",
        "The last block of an answer is no thought.",
        "leave the thoughts out, or the whole message",
        _drop_last_thoughts,
        2,
    ),
    "thinking-after-answer": Rule(
        "join",
        "An answer with thoughts does not follow another answer directly: the API joins the two, and thoughts are then "
        "not where they were signed.",
        "leave the thoughts out, or put the user's words between the two answers",
        _drop_thoughts,
        6,
    ),
    "call-without-id": Rule("message", "A call has an id.", "give the call an id, and its result the same", give_id, 3),
    "malformed-id": Rule(
        "message",
        "The id of a call has letters, digits, `_` and `-` alone.",
        "give it an id of letters, digits, '_' and '-', and its result the same",
        give_id,
        3,
    ),
    "duplicate-call-id": Rule("reach", "No two calls of the list have one id.", "give each call an id of its own", give_id, 3),
    "call-without-result": Rule(
        "reach",
        "Each call is answered in the user message directly after it.",
        "put its result into the user message directly after it, or leave the call out",
        answer_call,
        5,
    ),
    "pending-call": Rule(
        "reach",
        "The same, where the list ends: a result may still come. Not to be sent, but fine to store.",
        "store it as it is; add the result before sending",
    ),
    "result-without-id": Rule(
        "message", "A result says what it answers.", "set 'tool_use_id' to the id of the call it answers", name_result, 4
    ),
    "result-without-call": Rule(
        "reach",
        "A result answers a call of the message before.",
        "put it into the user message directly after the call, or leave it out",
        move_result,
        5,
    ),
    "duplicate-result": Rule("reach", "A call has one result.", "keep one result for each call", drop_result, 5),
    "result-after-text": Rule(
        "message",
        "Results come before anything else in their message.",
        "put the results first",
        order(lambda block: result_id(block) is None),
        1,
    ),
    "server-call-without-result": Rule(
        "reach",
        "A tool that the provider runs has its result when the user speaks again; until then, and while nothing but "
        "results of the caller's tools follows, it may still come.",
        "put its result into the answer, or leave the call out",
        _DROP,
    ),
    "server-result-without-call": Rule(
        "reach",
        "The result of a tool that the provider runs has its call before it.",
        "keep it with the call before it, or leave it out",
        _DROP,
    ),
    "call-without-caller": Rule(
        "reach",
        "A call that a tool of the provider made has the call of that tool before it.",
        "keep the answer that holds the caller before it, or leave the call and its result out",
        drop("it was left out", field="caller"),
    ),
    "too-many-breakpoints": Rule(
        "reach",
        "At most four blocks carry `cache_control`; those of system and tools, which are outside the list, count too.",
        "keep 'cache_control' on four blocks at most",
        keep_last(_breakpoints, BREAKPOINTS),
        6,
    ),
    "trailing-space": Rule(
        "join", "A list does not end with an answer that ends with blanks.", "cut the blanks at the end", _cut_space, 6
    ),
}
"""Every rule: how far it looks, and what to do where it is broken."""

BOOK: Final = RuleBook(
    rules=RULES,
    pairing=_PAIRING,
    message=message_problems,
    join=join_problem,
    joins={
        "misplaced-system": ("", "it stands neither first nor between the user and the answer"),
        "thinking-after-answer": (".content", "its thoughts follow an answer that they do not belong to"),
        "trailing-space": (".content", "the list ends with an answer that ends with blanks"),
    },
    whole=_list_problems,
)

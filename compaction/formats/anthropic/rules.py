"""The rules of the Anthropic Messages API, by name, with the fixes of a repair.

``docs/rules/anthropic.md`` shows every rule with an example and its source. Roles need not alternate and the first message need
not be the user's: the API no longer has these rules. A rule that depends on the model or on other parameters of the request is
not included, such as whether the list may end with an answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..common_rules import common_rules
from ..fixes import (
    answer_call,
    drop,
    first_of,
    give_id,
    keep_last,
    list_content,
    move_result,
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
"""The maximum number of blocks with ``cache_control`` in a request."""


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
    """Yield repeated ids, breakpoints above the maximum, and unpaired calls and results of the provider's own tools."""
    known: set[str] = set()
    marks = [(index, path) for index, fields in enumerate(contents) for path in _breakpoints(fields)]
    for index, fields in enumerate(contents):
        for slot in _PAIRING.calls(fields):
            if is_id(slot.key) and slot.key in known:
                text = f"the id {slot.key!r} is that of an earlier call"
                yield index, (f".content[{slot.path[1]}].id", "duplicate-call-id", text)
            known.add(slot.key)
    for index, (content, position, name) in marks[BREAKPOINTS:]:
        yield index, (f".{content}[{position}].{name}", "too-many-breakpoints", "four blocks before it have one")
    yield from unpaired(contents)


def _breakpoints(fields: Fields) -> Iterator[Path]:
    if fields.get("role") in ("user", "assistant", "system"):
        for position, block in enumerate(blocks_of(fields)):
            if (fields_of(block) or {}).get("cache_control") is not None:
                yield "content", position, "cache_control"


# ------------------------------------------------------------------------ fixes


def _drop_empty(draft: Draft, index: int, path: Path) -> str:
    """Remove a message without content; if it is the last answer, which the model continues, make it empty."""
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

_COMMON: Final = common_rules(objects="dictionaries, or the anthropic package's objects", result_id="tool_use_id")

RULES: Final[Mapping[str, Rule]] = {
    "no-messages": _COMMON["no-messages"],
    "unreadable-message": _COMMON["unreadable-message"],
    "unknown-role": Rule("message", "The role is user, assistant or system.", "use one of user, assistant, system"),
    "misplaced-system": Rule(
        "join",
        "A system message is first, where it stands for the `system` parameter, or between a user message and the "
        "answer. Older models accept it only as the parameter.",
        "put it first, or between a user message and the answer",
    ),
    "malformed-content": Rule(
        "message", "The content is a string or a list.", "make it a string, or a list of blocks", list_content(kind_of)
    ),
    "empty-content": Rule(
        "message",
        "A message is not empty. Only the last answer may have an empty content.",
        "give it content, or leave the message out",
        _drop_empty,
    ),
    "empty-text": _COMMON["empty-text"],
    "malformed-block": Rule(
        "message",
        "A block is an object with a type and the fields of that type.",
        "make it an object with a 'type' and the fields of that type",
        first_of(object_at("input"), part_at(lambda text: {"type": "text", "text": text})),
    ),
    "block-not-allowed": Rule(
        "message",
        "Calls and thoughts belong in answers, results and images in user messages; a system message has only text.",
        "leave the block out, or move it to a message of the other role",
    ),
    "unsigned-thinking": Rule(
        "message", "A thinking block has a signature.", "leave the block out", drop("the block was removed", up=1)
    ),
    "text-after-call": Rule(
        "message",
        "An answer has no text after its calls.",
        "put the text before the calls",
        order(lambda block: call_id(block) is not None),
        1,
    ),
    "ends-with-thinking": Rule(
        "message",
        "The last block of an answer is not a thinking block.",
        "leave out the thinking blocks, or the whole message",
        _drop_last_thoughts,
        2,
    ),
    "thinking-after-answer": Rule(
        "join",
        "An answer with thinking blocks does not directly follow another answer. The API joins the two, and the "
        "signatures do not fit the joined answer.",
        "leave out the thinking blocks, or put a user message between the two answers",
        _drop_thoughts,
        6,
    ),
    "call-without-id": _COMMON["call-without-id"],
    "malformed-id": Rule(
        "message",
        "The id of a call contains only letters, digits, `_` and `-`.",
        "give it an id of letters, digits, '_' and '-', and its result the same id",
        give_id,
        3,
    ),
    "duplicate-call-id": Rule(
        "reach", "Each call in the list has a different id.", "give each call a different id", give_id, 3
    ),
    "call-without-result": Rule(
        "reach",
        "The user message directly after a call has its result.",
        "put its result into the user message directly after it, or leave the call out",
        answer_call,
        5,
    ),
    "pending-call": _COMMON["pending-call"],
    "result-without-id": _COMMON["result-without-id"],
    "result-without-call": Rule(
        "reach",
        "A result answers a call of the message directly before it.",
        "put it into the user message directly after the call, or leave it out",
        move_result,
        5,
    ),
    "duplicate-result": _COMMON["duplicate-result"],
    "result-after-text": Rule(
        "message",
        "Results come before anything else in their message.",
        "put the results first",
        order(lambda block: result_id(block) is None),
        1,
    ),
    "server-call-without-result": Rule(
        "reach",
        "The result of a tool that the provider runs comes before the user speaks again. Results of the caller's tools "
        "may come in between.",
        "put its result into the answer, or leave the call out",
        _DROP,
    ),
    "server-result-without-call": Rule(
        "reach",
        "The result of a tool that the provider runs follows its call.",
        "keep it with the call before it, or leave it out",
        _DROP,
    ),
    "call-without-caller": Rule(
        "reach",
        "A call made by a tool of the provider follows the call of that tool.",
        "keep the answer with the caller before it, or leave out the call and its result",
        drop("it was left out", field="caller"),
    ),
    "too-many-breakpoints": Rule(
        "reach",
        "At most four blocks have `cache_control`. Those of the system prompt and the tools, outside the list, count too.",
        "keep 'cache_control' on four blocks at most",
        keep_last(_breakpoints, BREAKPOINTS),
        6,
    ),
    "trailing-space": Rule(
        "join", "The last answer of a list does not end with blanks.", "cut the blanks at the end", _cut_space, 6
    ),
}
"""Every rule by name, in the order of the reference page."""

BOOK: Final = RuleBook(
    rules=RULES,
    pairing=_PAIRING,
    message=message_problems,
    join=join_problem,
    joins={
        "misplaced-system": ("", "it is neither first nor between a user message and the answer"),
        "thinking-after-answer": (".content", "its thinking blocks follow another answer"),
        "trailing-space": (".content", "the list ends with an answer that ends with blanks"),
    },
    whole=_list_problems,
)

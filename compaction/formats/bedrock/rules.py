"""The rules of Amazon Bedrock's Converse API, each with a name, and what a repair does about it.

``docs/rules/bedrock.md`` shows every rule with an example and its source. What depends on the model is not a rule here: whether
it takes images, words beside calls, thoughts without a signature, or a list that ends with an answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..base import Side
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
from ..pairing import NOT_RECORDED, Fields, Finding, Pairing, Path, Slot, shown_path
from ..repairing import Draft
from ..rulebook import Rule, RuleBook
from ..wire import items_of, json_text, string
from .checks import ROLES, join_problem, message_problems
from .fields import block_kind, is_cache_point, message_blocks, tool_result_id, tool_use_id

CACHE_POINTS: Final = 4
"""How many cache points a request may have."""


# ------------------------------------------------------------------------ calls and results


def _slots(fields: Fields, role: str, id_of: Any, kind: str) -> Iterator[Slot]:
    for position, block in enumerate(message_blocks(fields) if fields.get("role") == role else ()):
        if (key := id_of(block)) is not None:
            yield Slot(("content", position), key, ("content", position, kind, "toolUseId"))


def _stub(call: Any, id: str) -> dict[str, Any]:
    return {"toolResult": {"toolUseId": id, "content": [{"text": NOT_RECORDED}], "status": "error"}}


_PAIRING: Final = Pairing(
    calls=lambda fields: _slots(fields, "assistant", tool_use_id, "toolUse"),
    results=lambda fields: _slots(fields, "user", tool_result_id, "toolResult"),
    continues=lambda before, after: before.get("role") == "assistant" and after.get("role") == "user",
    only_results=lambda fields: all(
        tool_result_id(each) is not None or is_cache_point(each) for each in message_blocks(fields)
    ),
    stub=_stub,
    content="content",
    again="",
    new_id="tooluse",
)


def _list_problems(contents: Sequence[Fields]) -> Iterator[tuple[int, Finding]]:
    """Yield cache points that are too many."""
    points = [(index, path) for index, fields in enumerate(contents) for path in _cache_points(fields)]
    for index, path in points[CACHE_POINTS:]:
        yield index, (shown_path(path), "too-many-cache-points", "four stand before it")


def _cache_points(fields: Fields) -> Iterator[Path]:
    for position, block in enumerate(message_blocks(fields) if string(fields.get("role")) in ROLES else ()):
        if is_cache_point(block):
            yield "content", position


def _join_problem(before: Fields | None, after: Fields | None) -> tuple[str, Side] | None:
    return join_problem(*(None if fields is None else string(fields.get("role")) for fields in (before, after)))


# ------------------------------------------------------------------------ fixes


def _list_result(draft: Draft, index: int, path: Path) -> str | None:
    """Make the content of a result a list."""
    if path[-2:] != ("toolResult", "content"):
        return None
    value = draft.value(index, path)
    text = "" if value is None else json_text(value)
    draft.write(index, path, [{"text": text}] if text.strip() else [])
    return "it was written as text in a list"


def _data_as_text(draft: Draft, index: int, path: Path) -> str | None:
    """Write data of a result that is not an object as text."""
    if path[-1] != "json":
        return None
    draft.write(index, path[:-1], {"text": json_text(draft.value(index, path))})
    return "it was written as text"


def _explain(draft: Draft, index: int, path: Path) -> str:
    draft.write(index, path, [{"text": NOT_RECORDED}])
    return "a text was added that says so"


def _join(draft: Draft, index: int, path: Path) -> str | None:
    """Put a message into the one before it; its thoughts go, which are signed for the place where they stood."""
    blocks, before = (items_of(draft.value(place, ("content",))) for place in (index, index - 1))
    if blocks is None or before is None or draft.fields(index).get("role") == "system":
        return None
    said = [block for block in blocks if block_kind(block) != "reasoningContent"]
    draft.write(index - 1, ("content",), [*before, *said])
    draft.remove(index)
    return "it was put into one message with that"


_DROP: Final = drop("the block was removed")

RULES: Final[Mapping[str, Rule]] = {
    "no-messages": Rule("reach", "There is at least one message.", "send at least one message"),
    "unreadable-message": Rule("message", "A message is an object.", "pass dictionaries, as boto3 takes them"),
    "unknown-role": Rule("message", "The role is user, assistant or system.", "use one of user, assistant"),
    "starts-with-answer": Rule("join", "The user speaks first.", "put what the user said before it, or leave it out"),
    "same-role-twice": Rule(
        "join",
        "The user and the model take turns; results are the user's.",
        "make it one message with the one before it",
        _join,
        2,
    ),
    "misplaced-system": Rule(
        "join",
        "A system message stands between the user and the answer. Instructions are the `system` parameter; newer "
        "models also take them, and changes of tools, in the list.",
        "pass it as the 'system' parameter, or put it between the user and the answer",
    ),
    "malformed-content": Rule(
        "message",
        "A content is a list.",
        "make it a list of blocks",
        list_content(lambda value: isinstance(value, str) or block_kind(value)),
    ),
    "empty-content": Rule(
        "message",
        "A message says something.",
        "give it a block, or leave the message out",
        drop("the message was removed", up=1),
    ),
    "malformed-block": Rule(
        "message",
        "A block is an object with one field, named for its kind, which holds what this kind needs; arguments and data "
        "are objects.",
        "make it an object with one field, and in it what that kind of block needs",
        first_of(object_at("input"), _list_result, _data_as_text, part_at(lambda text: {"text": text})),
    ),
    "block-not-allowed": Rule(
        "message",
        "Calls and thoughts stand in answers, results, images and documents in user messages, words and changes of "
        "tools in system messages; a result holds no calls, results or thoughts.",
        "leave the block out, or move it to a message of the other role",
    ),
    "empty-text": Rule("message", "A text has more than blanks, in a result too.", "leave the block out", _DROP),
    "document-without-text": Rule(
        "message", "A document has a text beside it.", "say in a text block what the document is for"
    ),
    "thinking-alone": Rule(
        "message", "An answer is more than thoughts.", "leave the message out", drop("the message was removed", up=1)
    ),
    "misplaced-cache-point": Rule(
        "message",
        "A cache point comes after something in its message, and not directly after a thought.",
        "put it after something to cache that is not a thought, or leave it out",
        _DROP,
        2,
    ),
    "text-after-call": Rule(
        "message",
        "Nothing is said after the calls of an answer, with citations or without.",
        "put the text before the calls",
        order(lambda block: tool_use_id(block) is not None),
        1,
    ),
    "result-after-text": Rule(
        "message",
        "Results come before anything else in their message.",
        "put the results first",
        order(lambda block: tool_result_id(block) is None),
        1,
    ),
    "call-without-id": Rule("message", "A call has an id.", "give the call an id, and its result the same", give_id, 3),
    "malformed-id": Rule(
        "message",
        "The id of a call is at most 64 letters, digits, `_`, `.`, `:` and `-`.",
        "give it an id of at most 64 letters, digits, '_', '.', ':' and '-', and its result the same",
        give_id,
        3,
    ),
    "duplicate-call-id": Rule(
        "message", "The calls of one message have different ids.", "give each call of a message an id of its own", give_id, 3
    ),
    "result-without-id": Rule(
        "message", "A result says what it answers.", "set 'toolUseId' to the id of the call it answers", name_result, 4
    ),
    "duplicate-result": Rule(
        "message",
        "The results of one message have different ids.",
        "keep one result for each call",
        drop_result,
        5,
    ),
    "empty-error": Rule("message", "A result that failed says something.", "say in its content what went wrong", _explain),
    "call-without-result": Rule(
        "reach",
        "Each call is answered in the message directly after it.",
        "put its result into the message directly after it, or leave the call out",
        answer_call,
        5,
    ),
    "pending-call": Rule(
        "reach",
        "The same, where the list ends: a result may still come. Not to be sent, but fine to store.",
        "store it as it is; add the result before sending",
    ),
    "result-without-call": Rule(
        "reach",
        "A result answers a call of the message before.",
        "put it into the message directly after the call, or leave it out",
        move_result,
        5,
    ),
    "too-many-cache-points": Rule(
        "reach",
        "At most four cache points stand in the list; those of system and tools, which are outside it, count too.",
        "keep four cache points at most",
        keep_last(_cache_points, CACHE_POINTS),
        6,
    ),
}
"""Every rule: how far it looks, and what to do where it is broken."""

BOOK: Final = RuleBook(
    rules=RULES,
    pairing=_PAIRING,
    message=message_problems,
    join=_join_problem,
    joins={
        "starts-with-answer": ("", "nobody said anything before it"),
        "same-role-twice": ("", "the one before it has the same role"),
        "misplaced-system": ("", "it does not stand between the user and the answer"),
    },
    whole=_list_problems,
)

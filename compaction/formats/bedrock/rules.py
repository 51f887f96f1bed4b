"""The rules of Amazon Bedrock's Converse API, by name.

``docs/rules/bedrock.md`` shows every rule with an example and its source. Rules that depend on the
model are not included: whether it accepts images, text beside calls, unsigned thoughts, or a list that ends with an answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..base import Side
from ..common_rules import common_rules
from ..pairing import NOT_RECORDED, Fields, Finding, Pairing, Path, Slot, shown_path
from ..rulebook import Rule, RuleBook
from ..wire import string
from .checks import ROLES, join_problem, message_problems
from .fields import block_kind, is_cache_point, message_blocks, tool_result_id, tool_use_id

CACHE_POINTS: Final = 4
"""The maximum number of cache points in a request."""


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
    movable=lambda block: block_kind(block) != "reasoningContent",
)


def _list_problems(contents: Sequence[Fields]) -> Iterator[tuple[int, Finding]]:
    """Yield the cache points above the maximum."""
    points = [(index, path) for index, fields in enumerate(contents) for path in _cache_points(fields)]
    for index, path in points[CACHE_POINTS:]:
        yield index, (shown_path(path), "too-many-cache-points", "four stand before it")


def _cache_points(fields: Fields) -> Iterator[Path]:
    for position, block in enumerate(message_blocks(fields) if string(fields.get("role")) in ROLES else ()):
        if is_cache_point(block):
            yield "content", position


def _join_problem(before: Fields | None, after: Fields | None) -> tuple[str, Side] | None:
    return join_problem(*(None if fields is None else string(fields.get("role")) for fields in (before, after)))


_COMMON: Final = common_rules(objects="dictionaries, as boto3 takes them", result_id="toolUseId")

RULES: Final[Mapping[str, Rule]] = {
    "no-messages": _COMMON["no-messages"],
    "unreadable-message": _COMMON["unreadable-message"],
    "unknown-role": Rule("message", "The role is user, assistant or system.", "use one of user, assistant"),
    "starts-with-answer": Rule("join", "The user speaks first.", "put a user message before it, or leave it out", "message"),
    "same-role-twice": Rule(
        "join",
        "Messages of the user and the model alternate; results are in user messages.",
        "join it with the message before it",
        "join",
    ),
    "misplaced-system": Rule(
        "join",
        "A system message is between a user message and the answer. Instructions belong in the `system` parameter; "
        "newer models also accept them, and changes of tools, in the list.",
        "pass it as the 'system' parameter, or put it between a user message and the answer",
    ),
    "malformed-content": Rule(
        "message",
        "The content is a list.",
        "make it a list of blocks",
    ),
    "empty-content": Rule(
        "message",
        "A message has at least one block.",
        "give it a block, or leave the message out",
        "message",
    ),
    "malformed-block": Rule(
        "message",
        "A block is an object with one field. The field's name is the kind of the block, its value has the fields of "
        "that kind. Arguments and data are objects.",
        "make it an object with one field that has the fields of its kind",
    ),
    "block-not-allowed": Rule(
        "message",
        "Calls and thoughts belong in answers; results, images and documents in user messages; text and changes of "
        "tools in system messages. A result does not contain calls, results or thoughts.",
        "leave the block out, or move it to a message of the other role",
    ),
    "empty-text": Rule("message", "A text contains more than blanks, also in a result.", "leave the block out", "block"),
    "document-without-text": Rule(
        "message", "A message with a document also has a text.", "add a text block that says what the document is for"
    ),
    "thinking-alone": Rule("message", "An answer has more than thoughts.", "leave the message out", "message"),
    "misplaced-cache-point": Rule(
        "message",
        "A cache point is not the first block of its message, and does not directly follow a thought.",
        "put it after a block that is not a thought, or leave it out",
    ),
    "text-after-call": Rule(
        "message",
        "An answer has no text after its calls, with or without citations.",
        "put the text before the calls",
    ),
    "thinking-after-call": Rule(
        "message",
        "An answer has no thoughts after its calls; the model thinks, speaks, and then calls.",
        "put the thoughts before the text and the calls, where the model put them",
    ),
    "result-after-text": Rule(
        "message",
        "Results come before anything else in their message.",
        "put the results first",
    ),
    "call-without-id": _COMMON["call-without-id"],
    "malformed-id": Rule(
        "message",
        "The id of a call is at most 64 letters, digits, `_`, `.`, `:` and `-`.",
        "give it an id of at most 64 letters, digits, '_', '.', ':' and '-', and its result the same id",
        "id",
    ),
    "duplicate-call-id": Rule(
        "message", "The calls of one message have different ids.", "give each call of a message a different id", "id"
    ),
    "result-without-id": _COMMON["result-without-id"],
    "duplicate-result": Rule(
        "message",
        "The results of one message answer different calls.",
        "keep one result for each call",
        "pair",
    ),
    "empty-error": Rule("message", "A failed result has content.", "say in its content what went wrong"),
    "call-without-result": Rule(
        "reach",
        "The message directly after a call has its result.",
        "put its result into the message directly after it, or leave the call out",
        "pair",
    ),
    "pending-call": _COMMON["pending-call"],
    "result-without-call": Rule(
        "reach",
        "A result answers a call of the message directly before it.",
        "put it into the message directly after the call, or leave it out",
        "pair",
    ),
    "too-many-cache-points": Rule(
        "reach",
        "The list has at most four cache points. Those of the system prompt and the tools, outside the list, count too.",
        "keep four cache points at most",
    ),
}
"""Every rule by name, in the order of the reference page."""

BOOK: Final = RuleBook(
    rules=RULES,
    pairing=_PAIRING,
    message=message_problems,
    join=_join_problem,
    joins={
        "starts-with-answer": ("", "no message is before it"),
        "same-role-twice": ("", "the message before it has the same role"),
        "misplaced-system": ("", "it is not between a user message and the answer"),
    },
    whole=_list_problems,
)

"""The rules of Amazon Bedrock's Converse API, by name.

``docs/rules/bedrock.md`` shows every rule with an example and its source. Rules that depend on the
model are not included: whether it accepts images, text beside calls, unsigned thoughts, or a list that ends with an answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..base import Side
from ..pairing import NOT_RECORDED, Fields, Finding, Pairing, Path, Slot, shown_path
from ..rulebook import Rule, RuleBook, common_rules
from ..wire import fields_of, items_of, string, type_name
from .fields import (
    IN_RESULTS,
    KINDS,
    WORDS,
    block_kind,
    is_cache_point,
    is_hosted,
    is_tool_use_id,
    message_blocks,
    tool_result_id,
    tool_use_id,
    unplaced_cache_points,
)

CACHE_POINTS: Final = 4
"""The maximum number of cache points in a request."""

# ------------------------------------------------------------------------ one message, and two neighbours

ROLES: Final = frozenset({"user", "assistant", "system"})

_OF_SYSTEM: Final = frozenset({"text", "cachePoint", "toolAddition", "toolRemoval"})
_OF_USER: Final = frozenset({"toolUse", "reasoningContent"})
_OF_ASSISTANT: Final = frozenset({"image", "document"})
_REQUIRED: Final[Mapping[str, Mapping[str, type]]] = {
    "image": {"format": str, "source": Mapping},
    "video": {"format": str, "source": Mapping},
    "audio": {"format": str, "source": Mapping},
    "document": {"name": str, "source": Mapping},
    "toolUse": {"name": str, "input": Mapping},
    "toolResult": {"content": list},
    "cachePoint": {"type": str},
    "searchResult": {"source": str, "title": str, "content": list},
}


def message_problems(fields: Fields, last: bool) -> Iterator[Finding]:
    """Yield the rules that a message breaks by itself, independent of its neighbours."""
    role, content = string(fields.get("role")), fields.get("content")
    if role not in ROLES:
        yield ".role", "unknown-role", f"no such role: {fields.get('role')!r}"
    elif content is not None and items_of(content) is None:
        yield ".content", "malformed-content", f"a content is a list of blocks (got {type_name(content)})"
    elif not content:
        yield ".content", "empty-content", "it is empty"
    else:
        blocks = message_blocks(fields)
        for position, block in enumerate(blocks):
            yield from _block_problems(f".content[{position}]", role, block)
        for position in unplaced_cache_points(blocks):
            yield f".content[{position}]", "misplaced-cache-point", "no block before it can be cached"
        if role == "user":
            yield from _user_problems(blocks)
        elif role == "assistant":
            yield from _answer_problems(blocks)


def _answer_problems(blocks: Sequence[Any]) -> Iterator[Finding]:
    """Yield the rules that an answer breaks in its calls and their order."""
    ids: set[str] = set()
    for position, block in enumerate(blocks):
        place = f".content[{position}]"
        if (identifier := tool_use_id(block)) is None:
            if ids and block_kind(block) in WORDS:
                yield (place, "text-after-call", "an answer has no text after its calls")
            elif ids and block_kind(block) == "reasoningContent":
                yield (place, "thinking-after-call", "an answer has no thoughts after its calls")
            continue
        place += ".toolUse.toolUseId"
        if identifier and not is_tool_use_id(identifier):
            text = f"the id {identifier[:80]!r} is too long, or has other characters"
            yield (place, "malformed-id", text)
        elif identifier and identifier in ids:
            yield (place, "duplicate-call-id", f"the id {identifier!r} is that of another call")
        ids.add(identifier)
    if _thinks_alone(blocks):
        yield (".content", "thinking-alone", "the answer has only thoughts")


def _thinks_alone(blocks: Sequence[Any]) -> bool:
    """Whether an answer contains only thoughts and cache points."""
    kinds = {block_kind(block) for block in blocks} - {"cachePoint"}
    return kinds == {"reasoningContent"}


def _user_problems(blocks: Sequence[Any]) -> Iterator[Finding]:
    """Yield the rules that a user message breaks in its results, their order and its documents."""
    said = False
    ids: set[str] = set()
    for position, block in enumerate(blocks):
        identifier, place = tool_result_id(block), f".content[{position}]"
        if identifier is None:
            said = said or not is_cache_point(block)
            continue
        if said:
            yield (place, "result-after-text", "results come before anything else in their message")
        if identifier and identifier in ids:
            yield (place, "duplicate-result", f"the call {identifier!r} is answered already")
        ids.add(identifier)
    documents = [position for position, block in enumerate(blocks) if block_kind(block) == "document"]
    if documents and not any(string((fields_of(block) or {}).get("text")).strip() for block in blocks):
        place = f".content[{documents[0]}]"
        yield (place, "document-without-text", "the message has a document and no text")


def _block_problems(where: str, role: str, block: Any) -> Iterator[Finding]:
    """Yield the rules that a block breaks by itself, in a message of a known role."""
    kind = block_kind(block)
    if not kind:
        fields = fields_of(block)
        got = type_name(block) if fields is None else " and ".join(map(repr, fields)) or "none"
        yield (where, "malformed-block", f"a block is an object with one field (got {got})")
        return
    value = (fields_of(block) or {})[kind]
    body = fields_of(value)
    if not _allowed(role, kind, body or {}):
        yield (where, "block-not-allowed", f"a {role} message does not accept a block of kind {kind!r}")
        return
    if kind == "text":
        if not isinstance(value, str):
            yield (f"{where}.text", "malformed-block", f"a text is a string (got {type_name(value)})")
        elif not value.strip():
            yield (where, "empty-text", "the text block is empty")
    elif kind in KINDS:
        yield from _body_problems(f"{where}.{kind}", kind, value)


def _body_problems(where: str, kind: str, value: Any) -> Iterator[Finding]:
    """Yield the missing and mistyped fields of a block."""
    body = fields_of(value)
    if body is None:
        yield (where, "malformed-block", f"it is an object (got {type_name(value)})")
        return
    for name, wanted in _REQUIRED.get(kind, {}).items():
        given = body.get(name)
        fits = fields_of(given) if wanted is Mapping else items_of(given) if wanted is list else given
        if fits is None or (wanted is str and not (isinstance(given, str) and given)):
            yield (f"{where}.{name}", "malformed-block", f"{kind} needs {name!r} (got {type_name(given)})")
    if kind == "toolResult" and (content := items_of(body.get("content"))) is not None:
        if not content and body.get("status") == "error":
            yield (f"{where}.content", "empty-error", "a failed result has no content")
        for position, element in enumerate(content):
            yield from _nested_problems(f"{where}.content[{position}]", element)


def _nested_problems(where: str, element: Any) -> Iterator[Finding]:
    """Yield the rules that a block of a result breaks."""
    kind = block_kind(element)
    if kind in KINDS and kind not in IN_RESULTS:
        yield (where, "block-not-allowed", f"a result does not accept a block of kind {kind!r}")
    elif kind == "json":
        if fields_of(value := (fields_of(element) or {})[kind]) is None:
            yield (f"{where}.json", "malformed-block", f"its data is an object (got {type_name(value)})")
    else:
        yield from _block_problems(where, "user", element)


def _allowed(role: str, kind: str, body: Mapping[str, Any]) -> bool:
    if role == "system":
        return kind in _OF_SYSTEM
    if role == "assistant":
        return kind not in _OF_ASSISTANT and (kind != "toolResult" or is_hosted(body))
    return kind not in _OF_USER


def join_problem(before: str | None, after: str | None) -> tuple[str, Side] | None:
    """Return the rule that two neighbours break, given their roles; ``None`` is the start or end of the list."""
    if after not in ROLES or (before is not None and before not in ROLES):
        return None
    ends = before == "system" and after != "assistant"
    begins = after == "system" and before != "user"
    if ends or begins:
        return "misplaced-system", "both" if ends and begins else "before" if ends else "after"
    if before is None:
        return ("starts-with-answer", "after") if after == "assistant" else None
    return ("same-role-twice", "after") if before == after else None


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

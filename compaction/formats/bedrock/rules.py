"""Access to the fields of Bedrock messages, and the rules of the Converse API, by name.

``docs/rules/bedrock.md`` shows every rule with an example and its source. Rules that depend on the
model are not included: whether it accepts images, text beside calls, unsigned thoughts, or a list that ends with an answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..base import JoinProblem
from ..blocks import Blocks, misplaced_system, too_many
from ..pairing import NOT_RECORDED, Fields, Finding, Path, repeated
from ..rulebook import Rule, RuleBook
from ..wire import fields_of, items_in, items_of, lacking, string, type_name

# ------------------------------------------------------------------------ access to fields

# A block is a union: an object with a single field, whose name is the block's kind.

MEDIA_KINDS: Final[Mapping[str, str]] = {"image": "image", "video": "video", "audio": "audio", "document": "file"}
"""Kinds of blocks with media, and the kind of media."""

_WORDS: Final = frozenset({"text", "citationsContent"})  # kinds of blocks with the text of an answer

_OF_SYSTEM: Final = frozenset({"text", "cachePoint", "toolAddition", "toolRemoval"})

KINDS: Final = (
    _WORDS | _OF_SYSTEM | MEDIA_KINDS.keys() | {"toolUse", "toolResult", "reasoningContent", "guardContent", "searchResult"}
)
"""The members of the union ``ContentBlock`` in botocore 1.44."""

_IN_RESULTS: Final = frozenset({"text", "json", "image", "document", "video", "searchResult"})
"""The members of the union ``ToolResultContentBlock``."""

_ID: Final = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")  # ids of calls that the API accepts: ``ToolUseId`` in botocore


def union_of(block: Any) -> tuple[str, Any]:
    """Return the name and the value of a block's only field; an empty name if it does not have exactly one."""
    members = [member for member in (fields_of(block) or {}).items() if member[1] is not None]
    return members[0] if len(members) == 1 else ("", None)


def block_kind(block: Any) -> str:
    """Return the name of a block's only field; empty if it does not have exactly one."""
    return union_of(block)[0]


def block_body(block: Any, kind: str) -> Mapping[str, Any] | None:
    """Return the object in a block of this kind; ``None`` if the block is another, or not an object."""
    found, value = union_of(block)
    return fields_of(value) if found == kind else None


def is_hosted(body: Mapping[str, Any]) -> bool:
    """Whether a call or result belongs to a tool that the provider runs: only these have a type."""
    return bool(body.get("type"))


def _tool_use_id(block: Any) -> str | None:
    """Return the id of a call of the caller's tools, empty if it has none; ``None`` if the block is another."""
    body = block_body(block, "toolUse")
    return None if body is None or is_hosted(body) else string(body.get("toolUseId"))


def _tool_result_id(block: Any) -> str | None:
    """Return the id that a ``toolResult`` block answers, empty if it has none; ``None`` if the block is another."""
    body = block_body(block, "toolResult")
    return None if body is None else string(body.get("toolUseId"))


def unplaced_cache_points(blocks: Sequence[Any]) -> list[int]:
    """Return the places of cache points without a block before them, or directly after a thought."""
    found: list[int] = []
    before = ""
    for place, block in enumerate(blocks):
        kind = block_kind(block)
        if kind == "cachePoint":
            if before in ("", "reasoningContent"):
                found.append(place)
        else:
            before = kind or "unknown"
    return found


def said_in(body: Any) -> list[str]:
    """Return the texts in a list of blocks inside another block."""
    return [text for each in items_of(body) or () if isinstance(text := (fields_of(each) or {}).get("text"), str)]


_BLOCKS: Final = Blocks(
    blocks_of=lambda fields: items_in(fields, "content"),
    kind_of=block_kind,
    call_id_of=_tool_use_id,
    result_id_of=_tool_result_id,
    call_id_path=("toolUse", "toolUseId"),
    result_id_path=("toolResult", "toolUseId"),
    id_pattern=_ID,
    after_calls={
        **dict.fromkeys(_WORDS, ("text-after-call", "an answer has no text after its calls")),
        "reasoningContent": ("thinking-after-call", "an answer has no thoughts after its calls"),
    },
    silent=frozenset({"cachePoint"}),
)

# ------------------------------------------------------------------------ one message, and two neighbours

_ROLES: Final = frozenset({"user", "assistant", "system"})

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


def message_problems(fields: Fields) -> Iterator[Finding]:
    """Yield the rules that a message breaks by itself, independent of its neighbours."""
    role, content = string(fields.get("role")), fields.get("content")
    if role not in _ROLES:
        yield ("role",), "unknown-role", f"no such role: {fields.get('role')!r}"
    elif content is not None and items_of(content) is None:
        yield ("content",), "malformed-content", f"a content is a list of blocks (got {type_name(content)})"
    elif not content:
        yield ("content",), "empty-content", "it is empty"
    else:
        blocks = items_in(fields, "content")
        for position, block in enumerate(blocks):
            yield from _block_problems(("content", position), role, block)
        for position in unplaced_cache_points(blocks):
            yield ("content", position), "misplaced-cache-point", "no block before it can be cached"
        if role == "user":
            yield from _user_problems(blocks)
        elif role == "assistant":
            yield from _answer_problems(blocks)


def _answer_problems(blocks: Sequence[Any]) -> Iterator[Finding]:
    yield from _BLOCKS.answer_problems(blocks)
    yield from _repeated(blocks, _tool_use_id, ("toolUse", "toolUseId"), "duplicate-call-id", "is that of another call")
    if {block_kind(block) for block in blocks} - {"cachePoint"} == {"reasoningContent"}:
        yield (("content",), "thinking-alone", "the answer has only thoughts")


def _repeated(blocks: Sequence[Any], id_of: Any, at: Path, rule: str, text: str) -> Iterator[Finding]:
    """Yield the blocks of a message with the id of an earlier one."""
    for id, position in repeated((id_of(block) or "", position) for position, block in enumerate(blocks)):
        yield ("content", position, *at), rule, f"the id {id[:80]!r} {text}"


def _user_problems(blocks: Sequence[Any]) -> Iterator[Finding]:
    yield from _BLOCKS.result_problems(blocks)
    yield from _repeated(blocks, _tool_result_id, (), "duplicate-result", "is answered already")
    documents = [position for position, block in enumerate(blocks) if block_kind(block) == "document"]
    if documents and not any(string((fields_of(block) or {}).get("text")).strip() for block in blocks):
        yield ("content", documents[0]), "document-without-text", "the message has a document and no text"


def _block_problems(where: Path, role: str, block: Any) -> Iterator[Finding]:
    """Yield the rules that a block breaks by itself, in a message of a known role."""
    kind, value = union_of(block)
    if not kind:
        fields = fields_of(block)
        got = type_name(block) if fields is None else " and ".join(map(repr, fields)) or "none"
        yield (where, "malformed-block", f"a block is an object with one field (got {got})")
    elif not _allowed(role, kind, fields_of(value) or {}):
        yield (where, "block-not-allowed", f"a {role} message does not accept a block of kind {kind!r}")
    elif kind == "text":
        if not isinstance(value, str):
            yield ((*where, "text"), "malformed-block", f"a text is a string (got {type_name(value)})")
        elif not value.strip():
            yield (where, "empty-text", "the text block is empty")
    elif kind in KINDS:
        yield from _body_problems((*where, kind), kind, value)


def _body_problems(where: Path, kind: str, value: Any) -> Iterator[Finding]:
    body = fields_of(value)
    if body is None:
        yield (where, "malformed-block", f"it is an object (got {type_name(value)})")
        return
    for name, given in lacking(body, _REQUIRED.get(kind, {}), empty=False):
        yield ((*where, name), "malformed-block", f"{kind} needs {name!r} (got {type_name(given)})")
    if kind == "toolResult" and (content := items_of(body.get("content"))) is not None:
        if not content and body.get("status") == "error":
            yield ((*where, "content"), "empty-error", "a failed result has no content")
        for position, element in enumerate(content):
            yield from _nested_problems((*where, "content", position), element)


def _nested_problems(where: Path, element: Any) -> Iterator[Finding]:
    kind, value = union_of(element)
    if kind in KINDS and kind not in _IN_RESULTS:
        yield (where, "block-not-allowed", f"a result does not accept a block of kind {kind!r}")
    elif kind == "json":
        if fields_of(value) is None:
            yield ((*where, "json"), "malformed-block", f"its data is an object (got {type_name(value)})")
    else:
        yield from _block_problems(where, "user", element)


def _allowed(role: str, kind: str, body: Mapping[str, Any]) -> bool:
    if role == "system":
        return kind in _OF_SYSTEM
    if role == "assistant":
        return kind not in _OF_ASSISTANT and (kind != "toolResult" or is_hosted(body))
    return kind not in _OF_USER


def join_problem(before: Fields | None, after: Fields | None) -> JoinProblem | None:
    """Return the rule that two neighbours break, given their fields; ``None`` for the start and the end of the list."""
    one = None if before is None else string(before.get("role"))
    other = None if after is None else string(after.get("role"))
    if other not in _ROLES or (one is not None and one not in _ROLES):
        return None
    if (misplaced := misplaced_system(one, other)) is not None:
        return misplaced
    if one is None:
        return ("starts-with-answer", "after") if other == "assistant" else None
    return ("same-role-twice", "after") if one == other else None


def _stub(call: Any, id: str) -> dict[str, Any]:
    return {"toolResult": {"toolUseId": id, "content": [{"text": NOT_RECORDED}], "status": "error"}}


_PAIRING: Final = _BLOCKS.pairing(
    _stub, again="", new_id="tooluse", movable=lambda block: block_kind(block) != "reasoningContent"
)


def _list_problems(contents: Sequence[Fields]) -> Iterator[tuple[int, Finding]]:
    """Yield cache points above the maximum."""
    points: list[tuple[int, Path]] = [
        (index, ("content", position))
        for index, fields in enumerate(contents)
        for position, block in enumerate(items_in(fields, "content") if string(fields.get("role")) in _ROLES else ())
        if block_kind(block) == "cachePoint"
    ]
    yield from too_many(points, "too-many-cache-points")


RULES: Final[Mapping[str, Rule]] = {
    "no-messages": Rule("send at least one message"),
    "unreadable-message": Rule("pass dictionaries, as boto3 takes them"),
    "unknown-role": Rule("use one of user, assistant"),
    "starts-with-answer": Rule("put a user message before it, or leave it out", "message"),
    "same-role-twice": Rule("join it with the message before it", "join"),
    "misplaced-system": Rule("pass it as the 'system' parameter, or put it between a user message and the answer"),
    "malformed-content": Rule("make it a list of blocks"),
    "empty-content": Rule("give it a block, or leave the message out", "message"),
    "malformed-block": Rule("make it an object with one field that has the fields of its kind"),
    "block-not-allowed": Rule("leave the block out, or move it to a message of the other role"),
    "empty-text": Rule("leave the block out", "block"),
    "document-without-text": Rule("add a text block that says what the document is for"),
    "thinking-alone": Rule("leave the message out", "message"),
    "misplaced-cache-point": Rule("put it after a block that is not a thought, or leave it out"),
    "text-after-call": Rule("put the text before the calls"),
    "thinking-after-call": Rule("put the thoughts before the text and the calls, where the model put them"),
    "result-after-text": Rule("put the results first"),
    "call-without-id": Rule("give the call an id, and its result the same id"),
    "malformed-id": Rule("give it an id of at most 64 letters, digits, '_', '.', ':' and '-', and its result the same id"),
    "duplicate-call-id": Rule("give each call of a message a different id", "id"),
    "result-without-id": Rule("set 'toolUseId' to the id of the call it answers"),
    "duplicate-result": Rule("keep one result for each call", "pair"),
    "empty-error": Rule("say in its content what went wrong"),
    "call-without-result": Rule("put its result into the user message directly after it, or leave the call out", "pair"),
    "pending-call": Rule("store the list unchanged; add the result before sending it"),
    "result-without-call": Rule("put it into the user message directly after the call, or leave it out", "pair"),
    "too-many-cache-points": Rule("keep four cache points at most"),
}

BOOK: Final = RuleBook(
    rules=RULES,
    pairing=_PAIRING,
    message=message_problems,
    join=join_problem,
    joins={
        "starts-with-answer": ((), "no message is before it"),
        "same-role-twice": ((), "the message before it has the same role"),
        "misplaced-system": ((), "it is not between a user message and the answer"),
    },
    whole=_list_problems,
)

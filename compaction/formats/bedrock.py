"""Amazon Bedrock's Converse messages: blocks of one field, results in the user message after the call.

The blocks are those of the service model in botocore: text, image, document, video, audio, toolUse, toolResult,
reasoningContent, guardContent, citationsContent, cachePoint. Data is bytes, as boto3 has it, or base64 text, as JSON has it;
both come out as they came in. A user message that contains only results is read with the role ``"tool"``. The system prompt is
outside the list, as the ``system`` parameter. A block that no rule knows is kept as `OtherPart`.

``docs/rules/bedrock.md`` shows every rule with an example and its source. Rules that depend on the
model are not included: whether it accepts images, text beside calls, unsigned thoughts, or a list that ends with an answer.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from ..json_data import same
from ..messages import MediaPart, Message, OtherPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from .base import JoinProblem
from .blocks import Blocks, misplaced_system, too_many
from .pairing import NOT_RECORDED, Fields, Finding, Path, repeated
from .rulebook import Rule, RuleBook, WireFormat
from .wire import (
    GO_ON,
    arguments_object,
    arguments_text,
    changed_result,
    data_size,
    elements_of,
    fields_of,
    items_in,
    items_of,
    json_text,
    lacking,
    read_role,
    result_part,
    signed_thoughts_problem,
    string,
    type_name,
    unwritable,
    without_new_blanks,
)

# ------------------------------------------------------------------------ access to fields

# A block is a union: an object with a single field, whose name is the block's kind.

_MEDIA_KINDS: Final[Mapping[str, str]] = {"image": "image", "video": "video", "audio": "audio", "document": "file"}
"""Kinds of blocks with media, and the kind of media."""

_WORDS: Final = frozenset({"text", "citationsContent"})  # kinds of blocks with the text of an answer

_OF_SYSTEM: Final = frozenset({"text", "cachePoint", "toolAddition", "toolRemoval"})
_KINDS: Final = (
    _WORDS | _OF_SYSTEM | _MEDIA_KINDS.keys() | {"toolUse", "toolResult", "reasoningContent", "guardContent", "searchResult"}
)
"""The members of the union ``ContentBlock`` in botocore 1.44."""

_IN_RESULTS: Final = frozenset({"text", "json", "image", "document", "video", "searchResult"})
"""The members of the union ``ToolResultContentBlock``."""

_ID: Final = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")  # ids of calls that the API accepts: ``ToolUseId`` in botocore


def _union_of(block: Any) -> tuple[str, Any]:
    """Return the name and the value of a block's only field; an empty name if it does not have exactly one."""
    members = [member for member in (fields_of(block) or {}).items() if member[1] is not None]
    return members[0] if len(members) == 1 else ("", None)


def _block_kind(block: Any) -> str:
    """Return the name of a block's only field; empty if it does not have exactly one."""
    return _union_of(block)[0]


def _block_body(block: Any, kind: str) -> Mapping[str, Any] | None:
    """Return the object in a block of this kind; ``None`` if the block is another, or not an object."""
    found, value = _union_of(block)
    return fields_of(value) if found == kind else None


def _tool_use_id(block: Any) -> str | None:
    """Return the id of a call of the caller's tools, empty if it has none; ``None`` if the block is another."""
    body = _block_body(block, "toolUse")
    return None if body is None or body.get("type") else string(body.get("toolUseId"))  # the provider's own have a type


def _tool_result_id(block: Any) -> str | None:
    """Return the id that a ``toolResult`` block answers, empty if it has none; ``None`` if the block is another."""
    body = _block_body(block, "toolResult")
    return None if body is None else string(body.get("toolUseId"))


def _unplaced_cache_points(blocks: Sequence[Any]) -> list[int]:
    """Return the places of cache points without a block before them, or directly after a thought."""
    found: list[int] = []
    before = ""
    for place, block in enumerate(blocks):
        kind = _block_kind(block)
        if kind == "cachePoint":
            if before in ("", "reasoningContent"):
                found.append(place)
        else:
            before = kind or "unknown"
    return found


def _said_in(body: Any) -> list[str]:
    return [text for each in items_of(body) or () if isinstance(text := (fields_of(each) or {}).get("text"), str)]


_BLOCKS: Final = Blocks(
    blocks_of=lambda fields: items_in(fields, "content"),
    kind_of=_block_kind,
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


def _message_problems(fields: Fields) -> Iterator[Finding]:
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
        for position in _unplaced_cache_points(blocks):
            yield ("content", position), "misplaced-cache-point", "no block before it can be cached"
        if role == "user":
            yield from _user_problems(blocks)
        elif role == "assistant":
            yield from _BLOCKS.answer_problems(blocks)
            yield from _repeated(blocks, _tool_use_id, ("toolUse", "toolUseId"), "duplicate-call-id", "is that of another call")
            if {_block_kind(block) for block in blocks} - {"cachePoint"} == {"reasoningContent"}:
                yield (("content",), "thinking-alone", "the answer has only thoughts")


def _repeated(blocks: Sequence[Any], id_of: Any, at: Path, rule: str, text: str) -> Iterator[Finding]:
    for id, position in repeated((id_of(block) or "", position) for position, block in enumerate(blocks)):
        yield ("content", position, *at), rule, f"the id {id[:80]!r} {text}"


def _user_problems(blocks: Sequence[Any]) -> Iterator[Finding]:
    yield from _BLOCKS.result_problems(blocks)
    yield from _repeated(blocks, _tool_result_id, (), "duplicate-result", "is answered already")
    documents = [position for position, block in enumerate(blocks) if _block_kind(block) == "document"]
    if documents and not any(string((fields_of(block) or {}).get("text")).strip() for block in blocks):
        yield ("content", documents[0]), "document-without-text", "the message has a document and no text"


def _block_problems(where: Path, role: str, block: Any) -> Iterator[Finding]:
    """Yield the rules that a block breaks by itself, in a message of a known role."""
    kind, value = _union_of(block)
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
    elif kind in _KINDS:
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
    kind, value = _union_of(element)
    if kind in _KINDS and kind not in _IN_RESULTS:
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
        return kind not in ("image", "document") and (kind != "toolResult" or bool(body.get("type")))
    return kind not in ("toolUse", "reasoningContent")


def _join_problem(before: Fields | None, after: Fields | None) -> JoinProblem | None:
    one = None if before is None else string(before.get("role"))
    other = None if after is None else string(after.get("role"))
    if other not in _ROLES or (one is not None and one not in _ROLES):
        return None
    if (misplaced := misplaced_system(one, other)) is not None:
        return misplaced
    if one is None:
        return ("starts-with-answer", "after") if other == "assistant" else None
    return ("same-role-twice", "after") if one == other else None


def _extra_points(contents: Sequence[Fields]) -> Iterator[tuple[int, Finding]]:
    points: list[tuple[int, Path]] = [
        (index, ("content", position))
        for index, fields in enumerate(contents)
        for position, block in enumerate(items_in(fields, "content") if string(fields.get("role")) in _ROLES else ())
        if _block_kind(block) == "cachePoint"
    ]
    return too_many(points, "too-many-cache-points")


_BOOK: Final = RuleBook(
    rules={
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
    },
    pairing=_BLOCKS.pairing(
        lambda call, id: {"toolResult": {"toolUseId": id, "content": [{"text": NOT_RECORDED}], "status": "error"}},
        again="",
        new_id="tooluse",
        movable=lambda block: _block_kind(block) != "reasoningContent",
    ),
    message=_message_problems,
    join=_join_problem,
    joins={
        "starts-with-answer": ((), "no message is before it"),
        "same-role-twice": ((), "the message before it has the same role"),
        "misplaced-system": ((), "it is not between a user message and the answer"),
    },
    whole=_extra_points,
)


# ------------------------------------------------------------------------ the format

_NOTED: Final = "Noted."
_BASE64: Final = "$base64"


class Bedrock(WireFormat):
    """The Converse format; use the shared instance ``bedrock``.

    >>> asked = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t1", "name": "now", "input": {}}}]}
    >>> answer = {"role": "user", "content": [{"toolResult": {"toolUseId": "t1", "content": [{"text": "noon"}]}}]}
    >>> [bedrock.read(raw).role for raw in (asked, answer)]
    ['assistant', 'tool']
    >>> [problem.rule for problem in bedrock.validate([asked, answer])]
    ['starts-with-answer']
    """

    name = "bedrock"
    shape = "a message is a mapping with 'role' and 'content'"
    book = _BOOK

    def read(self, raw: Any, position: int = 0) -> Message:
        fields: Mapping[str, Any] = raw if raw.__class__ is dict else self._fields(raw, position)
        role, content = self._role(fields, position), fields.get("content")
        parts = tuple([_read_part(block, role) for block in elements_of(content)])
        with_content = [part for part in parts if _block_kind(part.raw) != "cachePoint"]
        return Message(read_role(role, with_content), parts, raw, self)

    def _write(self, fields: dict[str, Any], message: Message, parts: Sequence[Part]) -> None:
        blocks = [_write_part(part, string(fields.get("role"))) for part in without_new_blanks(message.parts, parts)]
        unplaced = _unplaced_cache_points(blocks)
        fields["content"] = [block for place, block in enumerate(blocks) if place not in unplaced]

    def new(self, role: str, text: str) -> Message:
        return self.read({"role": role, "content": [{"text": text}]})

    def recognizes(self, fields: Mapping[str, Any]) -> bool | None:
        """Recognize a message whose content is a list of blocks without a type, at least one of them known."""
        blocks = items_of(fields.get("content"))
        if fields.get("role") not in ("user", "assistant", "system") or "type" in fields or blocks is None:
            return False
        known = None
        for block in blocks:
            if (block_fields := fields_of(block)) is None or "type" in block_fields:
                return False
            known = known or _block_kind(block) in _KINDS or None
        return known

    def recognizes_part(self, fields: Mapping[str, Any]) -> bool:
        return "type" not in fields and _block_kind(fields) in _KINDS

    def to_wire(self, raw: Any) -> Any:
        return _converted(super().to_wire(raw), _encoded)

    def from_wire(self, data: Any) -> Any:
        return _converted(data, _decoded)

    def prefers(self, before: Message | None, after: Message | None) -> bool:
        """Prefer what the provider accepts, which leaves no choice."""
        return self.join_problem(before, after) is None

    def summary(self, text: str, before: Message | None, after: Message | None) -> tuple[Message, ...]:
        """Return one message, or two where a neighbour has the same role."""
        follower = "" if after is None else _wire_role(after)
        if before is not None and _wire_role(before) != "assistant":
            said = self.new("assistant", text)
            return (said,) if follower in ("", "user") else (said, self.new("user", GO_ON))
        asked = self.new("user", text)
        return (asked, self.new("assistant", _NOTED)) if follower == "user" else (asked,)

    def completes_summary(self, message: Message) -> bool:
        return message.text == {"user": GO_ON, "assistant": _NOTED}.get(message.role) and len(message.parts) == 1

    def placeholder(self, text: str) -> tuple[Message, ...]:
        """Return a note of the model and a message of the user, in place of the calls and their results."""
        return self.new("assistant", text), self.new("user", GO_ON)

    def rewrite_problem(self, before: Sequence[Message], after: Sequence[Message | None], *, current: bool) -> str | None:
        return signed_thoughts_problem(before, after, current=current)


bedrock = Bedrock()


def _wire_role(message: Message) -> str:
    """Return the role on the wire; that of results is the user's."""
    return message.role if message.role != "tool" else string((fields_of(message.raw) or {}).get("role"))


def _read_part(block: Any, role: str) -> Part:
    """Read one block; a value that is not understood becomes an `OtherPart`."""
    if isinstance(block, str):
        return TextPart(block, raw=block)
    kind, value = _union_of(block)
    if kind == "text" and isinstance(value, str):
        return TextPart(value, raw=block)
    if kind == "cachePoint":
        return OtherPart("", raw=block)
    if (body := fields_of(value)) is None:
        return OtherPart(json_text(block), raw=block)
    if kind in _MEDIA_KINDS:
        return MediaPart(_MEDIA_KINDS[kind], size_bytes=_data_size(body), name=string(body.get("name")), raw=block)
    if kind == "toolUse" and not body.get("type"):
        id, name = string(body.get("toolUseId")), string(body.get("name"))
        return ToolCallPart(id, name, arguments_text(body.get("input")), raw=block)
    if kind == "toolResult" and not (role == "assistant" and body.get("type")):
        return _read_result(body, block)
    return _read_words(kind, body, block) or OtherPart(json_text(block), raw=block)


def _read_words(kind: str, body: Mapping[str, Any], block: Any) -> Part | None:
    """Read a block with nested words: a thought, a text for a guardrail, or a citation; ``None`` for any other."""
    if kind == "reasoningContent":
        return ReasoningPart(string((fields_of(body.get("reasoningText")) or {}).get("text")), raw=block)
    if kind == "guardContent" and (image := fields_of(body.get("image"))) is not None:
        return MediaPart("image", size_bytes=_data_size(image), raw=block)
    if kind == "guardContent" and isinstance(text := (fields_of(body.get("text")) or {}).get("text"), str):
        return TextPart(text, raw=block)
    if kind == "citationsContent" and (said := _said_in(body.get("content"))):
        return TextPart("\n".join(said), raw=block)
    return None


def _data_size(body: Mapping[str, Any]) -> int:
    """Return the bytes of the data and the texts in a media block, as sent."""
    source = fields_of(body.get("source")) or {}
    return data_size(source.get("bytes")) + sum(map(len, [string(source.get("text")), *_said_in(source.get("content"))]))


def _read_result(body: Mapping[str, Any], block: Any) -> ToolResultPart:
    parts = [_read_nested(element) for element in elements_of(body.get("content"))]
    return result_part(
        string(body.get("toolUseId")), parts, {"error": True, "success": False}.get(string(body.get("status"))), block
    )


def _read_nested(element: Any) -> Part:
    """Read one block of a result: text, data, or media."""
    kind, value = _union_of(element)
    if kind == "json":
        return OtherPart(json_text(value), raw=element)
    part = _read_part(element, "user")
    return part if isinstance(part, TextPart | MediaPart) else OtherPart(json_text(element), raw=element)


def _write_part(part: Part, role: str) -> Any:
    """Write one block; an unchanged part returns its original block."""
    if part.raw is not None and _read_part(part.raw, role) == part:
        return part.raw
    kind = _block_kind(part.raw)
    if isinstance(part, TextPart):
        if kind != "guardContent":
            return {"text": part.text}
        body = dict(_block_body(part.raw, "guardContent") or {})
        return {"guardContent": {**body, "text": {**(fields_of(body.get("text")) or {}), "text": part.text}}}
    if isinstance(part, ToolCallPart):
        body = dict(_block_body(part.raw, "toolUse") or {})
        return {"toolUse": {**body, "toolUseId": part.id, "name": part.name, "input": arguments_object(part.arguments)}}
    if isinstance(part, ToolResultPart):
        body = dict(_block_body(part.raw, "toolResult") or {"content": []})
        before = _read_result(body, part.raw)
        if part.text != before.text or not same(part.media, before.media):
            elements = items_of(body.get("content")) or ()
            body["content"] = changed_result(elements, before, part, read=_read_nested, write=lambda text: {"text": text.text})
        return {"toolResult": {**body, "toolUseId": part.call_id}}
    raise unwritable(part)


def _converted(value: Any, convert: Callable[[Any], Any]) -> Any:
    """Return the value with its fields for bytes converted, where they can be; the same object if nothing changes.

    boto3 takes these fields as bytes, which JSON cannot express.
    """
    if (elements := items_of(value)) is not None:
        items = [_converted(item, convert) for item in elements]
        return value if same(items, elements) else items
    if (fields := fields_of(value)) is None:
        return value
    made = {name: convert(field) if name in ("bytes", "redactedContent") else field for name, field in fields.items()}
    made = {name: _converted(new, convert) if new is fields[name] else new for name, new in made.items()}
    return value if same(list(made.values()), list(fields.values())) else made


def _encoded(value: Any) -> Any:
    """Return bytes as an object that JSON can express; any other value as it is."""
    return {_BASE64: base64.b64encode(value).decode()} if isinstance(value, bytes | bytearray) else value


def _decoded(value: Any) -> Any:
    """Return the bytes that `_encoded` wrote as an object; any other value as it is."""
    data = (fields_of(value) or {}).get(_BASE64)
    try:
        return base64.b64decode(data, validate=True) if isinstance(data, str) else value
    except binascii.Error:
        return value

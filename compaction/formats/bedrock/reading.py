"""Reading and writing of Amazon Bedrock's Converse messages: blocks of one field, results in the user message after the call.

The blocks are those of the service model in botocore: text, image, document, video, audio, toolUse, toolResult,
reasoningContent, guardContent, citationsContent, cachePoint. Data is bytes, as boto3 has it, or base64 text, as JSON has it;
both come out as they came in. A user message that contains only results is read with the role ``"tool"``. The system prompt is
outside the list, as the ``system`` parameter. A block that no rule knows is kept as `OtherPart`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ...json_data import same
from ...messages import MediaPart, Message, OtherPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from ..rulebook import WireFormat
from ..wire import arguments_text, data_size, elements_of, fields_of, items_of, json_text, read_role, result_part, string
from ..writing import GO_ON, arguments_object, changed_result, signed_thoughts_problem, unwritable, without_new_blanks
from .rules import BOOK, KINDS, MEDIA_KINDS, block_body, block_kind, is_hosted, said_in, union_of, unplaced_cache_points

_NOTED: Final = "Noted."
_STATUS: Final = {"error": True, "success": False}
_BLOBS: Final = ("bytes", "redactedContent")  # fields that boto3 takes as bytes, which JSON cannot express
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
    takes = "pass dictionaries, as boto3 takes them"
    book = BOOK

    def read(self, raw: Any, position: int = 0) -> Message:
        fields: Mapping[str, Any] = raw if raw.__class__ is dict else self._fields(raw, position)
        role, content = self._role(fields, position), fields.get("content")
        parts = tuple([_read_part(block, role) for block in elements_of(content)])
        with_content = [part for part in parts if block_kind(part.raw) != "cachePoint"]
        return Message(read_role(role, with_content), parts, raw, self)

    def _write(self, fields: dict[str, Any], message: Message, parts: Sequence[Part]) -> None:
        blocks = [_write_part(part, string(fields.get("role"))) for part in without_new_blanks(message.parts, parts)]
        unplaced = unplaced_cache_points(blocks)
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
            known = known or block_kind(block) in KINDS or None
        return known

    def recognizes_part(self, fields: Mapping[str, Any]) -> bool:
        return "type" not in fields and block_kind(fields) in KINDS

    def to_wire(self, raw: Any) -> Any:
        return _converted(super().to_wire(raw), _encoded)

    def from_wire(self, data: Any) -> Any:
        return _converted(data, _decoded)

    def prefers(self, before: Message | None, after: Message | None) -> bool:
        """Prefer what the provider accepts, which leaves no choice."""
        return self.join_problem(before, after) is None

    def summary(self, text: str, before: Message | None, after: Message | None) -> tuple[Message, ...]:
        """Return one message, or two where a neighbour has the same role."""
        answers = before is not None and _wire_role(before) != "assistant"
        follower = "" if after is None else _wire_role(after)
        if answers:
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
    kind, value = union_of(block)
    if kind == "text" and isinstance(value, str):
        return TextPart(value, raw=block)
    if kind == "cachePoint":
        return OtherPart("", raw=block)
    if (body := fields_of(value)) is None:
        return OtherPart(json_text(block), raw=block)
    if kind in MEDIA_KINDS:
        return MediaPart(MEDIA_KINDS[kind], size_bytes=_data_size(body), name=string(body.get("name")), raw=block)
    if kind == "toolUse" and not is_hosted(body):
        return ToolCallPart(
            string(body.get("toolUseId")), string(body.get("name")), arguments_text(body.get("input")), raw=block
        )
    if kind == "toolResult" and not (role == "assistant" and is_hosted(body)):
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
    if kind == "citationsContent" and (said := said_in(body.get("content"))):
        return TextPart("\n".join(said), raw=block)
    return None


def _data_size(body: Mapping[str, Any]) -> int:
    """Return the bytes of the data and the texts in a media block, as sent."""
    source = fields_of(body.get("source")) or {}
    return data_size(source.get("bytes")) + sum(map(len, [string(source.get("text")), *said_in(source.get("content"))]))


def _read_result(body: Mapping[str, Any], block: Any) -> ToolResultPart:
    parts = [_read_nested(element) for element in elements_of(body.get("content"))]
    return result_part(string(body.get("toolUseId")), parts, _STATUS.get(string(body.get("status"))), block)


def _read_nested(element: Any) -> Part:
    """Read one block of a result: text, data, or media."""
    kind, value = union_of(element)
    if kind == "json":
        return OtherPart(json_text(value), raw=element)
    part = _read_part(element, "user")
    return part if isinstance(part, TextPart | MediaPart) else OtherPart(json_text(element), raw=element)


def _write_part(part: Part, role: str) -> Any:
    """Write one block; an unchanged part returns its original block."""
    if part.raw is not None and _read_part(part.raw, role) == part:
        return part.raw
    kind = block_kind(part.raw)
    if isinstance(part, TextPart):
        if kind != "guardContent":
            return {"text": part.text}
        body = dict(block_body(part.raw, "guardContent") or {})
        return {"guardContent": {**body, "text": {**(fields_of(body.get("text")) or {}), "text": part.text}}}
    if isinstance(part, ToolCallPart):
        body = dict(block_body(part.raw, "toolUse") or {})
        return {"toolUse": {**body, "toolUseId": part.id, "name": part.name, "input": arguments_object(part.arguments)}}
    if isinstance(part, ToolResultPart):
        body = dict(block_body(part.raw, "toolResult") or {"content": []})
        before = _read_result(body, part.raw)
        if part.text != before.text or not same(part.media, before.media):
            elements = items_of(body.get("content")) or ()
            body["content"] = changed_result(elements, before, part, read=_read_nested, write=lambda text: {"text": text.text})
        return {"toolResult": {**body, "toolUseId": part.call_id}}
    raise unwritable(part)


def _converted(value: Any, convert: Callable[[Any], Any]) -> Any:
    """Return the value with its fields for bytes converted, where they can be; the same object if nothing changes."""
    if (elements := items_of(value)) is not None:
        items = [_converted(item, convert) for item in elements]
        return value if same(items, elements) else items
    if (fields := fields_of(value)) is None:
        return value
    made = {name: convert(field) if name in _BLOBS else field for name, field in fields.items()}
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

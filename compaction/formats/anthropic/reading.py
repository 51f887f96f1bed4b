"""Reading and writing of Anthropic messages: content blocks, results in the user message after the call, signed thoughts.

The blocks are those of the request types of the ``anthropic`` package: text, image, document, tool_use, tool_result with
nested content, thinking and redacted_thinking, blocks of tools the provider runs itself, compaction blocks. Messages and
blocks may be dictionaries or that package's own objects. A user message that contains only results is read with the role
``"tool"``; one that also holds words keeps ``"user"``. System messages may be in the list, or outside it as the ``system``
parameter. A block that no rule knows is kept as `OtherPart`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...json_data import same
from ...messages import MediaPart, Message, OtherPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from ..rulebook import WireFormat
from ..wire import (
    arguments_text,
    data_size,
    elements_of,
    fields_of,
    json_text,
    kind_of,
    read_role,
    result_part,
    says_something,
    string,
)
from ..writing import (
    GO_ON,
    arguments_object,
    changed_result,
    signed_thoughts_problem,
    unwritable,
    without_new_blanks,
    written_content,
)
from .rules import BOOK, MEDIA_BLOCKS, block_links, is_server_call, is_server_result

_OWN_TYPES: Final = {"search_result", "compaction", "fallback", "mcp_tool_listing", "container_upload", "document"}
_OTHER_TYPES: Final = {"text", "tool_use", "tool_result", "redacted_thinking", "tool_addition", "tool_removal"}
_DETECTED_TYPES: Final = _OWN_TYPES | _OTHER_TYPES
"""Types of blocks by which the format is detected; types that other formats share are checked more closely."""


class Anthropic(WireFormat):
    """The Messages format; use the shared instance ``anthropic``.

    >>> asked = {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "now", "input": {}}]}
    >>> answer = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "noon"}]}
    >>> [anthropic.read(raw).role for raw in (asked, answer)]
    ['assistant', 'tool']
    >>> [problem.rule for problem in anthropic.validate([asked, {"role": "user", "content": "well?"}])]
    ['call-without-result']
    """

    name = "anthropic"
    shape = "a message is a mapping with 'role' and 'content'"
    takes = "pass dictionaries, or the anthropic package's objects"
    roles = "user, assistant, system"
    book = BOOK

    def read(self, raw: Any, position: int = 0) -> Message:
        fields: Mapping[str, Any] = raw if raw.__class__ is dict else self._fields(raw, position)
        role, content = self._role(fields, position), fields.get("content")
        if isinstance(content, str):
            return Message(role, (TextPart(content),), raw, self)
        blocks = elements_of(content)
        parts = tuple(map(_read_part, blocks))
        begins, resumes = block_links(blocks) if role == "assistant" else ((), ())
        return Message(
            read_role(role, parts),
            parts,
            raw,
            self,
            continues=bool(resumes),
            begins=begins,
            resumes=resumes,
            holds_history=any(map(holds_history, blocks)),
        )

    def _write(self, fields: dict[str, Any], message: Message, parts: Sequence[Part]) -> None:
        listed = without_new_blanks(message.parts, parts)
        fields["content"] = written_content(fields.get("content"), parts, _write_part, listed=listed)

    def new(self, role: str, text: str) -> Message:
        return self.read({"role": role, "content": text})

    def recognizes(self, fields: Mapping[str, Any]) -> bool | None:
        """Recognize a message of three roles; with the type ``message`` only an answer of the provider, or blocks."""
        if not says_something(fields) or fields.get("role") in ("tool", "function", "developer"):
            return False
        if fields.get("type") != "message" or "stop_reason" in fields:
            return None
        return False if isinstance(fields.get("content"), str) else None

    def recognizes_part(self, fields: Mapping[str, Any]) -> bool:
        kind = string(fields.get("type"))
        if kind in _DETECTED_TYPES or is_server_call(kind) or is_server_result(kind):
            return True
        return (kind == "thinking" and bool(fields.get("signature"))) or (kind == "image" and fields.get("source") is not None)

    def prefers(self, before: Message | None, after: Message | None) -> bool:
        """Prefer an answer after the user, and a system message between the user and an answer."""
        if after is None:
            return True
        if after.role == "assistant":
            return before is not None and before.role != "assistant"
        if after.is_system:
            return before is None or not (before.is_system or before.role == "assistant")
        return before is None or not before.is_system

    def summary(self, text: str, before: Message | None, after: Message | None) -> tuple[Message, ...]:
        """Return one message of the user; after a system message two, because an answer must follow it."""
        if before is None or not before.is_system:
            return (self.new("user", text),)
        return (self.new("assistant", text), self.new("user", GO_ON))

    def summary_role(self, before: Message | None, after: Message | None) -> str:
        return "user"

    def completes_summary(self, message: Message) -> bool:
        return (
            message.role == "user" and message.text == GO_ON and isinstance((fields_of(message.raw) or {}).get("content"), str)
        )

    def placeholder(self, text: str) -> tuple[Message, ...]:
        return (self.new("user", text),)

    def rewrite_problem(self, before: Sequence[Message], after: Sequence[Message | None], *, current: bool) -> str | None:
        return signed_thoughts_problem(before, after, current=current)


anthropic = Anthropic()


def _read_part(block: Any) -> Part:
    """Read one block; a value that is not understood becomes an `OtherPart`."""
    if isinstance(block, str):
        return TextPart(block, raw=block)
    fields = fields_of(block)
    kind = kind_of(block)
    if fields is None or not kind:
        return OtherPart(json_text(block), raw=block)
    if kind == "text" and isinstance(text := fields.get("text"), str):
        return TextPart(text, raw=block)
    if kind == "thinking":
        return ReasoningPart(string(fields.get("thinking")), raw=block)
    if kind == "redacted_thinking":
        return ReasoningPart("", raw=block)
    if kind in MEDIA_BLOCKS:
        size, name = data_size((fields_of(fields.get("source")) or {}).get("data")), string(fields.get("title"))
        return MediaPart(MEDIA_BLOCKS[kind], size_bytes=size, name=name, raw=block)
    if kind == "tool_use":
        return ToolCallPart(
            string(fields.get("id")), string(fields.get("name")), arguments_text(fields.get("input")), raw=block
        )
    if kind == "tool_result":
        return _read_result(fields, block)
    return OtherPart(json_text(block), raw=block)


def holds_history(block: Any) -> bool:
    """Whether a block is a summary that the provider wrote; without content, the provider failed to write it."""
    fields = fields_of(block) if kind_of(block) == "compaction" else None
    return fields is not None and bool(fields.get("content") or fields.get("encrypted_content"))


def _read_result(fields: Mapping[str, Any], block: Any) -> ToolResultPart:
    content = fields.get("content")
    call, marked = string(fields.get("tool_use_id")), fields.get("is_error")
    failed = marked if isinstance(marked, bool) else None
    if content is None or isinstance(content, str):
        return ToolResultPart(call, content or "", failed=failed, raw=block)
    return result_part(call, [_read_nested(element) for element in elements_of(content)], failed, block)


def _read_nested(element: Any) -> Part:
    """Read one block of a result; the API has no result within a result."""
    return OtherPart(json_text(element), raw=element) if kind_of(element) == "tool_result" else _read_part(element)


def _write_part(part: Part) -> Any:
    """Write one block; an unchanged part returns its original block."""
    if part.raw is not None and _read_part(part.raw) == part:
        return part.raw
    fields = fields_of(part.raw)
    if isinstance(part, TextPart):
        return {**(fields or {"type": "text"}), "text": part.text}
    if isinstance(part, ToolCallPart):
        return {**(fields or {"type": "tool_use"}), "id": part.id, "name": part.name, "input": arguments_object(part.arguments)}
    if isinstance(part, ToolResultPart):
        before = ToolResultPart(part.call_id, "") if fields is None else _read_result(fields, part.raw)
        block = {**(fields or {"type": "tool_result"}), "tool_use_id": part.call_id}
        if part.text != before.text or not same(part.media, before.media):
            block["content"] = changed_result(block.get("content"), before, part, read=_read_part, write=_write_part)
        return block
    raise unwritable(part)

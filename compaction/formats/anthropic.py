"""Anthropic Messages: content in blocks, tool results in the user message after the call, thoughts that are signed.

Block by block after the request types of the ``anthropic`` package: text, image, document, tool_use, tool_result with nested
content, thinking and redacted_thinking, blocks of tools the provider runs itself, compaction blocks. Messages and blocks may be
dictionaries or that package's own objects. A user message that holds nothing but results is read with the role ``"tool"``; one
that also holds words keeps ``"user"``. System messages may stand in the list, or outside it as the ``system`` parameter. A
block that no rule knows is kept as `Other`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from ..errors import ConfigurationError
from ..messages import Media, Message, Other, Part, Reasoning, Text, ToolCall, ToolResult
from .anthropic_fields import MEDIA_BLOCKS
from .anthropic_hosted import links_of
from .anthropic_repair import repair
from .anthropic_rules import validate
from .base import Problem, Repair
from .wire import (
    WireFormat,
    arguments_object,
    fields_of,
    items_of,
    json_text,
    kind_of,
    result_elements,
    same,
    string,
    without_role,
)

__all__ = ["Anthropic", "anthropic"]

_OPEN_LOOP = "thoughts of the current turn stay as the provider signed them"
_SPOKEN = "what stands for others is said by the user here: an answer that starts with thoughts may follow"
_INSTRUCTED = "after a system message within the conversation comes an answer"
_GO_ON = "Go on from there."


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

    def read(self, raw: Any, position: int = 0) -> Message:
        fields: Mapping[str, Any] = raw if raw.__class__ is dict else self._fields(raw, position)
        role, content = fields.get("role"), fields.get("content")
        if not isinstance(role, str) or not role:
            raise without_role(role, position, "user, assistant, system")
        if isinstance(content, str):
            return Message(role, (Text(content),), raw, self, continues=role == "user" and content == _GO_ON)
        elements = () if content is None else items_of(content)
        blocks = (content,) if elements is None else elements
        parts = tuple([_part(block) for block in blocks])
        if role == "user" and parts and all(isinstance(part, ToolResult) for part in parts):
            role = "tool"
        begins, resumes = links_of(blocks) if role == "assistant" else ((), ())
        return Message(role, parts, raw, self, continues=bool(resumes), begins=begins, resumes=resumes)

    def changed(self, message: Message, parts: Sequence[Part]) -> Message:
        fields = dict(self._fields(message.raw))
        if not same(message.parts, parts):
            fields["content"] = _content(message.parts, parts, fields.get("content"))
        return self.read(fields)

    def new(self, role: str, text: str) -> Message:
        return self.read({"role": role, "content": text})

    def validate(self, raws: Sequence[Any]) -> list[Problem]:
        return validate(raws)

    def repair(self, raws: Sequence[Any]) -> Repair:
        return repair(raws)

    def valid_seam(self, before: Message | None, after: Message | None) -> bool:
        """An answer follows the user; a system message stands between the user and an answer."""
        if after is None:
            return True
        if after.role == "assistant":
            return before is not None and before.role != "assistant"
        if after.is_system:
            return before is None or not (before.is_system or before.role == "assistant")
        return before is None or not before.is_system

    def summary(self, text: str, before: Message | None, after: Message | None) -> tuple[Message, ...]:
        """One message of the user, which any other may follow; after a system message, two, for an answer has to follow it."""
        if before is None or not before.is_system:
            return (self.new("user", text),)
        return (self.new("assistant", text), self.new("user", _GO_ON))

    def summary_role(self, before: Message | None, after: Message | None) -> str:
        return "user"

    def stand_in(self, text: str) -> Message:
        return self.new("user", text)

    def replacement_problem(self, messages: Sequence[Message], *, instructed: bool) -> str | None:
        if messages[-1].role == "assistant":
            return _SPOKEN
        return _INSTRUCTED if instructed and messages[0].role != "assistant" else None

    def rewrite_problem(self, before: Sequence[Message], after: Sequence[Message | None], *, current: bool) -> str | None:
        if not current:
            return None
        for old, new in zip(before, after, strict=True):
            if old is not new and _thoughts(old) != _thoughts(new):
                return _OPEN_LOOP
        return None


anthropic = Anthropic()


def _thoughts(message: Message | None) -> list[Any]:
    """The wire blocks of a message's thoughts."""
    return [part.raw for part in message.parts if isinstance(part, Reasoning)] if message is not None else []


def _part(block: Any) -> Part:
    """One block; what is not understood stays whole as `Other`."""
    if isinstance(block, str):
        return Text(block, raw=block)
    fields = fields_of(block)
    kind = kind_of(block)
    if fields is None or not kind:
        return Other(json_text(block), raw=block)
    if kind == "text" and isinstance(text := fields.get("text"), str):
        return Text(text, raw=block)
    if kind == "thinking":
        return Reasoning(string(fields.get("thinking")), raw=block)
    if kind == "redacted_thinking":
        return Reasoning("", raw=block)
    if kind in MEDIA_BLOCKS:
        return Media(MEDIA_BLOCKS[kind], size_bytes=_data_size(fields.get("source")), raw=block)
    if kind == "tool_use":
        return ToolCall(string(fields.get("id")), string(fields.get("name")), _arguments(fields.get("input")), raw=block)
    if kind == "tool_result":
        return _result(fields, block)
    return Other(json_text(block), raw=block)


def _arguments(value: Any) -> str:
    return "" if value is None else json_text(value)


def _data_size(source: Any) -> int:
    """Bytes of data carried in a source; an address or a file id carries none."""
    fields = fields_of(source) or {}
    return len(string(fields.get("data")))


def _result(fields: Mapping[str, Any], block: Any) -> ToolResult:
    content = fields.get("content")
    call = string(fields.get("tool_use_id"))
    if content is None or isinstance(content, str):
        return ToolResult(call, content or "", raw=block)
    elements = items_of(content)
    parts = [_nested(element) for element in ([content] if elements is None else elements)]
    text = "\n".join([part.text for part in parts if isinstance(part, Text | Reasoning | Other)])
    return ToolResult(call, text, tuple([part for part in parts if isinstance(part, Media)]), raw=block)


def _nested(element: Any) -> Part:
    """One block of a result; a result within it is none that the API knows."""
    return Other(json_text(element), raw=element) if kind_of(element) == "tool_result" else _part(element)


def _content(old: Sequence[Part], parts: Sequence[Part], content: Any) -> Any:
    """The parts as a content: a string where it was one and still can be, else a list; words that are empty are left out."""
    if items_of(content) is None and all(isinstance(part, Text) for part in parts):
        return "\n".join([part.text for part in parts if isinstance(part, Text)])
    known = {id(part) for part in old}
    return [_block(part) for part in parts if id(part) in known or not isinstance(part, Text) or part.text.strip()]


def _block(part: Part) -> Any:
    """One block; what did not change is the block it was."""
    if part.raw is not None and _part(part.raw) == part:
        return part.raw
    fields = fields_of(part.raw)
    if isinstance(part, Text):
        return {**(fields or {"type": "text"}), "text": part.text}
    if isinstance(part, ToolCall):
        return {**(fields or {"type": "tool_use"}), "id": part.id, "name": part.name, "input": arguments_object(part.arguments)}
    if isinstance(part, ToolResult):
        before = ToolResult(part.call_id, "") if fields is None else _result(fields, part.raw)
        block = {**(fields or {"type": "tool_result"}), "tool_use_id": part.call_id}
        if part.text != before.text or not same(part.media, before.media):
            block["content"] = _result_content(block.get("content"), part, keep_text=part.text == before.text)
        return block
    raise ConfigurationError(
        f"parts: only text, calls and results can be made anew (got {part!r}); pass the part that was read, or drop it"
    )


def _result_content(content: Any, result: ToolResult, *, keep_text: bool) -> Any:
    """A result's content with its text in place of the first words, and only the media that it still has."""
    elements = items_of(content)
    if elements is None and not result.media:
        return result.text
    elements = [content] if elements is None else elements
    words = None if keep_text else result.text if result.text.strip() else ""
    return result_elements(elements, result, words=words, read=_part, write=_words)


def _words(before: Part | None, words: str) -> Any:
    return _block(attrs.evolve(before, text=words)) if isinstance(before, Text) else {"type": "text", "text": words}

"""Reading and writing of OpenAI chat completions, the format that every OpenAI-compatible server accepts.

The fields are those of ``ChatCompletionMessageParam`` in the API reference: ``developer``, ``system``, ``user``, ``assistant``
and ``tool`` messages (and the legacy ``function`` role); string or list content; ``tool_calls`` of both kinds, the legacy
``function_call``; and the reasoning fields that compatible servers add. Messages, calls and parts may be dictionaries or the
``openai`` package's own response objects. Unknown parts are kept as `OtherPart`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from typing import Any, Final

import attrs

from ...errors import ConfigurationError
from ...json_data import same
from ...messages import (
    CallOutline,
    MediaPart,
    Message,
    OtherPart,
    Outline,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from ..rulebook import WireFormat
from ..wire import arguments_text, elements_of, fields_of, items_of, json_text, result_part, says_something, string
from ..writing import changed_result, unwritable, written_content
from .rules import BOOK, MEDIA_KINDS, REASONING_FIELDS, call_fields, is_empty

_RARE_FIELDS: Final = frozenset({*REASONING_FIELDS, "refusal", "audio", "function_call"})
_PLAIN_FIELDS: Final = frozenset({"role", "content", "name"})
_PLAIN_ROLES: Final = frozenset({"user", "assistant", "system", "developer"})
_MISSING: Final = object()
_DETECTED_TYPES: Final = ("text", "image_url", "refusal", "input_audio", "file")
_BESIDE_CONTENT: Final = frozenset({"tool_calls", "function_call", "refusal"})


class OpenAIChat(WireFormat):
    """The chat-completions format; use the shared instance ``openai_chat``.

    >>> message = openai_chat.read({"role": "tool", "tool_call_id": "call_1", "content": "18 degrees"})
    >>> message.parts
    (ToolResultPart(call_id='call_1', text='18 degrees', media=(), failed=None),)
    >>> [problem.rule for problem in openai_chat.validate([message.raw])]
    ['result-without-call']
    """

    name = "openai-chat"
    shape = "a chat message is a mapping with 'role' and 'content'"
    takes = "pass dictionaries, or the openai package's message objects"
    roles = "developer, system, user, assistant, tool"
    book = BOOK

    def read(self, raw: Any, position: int = 0) -> Message:
        fields: Mapping[str, Any] = raw if raw.__class__ is dict else self._fields(raw, position)
        role, content, name = fields.get("role"), fields.get("content"), fields.get("name")
        if not isinstance(name, str):
            name = None
        if type(content) is str and type(role) is str and role in _PLAIN_ROLES and _PLAIN_FIELDS.issuperset(fields):
            return Message(role, (TextPart(content),), raw, self, name)
        role = self._role(fields, position)
        if role == "tool" or role == "function":
            return Message(role, _read_result(fields, role), raw, self, name)
        return Message(role, tuple(_read_parts(fields)), raw, self, name)

    def outline(self, raw: Any) -> Outline | None:
        if raw.__class__ is not dict:
            return None
        size, role, content = len(raw), raw.get("role"), raw.get("content", _MISSING)
        name: Any = None
        if size > 2 and "name" in raw:
            name = raw["name"]
            if name.__class__ is not str:
                return None
            size -= 1
        if content.__class__ is str:
            if size == 2:
                return (role, content, (), None, name) if role.__class__ is str and role in _PLAIN_ROLES else None
            if size == 3 and role == "tool" and (call_id := raw.get("tool_call_id")).__class__ is str:
                return role, content, (), call_id, name
        elif content is not None:
            return None
        if size == 3 and role == "assistant" and (calls := raw.get("tool_calls")).__class__ is list and calls:
            outlined = tuple([outline for call in calls if (outline := _call_outline(call)) is not None])
            return (role, content, outlined, None, name) if len(outlined) == len(calls) else None
        return None

    def of_outline(self, outline: Outline, raw: Any) -> Message:
        role, text, calls, answers, name = outline
        if answers is not None:
            return Message(role, (ToolResultPart(answers, text or ""),), raw, self, name)
        parts: tuple[Part, ...] = () if text is None else (TextPart(text),)
        if calls:
            raw_calls = chain(items_of(raw.get("tool_calls")) or (), repeat(None))  # the host may have removed some since
            parts += tuple([ToolCallPart(*call, each) for call, each in zip(calls, raw_calls, strict=False)])
        return Message(role, parts, raw, self, name)

    def has_only_texts(self, raw: Any) -> bool:
        """Whether the content is a list of texts, and the rest of the message is plain enough for an `outline`. O(parts).

        >>> openai_chat.has_only_texts({"role": "user", "content": [{"type": "text", "text": "hi"}]})
        True
        """
        content = raw.get("content") if raw.__class__ is dict else None
        if content.__class__ is not list or not content:
            return False
        for part in content:
            if part.__class__ is not dict or len(part) != 2 or part.get("type") != "text" or type(part.get("text")) is not str:
                return False
        return self.outline({**raw, "content": ""}) is not None

    def _write(self, fields: dict[str, Any], message: Message, parts: Sequence[Part]) -> None:
        if message.role in ("tool", "function"):
            _write_result(fields, message.parts, parts)
        else:
            _write_content(fields, message.parts, parts)
            _write_fields(fields, message.parts, parts)
            _write_calls(fields, message.parts, parts)

    def new(self, role: str, text: str) -> Message:
        return self.read({"role": role, "content": text})

    def compose(self, role: str, parts: Sequence[Part]) -> list[Message]:
        """Return a tool message for each result, and one message with the texts and calls."""
        results = [part for part in parts if isinstance(part, ToolResultPart)]
        said = [part for part in parts if not isinstance(part, ToolResultPart)]
        made = [self.changed(self.new("tool", ""), [result]) for result in results]
        return [*made, self.changed(self.new(role, ""), said)] if said else made

    def recognizes(self, fields: Mapping[str, Any]) -> bool | None:
        """Recognize the role of tool results, and the fields of calls and refusals."""
        if fields.get("type") == "message" or not says_something(fields):
            return False
        if fields.get("role") in ("tool", "function"):
            return True
        if _BESIDE_CONTENT.isdisjoint(fields):
            return None
        return True if any(not is_empty(fields.get(name)) for name in _BESIDE_CONTENT) else None

    def recognizes_part(self, fields: Mapping[str, Any]) -> bool:
        return fields.get("type") in _DETECTED_TYPES


openai_chat = OpenAIChat()


def _call_outline(call: Any) -> CallOutline | None:
    """Return the outline of a plain function call; ``None`` for any other call."""
    if call.__class__ is not dict or len(call) - ("index" in call) != 3 or call.get("type") != "function":
        return None
    body, id = call.get("function"), call.get("id")
    if body.__class__ is not dict or id.__class__ is not str:
        return None
    name, arguments = body.get("name"), body.get("arguments")
    return (id, name, arguments) if name.__class__ is str and arguments.__class__ is str else None


@attrs.frozen
class _OfField:
    """The mark of a part outside the content: the value of a field, or an element of ``tool_calls`` that is not a call."""

    name: str
    element: Any = attrs.field(default=None, eq=False, repr=False)


def _read_parts(fields: Mapping[str, Any]) -> list[Part]:
    """Return the parts of any message but a result, reasoning first, calls last."""
    content, calls = _read_content(fields.get("content")), _read_calls(fields.get("tool_calls"))
    if _RARE_FIELDS.isdisjoint(fields):
        return content + calls
    parts: list[Part] = [
        ReasoningPart(_reasoning_text(value), raw=_OfField(field))
        for field in REASONING_FIELDS
        if not is_empty(value := fields.get(field))
    ]
    parts += content
    if not is_empty(refusal := fields.get("refusal")):
        parts.append(TextPart(json_text(refusal), raw=_OfField("refusal")))
    if not is_empty(audio := fields.get("audio")):
        parts.append(MediaPart("audio", size_bytes=_data_size(audio), raw=_OfField("audio")))
    parts += calls
    if not is_empty(legacy := fields.get("function_call")):
        parts.append(_read_legacy_call(legacy))
    return parts


def _read_calls(calls: Any) -> list[Part]:
    """Return the parts of ``tool_calls``; a value that is not a list becomes an `OtherPart`."""
    entries = items_of(calls)
    if entries is not None:
        return [_read_call(call) for call in entries]
    return [] if calls is None else [OtherPart(json_text(calls), raw=_OfField("tool_calls"))]


def _reasoning_text(value: Any) -> str:
    """Return the visible text of a reasoning field: a string, or the texts in a list of blocks."""
    if isinstance(value, str):
        return value
    if (elements := items_of(value)) is not None:
        blocks = [block for block in map(fields_of, elements) if block is not None]
        texts = [block.get("text") or block.get("summary") or block.get("thinking") for block in blocks]
        return "\n".join(text for text in texts if isinstance(text, str))
    return json_text(value)


def _read_content(content: Any) -> list[Part]:
    """Return the parts of a content; a string is one text."""
    return [TextPart(content)] if isinstance(content, str) else list(map(_read_part, elements_of(content)))


def _read_part(part: Any) -> Part:
    """Read one element of a list content; a value that is not understood becomes an `OtherPart`."""
    if isinstance(part, str):
        return TextPart(part, raw=part)
    fields = fields_of(part)
    kind = None if fields is None else fields.get("type")
    if fields is None or not isinstance(kind, str):
        return OtherPart(json_text(part), raw=part)
    if kind in ("text", "refusal") and isinstance(text := fields.get(kind), str):
        return TextPart(text, raw=part)
    if kind in ("reasoning", "thinking"):
        return ReasoningPart(_reasoning_text(fields.get("text") or fields.get(kind) or ""), raw=part)
    if kind in MEDIA_KINDS:
        payload = fields.get(kind, fields)
        body = fields_of(payload) or {}
        detail, name = string(body.get("detail")), string(body.get("filename"))
        return MediaPart(MEDIA_KINDS[kind], detail, _data_size(payload), name, raw=part)
    return OtherPart(json_text(fields), raw=part)


def _data_size(payload: Any) -> int:
    """Return the bytes of data in the message itself; a plain address has none."""
    if isinstance(payload, str):
        return len(payload) if payload.startswith("data:") else 0
    fields = fields_of(payload)
    if fields is None:
        return 0
    data = [string(fields.get(key)) for key in ("data", "file_data")]
    carried = sum(len(value) for value in data if not value.startswith(("http://", "https://")))
    return carried + _data_size(fields.get("url")) + _data_size(fields.get("source"))


def _read_call(call: Any) -> Part:
    """Read one element of ``tool_calls``; a malformed one becomes an `OtherPart`."""
    fields = fields_of(call)
    kind, argument = call_fields(fields or {})
    body = None if fields is None else fields_of(fields.get(kind))
    if fields is None or body is None:
        return OtherPart(json_text(call if fields is None else fields), raw=_OfField("tool_calls[]", call))
    return ToolCallPart(string(fields.get("id")), string(body.get("name")), arguments_text(body.get(argument)), raw=call)


def _read_legacy_call(legacy: Any) -> Part:
    """Read the ``function_call`` field; its result names the function, so the name is the id."""
    fields = fields_of(legacy)
    if fields is None:
        return OtherPart(json_text(legacy), raw=_OfField("function_call"))
    name = string(fields.get("name"))
    return ToolCallPart(f"function:{name}", name, arguments_text(fields.get("arguments")), raw=_OfField("function_call"))


def _read_result(fields: Mapping[str, Any], role: str) -> tuple[Part, ...]:
    """Return the one result of a ``tool`` (or legacy ``function``) message."""
    call_id = f"function:{string(fields.get('name'))}" if role == "function" else string(fields.get("tool_call_id"))
    content = fields.get("content")
    if type(content) is str:
        return (ToolResultPart(call_id, content),)
    return (result_part(call_id, _read_content(content)),)


# ------------------------------------------------------------------------ writing


def _write_result(fields: dict[str, Any], old: Sequence[Part], parts: Sequence[Part]) -> None:
    """Write a changed result: a string stays a string, a list keeps its unchanged elements."""
    before, after = old[0], parts[0] if len(parts) == 1 else None
    if not isinstance(before, ToolResultPart) or not isinstance(after, ToolResultPart):
        raise ConfigurationError(
            f"parts: a tool message is exactly one ToolResultPart (got {parts!r}); change that one, or pass text="
        )
    if after.call_id != before.call_id:
        legacy = fields["role"] == "function"
        fields["name" if legacy else "tool_call_id"] = after.call_id.removeprefix("function:") if legacy else after.call_id
    if after.text == before.text and same(after.media, before.media):
        return
    changed = changed_result(fields.get("content"), before, after, read=_read_part, write=_write_part, keep_blank=True)
    fields["content"] = changed or ""


def _in_content(part: Part) -> bool:
    """Whether the part is in ``content`` and not in another field."""
    return not isinstance(part, ToolCallPart | ToolResultPart) and not isinstance(part.raw, _OfField)


def _write_content(fields: dict[str, Any], old: Sequence[Part], parts: Sequence[Part]) -> None:
    """Write changed words and media to ``content``, as a string if it was one and still can be."""
    after = list(filter(_in_content, parts))
    if same(list(filter(_in_content, old)), after):
        return
    fields["content"] = written_content(fields.get("content"), after, _write_part) or ""


def _write_part(part: Part) -> Any:
    """Write one element of a list content; an unchanged part returns its original element."""
    if _read_part(part.raw) == part:
        return part.raw
    fields = fields_of(part.raw)
    if isinstance(part, TextPart):
        if fields is None:
            return part.text if isinstance(part.raw, str) else {"type": "text", "text": part.text}
        return {**fields, str(fields["type"]): part.text}
    if isinstance(part, ReasoningPart) and fields is not None:
        return {**fields, "text" if "text" in fields else str(fields["type"]): part.text}
    raise unwritable(part)


def _write_fields(fields: dict[str, Any], old: Sequence[Part], parts: Sequence[Part]) -> None:
    """Change or remove the parts with their own field: reasoning, refusal, audio."""
    kept = {part.raw.name: part for part in parts if isinstance(part.raw, _OfField)}
    for part in old:
        if not isinstance(part.raw, _OfField) or isinstance(part, ToolCallPart | OtherPart):
            continue
        field = part.raw.name
        now = kept.get(field)
        if now is None:
            del fields[field]
        elif isinstance(now, TextPart | ReasoningPart) and isinstance(part, TextPart | ReasoningPart) and now.text != part.text:
            if not isinstance(fields[field], str):
                raise ConfigurationError(f"parts: {field!r} is not plain text, so it cannot be reworded; drop the part instead")
            fields[field] = now.text


def _is_call(part: Part) -> bool:
    """Whether the part is a call, or in the place of one."""
    return isinstance(part, ToolCallPart) or (isinstance(part, OtherPart) and isinstance(part.raw, _OfField))


def _write_calls(fields: dict[str, Any], old: Sequence[Part], parts: Sequence[Part]) -> None:
    """Write changed calls; a field without calls is removed."""
    before, after = list(filter(_is_call, old)), list(filter(_is_call, parts))
    if before == after:
        return
    legacy = next((part for part in after if part.raw == _OfField("function_call")), None)
    listed = [part for part in after if part is not legacy]
    if legacy is None:
        fields.pop("function_call", None)
    elif isinstance(legacy, ToolCallPart) and legacy not in before:
        body = fields_of(fields["function_call"]) or {}
        fields["function_call"] = {**body, "name": legacy.name, "arguments": legacy.arguments}
    if not listed:
        fields.pop("tool_calls", None)
    elif all(part.raw != _OfField("tool_calls") for part in listed):
        fields["tool_calls"] = [_write_call(part) for part in listed]


def _write_call(part: Part) -> Any:
    """Write one element of ``tool_calls``; an unchanged call returns its original element."""
    if isinstance(part.raw, _OfField):
        return part.raw.element
    if not isinstance(part, ToolCallPart):
        raise unwritable(part)
    if _read_call(part.raw) == part:
        return part.raw
    fields = fields_of(part.raw) or {"type": "function"}
    kind, argument = call_fields(fields)
    body = {**(fields_of(fields.get(kind)) or {}), "name": part.name, argument: part.arguments}
    return {**fields, "id": part.id, kind: body}

"""OpenAI chat completions, the format that every OpenAI-compatible server accepts.

The fields are those of ``ChatCompletionMessageParam`` in the API reference: ``developer``, ``system``, ``user``, ``assistant``
and ``tool`` messages (and the legacy ``function`` role); string or list content; ``tool_calls`` of both kinds, the legacy
``function_call``; and the reasoning fields that compatible servers add. Messages, calls and parts may be dictionaries or the
``openai`` package's own response objects. Unknown parts are kept as `OtherPart`.

The API answers an invalid list with status 400 and names one fault. Validation finds all faults, offline.
``docs/rules/openai-chat.md`` shows every rule with an example and its source. Roles need not alternate, and call arguments need
not be valid JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, Final

import attrs

from ..errors import ConfigurationError
from ..json_data import same
from ..messages import (
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
from .pairing import NOT_RECORDED, Fields, Finding, Pairing, Path, Slot, repeated
from .rulebook import Rule, RuleBook, WireFormat
from .wire import (
    arguments_text,
    changed_result,
    elements_of,
    fields_of,
    items_of,
    json_text,
    result_part,
    says_something,
    string,
    type_name,
    unwritable,
    written_content,
)

# ------------------------------------------------------------------------ access to fields

_REASONING_FIELDS: Final = ("reasoning", "reasoning_content", "reasoning_details", "thinking", "thinking_blocks")
_MEDIA_KINDS: Final[Mapping[str, str]] = {
    "image_url": "image",
    "image": "image",
    "input_audio": "audio",
    "audio_url": "audio",
    "video_url": "video",
    "file": "file",
    "document_url": "file",
}
"""Types of parts with media, of the API and of compatible servers, and the kind of media."""


def _call_fields(fields: Mapping[str, Any]) -> tuple[str, str]:
    """Return the field with the body of a call of this kind, and the field of the body with its arguments."""
    return ("custom", "input") if fields.get("type") == "custom" else ("function", "arguments")


def _calls_of(fields: Fields) -> Iterator[Slot]:
    """Yield the calls of an assistant message; a result of the legacy ``function_call`` names the function."""
    if fields.get("role") != "assistant":
        return
    for position, call in enumerate(items_of(fields.get("tool_calls")) or ()):
        if (entry := fields_of(call)) is not None:
            path = ("tool_calls", position)
            yield Slot(path, string(entry.get("id")), (*path, "id"))
    if name := string((fields_of(fields.get("function_call")) or {}).get("name")):
        yield Slot(("function_call",), f"function:{name}", optional=True)


def _results_of(fields: Fields) -> Iterator[Slot]:
    if fields.get("role") == "tool":
        yield Slot((), string(fields.get("tool_call_id")), ("tool_call_id",))
    elif fields.get("role") == "function":
        name = string(fields.get("name"))
        yield Slot((), name and f"function:{name}", ("name",), rule="function-without-call")


def _is_empty(value: Any) -> bool:
    """Whether a field is null, zero, an empty text or list, or an object of such values.

    Some servers write every field of a message; a field that does not apply is then an object of empty strings and zeros.
    """
    if value is None:
        return True
    fields = fields_of(value)
    inside = [value] if fields is None else fields.values()
    return all(each is None or (isinstance(each, str | int | float | list | tuple | Mapping) and not each) for each in inside)


# ------------------------------------------------------------------------ one message

_PART_TYPES: Final = {
    **dict.fromkeys(("user", "tool"), ("text", *_MEDIA_KINDS)),
    **dict.fromkeys(("system", "developer", "function"), ("text",)),
    "assistant": ("text", "refusal", "reasoning", "thinking", "redacted_thinking"),
}


def _message_problems(fields: Fields) -> Iterator[Finding]:
    role = string(fields.get("role"))
    if not role:
        yield ("role",), "missing-role", f"a role is a non-empty string (got {type_name(fields.get('role'))})"
    elif role not in _PART_TYPES:
        yield ("role",), "unknown-role", f"no such role: {role!r}"
    else:
        yield from _content_problems(role, fields, fields.get("content"))
        if role == "assistant":
            yield from _call_problems(fields)


def _content_problems(role: str, fields: Mapping[str, Any], content: Any) -> Iterator[Finding]:
    if isinstance(content, str):
        return
    if content is None and role == "assistant":
        if all(_is_empty(fields.get(name)) for name in ("tool_calls", "function_call", "audio", "refusal")):
            if all(_is_empty(fields.get(name)) for name in _REASONING_FIELDS):
                yield ("content",), "empty-assistant", "it has neither content nor calls, refusal or audio"
            else:
                yield ("content",), "reasoning-only", "it has only reasoning"
    elif content is None:
        if role != "function":
            yield ("content",), "no-content", "it is missing"
    elif (parts := items_of(content)) is None:
        yield (("content",), "malformed-content", f"a content is a string or a list (got {type_name(content)})")
    elif not parts:
        yield (("content",), "malformed-content", "a list content has at least one part")
    else:
        for position, part in enumerate(parts):
            yield from _part_problems(("content", position), role, part)


def _part_problems(where: Path, role: str, part: Any) -> Iterator[Finding]:
    """Yield the rules that a part of a list content breaks, in a message of a known role."""
    fields = fields_of(part)
    kind = None if fields is None else fields.get("type")
    if fields is None or not isinstance(kind, str):
        yield (where, "malformed-part", f"a part is an object with a type (got {type_name(part)})")
    elif kind not in _PART_TYPES[role]:
        yield (where, "part-not-allowed", f"a {role} message does not accept a part of type {kind!r}")
    elif kind in ("text", "refusal") and not isinstance(fields.get(kind), str):
        yield (where, "malformed-part", f"its {kind!r} is not a string (got {type_name(fields.get(kind))})")
    elif kind in _MEDIA_KINDS and fields.get(kind) is None and fields.get("source") is None:
        yield (where, "malformed-part", f"its {kind!r} is missing")


def _call_problems(fields: Mapping[str, Any]) -> Iterator[Finding]:
    calls = fields.get("tool_calls")
    if calls is not None and not (entries := items_of(calls)):
        text = f"calls are a list (got {type_name(calls)})" if entries is None else "the list of calls is empty"
        yield (("tool_calls",), "malformed-tool-calls", text)
    for position, call in enumerate(items_of(calls) or ()):
        where = ("tool_calls", position)
        if (entry := fields_of(call)) is None:
            yield (where, "malformed-tool-calls", f"a call is an object (got {type_name(call)})")
        else:
            kind, argument = _call_fields(entry)
            yield from _body_problems((*where, kind), entry.get(kind), argument)
    if fields.get("function_call") is not None:
        yield from _body_problems(("function_call",), fields["function_call"], "arguments")
    for key, call in repeated((call.key, call) for call in _calls_of(fields)):
        yield call.id, "duplicate-call-id", f"an earlier call of the same message has the id {key!r}"


def _body_problems(where: Path, body: Any, argument: str) -> Iterator[Finding]:
    fields = fields_of(body)
    if fields is None:
        yield (where, "malformed-tool-calls", f"a call's body is an object (got {type_name(body)})")
        return
    if not isinstance(name := fields.get("name"), str) or not name:
        yield ((*where, "name"), "malformed-tool-calls", "the call has no function name")
    if not isinstance(fields.get(argument), str):
        text = f"its {argument!r} is not a string (got {type_name(fields.get(argument))})"
        yield ((*where, argument), "malformed-tool-calls", text)


# ------------------------------------------------------------------------ calls and results


def _is_result(fields: Fields) -> bool:
    return fields.get("role") in ("tool", "function")


_BOOK: Final = RuleBook(
    rules={
        "no-messages": Rule("send at least one message"),
        "unreadable-message": Rule("pass dictionaries, or the openai package's message objects"),
        "missing-role": Rule("give it one of developer, system, user, assistant, tool"),
        "unknown-role": Rule("use one of developer, system, user, assistant, tool"),
        "no-content": Rule("give it content; an empty string is enough", "blank"),
        "malformed-content": Rule("make it a string, or a list of at least one part"),
        "malformed-part": Rule("make it an object with a 'type' and the field named by that type"),
        "part-not-allowed": Rule("leave the part out, or move it to a user message"),
        "empty-assistant": Rule("give it content, or leave the message out", "blank"),
        "reasoning-only": Rule("add an empty content; servers that produce such messages may accept them unchanged", "blank"),
        "malformed-tool-calls": Rule("make it a list of objects with 'id', 'type' and 'function', or leave the field out"),
        "call-without-id": Rule("give the call an id, and its result the same id"),
        "duplicate-call-id": Rule("give each call of one message a different id", "id"),
        "call-without-result": Rule("add its result directly after the assistant message, or leave the call out", "pair"),
        "pending-call": Rule("store the list unchanged; add the result before sending it"),
        "result-without-id": Rule("set 'tool_call_id' to the id of the call it answers"),
        "result-without-call": Rule("put it directly after the assistant message that makes the call, or leave it out", "pair"),
        "duplicate-result": Rule("keep one result for each call", "pair"),
        "function-without-call": Rule(
            "put it directly after the assistant message with that function_call, or leave it out", "pair"
        ),
    },
    pairing=Pairing(
        calls=_calls_of,
        results=_results_of,
        continues=lambda before, after: _is_result(after),
        only_results=_is_result,
        answers=_is_result,
        stub=lambda call, id: {"role": "tool", "tool_call_id": id, "content": NOT_RECORDED},
    ),
    message=_message_problems,
)


# ------------------------------------------------------------------------ the format

_RARE_FIELDS: Final = frozenset({*_REASONING_FIELDS, "refusal", "audio", "function_call"})
_PLAIN_ROLES: Final = frozenset({"user", "assistant", "system", "developer"})
_MISSING: Final = object()


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
    roles = "developer, system, user, assistant, tool"
    book = _BOOK

    def read(self, raw: Any, position: int = 0) -> Message:
        if (outline := self.outline(raw)) is not None:
            return self.of_outline(outline, raw)
        fields: Mapping[str, Any] = raw if raw.__class__ is dict else self._fields(raw, position)
        role, content, name = self._role(fields, position), fields.get("content"), fields.get("name")
        if not isinstance(name, str):
            name = None
        if role == "tool" or role == "function":
            call_id = f"function:{name or ''}" if role == "function" else string(fields.get("tool_call_id"))
            return Message(role, (result_part(call_id, _read_content(content)),), raw, self, name)
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
        beside = ("tool_calls", "function_call", "refusal")
        return True if any(not _is_empty(fields.get(name)) for name in beside) else None

    def recognizes_part(self, fields: Mapping[str, Any]) -> bool:
        return fields.get("type") in ("text", "image_url", "refusal", "input_audio", "file")


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
    content, calls = _read_content(fields.get("content")), list[Part]()
    if (entries := items_of(listed := fields.get("tool_calls"))) is not None:
        calls += map(_read_call, entries)
    elif listed is not None:
        calls.append(OtherPart(json_text(listed), raw=_OfField("tool_calls")))
    if _RARE_FIELDS.isdisjoint(fields):
        return content + calls
    parts: list[Part] = [
        ReasoningPart(_reasoning_text(value), raw=_OfField(field))
        for field in _REASONING_FIELDS
        if not _is_empty(value := fields.get(field))
    ]
    parts += content
    if not _is_empty(refusal := fields.get("refusal")):
        parts.append(TextPart(json_text(refusal), raw=_OfField("refusal")))
    if not _is_empty(audio := fields.get("audio")):
        parts.append(MediaPart("audio", size_bytes=_data_size(audio), raw=_OfField("audio")))
    parts += calls
    if not _is_empty(legacy := fields.get("function_call")):
        raw, body = _OfField("function_call"), fields_of(legacy)
        if body is None:
            return [*parts, OtherPart(json_text(legacy), raw=raw)]
        name = string(body.get("name"))  # its result names the function, so the name is the id
        parts.append(ToolCallPart(f"function:{name}", name, arguments_text(body.get("arguments")), raw=raw))
    return parts


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
    if kind in _MEDIA_KINDS:
        payload = fields.get(kind, fields)
        body = fields_of(payload) or {}
        detail, name = string(body.get("detail")), string(body.get("filename"))
        return MediaPart(_MEDIA_KINDS[kind], detail, _data_size(payload), name, raw=part)
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
    kind, argument = _call_fields(fields or {})
    body = None if fields is None else fields_of(fields.get(kind))
    if fields is None or body is None:
        return OtherPart(json_text(call if fields is None else fields), raw=_OfField("tool_calls[]", call))
    return ToolCallPart(string(fields.get("id")), string(body.get("name")), arguments_text(body.get(argument)), raw=call)


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


def _write_content(fields: dict[str, Any], old: Sequence[Part], parts: Sequence[Part]) -> None:
    """Write changed words and media to ``content``, as a string if it was one and still can be."""
    before, after = (
        [each for each in listed if not isinstance(each, ToolCallPart | ToolResultPart) and not isinstance(each.raw, _OfField)]
        for listed in (old, parts)
    )
    if not same(before, after):
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


def _write_calls(fields: dict[str, Any], old: Sequence[Part], parts: Sequence[Part]) -> None:
    """Write changed calls, and what stands in the place of one; a field without calls is removed."""
    before, after = (
        [
            each
            for each in listed
            if isinstance(each, ToolCallPart) or (isinstance(each, OtherPart) and isinstance(each.raw, _OfField))
        ]
        for listed in (old, parts)
    )
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
    kind, argument = _call_fields(fields)
    body = {**(fields_of(fields.get(kind)) or {}), "name": part.name, argument: part.arguments}
    return {**fields, "id": part.id, kind: body}

"""Gemini contents: turns of the user and the model, each a list of parts; calls and responses are paired by name and order.

Part by part after the types of the ``google-genai`` package: text, thoughts, function calls and responses, inline and file
data, executed code. Contents may be dictionaries in camel or snake case, or that package's own objects. A content that holds
nothing but function responses is read with the role ``"tool"``, one of the model with ``"assistant"``. A part no rule knows is
kept as `OtherPart`. The system instruction stands outside the list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...errors import ConfigurationError
from ...messages import MediaPart, Message, OtherPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from ..base import Side
from ..rulebook import WireFormat
from ..wire import (
    arguments_object,
    arguments_text,
    fields_of,
    items_of,
    json_text,
    kept_media,
    same,
    says_something,
    string,
    thoughts_changed,
    without_role,
)
from .checks import join_problem
from .fields import (
    call_body,
    content_role,
    field,
    hosted_links,
    is_signed,
    name_of,
    pairing_key,
    parts_of,
    result_body,
    spelled,
)
from .rules import BOOK

_SAID: Final = ("result", "output", "content", "error")
"""Fields of a response in which tools put their text, as the ``google-genai`` package documents and others follow."""
_SIGNED: Final = "signed thoughts of the current turn stay as they are"
_ROLES: Final[Mapping[str, str]] = {"model": "assistant", "function": "tool"}
_WIRE_ROLES: Final[Mapping[str, str]] = {"assistant": "model", "tool": "user"}


class Gemini(WireFormat):
    """The ``contents`` format; use the shared instance ``gemini``.

    >>> content = {"role": "model", "parts": [{"functionCall": {"name": "now", "args": {}}}]}
    >>> gemini.read(content).parts
    (ToolCallPart(id='function:now', name='now', arguments='{}'),)
    >>> [problem.rule for problem in gemini.validate([content])]
    ['misplaced-call', 'pending-call']
    """

    name = "gemini"
    shape = "a content is a mapping with 'role' and 'parts'"
    takes = "pass dictionaries, or the google-genai package's Content objects"
    book = BOOK

    def read(self, raw: Any, position: int = 0) -> Message:
        fields: Mapping[str, Any] = raw if raw.__class__ is dict else self._fields(raw, position)
        role = content_role(fields)
        if not role:
            raise without_role(fields.get("role"), position, "user, model")
        given = fields.get("parts")
        elements = () if given is None else items_of(given)
        parts = tuple([_part(part) for part in ((given,) if elements is None else elements)])
        if role == "user" and parts and all(isinstance(part, ToolResultPart) for part in parts):
            role = "tool"
        begins, resumes = hosted_links(elements or ()) if role == "model" else ((), ())
        return Message(_ROLES.get(role, role), parts, raw, self, continues=bool(resumes), begins=begins, resumes=resumes)

    def changed(self, message: Message, parts: Sequence[Part]) -> Message:
        fields = dict(self._fields(message.raw))
        if not same(message.parts, parts):
            known = {id(part) for part in message.parts}
            kept = [part for part in parts if id(part) in known or not isinstance(part, TextPart) or part.text]
            fields["parts"] = [_written(part) for part in kept]
        return self.read(fields)

    def new(self, role: str, text: str) -> Message:
        return self.read({"role": _WIRE_ROLES.get(role, role), "parts": [{"text": text}]})

    def recognizes(self, fields: Mapping[str, Any]) -> bool:
        """The model has a role of its own, and a content has parts."""
        if fields.get("role") == "model" or fields.get("parts") is not None:
            return True
        return "parts" in fields and not says_something(fields)

    def to_wire(self, raw: Any) -> Any:
        dump = getattr(raw, "to_json_dict", None)
        return dump() if callable(dump) else super().to_wire(raw)

    def join_problem(self, before: Message | None, after: Message | None) -> tuple[str, Side] | None:
        """A call of the model follows the user or a function response."""
        if after is None or after.role != "assistant" or (before is not None and before.role == "user"):
            return None
        return join_problem(None if before is None else fields_of(before.raw) or {}, fields_of(after.raw) or {})

    def prefers(self, before: Message | None, after: Message | None) -> bool:
        """The model speaks after the user or a function, never first."""
        if after is None or after.role != "assistant":
            return True
        return before is not None and before.role != "assistant"

    def summary_role(self, before: Message | None, after: Message | None) -> str:
        return "user"

    def placeholder(self, text: str) -> tuple[Message, ...]:
        return (self.new("user", text),)

    def rewrite_problem(self, before: Sequence[Message], after: Sequence[Message | None], *, current: bool) -> str | None:
        return _SIGNED if current and thoughts_changed(before, after, of=is_signed) else None


gemini = Gemini()


def _part(part: Any) -> Part:
    """Return one part; what is not understood stays whole as `OtherPart`."""
    if isinstance(part, str):
        return TextPart(part, raw=part)
    fields = fields_of(part)
    if fields is None:
        return OtherPart(json_text(part), raw=part)
    if isinstance(text := fields.get("text"), str):
        return ReasoningPart(text, raw=part) if fields.get("thought") is True else TextPart(text, raw=part)
    if (call := call_body(part)) is not None:
        return ToolCallPart(pairing_key(call), name_of(call), arguments_text(call.get("args")), raw=part)
    if (result := result_body(part)) is not None:
        return _result(result, part)
    for name in ("inlineData", "fileData"):
        if (data := fields_of(field(fields, name))) is not None:
            return MediaPart(_media_kind(data), size_bytes=_size(data.get("data")), raw=part)
    return OtherPart(json_text(part), raw=part)


def _media_kind(data: Mapping[str, Any]) -> str:
    kind = string(field(data, "mimeType")).partition("/")[0]
    return kind if kind in ("image", "audio", "video") else "file"


def _size(data: Any) -> int:
    """Return the bytes of data as sent: a text as it is, bytes in base64."""
    if isinstance(data, bytes):
        return (len(data) + 2) // 3 * 4
    return len(string(data))


def _result(body: Mapping[str, Any], part: Any) -> ToolResultPart:
    media = [read for read in map(_part, parts_of(body)) if isinstance(read, MediaPart)]
    response = body.get("response")
    failed = True if (fields_of(response) or {}).get("error") else None
    return ToolResultPart(pairing_key(body), _said(response)[1], tuple(media), failed, raw=part)


def _said(response: Any) -> tuple[str, str]:
    """Return the field of a response that holds its text, and the text; an empty name if it has other fields."""
    fields = fields_of(response)
    if fields is not None and len(fields) == 1:
        [(name, value)] = fields.items()
        if name in _SAID and isinstance(value, str):
            return name, value
    return "", "" if response is None else json_text(response)


def _written(part: Part) -> Any:
    """Return one part; an unchanged one is the part it was."""
    if part.raw is not None and _part(part.raw) == part:
        return part.raw
    fields = fields_of(part.raw) or {}
    if isinstance(part, TextPart):
        return {**fields, "text": part.text}
    if isinstance(part, ToolCallPart):
        call = {**(call_body(part.raw) or {}), "name": part.name, "args": arguments_object(part.arguments)}
        return {**fields, spelled(fields, "functionCall"): call}
    if isinstance(part, ToolResultPart) and (body := result_body(part.raw)) is not None and pairing_key(body) == part.call_id:
        return {**fields, spelled(fields, "functionResponse"): _body(body, part)}
    raise ConfigurationError(
        f"parts: only text, calls and the words of results can be made anew (got {part!r}); pass what was read, or drop it"
    )


def _body(body: Mapping[str, Any], result: ToolResultPart) -> dict[str, Any]:
    """Return a response with new words, and only the media it still has."""
    name, text = _said(body.get("response"))
    made = dict(body)
    if text != result.text:
        made["response"] = {name or "result": result.text}
    before = parts_of(body)
    media = kept_media(result, before)
    kept = [part for part in before if not isinstance(_part(part), MediaPart) or any(raw is part for raw in media)]
    if len(kept) < len(before):
        made["parts"] = kept
    return made

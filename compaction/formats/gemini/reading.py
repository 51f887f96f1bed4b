"""Reading and writing of Gemini contents: lists of parts, with calls and responses paired by name and order.

The parts are those of the ``google-genai`` package: text, thoughts, function calls and responses, inline and file data,
executed code. Contents may be dictionaries in camel or snake case, or that package's own objects. A content that holds nothing
but function responses is read with the role ``"tool"``, one of the model with ``"assistant"``. An unknown part is kept as
`OtherPart`. The system instruction is outside the list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...messages import MediaPart, Message, OtherPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from ..pairing import hosted_links
from ..rulebook import WireFormat
from ..wire import (
    arguments_text,
    data_size,
    elements_of,
    fields_of,
    items_in,
    json_text,
    media_kind,
    read_role,
    says_something,
    string,
)
from ..writing import arguments_object, kept_media, thoughts_changed, unwritable, without_new_blanks
from .rules import BOOK, call_body, content_role, field, hosted_step, is_signed, name_of, pairing_key, result_body, spelled

_TEXT_FIELDS: Final = ("result", "output", "content", "error")
"""Fields of a response with the text of a tool, as documented by the ``google-genai`` package and used by others."""
_SIGNED: Final = "signed thoughts of the current turn stay as they are"
_SIGNED_CALL: Final = "the first call of an answer in the current turn keeps its signature"
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
    roles = "user, model"
    book = BOOK

    def read(self, raw: Any, position: int = 0) -> Message:
        fields: Mapping[str, Any] = raw if raw.__class__ is dict else self._fields(raw, position)
        role = content_role(fields) or self._role(fields, position)
        parts = tuple(map(_read_part, elements_of(fields.get("parts"))))
        steps = filter(None, map(hosted_step, items_in(fields, "parts") if role == "model" else ()))
        begins, resumes = hosted_links(steps)
        role = read_role(_ROLES.get(role, role), parts)
        return Message(role, parts, raw, self, continues=bool(resumes), begins=begins, resumes=resumes)

    def _write(self, fields: dict[str, Any], message: Message, parts: Sequence[Part]) -> None:
        fields["parts"] = list(map(_write_part, without_new_blanks(message.parts, parts)))

    def new(self, role: str, text: str) -> Message:
        return self.read({"role": _WIRE_ROLES.get(role, role), "parts": [{"text": text}]})

    def recognizes(self, fields: Mapping[str, Any]) -> bool:
        """Recognize the role ``model`` and the field ``parts``."""
        if fields.get("role") == "model" or fields.get("parts") is not None:
            return True
        return "parts" in fields and not says_something(fields)

    def to_wire(self, raw: Any) -> Any:
        dump = getattr(raw, "to_json_dict", None)
        return dump() if callable(dump) else super().to_wire(raw)

    def prefers(self, before: Message | None, after: Message | None) -> bool:
        """Prefer words of the model after the user or a function, never first."""
        if after is None or after.role != "assistant":
            return True
        return before is not None and before.role != "assistant"

    def summary_role(self, before: Message | None, after: Message | None) -> str:
        return "user"

    def placeholder(self, text: str) -> tuple[Message, ...]:
        return (self.new("user", text),)

    def rewrite_problem(self, before: Sequence[Message], after: Sequence[Message | None], *, current: bool) -> str | None:
        if not current:
            return None
        if thoughts_changed(before, after, of=is_signed):
            return _SIGNED
        unsigned = any(
            new is not None and new is not old and _first_call_is_signed(old) and not _first_call_is_signed(new)
            for old, new in zip(before, after, strict=True)
        )
        return _SIGNED_CALL if unsigned else None


gemini = Gemini()


def _first_call_is_signed(message: Message) -> bool:
    """Whether the first call of a message has its signature; true if the message calls nothing."""
    return next((is_signed(part.raw) for part in message.parts if isinstance(part, ToolCallPart)), True)


def _read_part(part: Any) -> Part:
    """Read one part; a value that is not understood becomes an `OtherPart`."""
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
        return _read_result(result, part)
    for holder in ("inlineData", "fileData"):
        if (data := fields_of(field(fields, holder))) is not None:
            name = string(field(data, "displayName"))
            return MediaPart(
                media_kind(string(field(data, "mimeType"))), size_bytes=data_size(data.get("data")), name=name, raw=part
            )
    return OtherPart(json_text(part), raw=part)


def _read_result(body: Mapping[str, Any], part: Any) -> ToolResultPart:
    media = [read for read in map(_read_part, items_in(body, "parts")) if isinstance(read, MediaPart)]
    response = body.get("response")
    failed = True if (fields_of(response) or {}).get("error") else None
    return ToolResultPart(pairing_key(body), _text_field(response)[1], tuple(media), failed, raw=part)


def _text_field(response: Any) -> tuple[str, str]:
    """Return the name of a response's text field, and the text; the name is empty if the response has other fields."""
    fields = fields_of(response)
    if fields is not None and len(fields) == 1:
        [(name, value)] = fields.items()
        if name in _TEXT_FIELDS and isinstance(value, str):
            return name, value
    return "", "" if response is None else json_text(response)


def _write_part(part: Part) -> Any:
    """Write one part; an unchanged one returns its original."""
    if part.raw is not None and _read_part(part.raw) == part:
        return part.raw
    fields = fields_of(part.raw) or {}
    if isinstance(part, TextPart):
        return {**fields, "text": part.text}
    if isinstance(part, ToolCallPart):
        call = {**(call_body(part.raw) or {}), "name": part.name, "args": arguments_object(part.arguments)}
        return {**fields, spelled(fields, "functionCall"): call}
    if isinstance(part, ToolResultPart):
        body = result_body(part.raw) or {"name": part.call_id.removeprefix("function:"), "response": {"result": ""}}
        if pairing_key(body) == part.call_id:
            return {**fields, spelled(fields, "functionResponse"): _write_result(body, part)}
    raise unwritable(part)


def _write_result(body: Mapping[str, Any], result: ToolResultPart) -> dict[str, Any]:
    """Return a response with new words, and the media that are left."""
    name, text = _text_field(body.get("response"))
    made = dict(body)
    if text != result.text:
        made["response"] = {name or "result": result.text}
    before = items_in(body, "parts")
    media = kept_media(result, before)
    kept = [part for part in before if not isinstance(_read_part(part), MediaPart) or any(raw is part for raw in media)]
    if len(kept) < len(before):
        made["parts"] = kept
    return made

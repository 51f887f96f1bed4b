"""Gemini contents: lists of parts, with calls and responses paired by name and order.

The parts are those of the ``google-genai`` package: text, thoughts, function calls and responses, inline and file data,
executed code. Contents may be dictionaries in camel case, as the REST interface writes names, or in snake case, as that
package does, or the package's own objects. A content that holds nothing but function responses is read with the role
``"tool"``, one of the model with ``"assistant"``. An unknown part is kept as `OtherPart`. The system instruction is outside
the list.

``docs/rules/gemini.md`` shows every rule with an example and its source. Rules that depend on the model are not included, such
as whether a list may end with the model's words. Calls must be signed only in a list that has a signature.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from ..messages import MediaPart, Message, OtherPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from .base import JoinProblem
from .pairing import NOT_RECORDED, Fields, Finding, HostedStep, Pairing, Path, Slot, WaitingCalls, hosted_links
from .rulebook import Rule, RuleBook, WireFormat
from .wire import (
    arguments_object,
    arguments_text,
    data_size,
    elements_of,
    fields_of,
    items_in,
    items_of,
    json_text,
    kept_media,
    media_kind,
    read_role,
    says_something,
    string,
    thoughts_changed,
    type_name,
    unwritable,
    without_new_blanks,
)

# ------------------------------------------------------------------------ access to fields

_HOSTED: Final[Mapping[str, tuple[Literal["call", "result"], str]]] = {
    "executableCode": ("call", "code"),
    "codeExecutionResult": ("result", "code"),
    "toolCall": ("call", "tool"),
    "toolResponse": ("result", "tool"),
}
"""The fields of calls and results of the provider's own tools, and whether they belong to code or to a tool."""
_DATA: Final = ("text", "functionCall", "functionResponse", "inlineData", "fileData", *_HOSTED)
"""The fields of data, of which a part has exactly one."""
_SNAKE: Final = {
    name: re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    for name in (*_DATA, "thoughtSignature", "mimeType", "fileUri", "displayName")
}


def _spelled(fields: Mapping[str, Any], name: str) -> str:
    snake = _SNAKE.get(name, name)
    return snake if fields.get(name) is None and fields.get(snake) is not None else name


def _field(fields: Mapping[str, Any], name: str) -> Any:
    """Return a field by its camel-case name, in either spelling."""
    return fields.get(_spelled(fields, name))


def _role_of(fields: Mapping[str, Any]) -> str:
    """Return the role of a content; ``user`` if it has none."""
    role = fields.get("role")
    return "user" if role is None else string(role)


def _body(part: Any, name: str) -> Mapping[str, Any] | None:
    """Return the object in a field of a part, such as ``functionCall``; ``None`` if the part is another."""
    return fields_of(_field(fields_of(part) or {}, name))


def _hosted_step(part: Any) -> HostedStep | None:
    """Return the call or the result of a tool that the provider runs, with the key they share; ``None`` for another part."""
    fields = fields_of(part) or {}
    for name, (kind, tool) in _HOSTED.items() if "text" not in fields else ():
        if (body := _body(fields, name)) is not None:
            return kind, f"{tool}:{string(body.get('id'))}"
    return None


def _key_of(body: Mapping[str, Any]) -> str:
    """Return the key that a call and its response share: the function's name, because ids are optional."""
    return f"function:{string(body.get('name'))}"


def _is_signed(part: Any) -> bool:
    return bool(_field(fields_of(part) or {}, "thoughtSignature"))


# ------------------------------------------------------------------------ one message, and two neighbours


def _message_problems(fields: Fields) -> Iterator[Finding]:
    role, parts = _role_of(fields), fields.get("parts")
    if role not in ("user", "model", "function"):
        yield ("role",), "unknown-role", f"no such role: {fields.get('role')!r}"
        return
    if parts is not None and items_of(parts) is None:
        yield ("parts",), "malformed-content", f"parts are a list (got {type_name(parts)})"
    elif not parts:
        yield ("parts",), "no-parts", "it is empty"
    for position, part in enumerate(items_in(fields, "parts")):
        yield from _part_problems(("parts", position), role, part)


def _part_problems(where: Path, role: str, part: Any) -> Iterator[Finding]:
    fields = fields_of(part)
    if fields is None:
        yield (where, "malformed-part", f"a part is an object (got {type_name(part)})")
        return
    held = [name for name in _DATA if _field(fields, name) is not None]
    if not held or (held == ["text"] and fields["text"] == "" and not _is_signed(fields)):
        yield (where, "empty-part", "the part has no data")
    if len(held) > 1:
        yield (where, "malformed-part", f"it has several fields of data: {' and '.join(held)}")
    if fields.get("text") is not None and not isinstance(fields["text"], str):
        yield ((*where, "text"), "malformed-part", f"its 'text' is not a string (got {type_name(fields['text'])})")
    for name, inner in (("functionCall", "args"), ("functionResponse", "response")):
        if name not in held:
            continue
        body = _body(fields, name)
        if body is None or not string(body.get("name")):
            yield ((*where, name), "malformed-part", "it has no function name")
        elif (given := body.get(inner)) is not None and fields_of(given) is None:
            yield ((*where, name, inner), "malformed-part", f"its {inner!r} is not an object (got {type_name(given)})")
        if (name == "functionCall") != (role == "model"):
            yield (where, "part-not-allowed", f"a {name} is not allowed in a content of role {role!r}")


def _join_problem(before: Fields | None, after: Fields | None) -> JoinProblem | None:
    if after is None or (before is not None and _role_of(before) in ("user", "function")):
        return None
    return ("misplaced-call", "after") if _calls(after) else None


# ------------------------------------------------------------------------ calls and results


def _slots(fields: Fields, name: str, *roles: str) -> list[Slot]:
    parts = enumerate(items_in(fields, "parts") if _role_of(fields) in roles else ())
    return [Slot(("parts", at), _key_of(body)) for at, part in parts if (body := _body(part, name)) is not None]


def _calls(fields: Fields) -> list[Slot]:
    return _slots(fields, "functionCall", "model")


def _results(fields: Fields) -> list[Slot]:
    return _slots(fields, "functionResponse", "user", "function")


def _stub(call: Any, key: str) -> dict[str, Any]:
    body = _body(call, "functionCall") or {}
    answer = {"name": string(body.get("name")), "response": {"error": NOT_RECORDED}}
    return {"functionResponse": {"id": body["id"], **answer} if body.get("id") else answer}


# ------------------------------------------------------------------------ the whole list


def _list_problems(contents: Sequence[Fields]) -> Iterator[tuple[int, Finding]]:
    """Yield results of the provider's own tools without a call, and unsigned calls."""
    signs = any(_is_signed(part) for fields in contents for part in items_in(fields, "parts"))
    turn = _current_turn(contents) if signs else len(contents)
    hosted: WaitingCalls[None] = WaitingCalls()
    for index, fields in enumerate(contents):
        parts = items_in(fields, "parts") if _role_of(fields) == "model" else ()
        for position, part in enumerate(parts):
            kind, key = _hosted_step(part) or ("", "")
            if kind == "call":
                hosted.enter_call(key, index, None)
            elif kind == "result" and not hosted.enter_result(key):
                text = "no call that waits for it is before it"
                yield index, (("parts", position), "server-result-without-call", text)
        calls = _calls(fields)
        if index >= turn and calls and not _is_signed(parts[int(calls[0].path[1])]):
            text = "the first call of a step in the current turn is not signed"
            yield index, (calls[0].path, "unsigned-call", text)


def _current_turn(contents: Sequence[Fields]) -> int:
    """Return the place where the current turn begins: after the last content with words of the user."""
    for index in range(len(contents) - 1, -1, -1):
        said = (_body(part, "functionResponse") is None for part in items_in(contents[index], "parts"))
        if _role_of(contents[index]) == "user" and any(said):
            return index + 1
    return 0


_BOOK: Final = RuleBook(
    rules={
        "no-messages": Rule("send at least one content"),
        "unreadable-message": Rule("pass dictionaries, or the google-genai package's Content objects"),
        "unknown-role": Rule("use one of user, model"),
        "malformed-content": Rule("make 'parts' a list"),
        "no-parts": Rule("give it a part, or leave the content out", "message"),
        "empty-part": Rule("leave the part out", "block"),
        "malformed-part": Rule("make it an object with one field of data"),
        "part-not-allowed": Rule("put calls into the model's contents, responses into the user's"),
        "misplaced-call": Rule("put it directly after a content of the user or a function response", "join"),
        "call-without-result": Rule("put its response into the content directly after it, or leave the call out", "pair"),
        "pending-call": Rule("store the list unchanged; add the response before sending it"),
        "result-without-call": Rule("put it into the content directly after the call, or leave it out", "pair"),
        "server-result-without-call": Rule("keep it with the call before it, or leave it out", "block"),
        "unsigned-call": Rule("send the part as the model wrote it, with its 'thoughtSignature'"),
    },
    pairing=Pairing(
        calls=_calls,
        results=_results,
        continues=lambda before, after: bool(_calls(before)) and bool(_results(after)),
        only_results=lambda fields: all(_body(part, "functionResponse") is not None for part in items_in(fields, "parts")),
        stub=_stub,
        content="parts",
        counted=True,
        again="result-without-call",
    ),
    message=_message_problems,
    shape="a content is an object with parts",
    join=_join_problem,
    joins={
        "misplaced-call": (lambda fields: _calls(fields)[0].path, "the call does not follow the user or a function response")
    },
    whole=_list_problems,
)


# ------------------------------------------------------------------------ the format


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
    roles = "user, model"
    book = _BOOK
    writes_as_user = True

    def read(self, raw: Any, position: int = 0) -> Message:
        fields: Mapping[str, Any] = raw if raw.__class__ is dict else self._fields(raw, position)
        role = _role_of(fields) or self._role(fields, position)
        parts = tuple(map(_read_part, elements_of(fields.get("parts"))))
        steps = filter(None, map(_hosted_step, items_in(fields, "parts") if role == "model" else ()))
        begins, resumes = hosted_links(steps)
        role = read_role({"model": "assistant", "function": "tool"}.get(role, role), parts)
        return Message(role, parts, raw, self, continues=bool(resumes), begins=begins, resumes=resumes)

    def _write(self, fields: dict[str, Any], message: Message, parts: Sequence[Part]) -> None:
        fields["parts"] = list(map(_write_part, without_new_blanks(message.parts, parts)))

    def new(self, role: str, text: str) -> Message:
        return self.read({"role": {"assistant": "model", "tool": "user"}.get(role, role), "parts": [{"text": text}]})

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

    def rewrite_problem(self, before: Sequence[Message], after: Sequence[Message | None], *, current: bool) -> str | None:
        if not current:
            return None
        if thoughts_changed(before, after, of=_is_signed):
            return "signed thoughts of the current turn stay as they are"

        def signed(message: Message) -> bool:
            """Whether the first call of a message has its signature; true if the message calls nothing."""
            return next((_is_signed(call.raw) for call in message.tool_calls()), True)

        changes = ((old, new) for old, new in zip(before, after, strict=True) if new is not None and new is not old)
        if any(signed(old) and not signed(new) for old, new in changes):
            return "the first call of an answer in the current turn keeps its signature"
        return None


gemini = Gemini()


def _read_part(part: Any) -> Part:
    """Read one part; a value that is not understood becomes an `OtherPart`."""
    if isinstance(part, str):
        return TextPart(part, raw=part)
    fields = fields_of(part)
    if fields is None:
        return OtherPart(json_text(part), raw=part)
    if isinstance(text := fields.get("text"), str):
        return ReasoningPart(text, raw=part) if fields.get("thought") is True else TextPart(text, raw=part)
    if (call := _body(fields, "functionCall")) is not None:
        return ToolCallPart(_key_of(call), string(call.get("name")), arguments_text(call.get("args")), raw=part)
    if (result := _body(fields, "functionResponse")) is not None:
        media = [read for read in map(_read_part, items_in(result, "parts")) if isinstance(read, MediaPart)]
        response = result.get("response")
        failed = True if (fields_of(response) or {}).get("error") else None
        return ToolResultPart(_key_of(result), _text_field(response)[1], tuple(media), failed, raw=part)
    for holder in ("inlineData", "fileData"):
        if (data := _body(fields, holder)) is not None:
            kind, name = media_kind(string(_field(data, "mimeType"))), string(_field(data, "displayName"))
            return MediaPart(kind, size_bytes=data_size(data.get("data")), name=name, raw=part)
    return OtherPart(json_text(part), raw=part)


def _text_field(response: Any) -> tuple[str, str]:
    """Return the name of a response's text field, and the text; the name is empty if the response has other fields.

    The names are those that the ``google-genai`` package documents, and others use.
    """
    fields = fields_of(response)
    if fields is not None and len(fields) == 1:
        [(name, value)] = fields.items()
        if name in ("result", "output", "content", "error") and isinstance(value, str):
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
        call = {**(_body(fields, "functionCall") or {}), "name": part.name, "args": arguments_object(part.arguments)}
        return {**fields, _spelled(fields, "functionCall"): call}
    if isinstance(part, ToolResultPart):
        new = {"name": part.call_id.removeprefix("function:"), "response": {"result": ""}}
        body = _body(fields, "functionResponse") or new
        if _key_of(body) == part.call_id:
            return {**fields, _spelled(fields, "functionResponse"): _write_result(body, part)}
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

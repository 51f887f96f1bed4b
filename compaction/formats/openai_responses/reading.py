"""Reading and writing of OpenAI Responses items, of which one answer of the model may be several.

The items are those of the request types of the ``openai`` package: messages with or without a ``type``, function and custom
tool calls and their outputs, reasoning with encrypted content, calls of tools the provider or the caller runs, compaction
items, item references. An item is read as one message. Each item of an answer continues the one before it
(`Message.continues`), so that reasoning, the calls after it and their results stay together. An unknown item is kept as
`OtherPart`. An item without a speaker, such as a compaction item, has its type as its role.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from ...errors import ConfigurationError, InvalidMessage
from ...json_data import same
from ...messages import MediaPart, Message, OtherPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from ..rulebook import WireFormat
from ..wire import arguments_text, elements_of, fields_of, items_of, json_text, kind_of, result_part, says_something, string
from ..writing import arguments_object, changed_result, unwritable, written_content
from .rules import (
    BOOK,
    CALLS,
    OF_THE_CALLER,
    RESULTS,
    call_id_field,
    call_of,
    is_answer,
    item_links,
    item_type,
    key_field,
    result_of,
)

_MEDIA: Final[Mapping[str, str]] = {"input_image": "image", "input_file": "file", "input_audio": "audio"}
_TEXTS: Final[Mapping[str, str]] = {
    "input_text": "text",
    "output_text": "text",
    "text": "text",
    "refusal": "refusal",
    "summary_text": "text",
    "reasoning_text": "text",
}
_PARTS: Final = (*_MEDIA, "input_text", "output_text", "refusal")
_HOSTED: Final = {"file_search_call", "web_search_call", "code_interpreter_call", "image_generation_call", "mcp_call"}
_ITEMS: Final = {"reasoning", "item_reference", "mcp_list_tools", *OF_THE_CALLER, *_HOSTED, *CALLS, *RESULTS}
_INSTRUCTS: Final = frozenset({"additional_tools", "configuration_update"})
_DATA: Final[Mapping[str, str]] = {"image_generation_call": "result", "computer_call_output": "output"}
"""Kinds of items with data that the model does not see as text, and the field with the data."""
_FAILED: Final[Mapping[tuple[str, str], bool]] = {
    ("apply_patch_call_output", "completed"): False,
    ("apply_patch_call_output", "failed"): True,
}
"""Whether the tool failed, by the type and status of its result; an incomplete result may not have failed."""
_CHUNKED: Final = "shell_call_output"  # the type of results whose output is a list of chunks of ``stdout`` and ``stderr``
_BOUND: Final = "an item with an id stays with the reasoning before it"


class OpenAIResponses(WireFormat):
    """The Responses format; use the shared instance ``openai_responses``.

    >>> item = {"type": "function_call", "call_id": "call_1", "name": "now", "arguments": "{}"}
    >>> openai_responses.read(item).parts
    (ToolCallPart(id='call_1', name='now', arguments='{}'),)
    >>> [problem.rule for problem in openai_responses.validate([item, {"role": "user", "content": "well?"}])]
    ['call-without-result']
    """

    name = "openai-responses"
    shape = "an item is a mapping with a 'type', or a 'role' and 'content'"
    takes = "pass dictionaries, or the openai package's objects"
    roles = "user, assistant, system, developer"
    book = BOOK

    def read(self, raw: Any, position: int = 0) -> Message:
        fields: Mapping[str, Any] = raw if raw.__class__ is dict else self._fields(raw, position)
        kind = item_type(fields)
        if kind == "message":
            role = self._role(fields, position)
            return Message(role, _read_content(fields.get("content")), raw, self, continues=role == "assistant")
        if not kind:
            raise InvalidMessage(
                f"messages[{position}].type",
                f"an item needs a type that is a non-empty string, or a role (got {fields.get('type')!r})",
                "give it the type the API documents",
            )
        if (call := result_of(fields)) is not None:
            return Message("tool", _read_result(fields, kind, call), raw, self)
        if not is_answer(fields):
            role, parts = "developer" if kind in _INSTRUCTS else kind, _read_item(fields, kind)
            return Message(role, parts, raw, self, holds_history=kind == "compaction")
        begins, resumes = item_links(fields)
        return Message("assistant", _read_item(fields, kind), raw, self, continues=True, begins=begins, resumes=resumes)

    def _write(self, fields: dict[str, Any], message: Message, parts: Sequence[Part]) -> None:
        item = item_type(fields)
        if item == "message":
            kind = "output_text" if fields.get("role") == "assistant" else "input_text"
            fields["content"] = written_content(fields.get("content"), parts, lambda part: _write_part(part, kind)) or ""
        elif result_of(fields) is not None:
            _write_result(fields, item, message.parts, parts)
        else:
            _write_item(fields, item, message.parts, parts)

    def new(self, role: str, text: str) -> Message:
        return self.read({"type": "message", "role": role, "content": text})

    def compose(self, role: str, parts: Sequence[Part]) -> list[Message]:
        """Return an item for each text, call and result."""
        return [self.read(_new_item(role, part)) for part in parts]

    def recognizes(self, fields: Mapping[str, Any]) -> bool | None:
        """Recognize the types of items, and an id alone; a message has a content and may have the type ``message``."""
        kind, role = fields.get("type"), fields.get("role")
        if type(kind) is str and kind in _ITEMS:
            return True
        if not says_something(fields):
            return item_type(fields) == "item_reference"
        if role in ("tool", "function") or (kind == "message" and "stop_reason" in fields):
            return False
        return None if fields.get("content") is not None or "stop_reason" in fields else False

    def recognizes_part(self, fields: Mapping[str, Any]) -> bool:
        return fields.get("type") in _PARTS

    def rewrite_problem(self, before: Sequence[Message], after: Sequence[Message | None], *, current: bool) -> str | None:
        """Allow an edit to remove reasoning only if no later item of the same answer has an id."""
        bare = False
        for new in after:
            if new is None:
                bare = True
            elif not new.continues:
                bare = False
            elif bare and (fields_of(new.raw) or {}).get("id"):
                return _BOUND
        return None


openai_responses = OpenAIResponses()


def _new_item(role: str, part: Part) -> dict[str, Any]:
    if isinstance(part, ToolCallPart):
        return {"type": "function_call", "call_id": part.id, "name": part.name, "arguments": part.arguments}
    if isinstance(part, ToolResultPart):
        return {"type": "function_call_output", "call_id": part.call_id, "output": part.text}
    return {"type": "message", "role": role, "content": part.text if isinstance(part, TextPart) else ""}


def _read_content(content: Any) -> tuple[Part, ...]:
    return (TextPart(content),) if isinstance(content, str) else tuple(map(_read_part, elements_of(content)))


def _read_part(part: Any) -> Part:
    """Read one element of a content; a value that is not understood becomes an `OtherPart`."""
    if isinstance(part, str):
        return TextPart(part, raw=part)
    fields, kind = fields_of(part), kind_of(part)
    if fields is None or not kind:
        return OtherPart(json_text(part), raw=part)
    if kind in _TEXTS and isinstance(text := fields.get(_TEXTS[kind]), str):
        return TextPart(text, raw=part)
    if kind in _MEDIA:
        sizes = [_data_size(fields.get(name)) for name in ("image_url", "file_data", "input_audio")]
        return MediaPart(_MEDIA[kind], string(fields.get("detail")), sum(sizes), string(fields.get("filename")), raw=part)
    return OtherPart(json_text(part), raw=part)


def _data_size(value: Any) -> int:
    """Return the bytes of data in the item itself; an address has none."""
    if isinstance(value, str):
        return 0 if value.startswith(("http://", "https://")) else len(value)
    return len(string((fields_of(value) or {}).get("data")))


def _read_item(fields: Mapping[str, Any], item: str) -> tuple[Part, ...]:
    """Return the one part of an item that is neither a message nor a result."""
    if item == "reasoning":
        entries = [*(items_of(fields.get("summary")) or ()), *(items_of(fields.get("content")) or ())]
        texts = [part.text for part in map(_read_part, entries) if isinstance(part, TextPart)]
        return (ReasoningPart("\n".join(texts)),)
    identifier = call_of(fields)
    if identifier is None:
        return (OtherPart(_item_text(fields)),)
    name = string(fields.get("name")) or item.removesuffix("_call")
    return (ToolCallPart(identifier, name, arguments_text(fields.get(CALLS[item]))),)


def _item_text(fields: Mapping[str, Any], *without: str) -> str:
    """Return an item as JSON text without these fields and the data that the model does not see; empty if none is left."""
    hidden = {*without, "encrypted_content", _DATA.get(item_type(fields))}
    left = {name: value for name, value in fields.items() if name not in hidden}
    return json_text(left) if left else ""


def _read_result(fields: Mapping[str, Any], kind: str, call: str) -> tuple[Part, ...]:
    """Return the result and a part with the fields that cannot be shortened as text."""
    output = fields.get(RESULTS[kind]) if RESULTS[kind] else None
    failed = _exits(output) if kind == _CHUNKED else _FAILED.get((kind, string(fields.get("status"))))
    if output is None:
        left = _item_text(fields, "type", "id", "status", "call_id", key_field(kind))
        result = ToolResultPart(call, "", failed=failed)
        return (result, OtherPart(left)) if left else (result,)
    if kind == _CHUNKED:
        return (ToolResultPart(call, "\n".join(_streams(output)), failed=failed),)
    return (result_part(call, _read_content(output), failed),)


def _exits(chunks: Any) -> bool | None:
    """Whether a command timed out or exited with another code than 0; ``None`` if a chunk does not say how it ended."""
    outcomes = [fields_of((fields_of(chunk) or {}).get("outcome")) or {} for chunk in items_of(chunks) or ()]
    if any(outcome.get("type") == "timeout" or outcome.get("exit_code") for outcome in outcomes):
        return True
    return False if outcomes and all(outcome.get("exit_code") == 0 for outcome in outcomes) else None


def _streams(chunks: Any) -> Iterator[str]:
    """Yield the output of a tool, chunk by chunk; any other value is shown as JSON."""
    for chunk in elements_of(chunks):
        fields = fields_of(chunk)
        if fields is None:
            yield json_text(chunk)
            continue
        yield from [text for name in ("stdout", "stderr") if (text := string(fields.get(name)))]


def _write_part(part: Part, new_type: str) -> Any:
    """Write one element of a content, of this type if it is new; an unchanged part returns its original element."""
    if part.raw is not None and _read_part(part.raw) == part:
        return part.raw
    if not isinstance(part, TextPart):
        raise unwritable(part)
    fields = fields_of(part.raw)
    if fields is None:
        return {"type": new_type, "text": part.text}
    return {**fields, _TEXTS[kind_of(part.raw)]: part.text}


def _write_item(fields: dict[str, Any], item: str, old: Sequence[Part], parts: Sequence[Part]) -> None:
    """Write a changed call; no other item can change."""
    before, after = old[0], parts[0] if len(parts) == 1 else None
    if not isinstance(before, ToolCallPart) or not isinstance(after, ToolCallPart):
        raise ConfigurationError(f"parts: a {item} item can only be kept or dropped as a whole (got {parts!r})")
    if after.id != before.id:
        fields[key_field(item)] = after.id
    if after.name != before.name:
        fields["name"] = after.name
    if after.arguments != before.arguments:
        is_text = isinstance(fields.get(CALLS[item]), str)
        fields[CALLS[item]] = after.arguments if is_text else arguments_object(after.arguments)


def _write_result(fields: dict[str, Any], kind: str, old: Sequence[Part], parts: Sequence[Part]) -> None:
    """Write a changed result: a string stays a string, a list keeps its unchanged elements."""
    before, after = old[0], parts[0] if parts else None
    if not isinstance(before, ToolResultPart) or not isinstance(after, ToolResultPart) or not same(old[1:], parts[1:]):
        raise ConfigurationError(f"parts: an output is one ToolResultPart and the parts read beside it (got {parts!r})")
    if after.call_id != before.call_id:
        fields[call_id_field(fields)] = after.call_id
    if after.text == before.text and same(after.media, before.media):
        return
    if len(old) > 1 or not RESULTS[kind]:
        raise ConfigurationError(f"parts: the output of a {fields.get('type')} item is not text, so it cannot be reworded")
    elements = items_of(fields.get(RESULTS[kind]))
    if elements is None:
        fields[RESULTS[kind]] = after.text
        return
    if kind == _CHUNKED:
        last = fields_of(elements[-1]) if elements else None
        ended = {"outcome": {"type": "exit", "exit_code": 0}} if last is None else last
        fields[RESULTS[kind]] = [{**ended, "stdout": after.text, "stderr": ""}]
        return
    changed = changed_result(
        elements, before, after, read=_read_part, write=partial(_write_part, new_type="input_text"), keep_blank=True
    )
    fields[RESULTS[kind]] = changed or ""

"""OpenAI Responses items, of which one answer of the model may be several.

The items are those of the request types of the ``openai`` package: messages with or without a ``type``, function and custom
tool calls and their outputs, reasoning with encrypted content, calls of tools the provider or the caller runs, compaction
items, item references. An item is read as one message. Each item of an answer continues the one before it
(`Message.continues`), so that reasoning, the calls after it and their results stay together. An unknown item is kept as
`OtherPart`. An item without a speaker, such as a compaction item, has its type as its role.

``docs/rules/openai-responses.md`` shows every rule with an example and its source. A list is judged as a whole conversation. An
item reference stands for items that are not in the list, so the call of a later result may be among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from ..errors import ConfigurationError, InvalidMessage
from ..json_data import same
from ..messages import MediaPart, Message, OtherPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from .pairing import NOT_RECORDED, Fields, Finding, Pairing, Path, Slot, repeated
from .rulebook import Rule, RuleBook, WireFormat
from .wire import (
    arguments_object,
    arguments_text,
    changed_result,
    elements_of,
    fields_of,
    items_of,
    json_text,
    kind_of,
    lacking,
    result_part,
    says_something,
    string,
    type_name,
    unwritable,
    written_content,
)

# ------------------------------------------------------------------------ access to fields

_CALLS: Final[Mapping[str, str]] = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "computer_call": "action",
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
    "program": "code",
    "tool_search_call": "arguments",
    "mcp_approval_request": "arguments",
}
"""The types of items that are calls, and the field with the arguments."""
_UNANSWERED: Final = frozenset({"tool_search_call", "mcp_approval_request"})
"""The types of calls for which the provider requires no result."""
_RESULTS: Final[Mapping[str, str]] = {
    "function_call_output": "output",
    "custom_tool_call_output": "output",
    "computer_call_output": "",
    "local_shell_call_output": "output",
    "shell_call_output": "output",
    "apply_patch_call_output": "output",
    "program_output": "result",
    "tool_search_output": "",
    "mcp_approval_response": "",
}
"""The types of items that are results, and the field with the output, if it is text that can be shortened."""
_KEYS: Final = {"mcp_approval_request": "id", "local_shell_call_output": "id", "mcp_approval_response": "approval_request_id"}
"""The field with the key that a call and its result share, where it is not ``call_id``."""
_OF_THE_CALLER: Final = frozenset({"compaction", "compaction_trigger", "additional_tools", "configuration_update"})


def _item_type(fields: Mapping[str, Any]) -> str:
    """Return the type of an item; without one, a role makes it a message, an id alone a reference. Empty for neither."""
    kind = fields.get("type")
    if kind is None and "role" in fields:
        return "message"
    if kind is None and "id" in fields and fields.keys() <= {"id", "type"}:
        return "item_reference"
    return string(kind)


def _is_answer(fields: Mapping[str, Any]) -> bool:
    """Whether the item is part of an answer: a message of the assistant, a call, reasoning, a hosted tool."""
    kind = _item_type(fields)
    if kind == "message":
        return fields.get("role") == "assistant"
    return kind not in _OF_THE_CALLER and result_of(fields) is None


def _item_links(fields: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the ids that an item of an answer opens for later items, and the ids that it continues.

    An item reference opens the empty id: it stands for items that are not in the list, which any later item may continue.
    """
    kind = _item_type(fields)
    if kind == "item_reference":
        return ("",), ()
    if kind == "program" or kind == "mcp_approval_request":
        return (string(fields.get(_key_field(kind))),), ()
    earlier = _caller_of(fields) or string(fields.get("approval_request_id"))
    return (), (earlier,) if earlier else ()


def _caller_of(fields: Mapping[str, Any]) -> str | None:
    """Return the ``call_id`` of the program that made this call; ``None`` if the model made it itself."""
    caller = fields_of(fields.get("caller"))
    return string(caller.get("caller_id")) if caller is not None and caller.get("type") == "program" else None


def call_of(fields: Mapping[str, Any]) -> str | None:
    """Return the id that a result of this call names, empty if it has none; ``None`` if the item is not such a call."""
    kind = _item_type(fields)
    key = string(fields.get(_key_field(kind))) if kind in _CALLS else None
    return key or (None if kind in _UNANSWERED else key)


def result_of(fields: Mapping[str, Any]) -> str | None:
    """Return the id of the call that this result answers, empty if it has none; ``None`` if the item is not a result."""
    kind = _item_type(fields)
    key = string(fields.get(_call_id_field(fields))) if kind in _RESULTS else None
    return key or (None if kind == "tool_search_output" else key)  # the provider may have written this one for its own call


def _call_id_field(fields: Mapping[str, Any]) -> str:
    return "call_id" if fields.get("call_id") is not None else _key_field(_item_type(fields))


def _key_field(kind: str) -> str:
    """Return the field with the key that a call or result of this type shares with the other."""
    return _KEYS.get(kind, "call_id")


_STUBS: Final[Mapping[str, Mapping[str, Any]]] = {
    "function_call": {"type": "function_call_output", "output": NOT_RECORDED},
    "custom_tool_call": {"type": "custom_tool_call_output", "output": NOT_RECORDED},
    "local_shell_call": {"type": "local_shell_call_output", "output": NOT_RECORDED},
    "apply_patch_call": {"type": "apply_patch_call_output", "status": "failed", "output": NOT_RECORDED},
}
"""The stubs by the type of the call. Other calls get no stub, because their outputs cannot be invented."""


# ------------------------------------------------------------------------ one message

_OF_OTHERS: Final = frozenset({"text", "image_url", "file", "tool_use", "tool_result", "thinking", "redacted_thinking"})
"""Types of parts in chat completions and Anthropic Messages, which this API does not know."""

_REQUIRED: Final[Mapping[str, Mapping[str, type]]] = {
    "function_call": {"name": str, "arguments": str},
    "custom_tool_call": {"name": str, "input": str},
    "reasoning": {"summary": list},
    "compaction": {"encrypted_content": str},
    "item_reference": {"id": str},
}


def _message_problems(fields: Fields) -> Iterator[Finding]:
    kind = _item_type(fields)
    if not kind:
        yield ("type",), "missing-type", f"a type is a non-empty string (got {type_name(fields.get('type'))})"
    elif kind == "message":
        role = fields.get("role")
        if role in ("user", "assistant", "system", "developer"):
            yield from _content_problems(("content",), role, fields.get("content"))
        else:
            yield ("role",), "unknown-role", f"no such role: {role!r}"
    for name, value in lacking(fields, _REQUIRED.get(kind, {})):
        yield (name,), "malformed-item", f"a {kind} item needs {name!r} (got {type_name(value)})"
    if kind in ("function_call_output", "custom_tool_call_output"):
        yield from _content_problems(("output",), "user", fields.get("output"))


def _content_problems(where: Path, role: str, content: Any) -> Iterator[Finding]:
    if isinstance(content, str):
        return
    parts = items_of(content)
    if parts is None:
        yield (where, "malformed-content", f"it is a string or a list (got {type_name(content)})")
    for position, part in enumerate(parts or ()):
        yield from _part_problems((*where, position), role, part)


def _part_problems(where: Path, role: str, part: Any) -> Iterator[Finding]:
    fields, kind = fields_of(part), kind_of(part)
    if fields is None or not kind:
        yield (where, "malformed-part", f"a part is an object with a type (got {type_name(part)})")
    elif kind in _OF_OTHERS or (kind.startswith("input_") if role == "assistant" else kind in ("output_text", "refusal")):
        yield (where, "part-not-allowed", f"a part of type {kind!r} is not allowed in a message of the {role}")
    elif kind in ("input_text", "output_text") and not isinstance(fields.get("text"), str):
        yield (where, "malformed-part", f"its 'text' is not a string (got {type_name(fields.get('text'))})")


# ------------------------------------------------------------------------ calls and results


def _calls(fields: Fields) -> Iterator[Slot]:
    if (key := call_of(fields)) is not None:
        kind = _item_type(fields)
        yield Slot((), key, (_key_field(kind),), optional=kind in _UNANSWERED)


def _results(fields: Fields) -> Iterator[Slot]:
    if (key := result_of(fields)) is not None:
        yield Slot((), key, (_call_id_field(fields),))


def _stub(call: Any, id: str) -> dict[str, Any] | None:
    stub = _STUBS.get(_item_type(fields_of(call) or {}))
    return None if stub is None else {**stub, _key_field(stub["type"]): id}


def _belongs(fields: Fields) -> bool:
    return _is_answer(fields) or result_of(fields) is not None


# ------------------------------------------------------------------------ the whole list


def _list_problems(contents: Sequence[Fields]) -> Iterator[tuple[int, Finding]]:
    """Yield repeated ids, reasoning without its item, and calls of programs that are not running."""
    of_items = (
        ("" if _item_type(fields) in _RESULTS and _call_id_field(fields) == "id" else string(fields.get("id")), index)
        for index, fields in enumerate(contents)  # the id of a result may be that of its call
    )
    for id, index in repeated(of_items):
        yield index, (("id",), "duplicate-item-id", f"the id {id!r} is that of an earlier item")
    followed = False
    for index in range(len(contents) - 1, -1, -1):
        if _item_type(contents[index]) == "reasoning" and not followed:
            yield index, ((), "reasoning-without-item", "no item of the same answer comes after it")
        else:
            followed = _is_answer(contents[index])
    yield from _caller_problems(contents)


def _caller_problems(contents: Sequence[Fields]) -> Iterator[tuple[int, Finding]]:
    running: set[str] = set()
    for index, fields in enumerate(contents):
        kind, program = _item_type(fields), _caller_of(fields)
        if kind == "item_reference":
            return
        if call_of(fields) is not None and program is not None and program not in running:
            yield index, (("caller",), "call-without-program", f"no program {program!r} runs before it")
        if kind == "program":
            running.add(call_of(fields) or "")
        elif kind == "program_output":
            running.discard(result_of(fields) or "")


_BOOK: Final = RuleBook(
    rules={
        "no-messages": Rule("send at least one item"),
        "unreadable-message": Rule("pass dictionaries, or the openai package's objects"),
        "missing-type": Rule("give it the type the API documents, or make it a message with a role"),
        "unknown-role": Rule("use one of developer, system, user, assistant"),
        "malformed-content": Rule("make it a string, or a list of parts"),
        "malformed-part": Rule("make it an object with a 'type' and the field named by that type"),
        "part-not-allowed": Rule("use 'output_text' and 'refusal' in messages of the assistant, and 'input_...' elsewhere"),
        "malformed-item": Rule("give it the fields of its type"),
        "duplicate-item-id": Rule("leave the second item out, or its id", "block"),
        "reasoning-without-item": Rule("keep the item that followed it in the answer, or leave the reasoning out", "message"),
        "call-without-id": Rule("give the call an id, and its output the same id"),
        "duplicate-call-id": Rule("give each call a different 'call_id'", "id"),
        "call-without-program": Rule("keep the program before it, or leave the call and its output out"),
        "call-without-result": Rule("add its output after it, or leave the call out", "pair"),
        "pending-call": Rule("store the list unchanged; add the output before sending it"),
        "result-without-id": Rule("set 'call_id' to the id of the call it answers"),
        "result-without-call": Rule("put it after the call it answers, or leave it out", "pair"),
        "duplicate-result": Rule("keep one output for each call", "pair"),
    },
    pairing=Pairing(
        calls=_calls,
        results=_results,
        continues=lambda before, after: _belongs(before) and _belongs(after),
        only_results=_belongs,
        stub=_stub,
        answers=_is_answer,
        anywhere=True,
        counted=True,
        unknown=lambda fields: _item_type(fields) == "item_reference",
    ),
    message=_message_problems,
    shape="an item is an object with a type or a role",
    whole=_list_problems,
)


# ------------------------------------------------------------------------ the format

_MEDIA: Final[Mapping[str, str]] = {"input_image": "image", "input_file": "file", "input_audio": "audio"}
_TEXTS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("input_text", "output_text", "text", "summary_text", "reasoning_text"), "text"),
    "refusal": "refusal",
}
_HOSTED: Final = {"file_search_call", "web_search_call", "code_interpreter_call", "image_generation_call", "mcp_call"}
_ITEMS: Final = {"reasoning", "item_reference", "mcp_list_tools", *_OF_THE_CALLER, *_HOSTED, *_CALLS, *_RESULTS}
_DATA: Final[Mapping[str, str]] = {"image_generation_call": "result", "computer_call_output": "output"}
"""Kinds of items with data that the model does not see as text, and the field with the data."""
_CHUNKED: Final = "shell_call_output"  # the type of results whose output is a list of chunks of ``stdout`` and ``stderr``


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
    roles = "user, assistant, system, developer"
    book = _BOOK

    def read(self, raw: Any, position: int = 0) -> Message:
        fields: Mapping[str, Any] = raw if raw.__class__ is dict else self._fields(raw, position)
        kind = _item_type(fields)
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
        if not _is_answer(fields):
            role = "developer" if kind in ("additional_tools", "configuration_update") else kind
            return Message(role, _read_item(fields, kind), raw, self, holds_history=kind == "compaction")
        begins, resumes = _item_links(fields)
        return Message("assistant", _read_item(fields, kind), raw, self, continues=True, begins=begins, resumes=resumes)

    def _write(self, fields: dict[str, Any], message: Message, parts: Sequence[Part]) -> None:
        item = _item_type(fields)
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
        items: list[dict[str, Any]] = []
        for part in parts:
            if isinstance(part, ToolCallPart):
                fields = {"type": "function_call", "call_id": part.id, "name": part.name, "arguments": part.arguments}
            elif isinstance(part, ToolResultPart):
                fields = {"type": "function_call_output", "call_id": part.call_id, "output": part.text}
            else:
                fields = {"type": "message", "role": role, "content": part.text if isinstance(part, TextPart) else ""}
            items.append(fields)
        return list(map(self.read, items))

    def recognizes(self, fields: Mapping[str, Any]) -> bool | None:
        """Recognize the types of items, and an id alone; a message has a content and may have the type ``message``."""
        kind, role = fields.get("type"), fields.get("role")
        if type(kind) is str and kind in _ITEMS:
            return True
        if not says_something(fields):
            return _item_type(fields) == "item_reference"
        if role in ("tool", "function") or (kind == "message" and "stop_reason" in fields):
            return False
        return None if fields.get("content") is not None or "stop_reason" in fields else False

    def recognizes_part(self, fields: Mapping[str, Any]) -> bool:
        return fields.get("type") in (*_MEDIA, "input_text", "output_text", "refusal")

    def rewrite_problem(self, before: Sequence[Message], after: Sequence[Message | None], *, current: bool) -> str | None:
        """Allow an edit to remove reasoning only if no later item of the same answer has an id."""
        bare = False
        for new in after:
            if new is None:
                bare = True
            elif not new.continues:
                bare = False
            elif bare and (fields_of(new.raw) or {}).get("id"):
                return "an item with an id stays with the reasoning before it"
        return None


openai_responses = OpenAIResponses()


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
    return (ToolCallPart(identifier, name, arguments_text(fields.get(_CALLS[item]))),)


def _item_text(fields: Mapping[str, Any], *without: str) -> str:
    """Return an item as JSON text without these fields and the data that the model does not see; empty if none is left."""
    hidden = {*without, "encrypted_content", _DATA.get(_item_type(fields))}
    left = {name: value for name, value in fields.items() if name not in hidden}
    return json_text(left) if left else ""


def _read_result(fields: Mapping[str, Any], kind: str, call: str) -> tuple[Part, ...]:
    """Return the result and a part with the fields that cannot be shortened as text."""
    output = fields.get(_RESULTS[kind]) if _RESULTS[kind] else None
    failed = _exits(output) if kind == _CHUNKED else None
    if kind == "apply_patch_call_output":  # an incomplete result may not have failed
        failed = {"completed": False, "failed": True}.get(string(fields.get("status")))
    if output is None:
        left = _item_text(fields, "type", "id", "status", "call_id", _key_field(kind))
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
        texts = [json_text(chunk)] if fields is None else [string(fields.get(name)) for name in ("stdout", "stderr")]
        yield from [text for text in texts if text or fields is None]


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
        fields[_key_field(item)] = after.id
    if after.name != before.name:
        fields["name"] = after.name
    if after.arguments != before.arguments:
        is_text = isinstance(fields.get(_CALLS[item]), str)
        fields[_CALLS[item]] = after.arguments if is_text else arguments_object(after.arguments)


def _write_result(fields: dict[str, Any], kind: str, old: Sequence[Part], parts: Sequence[Part]) -> None:
    """Write a changed result: a string stays a string, a list keeps its unchanged elements."""
    before, after = old[0], parts[0] if parts else None
    if not isinstance(before, ToolResultPart) or not isinstance(after, ToolResultPart) or not same(old[1:], parts[1:]):
        raise ConfigurationError(f"parts: an output is one ToolResultPart and the parts read beside it (got {parts!r})")
    if after.call_id != before.call_id:
        fields[_call_id_field(fields)] = after.call_id
    if after.text == before.text and same(after.media, before.media):
        return
    if len(old) > 1 or not _RESULTS[kind]:
        raise ConfigurationError(f"parts: the output of a {fields.get('type')} item is not text, so it cannot be reworded")
    elements = items_of(fields.get(_RESULTS[kind]))
    if elements is None:
        fields[_RESULTS[kind]] = after.text
        return
    if kind == _CHUNKED:
        last = fields_of(elements[-1]) if elements else None
        ended = {"outcome": {"type": "exit", "exit_code": 0}} if last is None else last
        fields[_RESULTS[kind]] = [{**ended, "stdout": after.text, "stderr": ""}]
        return
    changed = changed_result(
        elements, before, after, read=_read_part, write=partial(_write_part, new_type="input_text"), keep_blank=True
    )
    fields[_RESULTS[kind]] = changed or ""

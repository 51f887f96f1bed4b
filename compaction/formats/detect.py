"""Which wire format a list of messages is in, by what only one of them writes.

Many conversations say nothing of it: a role and a text are a message in three formats. Then nothing is guessed, and the error
says which formats are possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ..errors import UnknownFormat
from .anthropic import anthropic
from .anthropic_fields import is_server_call, is_server_result
from .base import MessageFormat
from .gemini import gemini
from .openai_chat import openai_chat
from .openai_chat_fields import is_empty
from .openai_responses import openai_responses
from .openai_responses_fields import CALLS, RESULTS, item_type
from .wire import fields_of, items_of, string, type_name

__all__ = ["candidates", "detect", "fits", "read_as"]

_Some: TypeAlias = int
"""Some of the formats, a bit for each: every message of a conversation is looked at, so that has to be cheap."""

_ALL: Final[tuple[MessageFormat, ...]] = (openai_chat, openai_responses, anthropic, gemini)
_CHAT, _RESPONSES, _ANTHROPIC, _GEMINI = _BITS = (1, 2, 4, 8)
_NONE, _ANY = 0, 15
_SAID: Final = frozenset({"content", "tool_calls", "function_call", "refusal", "audio"})
_ITEMS: Final = frozenset(
    {
        "reasoning",
        "item_reference",
        "compaction",
        "compaction_trigger",
        "file_search_call",
        "web_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_call",
        "mcp_list_tools",
        "additional_tools",
        "configuration_update",
        *CALLS,
        *RESULTS,
    }
)
_PARTS: Final[Mapping[str, _Some]] = {
    "image_url": _CHAT,
    "file": _CHAT,
    "input_text": _RESPONSES,
    "output_text": _RESPONSES,
    "input_image": _RESPONSES,
    "input_file": _RESPONSES,
    "text": _CHAT | _ANTHROPIC,
    "refusal": _CHAT | _RESPONSES,
    "input_audio": _CHAT | _RESPONSES,
    "tool_use": _ANTHROPIC,
    "tool_result": _ANTHROPIC,
    "redacted_thinking": _ANTHROPIC,
    "document": _ANTHROPIC,
    "search_result": _ANTHROPIC,
    "container_upload": _ANTHROPIC,
    "compaction": _ANTHROPIC,
    "fallback": _ANTHROPIC,
    "mcp_tool_listing": _ANTHROPIC,
    "tool_addition": _ANTHROPIC,
    "tool_removal": _ANTHROPIC,
}


def detect(messages: Iterable[Any]) -> MessageFormat:
    """The wire format of a conversation; O(parts).

    Args:
        messages: The conversation, oldest first; dictionaries, or objects of a provider's package.

    Raises:
        UnknownFormat: If more than one format is possible, if the messages are of different formats, or of none. The text says
            which of the three, and where.

    >>> detect([{"role": "user", "parts": [{"text": "hi"}]}])
    gemini
    >>> detect([{"role": "user", "content": "hi"}])
    Traceback (most recent call last):
    ...
    compaction.errors.UnknownFormat: these messages fit openai-chat, openai-responses, anthropic alike; say which with format=
    """
    return _only(_possible(messages))


def candidates(messages: Iterable[Any]) -> Sequence[MessageFormat]:
    """Every wire format that a conversation can be in; O(parts).

    Raises:
        UnknownFormat: If there is none, with the place where that shows.
    """
    return _formats(_possible(messages))


def read_as(messages: Sequence[Any]) -> MessageFormat:
    """The wire format to read a conversation in where nobody said which; O(messages), a glance at plain chat messages.

    Chat completions, unless a message is of another format alone. Messages that no format knows say nothing.

    Raises:
        UnknownFormat: If the messages are of different formats, or fit several formats that are not chat completions.

    >>> read_as([{"role": "user", "content": "hi"}])
    openai_chat
    """
    if fits(messages, openai_chat):
        return openai_chat
    return _only(_possible(messages, strict=False))


def fits(messages: Sequence[Any], format: MessageFormat) -> bool:
    """Whether no message shows that the conversation is in another wire format."""
    chat, bit = format is openai_chat, sum(bit for each, bit in zip(_ALL, _BITS, strict=True) if each == format)
    for raw in messages:
        if chat and raw.__class__ is dict and "type" not in raw and "parts" not in raw:
            content = raw.get("content")
            if type(content) is str or (content is None and "tool_calls" in raw):
                continue
        fields = fields_of(raw)
        fitting = _NONE if fields is None else _fitting(fields)
        if fitting and not fitting & bit:
            return False
    return True


def _possible(messages: Iterable[Any], *, strict: bool = True) -> _Some:
    """The formats that every message can be in; if not strict, every message that a format knows.

    Raises:
        UnknownFormat: If there is none.
    """
    possible = _ANY
    where: dict[_Some, int] = {}
    for index, raw in enumerate(messages):
        fields = fields_of(raw)
        fitting = _NONE if fields is None else _fitting(fields)
        if not fitting:
            if strict:
                raise UnknownFormat(_unknown(index, raw))
            continue
        if fitting in _BITS:
            where.setdefault(fitting, index)
        if not possible & fitting:
            raise UnknownFormat(_mixed(index, fitting, where))
        possible &= fitting
    return possible


def _formats(some: _Some) -> list[MessageFormat]:
    return [format for format, bit in zip(_ALL, _BITS, strict=True) if some & bit]


def _only(possible: _Some) -> MessageFormat:
    found = _formats(possible)
    if len(found) > 1:
        raise UnknownFormat(f"these messages fit {', '.join(format.name for format in found)} alike; say which with format=")
    return found[0]


def _unknown(index: int, raw: Any) -> str:
    if fields_of(raw) is None:
        return f"messages[{index}]: a message is an object with fields (got {type_name(raw)})"
    return f"messages[{index}]: no wire format has such a message; see docs/validity.md for what there is"


def _mixed(index: int, fitting: _Some, where: Mapping[_Some, int]) -> str:
    others = [f"messages[{place}] is {_formats(bit)[0].name}" for bit, place in where.items() if not bit & fitting]
    names = " or ".join(format.name for format in _formats(fitting))
    before = ", ".join(others) or "the messages before it are not"
    return f"messages[{index}] is {names}, {before}: one list has one format; convert what was added"


def _fitting(fields: Mapping[str, Any]) -> _Some:
    """The formats that a message can be in: what each sign in it leaves."""
    kind, role = string(fields.get("type")), fields.get("role")
    said = not fields.keys().isdisjoint(_SAID)
    if kind in _ITEMS or (not said and item_type(fields) == "item_reference"):
        return _RESPONSES
    if role == "model" or fields.get("parts") is not None or ("parts" in fields and not said):
        return _GEMINI
    some = _CHAT | _RESPONSES | _ANTHROPIC if said else _NONE
    content = fields.get("content")
    if role in ("tool", "function") or _is_told(fields):
        some &= _CHAT
    if role == "developer":
        some &= _CHAT | _RESPONSES
    if kind == "message":
        some &= _ANTHROPIC if "stop_reason" in fields else _RESPONSES if isinstance(content, str) else _RESPONSES | _ANTHROPIC
    if content is None and "stop_reason" not in fields:
        some &= _CHAT | _ANTHROPIC
    for part in items_of(content) or ():
        some &= _of_part(part)
    return some


def _is_told(fields: Mapping[str, Any]) -> bool:
    """Whether a message says something in a field that chat completions alone have."""
    return any(name in fields and not is_empty(fields[name]) for name in ("tool_calls", "function_call", "refusal"))


def _of_part(part: Any) -> _Some:
    fields = fields_of(part)
    kind = "" if fields is None else string(fields.get("type"))
    if kind in _PARTS:
        return _PARTS[kind]
    if is_server_call(kind) or is_server_result(kind) or (fields is not None and _is_of_anthropic(kind, fields)):
        return _ANTHROPIC
    return _ANY


def _is_of_anthropic(kind: str, fields: Mapping[str, Any]) -> bool:
    """Whether a part whose type others use too has what only this format's has."""
    return (kind == "thinking" and bool(fields.get("signature"))) or (kind == "image" and fields.get("source") is not None)

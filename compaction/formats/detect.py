"""Which wire format a list of messages is in, by what only one of them writes.

Many conversations say nothing of it: a role and a text are a message in three formats. Then nothing is guessed, and the error
says which formats are possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ..errors import UnknownFormat
from .anthropic import anthropic
from .anthropic_fields import is_server_call, is_server_result
from .base import MessageFormat
from .gemini import gemini
from .openai_chat import openai_chat
from .openai_chat_fields import is_empty
from .openai_responses import openai_responses
from .openai_responses_fields import CALLS, RESULTS
from .wire import fields_of, items_of, kind_of, string, type_name

__all__ = ["candidates", "detect", "fits", "read_as"]

_ALL: Final[tuple[MessageFormat, ...]] = (openai_chat, openai_responses, anthropic, gemini)
_SAID: Final = frozenset({"content", "tool_calls", "function_call", "refusal", "audio"})
_WITH_CONTENT: Final = frozenset({openai_chat, openai_responses, anthropic})
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
        *CALLS,
        *RESULTS,
    }
)
_PARTS: Final[Mapping[str, MessageFormat]] = {
    "image_url": openai_chat,
    "file": openai_chat,
    "input_text": openai_responses,
    "output_text": openai_responses,
    "input_image": openai_responses,
    "input_file": openai_responses,
    "tool_use": anthropic,
    "tool_result": anthropic,
    "redacted_thinking": anthropic,
    "document": anthropic,
    "search_result": anthropic,
    "container_upload": anthropic,
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
    possible = candidates(messages)
    if len(possible) > 1:
        names = ", ".join(format.name for format in possible)
        raise UnknownFormat(f"these messages fit {names} alike; say which with format=")
    return possible[0]


def candidates(messages: Iterable[Any]) -> Sequence[MessageFormat]:
    """Every wire format that a conversation can be in; O(parts).

    Raises:
        UnknownFormat: If there is none, with the place where that shows.
    """
    possible = frozenset(_ALL)
    where: dict[MessageFormat, int] = {}
    for index, raw in enumerate(messages):
        fields = fields_of(raw)
        if fields is None:
            raise UnknownFormat(f"messages[{index}]: a message is an object with fields (got {type_name(raw)})")
        fitting = _formats(fields)
        if not fitting:
            raise UnknownFormat(f"messages[{index}]: no wire format has such a message; see docs/validity.md for what there is")
        for format in fitting if len(fitting) == 1 else ():
            where.setdefault(format, index)
        if not possible & fitting:
            raise UnknownFormat(_mixed(index, fitting, where))
        possible &= fitting
    return [format for format in _ALL if format in possible]


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
    known = [fields for fields in map(fields_of, messages) if fields is not None and _formats(fields)]
    return detect(known)


def fits(messages: Sequence[Any], format: MessageFormat) -> bool:
    """Whether no message shows that the conversation is in another wire format."""
    chat = format is openai_chat
    for raw in messages:
        if chat and raw.__class__ is dict and "type" not in raw and "parts" not in raw:
            content = raw.get("content")
            if type(content) is str or (content is None and "tool_calls" in raw):
                continue
        fields = fields_of(raw)
        possible = frozenset[MessageFormat]() if fields is None else _formats(fields)
        if possible and format not in possible:
            return False
    return True


def _formats(fields: Mapping[str, Any]) -> frozenset[MessageFormat]:
    """Every format that a message can be in."""
    return frozenset(_ALL).intersection(*_fits(fields))


def _mixed(index: int, fitting: frozenset[MessageFormat], where: Mapping[MessageFormat, int]) -> str:
    others = [f"messages[{place}] is {format.name}" for format, place in where.items() if format not in fitting]
    names = " or ".join(format.name for format in _ALL if format in fitting)
    before = ", ".join(others) or "the messages before it are not"
    return f"messages[{index}] is {names}, {before}: one list has one format; convert what was added"


def _fits(fields: Mapping[str, Any]) -> Iterator[frozenset[MessageFormat]]:
    """What each sign in a message says about its format."""
    kind, role = string(fields.get("type")), fields.get("role")
    if kind in _ITEMS:
        yield frozenset({openai_responses})
        return
    if "parts" in fields or role == "model":
        yield frozenset({gemini})
        return
    if not fields.keys() & _SAID:
        yield frozenset()
    yield _WITH_CONTENT
    told = any(not is_empty(fields.get(name)) for name in ("tool_calls", "function_call", "refusal"))
    if told or role in ("tool", "function"):
        yield frozenset({openai_chat})
    if role == "developer":
        yield frozenset({openai_chat, openai_responses})
    if kind == "message":
        yield frozenset({anthropic} if "stop_reason" in fields else {openai_responses, anthropic})
        if isinstance(fields.get("content"), str):
            yield frozenset({openai_responses})
    if fields.get("content") is None and "stop_reason" not in fields:
        yield frozenset({openai_chat, anthropic})
    for part in items_of(fields.get("content")) or ():
        yield from _part_fits(part)


def _part_fits(part: Any) -> Iterator[frozenset[MessageFormat]]:
    fields, kind = fields_of(part) or {}, kind_of(part)
    if kind in _PARTS:
        yield frozenset({_PARTS[kind]})
    elif is_server_call(kind) or is_server_result(kind) or _is_of_anthropic(kind, fields):
        yield frozenset({anthropic})
    elif kind == "text":
        yield frozenset({openai_chat, anthropic})
    elif kind in ("refusal", "input_audio"):
        yield frozenset({openai_chat, openai_responses})


def _is_of_anthropic(kind: str, fields: Mapping[str, Any]) -> bool:
    """Whether a part whose type others use too has what only this format's has."""
    return (kind == "thinking" and bool(fields.get("signature"))) or (kind == "image" and fields.get("source") is not None)

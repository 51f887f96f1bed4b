"""The wire formats of this package, found by their name or by the messages of a list, which can then be judged and repaired.

Each format says whether it recognizes a message. Many conversations are ambiguous: a message with a role and a text is valid in
three formats. `detect` does not guess; its error names the possible formats. Messages of known frameworks and services that
have no wire format here are refused with an error that says what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import attrs

from ..errors import InputError, UnknownFormat
from .anthropic import anthropic
from .base import MessageFormat, Problem, Repair
from .bedrock import bedrock
from .gemini import gemini
from .openai_chat import openai_chat
from .openai_responses import openai_responses
from .wire import fields_of, items_in, items_of, string, type_name

FORMATS: Final[tuple[MessageFormat, ...]] = (openai_chat, openai_responses, anthropic, gemini, bedrock)
"""Every wire format. A new one is one folder and its place in this list."""

_Formats: TypeAlias = tuple[MessageFormat, ...]
_Fields: TypeAlias = Mapping[str, Any]


def resolve(format: str | MessageFormat | None = None, messages: Sequence[Any] = ()) -> MessageFormat:
    """Return the wire format for a ``format=`` argument.

    Args:
        format: The name of a format, a format, or ``None`` to detect it: chat completions, unless a message can only be in
            another format. Messages that no format recognizes are ignored.
        messages: The conversation; O(messages) for plain chats.

    Raises:
        UnknownFormat: If no format has that name, or the messages are in different formats, in none, or in several but not in
            chat completions.

    >>> resolve("openai-chat")
    openai_chat
    >>> resolve(None, [{"role": "model", "parts": [{"text": "hi"}]}])
    gemini
    """
    if isinstance(format, MessageFormat):
        return format
    if format is not None:
        known = {each.name: each for each in FORMATS}
        if format in known:
            return known[format]
        text = f"format={format!r}: no such wire format; use one of {', '.join(sorted(known))}, or a MessageFormat"
        raise UnknownFormat(text, argument="format")
    as_chat = _scan(messages, (openai_chat,))
    if not as_chat.possible:
        return _only(_scan(messages, FORMATS))
    if not as_chat.recognized:
        for place, raw in enumerate(messages):
            if (fields := fields_of(raw)) and "role" not in fields:
                raise UnknownFormat(_unknown(place, raw))
    return openai_chat


def detect(messages: Iterable[Any]) -> MessageFormat:
    """Return the wire format of a conversation; O(parts).

    Args:
        messages: The conversation, oldest first; dictionaries, or objects of a provider's package.

    Raises:
        UnknownFormat: If several formats are possible, or the messages are in different formats, or in none. The text says
            which of these, and at which message.

    >>> detect([{"role": "user", "parts": [{"text": "hi"}]}])
    gemini
    >>> detect([{"role": "user", "content": "hi"}])
    Traceback (most recent call last):
    ...
    compaction.errors.UnknownFormat: these messages can be openai-chat, openai-responses, anthropic; name one with format=
    """
    return _only(_scan(messages, FORMATS, strict=True))


def fits(messages: Sequence[Any], format: MessageFormat) -> bool:
    """Whether every message can be in this wire format; messages that no format recognizes are ignored.

    Raises:
        UnknownFormat: If a message is from a known framework or service without a wire format here.
    """
    return bool(_scan(messages, (format,)).possible)


@attrs.frozen
class _Scan:
    """The possible formats of a list."""

    possible: _Formats  # that every recognized message can be in; empty if there is none
    recognized: bool  # whether any format recognizes any message
    problem: str = ""  # the error about the message at which the scan ended; empty if it read the whole list


def _scan(messages: Iterable[Any], wanted: _Formats, *, strict: bool = False) -> _Scan:
    """Return which of the wanted formats are possible.

    The scan ends at the message that leaves none, and if it is ``strict``, at one that no format recognizes. It raises an
    `UnknownFormat` if a message is from a known framework or service without a wire format here.
    """
    possible, recognized = wanted, False
    is_chat = wanted == (openai_chat,)
    first: dict[MessageFormat, int] = {}
    for place, raw in enumerate(messages):
        if is_chat and raw.__class__ is dict and "type" not in raw and "parts" not in raw:  # a shortcut for most
            content = raw.get("content")
            if type(content) is str or (content is None and "tool_calls" in raw):
                recognized = True
                continue
        formats = _formats_of(raw)
        if not formats:
            if strict:
                return _Scan(possible, recognized, _unknown(place, raw))
            continue
        recognized = True
        if len(formats) == 1:
            first.setdefault(formats[0], place)
        possible = tuple([format for format in possible if format in formats])
        if not possible:
            return _Scan((), recognized, _mixed(place, formats, first))
    return _Scan(possible, recognized)


def _formats_of(raw: Any) -> list[MessageFormat]:
    """Return the formats that a message can be in, by its fields and the parts of its content; raises as `_scan` does."""
    fields = fields_of(raw)
    if fields is None:
        return []
    surely: list[MessageFormat] = []
    perhaps: list[MessageFormat] = []
    for format in FORMATS:
        if (answer := format.recognizes(fields)) is not False:
            (surely if answer else perhaps).append(format)
    formats = surely or perhaps
    may_be_foreign = not formats or "role" not in fields or "parts" in fields
    for part in items_of(fields.get("content")) or ():
        if (part_fields := fields_of(part)) is None:
            continue
        of_part = [format for format in formats if format.recognizes_part(part_fields)]
        if of_part or any(format.recognizes_part(part_fields) for format in FORMATS):
            formats = of_part
        else:
            may_be_foreign = True
    if may_be_foreign:
        _refuse_foreign(fields)
    return formats


def _only(scan: _Scan) -> MessageFormat:
    """Return the only possible format; raise an `UnknownFormat` if there are several, or if the scan found a problem."""
    if scan.problem:
        raise UnknownFormat(scan.problem)
    first, *others = scan.possible
    if others:
        names = ", ".join([format.name for format in scan.possible])
        raise UnknownFormat(f"these messages can be {names}; name one with format=")
    return first


def _unknown(index: int, raw: Any) -> str:
    fields = fields_of(raw)
    if fields is None:
        return f"messages[{index}]: a message is an object with fields (got {type_name(raw)})"
    if items_of(fields.get("messages")) is not None:
        return f"messages[{index}] is a conversation, not a message; pass one conversation at a time, or write one a line"
    names = ", ".join([repr(name) for name in fields][:6]) or "none"
    return (
        f"messages[{index}]: no wire format has such a message (its fields: {names}); name the format with format=, "
        "or convert the messages to one; see docs/formats.md for what there is"
    )


def _mixed(index: int, formats: Sequence[MessageFormat], first: Mapping[MessageFormat, int]) -> str:
    others = [f"messages[{place}] is {format.name}" for format, place in first.items() if format not in formats]
    names = " or ".join([format.name for format in formats])
    before = ", ".join(others) or "the messages before it are not"
    return f"messages[{index}] is {names}, but {before}; one list has one format, so convert what was added"


# ------------------------------------------------------------------------ other frameworks

_LANGCHAIN: Final = frozenset({"human", "ai", "system", "tool", "function", "chat", "HumanMessageChunk", "AIMessageChunk"})
_CALL_PARTS: Final = ("tool-call", "tool-result", "tool-approval-request", "tool-approval-response")


def _elements(fields: _Fields, name: str) -> Iterator[_Fields]:
    return (found for each in items_in(fields, name) if (found := fields_of(each)) is not None)


_CONVERT: Final = "convert them to one of the wire formats first"
_FOREIGN: Final[tuple[tuple[str, Callable[[_Fields], bool], str], ...]] = (
    (
        "pydantic-ai",
        lambda fields: "parts" in fields and string(fields.get("kind")) in ("request", "response"),
        "use compaction.integrations.pydantic_ai, which takes them as they are",
    ),
    (
        "the Vercel AI SDK (UI messages)",
        lambda fields: any(string(part.get("type")) for part in _elements(fields, "parts")),  # Gemini's parts have no type
        "convert them with convertToModelMessages, and compact what the provider is sent: its own wire format",
    ),
    (
        "the Vercel AI SDK (model messages)",
        lambda fields: any("toolCallId" in part or part.get("type") in _CALL_PARTS for part in _elements(fields, "content")),
        "compact what the provider is sent, its own wire format, or write calls and results as one of these does",
    ),
    (
        "LangChain",
        lambda fields: (
            {"lc", "kwargs"} <= fields.keys()
            or ("role" not in fields and string(fields.get("type")) in _LANGCHAIN and ("data" in fields or "content" in fields))
        ),
        "use compaction.integrations.langchain, or convert them with langchain_core's convert_to_openai_messages",
    ),
    (
        "Cohere's first chat API",
        lambda fields: "content" not in fields and string(fields.get("role")) in ("USER", "CHATBOT", "SYSTEM", "TOOL"),
        "write them in the format of Cohere's second chat API, which is chat completions",
    ),
    (
        "Agent Framework",
        lambda fields: "role" in fields and items_of(fields.get("contents")) is not None,
        "use compaction.integrations.agent_framework, which takes them as they are",
    ),
    ("LlamaIndex", lambda fields: any("block_type" in block for block in _elements(fields, "blocks")), _CONVERT),
    ("AutoGen", lambda fields: "source" in fields and string(fields.get("type")).endswith(("Message", "Event")), _CONVERT),
    (
        "a ShareGPT data set",
        lambda fields: "from" in fields and isinstance(fields.get("value"), str),
        "write 'from' as 'role' (human is user, gpt is assistant) and 'value' as 'content'",
    ),
)
"""The name of each framework or service, whether a message is one of its messages, and what the caller can do."""


def _refuse_foreign(fields: _Fields) -> None:
    for name, shows, remedy in _FOREIGN:
        if shows(fields):
            raise UnknownFormat(f"these look like messages of {name}, which is not a wire format here; {remedy}")


# ------------------------------------------------------------------------ judging and repairing


def as_list(messages: Iterable[Any]) -> list[Any]:
    """Return the messages as a list.

    Raises:
        InputError: If this is not a list of messages.
    """
    if isinstance(messages, list):
        return messages
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Iterable):
        raise InputError("messages: a conversation is a list of messages; wrap a single message in one")
    return list(messages)


def validate(messages: Iterable[Any], *, format: MessageFormat | str | None = None) -> list[Problem]:
    """Return every rule of the wire format that a conversation breaks; O(messages).

    Args:
        messages: The conversation, oldest first.
        format: The wire format; ``None`` to detect it, see `compaction.formats.resolve`.

    Returns:
        The problems in order of place; none if a provider would take the list.

    Raises:
        InputError: If ``messages`` is not a list, or of different formats.

    >>> validate([{"role": "tool", "tool_call_id": "call_1", "content": "18 degrees"}])[0].rule
    'result-without-call'
    """
    given = as_list(messages)
    return resolve(format, given).validate(given)


def repair(messages: Iterable[Any], *, format: MessageFormat | str | None = None) -> Repair:
    """Return a valid conversation made from this one, and every change. Nothing is repaired unless asked for.

    Args:
        messages: The conversation, oldest first; not changed.
        format: The wire format; ``None`` to detect it, see `compaction.formats.resolve`.

    Raises:
        InputError: If ``messages`` is not a list, or of different formats.

    >>> repair([{"role": "user", "content": "hi"}, {"role": "tool", "tool_call_id": "call_1", "content": "18"}]).messages
    [{'role': 'user', 'content': 'hi'}]
    """
    given = as_list(messages)
    return resolve(format, given).repair(given)

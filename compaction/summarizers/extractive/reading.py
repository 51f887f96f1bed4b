"""The reading of one message: everything in it that a summary may need. It is kept with the message, so each is read once."""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterable
from typing import Any, Final, Self

import attrs

from ...messages import Message, TextPart, ToolCallPart, ToolResultPart
from .actions import argument_values, brief_of
from .facts import FactSource, facts_in, is_telling
from .scoring import reports_failure
from .sentences import READ_CHARS, both_ends
from .speech import Voice, is_printed, passages
from .statements import Statement, assistant_statements, user_statements

_VALUE_CHARS: Final = 80
_REQUEST_CHARS: Final = 2_000
_FIRST_WORDS: Final = 120
_DEMONSTRATION_CHARS: Final = 2_000
_PRINTED_SHARE: Final = 0.25
_MACHINE: Final = re.compile(r"terminal|executor|observation|environment|tool|function|computer", re.IGNORECASE)
_OUTPUT: Final = re.compile(
    r"\s*(?:exit ?code:|[\[{]\s*\"(?:observation|tool\w*|function\w*|results?|output|stdout|stderr|exit_?code|status)\")",
    re.IGNORECASE,
)
_PATH: Final = re.compile(
    r"(?:~|\.{1,2})?/?(?:[\w.@+-]+/)*[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,7}|(?:~|\.{1,2})?/(?:[\w.@+-]+/)*[\w.@+-]+/?"
)


@attrs.frozen
class CallReading:
    """A call: its id, its line, whether it changes something, and the files that it names."""

    id: str
    line: str
    changes: bool
    paths: tuple[str, ...]


@attrs.frozen
class Reading:
    """What a message holds.

    Args:
        source: Who said it; what a program put into a user message counts as a result.
        text: The beginning of the words.
        statements: The statements of the user, or the decisions of the assistant.
        facts: The facts of all its texts, each with the value of the sources that show it. The collector of garbage need not
            visit a dictionary of plain numbers.
        calls: Its calls.
        results: Its results.
        fails: Whether the assistant says that something failed.
        unread: How many of its texts were so long that only both ends were read.
        shows_work: Whether it is a long user message that is in good part what programs printed, as a demonstration is.
    """

    source: FactSource
    text: str
    statements: tuple[Statement, ...]
    facts: dict[str, int]
    calls: tuple[CallReading, ...]
    results: tuple[ToolResultPart, ...]
    fails: bool = False
    unread: int = 0
    shows_work: bool = False


class _Known(weakref.ref[Message]):
    """A reference to a message that was read, with its reading, and entries of tables that must go with the message."""

    __slots__ = ("entries", "key", "reading")

    key: int
    reading: Reading | None
    entries: tuple[tuple[dict[int, Any], int], ...]

    def __new__(cls, message: Message, reading: Reading) -> Self:
        known = super().__new__(cls, message, _forget)
        known.key, known.reading, known.entries = id(message), reading, ()
        return known


_KNOWN: Final[dict[int, _Known]] = {}
"""Readings by the identity of their message; one leaves with its message, so forgetting a message forgets it."""


def read_message(message: Message, redact: Callable[[str], str] | None = None) -> Reading:
    """Return the reading of a message; O(characters) the first time, then O(1).

    Args:
        message: The message.
        redact: Removes from every text what must not be shown; such a reading is not kept.
    """
    if redact is not None:
        return _read(message, redact)
    known = _KNOWN.get(id(message))
    if known is not None and known.reading is not None:
        return known.reading
    reading = _read(message, str)
    if known is None:
        _KNOWN[id(message)] = _Known(message, reading)
    else:
        known.reading = reading
    return reading


def forget_readings(ids: Iterable[int]) -> None:
    """Forget what was read in messages, given by identity, that will hardly be asked about again."""
    for id in ids:
        known = _KNOWN.get(id)
        if known is not None:
            known.reading = None


def _forget(known: weakref.ref[Message]) -> None:
    assert isinstance(known, _Known)
    _KNOWN.pop(known.key, None)
    for table, key in known.entries:
        table.pop(key, None)


def tie(messages: Iterable[Message], table: dict[int, Any], key: int) -> None:
    """Remove an entry of a table as soon as one of these messages is gone. They were read, without redaction."""
    entry = (table, key)
    only = (entry,)
    for message in messages:
        known = _KNOWN[id(message)]
        if entry not in known.entries:
            known.entries = (*known.entries, entry) if known.entries else only


def _read(message: Message, redact: Callable[[str], str]) -> Reading:
    text = "\n".join([part.text for part in message.parts if isinstance(part, TextPart)])
    unread = int(len(text) > READ_CHARS)
    text = redact(both_ends(text))
    source = _source(message, text)
    facts = dict.fromkeys(facts_in(text), source.value)
    calls: list[CallReading] = []
    results: list[ToolResultPart] = []
    for part in message.parts:
        if isinstance(part, ToolCallPart):
            values = [(key, redact(both_ends(value))) for key, value in argument_values(part.arguments)]
            calls.append(CallReading(part.id, *brief_of(part, values), _paths(values)))
            _add(facts, facts_in("\n".join(value for _, value in values)), FactSource.ASSISTANT)
            _add(facts, [value for _, value in values if _is_short(value)], FactSource.ASSISTANT)
        elif isinstance(part, ToolResultPart):
            unread += len(part.text) > READ_CHARS
            result = redact(both_ends(part.text))
            results.append(part if result is part.text else attrs.evolve(part, text=result))
            _add(facts, facts_in(result), FactSource.RESULT)
    statements: tuple[Statement, ...] = ()
    shows_work = False
    if source is FactSource.USER:
        statements = tuple(user_statements(text))
        shows_work = _shows_work(text)
        text = _first_prose(text) or text
    elif source is FactSource.ASSISTANT:
        statements = tuple(assistant_statements(text))
    fails = source is FactSource.ASSISTANT and reports_failure(text[:_FIRST_WORDS])
    return Reading(source, text[:_REQUEST_CHARS], statements, facts, tuple(calls), tuple(results), fails, unread, shows_work)


def _first_prose(text: str) -> str:
    """Return the first lines that no program wrote, with three dots for those that one wrote."""
    lines: list[str] = []
    left = _REQUEST_CHARS
    for line in text.splitlines():
        if left < 0:
            break
        if is_printed(line):
            lines += ["..."] if lines and lines[-1] != "..." else []
        else:
            lines.append(line)
            left -= len(line)
    return "\n".join(lines)


def _shows_work(text: str) -> bool:
    """Return whether a user's message is long and in good part what programs printed."""
    if len(text) < _DEMONSTRATION_CHARS:
        return False
    printed = sum(len(each.text) for each in passages(text) if each.voice is Voice.PROGRAM)
    return printed > _PRINTED_SHARE * len(text)


def _source(message: Message, text: str) -> FactSource:
    if message.role == "assistant":
        return FactSource.ASSISTANT
    machine = _MACHINE.search(message.name or "") or _OUTPUT.match(text)
    return FactSource.RESULT if machine or message.role != "user" else FactSource.USER


def _add(facts: dict[str, int], more: dict[str, None] | list[str], source: FactSource) -> None:
    bits = source.value
    for fact in more:
        facts[fact] = facts.get(fact, 0) | bits


def _is_short(value: str) -> bool:
    return 1 < len(value) <= _VALUE_CHARS and "\n" not in value and '"' not in value and is_telling(value)


def _paths(values: list[tuple[str, str]]) -> tuple[str, ...]:
    """Return the files and folders among the arguments: values that are a path, and words of a command's first line."""
    words = (word.strip("\"'`,;:()[]{}") for _, value in values for word in value[:400].partition("\n")[0].split()[:40])
    return tuple([word for word in words if "://" not in word and len(word) <= 160 and _PATH.fullmatch(word)])

"""Marks by which a message this package wrote is recognized later, and the text that a collapsed tool call leaves.

Wire formats have no room for private fields, so the mark is the first line of the text::

    [compaction 5f1c09ab by Summarization round 2]

The eight digits are a digest of the rest, so an edited text is read as an ordinary message. But the digest has no key: anybody
can write a mark, a fetched page for instance. So a mark is a hint and never an authority; `Marks` says which ones are believed.
With a key the digits are sixteen, and a signature.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from ..errors import ConfigurationError
from ..messages import Message, TextPart
from .context import RunContext

COLLAPSED_BY: Final = "ToolResult"
"""The strategy whose messages stand for a collapsed tool call and are not summaries of the conversation."""

MARK_START: Final = "[compaction "
"""The start of every mark."""

LAST_ROUND: Final = 999_999
"""The highest number of a version; a summary keeps it from then on."""

NO_CALL: Final = "result"
"""The start of a line for a result without a call."""

_HEAD: Final = "[Tool results]"
_LINE: Final = re.compile(r"\[compaction ([0-9a-f]{8}|[0-9a-f]{16}) by ([A-Za-z_][\w.-]{0,63}) round ([1-9]\d{0,5})\]\n")


@attrs.frozen
class Mark:
    """The mark of a message, and the text after it.

    Args:
        id: Eight hexadecimal digits, a digest of the other three; or sixteen, a signature that only a key can check.
        by: The name of the strategy that wrote it, which alone updates it.
        round: Number of the version, from 1.
        body: The text after the mark.
    """

    id: str
    by: str
    round: int
    body: str


def marked(body: str, *, by: str, round: int = 1) -> str:
    r"""Return the text with its mark in front.

    Args:
        body: The text of the message.
        by: The strategy's name: a letter or underscore, then up to 63 word characters, dots or dashes.
        round: Number of the version, from 1 to 999,999.

    Raises:
        ConfigurationError: If the name or the number is not valid.

    >>> marked("The user wants tea.", by="Summarization")
    '[compaction 3a70adca by Summarization round 1]\nThe user wants tea.'
    """
    return _with_line(_digest(body, by, round), body, by, round)


def read_mark(message: Message) -> Mark | None:
    """Return the mark at the start of a message, else ``None``; O(1) for a message that does not start like one.

    Anybody can write one, so it says nothing about who wrote the message: only `Marks` and the kind of a group do.
    """
    for part in message.parts:
        if isinstance(part, TextPart):
            return _parse(part.text) if part.text.startswith(MARK_START) else None
    return None


def _parse(text: str) -> Mark | None:
    found = _LINE.match(text)
    if found is None:
        return None
    body = text[found.end() :]
    mark = Mark(found[1], found[2], int(found[3]), body)
    return mark if len(mark.id) == _SIGNED_DIGITS or _digest(body, mark.by, mark.round) == mark.id else None


def _with_line(id: str, body: str, by: str, round: int) -> str:
    line = f"{MARK_START}{id} by {by} round {round}]\n"
    if _LINE.fullmatch(line) is None:
        raise ConfigurationError(
            f"marked(by={by!r}, round={round!r}): a mark with these would not be recognized; see its arguments"
        )
    return line + body


@attrs.frozen
class MarkCeiling:
    """How much of a list a strategy's marked messages may be, to be believed without a key.

    Args:
        tokens: Tokens they may have together.
        messages: How many they may be.
    """

    tokens: int
    messages: int = 1


@attrs.frozen(kw_only=True)
class Marks:
    """Which marked messages of a list are read as summaries of this package, and how new ones are marked.

    Without a key, a marked message is believed only while all those of its strategy, counted from the oldest, are no more than
    that strategy writes. Every other marked message is an ordinary one. So forging a mark gains at most a message of bounded
    size, which its strategy replaces.

    Args:
        ceilings: The strategies that write summaries, by name, each with how much that may be; ``None`` to believe any name up
            to `DEFAULT_CEILING`, for a list that is only looked at.
        keys: Secret texts; the first one signs, each one is accepted. With a key, only signed marks are believed.
        origin: The name of the conversation, which a signature holds: a message copied from another one is not believed.
        until: The ordinal from which on unsigned marks are not believed; ``None`` for no end. A session ends it after its first
            list: what is marked later was not written by it.
        known: Digests of the summaries that the session wrote; each is believed once, wherever it stands.
    """

    ceilings: Mapping[str, MarkCeiling] | None = None
    keys: tuple[str, ...] = attrs.field(default=(), repr=False)
    origin: str = ""
    until: int | None = None
    known: frozenset[str] = attrs.field(default=frozenset(), repr=False)

    @classmethod
    def of(cls, ceilings: Mapping[str, MarkCeiling], context: RunContext) -> Marks:
        """Return the marks of a run: the ceilings of its strategy, the keys and the origin of its context."""
        return cls(ceilings=dict(ceilings), keys=context.keys, origin=context.origin)

    def knowing(self, summaries: Iterable[Message]) -> Marks:
        """Return these marks with more summaries that the session wrote."""
        return attrs.evolve(self, known=self.known.union(map(text_digest, summaries)))

    def believes(self, mark: Mark, role: str, ordinal: int, together: MarkCeiling) -> bool:
        """Return whether a marked message is one of this package's own.

        Args:
            mark: Its mark.
            role: Its role.
            ordinal: Its place in the list.
            together: How much it would be with those that were believed of the same strategy before it.
        """
        if mark.by == COLLAPSED_BY:  # it gains nothing: it is treated like the tool call that it says it stands for
            return True
        if self.keys:
            return any(hmac.compare_digest(mark.id, self._signature(key, mark, role)) for key in self.keys)
        if len(mark.id) == _SIGNED_DIGITS or (self.until is not None and ordinal >= self.until):
            return False
        ceiling = DEFAULT_CEILING if self.ceilings is None else self.ceilings.get(mark.by, _NOTHING)
        return together.tokens <= ceiling.tokens and together.messages <= ceiling.messages

    def write(self, body: str, *, by: str, round: int = 1, role: str) -> str:
        """Return a text with its mark in front, signed if there is a key; arguments and errors are those of `marked`."""
        if not self.keys:
            return marked(body, by=by, round=round)
        return _with_line(self._signature(self.keys[0], Mark("", by, round, body), role), body, by, round)

    def _signature(self, key: str, mark: Mark, role: str) -> str:
        content = "\n".join([self.origin.replace("\n", " "), role, mark.by, str(mark.round), mark.body.strip()])
        secret = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=64).digest()
        text = content.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(text, key=secret, digest_size=_SIGNED_DIGITS // 2).hexdigest()


DEFAULT_CEILING: Final = MarkCeiling(24_000, 1_000)
"""How much the marked messages of a strategy may be in a list that is read without knowing its strategies."""

_NOTHING: Final = MarkCeiling(0, 0)

_SIGNED_DIGITS: Final = 16


def text_digest(message: Message) -> str:
    """Return what two messages share if they are of one role and say the same."""
    return hashlib.blake2b(f"{message.role}\n{message.text}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _digest(body: str, by: str, round: int) -> str:
    content = f"{by}\n{round}\n{body.strip()}".encode("utf-8", "surrogatepass")
    return hashlib.blake2s(content, digest_size=4).hexdigest()


def collapsed_text(said: Iterable[str], lines: Iterable[str]) -> str:
    """Return the text that stands for a collapsed tool call.

    Args:
        said: The assistant's texts beside the calls.
        lines: A line for each call, ``name(arguments) -> outcome``, without line breaks.

    >>> text = collapsed_text(["I look it up."], ["read_file(path=a.py) -> import os"])
    >>> print(text)
    I look it up.
    [Tool results]
    read_file(path=a.py) -> import os
    >>> tools_of(text)
    ('read_file',)
    """
    return "\n".join([*said, _HEAD, *lines])


def tools_of(text: str) -> tuple[str, ...]:
    """Return the tool names in such a text, in order; O(text). A name is cut at a bracket or a line break."""
    _, found, lines = text.rpartition(f"{_HEAD}\n")
    calls = [line.partition(" -> ")[0] for line in lines.split("\n")] if found else []
    return tuple([call.partition("(")[0] for call in calls if "(" in call])

"""Marks: the first line of a summary, by which it is recognized in a later list.

No field of a wire format can record that a message is a summary. Its text therefore begins with a mark::

    [compaction 5f1c09ab by Summarization round 2]

The model sees the mark. The eight hexadecimal digits are a checksum of the name, the version number (``round``) and the text.
If somebody edits the text, the checksum no longer matches, and the message is read as an ordinary one. Anybody can write such a
mark, for example the author of a web page that the agent fetched, so a mark proves nothing. `Marks` decides which ones are
*believed*, that is, which marked messages are read as summaries. With a secret key (``RunContext.keys``), the mark has sixteen
digits, which are a signature of the text, the role, the name, the version number and the ``origin`` of the context.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from typing import Final

import attrs

from ..errors import ConfigurationError
from ..messages import Message, TextPart, ToolCallPart
from .context import RunContext

MARK_START: Final = "[compaction "
"""The start of every mark."""

COLLAPSED_BY: Final = "ToolResult"
"""The strategy named in the mark of a collapsed tool call. Such a message is not a summary of the conversation."""

LAST_ROUND: Final = 999_999
"""The highest version number; a summary that reached it keeps it."""

_SIGNED_DIGITS: Final = 16
_LINE: Final = re.compile(r"\[compaction ([0-9a-f]{8}|[0-9a-f]{16}) by ([^\W\d][\w.-]{0,63}) round ([1-9]\d{0,5})\]\n")


@attrs.frozen
class Mark:
    """The mark of a message, and the text after it."""

    id: str  # eight hexadecimal digits, a checksum of ``by``, ``round`` and ``body``; or sixteen, a signature made with a key
    by: str  # the name of the strategy that wrote the summary. Only a strategy with this name updates it
    round: int
    body: str


def marked(body: str, *, by: str, round: int = 1) -> str:
    r"""Return the text with its mark in front.

    Args:
        body: The text of the message.
        by: The strategy's name: a letter or underscore, then up to 63 word characters, dots or dashes.
        round: The version number, from 1 to 999,999.

    Raises:
        ConfigurationError: If the name or the number is not valid.

    >>> marked("The user wants tea.", by="Summarization")
    '[compaction 3a70adca by Summarization round 1]\nThe user wants tea.'
    """
    return _with_line(_digest(body, by, round), body, by, round)


def read_mark(message: Message) -> Mark | None:
    """Return the mark at the start of a message, or ``None``; O(1) for a message that does not begin with `MARK_START`.

    A message with a second text has none, because a summary has one text: what follows would be lost with it. A mark does not
    prove who wrote the message. Only `BelievedMarks` asks for the mark of a message of the conversation; everybody else asks
    the message's group (`MessageGroup.mark`).
    """
    texts = [part.text for part in message.parts if isinstance(part, TextPart)]
    if not texts or not texts[0].startswith(MARK_START) or any(map(str.strip, texts[1:])):
        return None
    found = _LINE.match(texts[0])
    if found is None:
        return None
    mark = Mark(found[1], found[2], int(found[3]), texts[0][found.end() :])
    return mark if len(mark.id) == _SIGNED_DIGITS or _digest(mark.body, mark.by, mark.round) == mark.id else None


def _with_line(id: str, body: str, by: str, round: int) -> str:
    line = f"{MARK_START}{id} by {by} round {round}]\n"
    if _LINE.fullmatch(line) is None:
        raise ConfigurationError(
            f"marked(by={by!r}, round={round!r}): a mark with these would not be recognized; by= is a letter or underscore, "
            f"then up to 63 word characters, dots or dashes, and round= a number from 1 to {LAST_ROUND:,}"
        )
    return line + body


@attrs.frozen
class MarkCeiling:
    """The limits up to which a strategy's marked messages are believed without a key.

    Args:
        tokens: The most tokens of all these messages together.
        messages: The most messages.
        frames: The start and the end that the texts after the marks have, one pair for each way in which the strategy is set
            up; empty if they have no certain start and end. A text without them is not believed: it is somebody's words.
    """

    tokens: int
    messages: int = 1
    frames: tuple[tuple[str, str], ...] = ()

    def joined(self, other: MarkCeiling) -> MarkCeiling:
        """Return the limits within which the messages of both are."""
        frames = tuple(dict.fromkeys([*self.frames, *other.frames])) if self.frames and other.frames else ()
        return MarkCeiling(max(self.tokens, other.tokens), max(self.messages, other.messages), frames)

    def is_framed(self, body: str) -> bool:
        """Whether the text after a mark has a start and an end that it should have."""
        text = body.strip()
        return not self.frames or any(text.startswith(start) and text.endswith(end) for start, end in self.frames)


DEFAULT_CEILING: Final = MarkCeiling(24_000, 1_000)
"""The limits for a strategy's marked messages in a list that is read without the strategies that wrote it."""

_NOTHING: Final = MarkCeiling(0, 0)


@attrs.frozen(kw_only=True)
class Marks:
    """The rules by which marked messages are read as summaries of this package, and by which new summaries are marked.

    Without a key, the oldest marked messages of each strategy are believed until its limit is reached; the others are ordinary
    messages. So a forged mark can only make messages within this limit look like summaries, until the next update replaces
    them.

    Args:
        ceilings: The limits of each strategy that writes summaries, by its name; ``None`` to accept any name up to
            `DEFAULT_CEILING`, for a list that is only inspected.
        keys: Secret texts; the first one signs, all are accepted. With a key, only signed marks are believed.
        origin: The name of the conversation. It is part of a signature, so a summary copied from another one is not believed.
        until: Unsigned marks at this position or later are not believed; ``None`` for no limit. A session sets it after its
            first list: from then on it knows its own summaries (``own``), so any other marked message is an ordinary one.
        own: Checksums of the summaries that the session wrote. A message with one of them is read as a summary, once and at
            any position.
    """

    ceilings: Mapping[str, MarkCeiling] | None = None
    keys: tuple[str, ...] = attrs.field(default=(), repr=False)
    origin: str = ""
    until: int | None = None
    own: frozenset[str] = attrs.field(default=frozenset(), repr=False)

    @classmethod
    def of(cls, ceilings: Mapping[str, MarkCeiling], context: RunContext) -> Marks:
        """Return the marks of a run, with the ceilings of its strategy and the keys and origin of its context."""
        return cls(ceilings=dict(ceilings), keys=context.keys, origin=context.origin)

    def believes(self, mark: Mark, role: str, ordinal: int, totals: MarkCeiling) -> bool:
        """Return whether a marked message, at a position, is read as a summary of this package.

        ``totals`` are those of the same strategy's believed messages, this one included.
        """
        if mark.by == COLLAPSED_BY:
            # It is never signed. Forging it gains nothing: the message is treated like the tool call that it replaces.
            return len(mark.id) != _SIGNED_DIGITS
        if self.keys:
            return any(hmac.compare_digest(mark.id, self._signature(key, mark, role)) for key in self.keys)
        if len(mark.id) == _SIGNED_DIGITS or (self.until is not None and ordinal >= self.until):
            return False
        ceiling = DEFAULT_CEILING if self.ceilings is None else self.ceilings.get(mark.by, _NOTHING)
        return totals.tokens <= ceiling.tokens and totals.messages <= ceiling.messages and ceiling.is_framed(mark.body)

    def write(self, body: str, *, by: str, round: int = 1, role: str) -> str:
        """Return a text with its mark in front, signed if there is a key; arguments and errors as for `marked`."""
        if not self.keys:
            return marked(body, by=by, round=round)
        return _with_line(self._signature(self.keys[0], Mark("", by, round, body), role), body, by, round)

    def _signature(self, key: str, mark: Mark, role: str) -> str:
        content = "\n".join([self.origin.replace("\n", " "), role, mark.by, str(mark.round), mark.body.strip()])
        secret = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=64).digest()
        text = content.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(text, key=secret, digest_size=_SIGNED_DIGITS // 2).hexdigest()


class BelievedMarks:
    """The marked messages of a conversation that are read as summaries. Holds state: the totals so far."""

    def __init__(self, rules: Marks) -> None:
        self.rules = rules  # may be replaced, but only by rules that give the same result for the messages so far
        self.found = False  # whether any message begins with a mark, believed or not
        self._totals: dict[str, MarkCeiling] = {}
        self._own: set[str] = set()  # checksums of the session's summaries that were found

    def believed(self, message: Message, ordinal: int, tokens: int) -> Mark | None:
        """Return the mark of the next message of the conversation if it is read as a summary; otherwise ``None``."""
        mark = read_mark(message)
        if mark is None:
            return None
        self.found = True
        if message.role not in ("user", "assistant") or any(isinstance(part, ToolCallPart) for part in message.parts):
            return None
        if self.rules.own and (digest := text_digest(message)) in self.rules.own - self._own:
            self._own.add(digest)
            return mark
        before = self._totals.get(mark.by, _NOTHING)
        totals = MarkCeiling(before.tokens + tokens, before.messages + 1)
        if not self.rules.believes(mark, message.role, ordinal, totals):
            return None
        self._totals[mark.by] = totals
        return mark


def text_digest(message: Message) -> str:
    """Return a checksum of a message's role and text."""
    return hashlib.blake2b(f"{message.role}\n{message.text}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _digest(body: str, by: str, round: int) -> str:
    content = f"{by}\n{round}\n{body.strip()}".encode("utf-8", "surrogatepass")
    return hashlib.blake2s(content, digest_size=4).hexdigest()

"""Two checks a host makes beside its engine: is a session too large to start with, and is the next compaction near.

Both are values; a host asks them and shows what they say. Neither writes into the conversation. Hermes Agent once warned the
model itself, and took that out again: told that its context was short, it gave up on complex tasks early. So a notice is for
the person in front of the host, and an engine makes none unless it is given a `ContextPressure`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from ..checks import count, share
from ..formats import MessageFormat
from ..index import MessageIndex

__all__ = ["ContextPressure", "Hygiene", "PressureNotice", "SessionHygiene"]


@attrs.frozen(kw_only=True)
class Hygiene:
    """What `SessionHygiene` found.

    Args:
        due: Whether to compact before the agent runs.
        tokens: Tokens of the session.
        limit: Tokens at which it is due.
        estimated: Whether the tokens are an estimate, as nothing was reported.
    """

    due: bool
    tokens: int
    limit: int
    estimated: bool


@attrs.frozen(kw_only=True)
class SessionHygiene:
    """Whether a session outgrew its window between turns, as one that gathered messages overnight; asked before the agent runs.

    It is a safety net above the engine's own threshold. At the same share it would fire on every turn of a long session.

    Args:
        ratio: Share of the window, above 0 and at most 1.
        least_messages: Sessions of fewer messages are left alone.

    >>> chat = [{"role": "user", "content": "word " * 80}] * 5
    >>> SessionHygiene().check(chat, window=500)
    Hygiene(due=True, tokens=520, limit=425, estimated=True)
    """

    ratio: float = attrs.field(default=0.85, validator=share)
    least_messages: int = attrs.field(default=4, validator=count())

    def check(
        self,
        messages: Sequence[Any],
        *,
        window: int,
        reported_tokens: int | None = None,
        enabled: bool = True,
        format: MessageFormat | str | None = None,
    ) -> Hygiene:
        """Look at a session; O(1) with reported tokens, else O(characters).

        Args:
            messages: The whole session.
            window: The model's window in tokens, > 0.
            reported_tokens: What the provider reported for the last turn; by default four characters are taken for a token.
            enabled: Whether the host compacts at all.
            format: The wire format; ``None`` to look, see `compaction.formats.resolve`.

        Raises:
            InputError: If tokens have to be estimated and the session is no list of messages.
        """
        estimated = not reported_tokens or reported_tokens < 0
        tokens = MessageIndex(messages, counter="chars/4", format=format).tokens if estimated else int(reported_tokens or 0)
        limit = int(window * self.ratio)
        return Hygiene(
            due=enabled and len(messages) >= self.least_messages and tokens >= limit,
            tokens=tokens,
            limit=limit,
            estimated=estimated,
        )


@attrs.frozen(kw_only=True)
class PressureNotice:
    """That the next compaction is near.

    Args:
        tokens: Tokens used.
        threshold_tokens: Tokens at which compaction is due.
    """

    tokens: int
    threshold_tokens: int

    def __str__(self) -> str:
        share_used = self.tokens / self.threshold_tokens
        return f"Context is {share_used:.0%} to compaction threshold ({self.tokens:,}/{self.threshold_tokens:,} tokens)"


@attrs.frozen(kw_only=True)
class ContextPressure:
    """Whether to tell that the next compaction is near: once, until usage has fallen below the share again.

    Args:
        ratio: Share of the compaction threshold (not of the window), above 0 and at most 1.
        told: Whether it was told already.

    >>> pressure, notice = ContextPressure().seen(42_500, 50_000)
    >>> print(notice)
    Context is 85% to compaction threshold (42,500/50,000 tokens)
    >>> pressure.seen(45_000, 50_000)[1] is None, pressure.seen(20_000, 50_000)[0].told
    (True, False)
    """

    ratio: float = attrs.field(default=0.85, validator=share)
    told: bool = False

    def seen(self, tokens: int, threshold_tokens: int) -> tuple[ContextPressure, PressureNotice | None]:
        """The state after a reported usage, and what is to be told now.

        Args:
            tokens: Tokens reported.
            threshold_tokens: Tokens at which compaction is due.
        """
        near = threshold_tokens > 0 and tokens >= self.ratio * threshold_tokens
        notice = PressureNotice(tokens=tokens, threshold_tokens=threshold_tokens) if near and not self.told else None
        return attrs.evolve(self, told=near), notice

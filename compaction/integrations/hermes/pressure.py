"""Two checks that a host makes beside its engine: whether a session is already too large, and whether a compaction is near.

Both are values whose answers the host shows; neither writes into the conversation. Hermes Agent once warned the model itself
and removed that again: a model that knew its context was short gave up on complex tasks early. So a notice is for the user, and
an engine makes none unless it is given a `ContextPressure`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from ...checks import count, share
from ...formats import MessageFormat
from ...index import MessageIndex
from .settings import EngineSettings


@attrs.frozen(kw_only=True)
class Hygiene:
    """The result of a `SessionHygiene` check.

    Args:
        due: Whether to compact before the agent runs.
        tokens: Tokens of the session.
        limit: Tokens at which a compaction is due.
        estimated: Whether the tokens are an estimate, because none were reported.
    """

    due: bool
    tokens: int
    limit: int
    estimated: bool


@attrs.frozen(kw_only=True)
class SessionHygiene:
    """A check, before the agent runs, whether a session outgrew its window between turns, for instance overnight.

    It is a safety net above the engine's own threshold; at the same share, it would fire on every turn of a long session.

    Args:
        ratio: Share of the window, above 0 and at most 1.
        least_messages: The smallest number of messages for which it is ever due.
        enabled: Whether the host compacts at all; if not, it is never due. Hermes Agent calls it ``compression.enabled``.

    >>> chat = [{"role": "user", "content": "word " * 80}] * 5
    >>> SessionHygiene().check(chat, window=500)
    Hygiene(due=True, tokens=520, limit=425, estimated=True)
    """

    ratio: float = attrs.field(default=0.85, validator=share)
    least_messages: int = attrs.field(default=4, validator=count())
    enabled: bool = True

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> SessionHygiene:
        """Return the check for a host's configuration: off where ``compression.enabled`` is false.

        Args:
            config: The parsed file.

        Raises:
            ConfigurationError: If a value that `EngineSettings.from_config` reads is wrong; names its key.

        >>> SessionHygiene.from_config({"compression": {"enabled": False}}).enabled
        False
        """
        return cls(enabled=EngineSettings.from_config(config).enabled)

    def check(
        self,
        messages: Sequence[Any],
        *,
        window: int,
        reported_tokens: int | None = None,
        format: MessageFormat | str | None = None,
    ) -> Hygiene:
        """Check a session; O(1) with reported tokens, otherwise O(characters).

        Args:
            messages: The whole session.
            window: The model's context window in tokens, > 0.
            reported_tokens: Tokens that the provider reported for the last turn; by default one for every four characters.
            format: The wire format; ``None`` to detect it, see `compaction.formats.resolve`.

        Raises:
            InputError: If tokens must be estimated and the session is not a list of messages.
        """
        estimated = not reported_tokens or reported_tokens < 0
        tokens = MessageIndex(messages, counter="chars/4", format=format).tokens if estimated else int(reported_tokens or 0)
        limit = int(window * self.ratio)
        return Hygiene(
            due=self.enabled and len(messages) >= self.least_messages and tokens >= limit,
            tokens=tokens,
            limit=limit,
            estimated=estimated,
        )


@attrs.frozen(kw_only=True)
class PressureNotice:
    """A notice that the next compaction is near.

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
    """Decides when to give notice that the next compaction is near: once, until usage falls below the share again.

    Args:
        ratio: Share of the compaction threshold (not of the window), above 0 and at most 1.
        told: Whether the notice was given already.

    >>> pressure, notice = ContextPressure().seen(42_500, 50_000)
    >>> print(notice)
    Context is 85% to compaction threshold (42,500/50,000 tokens)
    >>> pressure.seen(45_000, 50_000)[1] is None, pressure.seen(20_000, 50_000)[0].told
    (True, False)
    """

    ratio: float = attrs.field(default=0.85, validator=share)
    told: bool = False

    def seen(self, tokens: int, threshold_tokens: int) -> tuple[ContextPressure, PressureNotice | None]:
        """Return the state after a reported usage, and the notice to give now, if any.

        Args:
            tokens: Tokens reported.
            threshold_tokens: Tokens at which compaction is due.
        """
        near = threshold_tokens > 0 and tokens >= self.ratio * threshold_tokens
        notice = PressureNotice(tokens=tokens, threshold_tokens=threshold_tokens) if near and not self.told else None
        return attrs.evolve(self, told=near), notice

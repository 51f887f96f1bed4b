"""Two checks besides the engine's: a session that is already too large, and a compaction that is near.

Neither check changes the conversation; the host shows the results. Hermes Agent once warned the model itself and removed the
warning, because the model then gave up on complex tasks early. A notice is therefore for the user, and an engine has none
unless it gets a `ContextPressure`.
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
    """A check before the agent runs: a session may outgrow its window between turns, for instance overnight.

    Its limit is above the engine's threshold; at the same share, a compaction would be due on every turn of a long session.

    Args:
        ratio: Share of the window, above 0 and at most 1.
        least_messages: The smallest number of messages for which a compaction is due.
        enabled: Whether a compaction can be due; Hermes Agent's ``compression.enabled``.

    >>> chat = [{"role": "user", "content": "word " * 80}] * 5
    >>> SessionHygiene().check(chat, window=500)
    Hygiene(due=True, tokens=520, limit=425, estimated=True)
    """

    ratio: float = attrs.field(default=0.85, validator=share)
    least_messages: int = attrs.field(default=4, validator=count())
    enabled: bool = True

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> SessionHygiene:
        """Return the check for a host's configuration, disabled if ``compression.enabled`` is false.

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
class ContextPressure:
    """A notice that the next compaction is near: once, until usage falls below the share again.

    Args:
        ratio: Share of the compaction threshold (not of the window), above 0 and at most 1.
        told: Whether the notice has been given.

    >>> pressure, notice = ContextPressure().seen(42_500, 50_000)
    >>> notice
    'Context is 85% to compaction threshold (42,500/50,000 tokens)'
    >>> pressure.seen(45_000, 50_000)[1] is None, pressure.seen(20_000, 50_000)[0].told
    (True, False)
    """

    ratio: float = attrs.field(default=0.85, validator=share)
    told: bool = False

    def seen(self, tokens: int, threshold_tokens: int) -> tuple[ContextPressure, str | None]:
        """Return the state after reported usage, and the notice to show now, if any.

        Args:
            tokens: Tokens reported.
            threshold_tokens: Tokens at which compaction is due.
        """
        near = threshold_tokens > 0 and tokens >= self.ratio * threshold_tokens
        if not near or self.told:
            return attrs.evolve(self, told=near), None
        share_used = f"{tokens / threshold_tokens:.0%}"
        notice = f"Context is {share_used} to compaction threshold ({tokens:,}/{threshold_tokens:,} tokens)"
        return attrs.evolve(self, told=True), notice

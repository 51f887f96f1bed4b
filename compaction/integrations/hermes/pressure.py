"""Checks besides the engine's threshold: a session that is already too large, a compaction that is near or has had no effect.

A host calls `hygiene_due` before the agent runs. The engine calls `pressure_notice` with each report, for ``get_status``.
Hermes Agent once warned the model itself and removed the warning, because the model then gave up on complex tasks early. A
notice is therefore for the user: the host shows it, or leaves it out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import attrs

from ...formats import MessageFormat
from ...index import MessageIndex, UselessRuns

_NEAR: Final = 0.85  # of the window, or of the threshold; Hermes Agent's figures
_LEAST_MESSAGES: Final = 4
_NEW_SHARE: Final = 10  # a tenth of the threshold must be new


def hygiene_due(
    messages: Sequence[Any], window: int, *, reported_tokens: int | None = None, format: MessageFormat | str | None = None
) -> bool:
    """Return whether to compact before the agent runs, because the session has outgrown 85 % of its window between turns.

    The limit is above the engine's threshold; at the same share, a compaction would be due on every turn of a long session. Ask
    only if `EngineSettings.enabled`. Cost: O(1) with reported tokens, otherwise O(characters).

    Args:
        messages: The whole session; with fewer than four messages, nothing is due.
        window: The model's context window in tokens, > 0.
        reported_tokens: Tokens that the provider reported for the last turn; by default one for every four characters.
        format: The wire format; ``None`` to detect it, see `compaction.formats.resolve`.

    Raises:
        InputError: If tokens must be estimated and the session is not a list of messages.

    >>> hygiene_due([{"role": "user", "content": "word " * 80}] * 5, window=500)
    True
    """
    tokens = reported_tokens or 0
    if tokens <= 0:
        tokens = MessageIndex(messages, counter="chars/4", format=format).tokens
    return len(messages) >= _LEAST_MESSAGES and tokens >= int(window * _NEAR)


def pressure_notice(tokens: int, threshold_tokens: int, last_tokens: int = 0) -> str | None:
    """Return a notice for the user that the next compaction is near, at 85 % of the threshold; ``None`` for nothing new.

    Args:
        tokens: Tokens reported.
        threshold_tokens: Tokens at which compaction is due.
        last_tokens: Tokens reported before. If they were near the threshold too, the user has been told.

    >>> pressure_notice(42_500, 50_000)
    'Context is 85% to compaction threshold (42,500/50,000 tokens)'
    >>> pressure_notice(45_000, 50_000, last_tokens=42_500) is None
    True
    """
    near = threshold_tokens * _NEAR
    if threshold_tokens <= 0 or tokens < near or last_tokens >= near:
        return None
    return f"Context is {tokens / threshold_tokens:.0%} to compaction threshold ({tokens:,}/{threshold_tokens:,} tokens)"


@attrs.define
class Progress:
    """The success of the last compactions. Holds state.

    A compaction after which the reported tokens are still at the threshold or above it is a strike; one that changed nothing
    is not. After two strikes in a row the next compaction waits until the request has grown by a tenth of the threshold, or
    fills the window.

    >>> progress = Progress()
    >>> for _ in range(2):
    ...     progress.ran(changed=True)
    ...     progress.reported(5_000, 4_000)
    >>> progress.waits(5_100, 4_000, window=8_000), progress.waits(5_500, 4_000, window=8_000)
    (True, False)
    """

    _useless: UselessRuns = attrs.field(factory=UselessRuns)
    _awaits_report: bool = False
    _last_reported: int = 0
    _first_estimate: int | None = None

    def ran(self, *, changed: bool) -> None:
        """Record that a compaction ended."""
        self._awaits_report = self._awaits_report or changed

    def reported(self, tokens: int, threshold: int) -> None:
        """Record the tokens that a provider reported; 0 if it reported none."""
        if not tokens:
            return
        self._last_reported = tokens
        if tokens < threshold:
            self._useless = UselessRuns()
        elif self._awaits_report:
            self._useless = self._useless.and_another(0, until_tokens=tokens + threshold // _NEW_SHARE)
            self._first_estimate = None
        self._awaits_report = False

    def waits(self, tokens: int, threshold: int, *, window: int) -> bool:
        """Return whether too little is new in a request since the last strike.

        Reported tokens are compared with reported ones, and a host's estimates with its first estimate since.
        """
        if self._useless.until_tokens is None or tokens >= window:
            return False
        if tokens == self._last_reported:
            return self._useless.is_paused(tokens)
        if self._first_estimate is None:
            self._first_estimate = tokens
        return tokens < self._first_estimate + threshold // _NEW_SHARE

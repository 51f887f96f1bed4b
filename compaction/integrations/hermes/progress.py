"""Tracks the effect of compactions: an engine that stays above its threshold waits until the request has grown."""

from __future__ import annotations

from typing import Final

import attrs

from ...index import UselessRuns

_NEW_SHARE: Final = 10  # a tenth of the threshold must be new


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
        """Return whether too little is new since the last strike.

        Reported tokens are compared with reported ones, and a host's estimates with its first estimate since.

        Args:
            tokens: Tokens of the request.
            threshold: Tokens at which a compaction is due.
            window: Tokens of the model's context window.
        """
        if self._useless.until_tokens is None or tokens >= window:
            return False
        if tokens == self._last_reported:
            return self._useless.is_paused(tokens)
        if self._first_estimate is None:
            self._first_estimate = tokens
        return tokens < self._first_estimate + threshold // _NEW_SHARE

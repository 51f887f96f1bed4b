"""The history of earlier runs: which strategies failed or saved too little lately, and how long they pause."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final, cast

import attrs

from ..errors import StateError
from ..json_data import finite_number, natural_number

PAUSE_SECONDS: Final = (60.0, 300.0, 900.0)
"""The pause in seconds after one, two, and three or more failures in a row; the figures are Hermes Agent's."""

# A run that saves less than 1/20 of the request is not worth the prompt cache that it breaks. Chosen, not measured.
_LITTLE: Final = 20
_RUNS: Final = 2
# The strategy runs again when the request has grown by 1/10, the default of `Summarization.least_share`.
_NEW: Final = 10
_MAX_STRATEGIES: Final = 64
_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")


@attrs.frozen
class UselessRuns:
    """The last runs in a row that did not help, and the size of a request from which it is worth trying again.

    Args:
        saved: Tokens that each of them saved.
        until_tokens: The size of the request at which the strategy runs again; ``None`` without a pause.

    >>> runs = UselessRuns().after(10_000, 9_900).after(10_000, 9_800)
    >>> runs.is_paused(10_500), runs.is_paused(10_800)
    (True, False)
    """

    saved: tuple[int, ...] = ()
    until_tokens: int | None = None

    def after(self, before: int, after: int) -> UselessRuns:
        """Return the runs after one that changed a request's tokens; it helped if it saved a twentieth of them."""
        if (before - after) * _LITTLE >= before:
            return UselessRuns()
        return self.and_another(before - after, until_tokens=after + before // _NEW)

    def and_another(self, saved: int, *, until_tokens: int) -> UselessRuns:
        """Return the runs with one more that saved little. After two in a row, the next runs at ``until_tokens``."""
        runs = (*self.saved[1 - _RUNS :], saved)
        return UselessRuns(runs, None if len(runs) < _RUNS else until_tokens)

    def is_paused(self, tokens: int) -> bool:
        """Return whether the pause lasts for a request of this size."""
        return self.until_tokens is not None and tokens < self.until_tokens


class RunHistory:
    """Whether strategies helped lately, and so whether they should pause. Holds state.

    It has the consecutive failures of each strategy with the time of the last one, and summaries that saved nothing.

    A session has one object for its whole life; a run without a session has its own. A strategy is identified by its `repr`
    without memory addresses: two strategies with different options pause separately, and an equal strategy in another process
    continues the pause. Without a clock no failure pauses a strategy.

    >>> history = RunHistory()
    >>> history.record_failure("summarize with m", 0.0)
    >>> history.is_paused("summarize with m", 59.0), history.is_paused("summarize with m", 60.0)
    (True, False)
    """

    def __init__(self) -> None:
        self._failures: dict[str, tuple[int, float]] = {}
        self._no_gain: dict[str, int] = {}

    def is_paused(self, strategy: object, now: float | None) -> bool:
        """Return whether a strategy failed so recently that it should not try again ``now``.

        It is false without a clock, and after a clock went back, as a monotonic one does when the machine restarts.
        """
        if now is None or not self._failures:
            return False
        failures, since = self._failures.get(_key(strategy), (0, 0.0))
        return failures > 0 and 0 <= now - since < PAUSE_SECONDS[min(failures, len(PAUSE_SECONDS)) - 1]

    def record_failure(self, strategy: object, now: float | None) -> None:
        """Record that a strategy failed now; does nothing without a clock."""
        if now is None:
            return
        key = _key(strategy)
        failures, _ = self._failures.pop(key, (0, 0.0))
        self._failures[key] = (failures + 1, now)
        _drop_oldest(self._failures)

    def record_success(self, strategy: object) -> None:
        """Forget a strategy's failures, and its summary that saved nothing."""
        if self._failures or self._no_gain:
            key = _key(strategy)
            self._failures.pop(key, None)
            self._no_gain.pop(key, None)

    def record_no_gain(self, strategy: object, tokens: int) -> None:
        """Record that a summary of groups with this many tokens was written, and would not have saved any."""
        self.record_success(strategy)
        self._no_gain[_key(strategy)] = tokens
        _drop_oldest(self._no_gain)

    def no_gain(self, strategy: object) -> int | None:
        """Return how many tokens a strategy last summarized without saving any; ``None`` if it has saved some since."""
        return self._no_gain.get(_key(strategy)) if self._no_gain else None

    def clear(self) -> None:
        """End all pauses, for a run that a user asked for."""
        self._failures.clear()
        self._no_gain.clear()

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data: the number of failures of each strategy and the time of the last, and its `no_gain`."""
        return {"failures": {key: list(each) for key, each in self._failures.items()}, "no_gain": self._no_gain.copy()}

    @classmethod
    def from_dict(cls, data: object) -> RunHistory:
        """Return the history that `to_dict` described; raise a `StateError` if an entry cannot be one."""
        pauses, saved = cls(), cast("Mapping[str, Any]", data)
        try:
            for key, (failures, since) in saved.get("failures", {}).items():
                pauses._failures[str(key)] = (natural_number(failures), finite_number(since))
            for key, tokens in saved.get("no_gain", {}).items():
                pauses._no_gain[str(key)] = natural_number(tokens)
        except (AttributeError, TypeError, ValueError) as error:
            raise StateError(f"pauses: not what to_dict returned ({error}); start a new session") from error
        return pauses


def _drop_oldest(known: dict[str, Any]) -> None:
    if len(known) > _MAX_STRATEGIES:
        del known[next(iter(known))]


def _key(strategy: object) -> str:
    """Return a short name for a strategy's value, the same in every process."""
    text = _ADDRESS.sub("", repr(strategy))
    return f"{type(strategy).__name__} {hashlib.blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"

"""The pauses of strategies: how long one whose summarizer or store failed, or saved nothing, is left alone.

A strategy reads and records them through its index's context::

    pauses, now = index.context.pauses, index.context.now
    if pauses.is_paused(self, now):
        return
    ...                                  # ask the summarizer
    pauses.record_failure(self, now)     # it failed: pause longer each time in a row
    pauses.record_success(self)          # it worked: the next failure counts as the first
    pauses.record_no_gain(self, tokens)  # it worked, and saved nothing: wait for other content, however long that takes
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final, cast

from ..errors import StateError
from ..json_data import finite_number, natural_number

__all__ = ["PAUSE_SECONDS", "FailurePauses"]

PAUSE_SECONDS: Final = (60.0, 300.0, 900.0)
"""The pause after one, two, and three or more failures in a row; the figures are Hermes Agent's."""

_MAX_STRATEGIES: Final = 64
_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")


class FailurePauses:
    """The failures in a row of each strategy, when the last one was, and what saved nothing. Holds state.

    A session has one for its whole life; a run without a session has its own. A strategy is known by its value: two steps with
    different options pause apart, and an equal strategy in another process continues the pause. Memory addresses in a `repr`
    are left out, so two objects that differ only in theirs count as equal. Without a clock nothing is paused.

    >>> pauses = FailurePauses()
    >>> pauses.record_failure("summarize with m", 0.0)
    >>> pauses.is_paused("summarize with m", 59.0), pauses.is_paused("summarize with m", 60.0)
    (True, False)
    """

    def __init__(self) -> None:
        self._failures: dict[str, tuple[int, float]] = {}
        self._no_gain: dict[str, int] = {}

    def is_paused(self, strategy: object, now: float | None) -> bool:
        """Return whether a strategy failed so recently that it should not try again yet.

        Args:
            strategy: The strategy, with its options.
            now: The time of the run's context, in seconds; ``None`` without a clock.
        """
        if now is None or not self._failures:
            return False
        failures, since = self._failures.get(_key(strategy), (0, 0.0))
        return failures > 0 and now - since < PAUSE_SECONDS[min(failures, len(PAUSE_SECONDS)) - 1]

    def record_failure(self, strategy: object, now: float | None) -> None:
        """Record that a strategy failed now; does nothing without a clock."""
        if now is None:
            return
        key = _key(strategy)
        failures, _ = self._failures.pop(key, (0, 0.0))
        self._failures[key] = (failures + 1, now)
        _drop_oldest(self._failures)

    def record_success(self, strategy: object) -> None:
        """Forget a strategy's failures, and what saved nothing."""
        if self._failures or self._no_gain:
            key = _key(strategy)
            self._failures.pop(key, None)
            self._no_gain.pop(key, None)

    def record_no_gain(self, strategy: object, tokens: int) -> None:
        """Record that summarizing this many tokens worked, and would have saved nothing."""
        self.record_success(strategy)
        self._no_gain[_key(strategy)] = tokens
        _drop_oldest(self._no_gain)

    def no_gain(self, strategy: object) -> int | None:
        """Return how many tokens a strategy last summarized without saving any; ``None`` if it saved some since."""
        return self._no_gain.get(_key(strategy)) if self._no_gain else None

    def clear(self) -> None:
        """Forget all failures, for a run that a user asked for."""
        self._failures.clear()

    def to_dict(self) -> dict[str, list[float]]:
        """Return JSON-ready data: each strategy's failures in a row and the time of the last one, or what saved nothing."""
        saved: dict[str, list[float]] = {key: [failures, since] for key, (failures, since) in self._failures.items()}
        return {**saved, **{key: [0, 0.0, tokens] for key, tokens in self._no_gain.items() if key not in saved}}

    @classmethod
    def from_dict(cls, data: object) -> FailurePauses:
        """Return the pauses that `to_dict` described.

        Raises:
            StateError: If the data is not what `to_dict` returned.
        """
        pauses = cls()
        try:
            for key, (failures, since, *no_gain) in cast("Mapping[str, Any]", data).items():
                if no_gain:
                    pauses._no_gain[str(key)] = natural_number(*no_gain)
                else:
                    pauses._failures[str(key)] = (natural_number(failures), finite_number(since))
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

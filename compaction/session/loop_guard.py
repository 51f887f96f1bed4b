"""The loop guard: a strategy that saves next to nothing, run after run, pauses until there is something new to save."""

from __future__ import annotations

from typing import Final

__all__ = ["LoopGuard"]

_LITTLE: Final = 0.05  # of the request: a run that saves less is not worth the prompt cache it breaks
_RUNS: Final = 2
_NEW: Final = 0.10  # of the request that must be new before the strategy runs again; `Summarization.least_share` is the same


class LoopGuard:
    """Watches how much the runs of a session save. Holds state: the runs in a row that saved little, and when to go on.

    >>> guard = LoopGuard()
    >>> guard.note(10_000, 9_900), guard.note(10_000, 9_800)
    (False, True)
    >>> guard.pauses(10_500), guard.pauses(10_800)
    (True, False)
    """

    def __init__(self) -> None:
        self._saved: list[int] = []
        self.until_tokens: int | None = None

    @property
    def saved_tokens(self) -> int:
        """Tokens that the runs in a row saved together."""
        return sum(self._saved)

    def note(self, before: int, after: int) -> bool:
        """Note a run that changed the view, and return whether the strategy pauses from now on.

        Args:
            before: Tokens of the request before the run.
            after: Tokens after it.
        """
        self.until_tokens = None
        if before - after >= _LITTLE * before:
            self._saved.clear()
            return False
        self._saved = [*self._saved[1 - _RUNS :], before - after]
        if len(self._saved) < _RUNS:
            return False
        self.until_tokens = after + int(_NEW * before)
        return True

    def pauses(self, tokens: int) -> bool:
        """Return whether the strategy rests at a request of so many tokens."""
        if self.until_tokens is None or tokens >= self.until_tokens:
            self.until_tokens = None
            return False
        return True

    def clear(self) -> None:
        """Forget the runs so far."""
        self._saved.clear()
        self.until_tokens = None

"""The figures of a provider about the requests of a session: reported usage, and the window as its length errors show it."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Final

import attrs

from ..tokens import LengthError, Usage, UsageAnchor

__all__ = ["LearnedWindow", "ProviderReports"]

_MOST_RATIO: Final = 3  # of a provider's count to ours, for what is not overhead; chosen, not measured
_WITHOUT_FIGURES: Final = 0.75  # of a request that was refused without a word about the window; chosen, not measured


@attrs.frozen
class LearnedWindow:
    """The window of one model at one endpoint, as its errors and reports show it.

    Args:
        window: Tokens of the window, by the provider's count; ``None`` if it has refused no request.
        accepted: Tokens of the largest request that it took; the window is never less.
    """

    window: int | None = None
    accepted: int = 0

    def taught(self, error: LengthError, tokens: int) -> LearnedWindow:
        """Return what is known after a request of so many tokens was refused."""
        window = int(tokens * _WITHOUT_FIGURES) if error.window is None else error.window
        return attrs.evolve(self, window=max(1, window, self.accepted))

    def took(self, tokens: int) -> LearnedWindow:
        """Return what is known after a request of so many tokens was accepted."""
        if tokens <= self.accepted:
            return self
        return LearnedWindow(None if self.window is None else max(self.window, tokens), tokens)


class ProviderReports:
    """The provider's figures for one session. Holds state: the last view, and what follows from the figures.

    Attributes:
        anchor: Ties our counts to the last report; ``None`` before the first.
        learned: The window.
        messages: The number of messages that the last view was made of.
    """

    def __init__(self) -> None:
        self.anchor: UsageAnchor | None = None
        self.learned = LearnedWindow()
        self._view: Sequence[Any] = ()
        self._tokens = 0
        self.messages = 0

    def sent(self, view: Sequence[Any], tokens: int, messages: int) -> None:
        """Note the view of a turn, its tokens by our count, without the overhead, and how many messages it was made of."""
        self._view, self._tokens, self.messages = view, tokens, messages

    def forgot(self, messages: int) -> None:
        """Keep no view; of the messages it was made of, so many are left."""
        self._view, self.messages = (), messages

    def window(self, configured: int | None) -> int | None:
        """Return the window: as configured, or as the provider taught it, if that is less."""
        return min((each for each in (configured, self.learned.window) if each is not None), default=None)

    def record(self, usage: Usage, view: Sequence[Any] | None) -> bool:
        """Take a report, and return whether it counts: one for an older view than the last does not."""
        if view is not None and not _is_same_list(view, self._view):
            return False
        self.anchor = UsageAnchor.from_usage(usage, self._tokens, with_reply=False)
        self.learned = self.learned.took(usage.prompt_tokens)
        return True

    def refused(self, error: LengthError, counted: int, overhead: int) -> int:
        """Take the figures of a length error, and return the tokens of the refused request.

        Beyond the overhead that is known, the provider is taken to count in proportion to us, up to three times as much. The
        anchor then makes a request of as many tokens as the window out of what would just fit.

        Args:
            error: The error.
            counted: Tokens of the request by our count.
            overhead: Tokens of the request outside its messages, as known so far.
        """
        own = self._tokens or max(1, counted - overhead)
        tokens = error.tokens or max(counted, (error.window or 0) + 1)
        self.learned = self.learned.taught(error, tokens)
        window = self.learned.window or tokens
        beside = min(max(0, overhead), tokens - 1)
        beside = max(beside, tokens - _MOST_RATIO * own)
        fits = (window - beside) * own // (tokens - beside)
        self.anchor = UsageAnchor(window - max(0, fits))
        return tokens


def _is_same_list(view: Sequence[Any], sent: Sequence[Any]) -> bool:
    return view is sent or (len(view) == len(sent) and all(map(operator.is_, view, sent)))

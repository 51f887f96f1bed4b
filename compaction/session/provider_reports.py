"""The provider's figures for one session: the usage it reported, and the window that its errors teach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from ..json_data import natural_number, shown
from ..tokens import LengthRefusal, Usage

_MOST_FACTOR: Final = 3  # the most tokens that a provider is assumed to count for one of ours; chosen, not measured
# If an error names no limit, the window is assumed to be this share of the refused request. Chosen, not measured.
_WITHOUT_FIGURES: Final = 0.75


@attrs.frozen
class LearnedWindow:
    """The window of one model at one endpoint, learned from its errors and usage reports."""

    window: int | None = None  # tokens of the window by the provider's count; ``None`` if no request was refused
    accepted: int = 0  # tokens of the largest accepted request. The learned window is at least this

    def taught(self, error: LengthRefusal, tokens: int) -> LearnedWindow:
        """Return the window after a request of ``tokens`` was refused."""
        window = int(tokens * _WITHOUT_FIGURES) if error.window is None else error.window
        return attrs.evolve(self, window=max(1, window, self.accepted))

    def took(self, tokens: int) -> LearnedWindow:
        """Return the window after a request of ``tokens`` was accepted."""
        return LearnedWindow(self.window and max(self.window, tokens), max(self.accepted, tokens))


@attrs.frozen(eq=False)
class SentView:
    """The last view of a session."""

    view: Sequence[Any] = ()  # the messages; empty before the first view, and once it must not be used any more
    tokens: int = 0  # its tokens by our count, without overhead
    of_messages: int = 0  # the number of messages that the conversation had


class ProviderReports:
    """The provider's figures for one session. Holds state: the usage anchor and the learned window.

    It assumes that the provider's count of a request is ``overhead + factor * our count of its messages``. The *anchor* is the
    provider's count of the last request minus ours, so ``our count + anchor`` is exact for that request, and close while the
    conversation grows.

    >>> figures = ProviderReports()
    >>> [figures.record(Usage(400 + counted // 2, 0), counted) for counted in (200, 2_000)]
    [True, True]
    >>> figures.anchor
    -600
    >>> figures.cut(400)  # to 400 tokens by our count: the two reports show that the provider counts half of ours, and 400 more
    >>> 400 + figures.anchor == 400 + 400 // 2
    True
    """

    def __init__(self) -> None:
        self.anchor: int | None = None  # reported tokens minus our count of the same messages; ``None`` before the first report
        self.counted = 0  # our count of the messages that the anchor belongs to
        # the shortest report: our count and the reported tokens, or 0 and the overhead that the host names
        self.least: tuple[int, int] | None = None
        self.learned = LearnedWindow()
        # tokens of the learned window by our count, with the anchor, after a refusal; ``None`` after a report
        self.fitting: int | None = None

    def window(self, configured: int | None = None) -> int | None:
        """Return the smaller of the configured and the learned window; ``None`` if both are unknown."""
        known = (configured, self.learned.window, self.fitting)
        return min((each for each in known if each is not None), default=None)

    def forget_window(self) -> None:
        """Forget the learned window: another model has another one."""
        self.learned, self.fitting = LearnedWindow(), None

    def record(self, usage: Usage, counted: int, overhead: int = 0) -> bool:
        """Record the usage of a request whose messages have ``counted`` tokens by our count; false if it is implausible."""
        if not usage.is_plausible(counted):
            return False
        report = (counted, usage.prompt_tokens)
        if self.anchor is None and overhead:  # the overhead that the host names stands for a shorter report
            report = (0, overhead)
        self.least = min(self.least or report, report)
        self.anchor, self.counted, self.fitting = usage.prompt_tokens - counted, counted, None
        self.learned = self.learned.took(usage.prompt_tokens)
        return True

    def cut(self, counted: int) -> None:
        """Correct the anchor after a cut that left ``counted`` tokens by our count.

        A long and a short report give the factor; without both, the anchor stays as it is. It also stays if the factor is above
        1: the long report may have contained more than the messages, and a count that is too high until the next report costs
        less than a refused request.
        """
        if self.anchor is None or self.least is None:
            return
        least, reported = self.least
        grown = self.counted - least
        is_shorter = counted < self.counted
        reports_are_apart = self.counted <= 2 * grown  # the short one has at most half of the long one; closer ones say little
        if not (is_shorter and reports_are_apart):
            return
        factor = (self.counted + self.anchor - reported) / grown
        factor = min(1.0, max(1 / _MOST_FACTOR, factor))
        self.anchor -= round((factor - 1) * (self.counted - counted))
        self.counted = counted

    def refused(self, error: LengthRefusal, counted: int, overhead: int, *, own: int) -> tuple[int, int]:
        """Record a length error, and return the tokens of the refused request and the window.

        By the provider's count, a request is ``overhead + factor * own``, with a factor of at most 3; the rest is overhead,
        known or not. Below, the provider counts 4,000 tokens, and we count 1,000 for the messages, which are
        at most 3,000 of its tokens. So 1,000 are overhead. A window of 2,000 then has 1,000 for messages: 333 by our count.
        The window is 1,333 until the next report::

            >>> figures = ProviderReports()
            >>> figures.refused(LengthRefusal(tokens=4_000, window=2_000), 1_400, 400, own=1_000)
            (4000, 1333)

        Args:
            error: The error.
            counted: Tokens of the request by our count.
            overhead: Those outside its messages, as known so far.
            own: Tokens of its messages by our count; 0 before the first view.
        """
        own = own or max(1, counted - overhead)
        # by the provider's count: tokens of the request, of the window, and outside the messages
        tokens = error.tokens or max(counted, (error.window or 0) + 1)
        self.learned = self.learned.taught(error, tokens)
        window = self.learned.window or tokens
        outside = max(min(max(0, overhead), tokens - 1), tokens - _MOST_FACTOR * own)
        own_that_fits = max(0, (window - outside) * own // (tokens - outside))
        self.anchor, self.counted, self.least = min(outside, window), own_that_fits, (0, outside)
        self.fitting = self.anchor + own_that_fits
        return tokens, min(window, self.fitting)

    def to_dict(self) -> dict[str, Any]:
        """Return the usage anchor and the learned window as JSON-ready data."""
        fitting = {} if self.fitting is None else {"fitting": [self.anchor, self.fitting]}
        return {"anchor": self.anchor, "learned": [self.learned.window, self.learned.accepted], **fitting}

    def load(self, saved: Mapping[str, Any]) -> None:
        """Continue with the figures that `to_dict` returned; a ``TypeError`` or ``ValueError`` means that they are others."""
        anchor, (window, accepted) = saved.get("anchor"), saved.get("learned", (None, 0))
        refused, fitting = saved.get("fitting", (None, None))
        if type(anchor) not in (int, type(None)):
            raise TypeError(f"anchor={shown(anchor)}")
        self.anchor = anchor
        self.learned = LearnedWindow(None if window is None else max(1, natural_number(window)), natural_number(accepted))
        if fitting is not None and refused == anchor:  # no usage was reported and saved since then
            self.fitting = max(1, natural_number(fitting))

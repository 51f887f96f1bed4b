"""The provider's figures for one session: the usage it reported, and the window that its errors teach."""

from __future__ import annotations

from collections.abc import Mapping
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


@attrs.frozen(order=True)
class Sizes:
    """The tokens of one request: those of its messages by our count, and those of all of it by the provider's."""

    ours: int
    theirs: int


class ProviderReports:
    """The provider's figures for one session. Holds state: two reported requests and the learned window.

    It assumes that the provider's count of a request is ``overhead + factor * ours``. The *anchor* is its count of the last
    request minus ours, so ``ours + anchor`` is exact for that request, and close while the conversation grows. Below, the
    provider counts half of our tokens, and 400 more. After a cut, the two reports show this::

        >>> figures = ProviderReports()
        >>> [figures.record(Usage(400 + ours // 2, 0), ours) for ours in (200, 2_000)], figures.anchor
        ([True, True], -600)
        >>> figures.cut(400)
        >>> 400 + figures.anchor == 400 + 400 // 2
        True
    """

    def __init__(self) -> None:
        # the last and the shortest report. An anchor that was saved, and an overhead that the host names, count as reports of a
        # request without messages
        self.last: Sizes | None = None
        self.shortest: Sizes | None = None
        self.learned = LearnedWindow()
        # tokens of the learned window by our count, with the anchor, after a refusal; ``None`` after a report
        self.fitting: int | None = None

    @property
    def anchor(self) -> int | None:
        """The reported tokens minus our count of the same messages; ``None`` before the first report."""
        return None if self.last is None else self.last.theirs - self.last.ours

    def window(self, configured: int | None = None) -> int | None:
        """Return the smaller of the configured and the learned window; ``None`` if both are unknown."""
        known = (configured, self.learned.window, self.fitting)
        return min((each for each in known if each is not None), default=None)

    def forget_window(self) -> None:
        """Forget the learned window: another model has another one."""
        self.learned, self.fitting = LearnedWindow(), None

    def record(self, usage: Usage, ours: int, overhead: int = 0) -> bool:
        """Record the usage of a request whose messages have ``ours`` tokens by our count; false if it is implausible."""
        if not usage.is_plausible(ours):
            return False
        report = Sizes(ours, usage.prompt_tokens)
        shorter = Sizes(0, overhead) if self.last is None and overhead else report
        self.shortest = min(self.shortest or shorter, shorter)
        self.last, self.fitting = report, None
        self.learned = self.learned.took(usage.prompt_tokens)
        return True

    def cut(self, ours: int) -> None:
        """Correct the anchor after a cut that left ``ours`` tokens by our count.

        A long and a short report give the factor; the anchor stays if the short one has more than half of the long one, because
        such reports say little. It also stays if the factor is above 1: the long report may have contained more than the
        messages, and a count that is too high until the next report costs less than a refused request.
        """
        last, short = self.last, self.shortest
        if last is None or short is None or last.ours <= ours or last.ours < 2 * short.ours:
            return
        theirs_per_ours = (last.theirs - short.theirs) / (last.ours - short.ours)
        factor = min(1.0, max(1 / _MOST_FACTOR, theirs_per_ours))
        self.last = Sizes(ours, last.theirs - round(factor * (last.ours - ours)))

    def refused(self, error: LengthRefusal, counted: int, overhead: int, *, ours: int) -> tuple[int, int]:
        """Record a length error, and return the tokens of the refused request and the window.

        At most three of the provider's tokens are assumed for one of ours; the rest of its count is overhead, known or not.
        Below, the provider counts 4,000 tokens, and we count 1,000 for the messages, which are at most 3,000 of its tokens. So
        1,000 are overhead. A window of 2,000 then has 1,000 for messages: 333 by our count. The window is 1,333 until the next
        report::

            >>> figures = ProviderReports()
            >>> figures.refused(LengthRefusal(tokens=4_000, window=2_000), 1_400, 400, ours=1_000)
            (4000, 1333)

        Args:
            error: The error.
            counted: Tokens of the request by our count.
            overhead: Those outside its messages, as known so far.
            ours: Tokens of its messages by our count; 0 before the first view.
        """
        messages_ours = ours or max(1, counted - overhead)
        request_theirs = error.tokens or max(counted, (error.window or 0) + 1)
        self.learned = self.learned.taught(error, request_theirs)
        window_theirs = self.learned.window or request_theirs
        known_overhead = min(max(0, overhead), request_theirs - 1)
        overhead_theirs = max(known_overhead, request_theirs - _MOST_FACTOR * messages_ours)
        messages_theirs = request_theirs - overhead_theirs
        fitting_ours = max(0, (window_theirs - overhead_theirs) * messages_ours // messages_theirs)
        self.last = Sizes(fitting_ours, fitting_ours + min(overhead_theirs, window_theirs))
        self.shortest, self.fitting = Sizes(0, overhead_theirs), self.last.theirs
        return request_theirs, min(window_theirs, self.fitting)

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
        self.last = None if anchor is None else Sizes(0, anchor)
        self.learned = LearnedWindow(None if window is None else max(1, natural_number(window)), natural_number(accepted))
        if fitting is not None and refused == anchor:  # no usage was reported and saved since then
            self.fitting = max(1, natural_number(fitting))

"""The state of a session, for display."""

from __future__ import annotations

import attrs

from ..index import Metrics
from ..result import Outcome

__all__ = ["SessionStatus"]


@attrs.frozen(kw_only=True)
class SessionStatus:
    """The state of a session, for display.

    Args:
        tokens: Tokens the last view would send, anchored to reported usage if there is any.
        window: The model's window, if known.
        included: Sizes of the last view.
        total: Sizes of the whole conversation.
        compactions: The number of runs that changed the view.
        outcome: How the last run ended; ``None`` before the first.
        failures: The failures of the last run, in words, and why the session is not saved, if saving failed last time.
    """

    tokens: int
    window: int | None
    included: Metrics
    total: Metrics
    compactions: int
    outcome: Outcome | None
    failures: tuple[str, ...]

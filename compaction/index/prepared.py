"""The summary that was written before it was due, if there is one; a session puts it here, and a strategy looks here first."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

__all__ = ["PreparedSummaries", "PreparedSummary"]


@attrs.frozen(kw_only=True)
class PreparedSummary:
    """A summary and what it stands for.

    Args:
        strategy: The strategy that would ask for it.
        groups: The ids of the groups it replaces, an earlier summary included, each with a fingerprint of its messages.
        sources: The places in the source of their messages, without those behind an earlier summary, each with a fingerprint.
        summaries: The strategy's own summaries in the view when it was asked for, by fingerprint.
        text: The summarizer's answer; the exception, if it failed and the strategy is due.
    """

    strategy: object
    groups: Mapping[int, str]
    sources: Mapping[int, str]
    summaries: tuple[str, ...]
    text: object = attrs.field(default="", repr=False)


def _nothing() -> None:
    pass


@attrs.define(eq=False)
class PreparedSummaries:
    """The prepared summary of a conversation. Holds state: at most one summary, and whether a strategy looked for one.

    Args:
        on_miss: Called when a strategy looks for a summary and has to ask the summarizer itself.

    Attributes:
        summary: The summary; ``None`` if there is none.
        is_due: Whether a strategy looked for one since the run began.
    """

    on_miss: Callable[[], object] = _nothing
    summary: PreparedSummary | None = attrs.field(default=None, init=False)
    is_due: bool = attrs.field(default=False, init=False)

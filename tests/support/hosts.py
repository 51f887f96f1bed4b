"""Strategies of hosts whose conversations grow over many calls."""

from __future__ import annotations

from collections.abc import Callable

from compaction import last
from compaction.strategies import Strategy, Summarization, ToolResult, Truncation
from compaction.summarizers import SummaryRequest
from compaction.triggers import tokens_below, tokens_exceed

from .scripted import Scripted


def host_strategies(tokens: int, summary: Callable[[SummaryRequest], str]) -> dict[str, Callable[[], Strategy]]:
    """Return strategies that cut, shorten results or summarize, all of them above about this many tokens."""
    cut, less, more = int(0.6 * tokens), int(0.7 * tokens), int(1.3 * tokens)
    return {
        "cut": lambda: Truncation(trigger=tokens_exceed(tokens), target=tokens_below(cut), keep=last(groups=2)),
        "rewriting": lambda: (
            ToolResult(trigger=tokens_exceed(less), keep=last(groups=2))
            >> Truncation(trigger=tokens_exceed(more), target=tokens_below(less), keep=last(groups=2))
        ),
        "summaries": lambda: Summarization(Scripted(summary), trigger=tokens_exceed(tokens), keep=last(groups=3)),
    }

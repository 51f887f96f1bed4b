"""Configurations of the strategies and presets that have no counterpart in Agent Framework, by size of the conversation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NoReturn, TypeAlias

import attrs

from compaction import GroupKind, Pipeline, kinds, last, nothing, presets
from compaction.stores import SearchResult, StoreDescription, StoredRecord
from compaction.strategies import (
    Clear,
    ClearMedia,
    ClearReasoning,
    Clip,
    Dedupe,
    Excerpt,
    GrowingSummary,
    HeadTail,
    LastResort,
    Lossless,
    Offload,
    Strategy,
    ToolResult,
    Truncation,
)
from compaction.triggers import tokens_exceed

Configured: TypeAlias = Callable[[int, int], Strategy]
"""Returns a strategy for a conversation with this number of messages and of tokens."""

STEPS: Final = 1_000


@attrs.frozen
class Nowhere:
    """A store that keeps nothing, so that only the strategy is measured."""

    def put(self, session: str, records: Sequence[StoredRecord]) -> None:
        """Discard the records."""

    def get(self, session: str, ids: Sequence[str]) -> list[StoredRecord]:
        return []

    def range(self, session: str, first: int, count: int) -> list[StoredRecord]:
        return []

    def search(self, session: str, query: str, *, limit: int) -> SearchResult:
        self._no_answer()

    def describe(self, session: str) -> StoreDescription:
        self._no_answer()

    def _no_answer(self) -> NoReturn:
        raise NotImplementedError("this store keeps nothing")


def _results(style: Clear | Dedupe | HeadTail) -> Configured:
    return lambda messages, tokens: ToolResult(style, keep=last(groups=1, of=kinds(GroupKind.TOOL_CALL)))


def _growing(messages: int, tokens: int) -> Strategy:
    return GrowingSummary(tokens=5_000, initial_tokens=1_000, added_tokens=500, max_tokens=2_000, trigger=tokens_exceed(5_000))


ROWS: Final[dict[str, Configured]] = {
    "tool results cleared": _results(Clear(min_chars=1)),
    "repeated tool results": _results(Dedupe()),
    "middles of tool results": _results(HeadTail()),
    "texts cut, half kept": lambda messages, tokens: Clip(tokens=20, keep=last(tokens=tokens // 2)),
    "what the user said, quoted": lambda messages, tokens: Excerpt(tokens=tokens // 8, target=~tokens_exceed(tokens // 2)),
    "whatever it takes, to a quarter": lambda messages, tokens: LastResort(tokens=tokens // 4),
    "reasoning, none there": lambda messages, tokens: ClearReasoning(),
    "media, none there": lambda messages, tokens: ClearMedia(),
    "results to a store": lambda messages, tokens: Offload(Nowhere(), min_chars=1, keep=last(groups=1)),
    "what leaves, to a store": lambda messages, tokens: Lossless(
        Truncation(trigger=tokens_exceed(tokens // 2), keep=nothing), Nowhere()
    ),
    "growing summary, to 5,000 tokens": _growing,
    f"{STEPS:,} steps of which none fires": lambda messages, tokens: Pipeline(
        *(Truncation(trigger=tokens_exceed(2 * tokens + step)) for step in range(STEPS))
    ),
    "preset token_budget, half of the tokens": lambda messages, tokens: presets.token_budget(tokens // 2),
    "preset adaptive, 3,000 tokens": lambda messages, tokens: presets.adaptive(3_000),
    "preset adaptive, 20,000 tokens": lambda messages, tokens: presets.adaptive(20_000),
    "preset hermes, half of the tokens": lambda messages, tokens: presets.hermes(tokens // 2),
    "preset langgraph_summary": lambda messages, tokens: presets.langgraph_summary(),
}
"""The configurations by their name in the table."""

"""The built-in strategies, which shorten a conversation, the gentlest first.

======================== ===============================================================================
`ToolResult`             shortens old tool results: `Collapse`, `Clear`, `HeadTail`, `Dedupe`
`ClearReasoning`         removes old reasoning
`ClearMedia`             replaces old images, sounds, videos and files with a note
`Clip`                   cuts the middle out of messages that are too large for the window
`SelectiveToolCall`      drops old tool calls with their results
`DropIrrelevant`         drops the old calls and answers that a model judges to be irrelevant
`Offload`                moves large tool results to a store and leaves stubs
`Lossless`               runs any strategy, but first stores the messages that it removes
`Summarization`          replaces old groups with a summary, which later rounds update
`ProviderCompaction`     replaces old groups with the item that OpenAI's own compaction returns
`GrowingSummary`         replaces the oldest groups with a summary that only grows at its end
`SlidingWindow`          drops old turns
`Truncation`             drops the oldest groups until a target holds
`Excerpt`                replaces old user messages with an excerpt of them, word for word
`LastResort`             brings a request below a limit, whatever that takes; what the user said goes last
`Pipeline`               runs strategies one after the other; ``a >> b``
`TokenBudgetComposed`    runs strategies until a request fits a budget, then drops the oldest groups
======================== ===============================================================================

A plain function that yields edits is a strategy too; see `compaction.strategies.base`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import export_lazily

if TYPE_CHECKING:
    from .base import (
        CompactionStrategy,
        Failed,
        FunctionStrategy,
        Pipeline,
        StepBegan,
        StepEnded,
        Steps,
        Strategy,
        StrategyLike,
        as_strategy,
    )
    from .base import Report as Report
    from .clip import Clip
    from .excerpt import Excerpt
    from .growing_summary import GrowingSummary
    from .irrelevant import DropIrrelevant
    from .last_resort import LastResort
    from .last_resort import most_tokens as most_tokens
    from .last_resort import within as within
    from .media import ClearMedia
    from .offload import Lossless, Offload, OnStoreFailure
    from .offload import forgetting_stores as forgetting_stores
    from .offload import storing_parts as storing_parts
    from .prepared import Rehearsed as Rehearsed
    from .prepared import may_stand as may_stand
    from .prepared import summary_ahead as summary_ahead
    from .provider_compaction import ProviderCompaction
    from .reasoning import ClearReasoning
    from .selective_tool_call import SelectiveToolCall
    from .sliding_window import SlidingWindow
    from .summaries import QUOTES_A_PART as QUOTES_A_PART
    from .summaries import summary_words as summary_words
    from .summarization import OnFailure, Summarization
    from .summary_text import SummaryText
    from .token_budget import TokenBudgetComposed
    from .tool_result import ToolResult
    from .tool_styles import Clear, Collapse, Dedupe, HeadTail, ToolStyle
    from .truncation import Truncation

__all__ = [
    "Clear",
    "ClearMedia",
    "ClearReasoning",
    "Clip",
    "Collapse",
    "CompactionStrategy",
    "Dedupe",
    "DropIrrelevant",
    "Excerpt",
    "Failed",
    "FunctionStrategy",
    "GrowingSummary",
    "HeadTail",
    "LastResort",
    "Lossless",
    "Offload",
    "OnFailure",
    "OnStoreFailure",
    "Pipeline",
    "ProviderCompaction",
    "SelectiveToolCall",
    "SlidingWindow",
    "StepBegan",
    "StepEnded",
    "Steps",
    "Strategy",
    "StrategyLike",
    "Summarization",
    "SummaryText",
    "TokenBudgetComposed",
    "ToolResult",
    "ToolStyle",
    "Truncation",
    "as_strategy",
]

export_lazily(
    __name__,
    {
        "base": "CompactionStrategy Failed FunctionStrategy Pipeline Report StepBegan StepEnded Steps Strategy StrategyLike"
        " as_strategy",
        "clip": "Clip",
        "excerpt": "Excerpt",
        "growing_summary": "GrowingSummary",
        "irrelevant": "DropIrrelevant",
        "last_resort": "LastResort most_tokens within",
        "media": "ClearMedia",
        "offload": "Lossless Offload OnStoreFailure forgetting_stores storing_parts",
        "prepared": "Rehearsed may_stand summary_ahead",
        "provider_compaction": "ProviderCompaction",
        "reasoning": "ClearReasoning",
        "selective_tool_call": "SelectiveToolCall",
        "sliding_window": "SlidingWindow",
        "summarization": "OnFailure Summarization",
        "summaries": "QUOTES_A_PART summary_words",
        "summary_text": "SummaryText",
        "token_budget": "TokenBudgetComposed",
        "tool_result": "ToolResult",
        "tool_styles": "Clear Collapse Dedupe HeadTail ToolStyle",
        "truncation": "Truncation",
    },
)

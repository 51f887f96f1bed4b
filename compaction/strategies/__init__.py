"""Strategies: what to take out of a conversation, gentlest first.

======================== ===============================================================================
`ToolResult`             old tool results shortened: `Collapse`, `Clear`, `HeadTail`, `Dedupe`
`ClearReasoning`         old reasoning taken out
`ClearMedia`             old images, sounds and files replaced by a note
`Clip`                   messages too large for the window cut to their two ends
`SelectiveToolCall`      old tool calls dropped, with their results
`Offload`                large tool results, or old groups, moved to a store; stubs stay
`Lossless`               any strategy, with what it takes out stored first
`Summarization`          old groups replaced by a summary, which later rounds update
`GrowingSummary`         the oldest groups replaced by a summary that only grows at its end
`SlidingWindow`          old turns dropped
`Truncation`             the oldest groups dropped until a target holds
`Pipeline`               strategies in a row; ``a >> b``
`TokenBudgetComposed`    strategies in a row until a budget holds, and a fallback that gets there
======================== ===============================================================================

A plain function that yields edits is a strategy too; see `compaction.strategies.base`.
"""

from __future__ import annotations

from .base import CompactionStrategy, Failed, FunctionStrategy, StepBegan, StepEnded, Steps, Strategy, StrategyLike, as_strategy
from .clip import Clip
from .growing_summary import GrowingSummary
from .media import ClearMedia
from .offload import Lossless, Offload, OnStoreFailure
from .offload_styles import OffloadStyle, StubGroups, StubResults
from .pipeline import Pipeline
from .reasoning import ClearReasoning
from .selective_tool_call import SelectiveToolCall
from .sliding_window import SlidingWindow
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
    "Failed",
    "FunctionStrategy",
    "GrowingSummary",
    "HeadTail",
    "Lossless",
    "Offload",
    "OffloadStyle",
    "OnFailure",
    "OnStoreFailure",
    "Pipeline",
    "SelectiveToolCall",
    "SlidingWindow",
    "StepBegan",
    "StepEnded",
    "Steps",
    "Strategy",
    "StrategyLike",
    "StubGroups",
    "StubResults",
    "Summarization",
    "SummaryText",
    "TokenBudgetComposed",
    "ToolResult",
    "ToolStyle",
    "Truncation",
    "as_strategy",
]

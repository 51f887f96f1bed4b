"""Keeps the conversations of LLM agents inside a context window without breaking them.

::

    from compaction import compact_sync, presets

    result = compact_sync(messages, presets.context_window(32_000))
    result.messages          # send these
    result.edits             # the changes, each with its reason
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lazy import export_lazily

if TYPE_CHECKING:
    from . import presets, strategies, triggers
    from .errors import BudgetUnsatisfiable, CompactionError
    from .formats import Problem, Repair, repair, validate
    from .index import (
        Drop,
        Edit,
        GroupKind,
        MessageGroup,
        MessageIndex,
        Metrics,
        Refusal,
        Replace,
        Request,
        Rewrite,
        RunContext,
        Together,
    )
    from .messages import Message
    from .result import CompactionResult, Step
    from .run import apply_compaction, apply_compaction_sync, compact, compact_sync, run, run_sync
    from .selectors import everything, first, kinds, last, nothing, pinned, system, tools
    from .session import CompactionSession, SessionPool
    from .strategies import Pipeline
    from .tokens import TokenCounter, counter

__all__ = [
    "BudgetUnsatisfiable",
    "CompactionError",
    "CompactionResult",
    "CompactionSession",
    "Drop",
    "Edit",
    "GroupKind",
    "Message",
    "MessageGroup",
    "MessageIndex",
    "Metrics",
    "Pipeline",
    "Problem",
    "Refusal",
    "Repair",
    "Replace",
    "Request",
    "Rewrite",
    "RunContext",
    "SessionPool",
    "Step",
    "Together",
    "TokenCounter",
    "apply_compaction",
    "apply_compaction_sync",
    "compact",
    "compact_sync",
    "counter",
    "everything",
    "first",
    "kinds",
    "last",
    "nothing",
    "pinned",
    "presets",
    "repair",
    "run",
    "run_sync",
    "strategies",
    "system",
    "tools",
    "triggers",
    "validate",
]

export_lazily(
    __name__,
    {
        "presets": "",
        "strategies": "Pipeline",
        "triggers": "",
        "errors": "BudgetUnsatisfiable CompactionError",
        "formats": "Problem Repair repair validate",
        "index": "Drop Edit GroupKind MessageGroup MessageIndex Metrics Refusal Replace Request Rewrite RunContext Together",
        "messages": "Message",
        "result": "CompactionResult Step",
        "run": "apply_compaction apply_compaction_sync compact compact_sync run run_sync",
        "selectors": "everything first kinds last nothing pinned system tools",
        "session": "CompactionSession SessionPool",
        "tokens": "TokenCounter counter",
    },
)

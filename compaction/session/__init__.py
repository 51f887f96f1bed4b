"""Conversations over many turns.

A `CompactionSession` keeps track of one conversation. On each turn, `view` compares the list from the program or framework that
owns the conversation (the host) with its index, runs the strategy if its trigger fires, and returns the list to send. Edits
remain applied from turn to turn. A `SessionPool` manages the sessions of many conversations, and recognizes each by its
messages. Both report typed events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import export_lazily

if TYPE_CHECKING:
    from .ahead import BackgroundTasks
    from .events import (
        CacheBroken,
        Compacted,
        Compacting,
        ContextUsed,
        Event,
        Evicted,
        HostChanged,
        LittleSaved,
        NearLimit,
        OnEvent,
        Overflowed,
        SaveFailed,
        StepFailed,
        Veto,
    )
    from .pool import SessionPool
    from .rehearsal import Rehearsed as Rehearsed
    from .saving import LearnedWindow as LearnedWindow
    from .session import CompactionSession, SessionStatus
    from .session import within as within
    from .turns import Blocking as Blocking
    from .turns import TurnLock

__all__ = [
    "BackgroundTasks",
    "CacheBroken",
    "Compacted",
    "Compacting",
    "CompactionSession",
    "ContextUsed",
    "Event",
    "Evicted",
    "HostChanged",
    "LittleSaved",
    "NearLimit",
    "OnEvent",
    "Overflowed",
    "SaveFailed",
    "SessionPool",
    "SessionStatus",
    "StepFailed",
    "TurnLock",
    "Veto",
]

export_lazily(
    __name__,
    {
        "ahead": "BackgroundTasks",
        "events": "CacheBroken Compacted Compacting ContextUsed Event Evicted HostChanged LittleSaved NearLimit OnEvent"
        " Overflowed SaveFailed StepFailed Veto",
        "pool": "SessionPool",
        "rehearsal": "Rehearsed",
        "saving": "LearnedWindow",
        "session": "CompactionSession SessionStatus within",
        "turns": "Blocking TurnLock",
    },
)

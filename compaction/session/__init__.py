"""Sessions: conversations over many turns, whose edits stay in force, and what happens in them as typed events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import export_lazily

if TYPE_CHECKING:
    from .background import BackgroundTasks
    from .events import (
        CacheBroken,
        Compacted,
        Compacting,
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
    from .overflow import within as within
    from .pool import SessionPool
    from .session import CompactionSession
    from .status import SessionStatus
    from .turns import TurnLock

__all__ = [
    "BackgroundTasks",
    "CacheBroken",
    "Compacted",
    "Compacting",
    "CompactionSession",
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
        "background": "BackgroundTasks",
        "events": "CacheBroken Compacted Compacting Event Evicted HostChanged LittleSaved NearLimit OnEvent Overflowed"
        " SaveFailed StepFailed Veto",
        "overflow": "within",
        "pool": "SessionPool",
        "session": "CompactionSession",
        "status": "SessionStatus",
        "turns": "TurnLock",
    },
)

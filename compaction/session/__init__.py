"""Sessions: conversations over many turns, whose edits stay in force, and what happens in them as typed events."""

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

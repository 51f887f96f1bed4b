"""Conversations over many calls of a model.

A `CompactionSession` keeps track of one conversation. On each call, `view` compares the list from the program or framework that
owns the conversation (the host) with its index, runs the strategy if its trigger fires, and returns the list to send. Edits
remain applied from call to call. A `SessionPool` manages the sessions of many conversations, and recognizes each by its
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
    from .lock import CallLock
    from .lock import unawaited_calls as unawaited_calls
    from .pool import SessionPool
    from .provider_reports import LearnedWindow as LearnedWindow
    from .session import CompactionSession, SessionStatus

# `unawaited_calls` and `LearnedWindow` are for other folders of this package, and not part of the public interface
__all__ = [
    "BackgroundTasks",
    "CacheBroken",
    "CallLock",
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
    "Veto",
]

export_lazily(
    __name__,
    {
        "ahead": "BackgroundTasks",
        "events": "CacheBroken Compacted Compacting ContextUsed Event Evicted HostChanged LittleSaved NearLimit OnEvent"
        " Overflowed SaveFailed StepFailed Veto",
        "lock": "CallLock unawaited_calls",
        "pool": "SessionPool",
        "provider_reports": "LearnedWindow",
        "session": "CompactionSession SessionStatus",
    },
)

"""Stores for messages that were removed from a conversation's view, the tools that read them back, and saved sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import export_lazily

if TYPE_CHECKING:
    from .base import (
        ForgettingStore,
        NotStored,
        SearchHit,
        SearchResult,
        Store,
        StoreCounts,
        StoreDescription,
        StoredKind,
        StoredRecord,
        StoreRequest,
    )
    from .base import copied as copied
    from .database import DatabaseFile as DatabaseFile
    from .recall import TOOLS, handle_tool_call, tool_schemas
    from .sessions import SessionStore
    from .sqlite import SQLiteStore

__all__ = [
    "TOOLS",
    "ForgettingStore",
    "NotStored",
    "SQLiteStore",
    "SearchHit",
    "SearchResult",
    "SessionStore",
    "Store",
    "StoreCounts",
    "StoreDescription",
    "StoreRequest",
    "StoredKind",
    "StoredRecord",
    "handle_tool_call",
    "tool_schemas",
]

export_lazily(
    __name__,
    {
        "base": "ForgettingStore NotStored SearchHit SearchResult Store StoreCounts StoreDescription StoredKind StoredRecord"
        " StoreRequest copied",
        "database": "DatabaseFile",
        "recall": "TOOLS handle_tool_call tool_schemas",
        "sessions": "SessionStore",
        "sqlite": "SQLiteStore",
    },
)

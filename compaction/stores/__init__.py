"""Stores: where messages wait that left a conversation's view."""

from __future__ import annotations

from .base import RANKED, Description, Found, Hit, NotStored, Record, RecordKind, Store, StoreRequest, Tally
from .sqlite import SCHEMA, SQLiteStore

__all__ = [
    "RANKED",
    "SCHEMA",
    "Description",
    "Found",
    "Hit",
    "NotStored",
    "Record",
    "RecordKind",
    "SQLiteStore",
    "Store",
    "StoreRequest",
    "Tally",
]

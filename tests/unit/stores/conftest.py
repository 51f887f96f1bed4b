"""A store of messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from compaction.stores import SQLiteStore


@pytest.fixture
def store(tmp_path: Path) -> SQLiteStore:
    return SQLiteStore(tmp_path / "store.db")

"""The limit of every wait for a process, a thread or a server; only a test that would hang reaches it."""

from __future__ import annotations

from typing import Final

WAIT_SECONDS: Final = 300

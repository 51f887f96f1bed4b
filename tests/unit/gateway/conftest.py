"""The gateway runs on asyncio, as its server and its HTTP client do."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """The only backend of these tests."""
    return "asyncio"

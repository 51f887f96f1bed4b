"""The gateway runs on asyncio, as its server and its HTTP client do. What it loads when it starts is loaded here, once."""

from __future__ import annotations

import aiohttp  # noqa: F401
import pytest
import starlette.applications  # noqa: F401

from compaction.gateway.windows import known_prices

known_prices("of-tomorrow")  # reads the table of all models


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """The only backend of these tests."""
    return "asyncio"

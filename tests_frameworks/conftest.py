"""What these tests share: one backend of anyio, and a scripted model on loopback."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from model_server import ModelServer


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """These frameworks run on asyncio alone."""
    return "asyncio"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A model with a window of 4,000 tokens."""
    with ModelServer(window=4_000) as running:
        yield running

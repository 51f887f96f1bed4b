"""Shared fixtures: the asyncio backend of anyio, and a scripted model on loopback."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.frameworks.model_server import ModelServer


def pytest_configure(config: pytest.Config) -> None:
    """Ignore the sockets that the frameworks' clients leave to the garbage collector; other warnings still fail."""
    config.addinivalue_line("filterwarnings", "ignore::ResourceWarning")
    config.addinivalue_line("filterwarnings", "ignore::pytest.PytestUnraisableExceptionWarning")
    config.addinivalue_line("filterwarnings", "ignore::DeprecationWarning:litellm")  # what it uses of pydantic and asyncio


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Return asyncio, the only backend of these frameworks."""
    return "asyncio"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """Yield a model with a window of 4,000 tokens."""
    with ModelServer(window=4_000) as running:
        yield running

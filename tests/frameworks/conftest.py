"""What these tests share: one backend of anyio, and a scripted model on loopback."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.frameworks.model_server import ModelServer


def pytest_configure(config: pytest.Config) -> None:
    """The frameworks' clients leave it to the collector to close their sockets; all else that warns still fails."""
    config.addinivalue_line("filterwarnings", "ignore::ResourceWarning")
    config.addinivalue_line("filterwarnings", "ignore::pytest.PytestUnraisableExceptionWarning")
    config.addinivalue_line("filterwarnings", "ignore::DeprecationWarning:litellm")  # what it uses of pydantic and asyncio


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """These frameworks run on asyncio alone."""
    return "asyncio"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A model with a window of 4,000 tokens."""
    with ModelServer(window=4_000) as running:
        yield running

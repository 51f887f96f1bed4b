"""Shared fixtures: the asyncio backend of anyio, and a scripted model on loopback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

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


@pytest.fixture(scope="session", autouse=True)
def plain_requests() -> Iterator[None]:
    """Send the lists in a request as they are. The ``openai`` package walks them by the type of each field.

    The walk took 35 to 75 % of the time of these tests. It renames fields with an alias, and messages and items have none. The
    examples, which are programs of their own, do it.
    """
    transform: Any = import_module("openai._utils._transform")

    def unless_plain(walk: Callable[..., Any], plain: Callable[[Any], Any]) -> Callable[..., Any]:
        return lambda data, **how: plain(data) if type(data) is list and _is_plain(data) else walk(data, **how)

    async def awaited(data: Any) -> Any:
        return data

    with pytest.MonkeyPatch.context() as patch:
        for name, plain in (("_transform_recursive", lambda data: data), ("_async_transform_recursive", awaited)):
            patch.setattr(transform, name, unless_plain(getattr(transform, name), plain))
        yield


def _is_plain(value: Any) -> bool:
    """Return whether a value consists of dictionaries, lists, texts and numbers."""
    if type(value) is dict:
        return all(map(_is_plain, value.values()))
    return all(map(_is_plain, value)) if type(value) is list else value is None or type(value) in (str, int, float, bool)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """Yield a model with a window of 4,000 tokens."""
    with ModelServer(window=4_000) as running:
        yield running

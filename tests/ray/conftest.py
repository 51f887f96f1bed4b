"""A local Ray cluster with four CPUs for all tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import ray

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]


@pytest.fixture(scope="session", autouse=True)
def cluster() -> Iterator[None]:
    """Start Ray once; its actors can import the package and the tests' modules."""
    places = str(ROOT)
    ray.init(
        num_cpus=4,
        include_dashboard=False,
        object_store_memory=200_000_000,
        log_to_driver=False,
        runtime_env={"env_vars": {"PYTHONPATH": places}},
    )
    yield
    ray.shutdown()

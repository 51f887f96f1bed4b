"""The model of a provider's prompt cache: what a request reads from it and writes to it."""

from __future__ import annotations

import pytest

from compaction.models import ModelPrices
from compaction.replay.one_conversation import PromptCache
from compaction.replay.records import CacheUse


def cache_of(**rules: float) -> PromptCache:
    """A cache with the given rules, OpenAI's by default."""
    return PromptCache(ModelPrices(model="m", **{"input": 1, "cached": 0.1, "write": 1, "output": 8, **rules}))  # type: ignore[arg-type]


def test_a_short_request_is_not_cached() -> None:
    """A request below the minimum length is not cached, so that the next one reads nothing from the cache."""
    cache = cache_of()
    assert cache.send(1_023, shared_tokens=0) == CacheUse(0, 0, 1_023)
    assert cache.send(2_000, shared_tokens=1_023) == CacheUse(0, 2_000, 0)


@pytest.mark.parametrize(("block", "read"), [(128, 1_920), (0, 2_000)])
def test_a_shared_prefix_is_read_in_whole_blocks(block: int, read: int) -> None:
    """The rest is written; with a block size of 0, all shared tokens are read."""
    cache = cache_of(block_tokens=block)
    cache.send(2_000, shared_tokens=0)
    assert cache.send(2_500, shared_tokens=2_000) == CacheUse(read, 2_500 - read, 0)


def test_a_prefix_expires_unless_it_is_used() -> None:
    """A cached prefix expires some seconds after its last use; without times it does not expire."""
    cache = cache_of(ttl_seconds=300.0)
    cache.send(2_000, shared_tokens=0, now=0.0)
    assert cache.send(2_100, shared_tokens=2_000, now=300.0) == CacheUse(1_920, 180, 0)
    assert cache.send(2_200, shared_tokens=2_100, now=600.0) == CacheUse(2_048, 152, 0)
    assert cache.send(2_300, shared_tokens=2_200, now=901.0) == CacheUse(0, 2_300, 0, expired=True)
    assert cache.send(2_400, shared_tokens=2_300) == CacheUse(2_176, 224, 0)

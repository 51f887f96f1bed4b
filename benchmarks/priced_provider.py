"""A provider that prices requests by the rules of its prompt cache, and refuses those that are longer than its window."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

from compaction.models import ModelPrices
from compaction.tokens import TokenCounter

BLOCKS_BACK: Final = 20
"""Blocks before a breakpoint in which Anthropic looks for a cached prefix."""

_BESIDE: Final = ("tools", "system", "instructions", "systemInstruction")


@attrs.frozen
class Charge:
    """The price of one request.

    Args:
        tokens: Tokens of the request.
        read: Tokens read from the cache.
        dollars: Its price, without an answer.
    """

    tokens: int
    read: int
    dollars: float


@attrs.frozen
class _Segment:
    digest: bytes
    tokens: int
    is_marked: bool


class PricedProvider:
    """One conversation at a provider, which counts the tokens of the JSON. Holds state: cached prefixes.

    With automatic caching, every earlier request can be read up to the last message that is the same. With breakpoints, a
    prefix is written at each breakpoint, and read from a breakpoint or at most 20 blocks before it.

    Args:
        prices: The model's prices and cache rules; ``block_tokens=0`` for a cache with breakpoints.
        key: The field of a request that holds its messages.
        counter: Counts tokens.
    """

    def __init__(self, prices: ModelPrices, key: str, counter: TokenCounter) -> None:
        self._prices = prices
        self._key = key
        self._counter = counter
        self._known: dict[bytes, int] = {}
        self._cached: set[bytes] = set()

    def tokens(self, body: bytes) -> int:
        """Return the tokens of a request, by the provider's own count."""
        return sum(segment.tokens for segment in self._segments(body))

    def send(self, body: bytes) -> Charge:
        """Take a request, and return its price."""
        segments = list(self._segments(body))
        total, prefix = 0, hashlib.blake2b(digest_size=16)
        ends: list[tuple[bytes, int]] = []
        for segment in segments:
            prefix.update(segment.digest)
            total += segment.tokens
            ends.append((prefix.digest(), total))
        written = self._writes(segments, ends)
        read = self._read(segments, ends)
        self._cached.update(digest for digest, tokens in written if tokens >= self._prices.minimum_tokens)
        last = written[-1][1] if written else 0
        last = last if last >= self._prices.minimum_tokens else 0
        return Charge(total, read, self._prices.dollars(read=read, written=max(0, last - read), fresh=total - max(last, read)))

    def _writes(self, segments: list[_Segment], ends: list[tuple[bytes, int]]) -> list[tuple[bytes, int]]:
        if self._prices.block_tokens:
            return ends
        return [end for segment, end in zip(segments, ends, strict=True) if segment.is_marked]

    def _read(self, segments: list[_Segment], ends: list[tuple[bytes, int]]) -> int:
        """Return the tokens of the longest cached prefix that the request may read."""
        places = range(len(ends))
        if not self._prices.block_tokens:
            marked = [place for place in places if segments[place].is_marked]
            places = sorted({each for place in marked for each in range(max(0, place - BLOCKS_BACK), place + 1)})
        found = max((ends[place][1] for place in places if ends[place][0] in self._cached), default=0)
        found -= found % (self._prices.block_tokens or 1)
        return found if found >= self._prices.minimum_tokens else 0

    def _segments(self, body: bytes) -> Iterator[_Segment]:
        request = json.loads(body)
        for name in _BESIDE:
            for part in _parts(request.get(name)):
                yield self._segment(part)
        for message in request[self._key]:
            content = message.get("content") if self._prices.block_tokens == 0 else None
            if not isinstance(content, list):
                yield self._segment(message)
                continue
            for part in content:
                yield self._segment({"role": message["role"], **part})

    def _segment(self, part: Any) -> _Segment:
        is_marked = isinstance(part, Mapping) and "cache_control" in part
        plain = {name: value for name, value in part.items() if name != "cache_control"} if is_marked else part
        text = json.dumps(plain, ensure_ascii=False, sort_keys=True)
        digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()
        if digest not in self._known:
            self._known[digest] = self._counter.count_text(text)
        return _Segment(digest, self._known[digest], is_marked)


def _parts(value: Any) -> list[Any]:
    if not value:
        return []
    return value if isinstance(value, list) else [value]

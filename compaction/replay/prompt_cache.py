"""A model of a provider's prompt cache: the tokens a request reads from it and writes to it, given the previous request.

Only the previous request is compared: providers match exact prefixes, and a conversation is one chain of requests.
"""

from __future__ import annotations

import attrs

from ..models import ModelPrices


@attrs.frozen
class CacheUse:
    """The tokens of a request by how they are billed."""

    read: int  # tokens read from the cache
    written: int  # tokens written to it
    fresh: int  # tokens neither read nor written
    expired: bool = False  # whether a prefix could not be read only because it had expired


class PromptCache:
    """The cached prefix of one chain of requests. Holds state: the time of its last use."""

    def __init__(self, rules: ModelPrices) -> None:
        self._rules = rules
        self._used_at: float | None = None

    def send(self, tokens: int, *, shared_tokens: int, now: float | None = None) -> CacheUse:
        """Send the next request and return how its tokens are billed.

        Args:
            tokens: Tokens of the request.
            shared_tokens: Tokens at its start that are equal to those of the previous request.
            now: The time in seconds; ``None`` if it was not recorded, and nothing expires then.
        """
        rules = self._rules
        if tokens < rules.minimum_tokens:
            return CacheUse(0, 0, tokens)
        read = shared_tokens - shared_tokens % rules.block_tokens if rules.block_tokens else shared_tokens
        if read < rules.minimum_tokens:
            read = 0
        expired = bool(read) and now is not None and self._used_at is not None and now - self._used_at > rules.ttl_seconds
        self._used_at = now
        if expired:
            read = 0
        return CacheUse(read, tokens - read, 0, expired)

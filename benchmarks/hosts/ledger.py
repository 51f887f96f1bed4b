"""The counts of the server for each conversation: requests, refusals, prefix breaks and the cached share."""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Sequence
from typing import Any, Final

import attrs

SUMMARY_SIGN: Final = "The prices of several items were looked up."
"""A sentence of every summary."""

NOT_READ: Final = frozenset({"cache_control", "cachePoint"})
"""Fields that tell the provider what to cache: they move from request to request and are not content."""


@attrs.define
class Page:
    """The record of one conversation. Holds state: the counts, and the last request that was accepted.

    Args:
        requests: Requests that were accepted.
        invalid: Requests that break a rule of the format.
        over: Requests that were longer than the window.
        over_twice: Those of them that were followed by another one that was too long, or by nothing.
        breaks: Requests that do not begin with the messages of the one before.
        crossed: Requests that hold a marker of another conversation.
        lost: Requests without a summary although the one before had one.
        dropped: Requests without a text that must stay.
        tokens: Tokens of all accepted requests.
        cached: Those that the request before began with.
        largest: Tokens of the longest accepted request.
        problems: The first few reasons of refusals.
        waits_for_retry: Whether the last request was too long.
        has_summary: Whether the last request held a summary.
        last: The messages of the last request, as JSON.
    """

    requests: int = 0
    invalid: int = 0
    over: int = 0
    over_twice: int = 0
    breaks: int = 0
    crossed: int = 0
    lost: int = 0
    dropped: int = 0
    tokens: int = 0
    cached: int = 0
    largest: int = 0
    problems: list[str] = attrs.field(factory=list)
    waits_for_retry: bool = False
    has_summary: bool = False
    last: list[str] = attrs.field(factory=list)


class Ledger:
    """The pages of all conversations. Holds state; safe to use from several threads."""

    def __init__(self) -> None:
        self.pages: dict[str, Page] = {}
        self._lock = threading.Lock()

    def page(self, conversation: str) -> Page:
        """Return the page of a conversation."""
        with self._lock:
            return self.pages.setdefault(conversation, Page())

    def total(self, name: str) -> int:
        """Return the sum of a count over all conversations; an unanswered length error counts as ``over_twice``."""
        waiting = sum(page.waits_for_retry for page in self.pages.values()) if name == "over_twice" else 0
        return sum(getattr(page, name) for page in self.pages.values()) + waiting

    def refuse(self, conversation: str, why: str, *, over: bool) -> None:
        """Record a refused request."""
        page = self.page(conversation)
        page.problems = [*page.problems, why][:5]
        if not over:
            page.invalid += 1
            return
        page.over += 1
        page.over_twice += page.waits_for_retry
        page.waits_for_retry = True

    def accept(
        self, conversation: str, messages: Sequence[Any], tokens: int, characters: int, musts: Collection[str] = ()
    ) -> int:
        """Record an accepted request, and return the number of its tokens that the previous request began with."""
        page = self.page(conversation)
        now = [json.dumps(_content(message), sort_keys=True) for message in messages]
        common = next((at for at, pair in enumerate(zip(page.last, now, strict=False)) if pair[0] != pair[1]), None)
        common = min(len(page.last), len(now)) if common is None else common
        page.breaks += common < len(page.last)
        cached = min(tokens, tokens * sum(map(len, now[:common])) // max(characters, sum(map(len, now)), 1))
        page.requests += 1
        page.tokens += tokens
        page.cached += cached
        page.largest = max(page.largest, tokens)
        page.waits_for_retry = False
        page.last = now
        has_summary = any(SUMMARY_SIGN in message for message in now)
        page.lost += page.has_summary and not has_summary
        page.has_summary = has_summary
        page.dropped += any(not any(must in message for message in now) for must in musts)
        return cached


def _content(value: Any) -> Any:
    """Return a message without the fields that only control the cache."""
    if isinstance(value, dict):
        return {name: _content(each) for name, each in value.items() if name not in NOT_READ}
    if isinstance(value, list):
        return [_content(each) for each in value if not (isinstance(each, dict) and "cachePoint" in each)]
    return value

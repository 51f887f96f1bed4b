"""Limits for the requests that a batch sends to its summarizers.

Every summarizer of a strategy is wrapped so that all conversations share one rate limiter. When a server answers 429, the
limiter delays every request, not only the one that was refused.
"""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable
from operator import is_
from pathlib import Path
from typing import Any, ClassVar, Final, cast

import anyio
import attrs
from anyio.lowlevel import RunVar

from ..checks import above, count
from ..errors import ConfigurationError
from ..strategies import Strategy
from ..summarizers import (
    CachedSummarizer,
    FirstOf,
    OpenAISummarizer,
    Summarizer,
    SummaryRequest,
    answer_in_time,
    asks_model,
    usable_text,
)
from ..tokens import Usage
from .job import Job
from .report import BatchCounts

_WAITS: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Seconds before each new try after a 429, if the server does not say how long to wait."""


class SummarizerDown(ConfigurationError):
    """A summarizer failed too often in a row, so the batch stopped."""


@attrs.frozen(kw_only=True)
class Limits:
    """Limits for the requests of a batch to its summarizers.

    Args:
        concurrency: Conversations in progress at a time, >= 1.
        requests_per_minute: Requests, > 0; ``None`` for no limit. Each request for a summary counts.
        tokens_per_minute: Tokens sent and received, > 0; ``None`` for no limit. They are estimated before a request, and
            corrected by the usage that the server reports.
        give_up_after: Summaries that fail in a row before the batch stops, >= 1; finished work is kept, and a later run
            resumes.

    Raises:
        ConfigurationError: If a figure is out of range.
    """

    concurrency: int = attrs.field(default=16, validator=count(1))
    requests_per_minute: float | None = attrs.field(default=None, validator=attrs.validators.optional(above(0)))
    tokens_per_minute: float | None = attrs.field(default=None, validator=attrs.validators.optional(above(0)))
    give_up_after: int = attrs.field(default=20, validator=count(1))

    def divided(self, workers: int) -> Limits:
        """Return each worker's share, for workers that cannot share a rate limiter."""
        return attrs.evolve(
            self,
            concurrency=max(1, self.concurrency // workers),
            requests_per_minute=self.requests_per_minute and self.requests_per_minute / workers,
            tokens_per_minute=self.tokens_per_minute and self.tokens_per_minute / workers,
        )


class _Rate:
    """Holds state: the time from which the rate allows another request. What one second allows can be sent at once."""

    def __init__(self, per_minute: float | None, clock: Callable[[], float]) -> None:
        self._seconds = 60 / per_minute if per_minute else 0.0  # that one request or token takes
        self._clock = clock
        self.free_at = clock() - 1.0

    def take(self, amount: float) -> None:
        saved = max(1.0, self._seconds)  # a longer pause saves up no more
        self.free_at = max(self.free_at, self._clock() - saved) + amount * self._seconds


class RateLimiter:
    """Holds state: the usage of a batch's summarizers, and when the next request may be sent."""

    def __init__(
        self,
        limits: Limits,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self.limits = limits
        self.usage = BatchCounts()  # the usage that `take_usage` has not returned yet
        self._requests = _Rate(limits.requests_per_minute, clock)
        self._tokens = _Rate(limits.tokens_per_minute, clock)
        self._clock = clock
        self._sleep = sleep
        self._capacity = RunVar[anyio.CapacityLimiter]("capacity")
        self._open_at = clock()
        self._failures = 0

    @property
    def capacity(self) -> anyio.CapacityLimiter:
        """Limits the conversations in progress in this event loop; another loop, perhaps in another thread, has its own."""
        if (found := self._capacity.get(None)) is None:
            found = anyio.CapacityLimiter(self.limits.concurrency)
            self._capacity.set(found)
        return found

    async def acquire(self, tokens: int) -> None:
        """Wait until a request may be sent, and count it."""
        while (wait := max(self._open_at, self._requests.free_at, self._tokens.free_at) - self._clock()) > 0:
            await self._sleep(wait)
        self._requests.take(1)
        self._tokens.take(tokens)
        self.usage.requests += 1

    async def pause(self, seconds: float) -> None:
        """Delay every request for a number of seconds, and wait until one may be sent."""
        self._open_at = max(self._open_at, self._clock() + seconds)
        await self.acquire(0)

    def record_usage(self, usage: Usage, estimated: int | None) -> None:
        """Correct an estimate by the reported usage; ``None`` for a further reply, which counts as a request of its own."""
        self.usage.prompt_tokens += usage.prompt_tokens
        self.usage.completion_tokens += usage.completion_tokens
        self._tokens.take(usage.prompt_tokens + usage.completion_tokens - (estimated or 0))
        if estimated is None:
            self.usage.requests += 1
            self._requests.take(1)

    def take_usage(self) -> BatchCounts:
        """Return the usage since the last call; another thread may read ``usage`` meanwhile."""
        taken, self.usage = self.usage, BatchCounts()
        return taken

    def record_success(self) -> None:
        """Record that a summary was made."""
        self._failures = 0

    def record_failure(self, error: Exception) -> None:
        """Record that the summarizer failed."""
        self._failures += 1
        if self._failures >= self.limits.give_up_after:
            raise SummarizerDown(
                f"the summarizer failed {self._failures} times in a row, at last: {error}; when it works again, run the same"
                " command again: finished work and every answer are kept"
            ) from error


@attrs.frozen(eq=False)
class LimitedSummarizer:
    """A summarizer that waits for a rate limiter before each request."""

    timeout_seconds: ClassVar[None] = None  # the inner summarizer has a timeout, which excludes waiting for the rate limiter
    inner: Summarizer
    rate_limiter: RateLimiter

    @property
    def cache_key(self) -> str:
        """The inner summarizer's key, so that cached answers of earlier runs are found."""
        return str(getattr(self.inner, "cache_key", None) or repr(self.inner))

    async def summarize(self, request: SummaryRequest) -> str:
        """Return the inner summarizer's answer."""
        estimated = sum(group.tokens for group in request.groups) + request.budget
        await self.rate_limiter.acquire(estimated)
        try:
            answer = await self._ask(request, estimated)
        except Exception as error:
            if not isinstance(error, ConfigurationError):
                self.rate_limiter.record_failure(error)
            raise
        self.rate_limiter.record_success()
        return answer

    async def _ask(self, request: SummaryRequest, estimated: int) -> str:
        estimates = [estimated]  # of the first reply

        def record(usage: Usage) -> None:
            self.rate_limiter.record_usage(usage, estimates.pop() if estimates else None)
            if isinstance(self.inner, OpenAISummarizer) and self.inner.on_usage is not None:
                self.inner.on_usage(usage)

        if isinstance(self.inner, OpenAISummarizer):
            return await self._ask_with_retries(attrs.evolve(self.inner, on_usage=record), request)
        answer = await self._ask_with_retries(self.inner, request)
        record(Usage(estimated - request.budget, request.counter.count_text(answer)))
        return answer

    async def _ask_with_retries(self, summarizer: Summarizer, request: SummaryRequest) -> str:
        """Return the answer; after a 429, every request is delayed and this one is sent again."""
        for seconds in _WAITS:
            try:
                return await _answer(summarizer, request)
            except Exception as error:
                if (wait := _retry_after(error, seconds)) is None:
                    raise
                await self.rate_limiter.pause(wait)
        return await _answer(summarizer, request)


async def _answer(summarizer: Summarizer, request: SummaryRequest) -> str:
    answer = summarizer.summarize(request)
    return usable_text(answer if isinstance(answer, str) else await answer_in_time(summarizer, answer))


def _retry_after(error: BaseException | None, default: float) -> float | None:
    """Return how long to wait after an HTTP 429; ``None`` for any other error."""
    while error is not None:
        if getattr(error, "status_code", None) == 429:
            headers: Any = getattr(getattr(error, "response", None), "headers", {})
            try:
                seconds = float(headers.get("retry-after"))
            except (TypeError, ValueError):
                return default
            return seconds if 0 <= seconds < math.inf else default
        error = error.__cause__
    return None


# -------------------------------------------------------------------- the summarizers inside a strategy


def rate_limited(job: Job, rate_limiter: RateLimiter, cache: Path | None = None) -> Job:
    """Return a job whose strategy's summarizers wait for a rate limiter; with a cache, that file keeps each answer."""

    def limited(summarizer: Summarizer) -> Summarizer:
        inner = LimitedSummarizer(summarizer, rate_limiter)
        return inner if cache is None else CachedSummarizer(inner, cache)

    return attrs.evolve(job, strategy=replace_summarizers(job.strategy, limited))


def limiter_for(strategy: Strategy, limits: Limits | None) -> RateLimiter | None:
    """Return a new rate limiter; ``None`` if the strategy has no summarizers."""
    return RateLimiter(limits or Limits()) if find_summarizers(strategy) else None


def find_summarizers(strategy: Strategy) -> list[Summarizer]:
    """Return the summarizers of a strategy and its parts that ask a model.

    Summarizers that a plain function calls are not found.

    >>> from compaction import presets
    >>> find_summarizers(presets.adaptive(8_000))
    []
    """
    found: list[Summarizer] = []

    def add(summarizer: Summarizer) -> Summarizer:
        found.append(summarizer)
        return summarizer

    replace_summarizers(strategy, add)
    return found


def replace_summarizers(strategy: Strategy, change: Callable[[Summarizer], Summarizer]) -> Strategy:
    """Return a strategy with each summarizer that asks a model replaced; of a `CachedSummarizer`, the inner one is replaced."""

    def changed(part: Strategy) -> Strategy:
        fields: Any = attrs.fields(cast("Any", type(part))) if attrs.has(type(part)) else ()
        given = {field.name.lstrip("_"): getattr(part, field.name) for field in fields if field.init}
        changes = {name: new for name, old in given.items() if (new := _replaced(old, change)) is not old}
        return cast("Strategy", attrs.evolve(cast("Any", part), **changes)) if changes else part

    return strategy.changed(changed)


def _replaced(value: Any, change: Callable[[Summarizer], Summarizer]) -> Any:
    if not isinstance(value, Summarizer) or not asks_model(value):
        return value
    if isinstance(value, FirstOf):
        parts = [cast("Summarizer", _replaced(each, change)) for each in value.summarizers]
        return value if all(map(is_, parts, value.summarizers)) else FirstOf(*parts)
    if isinstance(value, CachedSummarizer):
        inner = _replaced(value.inner, change)
        return value if inner is value.inner else attrs.evolve(value, inner=inner)
    return change(value)

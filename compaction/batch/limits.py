"""How hard a summarizer may be asked: so many at a time, requests and tokens a minute, and one pause for all when it says so.

Every summarizer of a strategy is wrapped, so that all conversations that are under way share one gate. An `OpenAISummarizer`
waits through the gate before it tries again, so a 429 to one request holds back all of them.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from operator import is_
from typing import Any, Final, cast

import anyio
import attrs

from ..checks import above, count
from ..errors import ConfigurationError, SummaryFailed
from ..strategies import Pipeline, Strategy
from ..summarizers import CachedSummarizer, DigestSummarizer, OpenAISummarizer, Summarizer, SummaryRequest
from ..tokens import Usage

__all__ = ["Gate", "LimitedSummarizer", "Limits", "SummarizerDown", "summarizers_in", "with_summarizers"]

_FIRST_WAIT: Final = 1.0
_LONGEST_WAIT: Final = 60.0
_TRIES: Final = 6


class SummarizerDown(ConfigurationError):
    """A summarizer failed so often in a row that it is of no use to go on."""


@attrs.frozen(kw_only=True)
class Limits:
    """What may be asked of a summarizer.

    Args:
        concurrency: Conversations under way at a time, >= 1.
        requests_per_minute: Requests, > 0; ``None`` for no bound. A summary that is read in parts counts one for each.
        tokens_per_minute: Tokens sent and received, > 0; ``None`` for no bound. Estimated before a request, put right by the
            usage that is reported.
        give_up_after: Failed summaries in a row, with none between that succeeded, after which the batch stops, >= 1: what is
            finished stays, and a later run goes on there.

    Raises:
        ConfigurationError: If a figure is out of range.
    """

    concurrency: int = attrs.field(default=16, validator=count(1))
    requests_per_minute: float | None = attrs.field(default=None, validator=attrs.validators.optional(above(0)))
    tokens_per_minute: float | None = attrs.field(default=None, validator=attrs.validators.optional(above(0)))
    give_up_after: int = attrs.field(default=20, validator=count(1))

    def divided(self, workers: int) -> Limits:
        """Each worker's part of the whole, where workers cannot share a gate."""
        return attrs.evolve(
            self,
            concurrency=max(1, self.concurrency // workers),
            requests_per_minute=None if self.requests_per_minute is None else self.requests_per_minute / workers,
            tokens_per_minute=None if self.tokens_per_minute is None else self.tokens_per_minute / workers,
        )


class _Bucket:
    """Holds state: an allowance that refills with time, a second's worth at most; below zero it is owed."""

    def __init__(self, per_minute: float | None, clock: Callable[[], float]) -> None:
        self._rate = None if per_minute is None else per_minute / 60
        self._clock = clock
        self._left = self._rate or 0.0
        self._at = clock()

    def take(self, amount: float) -> None:
        if self._rate is None:
            return
        now = self._clock()
        self._left = min(max(self._rate, 1.0), self._left + (now - self._at) * self._rate) - amount
        self._at = now

    @property
    def wait_seconds(self) -> float:
        """How long until nothing is owed."""
        self.take(0)
        return 0.0 if self._rate is None else max(0.0, -self._left / self._rate)


class Gate:
    """Holds state: what has been asked of the summarizers of a batch, and when the next request may go.

    Args:
        limits: What may be asked.
        clock: Seconds.
        sleep: Waits so many seconds.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self.limits = limits
        self.requests = 0
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self._requests = _Bucket(limits.requests_per_minute, clock)
        self._tokens = _Bucket(limits.tokens_per_minute, clock)
        self._clock = clock
        self._sleep = sleep
        self._open_at = clock()
        self._failures = 0

    async def admit(self, tokens: int) -> None:
        """Wait until a request may be sent, and count it."""
        while (wait := max(self._open_at - self._clock(), self._requests.wait_seconds, self._tokens.wait_seconds)) > 0:
            await self._sleep(wait)
        self._requests.take(1)
        self._tokens.take(tokens)
        self.requests += 1

    async def pause(self, seconds: float) -> None:
        """Let nobody send for so long, then wait for one's turn to send again."""
        self._open_at = max(self._open_at, self._clock() + seconds)
        await self.admit(0)

    def settle(self, usage: Usage, estimated: int, *, first: bool) -> None:
        """Put an estimate right by what the server reports; a further reply of one summary is a request of its own."""
        self.prompt_tokens += usage.prompt_tokens
        self.completion_tokens += usage.completion_tokens
        self._tokens.take(usage.prompt_tokens + usage.completion_tokens - (estimated if first else 0))
        if not first:
            self.requests += 1
            self._requests.take(1)

    def succeeded(self) -> None:
        """A summary was had."""
        self._failures = 0

    def failed(self, error: Exception) -> None:
        """A summary was not to be had.

        Raises:
            SummarizerDown: If that has happened too often in a row.
        """
        self._failures += 1
        if self._failures >= self.limits.give_up_after:
            raise SummarizerDown(
                f"the summarizer failed {self._failures} times in a row, at last: {error}; when it is well, run the same again:"
                " what is finished is kept, and what was answered is not asked again"
            ) from error


@attrs.frozen(eq=False)
class LimitedSummarizer:
    """A summarizer that asks another one through a gate.

    Args:
        inner: Who is asked.
        gate: When.
    """

    inner: Summarizer
    gate: Gate = attrs.field(repr=False)

    @property
    def cache_key(self) -> str:
        """The inner summarizer's, so that answers are found again."""
        return str(getattr(self.inner, "cache_key", None) or repr(self.inner))

    async def summarize(self, request: SummaryRequest) -> str:
        """The inner summarizer's answer.

        Raises:
            SummaryFailed: If it fails.
            SummarizerDown: If it failed too often in a row.
        """
        estimated = sum(group.tokens for group in request.groups) + request.budget
        await self.gate.admit(estimated)
        try:
            answer = await self._asked(request, estimated)
        except Exception as error:
            if not isinstance(error, ConfigurationError):
                self.gate.failed(error)
            raise
        self.gate.succeeded()
        return answer

    async def _asked(self, request: SummaryRequest, estimated: int) -> str:
        replies = 0

        def settle(usage: Usage) -> None:
            nonlocal replies
            self.gate.settle(usage, estimated, first=replies == 0)
            replies += 1

        if isinstance(self.inner, OpenAISummarizer):
            return await _answer(attrs.evolve(self.inner, sleep=self.gate.pause, on_usage=settle), request)
        answer = await self._patiently(request)
        settle(Usage(estimated - request.budget, request.counter.count_text(answer)))
        return answer

    async def _patiently(self, request: SummaryRequest) -> str:
        """The answer of a summarizer that does not wait by itself: after a 429 all wait, and it is asked again."""
        wait = _FIRST_WAIT
        for _ in range(_TRIES):
            try:
                return await _answer(self.inner, request)
            except Exception as error:
                if not (asked := _wait_of(error, wait)):
                    raise
                await self.gate.pause(asked)
                wait = min(2 * wait, _LONGEST_WAIT)
        return await _answer(self.inner, request)


async def _answer(summarizer: Summarizer, request: SummaryRequest) -> str:
    answer = summarizer.summarize(request)
    if not isinstance(answer, str):
        answer = await answer
    if not isinstance(answer, str):
        raise SummaryFailed(f"the summarizer answered {answer!r:.100}: a summary is a text")
    return answer


def _wait_of(error: BaseException | None, default: float) -> float | None:
    """How long to wait after a refusal for the time being (HTTP 429); ``None`` if it is another error."""
    while error is not None:
        if getattr(error, "status_code", None) == 429:
            headers: Any = getattr(getattr(error, "response", None), "headers", {})
            try:
                return max(0.001, float(headers.get("retry-after")))
            except (TypeError, ValueError):
                return default
        error = error.__cause__
    return None


def summarizers_in(strategy: Strategy) -> list[Summarizer]:
    """The summarizers of a strategy, and of those in it, that are worth a limit: all but the digest, which asks nobody.

    What a plain function asks is not seen.

    >>> from compaction import presets
    >>> summarizers_in(presets.hermes(8_000))
    []
    """
    found: list[Summarizer] = []

    def note(summarizer: Summarizer) -> Summarizer:
        found.append(summarizer)
        return summarizer

    with_summarizers(strategy, note)
    return found


def with_summarizers(strategy: Strategy, change: Callable[[Summarizer], Summarizer], *, digests: bool = False) -> Strategy:
    """A strategy with each summarizer changed; within a cache the one that is cached.

    Args:
        strategy: The strategy.
        change: What makes the new one.
        digests: Whether digests, which ask nobody, are changed too.
    """
    if isinstance(strategy, Pipeline):
        steps = [with_summarizers(step, change, digests=digests) for step in strategy.steps]
        same = all(new is old for new, old in zip(steps, strategy.steps, strict=True))
        return strategy if same else Pipeline(*steps, trigger=strategy.trigger, target=strategy.target)
    if not attrs.has(type(strategy)):
        return strategy
    changes: dict[str, Any] = {}
    for field in attrs.fields(cast("Any", type(strategy))):
        value = getattr(strategy, field.name)
        new = _changed(value, change, digests)
        if new is not value and field.init:
            changes[field.name.lstrip("_")] = new
    return cast("Strategy", attrs.evolve(cast("Any", strategy), **changes)) if changes else strategy


def _changed(value: Any, change: Callable[[Summarizer], Summarizer], digests: bool) -> Any:
    if isinstance(value, Strategy):
        return with_summarizers(value, change, digests=digests)
    if isinstance(value, tuple):
        new = [_changed(item, change, digests) for item in cast("Any", value)]
        return cast("Any", value) if all(map(is_, new, cast("Any", value))) else tuple(new)
    if not isinstance(value, Summarizer) or (isinstance(value, DigestSummarizer) and not digests):
        return value
    if isinstance(value, CachedSummarizer):
        inner = change(value.inner)
        return value if inner is value.inner else attrs.evolve(value, inner=inner)
    return change(value)

"""Summarizers with scripted answers, which record their requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import anyio

from compaction import MessageIndex
from compaction.summarizers import Summarizer, SummaryRequest

Answer = str | Exception | Callable[[SummaryRequest], str]


def request_for(summarizer: Summarizer, messages: Iterable[Any], *, budget: int = 200, **options: Any) -> SummaryRequest:
    """Return a request for a summary of these messages, with four characters a token."""
    index = MessageIndex(messages, counter="chars/4")
    given: dict[str, Any] = {"groups": index.included_groups, "counter": index.counter, **options}
    return SummaryRequest(summarizer=summarizer, budget=budget, **given)


class Scripted:
    """A summarizer with scripted answers, the last of which repeats. Holds state: its requests."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.requests: list[SummaryRequest] = []

    def summarize(self, request: SummaryRequest) -> str:
        self.requests.append(request)
        answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer if isinstance(answer, str) else answer(request)


class Awaited(Scripted):
    """An awaitable `Scripted`: it sleeps first, so that other tasks run and a cancellation can interrupt it."""

    def __init__(self, *answers: Answer, seconds: float = 0.0) -> None:
        super().__init__(*answers)
        self.seconds = seconds
        self.running = 0
        self.most_running = 0

    def summarize(self, request: SummaryRequest) -> Awaitable[str]:  # type: ignore[override]
        return self._later(request)

    async def _later(self, request: SummaryRequest) -> str:
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await anyio.sleep(self.seconds)
            return super().summarize(request)
        finally:
            self.running -= 1


class TooLong(Exception):
    status_code = 400

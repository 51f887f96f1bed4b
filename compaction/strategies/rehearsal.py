"""Running a strategy without calling a model or writing to a store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

import attrs

from ..errors import StrategyError
from ..index import PASS_ON, MessageIndex, Request, relay
from ..stores import StoreRequest
from ..summarizers import SummaryRequest
from .base import Steps, Strategy
from .summaries import is_extractive

_WORD: Final = "word "


def asks_model(request: Request) -> bool:
    """Return whether a request is to a model: neither to a store nor to an extractive summarizer."""
    if isinstance(request, SummaryRequest):
        return not is_extractive(request.summarizer)
    return not isinstance(request, StoreRequest)


def answer_without_model(request: Request) -> Any:
    """Return the answer to a request; a model's summary is assumed to use its whole budget, and nothing is stored.

    Raises:
        StrategyError: If it is a request of a third party.
    """
    if isinstance(request, StoreRequest):
        return None
    if not isinstance(request, SummaryRequest):
        raise StrategyError(f"{type(request).__name__} cannot be rehearsed")
    if not asks_model(request):
        return request.call()
    text = _WORD * request.budget
    return text[: len(text) * request.budget // max(request.budget, request.counter.count_text(text))]


@attrs.frozen
class Rehearsed(Strategy):
    """Runs a strategy without calling a model or writing to a store; a run of it has a whole result, unlike a dry run.

    Args:
        strategy: The strategy.
        answer: Returns the answer to a request.
    """

    runs: ClassVar[str] = "strategy"

    strategy: Strategy
    answer: Callable[[Request], Any] = answer_without_model

    @property
    def name(self) -> str:
        return self.strategy.name

    def __call__(self, index: MessageIndex) -> Steps:
        yield from relay(self.strategy(index), self._answered)

    def _answered(self, item: object) -> Any:
        return self.answer(item) if isinstance(item, Request) else PASS_ON

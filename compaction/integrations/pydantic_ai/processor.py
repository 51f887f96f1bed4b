"""A history processor for pydantic-ai."""

from __future__ import annotations

from typing import Any

from ...result import CompactionResult
from ...strategies import StrategyLike
from ..conversation import FrameworkConversation
from ..options import IntegrationOptions
from ..requirements import PYDANTIC_AI
from .format import pydantic_ai

__all__ = ["CompactionProcessor"]


class CompactionProcessor:
    """A history processor that compacts before each model request.

    Use it as ``capabilities=[ProcessHistory(CompactionProcessor(strategy))]``. The framework makes the returned messages the
    run's history, which ``all_messages()`` holds from then on, so a stored history is enough to resume. Summaries carry a mark
    in their text and are updated by later rounds. A processor does not see the tools: pass ``overhead_tokens=`` for them.
    Holds state: the last result.

    Args:
        strategy: The strategy; its trigger decides when it runs.
        options: As for `IntegrationOptions`: ``counter=``, ``window=``, ``overhead_tokens=``, ``on_failure=`` and so on.

    Raises:
        ConfigurationError: If the framework is missing or too old, or an option is out of range.
    """

    def __init__(self, strategy: StrategyLike, **options: Any) -> None:
        PYDANTIC_AI.check()
        self.options = IntegrationOptions(strategy=strategy, **options)
        self.last: CompactionResult | None = None

    async def __call__(self, messages: list[Any]) -> list[Any]:
        conversation = FrameworkConversation(self.options, pydantic_ai)
        view = await conversation.view(messages)
        self.last = conversation.last
        return view

"""A history processor for pydantic-ai."""

from __future__ import annotations

from typing import Any, Final

from ...outcome import CompactionResult
from ...strategies.base import StrategyLike
from ..following import Conversation, Following
from ..packages import require
from .format import pydantic_ai

__all__ = ["CompactionProcessor"]

_PACKAGE: Final = {"distribution": "pydantic-ai-slim", "extra": "pydantic-ai", "least": "2.60"}


class CompactionProcessor:
    """Compacts before each model request: ``capabilities=[ProcessHistory(CompactionProcessor(strategy))]``.

    The framework takes what a processor returns for the run's history: ``all_messages()`` holds it from then on, so a stored
    history is what resumes, and nothing else has to be saved. Summaries carry a mark in their text and are updated by later
    rounds. What the framework sends besides the messages is not shown to a processor: give ``overhead_tokens=`` for tools.
    Holds state: the last result.

    Args:
        strategy: What keeps requests small; its trigger decides when.
        options: As for `Following`: ``counter=``, ``window=``, ``overhead_tokens=``, ``on_failure=`` and so on.

    Raises:
        ConfigurationError: If the framework is missing or too old, or an option is out of range.
    """

    def __init__(self, strategy: StrategyLike, **options: Any) -> None:
        require(**_PACKAGE)
        self.following = Following(strategy=strategy, **options)
        self.last: CompactionResult | None = None

    async def __call__(self, messages: list[Any]) -> list[Any]:
        conversation = Conversation(self.following, pydantic_ai)
        view = await conversation.view(messages)
        self.last = conversation.last
        return view

"""One run of one case: its server, its summarizer, its strategy, and the host that answers turn after turn."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import attrs

from compaction import Pipeline, last, presets
from compaction.errors import SummaryFailed
from compaction.strategies import Summarization, Truncation
from compaction.triggers import tokens_below, tokens_exceed

from .script import SPECIALIST, result_text, user_text
from .server import SUMMARY, StrictServer

INSTRUCTIONS: Final = "You are a shop. Look up what the user asks for, and answer in a sentence."
HANG_SECONDS: Final = 1.0
TIMEOUT_SECONDS: Final = 120.0
"""Seconds that clients wait: 50 conversations in one process keep each other waiting."""
Summaries: TypeAlias = Literal["work", "fail", "hang"]
StrategyName: TypeAlias = Literal["summaries", "adaptive", "context_window"]


class CountingSummarizer:
    """A summarizer that always returns the same short text. Holds state: the number of its requests.

    Args:
        does: ``"work"``, ``"fail"`` at once, or ``"hang"`` for some seconds before it fails.
        cancel_every: Of so many requests the last is cancelled while it is under way; 0 for none.
    """

    def __init__(self, does: Summaries = "work", cancel_every: int = 0) -> None:
        self.asked = 0
        self.cancelled = 0
        self.turn: asyncio.Task[None] | None = None
        self._does = does
        self._cancel_every = cancel_every

    async def summarize(self, request: Any) -> str:
        """Return the summary."""
        self.asked += 1
        if self._cancel_every and self.asked % self._cancel_every == 0 and self.turn is not None:
            self.cancelled += 1
            self.turn.cancel()
            await asyncio.sleep(HANG_SECONDS)
        if self._does == "hang":
            await asyncio.sleep(HANG_SECONDS)
        if self._does != "work":
            raise SummaryFailed("the model does not answer")
        return SUMMARY


@attrs.frozen(kw_only=True)
class Trial:
    """The arguments of a host.

    Args:
        server: The model.
        summarizer: The summarizer.
        turns: Turns of each conversation.
        seed: Seeds the texts.
        folder: A folder for what must outlive a process.
        strategy_name: The strategy: a summary at seven tenths of the window and dropping at 85 %, or a preset.
    """

    server: StrictServer
    summarizer: CountingSummarizer
    turns: int
    seed: int
    folder: Path
    strategy_name: StrategyName = "summaries"

    @property
    def url(self) -> str:
        """Return the address for OpenAI's clients."""
        return f"{self.server.address}/v1"

    @property
    def strategy(self) -> Pipeline:
        """The strategy."""
        window = self.server.window
        if self.strategy_name == "adaptive":
            return presets.adaptive(window, self.summarizer)
        if self.strategy_name == "context_window":
            return presets.context_window(window)
        return Pipeline(
            Summarization(self.summarizer, trigger=tokens_exceed(window * 7 // 10), keep=last(tokens=window // 4)),
            Truncation(trigger=tokens_exceed(window * 85 // 100), target=tokens_below(window * 6 // 10), keep=last(groups=1)),
        )

    @property
    def options(self) -> dict[str, Any]:
        """The options of every integration."""
        return {"counter": "chars/4", "window": self.server.window}


class Host:
    """A framework with an agent. Holds state: its conversations.

    Args:
        trial: What it is given.
    """

    def __init__(self, trial: Trial) -> None:
        self.trial = trial

    async def turn(self, conversation: str, text: str) -> None:
        """Answer the user in a conversation; a sub-agent's conversation is named after the call that started it."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close everything that is open."""

    async def look_up_price(self, item: str) -> str:
        """Look up what an item costs."""
        return result_text(item, self.trial.seed)

    async def place_order(self, item: str) -> str:
        """Order an item."""
        return result_text(item, self.trial.seed)

    async def ask_specialist(self, item: str) -> str:
        """Ask a specialist about an item."""
        conversation, turn, _, number = item.split("/")
        name = f"{conversation}{SPECIALIST}{turn}-{number}"
        await self.turn(name, user_text(name, 0, self.trial.seed))
        return result_text(item, self.trial.seed)

    @staticmethod
    def is_specialist(conversation: str) -> bool:
        """Whether a conversation is a sub-agent's."""
        return SPECIALIST in conversation

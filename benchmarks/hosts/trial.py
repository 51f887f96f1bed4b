"""One run of one case: its server, its summarizer, its strategy, and the host that answers turn after turn."""

from __future__ import annotations

import asyncio
import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypeVar
from weakref import WeakValueDictionary

import attrs

from compaction import Pipeline, last, presets
from compaction.errors import SummaryFailed
from compaction.messages import Message
from compaction.stores import SessionStore
from compaction.strategies import Summarization, Truncation
from compaction.triggers import tokens_below, tokens_exceed

from .script import PINNED, SPECIALIST, result_text, user_text
from .server import SUMMARY, StrictServer

INSTRUCTIONS: Final = "You are a shop. Look up what the user asks for, and answer in a sentence."
HANG_SECONDS: Final = 0.3
TIMEOUT_SECONDS: Final = 120.0
"""Seconds that clients wait: 50 conversations in one process keep each other waiting."""
Summaries: TypeAlias = Literal["work", "fail", "hang"]
StrategyName: TypeAlias = Literal["summaries", "adaptive", "context_window"]
Restarts: TypeAlias = Literal["", "new", "copied", "pickled"]
"""The list that each turn begins with: as the last one left it; new objects; deep copies; or pickled ones."""
_T = TypeVar("_T")
_SUMMARIZERS: Final[WeakValueDictionary[int, Any]] = WeakValueDictionary()


def is_pinned(message: Message) -> bool:
    """Whether this is the message that must stay in the cases with a pin."""
    return PINNED in message.text


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
        _SUMMARIZERS[id(self)] = self

    def __reduce__(self) -> tuple[Any, ...]:
        return _summarizer, (id(self),)  # copies of a strategy ask the same model

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


def _summarizer(key: int) -> CountingSummarizer:
    """Return the summarizer that a copied or pickled one stands for."""
    found: CountingSummarizer = _SUMMARIZERS[key]
    return found


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
        restarts: What each turn begins with.
        is_pinned: Whether one message is pinned.
    """

    server: StrictServer
    summarizer: CountingSummarizer
    turns: int
    seed: int
    folder: Path
    strategy_name: StrategyName = "summaries"
    restarts: Restarts = ""
    is_pinned: bool = False

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
        pin = {"pin": is_pinned} if self.is_pinned else {}
        return {"counter": "chars/4", "window": self.server.window, **pin}

    @property
    def store(self) -> dict[str, Any]:
        """The option ``store`` of the integrations that have one, if each turn is another process."""
        return {"store": SessionStore(self.folder / "compaction.db")} if self.restarts else {}


class Host:
    """A framework with an agent. Holds state: its conversations.

    Args:
        trial: What it is given.
    """

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self._renewed: Any = None

    def renewed(self, make: Callable[[], _T]) -> _T:
        """Return the integration's object for a process: a new one, or a copy of the last one."""
        if self._renewed is not None and self.trial.restarts == "copied":
            self._renewed = copy.deepcopy(self._renewed)
        elif self._renewed is not None and self.trial.restarts == "pickled":
            self._renewed = pickle.loads(pickle.dumps(self._renewed))
        else:
            self._renewed = make()
        made: _T = self._renewed
        return made

    async def restart(self) -> None:
        """Start another process, to which only what was saved is left."""
        raise NotImplementedError

    async def snapshot(self, conversation: str) -> Any:
        """Return the conversation as it is."""
        raise NotImplementedError

    async def restore(self, conversation: str, snapshot: Any) -> None:
        """Continue a conversation, which may be a new one, from a snapshot."""
        raise NotImplementedError

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

    async def transfer_to_specialist(self, item: str) -> str:
        """Let the specialist continue this conversation."""
        return '{"assistant": "specialist"}'

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

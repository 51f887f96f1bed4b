"""One conversation as a framework shows it: followed call by call, compacted when it is time, and safe when that fails.

Every integration does the same between two of its framework's own lines: it passes the list the framework has, and sends what
comes back. What differs is the format, where the state is kept, and whether the framework awaits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias, cast

import anyio
import attrs

from ..checks import count
from ..context import RunContext
from ..errors import ConfigurationError, StateError, SyncDriverError
from ..formats import MessageFormat
from ..index import MessageIndex
from ..messages import Message
from ..outcome import CompactionResult, Observer
from ..run import run, run_sync
from ..strategies.base import Failed, Strategy, StrategyLike, as_strategy
from ..tokens import TokenCounter

__all__ = ["STATE_VERSION", "Conversation", "Following", "OnFailure", "RecentConversations"]

STATE_VERSION: Final = 1
"""Of the data that `Conversation.to_dict` makes."""

OnFailure: TypeAlias = Literal["uncompacted", "raise"]
"""What becomes of the agent's run if a strategy raises: it goes on with the last good view, or it fails."""


@attrs.frozen(kw_only=True)
class Following:
    """How conversations are compacted inside a framework: what every integration takes besides its own arguments.

    Args:
        strategy: What to run; its trigger decides when.
        counter: A token counter or the name of one.
        window: Tokens the model takes in, for `context_exceeds`.
        overhead_tokens: Tokens of every request that the framework does not show us, >= 0.
        pin: Says of a message whether its group must be kept as it is.
        clock: Seconds, for `idle_for` and for how long a failed summarizer rests; ``None`` for no clock.
        on_failure: ``"uncompacted"``: if the strategy raises, the run goes on with the last good view and the result says so;
            ``"raise"``: the run fails.
        on_result: Called with the result of each run of the strategy, whether anything changed or not.
        on_step: Called with each step that fired.

    >>> from compaction import presets
    >>> Following(strategy=presets.context_window(32_000)).on_failure
    'uncompacted'
    """

    strategy: Strategy = attrs.field(converter=as_strategy)
    counter: TokenCounter | str = "auto"
    window: int | None = attrs.field(default=None, validator=attrs.validators.optional(count(1)))
    overhead_tokens: int = attrs.field(default=0, validator=count())
    pin: Callable[[Message], bool] | None = None
    clock: Callable[[], float] | None = None
    on_failure: OnFailure = attrs.field(default="uncompacted", validator=attrs.validators.in_(("uncompacted", "raise")))
    on_result: Callable[[CompactionResult], object] | None = None
    on_step: Observer | None = None

    def context(self, overhead_tokens: int = 0) -> RunContext:
        """What a run knows besides the messages."""
        now = None if self.clock is None else self.clock()
        return RunContext(window=self.window, overhead_tokens=self.overhead_tokens + overhead_tokens, now=now)

    def with_strategy(self, strategy: StrategyLike) -> Following:
        """The same with another strategy."""
        return attrs.evolve(self, strategy=strategy)


class Conversation:
    """Follows one conversation. Holds state: its index, the last result, and whether there is something to save.

    Args:
        following: How it is compacted.
        format: The framework's messages.
        saved: What `to_dict` returned earlier, if anything.

    Raises:
        StateError: If ``saved`` is of another version or corrupt and ``following.on_failure`` is ``"raise"``; else it starts
            anew, and the first result says why.
    """

    def __init__(self, following: Following, format: MessageFormat, saved: object = None) -> None:
        self.following = following
        self.last: CompactionResult | None = None
        self.unsaved = False
        self._format = format
        self._lock = anyio.Lock()
        self._thread_lock = threading.RLock()
        self._refused_state: StateError | None = None
        self.index = self._new_index()
        if saved:
            self._resume(saved)

    def _new_index(self) -> MessageIndex:
        each = self.following
        return MessageIndex(counter=each.counter, format=self._format, context=each.context(), pin=each.pin)

    def _resume(self, saved: object) -> None:
        try:
            version, index = _parts(saved)
            if version != STATE_VERSION:
                raise StateError(
                    f"saved state: version={version!r}, this release reads {STATE_VERSION}; delete it, and the conversation is"
                    " compacted anew"
                )
            each = self.following
            self.index = MessageIndex.from_dict(
                index, counter=self.index.counter, context=each.context(), pin=each.pin, format=self._format
            )
        except StateError as error:
            if self.following.on_failure == "raise":
                raise
            self._refused_state = error

    async def view(self, messages: Iterable[Any], *, overhead_tokens: int = 0, strategy: Strategy | None = None) -> list[Any]:
        """What to send for this conversation now.

        Args:
            messages: The whole conversation as the framework has it, or the last view with what came since.
            overhead_tokens: Tokens of this request outside these messages: tools, a system prompt, other messages.
            strategy: Another strategy for this once.

        Raises:
            ConfigurationError: If something is set wrongly; no policy hides that.
            Exception: Whatever the strategy raises, if ``on_failure`` is ``"raise"``.
        """
        given = list(messages)
        async with self._lock:
            try:
                self.follow(given, overhead_tokens)
            except Exception as error:
                return self._failed(given, error)
            return await self._run(strategy)

    async def view_more(self, messages: list[Any], since: int, *, total: int, overhead_tokens: int = 0) -> list[Any]:
        """`view` for a caller who knows what came since its last call; O(new) besides copying the view.

        Args:
            messages: The whole conversation.
            since: The place of the first message that is new.
            total: How many messages the index had after that call. If another run came between, all is compared.
            overhead_tokens: As for `view`.

        Raises:
            Exception: As for `view`.
        """
        async with self._lock:
            try:
                if self.index.total.messages == total:
                    self.index.context = self.following.context(overhead_tokens)
                    self.index.append(messages[since:])
                else:
                    self.follow(messages, overhead_tokens)
            except Exception as error:
                return self._failed(list(messages), error)
            return await self._run(None)

    async def _run(self, strategy: Strategy | None) -> list[Any]:
        try:
            result = await run(self.index, strategy or self.following.strategy, on_step=self.following.on_step)
        except Exception as error:
            return self._failed(self.index.messages(), error)
        return self._noted(result)

    def view_sync(self, messages: Iterable[Any], *, overhead_tokens: int = 0) -> list[Any]:
        """`view` for strategies that await nothing."""
        given = list(messages)
        with self._thread_lock:
            try:
                self.follow(given, overhead_tokens)
            except Exception as error:
                return self._failed(given, error)
            try:
                result = run_sync(self.index, self.following.strategy, on_step=self.following.on_step)
            except Exception as error:
                return self._failed(self.index.messages(), error)
            return self._noted(result)

    def follow(self, messages: list[Any], overhead_tokens: int = 0) -> None:
        """Take the list as it is now, and compact nothing."""
        self.index.context = self.following.context(overhead_tokens)
        self.index.sync(messages)

    def _noted(self, result: CompactionResult) -> list[Any]:
        if self._refused_state is not None:
            result = attrs.evolve(result, failures=(*result.failures, self._started_anew(self._refused_state)))
            self._refused_state = None
        self.last = result
        self.unsaved = self.unsaved or bool(result.edits or result.failures)
        if self.following.on_result is not None:
            self.following.on_result(result)
        return result.messages

    def _started_anew(self, error: StateError) -> Failed:
        return Failed(self.following.strategy.name, error, "the saved state was left aside; the conversation is compacted anew")

    def _failed(self, messages: list[Any], error: Exception) -> list[Any]:
        """These messages as they are, and a result that says why."""
        if self.following.on_failure == "raise" or isinstance(error, ConfigurationError | SyncDriverError):
            raise error
        sizes = self.index.included
        return self._noted(
            CompactionResult(
                messages=messages,
                before=sizes,
                after=sizes,
                edits=(),
                refused=(),
                failures=(Failed(self.following.strategy.name, error, "the run went on with the view as it was"),),
                outcome="degraded",
            )
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready data: edits and fingerprints, no messages; and how the last run ended. O(messages)."""
        self.unsaved = False
        return {"version": STATE_VERSION, "index": self.index.to_dict(messages=False), "last": self.report()}

    def report(self) -> dict[str, Any] | None:
        """How the last run ended, as JSON-ready data; ``None`` before the first."""
        last = self.last
        if last is None:
            return None
        return {
            "outcome": last.outcome,
            "tokens_before": last.before.tokens,
            "tokens_after": last.after.tokens,
            "edits": len(last.edits),
            "failures": [f"{each.strategy}: {each.error!r}; {each.policy}" for each in last.failures],
        }


class RecentConversations:
    """Conversations of frameworks that pass a list and nothing to know it by. Holds state: those met lately.

    Args:
        following: How conversations are compacted.
        format: The framework's messages.
        remembered: How many are kept, >= 1.
    """

    def __init__(self, following: Following, format: MessageFormat, *, remembered: int = 32) -> None:
        self.following = following
        self._format = format
        self._remembered = remembered
        self._lock = threading.Lock()
        self._known: list[Conversation] = []

    def of(self, messages: list[Any]) -> Conversation:
        """The newest conversation that this list continues, or a new one. O(conversations), and O(messages) for the one."""
        with self._lock:
            found = next((each for each in reversed(self._known) if self._continues(messages, each.index)), None)
            if found is None:
                found = Conversation(self.following, self._format)
            else:
                self._known.remove(found)
            self._known.append(found)
            del self._known[: -self._remembered]
            return found

    def _continues(self, messages: list[Any], index: MessageIndex) -> bool:
        source = index.source
        return bool(source) and self._format.common_prefix(source, messages) == len(source)


def _parts(saved: object) -> tuple[object, dict[str, Any]]:
    """The version and the index of saved data."""
    if not isinstance(saved, Mapping):
        raise StateError(f"saved state: it is no mapping (got {type(saved).__name__}); delete it and start anew")
    data = cast("Mapping[str, Any]", saved)
    index = data.get("index")
    if not isinstance(index, dict):
        raise StateError("saved state: it holds no index; delete it, and the conversation is compacted anew")
    return data.get("version"), cast("dict[str, Any]", index)

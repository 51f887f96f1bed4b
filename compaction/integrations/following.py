"""One conversation as a framework shows it: followed call by call, compacted when it is time, and safe when that fails.

Every integration does the same between two of its framework's own lines: it passes the list the framework has, and sends what
comes back. What differs is the format, where the state is kept, and whether the framework awaits.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeAlias, cast

import attrs

from ..checks import count
from ..errors import ConfigurationError, StateError, SyncDriverError
from ..formats import MessageFormat
from ..index import MessageIndex
from ..messages import Message
from ..outcome import CompactionResult, Observer
from ..session import CompactionSession
from ..strategies.base import Failed, Strategy, StrategyLike, as_strategy
from ..tokens import TokenCounter

__all__ = ["Conversation", "Following", "OnFailure", "RecentConversations"]

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

    def session(self, format: MessageFormat, saved: Mapping[str, Any] | None = None) -> CompactionSession:
        """A session that compacts like this.

        Args:
            format: The framework's messages.
            saved: What the session's ``to_dict`` returned earlier, if anything.

        Raises:
            StateError: If ``saved`` is of another version or corrupt.
        """
        options: dict[str, Any] = {
            "counter": self.counter,
            "format": format,
            "window": self.window,
            "overhead_tokens": self.overhead_tokens,
            "pin": self.pin,
            "clock": self.clock,
            "on_step": self.on_step,
        }
        if saved is None:
            return CompactionSession(self.strategy, **options)
        return CompactionSession.from_dict(saved, self.strategy, **options)

    def with_strategy(self, strategy: StrategyLike) -> Following:
        """The same with another strategy."""
        return attrs.evolve(self, strategy=strategy)


class Conversation:
    """Follows one conversation. Holds state: its session, the last result, and whether there is something to save.

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
        self._refused_state: StateError | None = None
        try:
            self._session = following.session(format, cast("Mapping[str, Any] | None", saved or None))
        except StateError as error:
            if following.on_failure == "raise":
                raise
            self._refused_state = error
            self._session = following.session(format)

    @property
    def index(self) -> MessageIndex:
        """The conversation as it is known: groups, edits, originals."""
        return self._session.index

    async def view(self, messages: Iterable[Any], *, overhead_tokens: int = 0) -> list[Any]:
        """What to send for this conversation now.

        Args:
            messages: The whole conversation as the framework has it, or the last view with what came since.
            overhead_tokens: Tokens of this request outside these messages: tools, a system prompt, other messages.

        Raises:
            ConfigurationError: If something is set wrongly; no policy hides that.
            Exception: Whatever the strategy raises, if ``on_failure`` is ``"raise"``.
        """
        given = list(messages)
        async with self._session.lock.task:
            try:
                self._session.follow(given, overhead_tokens=overhead_tokens)
            except Exception as error:
                return self._failed(given, error)
            return await self._compacted()

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
        async with self._session.lock.task:
            try:
                if self.index.total.messages == total:
                    self._session.follow_more(messages[since:], overhead_tokens=overhead_tokens)
                else:
                    self._session.follow(messages, overhead_tokens=overhead_tokens)
            except Exception as error:
                return self._failed(list(messages), error)
            return await self._compacted()

    async def _compacted(self) -> list[Any]:
        try:
            result = await self._session.compact_due()
        except Exception as error:
            return self._failed(self.index.messages(), error)
        return self._noted(result)

    def view_sync(self, messages: Iterable[Any], *, overhead_tokens: int = 0) -> list[Any]:
        """`view` for strategies that await nothing."""
        given = list(messages)
        with self._session.lock.thread:
            try:
                self._session.follow(given, overhead_tokens=overhead_tokens)
            except Exception as error:
                return self._failed(given, error)
            try:
                result = self._session.compact_due_sync()
            except Exception as error:
                return self._failed(self.index.messages(), error)
            return self._noted(result)

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
        return {**self._session.to_dict(), "last": self.report()}

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

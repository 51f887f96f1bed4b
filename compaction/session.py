"""One conversation over many turns: what was decided stays decided, so that what is sent grows only at its end.

    session = CompactionSession(presets.context_window(32_000))
    reply = client.create(messages=await session.view(messages))
    session.record_usage(reply.usage)

The session keeps an index of the conversation, follows the full list the agent passes on each turn (the source, or the last
view fed back), and runs the strategy when its trigger fires. Between compactions a provider's prompt cache stays warm. State
is the index's edits and fingerprints, saved after each compaction if there is a store; a process killed at any moment resumes
with the same view.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

import attrs

from .context import RunContext
from .errors import StateError
from .formats import MessageFormat, resolve
from .index import MessageIndex
from .lock import TurnLock
from .messages import Message
from .metrics import Metrics
from .outcome import CompactionResult, Observer, Outcome
from .run import run, run_sync
from .session_store import SessionStore
from .strategies import Strategy, StrategyLike, as_strategy
from .tokens import TokenCounter, Usage, UsageAnchor

__all__ = ["VERSION", "CompactionSession", "SessionStatus"]

VERSION: Final = 1
"""Of the data that `CompactionSession.to_dict` makes."""


@attrs.frozen(kw_only=True)
class SessionStatus:
    """Where a session stands.

    Args:
        tokens: Tokens the last view would send, by reported usage where there is some.
        window: The model's window, if known.
        included: Sizes of the last view.
        total: Sizes of the whole conversation.
        compactions: How many runs changed the view.
        outcome: How the last run ended; ``None`` before the first.
        failures: What failed in the last run, in words.
    """

    tokens: int
    window: int | None
    included: Metrics
    total: Metrics
    compactions: int
    outcome: Outcome | None
    failures: tuple[str, ...]


class CompactionSession:
    """A conversation that is compacted as it grows. Holds state: the index, the usage anchor, how runs went.

    Cost of a turn: comparing the list with what is known (by identity first), reading what is new, O(1) for the trigger, and a
    copy of the view; a run only when the trigger fires.

    Args:
        strategy: What to run; its trigger decides when.
        counter: A token counter or the name of one.
        format: The wire format; ``None`` to look, see `compaction.formats.resolve`.
        window: Tokens the model takes in, for `context_exceeds`.
        overhead_tokens: Tokens of every request outside the messages, until usage is reported.
        pin: Says of a message whether its group must be kept as it is.
        clock: Seconds; for `idle_for` and cooldowns. Pass a clock of your own to replay, or ``None`` for no clock.
        on_step: Called with each step that fired.
        hard: Whether to raise `BudgetUnsatisfiable` where a step that fired missed its target; the session is as it was then.
        store: Where to save, if anywhere.
        id: The session's name in the store.
        verify: Whether to notice messages changed in place, at O(contents) a turn.

    Attributes:
        lock: Held while a turn is taken.
    """

    def __init__(
        self,
        strategy: StrategyLike,
        *,
        counter: TokenCounter | str = "auto",
        format: MessageFormat | str | None = None,
        window: int | None = None,
        overhead_tokens: int = 0,
        pin: Callable[[Message], bool] | None = None,
        clock: Callable[[], float] | None = time.time,
        on_step: Observer | None = None,
        hard: bool = False,
        store: SessionStore | None = None,
        id: str = "default",
        verify: bool = False,
    ) -> None:
        self._strategy: Strategy = as_strategy(strategy)
        self._base = RunContext(window=window, overhead_tokens=overhead_tokens)
        self._clock = clock
        self._pin = pin
        self._on_step = on_step
        self._hard = hard
        self._store = store
        self._id = id
        self._verify = verify
        self.lock = TurnLock()
        self._anchor: UsageAnchor | None = None
        self._compactions = 0
        self._last: CompactionResult | None = None
        self._named = None if format is None else resolve(format)
        self._index = MessageIndex(counter=counter, format=format, context=self._context(), pin=pin)
        if store is not None and (saved := store.load(id)) is not None:
            self._resume(saved)

    @property
    def index(self) -> MessageIndex:
        """The conversation as the session knows it: groups, edits, originals."""
        return self._index

    def _context(self, overhead_tokens: int = 0) -> RunContext:
        overhead = self._base.overhead_tokens + overhead_tokens if self._anchor is None else self._anchor.offset
        return attrs.evolve(self._base, overhead_tokens=overhead, now=None if self._clock is None else self._clock())

    # ---------------------------------------------------------------- turns

    async def view(self, messages: Iterable[Any]) -> list[Any]:
        """What to send for this conversation now.

        Args:
            messages: The whole conversation, oldest first: as the agent has it, or the last view with what came since.

        Returns:
            The caller's own objects where nothing changed. If the strategy raises or the call is cancelled, the session is as
            it was, and the next call tries again.
        """
        async with self.lock.task:
            self.follow(messages)
            return (await self.compact_due()).messages

    def view_sync(self, messages: Iterable[Any]) -> list[Any]:
        """`view` for strategies that await nothing; do not mix both on one session."""
        with self.lock.thread:
            self.follow(messages)
            return self.compact_due_sync().messages

    async def compact(self, messages: Iterable[Any] | None = None, *, focus: str | None = None) -> CompactionResult:
        """Compact now, whatever the triggers say: what is gentle in the strategy runs, the rest by its own trigger.

        Args:
            messages: The whole conversation, if it changed since the last view.
            focus: What a summary should give room to.
        """
        async with self.lock.task:
            self.follow(messages)
            return self._noted(await run(self._index, self._strategy.forced(focus), on_step=self._on_step, hard=self._hard))

    def compact_sync(self, messages: Iterable[Any] | None = None, *, focus: str | None = None) -> CompactionResult:
        """`compact` for strategies that await nothing."""
        with self.lock.thread:
            self.follow(messages)
            return self._noted(run_sync(self._index, self._strategy.forced(focus), on_step=self._on_step, hard=self._hard))

    def _noted(self, result: CompactionResult) -> CompactionResult:
        self._last = result
        self._compactions += bool(result.edits)
        if self._store is not None and (result.edits or result.failures):
            self._store.save(self._id, self.to_dict())
        return result

    def record_usage(self, usage: Any) -> None:
        """Take the tokens a provider reported for the last view; from now on counts are anchored to them.

        Args:
            usage: A provider's usage object or mapping, or a `Usage`; call this before the reply is passed to `view`.

        Raises:
            InputError: If it holds no usage.
        """
        reported = usage if isinstance(usage, Usage) else Usage.read(usage)
        self._anchor = UsageAnchor.from_usage(reported, self._index.included.tokens, with_reply=False)
        self._index.context = self._context()
        if self._store is not None and not self._store.save_anchor(self._id, self._anchor.offset):
            self._store.save(self._id, self.to_dict())

    def reconfigure(self, strategy: StrategyLike, *, window: int | None = None) -> None:
        """Go on with another strategy and window, as after a switch of models; what was done stays done.

        Args:
            strategy: What to run from now on.
            window: Tokens the model takes in, if known.

        Raises:
            ConfigurationError: If the strategy is no callable, or the window is not above 0; then nothing changes.
        """
        lifted, base = as_strategy(strategy), attrs.evolve(self._base, window=window)
        self._strategy, self._base = lifted, base
        self._index.context = self._context()

    def status(self) -> SessionStatus:
        """Where the session stands. O(1)."""
        last = self._last
        return SessionStatus(
            tokens=max(0, self._index.tokens),
            window=self._base.window,
            included=self._index.included,
            total=self._index.total,
            compactions=self._compactions,
            outcome=None if last is None else last.outcome,
            failures=() if last is None else tuple(f"{each.strategy}: {each.error!r}; {each.policy}" for each in last.failures),
        )

    # ---------------------------------------------------------------- a view in steps, for a caller who holds ``lock``

    def follow(self, messages: Iterable[Any] | None, *, overhead_tokens: int = 0) -> None:
        """Take the conversation as it is now, and compact nothing.

        Args:
            messages: All of it, as for `view`; ``None`` if it is as it was.
            overhead_tokens: Tokens of the next request outside the messages, besides those of every request; they count until
                usage is reported.

        Raises:
            InputError: If ``messages`` is no list, or one of them cannot be read.
        """
        self._index.context = self._context(overhead_tokens)
        if messages is not None:
            self._index.sync(messages, verify=self._verify)

    def follow_more(self, messages: Iterable[Any], *, overhead_tokens: int = 0) -> None:
        """`follow` for a caller who knows what came since; O(new)."""
        self._index.context = self._context(overhead_tokens)
        self._index.append(messages)

    async def compact_due(self) -> CompactionResult:
        """Run the strategy, which does nothing until its trigger fires, on the conversation as it was followed last.

        Raises:
            Exception: Whatever the strategy raises; the session is as it was.
        """
        return self._noted(await run(self._index, self._strategy, on_step=self._on_step, hard=self._hard))

    def compact_due_sync(self) -> CompactionResult:
        """`compact_due` for strategies that await nothing."""
        return self._noted(run_sync(self._index, self._strategy, on_step=self._on_step, hard=self._hard))

    # ---------------------------------------------------------------- storing

    def to_dict(self) -> dict[str, Any]:
        """The session as JSON-ready data: edits and fingerprints, not the messages."""
        return {
            "version": VERSION,
            "index": self._index.to_dict(messages=False),
            "anchor": None if self._anchor is None else self._anchor.offset,
            "compactions": self._compactions,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], strategy: StrategyLike, **options: Any) -> CompactionSession:
        """The session that `to_dict` described; it goes on with the next `view`.

        Args:
            data: What `to_dict` returned.
            strategy: What to run; it may differ from the one before.
            options: As for the class.

        Raises:
            StateError: If the data is corrupt or from a newer version.
        """
        session = cls(strategy, **options)
        session._resume(data)
        return session

    def _resume(self, data: Mapping[str, Any]) -> None:
        version = data.get("version") if isinstance(data, Mapping) else None
        if version != VERSION:
            raise StateError(f"session version={version!r}: this release reads version {VERSION}; upgrade, or start anew")
        anchor, compactions, index = data.get("anchor"), data.get("compactions", 0), data.get("index")
        if not isinstance(anchor, int | None) or not isinstance(compactions, int) or not isinstance(index, dict):
            raise StateError("session: it is not what to_dict made; start anew, the conversation itself is not affected")
        self._anchor = None if anchor is None else UsageAnchor(anchor)
        self._compactions = compactions
        saved = cast("dict[str, Any]", index)
        self._index = MessageIndex.from_dict(
            saved, counter=self._index.counter, context=self._context(), pin=self._pin, format=self._named
        )

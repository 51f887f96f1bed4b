"""Sessions: one conversation over many turns, whose edits stay in force so that the request grows only at its end.

    session = CompactionSession(presets.context_window(32_000))
    reply = client.create(messages=await session.view(messages))
    session.record_usage(reply.usage)

A session keeps an index of the conversation, compares it with the list that the agent passes on each turn (all messages, or
the last view with what came since), and runs the strategy when its trigger fires. Between compactions a provider's prompt cache
stays valid. With a store, the session's edits and fingerprints are saved after each compaction, so a process killed at any
moment resumes with the same view. If saving fails, the session says so and saves again on the next turn.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import attrs

from ..errors import BudgetUnsatisfiable
from ..formats import MessageFormat, resolve
from ..index import Marks, MessageIndex, RunContext, Saved, space_report
from ..messages import Message
from ..result import CompactionResult, Observer
from ..run import run, run_sync
from ..stores import SessionStore
from ..strategies import Pipeline, Strategy, StrategyLike, as_strategy
from ..tokens import LengthError, TokenCounter, Usage
from .events import LittleSaved, OnEvent, Overflowed
from .loop_guard import LoopGuard
from .overflow import within
from .provider_reports import LearnedWindow, ProviderReports
from .reporter import EventReporter
from .saving import SavedSession, SessionSaver
from .status import SessionStatus
from .turns import TurnLock

__all__ = ["CompactionSession"]


class CompactionSession:
    """A conversation that is compacted as it grows. Holds state: the index, the usage anchor, the pauses after failures.

    Cost of a turn: a comparison of the list with the known one (by identity first), reading the new messages, O(1) for the
    trigger, and a copy of the view. The strategy runs only when its trigger fires.

    Turns may come from any number of threads and event loops, awaited or not: one is under way at a time, see `TurnLock`.

    Args:
        strategy: The strategy; its trigger decides when it runs.
        counter: A token counter or the name of one.
        format: The wire format; ``None`` to detect it, see `compaction.formats.resolve`.
        window: Tokens of the model's context window, for `context_exceeds`.
        overhead_tokens: Tokens of every request outside the messages, until usage is reported.
        pin: A predicate of messages; the groups of those it accepts are kept unchanged.
        clock: Returns seconds, for `idle_for` and for pauses after failures; ``None`` for no clock.
        on_step: Called with each step that fired.
        hard: Whether to raise `BudgetUnsatisfiable` when a step that fired missed its target; the session is then unchanged.
        store: Where to save the session, if anywhere. A save that fails is reported in the failures of the result and of the
            status and in the log; the view is not affected, and the next turn saves again.
        id: The session's name in the store.
        verify: Whether to detect messages changed in place, which costs O(contents) a turn.
        key: A secret that signs summaries, or several, of which the first signs. A process that starts again without what was
            saved believes signed summaries of this session, wherever they stand; without a key, only those in the first list.
        on_event: Receives what happens, see `compaction.session.events`.

    Attributes:
        lock: The lock that each turn holds.

    Raises:
        StateError: If the store cannot be read, or what it holds is corrupt or from a newer version.
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
        key: str | Iterable[str] | None = None,
        on_event: OnEvent | None = None,
    ) -> None:
        self._strategy: Strategy = as_strategy(strategy)
        self._base = RunContext(window=window, overhead_tokens=overhead_tokens, keys=key, origin=id)
        self._clock = clock
        self._pin = pin
        self._on_step = on_step
        self._hard = hard
        self._id = id
        self._verify = verify
        self.lock = TurnLock()
        self._reporter = EventReporter(id, on_event)
        self._saver = SessionSaver(store, id, self.to_dict, self._reporter.save_failed)
        self._guard = LoopGuard()
        self._reports = ProviderReports()
        self._compactions = 0
        self._last: CompactionResult | None = None
        self._named = None if format is None else resolve(format)
        context = self._context()
        self._marks = Marks.of(self._strategy.mark_ceilings, context)
        self._index = MessageIndex(counter=counter, format=format, context=context, pin=pin, marks=self._marks)
        if store is not None and (saved := store.load(id)) is not None:
            self._resume(saved)

    @property
    def id(self) -> str:
        """The session's name: in its store, in its signatures, and in the stores of its strategy."""
        return self._id

    @property
    def index(self) -> MessageIndex:
        """The session's index: groups, edits, originals."""
        return self._index

    def _context(self, overhead_tokens: int = 0) -> RunContext:
        anchor = self._reports.anchor
        overhead = self._base.overhead_tokens + overhead_tokens if anchor is None else anchor.offset
        now = None if self._clock is None else self._clock()
        return attrs.evolve(self._base, overhead_tokens=overhead, now=now, window=self._window)

    @property
    def _window(self) -> int | None:
        return self._reports.window(self._base.window)

    # ---------------------------------------------------------------- turns

    async def view(self, messages: Iterable[Any]) -> list[Any]:
        """Return the messages to send for this conversation now.

        Args:
            messages: The whole conversation, oldest first: all its messages, or the last view with what came since.

        Returns:
            The caller's own objects where nothing changed.

        Raises:
            Exception: Whatever the strategy raises. After an error or a cancellation the session is as it was, and the next
                call tries again.
            SyncDriverError: If the turn would wait for itself, see `TurnLock`.
        """
        async with self.lock.task:
            self.follow(messages)
            return (await self.compact_due()).messages

    def view_sync(self, messages: Iterable[Any]) -> list[Any]:
        """`view` for strategies that await nothing; it blocks its thread while another turn is under way."""
        with self.lock.thread:
            self.follow(messages)
            return self.compact_due_sync().messages

    async def compact(self, messages: Iterable[Any] | None = None, *, focus: str | None = None) -> CompactionResult:
        """Compact now, whatever the strategy's trigger says; see `Strategy.forced`.

        Args:
            messages: The whole conversation, if it changed since the last view.
            focus: A topic that a summary should give most room to.
        """
        async with self.lock.task:
            self.follow(messages)
            self._guard.clear()
            return await self._run(self._strategy.forced(focus))

    def compact_sync(self, messages: Iterable[Any] | None = None, *, focus: str | None = None) -> CompactionResult:
        """`compact` for strategies that await nothing."""
        with self.lock.thread:
            self.follow(messages)
            self._guard.clear()
            return self._run_sync(self._strategy.forced(focus))

    async def overflowed(self, error: BaseException) -> list[Any]:
        """Return the messages to send once more after a provider refused the last view because it was too long.

        The session learns the provider's count and window, runs the strategy whatever its trigger says, and, if that is not
        enough, shortens and drops what may go::

            try:
                reply = client.create(messages=await session.view(messages))
            except openai.BadRequestError as error:
                reply = client.create(messages=await session.overflowed(error))

        Args:
            error: The error, as the client or a framework raised it; see `compaction.tokens.LengthError`.

        Raises:
            BaseException: The error itself, if it does not say that the request was too long.
            BudgetUnsatisfiable: If nothing more may be removed; it says what takes up the space.
        """
        async with self.lock.task:
            fits = self._learn(error)
            return self._fitting(await self.compact_due(), fits)

    def overflowed_sync(self, error: BaseException) -> list[Any]:
        """`overflowed` for strategies that await nothing."""
        with self.lock.thread:
            fits = self._learn(error)
            return self._fitting(self.compact_due_sync(), fits)

    def _learn(self, error: BaseException) -> int:
        """Take the provider's figures from its error, and return how many tokens, by our count, would fit in proportion."""
        found = LengthError.read(error)
        if found is None:
            raise error
        tokens, fits = self._reports.refused(found, self._index.tokens)
        self._index.context = self._context()
        self._guard.clear()
        self._saver.unsaved = True
        self._reporter.tell(Overflowed(session=self._id, tokens=tokens, window=found.window, error=error))
        return fits

    def _fitting(self, result: CompactionResult, fits: int) -> list[Any]:
        window = self._reports.learned.window or 0
        if self._index.tokens > window and (not result.edits or self._index.included.tokens > fits):
            raise BudgetUnsatisfiable(self._index.tokens, [f"a window of {window:,} tokens"], space_report(self._index))
        return result.messages

    async def _run(self, strategy: Strategy) -> CompactionResult:
        mark = self._index.edit_count
        return self._noted(await run(self._index, strategy, on_step=self._on_step, hard=self._hard), mark)

    def _run_sync(self, strategy: Strategy) -> CompactionResult:
        mark = self._index.edit_count
        return self._noted(run_sync(self._index, strategy, on_step=self._on_step, hard=self._hard), mark)

    def _noted(self, result: CompactionResult, mark: int) -> CompactionResult:
        """Tell and save what a run did."""
        result = self._reporter.settled(result, self._index, mark)
        self._guard_loops(result)
        self._reports.sent(result.messages, self._index.included.tokens)
        self._last = result
        self._compactions += bool(result.edits)
        self._saver.unsaved |= bool(result.edits or result.failures)
        self._saver.save()
        return self._saver.reported(result)

    def _guard_loops(self, result: CompactionResult) -> None:
        overhead = self._index.context.overhead_tokens
        if result.edits and self._guard.note(result.before.tokens + overhead, result.after.tokens + overhead):
            until = cast("int", self._guard.until_tokens)
            self._reporter.tell(LittleSaved(session=self._id, saved_tokens=self._guard.saved_tokens, until_tokens=until))

    def _due(self) -> Strategy:
        """Return the strategy of this turn: within what the provider taught, and none while the loop guard pauses it."""
        strategy, tokens, window = self._strategy, self._index.tokens, self._window
        if self._guard.pauses(tokens) and (window is None or tokens <= window):
            return Pipeline()
        learned = self._reports.learned.window
        return strategy if learned is None else within(strategy, learned)

    def record_usage(self, usage: Any, *, view: Sequence[Any] | None = None) -> None:
        """Record the tokens that a provider reported for the last view; later counts are anchored to them.

        With a store the report is saved; while a turn is under way, that turn saves it.

        Args:
            usage: A provider's usage object or mapping, or a `Usage`.
            view: The list that was sent; a report for an older view than the last is ignored. By default the last view.

        Raises:
            InputError: If it holds no usage.
        """
        reported = usage if isinstance(usage, Usage) else Usage.read(usage)
        if not self._reports.record(reported, view):
            return
        self._index.context = self._context()
        with self.lock.if_free() as free:
            if free:
                self._saver.save(self._index.context.overhead_tokens)
            else:
                self._saver.unsaved = True

    def reconfigure(self, strategy: StrategyLike, *, window: int | None = None) -> None:
        """Change the strategy and the window, for instance after a switch of models; earlier edits stay in force.

        Args:
            strategy: The strategy to run from now on.
            window: Tokens of the model's context window, if known.

        Raises:
            ConfigurationError: If the strategy is not callable, or the window is not above 0; nothing changes then.
        """
        lifted, base = as_strategy(strategy), attrs.evolve(self._base, window=window)
        self._strategy, self._base, self._reports.learned = lifted, base, LearnedWindow()
        self._guard.clear()
        self._index.context = self._context()

    def status(self) -> SessionStatus:
        """Return the state of the session; O(1)."""
        last = None if self._last is None else self._saver.reported(self._last)
        failures = (self._saver.failure,) if last is None else last.failures
        return SessionStatus(
            tokens=max(0, self._index.tokens),
            window=self._window,
            included=self._index.included,
            total=self._index.total,
            compactions=self._compactions,
            outcome=None if last is None else last.outcome,
            failures=tuple(f"{each.strategy}: {each.error!r}; {each.policy}" for each in failures if each is not None),
        )

    # ---------------------------------------------------------------- a view in steps, for a caller who holds ``lock``

    def follow(self, messages: Iterable[Any] | None, *, overhead_tokens: int = 0) -> None:
        """Update the index to the conversation as it is now, and compact nothing.

        Args:
            messages: All of it, as for `view`; ``None`` if it did not change.
            overhead_tokens: Tokens of the next request outside the messages, on top of those of every request; they count
                until usage is reported.

        Raises:
            InputError: If ``messages`` is not a list, or one of them cannot be read.
        """
        self._index.context = self._context(overhead_tokens)
        if messages is not None:
            self._index.sync(messages, verify=self._verify)
            self._trust_no_later_marks()
            self._reporter.followed(self._index)

    def follow_more(self, messages: Iterable[Any], *, overhead_tokens: int = 0) -> None:
        """Append the messages that came since; O(new)."""
        self._index.context = self._context(overhead_tokens)
        self._index.append(messages)
        self._trust_no_later_marks()

    def _trust_no_later_marks(self) -> None:
        """After the first list, marks in new messages are not of this session, whoever wrote them."""
        if self._marks.until is None and self._index.total.messages:
            self._marks = attrs.evolve(self._marks, until=self._index.total.messages)
            self._index.believe(self._marks)

    async def compact_due(self) -> CompactionResult:
        """Run the strategy, which does nothing until its trigger fires.

        Raises:
            Exception: Whatever the strategy raises; the session is as it was.
        """
        return await self._run(self._due())

    def compact_due_sync(self) -> CompactionResult:
        """`compact_due` for strategies that await nothing."""
        return self._run_sync(self._due())

    # ---------------------------------------------------------------- storing

    def to_dict(self) -> dict[str, Any]:
        """Return the session as JSON-ready data: edits and fingerprints, not the messages."""
        return SavedSession(
            index=self._index.to_dict(messages=False),
            anchor=self._reports.anchor,
            learned=self._reports.learned,
            compactions=self._compactions,
            pauses=self._base.pauses,
        ).to_dict()

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], strategy: StrategyLike, **options: Any) -> CompactionSession:
        """Restore a session from what `to_dict` returned.

        Args:
            data: The saved data.
            strategy: The strategy; it may differ from the earlier one.
            options: As for the class.

        Raises:
            StateError: If the data is corrupt or from a newer version.
        """
        session = cls(strategy, **options)
        session._resume(data)
        return session

    def _resume(self, data: Mapping[str, Any]) -> None:
        saved = SavedSession.read(data)
        self._reports.anchor, self._reports.learned, self._compactions = saved.anchor, saved.learned, saved.compactions
        self._base = attrs.evolve(self._base, pauses=saved.pauses)
        self.begin_with(Saved.read(saved.index, self._named))

    def save_to(self, store: SessionStore) -> None:
        """Save to this store from now on; nothing is loaded from it."""
        self._saver.store = store

    def begin_with(self, saved: Saved) -> None:
        """Take over messages and edits before the first turn; a `StateError` if they do not fit together."""
        context, counter = self._context(), self._index.counter
        self._index = MessageIndex.from_saved(saved, counter=counter, context=context, pin=self._pin, marks=self._marks)
        if self._index.marks is not None:
            self._marks = self._index.marks

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

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import attrs

from ..errors import BudgetUnsatisfiable
from ..index import Metrics
from ..result import CompactionResult, Outcome, space_report
from ..strategies import StrategyLike, as_strategy
from ..tokens import LengthError, Usage
from .events import Overflowed
from .forgetting import SessionForgetting
from .saving import LearnedWindow


@attrs.frozen(kw_only=True)
class SessionStatus:
    """The state of a session, for display.

    Args:
        tokens: Tokens the last view would send, anchored to reported usage if there is any.
        window: The model's window, if known.
        included: Sizes of the last view.
        total: Sizes of the whole conversation.
        compactions: The number of runs that changed the view.
        outcome: How the last run ended; ``None`` before the first.
        failures: The failures of the last run, in words, and why the session is not saved, if saving failed last time.
    """

    tokens: int
    window: int | None
    included: Metrics
    total: Metrics
    compactions: int
    outcome: Outcome | None
    failures: tuple[str, ...]


class CompactionSession(SessionForgetting):
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
        ahead: When to ask a model for its summary in the background, before the strategy is due, so that no turn waits; a
            little below the strategy's trigger, see `SummariesAhead`. Prepared summaries are not saved.
        portal: Owns the background tasks where no ``async with session:`` does: a portal, or the tasks of a pool.

    Attributes:
        lock: The lock that each turn holds.

    Raises:
        StateError: If the store cannot be read, or what it holds is corrupt or from a newer version.
        ConfigurationError: If there is ``portal`` without ``ahead``, or ``ahead`` with ``hard``; at a turn, if ``ahead`` has no
            owner.
    """

    async def __aenter__(self) -> Self:
        await self._ahead.__aenter__()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._ahead.__aexit__(*exception)

    def close(self) -> None:
        """Cancel a summary under way and prepare none from now on; turns then go on as without ``ahead=``."""
        self._ahead.close()

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
            return await self.compact_now(focus)

    def compact_sync(self, messages: Iterable[Any] | None = None, *, focus: str | None = None) -> CompactionResult:
        """`compact` for strategies that await nothing."""
        with self.lock.thread:
            self.follow(messages)
            return self.compact_now_sync(focus)

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
            return await self.compact_refused(error)

    def overflowed_sync(self, error: BaseException) -> list[Any]:
        """`overflowed` for strategies that await nothing."""
        with self.lock.thread:
            return self.compact_refused_sync(error)

    async def compact_refused(self, error: BaseException) -> list[Any]:
        """`overflowed` for a caller who holds ``lock``."""
        self._learn(error)
        return self._fitting(await self.compact_due())

    def compact_refused_sync(self, error: BaseException) -> list[Any]:
        """`overflowed_sync` for a caller who holds ``lock``."""
        self._learn(error)
        return self._fitting(self.compact_due_sync())

    def _learn(self, error: BaseException) -> None:
        """Take the provider's figures from its error."""
        found = LengthError.read(error)
        if found is None:
            raise error
        tokens = self._reports.refused(found, self._index.tokens, self._index.context.overhead_tokens)
        self._index.context = self._context()
        self._guard.clear()
        self._saver.unsaved = True
        self._reporter.tell(Overflowed(session=self._id, tokens=tokens, window=found.window, error=error))

    def _fitting(self, result: CompactionResult) -> list[Any]:
        window = self._reports.learned.window or 0
        if self._index.tokens > window:
            raise BudgetUnsatisfiable(self._index.tokens, [f"a window of {window:,} tokens"], space_report(self._index))
        return result.messages

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

    @property
    def last_result(self) -> CompactionResult | None:
        """The result of the last run, with the failure to save it, if there was one; ``None`` before the first run."""
        return None if self._last is None else self._saver.reported(self._last)

    def status(self) -> SessionStatus:
        """Return the state of the session; O(1)."""
        last = self.last_result
        failures = (self._saver.failure,) if last is None else last.failures
        return SessionStatus(
            tokens=max(0, self._index.tokens),
            window=self._window,
            included=self._index.included,
            total=self._index.total,
            compactions=self._compactions,
            outcome=None if last is None else last.outcome,
            failures=tuple(str(each) for each in failures if each is not None),
        )

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

"""A session: one conversation that is compacted as it grows.

    session = CompactionSession(presets.context_window(32_000))
    reply = client.create(messages=await session.view(messages))
    session.record_usage(reply.usage)

On each turn the agent passes its list: all messages, or an earlier view followed by the messages since then. The session
compares that list with its index, runs the strategy if its trigger fires, and returns the messages to send. Edits remain
applied, so until the next compaction new messages are only added at the end, and the provider's prompt cache stays valid.

With a store, the session saves its edits and fingerprints after each compaction. After a crash, a new process continues with
the same view.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import attrs

from ..errors import BudgetUnsatisfiable, ConfigurationError
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
        tokens: Tokens of the last view and the overhead, corrected with the reported usage if there is any.
        window: Tokens of the model's context window, if known.
        included: The size of the last view.
        total: The size of the whole conversation.
        compactions: The number of runs that changed the view.
        outcome: How the last run ended; ``None`` before the first run.
        failures: The failures of the last run as text, and the failure to save, if the last save failed.
    """

    tokens: int
    window: int | None
    included: Metrics
    total: Metrics
    compactions: int
    outcome: Outcome | None
    failures: tuple[str, ...]


class CompactionSession(SessionForgetting):
    """A conversation that is compacted as it grows. Holds state: the index, the reported usage, pauses after failures.

    A turn of a session is one call of `view` or `compact`; a turn of the conversation begins with a user message.

    Cost of a turn: one comparison of the list with the known messages (by identity first), reading the new messages, O(1) for
    the trigger, and a copy of the view. The strategy runs only when its trigger fires.

    Any number of threads and event loops may call it. It runs one turn at a time; see `TurnLock`.

    Args:
        strategy: The strategy. Its trigger decides when it runs.
        counter: A token counter, or the name of one.
        format: The wire format, or ``None`` to detect it; see `compaction.formats.resolve`.
        window: Tokens of the model's context window, for `context_exceeds`.
        overhead_tokens: Tokens of every request outside the messages. Reported usage replaces this estimate.
        pin: A function of a message. Groups with a message for which it returns true are never changed or removed.
        clock: Returns the time in seconds, for `idle_for` and for the pauses after failures; ``None`` for no clock, which means
            no pauses.
        on_step: Called with each step that ran.
        hard: Whether to raise `BudgetUnsatisfiable`, and leave the session unchanged, when a step misses its target.
        store: Where to save the session; ``None`` to keep it in memory only. A failure to save is reported in the result, in
            the status and in the log. It does not affect the view, and the next turn saves again.
        id: The session's name in the store, in its signatures, and in the stores of its strategy.
        verify: Whether to detect messages that the host changed in place. This costs O(contents) a turn.
        key: One or more secrets. Summaries are signed with the first one, and only messages signed with one of them are read as
            summaries, wherever they are in the list. Without a key, these are the session's own summaries, and those that its
            first list contains; see `Marks`.
        on_event: Called with each event; see `compaction.session.events`.
        ahead: When this trigger fires, the session requests the next summary in the background, so that no turn waits for it.
            It should fire a little before the strategy's trigger; see `SummariesAhead`. Prepared summaries are not saved.
        portal: Where background requests run, without ``async with session:``; a ``BlockingPortal`` or a `BackgroundTasks`.

    Attributes:
        lock: The lock that each turn holds.

    Raises:
        StateError: If the store cannot be read, or the saved state is corrupt or from a newer version.
        ConfigurationError: If ``portal`` is given without ``ahead``, or ``ahead`` with ``hard``; at the first turn, if there
            is nowhere to run the background tasks of ``ahead``.
    """

    def __repr__(self) -> str:
        shown = self.index.included
        sizes = f"messages {shown.messages:,}, tokens {shown.tokens:,}, compactions {self._compactions:,}"
        return f"<CompactionSession {self.id[:40]!r}: {sizes}>"

    async def __aenter__(self) -> Self:
        await self._ahead.__aenter__()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._ahead.__aexit__(*exception)

    def close(self) -> None:
        """Cancel the background request. Later turns work as if ``ahead=`` had not been given."""
        self._ahead.close()

    # ---------------------------------------------------------------- turns

    async def view(self, messages: Iterable[Any]) -> list[Any]:
        """Return the messages to send for this conversation now.

        Args:
            messages: The conversation, oldest first: all messages, or an earlier view followed by the messages since then.

        Returns:
            The messages to send. Unchanged messages are the caller's own objects.

        Raises:
            Exception: Any exception that the strategy raises. An error or a cancellation leaves the session unchanged, and the
                next call tries again.
            SyncDriverError: If the call could never get the lock; see `TurnLock`.
        """
        async with self.lock.task:
            self.follow(messages)
            return (await self.compact_due()).messages

    def view_sync(self, messages: Iterable[Any]) -> list[Any]:
        """`view` for strategies that do not await. Blocks the thread while another turn runs."""
        with self.lock.thread:
            self.follow(messages)
            return self.compact_due_sync().messages

    async def compact(self, messages: Iterable[Any] | None = None, *, focus: str | None = None) -> CompactionResult:
        """Compact now. Strategies that lose little ignore their triggers; the others do not. See `Strategy.forced`.

        Args:
            messages: The conversation, if it changed since the last view.
            focus: A topic that a summary should cover in most detail.
        """
        async with self.lock.task:
            self.follow(messages)
            return await self.compact_now(focus)

    def compact_sync(self, messages: Iterable[Any] | None = None, *, focus: str | None = None) -> CompactionResult:
        """`compact` for strategies that do not await."""
        with self.lock.thread:
            self.follow(messages)
            return self.compact_now_sync(focus)

    async def overflowed(self, error: BaseException) -> list[Any]:
        """Return a shorter list of messages after the provider refused the last view as too long.

        The session reads the provider's token count and window from the error and runs the strategy. If the result is still
        too long, the session forces the strategy, then shortens tool results, drops the oldest groups and shortens messages,
        whatever the strategy's triggers are::

            try:
                reply = client.create(messages=await session.view(messages))
            except openai.BadRequestError as error:
                reply = client.create(messages=await session.overflowed(error))

        Args:
            error: The error that the client or framework raised; see `compaction.tokens.LengthError`.

        Raises:
            BaseException: The given error, if it is not about the length of the request.
            ConfigurationError: If the session has no messages yet.
            BudgetUnsatisfiable: If nothing more can be removed. It lists the groups that use the space.
        """
        async with self.lock.task:
            return await self.compact_refused(error)

    def overflowed_sync(self, error: BaseException) -> list[Any]:
        """`overflowed` for strategies that do not await."""
        with self.lock.thread:
            return self.compact_refused_sync(error)

    async def compact_refused(self, error: BaseException) -> list[Any]:
        """`overflowed` for a caller that holds ``lock``."""
        self._learn(error)
        return self._fitting(await self.compact_due())

    def compact_refused_sync(self, error: BaseException) -> list[Any]:
        """`overflowed_sync` for a caller that holds ``lock``."""
        self._learn(error)
        return self._fitting(self.compact_due_sync())

    def _learn(self, error: BaseException) -> None:
        """Read the provider's token count and window from its error."""
        found = LengthError.read(error)
        if found is None:
            raise error
        if not self._index.total.messages:
            raise ConfigurationError("overflowed: the session has no messages yet; call view with your list first") from error
        tokens = self._reports.refused(found, self._index.tokens, self._index.context.overhead_tokens)
        self._index.context = self._context()
        self._guard.clear()
        self._saver.unsaved = True
        self._reporter.tell(Overflowed(session=self._id, tokens=tokens, window=found.window, error=error))

    def _fitting(self, result: CompactionResult) -> list[Any]:
        window = self._reports.learned.window or 0
        if self._index.tokens > window:
            raise BudgetUnsatisfiable(self._index.tokens, (f"a window of {window:,} tokens",), space_report(self._index))
        return result.messages

    def record_usage(self, usage: Any, *, view: Sequence[Any] | None = None) -> None:
        """Record the token usage that a provider reported for the last view, and correct later counts with it.

        With a store, the report is saved at once, or at the end of the running turn.

        Args:
            usage: A provider's usage object or mapping, or a `Usage`.
            view: The list that was sent; by default the last view. A report for an older view is ignored.

        Raises:
            InputError: If ``usage`` contains no token counts.
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
        """Change the strategy and the window, for example after a switch to another model. Earlier edits remain applied.

        Args:
            strategy: The strategy of later turns.
            window: Tokens of the model's context window; ``None`` if unknown, even if it was known before.

        Raises:
            ConfigurationError: If the strategy is not callable or the window is below 1. The session is then unchanged.
        """
        lifted, base = as_strategy(strategy), attrs.evolve(self._base, window=window)
        self._strategy, self._base, self._reports.learned = lifted, base, LearnedWindow()
        self._guard.clear()
        self._index.context = self._context()

    @property
    def last_result(self) -> CompactionResult | None:
        """The result of the last run, including a failure to save it; ``None`` before the first run."""
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
        """Restore a session from data that `to_dict` returned.

        Args:
            data: The saved data.
            strategy: The strategy; it may differ from the earlier one.
            options: The other arguments of the class.

        Raises:
            StateError: If the data is corrupt or from a newer version.
        """
        session = cls(strategy, **options)
        session._resume(data)
        return session

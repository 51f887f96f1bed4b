"""A session: one conversation that is compacted as it grows.

    session = CompactionSession(presets.context_window(32_000))
    reply = client.create(messages=await session.view(messages))
    session.record_usage(reply.usage)

On each call the agent passes its list: all messages, or an earlier view followed by the messages since then. Edits remain
applied, so until the next compaction new messages are only added at the end, and the provider's prompt cache stays valid. With
a store, the session saves its edits and fingerprints after each compaction, and a new process continues with the same view.

A call of `CompactionSession.view` has four parts, each a method: `follow` updates the index from the list, ``_run`` runs the
strategy if its trigger fires, ``_remember`` records what it did, and ``_save`` saves that. `compaction.run` applies the edits,
and `compaction.result` takes the view from the index. Around the run, `ahead` picks up and requests summaries in the
background, and `events` reports what happened and may take the edits back. `saving` writes to the store, and `undoing` has
what the session returns to after an interruption.
"""

from __future__ import annotations

import contextlib
import inspect
import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self, cast

import attrs

from ..errors import BudgetUnsatisfiable, ConfigurationError, StateError
from ..formats import MessageFormat, as_list, fits, resolve, same
from ..index import Marks, MessageIndex, Metrics, RunContext, RunHistory, Saved, UselessRuns, lookup_key, unawaited
from ..json_data import natural_number, shown
from ..messages import Message
from ..result import CompactionResult, Observer, Outcome, space_report
from ..run import refuse, run, run_sync
from ..stores import StoredRecord
from ..strategies import Pipeline, Strategy, StrategyLike, as_strategy, forgetting_stores, most_tokens, within
from ..tokens import LengthRefusal, TokenCounter, Usage, is_quoted
from ..triggers import TriggerLike
from .ahead import BackgroundTasks, SummariesAhead
from .events import VETOED, EventReporter, LittleSaved, OnEvent, Overflowed, SaveFailed
from .lock import CallLock, unawaited_calls
from .provider_reports import ProviderReports
from .saving import SessionSaver
from .undoing import BeforeCall, SessionState

if TYPE_CHECKING:
    from ..stores import SessionStore

_NOTHING_TO_DO: Final = "no part of the strategy found anything that it may remove or shorten"
_MOST_REVISIONS: Final = 1_000  # a host or a process may come back with a state that is as many revisions old
_UNDECIDED: Final = ":0"  # the end of the first revision; the others end with a hash
_VERSION: Final = 1  # the version of the data that CompactionSession.to_dict returns


@attrs.frozen(kw_only=True)
class SessionStatus:
    """The state of a session, for display.

    Args:
        tokens: Tokens of the last view and the overhead, corrected with the reported usage if there is any.
        window: Tokens of the model's context window by the same count, if known: after a refusal, the most that fits.
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


class CompactionSession:
    """A conversation that is compacted as it grows. Holds state: the index, the reported usage, pauses after failures.

    A *call* is one call of `view` or `compact`; a *turn* of the conversation begins with a user message.

    Cost of a call: one comparison of the list with the known messages (by identity first), reading the new messages, O(1) for
    the trigger, and a copy of the view. The strategy runs only when its trigger fires.

    Any number of threads and event loops may call it. It runs one call at a time; see `CallLock`. If a call is
    interrupted, at whatever point, the next one starts from the state before it.

    A caller that already holds `lock`, as a pool does, uses these parts, which do not lock, and calls `save_late_report` before
    it releases the lock::

        view         follow, compact_due
        compact      follow, compact_now
        overflowed   compact_refused
        forget       forget_stored, forget_known

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
            the status and in the log. It does not affect the view, and the next call saves again.
        id: The session's name in the store, in its signatures, and in the stores of its strategy.
        verify: Whether to detect messages that the host changed in place. This costs O(contents) a call.
        key: One or more secrets. Summaries are signed with the first one, and only messages signed with one of them are read as
            summaries, wherever they are in the list. Without a key, these are the session's own summaries, and those that its
            first list contains; see `Marks`.
        on_event: Called with each event; see `compaction.session.events`.
        ahead: When this trigger fires, the session requests the next summary in the background, so that no call waits for it.
            It should fire a little before the strategy's trigger; see `SummariesAhead`. Prepared summaries are not saved.
        tasks: Where background requests run; by default in ``async with session:``.

    Attributes:
        lock: The lock that each call holds.

    Raises:
        StateError: If the store cannot be read, or the saved state is corrupt or from a newer version.
        ConfigurationError: If ``tasks`` is given without ``ahead``, or ``ahead`` with ``hard``; at the first call, if there
            is nowhere to run the background tasks of ``ahead``.
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
        ahead: TriggerLike | None = None,
        tasks: BackgroundTasks | None = None,
    ) -> None:
        if not isinstance(id, str):
            raise ConfigurationError(f"CompactionSession: 'id' must be a text (got {id!r})")
        self._ahead = SummariesAhead(ahead, tasks, hard=hard)
        # `reconfigure` and `use_window` replace these two, perhaps while a call of another thread runs
        self._strategy: Strategy = as_strategy(strategy)
        self._base = RunContext(
            window=window, overhead_tokens=overhead_tokens, keys=key, origin=id, prepared=self._ahead.prepared
        )
        self._clock = clock
        self._pin = pin
        self._on_step = on_step
        self._hard = hard
        self._id = id
        self._verify = verify
        self._named = None if format is None else resolve(format)
        self.lock = CallLock()
        # an interruption of a call does not undo what these two know; `_go_back` says what it undoes
        self._saver = SessionSaver(store)
        self._reports = ProviderReports()
        self._reporter = EventReporter(id, on_event)
        self._state = SessionState(revisions=(f"{id}{_UNDECIDED}",))
        self._useless = UselessRuns()
        context = self._context()
        marks = Marks.of(self._strategy.mark_ceilings, context)
        self._index = MessageIndex(counter=counter, format=format, context=context, pin=pin, marks=marks)
        self._before: BeforeCall | None = None  # while a call is running, and after it was interrupted
        if store is not None and (saved := store.load(id)) is not None:
            self._resume(saved)

    def __repr__(self) -> str:
        included = self.index.included
        sizes = f"messages {included.messages:,}, tokens {included.tokens:,}, compactions {self._state.compactions:,}"
        return f"<CompactionSession {self.id[:40]!r}: {sizes}>"

    def __reduce__(self) -> NoReturn:
        raise ConfigurationError("a session cannot be pickled or copied; save to_dict(), and restore it with from_dict")

    async def __aenter__(self) -> Self:
        await self._ahead.__aenter__()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._ahead.__aexit__(*exception)

    def close(self) -> None:
        """Cancel the background request. Later calls work as if ``ahead=`` had not been given."""
        self._ahead.close()

    @property
    def id(self) -> str:
        """The session's name."""
        return self._id

    @property
    def index(self) -> MessageIndex:
        """The session's index, with the groups, the edits and the original messages."""
        return self._index

    def _context(self, overhead_tokens: int = 0) -> RunContext:
        anchor = self._reports.anchor
        overhead = self._base.overhead_tokens + overhead_tokens if anchor is None else anchor
        now = None if self._clock is None else self._clock()
        return attrs.evolve(self._base, overhead_tokens=overhead, now=now, window=self._window)

    @property
    def _window(self) -> int | None:
        return self._reports.window(self._base.window)

    @property
    def revision(self) -> str:
        """A hash of all edits and failures so far. It changes with every run that changed something or failed.

        A pool compares it with a saved state's, to find out whether another process has compacted the conversation since.
        """
        return self._state.revisions[-1]

    def _set(self, **changes: Any) -> None:
        self._state = attrs.evolve(self._state, **changes)

    def _revise(self, *decided: object) -> None:
        """Change the revision by numbers and texts, whose `repr` counts.

        Pass no attrs objects: after an interrupted `repr`, attrs prints "..." for the object forever.
        """
        revision = f"{self.id}:{lookup_key(self.revision, *decided)}"
        self._set(revisions=(*self._state.revisions, revision)[-_MOST_REVISIONS:])

    @property
    def has_decided(self) -> bool:
        """Whether this session, or the state that it started from, contains edits or a run that failed."""
        return not self.revision.endswith(_UNDECIDED) or len(self.index.snapshot.journal) > 0

    def has_had(self, revision: object) -> bool:
        """Whether this is the current revision of this session or a recent one."""
        return revision in self._state.revisions

    @property
    def provider_reports(self) -> dict[str, Any]:
        """The entries of `to_dict` that change when the provider reports usage."""
        return self._reports.to_dict()

    @property
    def new_messages(self) -> list[Any]:
        """The messages since the last view; empty before the first view. O(their number)."""
        seen = self._state.seen
        return self.index.columns.source[seen:] if seen else []

    # ---------------------------------------------------------------- calls

    async def view(self, messages: Iterable[Any], *, sync: bool = False) -> list[Any]:
        """Return the messages to send for this conversation now.

        Args:
            messages: The conversation, oldest first: all messages, or an earlier view followed by the messages since then.
            sync: Whether nothing may be awaited, for a coroutine that is driven without an event loop.

        Returns:
            The messages to send. Unchanged messages are the caller's own objects.

        Raises:
            InputError: If ``messages`` is not a list, or contains a message that cannot be read.
            Exception: Any exception that the strategy raises. An error or a cancellation leaves the session unchanged, and the
                next call tries again.
            SyncDriverError: If the call could never get the lock; see `CallLock`.
        """
        async with self.lock.held(sync=sync):
            self.follow(as_list(messages))
            return (await self.compact_due(sync=sync)).messages

    def view_sync(self, messages: Iterable[Any]) -> list[Any]:
        """`view` for strategies that do not await. Blocks the thread while another call runs."""
        return unawaited_calls(self.view(messages, sync=True))

    async def compact(
        self, messages: Iterable[Any] | None = None, *, focus: str | None = None, sync: bool = False
    ) -> CompactionResult:
        """Compact now. Strategies that lose little ignore their triggers; the others do not. See `Strategy.forced`.

        Args:
            messages: The conversation, if it changed since the last view.
            focus: A topic that a summary should cover in most detail.
            sync: As for `view`.

        Returns:
            The result. If nothing was compacted, its ``notes`` say why.
        """
        async with self.lock.held(sync=sync):
            self.follow(messages)
            return await self.compact_now(focus, sync=sync)

    def compact_sync(self, messages: Iterable[Any] | None = None, *, focus: str | None = None) -> CompactionResult:
        """`compact` for strategies that do not await."""
        return unawaited_calls(self.compact(messages, focus=focus, sync=True))

    async def overflowed(self, error: BaseException, *, sync: bool = False) -> list[Any]:
        """Return a shorter list of messages after the provider refused the last view as too long.

        The session reads the provider's token count and window from the error and runs the strategy within that window::

            try:
                reply = client.create(messages=await session.view(messages))
            except openai.BadRequestError as error:
                reply = client.create(messages=await session.overflowed(error))

        Args:
            error: The error that the client or framework raised; see `compaction.tokens.LengthRefusal`. If the
                conversation contains its words too, its figures are ignored: the server may have quoted them.
            sync: As for `view`.

        Raises:
            BaseException: The given error, if it is not about the length of the request.
            ConfigurationError: If the session has no messages yet.
            BudgetUnsatisfiable: If nothing more can be removed. It lists the groups that use the space.
        """
        async with self.lock.held(sync=sync):
            return await self.compact_refused(error, sync=sync)

    def overflowed_sync(self, error: BaseException) -> list[Any]:
        """`overflowed` for strategies that do not await."""
        return unawaited_calls(self.overflowed(error, sync=True))

    async def forget(self, messages: Iterable[Any], *, sync: bool = False) -> int:
        """Remove messages from everything that the session wrote.

        - Every message with the same content is removed from the session's copy of the conversation.
        - These edits are undone: edits of such a message, summaries that cover it, and summaries that were written when it had
          been read, unless the strategy said what it read (see `Replace`). Other edits stay.
        - Prepared summaries and the last view are discarded.
        - Records of `Offload` and `Lossless` with these messages are deleted, with the notes that refer to them.
        - The state is saved, and the session's file is rewritten without the earlier content. Cost: O(file).

        Call it while the host's list still contains the messages, and pass the list without them afterwards. If the rest of a
        group would be invalid, such as a tool call without its result, the whole group is left out of the view until then.
        Quotes in other messages remain, and so does the file of a `CachedSummarizer`: delete that file.

        Args:
            messages: The messages, as they are in the conversation.
            sync: As for `view`.

        Returns:
            The number of messages removed from the conversation.

        Raises:
            ConfigurationError: If a store of the strategy cannot forget (see `ForgettingStore`). Nothing changes then.
            InputError: If a message cannot be read. Nothing changes then.
            StateError: If a store cannot be written. Call it again; repeating it is harmless.
        """
        given = as_list(messages)
        async with self.lock.held(sync=sync):
            await await_all(self.forget_stored(given), sync=sync)
            count = self.forget_known(given)
            if self._saver.store is not None:
                self._saver.store.scrub()
            return count

    def forget_sync(self, messages: Iterable[Any]) -> int:
        """`forget` for stores whose methods are not async."""
        return unawaited_calls(self.forget(messages, sync=True))

    def record_usage(self, usage: Any, *, view: Sequence[Any] | None = None) -> None:
        """Record the token usage that a provider reported for the last view, and correct later counts with it.

        A report that arrives while the strategy runs does not affect that run; one during any call is saved at its end.

        Args:
            usage: A provider's usage object or mapping, or a `Usage`.
            view: The list that was sent; by default the last view. A report for an older view is ignored.

        Raises:
            InputError: If ``usage`` contains no token counts.
        """
        reported, state = Usage.read(usage), self._state
        sent = [] if state.last is None else state.last.messages
        if view is not None and not same(view, sent):
            return
        if not self._reports.record(reported, state.sent_tokens, self.index.context.overhead_tokens):
            return
        self._saver.anchor = None  # another process may have saved another one, or deleted the session
        self._set_context(self._context())
        with self.lock.if_free() as free:
            if free:  # otherwise the call that is running saves it
                self._save()

    def recall_usage(self, usages: Sequence[Any]) -> None:
        """Correct the counts by usage that the host kept with the replies, in a process that has sent no view yet.

        The newest reply belongs to the view that the saved edits give. If nothing was edited or saved, an earlier process may
        have sent less than the whole list. Then the reply before the reported tokens first fell is used. If a saved edit was
        undone, no view is known that a reply belongs to, and nothing is corrected.

        Args:
            usages: The usage of each message of the conversation, in the forms of `record_usage`; ``None`` for a message
                without usage.
        """
        if self._state.seen or len(usages) != len(self.index.columns.source) or self.index.undone:
            return
        last: tuple[Usage, int] | None = None  # with the tokens before the reply, by our count
        for usage, counted in _reported_sizes(self.index, usages):
            if last is not None and usage.prompt_tokens < last[0].prompt_tokens and self.index.edit_count == 0:
                break
            last = usage, counted
        if last is not None and self._reports.record(*last):
            self._saver.anchor = self._reports.anchor
            self._set_context(self._context())

    def reconfigure(self, strategy: StrategyLike, *, window: int | None = None) -> None:
        """Change the strategy and the window, for example after a switch to another model. Earlier edits remain applied.

        A call that is running continues with the strategy and the window of its beginning.

        Args:
            strategy: The strategy of later calls.
            window: Tokens of the model's context window; ``None`` if unknown, even if it was known before.

        Raises:
            ConfigurationError: If the strategy is not callable or the window is below 1. The session is then unchanged.
        """
        lifted, base = as_strategy(strategy), attrs.evolve(self._base, window=window)
        self._strategy, self._base = lifted, base
        self._reports.forget_window()
        self._useless = UselessRuns()
        self._set_context(self._context())

    def use_window(self, window: int) -> None:
        """Set the model's window. If another one was set before, also discard the window learned from errors."""
        if window != self._base.window:
            before, self._base = self._base, attrs.evolve(self._base, window=window)
            if before.window is not None:
                self._reports.forget_window()
            self._set_context(attrs.evolve(self.index.context, window=self._window))

    def _set_context(self, context: RunContext) -> None:
        """Use other figures for the request, unless a strategy is running: then the next call does so."""
        if self._before is None:
            self.index.context = context

    @property
    def last_result(self) -> CompactionResult | None:
        """The result of the last run, including a failure to save it; ``None`` before the first run."""
        return None if self._state.last is None else self._saver.with_failure(self._state.last)

    def status(self) -> SessionStatus:
        """Return the state of the session; O(1)."""
        last = self.last_result
        failures = (self._saver.failure,) if last is None else last.failures
        return SessionStatus(
            tokens=max(0, self.index.tokens),
            window=self._window,
            included=self.index.included,
            total=self.index.total,
            compactions=self._state.compactions,
            outcome=None if last is None else last.outcome,
            failures=tuple(str(each) for each in failures if each is not None),
        )

    # ---------------------------------------------------------------- parts of a call, for a caller that holds ``lock``

    def follow(self, messages: Iterable[Any] | None, *, overhead_tokens: int = 0) -> None:
        """Update the index from the host's list, without compacting.

        Args:
            messages: The conversation, as for `view`; ``None`` if it did not change.
            overhead_tokens: Tokens of the next request outside the messages, in addition to those of every request. Reported
                usage replaces both.

        Raises:
            InputError: If ``messages`` is not a list, or contains a message that cannot be read.
        """
        with self._changing():
            self.index.context = self._context(overhead_tokens)
            if messages is not None:
                self._sync(messages)
                self._reporter.followed(self.index)

    async def compact_due(self, *, sync: bool = False) -> CompactionResult:
        """Run the strategy if its trigger fires; ``sync`` and the errors are as for `view`."""
        return await self._run(None, sync=sync)

    def compact_due_sync(self) -> CompactionResult:
        """`compact_due` for strategies that do not await."""
        return unawaited(self.compact_due(sync=True))

    async def compact_now(self, focus: str | None = None, *, sync: bool = False) -> CompactionResult:
        """Run the strategy now, and end its pauses; see `compact`."""
        forced = self._strategy.forced(focus or None)
        result = await self._run(forced, sync=sync)
        if result.edits or result.failures or any(note.startswith(VETOED) for note in result.notes):
            return result
        waiting = ", ".join(dict.fromkeys(forced.waiting(self.index)))
        why = f"these parts run only when their own trigger fires: {waiting}" if waiting else _NOTHING_TO_DO
        result = attrs.evolve(result, notes=(*result.notes, f"nothing was compacted; {why}"))
        self._set(last=result)
        return result

    async def compact_refused(self, error: BaseException, *, sync: bool = False) -> list[Any]:
        """Return a shorter list after an error; see `overflowed`."""
        found = LengthRefusal.read(error)
        if found is None:
            raise error
        if not self.index.total.messages:
            raise ConfigurationError("overflowed: the session has no messages yet; call view with your list first") from error
        if is_quoted(error, str(self.index.messages())):
            found = LengthRefusal()  # its figures are a text of the conversation
        with self._changing():
            counted, overhead = self.index.tokens, self.index.context.overhead_tokens
            tokens, window = self._reports.refused(found, counted, overhead, ours=self._state.sent_tokens)
            self.index.context = self._context()
            self._useless = UselessRuns()
            self._saver.is_unsaved = True
            self._reporter.tell(Overflowed(session=self.id, tokens=tokens, window=found.window, error=error))
        result = await self.compact_due(sync=sync)
        if self.index.tokens > window:
            reasons, largest = (f"a window of {window:,} tokens",), space_report(self.index)
            raise BudgetUnsatisfiable(self.index.tokens, reasons, largest) from error
        return result.messages

    def forget_stored(self, given: Sequence[Any]) -> Iterator[Any]:
        """Delete messages from the stores of the strategy; yield what each `ForgettingStore.forget` returns; see `forget`."""
        index = self.index
        stores = forgetting_stores(self._strategy)
        format = index.format if self._named or fits(given, index.format) else resolve(None, given)
        for place, raw in enumerate(given):
            format.read(raw, place)
        traces = index.traces_of(given) if format == index.format else []
        for store, session in stores:
            name = self.id if session is None else session
            wires = [format.to_wire(raw) for raw in (*given, *traces)]
            yield store.forget(name, [StoredRecord.of_message(wire, role="", text="", salt=name) for wire in wires])

    def forget_known(self, given: Sequence[Any]) -> int:
        """Remove messages from the session itself, save it, and return their number; see `forget`.

        If it cannot be saved, the session in memory has forgotten the messages nevertheless.
        """
        with self._changing():
            index = self.index
            source, edits = index.source, len(index.snapshot.journal)
            count = index.forget(given)
            if count or len(index.snapshot.journal) != edits:
                self._ahead.drop()
                left = set(map(id, index.source))
                self._useless = UselessRuns()
                self._set(last=None, seen=sum(id(raw) in left for raw in source[: self._state.seen]))
                self._revise("forgot", len(source), count)
                self._reporter.forgot(index)
                self._saver.is_unsaved = True
        self._save()
        if self._saver.failure is not None:
            raise self._saver.failure.error
        return count

    def save_late_report(self) -> None:
        """Save usage that was reported since the call saved the session, and then all else that is not saved."""
        if self._reports.anchor != self._saver.anchor:
            self._save()

    # ---------------------------------------------------------------- the steps of a call

    def _sync(self, messages: Iterable[Any]) -> None:
        """Update the index. From the first list on, only messages of that list and summaries of this session have marks."""
        index, marks = self.index, self.index.marks or Marks()
        is_first = marks.until is None
        if is_first:  # the present strategy decides which of its marks are believed
            index.believe(attrs.evolve(marks, ceilings=dict(self._strategy.mark_ceilings)))
        index.sync(messages, verify=self._verify)
        if is_first and index.total.messages:
            index.believe(attrs.evolve(index.marks or marks, until=index.total.messages))

    def _due(self) -> Strategy:
        """Return the strategy to run: the configured one, within a learned window, or an empty pipeline during a pause."""
        tokens = self.index.tokens
        if self._useless.is_paused(tokens) and tokens <= self._most_tokens():
            return Pipeline()
        learned = self._reports.window()
        return self._strategy if learned is None else within(self._strategy, learned)

    def _most_tokens(self) -> float:
        """Return the most tokens of a request: the window, or less if the strategy has a limit of its own."""
        return min(limit for limit in (self._window, most_tokens(self._strategy), math.inf) if limit is not None)

    async def _run(self, forced: Strategy | None, *, sync: bool) -> CompactionResult:
        """Run a strategy without pauses, or ``None`` for the one that is due; remember its result, and save."""
        with self._changing():
            options: dict[str, Any] = {"on_step": self._on_step, "hard": self._hard}
            index, start = self.index, self.index.edit_count
            if forced is None:
                running = self._ahead.begin(index, self._due())
            else:
                self._base.pauses.clear()
                self._useless, running = UselessRuns(), forced
            result = run_sync(index, running, **options) if sync else await run(index, running, **options)
            result = self._ahead.end(index, self._strategy, result)
            result = self._reporter.run_ended(result, index, start)
            self._remember(result)
        self._save()
        return self._saver.with_failure(result)

    def _remember(self, result: CompactionResult) -> None:
        """Record the result of a run, and what it says about the next ones."""
        seen, overhead = self.index.total.messages, self.index.context.overhead_tokens
        compactions = self._state.compactions + bool(result.edits)
        self._set(seen=seen, sent_tokens=result.after.tokens, compactions=compactions, last=result)
        if result.edits:
            self._useless = useless = self._useless.after(result.before.tokens + overhead, result.after.tokens + overhead)
            if useless.until_tokens is not None:
                until = int(min(useless.until_tokens, self._most_tokens() + 1))
                self._reporter.tell(LittleSaved(session=self.id, saved_tokens=sum(useless.saved), until_tokens=until))
            self._reports.cut(self.index.included.tokens)
            if (anchor := self._reports.anchor) is not None:
                self.index.context = attrs.evolve(self.index.context, overhead_tokens=anchor)
        if result.edits or result.failures:
            self._revise(seen, len(result.edits), len(result.failures), *attrs.astuple(result.after))
            self._saver.is_unsaved = True

    def _save(self) -> None:
        """Save what is not saved yet, if there is a store."""
        failed = self._saver.save(self.id, self._reports.anchor, self.to_dict)
        if failed is not None:
            self._reporter.tell(SaveFailed(session=self.id, failure=failed))

    # ---------------------------------------------------------------- calls that are interrupted

    @contextlib.contextmanager
    def _changing(self) -> Generator[None]:
        """Run a block that changes the session: whole, or, if it is interrupted, not at all.

        After an exception, the index may be half changed. The next block then starts from the state before this one; what the
        host added since is in the list that it passes. A ``KeyboardInterrupt``, a lack of memory and a recursion that is too
        deep may come within a step, where the index cannot be compared.
        """
        if self._before is not None:
            self._go_back(self._before)
        self._before = before = self._now()
        try:
            yield
        except (MemoryError, RecursionError):
            raise
        except Exception:
            if before.has_index(self.index):
                self._before = None
            raise
        self._before = None

    def _now(self) -> BeforeCall:
        """Return the session as it is; O(edits) after a change, otherwise O(1)."""
        count, last_sent = len(self.index.columns.source), self._reporter.last_sent
        return BeforeCall(self.index.snapshot, count, self._state, self._useless, last_sent)

    def _go_back(self, before: BeforeCall) -> None:
        """Return to the session as it was; what was prepared in the background is discarded."""
        self._state, self._useless, self._reporter.last_sent = before.state, before.useless, before.last_sent
        self._ahead.drop()
        self._index = self._index_of(before.snapshot)

    def _index_of(self, saved: Saved) -> MessageIndex:
        """Return a new index of messages and edits. O(messages)."""
        counter, marks = self.index.counter, self.index.marks
        return MessageIndex.from_dict(saved, counter=counter, context=self._context(), pin=self._pin, marks=marks)

    # ---------------------------------------------------------------- storing

    def to_dict(self) -> dict[str, Any]:
        """Return the session as JSON-ready data, with edits and fingerprints but without the messages."""
        before = self._before
        index, state = (self.index, self._state) if before is None else (self._index_of(before.snapshot), before.state)
        return {
            "version": _VERSION,
            "id": self.id,
            "revision": state.revisions[-1],
            "index": index.to_dict(messages=False),
            **self._reports.to_dict(),
            "compactions": state.compactions,
            "pauses": self._base.pauses.to_dict(),
        }

    def _resume(self, data: Mapping[str, Any]) -> None:
        version = data.get("version") if isinstance(data, Mapping) else None
        if version != _VERSION:
            remedy = "it is not what to_dict made; start" if version is None else "upgrade, or start"
            rule = f"this release reads version {_VERSION}; {remedy} a new session"
            raise StateError(f"the saved session has version={shown(version)}: {rule}")
        try:
            self._set(compactions=natural_number(data.get("compactions", 0)))
            self._reports.load(data)
            self._saver.anchor = self._reports.anchor
        except (TypeError, ValueError) as error:
            remedy = "start a new session; the conversation itself is not affected"
            raise StateError(f"the saved session is corrupt ({error}); {remedy}") from error
        self._base = attrs.evolve(self._base, pauses=RunHistory.from_dict(data.get("pauses", {})))
        if isinstance(revision := data.get("revision"), str):
            self._set(revisions=(revision,))
        self.begin_with(Saved.read(cast("dict[str, Any]", data.get("index")), self._named))

    def save_to(self, store: SessionStore | None) -> None:
        """Use a store for later saves, without loading from it; ``None`` to save nothing from now on."""
        self._saver.store = store

    def begin_with(self, saved: Saved) -> None:
        """Start from saved messages and edits. Raises `StateError` if they do not match. Call it before the first call."""
        self._index = self._index_of(saved)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], strategy: StrategyLike, **options: Any) -> CompactionSession:
        """Restore a session from data that `to_dict` returned.

        Args:
            data: The saved data.
            strategy: The strategy; it may differ from the earlier one.
            options: The other arguments of the class; the saved ``id`` is used if there is none.

        Raises:
            StateError: If the data is corrupt or from a newer version.
        """
        if isinstance(data, Mapping) and isinstance(id := data.get("id"), str):
            options = {"id": id, **options}
        session = cls(strategy, **options)
        session._resume(data)
        return session

    def copied(self, strategy: StrategyLike, **options: Any) -> CompactionSession:
        """Return a session in the same state, with its messages and its pause after useless runs. Hold the lock."""
        session = CompactionSession.from_dict(self.to_dict(), strategy, **options)
        session._useless = self._useless
        session.begin_with((self._before or self._now()).snapshot)
        return session


async def await_all(answers: Iterable[Any], *, sync: bool) -> None:
    """Await the answers of stores that are awaitable; if ``sync``, raise a `SyncDriverError` instead."""
    for answer in answers:
        if inspect.isawaitable(answer):
            if sync:
                refuse(answer, "the store is async; await the method without _sync instead")
            await answer


def _reported_sizes(index: MessageIndex, usages: Sequence[Any]) -> Iterator[tuple[Usage, int]]:
    """Yield the usage of each reply of the view, with the tokens before the reply by our count; O(groups of the view)."""
    counted = 0
    for id in index.included_ids:
        for ordinal in index.columns.ordinals(id):
            if (usage := Usage.read_or_none(usages[ordinal])) is not None:
                yield usage, counted
        counted += index.columns.tokens(id)

"""The phases of a turn: compare the host's list with the index, run the strategy, save the state."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import attrs
from anyio.from_thread import BlockingPortal

from ..formats import MessageFormat, resolve
from ..index import GroupKind, Marks, MessageIndex, RunContext, Saved
from ..messages import Message
from ..result import CompactionResult, Observer
from ..run import run, run_sync
from ..selectors import kinds, last, nothing
from ..strategies import Clip, HeadTail, Pipeline, Strategy, StrategyLike, ToolResult, Truncation, as_strategy
from ..tokens import TokenCounter
from ..triggers import TriggerLike, tokens_below, tokens_exceed
from .ahead import BackgroundTasks, SummariesAhead
from .events import LittleSaved, OnEvent
from .list_keys import lookup_key
from .reporter import EventReporter
from .saving import LearnedWindow, ProviderReports, SavedSession, SessionSaver, reports_to_dict
from .turns import TurnLock

if TYPE_CHECKING:
    from ..stores import SessionStore

# A run that saves less than 1/20 of the request is not worth the prompt cache that it breaks. Chosen, not measured.
_LITTLE: Final = 20
_RUNS: Final = 2
# The strategy runs again when the request has grown by 1/10, the default of `Summarization.least_share`.
_NEW: Final = 10


class LoopGuard:
    """Pauses a strategy whose runs save too little. Holds state: the last runs that saved little, and when to resume.

    >>> guard = LoopGuard()
    >>> guard.note(10_000, 9_900), guard.note(10_000, 9_800)
    (False, True)
    >>> guard.pauses(10_500), guard.pauses(10_800)
    (True, False)
    """

    def __init__(self) -> None:
        self._saved: list[int] = []
        self.until_tokens: int | None = None

    @property
    def saved_tokens(self) -> int:
        """Tokens that the recorded runs saved in total."""
        return sum(self._saved)

    def note(self, before: int, after: int) -> bool:
        """Record a run that changed the view, and return whether the strategy now pauses.

        Args:
            before: Tokens of the request before the run.
            after: Tokens after it.
        """
        self.until_tokens = None
        if (before - after) * _LITTLE >= before:
            self._saved.clear()
            return False
        self._saved = [*self._saved[1 - _RUNS :], before - after]
        if len(self._saved) < _RUNS:
            return False
        self.until_tokens = after + before // _NEW
        return True

    def pauses(self, tokens: int) -> bool:
        """Return whether the strategy pauses for a request of this size."""
        if self.until_tokens is None or tokens >= self.until_tokens:
            self.until_tokens = None
            return False
        return True

    def clear(self) -> None:
        """Reset: discard the recorded runs, and end a pause."""
        self._saved.clear()
        self.until_tokens = None


_TARGET: Final = 80  # hundredths of the window to cut to, so that not every turn cuts again; chosen, not measured
# As a last resort, messages are shortened to these hundredths of the window, one after the other; the selector keeps groups.
_CLIPS: Final = ((25, kinds(GroupKind.USER)), (10, nothing), (5, nothing))


def within(strategy: Strategy, tokens: int) -> Strategy:
    """Return a pipeline that runs a strategy and, if the request is still too long, more drastic steps.

    These steps force the strategy (see `Strategy.forced`), then shorten tool results, drop the oldest groups and shorten the
    messages that remain. Cost: that of the given strategy while the request fits, otherwise O(messages).

    Args:
        strategy: The strategy.
        tokens: The largest number of tokens of a request, >= 1.
    """
    over, target = tokens_exceed(tokens), tokens_below(max(1, tokens * _TARGET // 100))
    last_means = Pipeline(
        ToolResult(HeadTail(), target=target, keep=last(groups=1)),
        Truncation(target=target, keep=last(groups=1)),
        *(Clip(tokens=max(1, tokens * share // 100), slack=1.0, trigger=over, keep=kept) for share, kept in _CLIPS),
        trigger=over,
    )
    return Pipeline(strategy, Pipeline(strategy.forced(), trigger=over), last_means)


class SessionSteps:
    """The phases of a turn. Holds state; `CompactionSession` explains the arguments.

    Call `follow` and the ``compact_`` methods only while you hold ``lock``; `view` and `compact` do this for you, and so does
    `SessionPool.turn`.

    Attributes:
        lock: The lock that each turn holds.
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
        portal: BlockingPortal | BackgroundTasks | None = None,
    ) -> None:
        self._ahead = SummariesAhead(ahead, portal, hard=hard)
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
        self.lock = TurnLock()
        self._reporter = EventReporter(id, on_event)
        self._saver = SessionSaver(store, id, self.to_dict, self._reporter.save_failed)
        self._guard = LoopGuard()
        self._reports = ProviderReports()
        self._compactions = 0
        self._revisions = [f"{id}:0"]
        self._last: CompactionResult | None = None
        self._named = None if format is None else resolve(format)
        context = self._context()
        self._marks = Marks.of(self._strategy.mark_ceilings, context)
        self._index = MessageIndex(counter=counter, format=format, context=context, pin=pin, marks=self._marks)
        if store is not None and (saved := store.load(id)) is not None:
            self._resume(saved)

    @property
    def id(self) -> str:
        """The session's name in its store, in its signatures, and in the stores of its strategy."""
        return self._id

    @property
    def index(self) -> MessageIndex:
        """The session's index, with the groups, the edits and the original messages."""
        return self._index

    def _context(self, overhead_tokens: int = 0) -> RunContext:
        anchor = self._reports.anchor
        overhead = self._base.overhead_tokens + overhead_tokens if anchor is None else anchor.offset
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
        return self._revisions[-1]

    def _revise(self, *decided: object) -> None:
        self._revisions.append(f"{self._id}:{lookup_key(self.revision, *decided)}")

    @property
    def has_decided(self) -> bool:
        """Whether this session, or the state that it started from, contains edits or a run that failed."""
        return len(self._revisions) > 1 or self._index.edit_count > 0

    def has_had(self, revision: object) -> bool:
        """Whether this is the current or an earlier revision of this session."""
        return revision in self._revisions

    @property
    def provider_reports(self) -> dict[str, Any]:
        """The entries of `to_dict` that change when the provider reports usage."""
        return reports_to_dict(self._reports.anchor, self._reports.learned)

    @property
    def new_messages(self) -> list[Any]:
        """The messages since the last view; empty before the first view. O(their number)."""
        sent = self._reports.messages
        return self._index.columns.source[sent:] if sent else []

    # ---------------------------------------------------------------- following the host

    def follow(self, messages: Iterable[Any] | None, *, overhead_tokens: int = 0) -> None:
        """Update the index from the host's list, without compacting.

        Args:
            messages: The conversation, as for `view`; ``None`` if it did not change.
            overhead_tokens: Tokens of the next request outside the messages, in addition to those of every request. Reported
                usage replaces both.

        Raises:
            InputError: If ``messages`` is not a list, or contains a message that cannot be read.
        """
        self._index.context = self._context(overhead_tokens)
        if messages is not None:
            self._index.sync(messages, verify=self._verify)
            self._trust_no_later_marks()
            self._reporter.followed(self._index)

    def _trust_no_later_marks(self) -> None:
        """From now on, read marks only in the messages of the first list and in summaries that this session wrote."""
        if self._marks.until is None and self._index.total.messages:
            self._marks = attrs.evolve(self._marks, until=self._index.total.messages)
            self._index.believe(self._marks)

    async def compact_due(self) -> CompactionResult:
        """Run the strategy if its trigger fires.

        Raises:
            Exception: Any exception that the strategy raises. The session is then unchanged.
        """
        return await self._run(self._ahead.begin(self._index, self._due()))

    def compact_due_sync(self) -> CompactionResult:
        """`compact_due` for strategies that do not await."""
        return self._run_sync(self._ahead.begin(self._index, self._due()))

    async def compact_now(self, focus: str | None = None) -> CompactionResult:
        """Run the strategy now, and end its pauses; see `CompactionSession.compact`."""
        self._guard.clear()
        self._base.pauses.clear()
        return await self._run(self._strategy.forced(focus or None))

    def compact_now_sync(self, focus: str | None = None) -> CompactionResult:
        """`compact_now` for strategies that do not await."""
        self._guard.clear()
        self._base.pauses.clear()
        return self._run_sync(self._strategy.forced(focus or None))

    async def _run(self, strategy: Strategy) -> CompactionResult:
        mark = self._index.edit_count
        return self._noted(await run(self._index, strategy, on_step=self._on_step, hard=self._hard), mark)

    def _run_sync(self, strategy: Strategy) -> CompactionResult:
        mark = self._index.edit_count
        return self._noted(run_sync(self._index, strategy, on_step=self._on_step, hard=self._hard), mark)

    def _noted(self, result: CompactionResult, mark: int) -> CompactionResult:
        """Report and save the result of a run."""
        result = self._ahead.end(self._index, self._strategy, result)
        result = self._reporter.settled(result, self._index, mark)
        self._guard_loops(result)
        known = self._index.total.messages
        self._reports.sent(result.messages, self._index.included.tokens, known)
        if result.edits or result.failures:
            self._revise(known, len(result.edits), len(result.failures), result.after)
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
        """Return the strategy to run: the configured one, within a learned window, or an empty pipeline during a pause."""
        strategy, tokens, window = self._strategy, self._index.tokens, self._window
        if self._guard.pauses(tokens) and (window is None or tokens <= window):
            return Pipeline()
        learned = self._reports.learned.window
        return strategy if learned is None else within(strategy, learned)

    def use_window(self, window: int | None) -> None:
        """Set the model's window, if known. If another one was set before, also discard the window learned from errors."""
        if window is not None and window != self._base.window:
            if self._base.window is not None:
                self._reports.learned = LearnedWindow()
            self._base = attrs.evolve(self._base, window=window)
            self._index.context = attrs.evolve(self._index.context, window=self._window)

    # ---------------------------------------------------------------- storing

    def to_dict(self) -> dict[str, Any]:
        """Return the session as JSON-ready data, with edits and fingerprints but without the messages."""
        return SavedSession(
            index=self._index.to_dict(messages=False),
            anchor=self._reports.anchor,
            learned=self._reports.learned,
            compactions=self._compactions,
            pauses=self._base.pauses,
        ).to_dict()

    def _resume(self, data: Mapping[str, Any]) -> None:
        saved = SavedSession.read(data)
        self._reports.anchor, self._reports.learned, self._compactions = saved.anchor, saved.learned, saved.compactions
        self._base = attrs.evolve(self._base, pauses=saved.pauses)
        if isinstance(revision := data.get("revision"), str):
            self._revisions = [revision]
        self.begin_with(Saved.read(saved.index, self._named))

    def save_to(self, store: SessionStore) -> None:
        """Use a store for later saves, without loading from it."""
        self._saver.store = store

    def begin_with(self, saved: Saved) -> None:
        """Start from saved messages and edits. Raises `StateError` if they do not match. Call it before the first turn."""
        context, counter = self._context(), self._index.counter
        self._index = MessageIndex.from_saved(saved, counter=counter, context=context, pin=self._pin, marks=self._marks)
        if self._index.marks is not None:
            self._marks = self._index.marks

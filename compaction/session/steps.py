"""The steps of a session's turn, for a caller who holds its lock: follow the host's list, run the strategy, store the state."""

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

_LITTLE: Final = 0.05  # of the request: a run that saves less is not worth the prompt cache it breaks
_RUNS: Final = 2
_NEW: Final = 0.10  # of the request that must be new before the strategy runs again; `Summarization.least_share` is the same


class LoopGuard:
    """Watches how much the runs of a session save. Holds state: the runs in a row that saved little, and when to go on.

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
        """Tokens that the runs in a row saved together."""
        return sum(self._saved)

    def note(self, before: int, after: int) -> bool:
        """Note a run that changed the view, and return whether the strategy pauses from now on.

        Args:
            before: Tokens of the request before the run.
            after: Tokens after it.
        """
        self.until_tokens = None
        if before - after >= _LITTLE * before:
            self._saved.clear()
            return False
        self._saved = [*self._saved[1 - _RUNS :], before - after]
        if len(self._saved) < _RUNS:
            return False
        self.until_tokens = after + int(_NEW * before)
        return True

    def pauses(self, tokens: int) -> bool:
        """Return whether the strategy rests at a request of so many tokens."""
        if self.until_tokens is None or tokens >= self.until_tokens:
            self.until_tokens = None
            return False
        return True

    def clear(self) -> None:
        """Forget the runs so far."""
        self._saved.clear()
        self.until_tokens = None


_TARGET: Final = 0.8  # of the window, once something must go, so that not every turn cuts again; chosen, not measured
_CLIPS: Final = ((0.25, kinds(GroupKind.USER)), (0.10, nothing), (0.05, nothing))  # what no request can do without


def within(strategy: Strategy, tokens: int) -> Strategy:
    """Return the strategy with what follows if a request still has more tokens: forcing it, then shortening, then dropping.

    Cost: that of the strategy while the request fits; past it, O(messages).

    Args:
        strategy: The strategy.
        tokens: Tokens that a request may have, >= 1.
    """
    over, target = tokens_exceed(tokens), tokens_below(max(1, int(tokens * _TARGET)))
    last_means = Pipeline(
        ToolResult(HeadTail(), target=target, keep=last(groups=1)),
        Truncation(target=target, keep=last(groups=1)),
        *(Clip(tokens=max(1, int(tokens * share)), slack=1.0, trigger=over, keep=kept) for share, kept in _CLIPS),
        trigger=over,
    )
    return Pipeline(strategy, Pipeline(strategy.forced(), trigger=over), last_means)


class SessionSteps:
    """A session whose caller holds ``lock``. Holds state; the arguments are those of `CompactionSession`.

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

    @property
    def revision(self) -> str:
        """A name for what was decided so far; it changes with every run that changed something or failed.

        Another process that decides something else from the same start has another name for it.
        """
        return self._revisions[-1]

    def _revise(self, *decided: object) -> None:
        self._revisions.append(f"{self._id}:{lookup_key(self.revision, *decided)}")

    @property
    def has_decided(self) -> bool:
        """Whether anything was decided so far, by this session or by what it began with."""
        return len(self._revisions) > 1 or self._index.edit_count > 0

    def has_had(self, revision: object) -> bool:
        """Whether this was its revision at some time, so that it knows all that was decided up to then."""
        return revision in self._revisions

    @property
    def provider_reports(self) -> dict[str, Any]:
        """The entries of `to_dict` that change with each report of the provider."""
        return reports_to_dict(self._reports.anchor, self._reports.learned)

    @property
    def new_messages(self) -> list[Any]:
        """The messages of the source that came since the last view, O(their number); none before the first view."""
        sent = self._reports.messages
        return self._index.columns.source[sent:] if sent else []

    # ---------------------------------------------------------------- following the host

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
        return await self._run(self._ahead.begin(self._index, self._due()))

    def compact_due_sync(self) -> CompactionResult:
        """`compact_due` for strategies that await nothing."""
        return self._run_sync(self._ahead.begin(self._index, self._due()))

    async def compact_now(self, focus: str | None = None) -> CompactionResult:
        """Run the strategy whatever its trigger says, and forget its pauses; see `CompactionSession.compact`."""
        self._guard.clear()
        self._base.pauses.clear()
        return await self._run(self._strategy.forced(focus or None))

    def compact_now_sync(self, focus: str | None = None) -> CompactionResult:
        """`compact_now` for strategies that await nothing."""
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
        """Tell and save what a run did."""
        result = self._ahead.end(self._index, self._strategy, result)
        result = self._reporter.settled(result, self._index, mark)
        self._guard_loops(result)
        self._reports.sent(result.messages, self._index.included.tokens, len(self._index.source))
        if result.edits or result.failures:
            self._revise(len(self._index.source), len(result.edits), len(result.failures), result.after)
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

    def use_window(self, window: int | None) -> None:
        """Set the model's window, if it is known; if another was set before, what its provider taught is forgotten."""
        if window is not None and window != self._base.window:
            if self._base.window is not None:
                self._reports.learned = LearnedWindow()
            self._base = attrs.evolve(self._base, window=window)
            self._index.context = attrs.evolve(self._index.context, window=self._window)

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

    def _resume(self, data: Mapping[str, Any]) -> None:
        saved = SavedSession.read(data)
        self._reports.anchor, self._reports.learned, self._compactions = saved.anchor, saved.learned, saved.compactions
        self._base = attrs.evolve(self._base, pauses=saved.pauses)
        if isinstance(revision := data.get("revision"), str):
            self._revisions = [revision]
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

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

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

import attrs

from ..errors import StateError
from ..formats import MessageFormat, resolve
from ..index import FailurePauses, Marks, MessageIndex, Metrics, RunContext, Saved
from ..json_data import natural_number, shown
from ..messages import Message
from ..result import CompactionResult, Observer, Outcome
from ..run import run, run_sync
from ..stores import SessionStore
from ..strategies import Failed, Strategy, StrategyLike, as_strategy
from ..tokens import TokenCounter, Usage, UsageAnchor
from .turns import TurnLock

__all__ = ["CompactionSession", "SessionStatus"]

_logger = logging.getLogger("compaction")
_VERSION: Final = 1  # of what CompactionSession.to_dict returns


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
    ) -> None:
        self._strategy: Strategy = as_strategy(strategy)
        self._base = RunContext(window=window, overhead_tokens=overhead_tokens, keys=key, origin=id)
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
        self._unsaved = False
        self._save_failure: Failed | None = None
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
        overhead = self._base.overhead_tokens + overhead_tokens if self._anchor is None else self._anchor.offset
        return attrs.evolve(self._base, overhead_tokens=overhead, now=None if self._clock is None else self._clock())

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
            return self._noted(await run(self._index, self._strategy.forced(focus), on_step=self._on_step, hard=self._hard))

    def compact_sync(self, messages: Iterable[Any] | None = None, *, focus: str | None = None) -> CompactionResult:
        """`compact` for strategies that await nothing."""
        with self.lock.thread:
            self.follow(messages)
            return self._noted(run_sync(self._index, self._strategy.forced(focus), on_step=self._on_step, hard=self._hard))

    def _noted(self, result: CompactionResult) -> CompactionResult:
        self._last = result
        self._compactions += bool(result.edits)
        self._unsaved = self._unsaved or bool(result.edits or result.failures)
        self._save()
        return self._with_save_failure(result)

    def _save(self, anchor: int | None = None) -> None:
        """Save what is not saved yet: all of it, or only a new anchor; a failure is kept and reported, not raised."""
        if self._store is None or not (self._unsaved or anchor is not None):
            return
        whole, self._unsaved = self._unsaved, False
        try:
            if whole or anchor is None or not self._store.save_anchor(self._id, anchor):
                self._store.save(self._id, self.to_dict())
        except Exception as error:
            failure = Failed(type(self._store).__name__, error, "the session is not saved; the next turn saves it again")
            _logger.warning("%s failed (%r): %s", failure.strategy, failure.error, failure.policy)
            self._unsaved, self._save_failure = True, failure
        else:
            self._save_failure = None

    def _with_save_failure(self, result: CompactionResult) -> CompactionResult:
        if self._save_failure is None:
            return result
        outcome: Outcome = "over_target" if result.outcome == "over_target" else "degraded"
        return attrs.evolve(result, failures=(*result.failures, self._save_failure), outcome=outcome)

    def record_usage(self, usage: Any) -> None:
        """Record the tokens that a provider reported for the last view; later counts are anchored to them.

        With a store the report is saved; while a turn is under way, that turn saves it.

        Args:
            usage: A provider's usage object or mapping, or a `Usage`; call this before the reply is passed to `view`.

        Raises:
            InputError: If it holds no usage.
        """
        reported = usage if isinstance(usage, Usage) else Usage.read(usage)
        self._anchor = UsageAnchor.from_usage(reported, self._index.included.tokens, with_reply=False)
        self._index.context = self._context()
        with self.lock.if_free() as free:
            if free:
                self._save(self._anchor.offset)
            else:
                self._unsaved = True

    def reconfigure(self, strategy: StrategyLike, *, window: int | None = None) -> None:
        """Change the strategy and the window, for instance after a switch of models; earlier edits stay in force.

        Args:
            strategy: The strategy to run from now on.
            window: Tokens of the model's context window, if known.

        Raises:
            ConfigurationError: If the strategy is not callable, or the window is not above 0; nothing changes then.
        """
        lifted, base = as_strategy(strategy), attrs.evolve(self._base, window=window)
        self._strategy, self._base = lifted, base
        self._index.context = self._context()

    def status(self) -> SessionStatus:
        """Return the state of the session; O(1)."""
        last = None if self._last is None else self._with_save_failure(self._last)
        failures = (self._save_failure,) if last is None else last.failures
        return SessionStatus(
            tokens=max(0, self._index.tokens),
            window=self._base.window,
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
        return self._noted(await run(self._index, self._strategy, on_step=self._on_step, hard=self._hard))

    def compact_due_sync(self) -> CompactionResult:
        """`compact_due` for strategies that await nothing."""
        return self._noted(run_sync(self._index, self._strategy, on_step=self._on_step, hard=self._hard))

    # ---------------------------------------------------------------- storing

    def to_dict(self) -> dict[str, Any]:
        """Return the session as JSON-ready data: edits and fingerprints, not the messages."""
        return {
            "version": _VERSION,
            "index": self._index.to_dict(messages=False),
            "anchor": None if self._anchor is None else self._anchor.offset,
            "compactions": self._compactions,
            "pauses": self._base.pauses.to_dict(),
        }

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
        version = data.get("version") if isinstance(data, Mapping) else None
        if version != _VERSION:
            known = f"this release reads version {_VERSION}"
            raise StateError(f"session version={shown(version)}: {known}; upgrade, or start a new session")
        anchor: object = data.get("anchor")
        index: object = data.get("index")
        try:
            compactions = natural_number(data.get("compactions", 0))
            if type(anchor) not in (int, type(None)):
                raise TypeError(f"anchor={shown(anchor)}")
        except (TypeError, ValueError) as error:
            remedy = "start a new session, the conversation itself is not affected"
            raise StateError(f"session: not what to_dict returned ({error}); {remedy}") from error
        self._anchor = None if anchor is None else UsageAnchor(cast("int", anchor))
        self._compactions = compactions
        self._base = attrs.evolve(self._base, pauses=FailurePauses.from_dict(data.get("pauses", {})))
        self.begin_with(Saved.read(cast("dict[str, Any]", index), self._named))

    def begin_with(self, saved: Saved) -> None:
        """Take over messages and edits before the first turn, and nothing else; for a caller who holds ``lock``.

        Raises:
            StateError: If they do not fit together; the session is as it was.
        """
        context = self._context()
        self._index = MessageIndex.from_saved(
            saved, counter=self._index.counter, context=context, pin=self._pin, marks=self._marks
        )
        if self._index.marks is not None:
            self._marks = self._index.marks

"""Summaries that are asked for before they are due, in the background, so that no request waits for them.

When a turn ends and the strategy did nothing, but the ``ahead`` trigger fires, the strategy is rehearsed: run on trial, as if
the request had grown to the limits of its triggers, up to the summary it would ask for. That request is sent in a task of the
session's owner. A turn begins by taking over an answer that has come. The strategy uses it when its own trigger fires, if all
that the summary stands for may still leave and is unchanged; otherwise the answer is dropped and the summarizer asked as usual.
"""

from __future__ import annotations

import contextlib
import inspect
import threading
from collections.abc import Awaitable, Callable
from typing import Final, Self, cast

import anyio
import anyio.to_thread
import attrs
from anyio.abc import TaskGroup
from anyio.from_thread import BlockingPortal

from ..errors import ConfigurationError
from ..index import MessageIndex, PreparedSummaries, PreparedSummary
from ..result import CompactionResult
from ..strategies import Failed, Pipeline, Strategy, may_stand
from ..summarizers import SummaryRequest
from ..triggers import Trigger, TriggerLike, as_trigger
from .rehearsal import rehearsed
from .turns import loop_scheduler


class BackgroundTask:
    """Work that an owner runs. Holds state: where it runs, once it does, and whether it was cancelled.

    Args:
        work: The work; it raises nothing.
    """

    def __init__(self, work: Callable[[], Awaitable[object]]) -> None:
        self._work = work
        self._guard = threading.Lock()
        self._cancel: Callable[[], object] | None = None
        self._cancelled = False

    async def run(self) -> None:
        """Do the work, unless it was cancelled before it began."""
        with anyio.CancelScope() as scope:
            schedule = loop_scheduler()
            with self._guard:
                self._cancel = lambda: schedule(scope.cancel)
                if self._cancelled:
                    return
            try:
                await self._work()
            finally:
                with self._guard:
                    self._cancel = None

    def cancel(self) -> None:
        """Cancel the work from any thread, and do not wait for its end."""
        with self._guard:
            self._cancelled, cancel = True, self._cancel
        if cancel is not None:
            with contextlib.suppress(RuntimeError):  # its event loop is closed: the task is gone
                cancel()


class BackgroundTasks:
    """The owner of background tasks: ``async with BackgroundTasks()``, or a portal. Holds state: whether it is open.

    Tasks are started from any thread, and run in the event loop in which it was entered. On leaving, all are cancelled and
    waited for. One owner serves any number of sessions: pass it as their ``portal=``.

    Args:
        portal: An event loop that runs already, for hosts that are not awaited. Then nothing has to be entered, and whoever
            made it ends its tasks.

    >>> async def main():
    ...     async with BackgroundTasks() as tasks:
    ...         done = anyio.Event()
    ...         async def work():
    ...             done.set()
    ...         tasks.start(work)
    ...         await done.wait()
    >>> anyio.run(main)
    """

    def __init__(self, portal: BlockingPortal | None = None) -> None:
        self._portal = portal
        self._group: TaskGroup | None = None
        self._schedule: Callable[..., object] | None = None
        self._was_opened = False

    def require(self) -> None:
        """Raise a `ConfigurationError` if it was never entered and has no portal; one that was closed raises nothing."""
        if self._portal is None and not self._was_opened:
            raise ConfigurationError(
                "ahead= asks in the background, which needs an owner: begin turns inside `async with session:`, or pass portal="
            )

    @property
    def is_open(self) -> bool:
        """Whether it runs tasks; taken to be so for a portal."""
        return self._portal is not None or self._group is not None

    def start(self, work: Callable[[], Awaitable[object]]) -> BackgroundTask | None:
        """Start work that raises nothing, and do not wait for its beginning.

        Returns:
            The task; ``None`` if the owner is closed.
        """
        task = BackgroundTask(work)
        try:
            if self._portal is not None:
                self._portal.start_task_soon(task.run)
            elif self._schedule is None:
                return None
            else:
                self._schedule(self._begin, task)
        except RuntimeError:  # the event loop has ended, or its own thread uses the portal
            return None
        return task

    def _begin(self, task: BackgroundTask) -> None:
        if self._group is not None:
            self._group.start_soon(task.run)

    async def __aenter__(self) -> Self:
        if self._portal is not None:
            return self
        if self._group is not None:
            raise ConfigurationError("these background tasks are open already: enter them once at a time")
        group = anyio.create_task_group()
        await group.__aenter__()
        self._group, self._schedule, self._was_opened = group, loop_scheduler(), True
        return self

    async def __aexit__(self, *exception: object) -> None:
        group, self._group, self._schedule = self._group, None, None
        if group is not None:
            group.cancel_scope.cancel()
            await group.__aexit__(None, None, None)


_ROOM: Final = 0.9  # of the window, up to which a request goes out as it is while a summary is under way


class SummariesAhead:
    """The background summaries of one session. Holds state: the summary that is ready, the task under way, its failure.

    A session calls `begin` before each run of its strategy and `end` after it, under its lock. At most one request is under
    way; it is cancelled if what it stands for changes, or if the strategy has to ask the summarizer itself.

    Args:
        trigger: When to ask; ``None`` for never. Set it below the strategy's own trigger.
        owner: Runs the tasks: those of a pool, or a portal; ``None`` if ``async with`` will make them.
        hard: Whether a run that misses its target raises.

    Attributes:
        prepared: The summary that is ready, for the run's context.

    Raises:
        ConfigurationError: If there is an owner without a trigger, or a trigger together with ``hard``.
    """

    def __init__(
        self, trigger: TriggerLike | None, owner: BlockingPortal | BackgroundTasks | None = None, *, hard: bool = False
    ) -> None:
        if trigger is None and owner is not None:
            raise ConfigurationError("portal= serves ahead=, which is missing: pass ahead=tokens_exceed(...), or neither")
        if trigger is not None and hard:
            raise ConfigurationError("ahead= leaves what came last to a later turn, and hard=True forbids that: pass only one")
        self._trigger: Trigger | None = None if trigger is None else as_trigger(trigger)
        self._has_own_tasks = owner is None
        self._tasks = owner if isinstance(owner, BackgroundTasks) else BackgroundTasks(owner)
        self.prepared = PreparedSummaries(self._stop)
        self._guard = threading.Lock()  # held only while the three below are read or changed
        self._asked: _Asked | None = None
        self._arrived: PreparedSummary | None = None
        self._failure: tuple[Strategy, Exception] | None = None
        self._failed: list[Failed] = []  # to be told in the next result
        self._closed = False

    # ---------------------------------------------------------------- turns

    def begin(self, index: MessageIndex, strategy: Strategy) -> Strategy:
        """Take over what has come since the last turn, and return the strategy to run now.

        That is none while a summary is under way and the view fits nine tenths of the window: then nobody has to wait for it.
        A summary that is due before it was asked for, because much came at once, is asked for in the background then.

        Raises:
            ConfigurationError: If the owner was never entered.
        """
        if self._trigger is None:
            return strategy
        self._tasks.require()
        with self._guard:
            arrived, self._arrived, failure, self._failure = self._arrived, None, self._failure, None
        self.prepared.summary = arrived or self.prepared.summary
        self.prepared.is_due = False
        if failure is not None:
            step, error = failure
            index.context.pauses.record_failure(step, index.context.now)
            self._failed.append(Failed(step.name, error, "the summary asked for ahead is not there"))
        try:
            return Pipeline() if self._goes_as_it_is(index, strategy, self._trigger) else strategy
        except Exception:  # of a trigger, most likely: `end` asks it again, and says so
            return strategy

    def _goes_as_it_is(self, index: MessageIndex, strategy: Strategy, trigger: Trigger) -> bool:
        """Return whether the request has room in the window while its summary is written; ask for one that is due now."""
        window = index.context.window
        if window is None or index.tokens > _ROOM * window:
            return False
        if self._is_under_way or not self._is_idle or not trigger(index):
            return self._is_under_way
        due = rehearsed(index, strategy, is_due=True)
        if due is not None:
            self._ask(*due, is_due=True)
        return self._is_under_way

    def end(self, index: MessageIndex, strategy: Strategy, result: CompactionResult) -> CompactionResult:
        """Ask for the next summary if it is time, and return the result with a failure in the background, if there was one."""
        if self._trigger is None:
            return result
        failures, self._failed = self._failed, []
        try:
            self._look_ahead(index, strategy, result, self._trigger)
        except Exception as error:
            failures.append(Failed(strategy.name, error, "no summary was asked for ahead"))
        return result.with_failures(*failures)

    def _look_ahead(self, index: MessageIndex, strategy: Strategy, result: CompactionResult, trigger: Trigger) -> None:
        prepared = self.prepared
        if prepared.is_due or (prepared.summary is not None and not may_stand(index, prepared.summary)):
            prepared.summary = None
        asked = self._asked
        if asked is not None and self._is_under_way:
            if not may_stand(index, asked.summary):
                self._stop()
            return
        if not self._is_idle or result.outcome != "unchanged" or not trigger(index):
            return
        found = rehearsed(index, strategy)
        if found is not None:
            self._ask(*found)

    # ---------------------------------------------------------------- asking

    @property
    def _is_under_way(self) -> bool:
        return self._asked is not None and self._tasks.is_open

    @property
    def _is_idle(self) -> bool:
        """Whether there is neither a summary nor a request for one, and one may be asked for."""
        return self._asked is None and self._arrived is None and self.prepared.summary is None and not self._closed

    def _ask(self, request: SummaryRequest, summary: PreparedSummary, *, is_due: bool = False) -> None:
        asked = _Asked(request, summary, is_due)
        with self._guard:
            self._asked = asked
        asked.task = self._tasks.start(lambda: self._answer(asked))
        with self._guard:
            if asked.task is None and self._asked is asked:
                self._asked = None
            dropped = self._asked is not asked
        if dropped and asked.task is not None:
            asked.task.cancel()

    async def _answer(self, asked: _Asked) -> None:
        """Call the summarizer in the background, and keep what it answers unless nobody wants it any more."""
        text: object = None
        failure: Exception | None = None
        try:
            text = await _called(asked.request)
        except Exception as error:
            failure = error
        finally:
            with self._guard:
                if self._asked is asked:
                    self._asked = None
                    if failure is not None and asked.is_due:
                        self._arrived = attrs.evolve(asked.summary, text=failure)  # the strategy's policy decides
                    elif failure is not None:
                        self._failure = cast("Strategy", asked.summary.strategy), failure
                    elif text is not None:
                        self._arrived = attrs.evolve(asked.summary, text=text)

    def _stop(self) -> None:
        """Cancel what is under way; its answer is not taken."""
        with self._guard:
            asked, self._asked = self._asked, None
        if asked is not None and asked.task is not None:
            asked.task.cancel()

    # ---------------------------------------------------------------- ending

    def drop(self) -> None:
        """Forget the prepared summary, and cancel the one under way."""
        self._stop()
        with self._guard:
            self._arrived = None
        self.prepared.summary = None

    def close(self) -> None:
        """Drop what there is, and prepare nothing more."""
        self._closed = True
        self.drop()

    async def __aenter__(self) -> Self:
        if self._has_own_tasks:
            await self._tasks.__aenter__()
        self._closed = False
        return self

    async def __aexit__(self, *exception: object) -> None:
        self.close()
        if self._has_own_tasks:
            await self._tasks.__aexit__(*exception)


@attrs.define(eq=False)
class _Asked:
    """A request under way, what its answer will stand for, and whether the strategy waits for it."""

    request: SummaryRequest
    summary: PreparedSummary
    is_due: bool
    task: BackgroundTask | None = None


async def _called(request: SummaryRequest) -> object:
    """Return the summarizer's answer. One that may block is called in a thread, whose end nobody waits for."""
    if inspect.iscoroutinefunction(request.summarizer.summarize):
        answer = request.call()
    else:
        answer = await anyio.to_thread.run_sync(request.call, abandon_on_cancel=True)
    if inspect.isawaitable(answer):
        answer = await request.wait(answer)
    return "" if answer is None else answer

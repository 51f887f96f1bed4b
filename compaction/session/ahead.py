"""Summaries prepared in the background, so that no call waits for a model.

If the strategy made no edit in a call, but the ``ahead`` trigger fires, the session rehearses the strategy: it runs it on the
index as if the limits of the strategy's triggers were reached, notes the first summary request, and undoes everything. A
background task sends that request to the summarizer. The next call picks up the answer. When the strategy's own trigger fires,
the strategy uses the prepared summary, provided that the groups it covers are unchanged and can still be removed. Otherwise the
session discards it, and the strategy calls the summarizer as usual::

    idle --the trigger fires--> requested --an answer--> arrived --the next call--> prepared --the strategy uses it--> idle
                                    |                       |                           |
                                    +---- the groups it covers change, or the strategy has called the summarizer ----> idle
"""

from __future__ import annotations

import contextlib
import inspect
import threading
from collections.abc import Awaitable, Callable
from typing import Final, Literal, Self, cast

import anyio
import anyio.to_thread
import attrs
from anyio.abc import TaskGroup
from anyio.from_thread import BlockingPortal

from ..errors import ConfigurationError
from ..index import MessageIndex, PreparedSummaries, PreparedSummary
from ..result import CompactionResult
from ..strategies import Failed, Pipeline, Strategy, may_stand, summary_ahead
from ..summarizers import SummaryRequest
from ..triggers import TriggerLike, as_trigger, never
from .lock import loop_scheduler


class BackgroundTask:
    """A task that any thread can cancel. Holds state: whether it was cancelled."""

    def __init__(self, work: Callable[[], Awaitable[object]], group: TaskGroup | None) -> None:
        self.group = group  # where it runs; ``None`` for a portal
        self._work = work  # the function to await; it must not raise
        self._guard = threading.Lock()
        self._cancel: Callable[[], object] | None = None
        self._cancelled = False

    async def run(self) -> None:
        """Run the work, unless it was cancelled before."""
        with anyio.CancelScope() as scope:
            schedule = loop_scheduler()
            with self._guard:
                self._cancel = lambda: schedule(scope.cancel)
                if self._cancelled:
                    return
            await self._work()

    def cancel(self) -> None:
        """Cancel the work without waiting until it has ended. Any thread may call this."""
        with self._guard:
            self._cancelled, cancel = True, self._cancel
        if cancel is not None:
            with contextlib.suppress(RuntimeError):  # its event loop is closed
                cancel()


class BackgroundTasks:
    """Runs background tasks inside ``async with BackgroundTasks()`` or in an anyio portal. Holds state: whether it is open.

    Any thread may start tasks. They run in the event loop that entered the ``async with``; leaving that block cancels them and
    waits until they have ended. Many sessions can share one object: pass it as their ``tasks=``.

    Args:
        portal: An anyio ``BlockingPortal``, for programs without async code. No ``async with`` is needed then, and the tasks
            end when the portal is closed.

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
        """Raise `ConfigurationError` if there is no portal and ``async with`` was never used."""
        if self._portal is None and not self._was_opened:
            raise ConfigurationError(
                "ahead= runs background tasks: use the session inside `async with session:`, or pass tasks="
            )

    @property
    def is_open(self) -> bool:
        """Whether it accepts tasks; always true for a portal."""
        return self._portal is not None or self._group is not None

    def start(self, work: Callable[[], Awaitable[object]]) -> BackgroundTask | None:
        """Start work that does not raise, without waiting, and return its task; ``None`` if this object is closed."""
        task = BackgroundTask(work, self._group)
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
        if task.group is not None and self.has(task):
            task.group.start_soon(task.run)

    def has(self, task: BackgroundTask) -> bool:
        """Whether a task may still be running; false once the ``async with`` in which it was started has been left."""
        return self.is_open and task.group is self._group

    async def __aenter__(self) -> Self:
        if self._group is not None:
            raise ConfigurationError("this BackgroundTasks is already open: leave its `async with` before you enter it again")
        group = anyio.create_task_group()
        await group.__aenter__()
        self._group, self._schedule, self._was_opened = group, loop_scheduler(), True
        return self

    async def __aexit__(self, *exception: object) -> None:
        group, self._group, self._schedule = self._group, None, None
        if group is not None:
            group.cancel_scope.cancel()
            await group.__aexit__(None, None, None)


_ROOM: Final = 9  # while a summary is prepared, requests up to this many tenths of the window are sent without compaction


class SummariesAhead:
    """The background summaries of one session. Holds state: the prepared summary, the running request, its failure.

    The session calls `begin` before each run of its strategy and `end` after it, while it holds its lock. At most one request
    runs at a time. It is cancelled if the groups to summarize change, or if the strategy has to call the summarizer itself.

    Raises:
        ConfigurationError: If tasks are given without a trigger, or a trigger with ``hard``.
    """

    def __init__(self, trigger: TriggerLike | None, tasks: BackgroundTasks | None = None, *, hard: bool = False) -> None:
        if trigger is None and tasks is not None:
            raise ConfigurationError("tasks= has no effect without ahead=: pass ahead=tokens_exceed(...), or neither")
        if trigger is not None and hard:
            raise ConfigurationError("with ahead=, a call may miss its target; hard=True forbids this: pass only one of them")
        # when to prepare a summary; ``None`` to prepare none. It should fire before the strategy's own trigger
        self._trigger = never if trigger is None else as_trigger(trigger)
        self._has_own_tasks = tasks is None
        # where the requests run, such as a pool's tasks; ``None`` if the session itself is used with ``async with``
        self._tasks = BackgroundTasks() if tasks is None else tasks
        self.prepared = PreparedSummaries(self._stop)  # the prepared summary, for the context of a run
        self._guard = threading.Lock()  # held only while the next two are read or changed
        self._requested: _BackgroundRequest | None = None  # it may have ended with its tasks, see `_stage`
        self._arrived: _BackgroundRequest | None = None  # with its answer
        self._failed: list[Failed] = []  # for the next result
        self._closed = False

    # ---------------------------------------------------------------- calls

    def begin(self, index: MessageIndex, strategy: Strategy) -> Strategy:
        """Pick up a summary that has arrived, and return the strategy to run now.

        While a summary is being prepared and the request fits into nine tenths of the window, it returns an empty pipeline, so
        that the call does not wait. If the strategy needs a summary in this call, that summary is requested in the background.
        """
        if self._trigger == never:
            return strategy
        if not self._closed:
            self._tasks.require()
        self.prepared.is_due = False  # the strategy sets it when it needs a summary in this run
        self._pick_up(index)
        try:
            return Pipeline() if self._may_wait(index, strategy) else strategy
        except Exception:  # probably raised by a trigger; `end` evaluates it again and reports the exception
            return strategy

    def _pick_up(self, index: MessageIndex) -> None:
        """Prepare the summary that has arrived, if any, or record that it failed."""
        with self._guard:
            arrived, self._arrived = self._arrived, None
        if arrived is None:
            return
        if isinstance(arrived.answer, Exception) and not arrived.was_due:
            step = cast("Strategy", arrived.summary.strategy)
            index.context.pauses.record_failure(step, index.context.now)
            self._failed.append(Failed(step.name, arrived.answer, "no summary was prepared in the background"))
        else:  # an exception that the strategy needed now is handled by its on_failure
            self.prepared.summary = attrs.evolve(arrived.summary, text=arrived.answer)

    def _may_wait(self, index: MessageIndex, strategy: Strategy) -> bool:
        """Return whether this call's view may be sent without compaction, because a summary is being prepared.

        If the strategy needs one now, it is requested here.
        """
        window = index.context.window
        if window is None or 10 * index.tokens > _ROOM * window:
            return False
        if self._stage == "idle" and self._trigger(index):
            due = summary_ahead(index, strategy, is_due=True)
            if due is not None:
                self._ask(*due, is_due=True)
        return self._stage == "requested"

    def end(self, index: MessageIndex, strategy: Strategy, result: CompactionResult) -> CompactionResult:
        """Request the next summary if the trigger fires, and add a failure in the background to the result."""
        if self._trigger == never:
            return result
        failures, self._failed = self._failed, []
        try:
            self._look_ahead(index, strategy, result)
        except Exception as error:
            failures.append(Failed(strategy.name, error, "no summary was requested in the background"))
        return result.with_failures(*failures)

    def _look_ahead(self, index: MessageIndex, strategy: Strategy, result: CompactionResult) -> None:
        """Drop what does not fit the conversation any more, and request the next summary if it is time."""
        prepared = self.prepared
        if prepared.is_due or (prepared.summary is not None and not may_stand(index, prepared.summary)):
            prepared.summary = None
        requested = self._requested
        if self._stage == "requested" and requested is not None:
            if not may_stand(index, requested.summary):
                self._stop()
        elif self._stage == "idle" and result.outcome == "unchanged" and self._trigger(index):
            found = summary_ahead(index, strategy)
            if found is not None:
                self._ask(*found)

    # ---------------------------------------------------------------- asking

    @property
    def _stage(self) -> Literal["closed", "idle", "requested", "arrived", "prepared"]:
        """The state of the drawing above, or ``"closed"``. Only when it is idle may a summary be requested."""
        with self._guard:
            asked, arrived = self._requested, self._arrived
        if asked is not None and self._tasks.has(asked.task):
            return "requested"
        if arrived is not None:
            return "arrived"
        if self.prepared.summary is not None:
            return "prepared"
        return "closed" if self._closed else "idle"

    def _ask(self, request: SummaryRequest, summary: PreparedSummary, *, is_due: bool = False) -> None:
        asked = _BackgroundRequest(request, summary, was_due=is_due)
        with self._guard:  # the answer arrives later
            task = self._tasks.start(lambda: self._answer(asked))
            if task is not None:
                asked.task, self._requested = task, asked

    async def _answer(self, asked: _BackgroundRequest) -> None:
        """Call the summarizer in the background, and keep its answer unless the request was dropped meanwhile."""
        try:
            asked.answer = await _called(asked.request)
        except Exception as error:
            asked.answer = error
        finally:
            with self._guard:
                if self._requested is asked:
                    self._requested = None
                    self._arrived = None if asked.answer is None else asked

    def _stop(self) -> None:
        """Cancel the running request and ignore its answer."""
        with self._guard:
            asked, self._requested = self._requested, None
        if asked is not None:
            asked.task.cancel()

    # ---------------------------------------------------------------- ending

    def drop(self) -> None:
        """Discard the prepared summary and cancel the running request."""
        self._stop()
        with self._guard:
            self._arrived = None
        self.prepared.summary = None

    def close(self) -> None:
        """Discard the prepared summary, cancel the running request, and start no other."""
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
class _BackgroundRequest:
    """A request in the background."""

    request: SummaryRequest
    summary: PreparedSummary  # its answer completes it
    was_due: bool  # whether the strategy already needed it when it was requested
    task: BackgroundTask = attrs.field(init=False)  # once it has started
    answer: object = attrs.field(default=None, init=False)  # or the exception; None if there is none yet, or it was cancelled


async def _called_in_thread(request: SummaryRequest) -> object:
    """Return what a summarizer returns that runs in a thread. After a cancellation, a coroutine that it returns is closed."""
    guard, answers = threading.Lock(), list[object]()
    is_abandoned = False

    def call() -> None:
        answer = request.call()
        with guard:
            if not is_abandoned:
                answers.append(answer)
            elif inspect.iscoroutine(answer):
                answer.close()

    try:
        await anyio.to_thread.run_sync(call, abandon_on_cancel=True)
    except BaseException:
        with guard:
            is_abandoned = True
            for answer in filter(inspect.iscoroutine, answers):
                answer.close()
        raise
    return answers[0]


async def _called(request: SummaryRequest) -> object:
    """Return the summarizer's answer. A sync summarizer runs in a thread; a cancellation does not wait for that thread."""
    if inspect.iscoroutinefunction(request.summarizer.summarize):
        answer = request.call()
    else:
        answer = await _called_in_thread(request)
    if inspect.isawaitable(answer):
        answer = await request.wait(answer)
    return "" if answer is None else answer  # in `_BackgroundRequest`, None stands for a request without an answer

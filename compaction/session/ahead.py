"""Summaries prepared in the background, so that no call waits for a model.

If the strategy made no edit in a call, but the ``ahead`` trigger fires, the session rehearses the strategy: it runs it on the
index as if the limits of the strategy's triggers were reached, notes the first summary request, and undoes everything. A
background task sends that request to the summarizer. The next call picks up the answer. When the strategy's own trigger fires,
the strategy uses the prepared summary, provided that the groups it covers are unchanged and can still be removed. Otherwise the
session discards it, and the strategy calls the summarizer as usual::

    idle --the trigger fires--> requested --an answer--> arrived --the next call--> prepared --the strategy uses it--> idle
          `_ask`                |         `_answer_of`   |          `_pick_up`      |       `_look_ahead`, by `is_needed`
                                +------------------------+--------------------------+
                      the groups it covers change (`_look_ahead`), or the strategy calls the summarizer (`_cancel`) ---> idle

    requested   the task of ``_asked`` may be running
    arrived     the task of ``_asked`` has an answer: a text, or an exception
    prepared    ``_asked`` is ``None``, and ``prepared.summary`` is the answer
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, Literal, Self, cast

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
    """A task that any thread can cancel. Holds state: its answer, whether it was cancelled, and whether it has ended.

    `cancel` sets ``_is_cancelled`` and then calls ``_cancel``; `run` sets ``_cancel`` and then reads ``_is_cancelled``. So one
    of the two threads always sees what the other wrote, and the work does not run after it was cancelled.
    """

    def __init__(self, work: Callable[[], Awaitable[object]], group: TaskGroup | None) -> None:
        self.group = group  # where it runs; ``None`` for a portal
        self.answer: object = None  # what the work returned or raised; ``None`` if it has not, or was cancelled
        self.has_ended = False
        self._work = work
        self._is_cancelled = False
        self._cancel: Callable[[], object] = bool  # does nothing before the task runs

    async def run(self) -> None:
        """Run the work, unless it was cancelled before."""
        try:
            with anyio.CancelScope() as scope:
                schedule = loop_scheduler()
                self._cancel = lambda: schedule(scope.cancel)
                if not self._is_cancelled:
                    self.answer = await self._work()
        except Exception as error:
            self.answer = error
        finally:
            self.has_ended = True

    def cancel(self) -> None:
        """Cancel the work without waiting until it has ended. Any thread may call this."""
        self._is_cancelled = True
        with contextlib.suppress(RuntimeError):  # its event loop is closed
            self._cancel()


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
        self._group: TaskGroup | None = None
        # starts a task from any thread, inside and outside an ``async with``; ``None`` if this object is closed
        self._start: Callable[[BackgroundTask], object] | None = None
        if portal is not None:
            self._start = lambda task: portal.start_task_soon(task.run)
        self._start_outside = self._start
        self._was_opened = portal is not None

    def require(self) -> None:
        """Raise `ConfigurationError` if there is no portal and ``async with`` was never used."""
        if not self._was_opened:
            raise ConfigurationError(
                "ahead= runs background tasks: use the session inside `async with session:`, or pass tasks="
            )

    def start(self, work: Callable[[], Awaitable[object]]) -> BackgroundTask | None:
        """Start work without waiting, and return its task, which keeps its answer; ``None`` if this object is closed."""
        task, start = BackgroundTask(work, self._group), self._start
        if start is None:
            return None
        with contextlib.suppress(RuntimeError):  # the event loop has ended, or its own thread uses the portal
            start(task)
            return task
        return None

    def _begin(self, task: BackgroundTask) -> None:
        if task.group is not None and self.has(task):
            task.group.start_soon(task.run)

    def has(self, task: BackgroundTask) -> bool:
        """Whether a task may still be running; false once the ``async with`` in which it was started has been left."""
        return self._start is not None and task.group is self._group and not task.has_ended

    async def __aenter__(self) -> Self:
        if self._group is not None:
            raise ConfigurationError("this BackgroundTasks is already open: leave its `async with` before you enter it again")
        group = anyio.create_task_group()
        await group.__aenter__()
        self._group, self._start, self._was_opened = group, partial(loop_scheduler(), self._begin), True
        return self

    async def __aexit__(self, *exception: object) -> None:
        group = self._group
        if group is not None:
            self._group, self._start = None, self._start_outside
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
        self._trigger = never if trigger is None else as_trigger(trigger)
        self._tasks = BackgroundTasks() if tasks is None else tasks
        self._own_tasks: contextlib.AbstractAsyncContextManager[object] = (
            self._tasks if tasks is None else contextlib.nullcontext()
        )
        self.prepared = PreparedSummaries(self._cancel)  # the prepared summary, for the context of a run
        self._asked: _BackgroundRequest | None = None  # the last one, until a call picks up its answer
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
        self.prepared.is_needed = False  # the strategy sets it when it needs a summary in this run
        self._pick_up(index)
        window = index.context.window
        if window is None or 10 * index.tokens > _ROOM * window:
            return strategy
        try:
            if self._stage == "idle" and self._trigger(index):
                self._ask(summary_ahead(index, strategy, is_urgent=True), is_urgent=True)
        except Exception:  # probably raised by a trigger; `end` evaluates it again and reports the exception
            return strategy
        return Pipeline() if self._stage == "requested" else strategy

    def _pick_up(self, index: MessageIndex) -> None:
        """Prepare the summary that has arrived, if any, or record that it failed."""
        arrived = self._asked
        if arrived is None or (answer := arrived.task.answer) is None:
            return
        self._asked = None
        if isinstance(answer, Exception) and not arrived.is_urgent:
            step = cast("Strategy", arrived.summary.strategy)
            index.context.pauses.record_failure(step, index.context.now)
            self._failed.append(Failed(step.name, answer, "no summary was prepared in the background"))
        else:  # if the strategy waits for this answer, its on_failure handles an exception
            self.prepared.summary = attrs.evolve(arrived.summary, text=answer)

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
        if prepared.is_needed or (prepared.summary is not None and not may_stand(index, prepared.summary)):
            prepared.summary = None
        if self._asked is not None and not may_stand(index, self._asked.summary):
            self._cancel()
        elif self._stage == "idle" and result.outcome == "unchanged" and self._trigger(index):
            self._ask(summary_ahead(index, strategy), is_urgent=False)

    # ---------------------------------------------------------------- asking

    @property
    def _stage(self) -> Literal["closed", "idle", "requested", "arrived", "prepared"]:
        """The stage in the drawing above, or ``"closed"`` after `close`. Only when it is idle may a summary be requested."""
        asked = self._asked
        if asked is not None and self._tasks.has(asked.task):
            return "requested"
        if asked is not None and asked.task.answer is not None:
            return "arrived"
        if self.prepared.summary is not None:
            return "prepared"
        return "closed" if self._closed else "idle"

    def _ask(self, found: tuple[SummaryRequest, PreparedSummary] | None, *, is_urgent: bool) -> None:
        """Send the request that a rehearsal found, if it found one."""
        if found is None:
            return
        request, summary = found
        task = self._tasks.start(partial(_answer_of, request))
        if task is not None:
            self._asked = _BackgroundRequest(task, summary, is_urgent=is_urgent)

    def _cancel(self) -> None:
        """Cancel the request and ignore its answer; a failure that has arrived since the call began is then not reported."""
        asked, self._asked = self._asked, None
        if asked is not None:
            asked.task.cancel()

    # ---------------------------------------------------------------- ending

    def drop(self) -> None:
        """Discard the prepared summary and cancel the running request."""
        self._cancel()
        self.prepared.summary = None

    def close(self) -> None:
        """Discard the prepared summary, cancel the running request, and start no other."""
        self._closed = True
        self.drop()

    async def __aenter__(self) -> Self:
        await self._own_tasks.__aenter__()
        self._closed = False
        return self

    async def __aexit__(self, *exception: object) -> None:
        self.close()
        await self._own_tasks.__aexit__(*cast("Any", exception))


@attrs.frozen(eq=False)
class _BackgroundRequest:
    """A request in the background."""

    task: BackgroundTask
    summary: PreparedSummary  # which the answer of the task completes
    is_urgent: bool  # whether the run that was due when it was requested already needed it


async def _answer_of(request: SummaryRequest) -> object:
    """Return the summarizer's answer. A sync summarizer runs in a thread; a cancellation does not wait for it."""
    is_async = inspect.iscoroutinefunction(request.summarizer.summarize)
    answer = request.call() if is_async else await _called_in_thread(request)
    if inspect.isawaitable(answer):
        answer = await request.wait(answer)
    return "" if answer is None else answer


async def _called_in_thread(request: SummaryRequest) -> object:
    """Return what the summarizer returns. After a cancellation, a coroutine that it returns is closed."""
    answers, is_abandoned = list[object](), False

    def close() -> None:
        for answer in filter(inspect.iscoroutine, answers):
            answer.close()

    def call() -> None:
        answers.append(request.call())
        if is_abandoned:
            close()

    try:
        await anyio.to_thread.run_sync(call, abandon_on_cancel=True)
    except BaseException:
        is_abandoned = True
        close()
        raise
    return answers[0]

"""The events of a session. Pass ``on_event=`` to a session, a pool or an integration to receive them.

    def watch(event):
        match event:
            case Compacting(edits=edits) if any(touches_a_contract(edit) for edit in edits):
                raise Veto("the contract stays")
            case CacheBroken(tokens=tokens, why=why):
                log.warning("%d tokens are billed again: %s", tokens, why)

The function is called in the task or thread of the call, before the call ends. An exception that it raises does not stop the
call; the result lists it as a failure. The only exception that affects the call is `Veto`, raised for `Compacting`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any, Final, TypeAlias

import attrs

from ..index import Edit, HostChanges, MessageIndex, Metrics
from ..result import WORSE_OPENING, CompactionResult, Outcome
from ..strategies import Failed


class Veto(Exception):
    """Raise it from ``on_event`` for a `Compacting` event to undo the edits and send the previous view."""


@attrs.frozen(kw_only=True)
class Event:
    """The base of all events; ``session`` is the session's id."""

    session: str


@attrs.frozen(kw_only=True)
class ContextUsed(Event):
    """A view is ready to be sent. Reported once for each view, whether it changed or not.

    Args:
        tokens: Tokens of the request, >= 0, corrected with the reported usage if there is any.
        window: Tokens of the window; ``None`` if unknown.
        triggered: The steps that changed the view before this request, each with the explanation of its trigger, such as
            ``"Truncation: tokens 1,024 > 1,000"``; empty if nothing changed.
    """

    tokens: int
    window: int | None
    triggered: tuple[str, ...] = ()

    @property
    def share(self) -> float | None:
        """The share of the window that the request fills, >= 0 (above 1 if it does not fit); ``None`` without a window."""
        return self.tokens / self.window if self.window else None


@attrs.frozen(kw_only=True)
class NearLimit(Event):
    """The request reached nine tenths of the window. Reported again only after a request below nine tenths.

    Args:
        tokens: Tokens of the request.
        window: Tokens of the window.
    """

    tokens: int
    window: int


@attrs.frozen(kw_only=True)
class Compacting(Event):
    """The view is about to change. Raise `Veto` to prevent it.

    Args:
        edits: The edits, each with its reason.
        before: The size of the view before them.
        after: The size of the view after them.
    """

    edits: tuple[Edit, ...]
    before: Metrics
    after: Metrics


@attrs.frozen(kw_only=True)
class Compacted(Event):
    """The view changed; ``result`` is the result of the run."""

    result: CompactionResult


@attrs.frozen(kw_only=True)
class StepFailed(Event):
    """A step of the strategy failed, usually because its summarizer failed; ``failure`` says what the strategy did instead."""

    failure: Failed


@attrs.frozen(kw_only=True)
class SaveFailed(Event):
    """The session could not be saved, or a saved one not read; ``failure`` has the store's error and what happens then."""

    failure: Failed


@attrs.frozen(kw_only=True)
class CacheBroken(Event):
    """The beginning of the request differs from the previous request, so the provider cannot use all of its prompt cache.

    Args:
        tokens: Tokens of those messages after the first difference that both requests contain. They are no longer cached.
        why: The cause of the difference: ``"compaction"``, ``"forget"`` or ``"the host"``.
    """

    tokens: int
    why: str


@attrs.frozen(kw_only=True)
class Overflowed(Event):
    """A provider refused a request because it was too long.

    Args:
        tokens: Tokens of the request: the provider's count if its error contains one, otherwise the session's count.
        window: Tokens of the window, if the error contains it.
        error: The provider's error.
    """

    tokens: int
    window: int | None
    error: BaseException


@attrs.frozen(kw_only=True)
class LittleSaved(Event):
    """Two runs in a row each saved less than 5 % of the request, so the strategy pauses.

    It resumes when the request has grown by 10 %, or exceeds the window or the budget of the strategy.

    Args:
        saved_tokens: Tokens that both runs saved in total.
        until_tokens: The size of the request, in tokens, at which the strategy resumes.
    """

    saved_tokens: int
    until_tokens: int


@attrs.frozen(kw_only=True)
class Evicted(Event):
    """A pool removed the session from memory.

    Args:
        why: The limit that was exceeded: ``"count"`` or ``"bytes"``.
        is_saved: Whether a store has the session, so that it can be loaded again.
    """

    why: str
    is_saved: bool


@attrs.frozen(kw_only=True)
class HostChanged(Event):
    """The host altered, removed or inserted messages, or removed the last messages (went back).

    Args:
        changes: The changes.
        undone: The edits that were undone because of them.
    """

    changes: HostChanges
    undone: tuple[Edit, ...] = ()


OnEvent: TypeAlias = Callable[[Event], object]
"""A function that receives events."""


VETOED: Final = "vetoed: "
"""The start of the note about a veto."""

_NEAR: Final = 9  # tenths of the window


@attrs.frozen(eq=False)
class LastSent:
    """The last request, with which the next one is compared."""

    view: tuple[Any, ...] = ()  # its messages; empty before the first one
    is_near: bool = False  # whether it was near the limit


class EventReporter:
    """Creates the events of a session and calls ``on_event``. Holds state: the failures of the function.

    Without a function it does nothing.
    """

    def __init__(self, session: str, on_event: OnEvent | None) -> None:
        self._session = session
        self._on_event = on_event
        self._failures: list[Failed] = []
        self.last_sent = LastSent()

    def tell(self, event: Event) -> None:
        """Report one event.

        What the function raises, except a `Veto` of `Compacting`, becomes a failure in the result of this call, or in the next
        one if that is already made.
        """
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception as error:
            if isinstance(error, Veto) and isinstance(event, Compacting):
                raise
            failure = Failed("on_event", error, f"the call continued after {type(event).__name__}")
            self._failures.append(failure.logged())

    def followed(self, index: MessageIndex) -> None:
        """Report the changes of the host. Call it after the index was synchronized."""
        if index.changes or index.undone:
            self.tell(HostChanged(session=self._session, changes=index.changes, undone=index.undone))

    def forgot(self, index: MessageIndex) -> None:
        """Report the broken prompt cache after messages were forgotten."""
        if self.last_sent.view:
            self._compare(index.messages(), index, "forget")

    def run_ended(self, result: CompactionResult, index: MessageIndex, start: int) -> CompactionResult:
        """Report the result of a run that began after ``start`` edits; return it, without its edits after a veto."""
        result = self._allowed(result, index, start)
        for failure in result.failures:
            self.tell(StepFailed(session=self._session, failure=failure))
        if result.edits:
            self.tell(Compacted(session=self._session, result=result))
        self._compare(result.messages, index, "compaction" if result.edits else "the host")
        tokens, window = max(0, index.tokens), index.context.window
        self.tell(ContextUsed(session=self._session, tokens=tokens, window=window, triggered=result.triggered))
        failures, self._failures = self._failures, []
        return result.with_failures(*failures)

    def _allowed(self, result: CompactionResult, index: MessageIndex, start: int) -> CompactionResult:
        """Report that the view is about to change, and return the result; after a veto, undo the edits first."""
        if not result.edits:
            return result
        try:
            self.tell(Compacting(session=self._session, edits=result.edits, before=result.before, after=result.after))
        except Veto as veto:
            index.rollback(start)
            left: dict[str, Any] = {"messages": index.messages(), "after": result.before, "edits": (), "triggered": ()}
            outcome: Outcome = "degraded" if result.failures else "unchanged"
            missed: tuple[str, ...] = ()
            if result.outcome == "over_target":  # without the edits, the request is larger still
                outcome = "over_target"
                missed = tuple([f"even with the vetoed edits, {note}" for note in result.notes if note != WORSE_OPENING])
            return attrs.evolve(result, **left, outcome=outcome, notes=(f"{VETOED}{veto}", *missed))
        return result

    def _compare(self, view: Sequence[Any], index: MessageIndex, why: str) -> None:
        """Compare the view with the last one and the request with the window, and report both; O(view)."""
        if self._on_event is None:
            return
        sent, format = self.last_sent.view, index.format
        same = format.common_prefix(sent, view)
        before = set(map(id, sent[same:]))  # the messages that were sent last time and now follow a changed beginning
        broken = sum(index.measure(format.read(raw))[0] for raw in view[same:] if id(raw) in before)
        if broken:
            self.tell(CacheBroken(session=self._session, tokens=broken, why=why))
        window, tokens = index.context.window, index.tokens
        is_near = 10 * tokens >= _NEAR * (window or inf)
        if window and is_near and not self.last_sent.is_near:
            self.tell(NearLimit(session=self._session, tokens=tokens, window=window))
        self.last_sent = LastSent(tuple(view), is_near)

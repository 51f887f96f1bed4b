"""Reports the events of a session to ``on_event``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import attrs

from ..index import MessageIndex
from ..result import CompactionResult
from ..strategies import Failed
from .events import (
    CacheBroken,
    Compacted,
    Compacting,
    ContextUsed,
    Event,
    HostChanged,
    NearLimit,
    OnEvent,
    SaveFailed,
    StepFailed,
    Veto,
)

_NEAR: Final = 9  # tenths of the window


@attrs.frozen(eq=False)
class Reported:
    """What the events have reported so far.

    Args:
        sent: The last view.
        is_near: Whether that request was near the limit.
        undone: The number of undone edits of the index that were reported.
        why: Why the next view may differ from the last one.
    """

    sent: tuple[Any, ...] = ()
    is_near: bool = False
    undone: int = 0
    why: str = ""


class EventReporter:
    """Creates the events of a session and calls ``on_event``. Holds state: the failures of the function.

    Without a function it does nothing.

    Args:
        session: The session's id.
        on_event: Called with each event.

    Attributes:
        reported: What was reported so far.
    """

    def __init__(self, session: str, on_event: OnEvent | None) -> None:
        self._session = session
        self._on_event = on_event
        self._failures: list[Failed] = []
        self.reported = Reported()

    def _set(self, **changes: Any) -> None:
        self.reported = attrs.evolve(self.reported, **changes)

    def tell(self, event: Event) -> None:
        """Report one event. An exception that the function raises becomes a failure in the next result.

        Raises:
            Veto: If the event is `Compacting` and the function raises it.
        """
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception as error:
            if isinstance(error, Veto) and isinstance(event, Compacting):
                raise
            failure = Failed("on_event", error, f"the turn continued after {type(event).__name__}")
            self._failures.append(failure.logged())

    def followed(self, index: MessageIndex) -> None:
        """Report the changes of the host. Call it after the index was synchronized."""
        undone = index.undone[self.reported.undone :]
        if len(index.undone) != self.reported.undone:
            self._set(undone=len(index.undone))
        if index.changes or undone:
            self._set(why="the host")
            self.tell(HostChanged(session=self._session, changes=index.changes, undone=undone))

    def forgot(self, index: MessageIndex) -> None:
        """Report the broken prompt cache after messages were forgotten, and discard the last view."""
        self._set(undone=len(index.undone))
        if self.reported.sent:
            self._set(why="forget")
            self._sent_now(index.messages(), index)

    def settled(self, result: CompactionResult, index: MessageIndex, start: int) -> CompactionResult:
        """Report the result of a run, and return it; if the function vetoed it, the edits are undone.

        Args:
            result: The result.
            index: The conversation.
            start: The number of edits before the run.
        """
        if (veto := self._vetoed(result)) is not None:
            index.rollback(start)
            notes, view = (*result.notes, f"vetoed: {veto}"), index.messages()
            result = attrs.evolve(result, messages=view, after=result.before, edits=(), outcome="unchanged", notes=notes)
            result = attrs.evolve(result, triggered=())
        for failure in result.failures:
            self.tell(StepFailed(session=self._session, failure=failure))
        if result.edits:
            self._set(why="compaction")
            self.tell(Compacted(session=self._session, result=result))
        self._sent_now(result.messages, index)
        tokens, window = max(0, index.tokens), index.context.window
        self.tell(ContextUsed(session=self._session, tokens=tokens, window=window, triggered=result.triggered))
        if self._failures:
            result = attrs.evolve(result, failures=(*result.failures, *self._failures))
            self._failures.clear()
        return result

    def _vetoed(self, result: CompactionResult) -> Veto | None:
        """Report that the view is about to change, and return the veto, if any."""
        if not result.edits or self._on_event is None:
            return None
        try:
            self.tell(Compacting(session=self._session, edits=result.edits, before=result.before, after=result.after))
        except Veto as veto:
            return veto
        return None

    def save_failed(self, failure: Failed) -> None:
        """Report that the session could not be saved."""
        self.tell(SaveFailed(session=self._session, failure=failure))

    def _sent_now(self, view: Sequence[Any], index: MessageIndex) -> None:
        """Compare the view with the last one and the request with the window, and report both; O(view)."""
        if self._on_event is None:
            return
        broken = self._broken_tokens(view, index)
        if broken:
            self.tell(CacheBroken(session=self._session, tokens=broken, why=self.reported.why or "the host"))
        window, tokens = index.context.window, index.tokens
        is_near = window is not None and 10 * tokens >= _NEAR * window
        if window is not None and is_near and not self.reported.is_near:
            self.tell(NearLimit(session=self._session, tokens=tokens, window=window))
        self._set(sent=tuple(view), is_near=is_near, why="")

    def _broken_tokens(self, view: Sequence[Any], index: MessageIndex) -> int:
        """Return the tokens of the messages that were sent last time and now follow a changed beginning."""
        sent = self.reported.sent
        same = index.format.common_prefix(sent, view) if sent else 0
        if same == len(sent):
            return 0
        before = {id(raw) for raw in sent[same:]}
        again = [index.format.read(raw, place) for place, raw in enumerate(view) if place >= same and id(raw) in before]
        return sum(index.measure(message)[0] for message in again)

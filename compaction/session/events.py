"""The events of a session. Pass ``on_event=`` to a session, a pool or an integration to receive them.

    def watch(event):
        match event:
            case Compacting(edits=edits) if any(touches_a_contract(edit) for edit in edits):
                raise Veto("the contract stays")
            case CacheBroken(tokens=tokens, why=why):
                log.warning("%d tokens are billed again: %s", tokens, why)

The function is called in the task or thread of the turn, before the turn ends. An exception that it raises does not stop the
turn; the result lists it as a failure. The only exception that affects the turn is `Veto`, raised for `Compacting`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import attrs

from ..index import Edit, HostChanges, Metrics
from ..result import CompactionResult
from ..strategies import Failed


class Veto(Exception):
    """Raise it from ``on_event`` for a `Compacting` event to undo the edits and send the previous view."""


@attrs.frozen(kw_only=True)
class Event:
    """The base of all events.

    Args:
        session: The session's id.
    """

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
    """The view changed.

    Args:
        result: The result of the run.
    """

    result: CompactionResult


@attrs.frozen(kw_only=True)
class StepFailed(Event):
    """A step of the strategy failed, usually because its summarizer failed.

    Args:
        failure: The failure, and what the strategy did instead.
    """

    failure: Failed


@attrs.frozen(kw_only=True)
class SaveFailed(Event):
    """The session could not be saved. The next turn tries again.

    Args:
        failure: The store's error.
    """

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
    """Two runs in a row each saved less than 5 % of the request. The strategy pauses until the request has grown by 10 %.

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

"""The events of a session, as typed values: pass ``on_event=`` to a session, a pool or an integration to receive them.

    def watch(event):
        match event:
            case Compacting(edits=edits) if any(touches_a_contract(edit) for edit in edits):
                raise Veto("the contract stays")
            case CacheBroken(tokens=tokens, why=why):
                log.warning("%d tokens are billed again: %s", tokens, why)

An event is told in the task or thread of the turn it belongs to, before the turn returns. What the function raises does not
stop the turn: it is recorded in the failures of the result. Only a `Veto` raised for `Compacting` has an effect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import attrs

from ..index import Edit, HostChanges, Metrics
from ..result import CompactionResult
from ..strategies import Failed


class Veto(Exception):
    """Raised by an ``on_event`` function for a `Compacting` event: the edits are undone, the turn sends the view as it was."""


@attrs.frozen(kw_only=True)
class Event:
    """The base of all events.

    Args:
        session: The session's id.
    """

    session: str


@attrs.frozen(kw_only=True)
class NearLimit(Event):
    """The request fills nine tenths of the window or more; told once, until a request is below that again.

    Args:
        tokens: Tokens of the request.
        window: Tokens of the window.
    """

    tokens: int
    window: int


@attrs.frozen(kw_only=True)
class Compacting(Event):
    """The view is about to change. ``raise Veto(...)`` keeps it as it was.

    Args:
        edits: What would leave the view or be rewritten, each with its reason.
        before: Sizes of the view as it was.
        after: Sizes of the view as it would be.
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
    """A step of the strategy failed, most often a summarizer.

    Args:
        failure: What failed, and what was done instead.
    """

    failure: Failed


@attrs.frozen(kw_only=True)
class SaveFailed(Event):
    """The session could not be saved; the next turn saves it again.

    Args:
        failure: The store's error.
    """

    failure: Failed


@attrs.frozen(kw_only=True)
class CacheBroken(Event):
    """The request does not begin as the last one did, so that a provider reads again what its prompt cache held.

    Args:
        tokens: Tokens of messages that both requests have, behind the place where the requests begin to differ.
        why: What changed the beginning: ``"compaction"``, ``"forget"`` or ``"the host"``.
    """

    tokens: int
    why: str


@attrs.frozen(kw_only=True)
class Overflowed(Event):
    """A provider refused a request because it was too long.

    Args:
        tokens: Tokens of the request, by the provider's count if it said so, else by ours.
        window: Tokens of the window, if the provider said so.
        error: The provider's error.
    """

    tokens: int
    window: int | None
    error: BaseException


@attrs.frozen(kw_only=True)
class LittleSaved(Event):
    """Two runs in a row saved less than a twentieth each; the strategy pauses until there is more new content.

    Args:
        saved_tokens: Tokens that the two runs saved together.
        until_tokens: Tokens of the request from which the strategy runs again.
    """

    saved_tokens: int
    until_tokens: int


@attrs.frozen(kw_only=True)
class Evicted(Event):
    """A pool no longer holds the session in memory.

    Args:
        why: The bound that was reached: ``"count"`` or ``"bytes"``.
        is_saved: Whether a store has it, so that it can come back.
    """

    why: str
    is_saved: bool


@attrs.frozen(kw_only=True)
class HostChanged(Event):
    """The host altered, removed, inserted or took back messages that were known.

    Args:
        changes: What it did.
        undone: Edits that were undone because of it.
    """

    changes: HostChanges
    undone: tuple[Edit, ...] = ()


OnEvent: TypeAlias = Callable[[Event], object]
"""A function that receives events."""

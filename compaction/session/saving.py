"""Saving a session: when, what a failure does, and reading what was saved."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import attrs

from ..errors import StateError
from ..index import FailurePauses
from ..json_data import natural_number, shown
from ..result import CompactionResult, Outcome
from ..strategies import Failed
from ..tokens import UsageAnchor
from .provider_reports import LearnedWindow

if TYPE_CHECKING:
    from ..stores import SessionStore

__all__ = ["SavedSession", "SessionSaver", "reports_to_dict"]

_logger = logging.getLogger("compaction")
_VERSION: Final = 1  # of what CompactionSession.to_dict returns


class SessionSaver:
    """Saves one session; a failure is kept, reported and tried again, never raised. Holds state: what is not saved yet.

    Args:
        store: Where to save, if anywhere.
        id: The session's name there.
        state: Returns the session as JSON-ready data.
        on_failure: Called with each failure.

    Attributes:
        store: Where it is saved.
        unsaved: Whether the session changed since it was saved.
        failure: Why the last save failed, if it did.
    """

    def __init__(
        self, store: SessionStore | None, id: str, state: Callable[[], dict[str, Any]], on_failure: Callable[[Failed], object]
    ) -> None:
        self.store = store
        self._id = id
        self._state = state
        self._on_failure = on_failure
        self.unsaved = False
        self.failure: Failed | None = None

    def save(self, anchor: int | None = None) -> None:
        """Save what is not saved yet: all of it, or only a new usage anchor."""
        if self.store is None or not (self.unsaved or anchor is not None):
            return
        whole, self.unsaved = self.unsaved, False
        try:
            if whole or anchor is None or not self.store.save_anchor(self._id, anchor):
                self.store.save(self._id, self._state())
        except Exception as error:
            self.failure = Failed(type(self.store).__name__, error, "the session is not saved; the next turn saves it again")
            _logger.warning("%s failed (%r): %s", self.failure.strategy, error, self.failure.policy)
            self.unsaved = True
            self._on_failure(self.failure)
        else:
            self.failure = None

    def reported(self, result: CompactionResult) -> CompactionResult:
        """Return the result with the failure to save, if there is one."""
        if self.failure is None:
            return result
        outcome: Outcome = "over_target" if result.outcome == "over_target" else "degraded"
        return attrs.evolve(result, failures=(*result.failures, self.failure), outcome=outcome)


def reports_to_dict(anchor: UsageAnchor | None, learned: LearnedWindow) -> dict[str, Any]:
    """Return the part of a saved session that the provider reported, as JSON-ready data."""
    return {"anchor": None if anchor is None else anchor.offset, "learned": [learned.window, learned.accepted]}


@attrs.frozen(kw_only=True)
class SavedSession:
    """A session as it was saved.

    Args:
        index: The saved index.
        anchor: The usage anchor, if usage was reported.
        learned: The window that a provider taught.
        compactions: The number of runs that changed the view.
        pauses: The pauses after failures.
    """

    index: dict[str, Any]
    anchor: UsageAnchor | None
    learned: LearnedWindow
    compactions: int
    pauses: FailurePauses

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data."""
        return {
            "version": _VERSION,
            "index": self.index,
            **reports_to_dict(self.anchor, self.learned),
            "compactions": self.compactions,
            "pauses": self.pauses.to_dict(),
        }

    @classmethod
    def read(cls, data: object) -> SavedSession:
        """Read what `to_dict` returned.

        Raises:
            StateError: If the data is corrupt or from a newer version.
        """
        known: Mapping[str, Any] = cast("Mapping[str, Any]", data) if isinstance(data, Mapping) else {}
        version = known.get("version")
        if version != _VERSION:
            remedy = f"this release reads version {_VERSION}; upgrade, or start a new session"
            raise StateError(f"session version={shown(version)}: {remedy}")
        anchor: object = known.get("anchor")
        try:
            compactions = natural_number(known.get("compactions", 0))
            if type(anchor) not in (int, type(None)):
                raise TypeError(f"anchor={shown(anchor)}")
            window, accepted = known.get("learned", (None, 0))
            learned = LearnedWindow(None if window is None else max(1, natural_number(window)), natural_number(accepted))
        except (TypeError, ValueError) as error:
            remedy = "start a new session, the conversation itself is not affected"
            raise StateError(f"session: not what to_dict returned ({error}); {remedy}") from error
        return cls(
            index=cast("dict[str, Any]", known.get("index")),
            anchor=None if anchor is None else UsageAnchor(cast("int", anchor)),
            learned=learned,
            compactions=compactions,
            pauses=FailurePauses.from_dict(known.get("pauses", {})),
        )

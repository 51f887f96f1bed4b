"""`SessionSaver`, which saves a session in a store after a call, and again after a failure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import ConfigurationError
from ..result import CompactionResult
from ..strategies import Failed

if TYPE_CHECKING:
    from ..stores import SessionStore


class SessionSaver:
    """Saves a session. Holds state, which an interruption of a call does not undo: what is saved, and the last failure.

    Attributes:
        store: Where it saves; ``None`` to save nothing.
        is_unsaved: Whether something changed, besides the usage anchor, that is not saved.
        anchor: The usage anchor that was saved or loaded last.
        failure: The failure of the last attempt, if it failed.
    """

    def __init__(self, store: SessionStore | None) -> None:
        self.store = checked_store(store)
        self.is_unsaved = False
        self.anchor: int | None = None
        self.failure: Failed | None = None

    def save(self, id: str, anchor: int | None, to_dict: Callable[[], dict[str, Any]]) -> Failed | None:
        """Save the whole session if it is unsaved, or the usage anchor alone if only that is new; return a failure.

        Args:
            id: The session's name.
            anchor: The usage anchor now.
            to_dict: Returns the whole session.
        """
        store = self.store
        if store is None or not (self.is_unsaved or anchor != self.anchor):
            return None
        try:
            if self.is_unsaved or anchor is None or not store.save_anchor(id, anchor):
                store.save(id, to_dict())
        except Exception as error:
            failed = Failed(type(store).__name__, error, "the session is not saved; the next call tries again")
            self.failure, self.is_unsaved = failed.logged(), True
            return failed
        self.failure, self.is_unsaved, self.anchor = None, False, anchor
        return None

    def with_failure(self, result: CompactionResult) -> CompactionResult:
        """Return a result with the failure of the last attempt to save, if it failed."""
        return result if self.failure is None else result.with_failures(self.failure)


def checked_store(store: SessionStore | None) -> SessionStore | None:
    """Return the store; raise `ConfigurationError` if it is another object, such as the path of one."""
    if store is not None and not hasattr(store, "load"):
        raise ConfigurationError(f"store={store!r}: must be a store; write store=SessionStore({store!r})")
    return store

"""Saving a session after each change, and again after a failure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import ConfigurationError
from ..result import CompactionResult
from ..strategies import Failed

if TYPE_CHECKING:
    from ..stores import SessionStore


class SessionSaver:
    """Saves one session. If saving fails, this is reported, and the next call tries again. Holds state: unsaved changes.

    Args:
        store: The store; ``None`` to save nothing.
        id: The session's name in the store.
        state: Returns the session as JSON-ready data.
        on_failure: Called with each failure.

    Attributes:
        store: The store.
        failure: The failure of the last save; ``None`` if it succeeded.
    """

    def __init__(
        self, store: SessionStore | None, id: str, state: Callable[[], dict[str, Any]], on_failure: Callable[[Failed], object]
    ) -> None:
        if store is not None and not hasattr(store, "load"):
            raise ConfigurationError(f"store={store!r}: must be a store; write store=SessionStore({store!r})")
        self.store = store
        self._id = id
        self._state = state
        self._on_failure = on_failure
        self._version = self._saved = object()
        self.failure: Failed | None = None

    def changed(self) -> None:
        """Note that the session changed, so that the next `save` saves it."""
        self._version = object()

    def save(self, anchor: int | None = None) -> None:
        """Save the unsaved changes: the whole session, or only a new usage anchor."""
        version = self._version
        if version is not self._saved:
            anchor = None
        elif anchor is None:
            return
        if self.store is None:
            return
        try:
            if anchor is None or not self.store.save_anchor(self._id, anchor):
                self.store.save(self._id, self._state())
        except Exception as error:
            failed = Failed(type(self.store).__name__, error, "the session is not saved; the next call tries again")
            self.failure = failed.logged()
            self._saved = object()
            self._on_failure(failed)
        else:
            self._saved, self.failure = version, None

    def reported(self, result: CompactionResult) -> CompactionResult:
        """Return the result, with the failure to save added if there is one."""
        return result if self.failure is None else result.with_failures(self.failure)

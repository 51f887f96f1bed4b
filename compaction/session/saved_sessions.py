"""Finds the saved session that a list continues, or that a fork takes edits from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from ..errors import StateError
from ..strategies import Failed
from .directory import ListRequest, SessionDirectory
from .events import OnEvent
from .pooled import Inheritance, id_key, whole_key
from .reporter import EventReporter
from .session import CompactionSession

if TYPE_CHECKING:
    from ..stores import SessionStore


@attrs.frozen(eq=False, kw_only=True)
class SavedSessions:
    """The sessions of a pool that are in its store and not in memory.

    Args:
        store: The store; ``None`` if sessions are not saved.
        directory: The sessions in memory.
        resumed: Returns the session of a saved state.
        new_id: Returns a new id.
        on_event: Called with an event for each session that cannot be read.
    """

    store: SessionStore | None
    directory: SessionDirectory
    resumed: Callable[[dict[str, Any]], CompactionSession]
    new_id: Callable[[], str]
    on_event: OnEvent | None

    def found(self, request: ListRequest) -> tuple[str | None, Inheritance | None]:
        """Return the name and the state of the saved session that a list continues, or the edits that a fork takes over.

        If the store fails, the conversation counts as new and gets a new name, so that nothing is overwritten.
        """
        if self.store is None:
            return None, None
        space, id, count = request.space, request.id, len(request.given)
        try:
            keys = [whole_key(space, id, request.keys.whole(place)) for place in range(count, 0, -1)]
            for name in self.store.find(space, keys):
                if (resumed := self._read(name)) is not None:
                    return name, Inheritance(state=resumed[1])
            return self._saved_of_id(request, [] if id is None else self.store.find(space, [id_key(space, id)]))
        except StateError as error:
            name = f"{request.name or 'auto'}:{self.new_id()}"
            self._not_read(name, error, "the conversation counts as new")
            return name, None

    def _read(self, name: str) -> tuple[CompactionSession, dict[str, Any]] | None:
        """Return a saved session and its state; ``None`` if it is in memory or was deleted.

        If a session cannot be read, this is reported as an event, and the result is also ``None``.
        """
        assert self.store is not None
        if name in self.directory or (state := self.store.load(name)) is None:
            return None
        try:
            return self.resumed(state), state
        except StateError as error:
            self._not_read(name, error, "the saved session is not used and not changed")
            return None

    def _not_read(self, name: str, error: StateError, policy: str) -> None:
        EventReporter(name, self.on_event).save_failed(Failed(type(self.store).__name__, error, policy).logged())

    def given(self, state: Mapping[str, Any], request: ListRequest) -> tuple[str | None, Inheritance]:
        """Return the name and the inheritance of a session whose state the host keeps."""
        id = state.get("id")
        name = id if isinstance(id, str) else None
        taken = Inheritance.of(self.resumed(dict(state)), dict(state), name, request.given)
        return None if taken.state is None or name in self.directory else name, taken

    def _saved_of_id(self, request: ListRequest, names: list[str]) -> tuple[str | None, Inheritance | None]:
        name = f"{request.name}:{self.new_id()}" if names else None
        best: Inheritance | None = None
        for each in names:
            if (read := self._read(each)) is None:
                continue
            taken = Inheritance.of(*read, each, request.given)
            if taken.state is not None:
                return each, taken
            if taken.edits > (0 if best is None else best.edits):
                best = taken
        return name, best

"""Editing an index: edits are judged by the laws, done, undone, and done again where the conversation changed beneath them."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable

import attrs

from .context import RunContext
from .edits import Edit, Restore, Together, renamed
from .errors import InputError
from .journal import Applied, inserted, perform, undo
from .laws import refusal
from .refusals import Refusals
from .tokens import MessageMeter, TokenCounter
from .view import IndexView

__all__ = ["EditedIndex"]


class EditedIndex(IndexView):
    """The editing half of `MessageIndex`: what strategies and drivers do to the view of messages that are there.

    Args:
        counter: Measures what edits insert, and the messages.
        context: What surrounds the conversation; replace it at any time.
    """

    def __init__(self, counter: TokenCounter, context: RunContext | None = None) -> None:
        self.counter = counter
        self.measure = MessageMeter(counter=counter).measure
        self._pinned_ids: set[int] = set()
        super().__init__(context)

    def apply(self, edit: Edit, *, by: str = "") -> bool:
        """Apply an edit, unless it would break a law; O(the groups it names).

        Args:
            edit: What should happen.
            by: The strategy that asks, for the journal.

        Returns:
            Whether it was applied. A refusal is recorded in ``refused``, with the rule, until the next run.

        Raises:
            NoProgress: If this edit was refused before, nothing changed since, and no other strategy began.
        """
        before = self._projection.included.tokens
        done = self._attempt(edit, by)
        if isinstance(done, Applied) and self._projection.included.tokens > before:
            grown = self._projection.included.tokens - before
            undo(self._projection, done)
            done = f"the view does not grow (this adds {grown} tokens)"
        self._changed()
        if isinstance(done, Applied):
            self._journal.append(done)
            self._refusals.changed()
            return True
        self._refusals.note(edit, done, by)
        return False

    def _attempt(self, edit: Edit, by: str) -> Applied | str:
        """The edit as done, or the rule that forbids it; a `Together` is done part by part, all or none."""
        rule = refusal(self._projection, edit)
        if rule is not None:
            return rule
        if not isinstance(edit, Together):
            return perform(self._projection, edit, self.measure, by)
        parts: list[Applied] = []
        try:
            for part in edit.edits:
                done = self._attempt(part, by)
                if isinstance(done, str):
                    return done
                parts.append(done)
            whole = Applied(edit, by, self._projection.grouping.turn, parts=tuple(parts))
            parts.clear()
            return whole
        finally:
            for earlier in reversed(parts):
                undo(self._projection, earlier)

    def mark(self) -> int:
        """A place in the journal to roll back to; also where a run begins: what an earlier run was refused is forgotten."""
        self._refusals.clear()
        return len(self._journal)

    def begin_step(self) -> None:
        """Where a strategy begins: it may ask, once, for what another was refused."""
        self._refusals.changed()

    @contextlib.contextmanager
    def trial(self) -> Generator[None]:
        """A place to try edits out: what is done inside is taken back at its end, and what is refused there is forgotten."""
        mark, refusals = len(self._journal), self._refusals
        self._refusals = Refusals()
        try:
            yield
        finally:
            self.rollback(mark)
            self._refusals = refusals

    def rollback(self, mark: int = 0) -> None:
        """Undo every edit made since the mark: the exact inverse of applying them.

        Raises:
            InputError: If the mark lies beyond the journal.
        """
        if not 0 <= mark <= len(self._journal):
            raise InputError(f"rollback({mark}): the journal holds {len(self._journal)} edits; pass a value of mark()")
        while len(self._journal) > mark:
            undo(self._projection, self._journal.pop())
        self._pinned_ids = {id for id in self._pinned_ids if id in self._projection.by_id}
        self._changed()

    def _changed(self) -> None:
        self._groups = None
        self._view = None

    def pin(self, ids: Iterable[int]) -> None:
        """Keep these groups as they are from now on.

        Raises:
            InputError: If one of them does not exist.
        """
        for id in ids:
            record = self._record(id)
            record.pinned, record.snapshot = True, None
            self._pinned_ids.add(id)
        self._groups = None

    def _replay(self, journal: Iterable[Applied]) -> list[Applied]:
        """Do journaled edits again, as far as they may happen here, and pin again; returns the edits that may not."""
        left_out: list[Applied] = []
        ids: dict[int, int] = {}
        for applied in journal:
            edit = renamed(applied.edit, ids)
            again = None if edit is None else self._repeated(edit, applied.by)
            if again is None:
                left_out.append(applied)
                continue
            ids.update(zip(inserted(applied), inserted(again), strict=False))
            self._journal.append(attrs.evolve(again, turn=min(applied.turn, again.turn)))
        pinned = {ids.get(id, id) for id in self._pinned_ids if id >= 0 or id in ids}
        self._pinned_ids.clear()
        self.pin(sorted(pinned.intersection(self._projection.by_id)))
        self._changed()
        return left_out

    def _repeated(self, edit: Edit, by: str) -> Applied | None:
        """The edit done again, if it may happen here."""
        if isinstance(edit, Restore):
            records = [self._projection.by_id.get(id) for id in edit.groups]
            if any(record is None or not record.excluded for record in records):
                return None
            return perform(self._projection, edit, self.measure, by)
        done = self._attempt(edit, by)
        return done if isinstance(done, Applied) else None

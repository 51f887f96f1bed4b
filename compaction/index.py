"""The index: a conversation read once into groups, with running metrics and a journal of edits.

It answers what triggers and selectors ask in O(1), applies edits and undoes them exactly, refuses what would break the
conversation, and projects what is left as a list of the caller's own objects. The caller's list and messages are never changed.

    >>> index = MessageIndex([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}], counter="chars/4")
    >>> index.included.groups, index.included.turns
    (2, 1)
    >>> from compaction.edits import Drop
    >>> index.apply(Drop([1], reason="an example"))
    False
    >>> index.refused[0].rule
    'the newest group stays'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from . import state, sync
from .context import RunContext
from .editing import EditedIndex
from .edits import Drop, Restore, brief, named
from .errors import InputError, StateError
from .fingerprints import Fingerprints
from .formats import MessageFormat, fits, resolve
from .groups import GroupRecord
from .journal import Applied, perform
from .messages import Message
from .tokens import TokenCounter
from .tokens import counter as resolve_counter

__all__ = ["MessageIndex"]

_Fresh: TypeAlias = tuple[Message, tuple[int, int], bool]
"""A message that is not yet added, its tokens and bytes, and whether its group is to be pinned."""


class MessageIndex(EditedIndex):
    """A conversation as groups. Holds state: the groups, the metrics and the journal.

    Appending costs O(new messages), metrics O(1), an edit O(the groups it names), a projection O(messages) once after a change.
    The caller's objects are kept, not copied.

    Args:
        messages: The conversation so far, oldest first.
        counter: A token counter, or the name of one; see `compaction.tokens.counter`.
        format: The wire format, or its name; ``None`` to look, see `compaction.formats.resolve`.
        context: What else a strategy may know; replace it at any time.
        pin: Says of a message whether its group must be kept as it is.

    Raises:
        InputError: If ``messages`` is no list of messages.
    """

    def __init__(
        self,
        messages: Iterable[Any] = (),
        *,
        counter: TokenCounter | str = "auto",
        format: MessageFormat | str | None = None,
        context: RunContext | None = None,
        pin: Callable[[Message], bool] | None = None,
    ) -> None:
        given = sync.as_list(messages)
        self.format = resolve(format, given)
        self._looks = format is None
        self._pin = pin
        self._saved: state.Saved | None = None
        self._fingerprints = Fingerprints()
        super().__init__(resolve_counter(counter), context)
        self._extend(self._measured(given, 0))

    # ---------------------------------------------------------------- growing

    def append(self, messages: Iterable[Any]) -> None:
        """Add messages at the end; O(new). If one of them cannot be read, none is added.

        A result that answers a call whose group was taken out brings that group back, by a journaled `Restore`.

        Raises:
            InputError: If ``messages`` is no list, or one of them cannot be read.
        """
        if self._saved is not None:
            raise StateError("append: this index was saved without its messages; pass the full list to sync first")
        given = sync.as_list(messages)
        if self._looks and not fits(given, self.format):
            self._turn_to(resolve(None, [*self._projection.source, *given]))
        self._extend(self._measured(given, len(self._projection.source)))

    def _turn_to(self, format: MessageFormat) -> None:
        """Read everything anew in a format that shows only now."""
        known = self._judged([format.read(raw, place) for place, raw in enumerate(self._projection.source)])
        journal = state.in_format(self._journal, self.format, format)
        self.format = format
        self._start()
        self._extend(known)
        self._replay(journal)

    def _measured(self, raws: Sequence[Any], start: int) -> list[_Fresh]:
        """Messages read and measured, not yet added; ``start`` is the place of the first, for errors."""
        read = self.format.read
        return self._judged([read(raw, start + place) for place, raw in enumerate(raws)])

    def _judged(self, messages: Sequence[Message]) -> list[_Fresh]:
        """All that is asked of others about messages, so that nothing can fail once they are being added."""
        measure, pin = self.measure, self._pin
        return [(message, measure(message), pin is not None and pin(message)) for message in messages]

    def _extend(self, sized: Sequence[_Fresh]) -> None:
        if not sized:
            return
        self._note_time()
        self._groups = None
        self._refusals.changed()
        projection, view = self._projection, self._view
        for message, (tokens, size), pinned in sized:
            record = projection.append(message.raw, message, tokens, size)
            if view is not None:
                view.append(message.raw)
            if pinned:
                record.pinned = True
            if record.excluded:
                self._restore(record)
                self._view = view = None

    def _restore(self, record: GroupRecord) -> None:
        """Bring back a group that a late result came for; a line that stood for it alone goes."""
        late = Restore((record.id,), reason="a late result came for its call")
        self._journal.append(perform(self._projection, late, self.measure))
        line = self._projection.line_for(record)
        if line is not None:
            gone = perform(self._projection, Drop((line.id,), reason="the call it stood for came back"), self.measure)
            self._journal.append(attrs.evolve(gone, turn=self._journal[-2].turn))

    # ---------------------------------------------------------------- following

    def sync(self, messages: Iterable[Any], *, verify: bool = False) -> None:
        """Follow the full list a framework passes on each call: append what is new, take back what is gone.

        The list may be the source or the last view fed back, the same objects or rebuilt ones. Where it departs from both, the
        source is cut there; edits that touch what was cut are undone, the others stay. O(list) comparisons, by identity first.

        Args:
            messages: Everything, oldest first.
            verify: Whether to compare contents of the same objects too, and so notice a message changed in place; O(contents).

        Raises:
            InputError: If ``messages`` is no list, or one of them cannot be read.
        """
        given = sync.as_list(messages)
        if self._saved is not None:
            self.format = resolve(None, given) if self._looks else self.format
            self._bind(self._saved.in_format(self.format), given)
            return
        view = self.messages() if self._journal else None
        departure = sync.follow(self._projection, view, given, self.format, verify=verify)
        if self._looks and not fits(given[departure.matched :], self.format) and (other := resolve(None, given)) != self.format:
            self._turn_to(other)
            view = self.messages() if self._journal else None
            departure = sync.follow(self._projection, view, given, other, verify=verify)
        fresh = self._measured(given[departure.matched :], departure.matched)
        if departure.cut is None:
            self._extend(fresh)
            return
        late = self._cut(departure.cut, fresh)
        if departure.fed_back and not late and self.messages() != given:
            anew = self._measured(given, 0)
            self._start()
            self._pinned_ids.clear()
            self._extend(anew)

    def _cut(self, length: int, fresh: Sequence[_Fresh]) -> bool:
        """Forget the source from this ordinal on and go on with other messages; edits that touch what is gone are undone.

        Returns:
            Whether one of the other messages belongs to a group from before.
        """
        old, journal = self._projection, self._journal
        touched = {id for id, record in old.by_id.items() if any(at >= length for at in old.stands_for(record))}
        known = self._judged(old.read[:length])
        self._start()
        return self._regrow([*known, *fresh], length, [each for each in journal if touched.isdisjoint(named(each.edit))])

    def _regrow(self, sized: Sequence[_Fresh], length: int, journal: Iterable[Applied]) -> bool:
        """Take these messages and do again what names none of them from ``length`` on; whether those reach further back."""
        self._extend(sized)
        beyond = {id for id, record in self._projection.by_id.items() if record.ordinals[-1] >= length}
        self._replay([each for each in journal if beyond.isdisjoint(named(each.edit))])
        return any(id < length for id in beyond)

    # ---------------------------------------------------------------- storing

    def to_dict(self, *, messages: bool = True) -> dict[str, Any]:
        """The index as JSON-ready data. O(messages and edits), and O(contents) of what is stored or not yet fingerprinted.

        Args:
            messages: Whether to hold the messages; if not, only their fingerprints, and the index that `from_dict` makes is
                empty until the first `sync` brings them.

        Raises:
            StateError: If messages are asked for that this index, restored without them, does not have yet.
        """
        if messages and self._saved is not None:
            raise StateError("to_dict: this index was saved without its messages; sync it first, or pass messages=False")
        source = self._projection.source
        saved = self._saved or state.Saved(
            format=self.format,
            messages=source if messages else None,
            fingerprints=() if messages else self._fingerprints.of(source, self.format),
            journal=self._journal,
            pinned=sorted(self._pinned_ids),
            looks=self._looks,
        )
        return attrs.evolve(saved, failures=self._failures, seen_at=self._seen_at).to_dict()

    @classmethod
    def from_dict(
        cls,
        data: Mapping[str, Any],
        *,
        counter: TokenCounter | str = "auto",
        context: RunContext | None = None,
        pin: Callable[[Message], bool] | None = None,
        format: MessageFormat | None = None,
    ) -> MessageIndex:
        """The index that `to_dict` described; ``format`` is needed only if it has no name here, or the saved one is a guess.

        Raises:
            StateError: If the data is corrupt or from a newer version.
        """
        saved = state.Saved.read(data, format)
        index = cls(counter=counter, format=saved.format, context=context)
        index._looks, index._seen_at = saved.looks, saved.seen_at
        index._failures.update(saved.failures)
        index._pinned_ids.update(saved.pinned)
        if saved.messages is None:
            index._saved = saved
        else:
            index._take(saved, saved.messages)
        index._pin = pin
        index._pin_by_predicate()
        return index

    def _take(self, saved: state.Saved, messages: Sequence[Any]) -> None:
        """Take what was saved whole: all of it has to fit."""
        try:
            self.append(messages)
        except InputError as error:
            raise StateError(f"saved {error}") from error
        if left_out := self._replay(saved.journal):
            unfit = brief(left_out[0].edit)
            raise StateError(f"{unfit}: this edit does not fit the saved messages; compact the conversation anew")
        if unknown := set(saved.pinned) - self._pinned_ids:
            raise StateError(f"pinned {sorted(unknown)}: the saved messages have no such groups; compact the conversation anew")

    def _bind(self, saved: state.Saved, given: list[Any]) -> None:
        """Take the messages that a state without messages was saved of, as far as they are the same."""
        matched = saved.matching(given, self.format)
        sized = self._measured(given, 0)
        self._saved = None
        if matched < len(saved.fingerprints):
            self._regrow(sized, matched, saved.journal)
            return
        self._extend(sized[:matched])
        self._replay(saved.journal)
        self._extend(sized[matched:])

    def _pin_by_predicate(self) -> None:
        """Pin what ``pin=`` names, after edits that were made without it were done again."""
        read, wanted = self._projection.read, self._pin
        if wanted is None:
            return
        for record in self._projection.by_id.values():
            if any(wanted(read[ordinal]) for ordinal in record.ordinals):
                record.pinned, record.snapshot = True, None

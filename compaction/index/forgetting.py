"""Forgetting: remove messages for good, with every edit that may contain something of them.

Whether an edit contains something of a message is decided by its lineage: what it names, and what was read to write it. An edit
goes if it names the message's group or read it, or if it did so with what another edit that goes has written.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import attrs

from ..formats import MessageFormat
from .alignment import NEVER, known_messages
from .columns import Columns
from .edits import Applied, Replace, Restore, Rewrite, flat, named, summary_digests, written
from .following import FollowedList
from .keys import known_key, message_key
from .marks import Marks
from .state import Saved


@attrs.frozen(eq=False)
class Forgotten:
    """The messages and edits to remove, and the edits to keep."""

    found: Collection[int]  # the places of the messages to forget
    ordinals: Sequence[int]  # those, and the places of the messages removed with them, in order
    kept: Sequence[Applied]
    undone: Sequence[Applied]  # the edits that used the messages

    def __bool__(self) -> bool:
        return bool(self.ordinals or self.undone)

    def followed(self, source: Sequence[Any]) -> FollowedList:
        """Return the source without the removed messages, as if a host's list lacked them."""
        gone = set(self.ordinals)
        left = [ordinal for ordinal in range(len(source)) if ordinal not in gone]
        return FollowedList.of([source[ordinal] for ordinal in left], left)

    def marks(self, marks: Marks) -> Marks:
        """Return the marks without the undone summaries; they still end at the same message."""
        until = None if marks.until is None else _moved(marks.until, self.ordinals)
        return attrs.evolve(marks, until=until, own=marks.own - summary_digests(applied.edit for applied in self.undone))


def forgotten(columns: Columns, given: Sequence[Any]) -> Forgotten:
    """Return the messages and edits to remove in order to forget these messages. O(contents).

    A group of which only a part is forgotten is removed whole if the rest would break more rules of the format.
    """
    format, keys, (known, _) = columns.format, _keys(given, columns.format), known_messages(columns)
    found = {each.ordinal for each in known if each.group >= 0 and known_key(each.raw, format) in keys}
    source, groups = columns.source, {columns.grouping.group_of[ordinal] for ordinal in found}
    kept, undone = _judged(
        columns.journal, format, keys, named_groups=groups, read_groups=groups, start=min(found, default=NEVER)
    )
    whole = {ordinal for group in groups for ordinal in columns.ordinals(group)}
    goes = whole if whole != found and _breaks(source, found, format) > _breaks(source, whole, format) else found
    return Forgotten(found, sorted(goes), kept, undone)


def saved_without(saved: Saved, given: Sequence[Any]) -> tuple[Saved, int, list[Applied]]:
    """Return a state of fingerprints without these messages, their number, and the edits that go with them. O(state).

    The state does not tell which messages form a group, so every edit goes that was decided after the first of them was read.
    The others name only earlier groups, whose ids stay.
    """
    keys = _keys(given, saved.format)
    gone = [ordinal for ordinal, each in enumerate(saved.fingerprints) if each in keys]
    start = min(gone, default=NEVER)
    restores = [each.edit for each in saved.journal if isinstance(each.edit, Restore) and _seen(each) > start]
    restored = {id for edit in restores for id in edit.groups}  # without the restore, its group must not be hidden
    kept, undone = _judged(saved.journal, saved.format, keys, named_groups=restored, read_groups=(), start=start, until=start)
    if not gone and not undone:
        return saved, 0, []
    lost = {*gone, *(id for applied in undone for id in applied.inserted_ids)}
    left = attrs.evolve(
        saved,
        fingerprints=[each for each in saved.fingerprints if each not in keys],
        journal=kept,
        pinned=[_moved(id, gone) for id in saved.pinned if id not in lost],
        believed_until=None if saved.believed_until is None else _moved(saved.believed_until, gone),
        own=saved.own - summary_digests(applied.edit for applied in undone),
    )
    return left, len(gone), undone


def _judged(
    journal: Iterable[Applied],
    format: MessageFormat,
    keys: Collection[str],
    *,
    named_groups: Iterable[int],
    read_groups: Iterable[int],
    start: int,
    until: int = NEVER,
) -> tuple[list[Applied], list[Applied]]:
    """Return the edits that stay and those that go, in order.

    An edit goes if it names one of ``named_groups``, was written from one of ``read_groups``, or wrote a message with one of
    the keys. A summary that may have been written from any message goes if it was decided after the message at ``start`` was
    read; any edit, if it was decided when more than ``until`` messages had been read.
    """
    read, gone = set(read_groups), set(named_groups)
    kept: list[Applied] = []
    undone: list[Applied] = []

    def has_read(applied: Applied) -> bool:
        """Whether a message was read to write this edit or a part of it."""
        for each in flat([applied]):
            edit = each.edit
            if isinstance(edit, Replace) and edit.read is None and start < _seen(applied):
                return True
            if isinstance(edit, Replace | Rewrite) and not read.isdisjoint(edit.read or ()):
                return True
        return not applied.lost.isdisjoint(keys)

    for applied in journal:
        wrote = any(known_key(message.raw, format) in keys for message in written(applied.edit))
        if _seen(applied) > until or wrote or not gone.isdisjoint(named(applied.edit)) or has_read(applied):
            undone.append(applied)
            gone.update(applied.inserted_ids)
            read.update(applied.inserted_ids, [each.edit.group for each in flat([applied]) if isinstance(each.edit, Rewrite)])
        else:
            kept.append(applied)
    return kept, undone


def _keys(given: Sequence[Any], format: MessageFormat) -> frozenset[str]:
    """Return the keys of messages; raise an `InputError` for one that cannot be compared."""
    return frozenset(message_key(raw, format, place) for place, raw in enumerate(given))


def _breaks(source: Sequence[Any], gone: Collection[int], format: MessageFormat) -> int:
    return len(format.validate([raw for ordinal, raw in enumerate(source) if ordinal not in gone]))


def _seen(applied: Applied) -> int:
    return NEVER if applied.seen is None else applied.seen


def _moved(place: int, gone: Sequence[int]) -> int:
    """Return a place, or a group's id, as it is after the messages at the places ``gone``, in order, were removed."""
    return place - bisect_left(gone, place) if place > 0 else place

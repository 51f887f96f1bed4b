"""Forgetting: remove messages for good, with every edit that may contain something of them.

Whether an edit contains something of a message is decided by its lineage: what it names, and what was read to write it. An edit
goes if it names the message's group or read it, or if it did so with what another edit that goes has written.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any

import attrs

from ..formats import MessageFormat
from .alignment import NEVER, known_messages
from .columns import Columns
from .edits import Applied, Edit, Replace, Restore, Rewrite, named, simple_edits, summary_digests, written
from .identity import FollowedList
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

    def followed(self, columns: Columns) -> FollowedList:
        """Return the source without the removed messages, as if a host's list lacked them."""
        gone = set(self.ordinals)
        left = [ordinal for ordinal in range(len(columns.source)) if ordinal not in gone]
        return FollowedList.of(columns, [columns.source[ordinal] for ordinal in left], left)

    def marks(self, marks: Marks) -> Marks:
        """Return the marks without the undone summaries; they still end at the same message."""
        until = None if marks.until is None else _moved(marks.until, self.ordinals)
        return attrs.evolve(marks, until=until, own=marks.own - summary_digests(applied.edit for applied in self.undone))


def forgotten(columns: Columns, given: Sequence[Any]) -> Forgotten:
    """Return the messages and edits to remove in order to forget these messages. O(contents).

    A group of which only a part is forgotten is removed whole if the rest would break more rules of the format.
    """
    format, keys, known = columns.format, _keys(given, columns.format), known_messages(columns)
    found = {each.ordinal for each in known if each.group >= 0 and known_key(each.raw, format) in keys}
    groups = {columns.grouping.group_of[ordinal] for ordinal in found}
    start = min(found, default=NEVER)
    kept, undone = judged(columns.journal, format, keys, named_groups=groups, read_groups=groups, start=start)
    return Forgotten(found, sorted(_with_rests(columns, found, groups)), kept, undone)


def _with_rests(columns: Columns, found: set[int], groups: Iterable[int]) -> set[int]:
    """Return the ordinals of messages to forget, and the rest of each group that would break more rules without them."""
    source, format, own = columns.source, columns.format, {id: columns.ordinals(id) for id in groups}
    whole = set(chain.from_iterable(own.values()))
    if whole == found or _breaks(source, found, format) <= _breaks(source, whole, format):
        return found
    edge = format.new("user", "-").raw  # a group is judged between two of these
    goes = found.copy()
    for ordinals in own.values():
        alone = [edge, *(source[each] for each in ordinals), edge]
        rest = [edge, *(source[each] for each in ordinals if each not in found), edge]
        if len(format.validate(rest)) > len(format.validate(alone)):
            goes.update(ordinals)
    return goes if _breaks(source, goes, format) <= _breaks(source, whole, format) else whole


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
    kept, undone = judged(saved.journal, saved.format, keys, named_groups=restored, start=start, until=start)
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


def judged(
    journal: Iterable[Applied],
    format: MessageFormat,
    keys: Collection[str],
    *,
    named_groups: Collection[int],
    read_groups: Collection[int] = (),
    start: int,
    until: int = NEVER,
) -> tuple[list[Applied], list[Applied]]:
    """Return the edits that stay and those that go, in order.

    An edit goes if it has written or lost one of the messages with these ``keys``; if it names one of ``named_groups``; if it
    was written from one of ``read_groups``, or from unknown sources after the message at ``start`` had been read; or if it was
    decided when more than ``until`` messages had been read. What it has written counts as one of these groups, too.
    """
    never_named, never_read = set(named_groups), set(read_groups)
    kept: list[Applied] = []
    undone: list[Applied] = []
    for applied in journal:
        parts, seen = simple_edits(applied.edit), _seen(applied)
        contains = any(known_key(message.raw, format) in keys for message in written(applied.edit))
        lost_some = not applied.lost.isdisjoint(keys)
        names_some = not never_named.isdisjoint(named(applied.edit))
        has_read = any(_has_read(part, never_read, sources_known=seen <= start) for part in parts)
        if contains or lost_some or names_some or has_read or seen > until:
            undone.append(applied)
            never_named.update(applied.inserted_ids)
            never_read.update(applied.inserted_ids, [part.group for part in parts if isinstance(part, Rewrite)])
        else:
            kept.append(applied)
    return kept, undone


def _has_read(edit: Edit, groups: AbstractSet[int], *, sources_known: bool) -> bool:
    """Whether one of these groups was read to write an edit, or may have been."""
    if not isinstance(edit, Replace | Rewrite):
        return False
    return not sources_known if edit.read is None else not groups.isdisjoint(edit.read)


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

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
    groups = {columns.grouping.group_of[ordinal] for ordinal in found}
    lineage = _Lineage(named_groups=groups, read_groups=groups, start=min(found, default=NEVER))
    kept, undone = lineage.judged(columns.journal, format, keys)
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
    kept, undone = _Lineage(named_groups=restored, start=start, until=start).judged(saved.journal, saved.format, keys)
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


@attrs.frozen(eq=False, kw_only=True)
class _Lineage:
    """Which edits go: for any of these four reasons, or because they contain or have lost one of the messages, see `judged`."""

    named_groups: Collection[int]  # it names one of these groups
    read_groups: Collection[int] = ()  # it was written from one of these groups
    start: int  # it replaced groups from unknown sources after the message at this ordinal had been read
    until: int = NEVER  # it was decided when more messages than these had been read

    def judged(
        self, journal: Iterable[Applied], format: MessageFormat, keys: Collection[str]
    ) -> tuple[list[Applied], list[Applied]]:
        """Return the edits that stay and those that go, in order; ``keys`` are those of the messages.

        What an edit that goes has written counts as one of these groups, too.
        """
        never_named, never_read = set(self.named_groups), set(self.read_groups)
        kept: list[Applied] = []
        undone: list[Applied] = []
        for applied in journal:
            contains = any(known_key(message.raw, format) in keys for message in written(applied.edit))
            lost_some = not applied.lost.isdisjoint(keys)
            names_some = not never_named.isdisjoint(named(applied.edit))
            if contains or lost_some or names_some or _seen(applied) > self.until or self._has_read(applied, never_read):
                undone.append(applied)
                never_named.update(applied.inserted_ids)
                rewritten = [each.edit.group for each in flat([applied]) if isinstance(each.edit, Rewrite)]
                never_read.update(applied.inserted_ids, rewritten)
            else:
                kept.append(applied)
        return kept, undone

    def _has_read(self, applied: Applied, groups: AbstractSet[int]) -> bool:
        """Whether one of these groups was read to write this edit or a part of it."""
        for each in flat([applied]):
            edit = each.edit
            if isinstance(edit, Replace) and edit.read is None and self.start < _seen(applied):
                return True
            if isinstance(edit, Replace | Rewrite) and not groups.isdisjoint(edit.read or ()):
                return True
        return False


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

"""Forgetting: remove messages for good, with every edit that may contain something of them.

Whether an edit contains something of a message is decided by its lineage: what it names, and what was read to write it. An edit
goes if it names the message's group or read it, or if it did so with what another edit that goes has written.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import Any

import attrs

from ..formats import MessageFormat
from .alignment import NEVER, known_messages
from .columns import Columns
from .edits import Applied, Replace, Restore, Rewrite, named, simple_edits, summary_digests, written
from .identity import FollowedList
from .keys import known_key, message_key
from .marks import Marks
from .state import Saved


@attrs.frozen(eq=False)
class Forgotten:
    """The messages and edits to remove, and the edits to keep."""

    found: Collection[int]  # the ordinals of the messages to forget
    ordinals: Sequence[int]  # those, and the ordinals of the messages removed with them, in order
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
    kept, undone = _judged(columns.journal, format, keys, named_groups=groups, read_groups=groups, start=start)
    return Forgotten(found, sorted(_with_rests(columns, found, groups)), kept, undone)


def _with_rests(columns: Columns, found: set[int], groups: Iterable[int]) -> set[int]:
    """Return the ordinals of messages to forget, and the rest of each group that would break more rules without them.

    For example, of a call and its two results, the first result is to be forgotten. Between two messages of the user, the call
    and the second result break a rule that the whole group does not, so the whole group goes. If the list without these groups
    still breaks more rules than without all groups that have such a message, then all of these go.
    """
    source, format, own = columns.source, columns.format, {id: columns.ordinals(id) for id in groups}
    whole = set(chain.from_iterable(own.values()))
    if whole == found:
        return found
    allowed = _breaks(source, whole, format)
    if _breaks(source, found, format) <= allowed:
        return found
    edge = format.new("user", "-").raw  # a group is judged between two of these
    with_broken_rests = found.copy()
    for ordinals in own.values():
        alone = [edge, *(source[each] for each in ordinals), edge]
        rest = [edge, *(source[each] for each in ordinals if each not in found), edge]
        if len(format.validate(rest)) > len(format.validate(alone)):
            with_broken_rests.update(ordinals)
    return with_broken_rests if _breaks(source, with_broken_rests, format) <= allowed else whole


def saved_without(saved: Saved, given: Sequence[Any]) -> tuple[Saved, int, list[Applied]]:
    """Return a state of fingerprints without these messages, their number, and the edits that go with them. O(state).

    The state does not tell which messages form a group, so every edit goes that was decided after the first of them was read.
    The others name only earlier groups, whose ids stay.
    """
    keys = _keys(given, saved.format)
    gone = [ordinal for ordinal, each in enumerate(saved.fingerprints) if each in keys]
    start = min(gone, default=NEVER)
    late = [each.edit for each in saved.journal if _is_late(each, start)]
    restored = {id for edit in late if isinstance(edit, Restore) for id in edit.groups}  # these must not be hidden again
    kept, undone = _judged(saved.journal, saved.format, keys, named_groups=restored, start=start, late_edits_go=True)
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
    named_groups: Collection[int],
    read_groups: Collection[int] = (),
    start: int,
    late_edits_go: bool = False,
) -> tuple[list[Applied], list[Applied]]:
    """Return the edits that stay and those that go, in order.

    An edit goes for any of these reasons:

    - It has written or lost one of the messages with these ``keys``.
    - It names one of ``named_groups``, or a group that an edit that goes has inserted.
    - It read one of ``read_groups``, or a group that an edit that goes has inserted or rewritten.
    - It is late, and it is not known what it read, or ``late_edits_go``.
    """
    tainted_names, tainted_sources = set(named_groups), set(read_groups)
    kept: list[Applied] = []
    undone: list[Applied] = []
    for applied in journal:
        parts = simple_edits(applied.edit)
        reads = [part.read for part in parts if isinstance(part, Replace | Rewrite)]
        if (
            any(known_key(message.raw, format) in keys for message in written(applied.edit))
            or not applied.lost.isdisjoint(keys)
            or not tainted_names.isdisjoint(named(applied.edit))
            or any(read is not None and not tainted_sources.isdisjoint(read) for read in reads)
            or (_is_late(applied, start) and (late_edits_go or None in reads))
        ):
            undone.append(applied)
            tainted_names.update(applied.inserted_ids)
            tainted_sources.update(applied.inserted_ids, [part.group for part in parts if isinstance(part, Rewrite)])
        else:
            kept.append(applied)
    return kept, undone


def _is_late(applied: Applied, start: int) -> bool:
    """Whether an edit was decided after the message at ``start``, the first to forget, had arrived."""
    return (NEVER if applied.seen is None else applied.seen) > start


def _keys(given: Sequence[Any], format: MessageFormat) -> frozenset[str]:
    """Return the keys of messages; raise an `InputError` for one that cannot be compared."""
    return frozenset(message_key(raw, format, place) for place, raw in enumerate(given))


def _breaks(source: Sequence[Any], gone: Collection[int], format: MessageFormat) -> int:
    return len(format.validate([raw for ordinal, raw in enumerate(source) if ordinal not in gone]))


def _moved(ordinal: int, gone: Sequence[int]) -> int:
    """Return an ordinal, or a group's id, as it is after the messages with the ordinals ``gone``, in order, were removed."""
    return ordinal - bisect_left(gone, ordinal) if ordinal > 0 else ordinal

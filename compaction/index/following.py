"""Following: the source of a conversation after a host's list, what the host changed, and which edits stay.

`Merger` merges the list, in which `alignment` recognized messages, with the messages that only the source has. It changes
nothing: `MessageIndex.sync` builds the conversation again from the `FollowedList`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, takewhile
from typing import Any, NamedTuple, cast

import attrs

from ..formats import MessageFormat
from .alignment import Known
from .columns import Columns
from .edits import Applied, Drop, Edit, Replace, Rewrite, Together
from .keys import known_key


@attrs.frozen(kw_only=True)
class HostChanges:
    """A host's changes to known messages, as ordinals in the source before the change.

    Args:
        altered: Messages whose content changed.
        removed: Shown messages that are missing, though later ones are in the list.
        rewound: Messages missing at the end: the host returned to an earlier point.
        added: The number of messages before a known one that are new or were not recognized.
    """

    altered: tuple[int, ...] = ()
    removed: tuple[int, ...] = ()
    rewound: tuple[int, ...] = ()
    added: int = 0

    def __bool__(self) -> bool:
        return bool(self.altered or self.removed or self.rewound or self.added)


class SourceEntry(NamedTuple):
    """A message of the source after a host's list was followed."""

    raw: Any
    ordinal: int | None  # its ordinal before; ``None`` for a new message
    place: int | None  # its place in the host's list; ``None`` if it is not in the list


@attrs.define(eq=False)
class FollowedList:
    """The source of a conversation after a host's list was followed; ids and ordinals are those before, unless called new."""

    entries: list[SourceEntry]  # the messages up to the last known one; their positions are the new ordinals
    altered: set[int] = attrs.Factory(set[int])  # the ordinals of the messages that changed
    # the messages of summaries that the host changed, by the summary's id
    summaries: dict[int, list[Any]] = attrs.Factory(dict[int, list[Any]])
    covered: int = 0  # the number of messages of the list that are in ``entries``; the rest is new
    changes: HostChanges = attrs.Factory(HostChanges)
    shown: frozenset[int] = frozenset()  # the ids of the summaries that the list contains

    @classmethod
    def of(cls, given: Iterable[Any], ordinals: Iterable[int | None], altered: Iterable[int] = ()) -> FollowedList:
        """Return a followed list in which each message has one of these ordinals; the shorter decides."""
        entries = [SourceEntry(raw, ordinal, place) for place, (raw, ordinal) in enumerate(zip(given, ordinals, strict=False))]
        return cls(entries, set(altered), covered=len(entries))

    @property
    def raws(self) -> list[Any]:
        """The messages of ``entries``."""
        return [entry.raw for entry in self.entries]

    def carried_over(self, journal: Iterable[Applied], before: EarlierSource | SavedSource, now: Columns) -> CarriedEdits:
        """Return which edits can be repeated on the new source.

        Args:
            journal: The edits.
            before: The source before.
            now: The new columns, without edits: the messages of ``entries``, and perhaps later ones.
        """
        new_ids = before.new_ids(self, now)
        changed = before.changed_groups(self, now, new_ids)
        undone: list[Edit] = []
        kept = [left for applied in journal if (left := self._carried(applied, changed, now.format, undone)) is not None]
        if any(each.writes for each in kept):
            there = {entry.ordinal for entry in self.entries if entry.ordinal not in self.altered}
            lost = before.missing(there, now.format)
            kept = [each.without(lost) if each.writes else each for each in kept]
        stays = (entry.ordinal == place and entry.ordinal not in self.altered for place, entry in enumerate(self.entries))
        unmoved = sum(takewhile(bool, stays))  # the number of messages before the first one that changed
        kept = [each if (each.seen or 0) <= unmoved else attrs.evolve(each, seen=None) for each in kept]
        return CarriedEdits(new_ids, kept, undone)

    def _carried(self, applied: Applied, changed: Collection[int], format: MessageFormat, undone: list[Edit]) -> Applied | None:
        """Return an edit as it is after the host's changes; add a rewrite of a changed group to ``undone``."""
        edit = applied.edit
        if isinstance(edit, Rewrite) and edit.group in changed:
            undone.append(edit)
            return None
        if isinstance(edit, Replace) and (messages := self.summaries.get(applied.made or 0)):
            edit = attrs.evolve(edit, messages=[format.read(raw) for raw in messages])
            return attrs.evolve(applied, edit=edit, seen=None)
        if not isinstance(edit, Together):
            return applied
        parts = [left for part in applied.parts if (left := self._carried(part, changed, format, undone)) is not None]
        whole = Together(*[cast("Drop", part.edit) for part in parts], reason=edit.reason)
        seen = applied.seen if len(parts) == len(applied.parts) else None
        return attrs.evolve(applied, edit=whole, parts=tuple(parts), seen=seen) if parts else None


@attrs.frozen(eq=False)
class CarriedEdits:
    """The edits that can be repeated on the new source, and those that cannot."""

    new_ids: dict[int, int]  # the new id of each source group that an edit may name
    journal: list[Applied]  # the edits, each with the keys of the messages that it lost
    undone: list[Edit]  # the rewrites of groups of which a message changed


@attrs.frozen(eq=False)
class EarlierSource:
    """The source before the host's list was followed, with its groups."""

    columns: Columns

    def missing(self, there: Collection[int | None], format: MessageFormat) -> list[tuple[int, str]]:
        """Return the ordinals and keys of the messages that are not ``there``."""
        source = enumerate(self.columns.source)
        return [(ordinal, known_key(raw, format)) for ordinal, raw in source if ordinal not in there]

    def new_ids(self, followed: FollowedList, now: Columns) -> dict[int, int]:
        """Return the new id of each group that is unchanged, or was only joined by new results."""
        entries, before = followed.entries, self.columns
        here = {entry.ordinal: place for place, entry in enumerate(entries) if entry.ordinal is not None}
        found: dict[int, int] = {}
        for id in before.grouping.ids:
            places = [here[ordinal] for ordinal in before.ordinals(id) if ordinal in here]
            if not places or len(places) < len(before.ordinals(id)):
                continue
            group = now.grouping.group_of[places[0]]
            if places == [place for place in now.ordinals(group) if place < len(entries)]:
                found[id] = group
        return found

    def changed_groups(self, followed: FollowedList, now: Columns, new_ids: Mapping[int, int]) -> set[int]:
        """Return the ids before of the groups of which a message changed."""
        return {self.columns.grouping.group_of[ordinal] for ordinal in followed.altered}


@attrs.frozen(eq=False)
class SavedSource:
    """The source before, of which only the keys of its messages were stored. The id of a group is its first ordinal."""

    keys: Sequence[str]

    def missing(self, there: Collection[int | None], format: MessageFormat) -> list[tuple[int, str]]:
        """Return the ordinals and keys of the messages that are not ``there``."""
        return [(ordinal, key) for ordinal, key in enumerate(self.keys) if ordinal not in there]

    def new_ids(self, followed: FollowedList, now: Columns) -> dict[int, int]:
        """Return the new id of each group whose messages are all there, altered or not."""
        entries, found = followed.entries, dict[int, int]()
        for place, (_, ordinal, _) in enumerate(entries):
            if ordinal is None or now.grouping.group_of[place] != place:
                continue
            if all(entries[each].ordinal is not None for each in now.ordinals(place) if each < len(entries)):
                found[ordinal] = place
        return found

    def changed_groups(self, followed: FollowedList, now: Columns, new_ids: Mapping[int, int]) -> set[int]:
        """Return the ids before of the groups of which a message changed."""
        new_places = {place for place, entry in enumerate(followed.entries) if entry.ordinal in followed.altered}
        return {id for id, group in new_ids.items() if not new_places.isdisjoint(now.ordinals(group))}


@attrs.define(eq=False)
class Merger:
    """Merges a host's list with the messages that only the source has. Holds state: the messages placed so far."""

    columns: Columns
    given: Sequence[Any]
    found: Sequence[Known | None]  # for each message of the list, the known one that it is
    altered: AbstractSet[int]  # the places in the list of those that changed
    partial: Collection[int]  # the groups of which the list has only a part, as new messages
    _entries: list[SourceEntry] = attrs.Factory(list[SourceEntry])
    _removed: list[int] = attrs.Factory(list[int])
    _early: set[int] = attrs.Factory(set[int])  # ordinals that were placed with the first message of their group
    _next: int = 0  # the first ordinal that is not placed yet

    def merged(self) -> FollowedList:
        """Return the source after the list."""
        given, source, altered = self.given, self.columns.source, set[int]()
        stood_for = {place: self._stood_for(known) for place, known in enumerate(self.found) if known is not None}
        covered = max(stood_for, default=-1) + 1
        end = max(map(max, stood_for.values()), default=-1) + 1
        summaries: dict[int, list[int]] = defaultdict(list)  # the places of their messages
        new: list[SourceEntry] = []
        for place, known in enumerate(self.found[:covered]):
            if known is None:
                new.append(SourceEntry(given[place], None, place))
                continue
            first = min(stood_for[place])
            self._place_source(first, end)
            self._entries += new
            new.clear()
            if known.group < 0:
                summaries[known.group].append(place)
                continue
            is_altered = place in self.altered
            self._entries.append(SourceEntry(given[place] if is_altered else source[first], first, place))
            self._next = first + 1
            altered.update([first] if is_altered else [])
        self._place_source(end, end)
        changes = HostChanges(
            altered=tuple(sorted(altered)),
            removed=tuple(self._removed),
            rewound=tuple(range(end, len(source))),
            added=sum(entry.ordinal is None for entry in self._entries),
        )
        edited = {
            id: [given[place] for place in places] for id, places in summaries.items() if not self.altered.isdisjoint(places)
        }
        return FollowedList(self._entries, altered, edited, covered, changes, frozenset(summaries))

    def _stood_for(self, known: Known) -> Sequence[int]:
        """Return the ordinal of a known message, or the ordinals of the messages that its summary replaces."""
        if known.group >= 0:
            return (known.ordinal,)
        return list(chain.from_iterable(self.columns.stands_for([known.group])))

    def _place_source(self, stop: int, end: int) -> None:
        """Place the hidden messages up to an ordinal; shown messages that the list does not have were removed.

        A group with a message at or after ``end`` was rewound and is dropped whole. A hidden group of which the list has a part
        as new messages is placed whole, so that none of its results answers a call of the new group.
        """
        columns = self.columns
        for ordinal in range(self._next, stop):
            id = columns.grouping.group_of[ordinal]
            own = columns.ordinals(id)
            if own[-1] >= end or ordinal in self._early:
                continue
            if id in self.partial and not columns.is_included(id):
                self._entries += [SourceEntry(columns.source[each], each, None) for each in own]
                self._early.update(own)
            elif not columns.is_included(id) or not columns.shows(ordinal):
                self._entries.append(SourceEntry(columns.source[ordinal], ordinal, None))
            else:
                self._removed.append(ordinal)
        self._next = max(self._next, stop)

"""Identity: which message of the host is this?

A host passes its list on each call. It may be the source, the last view or an earlier one, followed by new messages; the host
may also have altered, removed or added messages, or returned to an earlier point.

- `known_beginning` recognizes the usual case: the list begins with the whole source or the whole view.
- `follow` handles all others. It finds the known messages in the list by `alignment`, and merges it with the messages that only
  the source has. `MessageIndex.sync` then builds the conversation again from the `FollowedList`.
- `accounts_for` tells whether a list continues a conversation at all.

`same_beginning`, `follow_saved` and `accounts_for_saved` do this for a conversation of which only fingerprints are stored.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any, NamedTuple, cast

import attrs

from ..formats import MessageFormat
from ..messages import Message
from .alignment import Known, Position, align, known_messages
from .columns import Columns
from .edits import Applied, Drop, Edit, Replace, Rewrite, Together
from .keys import known_key, message_key


@attrs.frozen(kw_only=True)
class HostChanges:
    """A host's changes to known messages, as ordinals in the source before the change.

    Args:
        altered: Messages whose content changed.
        removed: Shown messages that are missing, though later ones are in the list.
        rewound: Messages missing at the end: the host returned to an earlier point.
        added: How many new or unrecognized messages stand before the last known one.
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

    before: Columns | Sequence[str]  # the columns before, or the keys of the source's messages if only these are stored
    entries: list[SourceEntry]  # the messages up to the last known one; their positions are the new ordinals
    altered: set[int] = attrs.Factory(set[int])  # the ordinals of the messages that changed
    covered: int = 0  # the number of messages of the list that are in ``entries``; the rest is new
    changes: HostChanges = attrs.Factory(HostChanges)
    summaries: Collection[int] = ()  # the ids of the summaries that the list contains
    # the messages of those that the host changed, by the summary's id
    edited: dict[int, list[Any]] = attrs.Factory(dict[int, list[Any]])

    @classmethod
    def of(
        cls, before: Columns | Sequence[str], given: Iterable[Any], ordinals: Iterable[int | None], altered: Iterable[int] = ()
    ) -> FollowedList:
        """Return a followed list in which message n has ordinal n of these; if one is longer than the other, its end is cut."""
        entries = [SourceEntry(raw, ordinal, place) for place, (raw, ordinal) in enumerate(zip(given, ordinals, strict=False))]
        return cls(before, entries, set(altered), covered=len(entries))

    @property
    def raws(self) -> list[Any]:
        """The messages of ``entries``."""
        return [entry.raw for entry in self.entries]

    def new_ids(self, now: Columns) -> dict[int, int]:
        """Return the new id of each group with the same messages as before; ``now`` are the new columns.

        New results may have joined a group at its end. A stored state does not say which messages formed a group. Then a group
        counts as the same if all its messages were there before.
        """
        ids: dict[int, int] = {}
        for new, (_, ordinal, _) in enumerate(self.entries):
            if ordinal is None or now.grouping.group_of[new] != new:
                continue
            members = [self.entries[each].ordinal for each in now.ordinals(new) if each < len(self.entries)]
            before = [*self.before.ordinals(ordinal)] if isinstance(self.before, Columns) else None
            if members == before or (before is None and None not in members):
                ids[ordinal] = new
        return ids

    def carried_over(self, journal: Sequence[Applied], now: Columns) -> tuple[list[Applied], list[Edit]]:
        """Return the edits that can be repeated on the new source, and the rewrites that cannot: of groups that changed.

        An edit that writes gets the keys of the messages that it may have been written from, and that are gone. ``seen`` counts
        messages of the old source, so an edit keeps it only if none of these changed.
        """
        changed, format = self._changed_groups(now), now.format
        kept = [left for applied in journal if (left := self._carried(applied, changed, format)) is not None]
        known = {entry.ordinal for entry in self.entries} - self.altered
        if any(each.writes for each in kept):
            if isinstance(self.before, Columns):
                lost = [(at, known_key(raw, format)) for at, raw in enumerate(self.before.source) if at not in known]
            else:
                lost = [(at, key) for at, key in enumerate(self.before) if at not in known]
            kept = [each.without(lost) if each.writes else each for each in kept]
        moved = (new for new, entry in enumerate(self.entries) if entry.ordinal != new or new not in known)
        unmoved = next(moved, len(self.entries))  # the number of messages before the first one that changed
        kept = [each if (each.seen or 0) <= unmoved else attrs.evolve(each, seen=None) for each in kept]
        edits = [part.edit for applied in journal for part in applied.simple]
        return kept, [edit for edit in edits if isinstance(edit, Rewrite) and edit.group in changed]

    def _changed_groups(self, now: Columns) -> set[int | None]:
        """Return the groups of which a message changed."""
        if isinstance(self.before, Columns):
            return {self.before.grouping.group_of[ordinal] for ordinal in self.altered}
        altered = [new for new, entry in enumerate(self.entries) if entry.ordinal in self.altered]
        return {self.entries[now.grouping.group_of[new]].ordinal for new in altered}

    def _carried(self, applied: Applied, changed: Collection[int | None], format: MessageFormat) -> Applied | None:
        """Return an edit as it is after the host's changes; ``None`` for a rewrite of a changed group."""
        edit = applied.edit
        if isinstance(edit, Rewrite) and edit.group in changed:
            return None
        if isinstance(edit, Replace) and (messages := self.edited.get(applied.made or 0)):
            edit = attrs.evolve(edit, messages=[format.read(raw) for raw in messages])
            return attrs.evolve(applied, edit=edit, seen=None)
        if not isinstance(edit, Together):
            return applied
        parts = [left for part in applied.parts if (left := self._carried(part, changed, format)) is not None]
        whole = Together(*[cast("Drop", part.edit) for part in parts], reason=edit.reason)
        seen = applied.seen if len(parts) == len(applied.parts) else None
        return attrs.evolve(applied, edit=whole, parts=tuple(parts), seen=seen) if parts else None


def has_moved_reminder(columns: Columns, given: Sequence[Any]) -> bool:
    """Whether a list differs from the source only in a reminder, which some agents move to the end of each call.

    The reminder was a system message, now the list's last, or a part or text that the newest message has lost (or gained).
    """
    source, newest, format = columns.source, len(columns.source) - 1, columns.format
    if not 0 < newest < len(given) - 1 or format.common_prefix(source, given) != newest:
        return False
    before, now = columns.read(newest), format.read(given[newest], newest)
    if before.is_system and format.common_prefix(source[newest:], given[-1:]):
        return True
    less, more = sorted([before.text, now.text], key=len)
    return is_stripped(before, now) or (before.role == now.role and less != "" and less in more)


def is_stripped(before: Message, now: Message) -> bool:
    """Whether one message has only some of the other's parts, which two conversations hardly share by chance."""
    fewer, more = sorted([before.parts, now.parts], key=len)
    return before.role == now.role and 0 < len(fewer) < len(more) and all(part in more for part in fewer)


def follow(columns: Columns, given: Sequence[Any], *, verify: bool) -> FollowedList:
    """Return how a list continues a conversation. O(messages), and O(contents) of those that are not the same objects.

    ``verify`` tells whether to compare the contents of the same objects too. A group of which only a part is in the list is not
    recognized: its messages are new.
    """
    if not verify and has_moved_reminder(columns, given):  # comparing all contents would take twice as long
        group_of = columns.grouping.group_of
        same = {ordinal: Known(Position(ordinal), group) for ordinal, group in enumerate(group_of) if group != group_of[-1]}
        return _Merge(columns, given, set(), set()).followed(same)
    format = columns.format

    def changed(each: Known, place: int) -> bool:
        if each.group < 0 or each.raw is not columns.source[each.ordinal]:
            return False
        before, now = columns.read(each.ordinal), format.read(given[place], place)
        return (before.role, before.name, before.parts) != (now.role, now.name, now.parts)

    found, altered = align(known_messages(columns), given, format, changed=changed if verify else None)
    positions: dict[int, set[Position]] = defaultdict(set)  # by group, of its messages that are in the list
    for each in found:
        if each is not None:
            positions[each.group].add(each.position)
    partial = {id for id, there in positions.items() if not _is_whole(columns, id, there)}
    whole = {place: each for place, each in enumerate(found) if each is not None and each.group not in partial}
    return _Merge(columns, given, altered, partial).followed(whole)


def _is_whole(columns: Columns, id: int, positions: AbstractSet[Position]) -> bool:
    """Whether these are all messages of a group, except those that a rewrite removed."""
    if id < 0:
        return len(positions) == len(columns.inserted[id].messages)
    return {position.ordinal for position in positions}.issuperset(columns.shown_ordinals(id))


@attrs.define(eq=False)
class _Merge:
    """Merges the host's list with the messages that only the source has. Holds state: the entries so far.

    For example, the summary S stands for b and c, and d was dropped. In the host's list, n is new, and f is missing at the end,
    so it was rewound::

        source    a  b  c  d  e  f
        list      a  S  e  n            entries    a  b  c  d  e        n is behind the last known message
        list      a  S  n  e            entries    a  b  c  d  n  e     hidden messages come before new ones in the same gap
    """

    columns: Columns
    given: Sequence[Any]
    altered: AbstractSet[int]  # the places of messages that changed
    partial: Collection[int]  # the groups of which only some messages are in the list; these count as new
    _entries: list[SourceEntry] = attrs.Factory(list[SourceEntry])
    _end: int = 0  # the ordinal after the last message that the list stands for
    _ordinal: int = 0  # the first ordinal, and the first place, of a message that has not been considered
    _place: int = 0

    def followed(self, found: dict[int, Known]) -> FollowedList:
        """Return the source after the list, which has these known messages at these places, in order."""
        columns, source = self.columns, self.columns.source
        stands_for = {
            place: [known.ordinal] if known.group >= 0 else [*chain.from_iterable(columns.stands_for([known.group]))]
            for place, known in found.items()
        }
        self._end = max((ordinals[-1] for ordinals in stands_for.values()), default=-1) + 1
        summaries: dict[int, list[int]] = defaultdict(list)  # the places of their messages
        for place, known in found.items():
            first = stands_for[place][0]
            self._add_others(first, place)
            if known.group < 0:
                summaries[known.group].append(place)
            else:
                self._entries.append(SourceEntry(self.given[place] if place in self.altered else source[first], first, place))
                self._ordinal = first + 1
            self._place = place + 1
        self._add_others(self._end, self._place)
        placed, group_of = {entry.ordinal for entry in self._entries}, columns.grouping.group_of
        altered = {known.ordinal for place, known in found.items() if place in self.altered and known.group >= 0}
        changes = HostChanges(
            altered=tuple(sorted(altered)),
            removed=tuple(
                [at for at in range(self._end) if at not in placed and columns.ordinals(group_of[at])[-1] < self._end]
            ),
            rewound=tuple(range(self._end, len(source))),
            added=sum(entry.ordinal is None for entry in self._entries),
        )
        edited = {id: [self.given[at] for at in places] for id, places in summaries.items() if self.altered & {*places}}
        return FollowedList(columns, self._entries, altered, self._place, changes, summaries, edited)

    def _add_others(self, ordinal: int, place: int) -> None:
        """Add the hidden messages before an ordinal, then the new ones before a place."""
        for each in range(self._ordinal, ordinal):
            self._add_hidden(each)
        self._entries += [SourceEntry(self.given[new], None, new) for new in range(self._place, place)]
        self._ordinal = max(self._ordinal, ordinal)  # a summary may stand for messages before those considered already

    def _add_hidden(self, ordinal: int) -> None:
        """Add a message that the list does not have if it is hidden; a shown one was removed.

        A group with a message at or after the end was rewound and is left out. A hidden group of which the list has a part as
        new messages is placed whole, so that none of its results answers a call of the new group.
        """
        columns = self.columns
        id = columns.grouping.group_of[ordinal]
        own, is_shown = columns.ordinals(id), columns.is_included(id)
        if own[-1] >= self._end or (is_shown and columns.shows(ordinal)):
            return
        placed: Sequence[int] = [ordinal]
        if id in self.partial and not is_shown:
            placed = own if ordinal == own[0] else []
        self._entries += [SourceEntry(columns.source[each], each, None) for each in placed]


def known_beginning(columns: Columns, given: Sequence[Any]) -> int | None:
    """Return how many messages at the start are the whole source or, after edits, the whole view; ``None`` if neither."""
    source, count = columns.source, len(columns.source)
    if 0 < count < len(given) and type(source[0]) is dict:
        source += given[count:]  # for a moment: two lists are compared at C speed, a slice of one would be copied first
        try:
            if source == given:
                return count
        finally:
            del source[count:]
    if _begins_with(source, given, columns.format):
        return count
    view = columns.raws() if columns.journal else []
    return len(view) if view and _begins_with(view, given, columns.format) else None


def _begins_with(known: Sequence[Any], given: Sequence[Any], format: MessageFormat) -> bool:
    """Whether a list begins with the known messages."""
    return len(known) <= len(given) and format.common_prefix(known, given) == len(known)


def accounts_for(columns: Columns, given: Sequence[Any], *, by_id: bool) -> bool:
    """Whether a list accounts for the whole source, and so continues the conversation. Cost: as for `follow`.

    Each source message must be in the list unchanged, or be shown and have only lost or gained parts, or be replaced by a
    summary in the list. If the host names the conversation (``by_id``), messages before a known one may be altered or missing.
    """
    format = columns.format
    if _begins_with(columns.source, given, format) or has_moved_reminder(columns, given):
        return True
    if by_id and known_beginning(columns, given) is not None:
        return True
    followed = follow(columns, given, verify=False)
    if followed.changes.rewound or by_id:
        return not followed.changes.rewound
    if followed.changes.removed or followed.edited:
        return False
    stood_for = set(chain.from_iterable(columns.stands_for(followed.summaries)))
    for raw, ordinal, place in followed.entries:
        if ordinal is None:
            continue
        is_shown = columns.is_included(columns.grouping.group_of[ordinal])
        if place is None and not is_shown and ordinal not in stood_for:
            return False
        if ordinal in followed.altered and not (is_shown and is_stripped(columns.read(ordinal), format.read(raw))):
            return False
    return True


def as_given(
    view: Sequence[Any],
    source: Sequence[Any],
    compared: Sequence[Any],
    given: Sequence[Any],
    same: Callable[[Any, Any], bool] = operator.eq,
) -> list[Any]:
    """Return a view with the host's own objects wherever it shows one of the messages of the host's list.

    O(messages), and for each message that the host's list does not have, a comparison with the rest of that list.

    Args:
        view: The view.
        source: The source of the conversation.
        compared: The host's list as the source followed it, such as without the fields that the host moves on each call.
        given: The same messages as the host passed them.
        same: Compares two messages.
    """
    places = {id(raw): place for place, raw in enumerate(source)}
    result: list[Any] = []
    cursor = 0  # the place in the list after the last message found
    for message in view:
        place = places.get(id(message), len(compared))
        if not (cursor <= place < len(compared) and (compared[place] is message or same(compared[place], message))):
            place = next((at for at in range(cursor, len(compared)) if same(compared[at], message)), -1)
        result.append(given[place] if place >= 0 else message)
        cursor = max(cursor, place + 1)
    return result


# -------------------------------------------------------------------- a conversation of which only fingerprints are known


def same_beginning(fingerprints: Sequence[str], given: Sequence[Any], format: MessageFormat) -> int:
    """Return how many messages at the start of a list are the stored ones; O(their contents)."""
    for place, (known, raw) in enumerate(zip(fingerprints, given, strict=False)):
        if known != message_key(raw, format, place):
            return place
    return min(len(fingerprints), len(given))


def follow_saved(fingerprints: Sequence[str], given: Sequence[Any], format: MessageFormat) -> FollowedList | None:
    """Return how a list continues stored messages; ``None`` if one before the last recognized message is missing. O(contents).

    Edits thus survive if the host altered or inserted a message while no process was running.
    """
    known = [Known(Position(place), place, key=key) for place, key in enumerate(fingerprints)]
    found, altered = align(known, given, format)
    ordinals = {place: each.ordinal for place, each in enumerate(found) if each is not None}
    if not ordinals or len(ordinals) <= max(ordinals.values()):
        return None
    changed = [ordinal for place, ordinal in ordinals.items() if place in altered]
    followed = FollowedList.of(fingerprints, given, map(ordinals.get, range(max(ordinals) + 1)), changed)
    rewound, added = range(len(ordinals), len(fingerprints)), followed.covered - len(ordinals)
    followed.changes = HostChanges(altered=tuple(changed), rewound=tuple(rewound), added=added)
    return followed


def accounts_for_saved(fingerprints: Sequence[str], given: Sequence[Any], format: MessageFormat, *, by_id: bool) -> bool:
    """Whether a list contains all stored messages: at its start, or anywhere if the host names the conversation (``by_id``)."""
    if same_beginning(fingerprints, given, format) == len(fingerprints):
        return True
    followed = follow_saved(fingerprints, given, format) if by_id else None
    return followed is not None and sum(entry.ordinal is not None for entry in followed.entries) == len(fingerprints)

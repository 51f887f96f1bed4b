"""Identity: which message of the host is this?

A host passes its list on each call. It may be the source, the last view or an earlier one, followed by new messages; the host
may also have altered, removed or added messages, or returned to an earlier point.

- `known_beginning` recognizes the usual case: the list begins with the whole source or the whole view.
- `follow` handles all others. It finds the known messages in the list by `alignment`, and merges it with the messages that only
  the source has. `MessageIndex.sync` then builds the conversation again from the `FollowedList`.
- `accounts_for` tells whether a list continues a conversation at all.
- `as_given` puts the host's own objects into a view.

`same_beginning`, `follow_saved` and `accounts_for_saved` do this for a conversation of which only fingerprints are stored.
Nothing here changes a conversation.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, takewhile
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


@attrs.frozen(eq=False)
class CarriedEdits:
    """The edits that can be repeated on the new source, and those that cannot."""

    new_ids: dict[int, int]  # the new id of each source group that an edit may name
    journal: list[Applied]  # the edits, each with the keys of the messages that it lost
    undone: list[Edit]  # the rewrites of groups of which a message changed


@attrs.define(eq=False)
class FollowedList:
    """The source of a conversation after a host's list was followed; ids and ordinals are those before, unless called new."""

    before: Columns | Sequence[str]  # the columns before, or the keys of the source's messages if only these are stored
    entries: list[SourceEntry]  # the messages up to the last known one; their positions are the new ordinals
    altered: set[int] = attrs.Factory(set[int])  # the ordinals of the messages that changed
    # the messages of summaries that the host changed, by the summary's id
    summaries: dict[int, list[Any]] = attrs.Factory(dict[int, list[Any]])
    covered: int = 0  # the number of messages of the list that are in ``entries``; the rest is new
    changes: HostChanges = attrs.Factory(HostChanges)
    shown: frozenset[int] = frozenset()  # the ids of the summaries that the list contains

    @classmethod
    def of(
        cls, before: Columns | Sequence[str], given: Iterable[Any], ordinals: Iterable[int | None], altered: Iterable[int] = ()
    ) -> FollowedList:
        """Return a followed list in which each message has one of these ordinals; the shorter decides."""
        entries = [SourceEntry(raw, ordinal, place) for place, (raw, ordinal) in enumerate(zip(given, ordinals, strict=False))]
        return cls(before, entries, set(altered), covered=len(entries))

    @property
    def raws(self) -> list[Any]:
        """The messages of ``entries``."""
        return [entry.raw for entry in self.entries]

    def carried_over(self, journal: Iterable[Applied], now: Columns) -> CarriedEdits:
        """Return which edits can be repeated on the new source.

        Args:
            journal: The edits.
            now: The new columns, without edits: the messages of ``entries``, and perhaps later ones.
        """
        before, (new_ids, changed) = self.before, self._groups(now)
        undone: list[Edit] = []
        kept = [left for applied in journal if (left := self._carried(applied, changed, now.format, undone)) is not None]
        if any(each.writes for each in kept):
            there = {entry.ordinal for entry in self.entries if entry.ordinal not in self.altered}
            if isinstance(before, Columns):
                lost = [(at, known_key(raw, now.format)) for at, raw in enumerate(before.source) if at not in there]
            else:
                lost = [(at, key) for at, key in enumerate(before) if at not in there]
            kept = [each.without(lost) if each.writes else each for each in kept]
        stays = (entry.ordinal == place and entry.ordinal not in self.altered for place, entry in enumerate(self.entries))
        unmoved = sum(takewhile(bool, stays))  # the number of messages before the first one that changed
        kept = [each if (each.seen or 0) <= unmoved else attrs.evolve(each, seen=None) for each in kept]
        return CarriedEdits(new_ids, kept, undone)

    def _groups(self, now: Columns) -> tuple[dict[int, int], set[int | None]]:
        """Return the new id of each group with the same messages as before, and the groups of which a message changed.

        New results may have joined a group at its end. A stored state does not say which messages formed a group. Then a group
        counts as the same if all its messages were there before.
        """
        entries, group_of = self.entries, now.grouping.group_of
        grouping = self.before.grouping if isinstance(self.before, Columns) else None
        new_ids, changed = dict[int, int](), set[int | None]()
        for place, (_, ordinal, _) in enumerate(entries):
            if ordinal in self.altered:
                changed.add(entries[group_of[place]].ordinal if grouping is None else grouping.group_of[ordinal])
            if ordinal is not None and group_of[place] == place:
                members = [entries[each].ordinal for each in now.ordinals(place) if each < len(entries)]
                is_same = None not in members if grouping is None else members == [*grouping.ordinals(ordinal)]
                if is_same:
                    new_ids[ordinal] = place
        return new_ids, changed

    def _carried(
        self, applied: Applied, changed: Collection[int | None], format: MessageFormat, undone: list[Edit]
    ) -> Applied | None:
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
        same = {ordinal: Known((ordinal, 0, 0), group) for ordinal, group in enumerate(group_of) if group != group_of[-1]}
        return _merged(columns, given, same, set(), set())
    known, hidden = known_messages(columns)
    format = columns.format

    def changed(each: Known, place: int) -> bool:
        if each.group < 0 or each.raw is not columns.source[each.ordinal]:
            return False
        before, now = columns.read(each.ordinal), format.read(given[place], place)
        return (before.role, before.name, before.parts) != (now.role, now.name, now.parts)

    found, altered = align(known, given, format, changed=changed if verify else None)
    positions: dict[int, set[Position]] = defaultdict(set)  # by group, of its messages that are in the list
    for each in found:
        if each is not None:
            positions[each.group].add(each.position)
    partial = {id for id, there in positions.items() if not _is_whole(columns, id, there, hidden)}
    whole = {place: each for place, each in enumerate(found) if each is not None and each.group not in partial}
    return _merged(columns, given, whole, altered, partial)


def _is_whole(columns: Columns, id: int, positions: AbstractSet[Position], hidden: AbstractSet[int]) -> bool:
    """Whether these are all messages of a group, except those that a rewrite removed (``hidden``)."""
    if id < 0:
        return len(positions) == len(columns.inserted[id].messages)
    return {position[0] for position in positions}.issuperset(set(columns.ordinals(id)) - hidden)


def _merged(
    columns: Columns, given: Sequence[Any], found: dict[int, Known], altered: AbstractSet[int], partial: Collection[int]
) -> FollowedList:
    """Return the source after a list that has the known messages ``found``, by their places.

    ``altered``: the places of messages that changed. ``partial``: the groups of which the list has only some messages, which
    count as new.
    """
    stood_for = {
        place: [known.ordinal] if known.group >= 0 else [*chain.from_iterable(columns.stands_for([known.group]))]
        for place, known in found.items()
    }
    end = max(map(max, stood_for.values()), default=-1) + 1  # the ordinal after the last message that the list stands for
    entries: list[SourceEntry] = []
    summaries: dict[int, list[int]] = defaultdict(list)  # the places of their messages
    ordinal = covered = 0  # the first ordinal, and the first place, of a message that is not in ``entries`` yet
    for place, known in found.items():
        first = min(stood_for[place])
        entries += _unlisted(columns, range(ordinal, first), end, partial)
        entries += [SourceEntry(given[new], None, new) for new in range(covered, place)]
        ordinal, covered = max(ordinal, first), place + 1
        if known.group < 0:
            summaries[known.group].append(place)
        else:
            entries.append(SourceEntry(given[place] if place in altered else columns.source[first], first, place))
            ordinal = first + 1
    entries += _unlisted(columns, range(ordinal, end), end, partial)
    changed = {known.ordinal for place, known in found.items() if place in altered and known.group >= 0}
    placed, group_of = {entry.ordinal for entry in entries}, columns.grouping.group_of
    changes = HostChanges(
        altered=tuple(sorted(changed)),
        removed=tuple([at for at in range(end) if at not in placed and columns.ordinals(group_of[at])[-1] < end]),
        rewound=tuple(range(end, len(columns.source))),
        added=sum(entry.ordinal is None for entry in entries),
    )
    edited = {id: [given[place] for place in places] for id, places in summaries.items() if not altered.isdisjoint(places)}
    return FollowedList(columns, entries, changed, edited, covered, changes, frozenset(summaries))


def _unlisted(columns: Columns, ordinals: Iterable[int], end: int, partial: Collection[int]) -> Iterator[SourceEntry]:
    """Yield the hidden messages of a part of the source that a list does not have; shown ones were removed.

    A group with a message at or after ``end`` was rewound and is left out. A hidden group of which the list has a part as new
    messages is placed whole, so that none of its results answers a call of the new group.
    """
    for ordinal in ordinals:
        id = columns.grouping.group_of[ordinal]
        own, is_hidden = columns.ordinals(id), not columns.is_included(id)
        if own[-1] >= end:
            continue
        if id in partial and is_hidden:
            placed: Sequence[int] = own if ordinal == own[0] else ()
        else:
            placed = (ordinal,) if is_hidden or not columns.shows(ordinal) else ()
        yield from [SourceEntry(columns.source[each], each, None) for each in placed]


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
    The newest source message may also be a reminder, see `has_moved_reminder`.
    """
    format = columns.format
    if _begins_with(columns.source, given, format) or has_moved_reminder(columns, given):
        return True
    if by_id and known_beginning(columns, given) is not None:
        return True
    followed = follow(columns, given, verify=False)
    if followed.changes.rewound or by_id:
        return not followed.changes.rewound
    if followed.changes.removed or followed.summaries:
        return False
    stood_for = set(chain.from_iterable(columns.stands_for(followed.shown)))
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
    known = [Known((place, 0, 0), place, key=key) for place, key in enumerate(fingerprints)]
    found, altered = align(known, given, format)
    ordinals = {place: each.ordinal for place, each in enumerate(found) if each is not None}
    if not ordinals or len(ordinals) <= max(ordinals.values()):
        return None
    changed = [ordinal for place, ordinal in ordinals.items() if place in altered]
    return FollowedList.of(fingerprints, given, map(ordinals.get, range(max(ordinals) + 1)), changed)


def accounts_for_saved(fingerprints: Sequence[str], given: Sequence[Any], format: MessageFormat, *, by_id: bool) -> bool:
    """Whether a list contains all stored messages: at its start, or anywhere if the host names the conversation (``by_id``)."""
    if same_beginning(fingerprints, given, format) == len(fingerprints):
        return True
    followed = follow_saved(fingerprints, given, format) if by_id else None
    return followed is not None and sum(entry.ordinal is not None for entry in followed.entries) == len(fingerprints)

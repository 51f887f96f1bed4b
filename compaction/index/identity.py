"""Identity: which message of the host is this?

A host passes its list on each call. It may be the source, the last view or an earlier one, followed by new messages; the host
may also have altered, removed or added messages, or returned to an earlier point.

- `known_beginning` recognizes the usual case: the list begins with the whole source or the whole view.
- `follow` handles all others. It finds the known messages in the list by `alignment`, and merges it with the messages that only
  the source has. `MessageIndex.sync` then builds the conversation again from the `FollowedList`.
- `accounts_for` tells whether a list continues a conversation at all.

`same_beginning`, `recognized`, `followed_from_fingerprints` and `accounts_for_saved` do this for a conversation of which only
fingerprints are stored.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
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
from .reading import NewMessages


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

    before: Columns
    entries: list[SourceEntry]  # the messages up to the last known one; their positions are the new ordinals
    altered: AbstractSet[int] = frozenset()  # the ordinals of the messages that changed
    covered: int = 0  # the number of messages of the list that are in ``entries``; the rest is new
    changes: HostChanges = attrs.Factory(HostChanges)
    summaries: Collection[int] = ()  # the ids of the summaries that the list contains
    # the messages of those that the host changed, by the summary's id
    edited: dict[int, list[Any]] = attrs.Factory(dict[int, list[Any]])
    keys: Sequence[str] | None = None  # of all messages before, if ``before`` has only those that are in the list

    @classmethod
    def of(cls, before: Columns, given: Iterable[Any], ordinals: Iterable[int | None]) -> FollowedList:
        """Return a followed list in which message n has ordinal n of these; if one is longer than the other, its end is cut."""
        entries = [SourceEntry(raw, ordinal, place) for place, (raw, ordinal) in enumerate(zip(given, ordinals, strict=False))]
        return cls(before, entries, covered=len(entries))

    @property
    def raws(self) -> list[Any]:
        """The messages of ``entries``."""
        return [entry.raw for entry in self.entries]

    def new_ids(self, now: Columns) -> dict[int, int]:
        """Return the new id of each group with the same messages as before; ``now`` are the new columns.

        New results may have joined a group at its end.
        """
        ids: dict[int, int] = {}
        for new, (_, ordinal, _) in enumerate(self.entries):
            if ordinal is None or now.grouping.group_of[new] != new:
                continue
            members = [self.entries[each].ordinal for each in now.ordinals(new) if each < len(self.entries)]
            if members == [*self.before.ordinals(ordinal)]:
                ids[ordinal] = new
        return ids

    def carried_over(self, journal: Sequence[Applied], format: MessageFormat) -> tuple[list[Applied], list[Edit]]:
        """Return the edits that can be repeated on the new source, and the rewrites that cannot: of groups that changed."""
        changed = {self.before.grouping.group_of[ordinal] for ordinal in self.altered}
        kept = [left for applied in journal if (left := self._carried(applied, changed, format)) is not None]
        edits = [part.edit for applied in journal for part in applied.simple]
        undone: list[Edit] = [edit for edit in edits if isinstance(edit, Rewrite) and edit.group in changed]
        return self._with_seen(self._with_lost(kept, format)), undone

    def _carried(self, applied: Applied, changed: Collection[int], format: MessageFormat) -> Applied | None:
        """Return an edit as the host's changes leave it; ``None`` if it rewrote a group that the host changed."""
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

    def _with_lost(self, journal: list[Applied], format: MessageFormat) -> list[Applied]:
        """Add the keys of messages that are gone to the edits that may have been written from them."""
        if not any(each.writes for each in journal):  # reading all contents takes long
            return journal
        keys = self.keys or [known_key(raw, format) for raw in self.before.source]
        left = {entry.ordinal for entry in self.entries} - self.altered
        lost = [(ordinal, key) for ordinal, key in enumerate(keys) if ordinal not in left]
        return [each.without(lost) if each.writes else each for each in journal]

    def _with_seen(self, journal: list[Applied]) -> list[Applied]:
        """Remove ``seen``, which counts messages of the old source, from edits that saw the first one that changed."""
        moved = (new for new, entry in enumerate(self.entries) if entry.ordinal != new or new in self.altered)
        first = next(moved, len(self.entries))
        return [each if (each.seen or 0) <= first else attrs.evolve(each, seen=None) for each in journal]


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
    less, more = sorted([before.text, now.text], key=len)  # either message may be the one with the reminder
    return is_stripped(before, now) or (before.role == now.role and less != "" and less in more)


def is_stripped(before: Message, now: Message) -> bool:
    """Whether one message has only some of the other's parts, which two conversations hardly share by chance."""
    fewer, more = sorted([before.parts, now.parts], key=len)  # in no order of time
    return before.role == now.role and 0 < len(fewer) < len(more) and all(part in more for part in fewer)


def follow(columns: Columns, given: Sequence[Any], *, verify: bool) -> FollowedList:
    """Return how a list continues a conversation. O(messages), and O(contents) of those that are not the same objects.

    ``verify`` tells whether to compare the contents of the same objects too. A group of which only a part is in the list is not
    recognized: its messages are new.
    """
    group_of, format = columns.grouping.group_of, columns.format
    if not verify and has_moved_reminder(columns, given):  # comparing all contents would take twice as long
        same = {ordinal: Known(Position(ordinal), id) for ordinal, id in enumerate(group_of) if id != group_of[-1]}
        return _merged(columns, given, same)

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
    parts = {id for id, there in positions.items() if not _is_whole(columns, id, there)}
    whole = {place: each for place, each in enumerate(found) if each is not None and each.group not in parts}
    return _merged(columns, given, whole, altered & whole.keys(), parts)


def _is_whole(columns: Columns, id: int, positions: AbstractSet[Position]) -> bool:
    """Whether these are all messages of a group, except those that a rewrite removed."""
    if id < 0:
        return len(positions) == len(columns.inserted[id].messages)
    return {position.ordinal for position in positions}.issuperset(columns.shown_ordinals(id))


def _merged(
    columns: Columns,
    given: Sequence[Any],
    found: Mapping[int, Known],
    altered: AbstractSet[int] = frozenset(),
    parts: Collection[int] = (),
) -> FollowedList:
    """Merge a list with the messages that only the source has.

    For example, the summary S stands for b and c, and d was dropped. In the host's list, n is new, and f is missing at the end,
    so it was rewound::

        source    a  b  c  d  e  f
        list      a  S  e  n            entries    a  b  c  d  e        n is behind the last known message
        list      a  S  n  e            entries    a  b  c  d  n  e     hidden messages come before new ones in the same gap

    The known messages of the second list, one by one::

        known     ordinals      new ones before it, which come before the ordinal    reached    end
        a         0                                                                  1          1
        S         1 and 2                                                            1          3
        e         4             n                                    4               5          5

    Args:
        columns: The columns before.
        given: The list.
        found: The known messages in it by their places, in order; of each group either all or none.
        altered: The places of those that changed.
        parts: The groups of which only some messages are in the list; these count as new.
    """
    listed: dict[int, int] = {}  # the places of source messages, by their ordinals
    new: dict[int, list[int]] = defaultdict(list)  # the places of new messages, by the ordinal that they come before
    summaries: dict[int, list[int]] = defaultdict(list)  # the places of their messages, by id
    covered = 0  # the number of messages of the list that were considered
    reached = 0  # the ordinal before which the next new message comes, or before a later one
    end = 0  # the ordinal after all that the list stands for
    for place, known in found.items():
        runs = [range(known.ordinal, known.ordinal + 1)] if known.group >= 0 else columns.stands_for([known.group])
        reached = max(reached, runs[0].start)  # a summary may stand for messages before those considered already
        new[reached] += range(covered, place)
        if known.group >= 0:
            listed[known.ordinal] = place
            reached += 1
        else:
            summaries[known.group].append(place)
        covered, end = place + 1, max(end, runs[-1].stop)
    entries: list[SourceEntry] = []
    for ordinal in range(end):
        entries += [SourceEntry(given[at], None, at) for at in new[ordinal]]
        if (listed_at := listed.get(ordinal)) is not None:
            raw = given[listed_at] if listed_at in altered else columns.source[ordinal]
            entries.append(SourceEntry(raw, ordinal, listed_at))
        else:
            hidden = _hidden_at(columns, ordinal, end, parts)
            entries += [SourceEntry(columns.source[each], each, None) for each in hidden]
    changes = _changes(columns, entries, end, altered)
    edited = {id: [given[at] for at in places] for id, places in summaries.items() if not altered.isdisjoint(places)}
    return FollowedList(columns, entries, frozenset(changes.altered), covered, changes, summaries, edited)


def _hidden_at(columns: Columns, ordinal: int, end: int, parts: Collection[int]) -> Sequence[int]:
    """Return the messages that the source keeps at an ordinal before ``end`` although the list does not have that message.

    That is the message itself if it is hidden; a shown one was removed. A group with a message at or after the end was rewound
    and is left out. A hidden group of which the list has a part as new messages is placed whole, so that none of its results
    answers a call of the new group.
    """
    id = columns.grouping.group_of[ordinal]
    own, is_shown = columns.ordinals(id), columns.is_included(id)
    if own[-1] >= end or (is_shown and columns.shows(ordinal)):
        return ()
    if id in parts and not is_shown:
        return own if ordinal == own[0] else ()
    return (ordinal,)


def _changes(columns: Columns, entries: Sequence[SourceEntry], end: int, altered: Collection[int]) -> HostChanges:
    """Return the host's changes before the ordinal ``end``; ``altered`` are places."""
    left, group_of = {entry.ordinal for entry in entries}, columns.grouping.group_of
    gone = [ordinal for ordinal in range(end) if ordinal not in left]
    changed = [entry.ordinal for entry in entries if entry.ordinal is not None and entry.place in altered]
    return HostChanges(
        altered=tuple(sorted(changed)),
        removed=tuple([ordinal for ordinal in gone if columns.ordinals(group_of[ordinal])[-1] < end]),
        rewound=tuple(range(end, len(columns.source))),
        added=sum(entry.ordinal is None for entry in entries),
    )


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


def recognized(fingerprints: Sequence[str], given: Sequence[Any], format: MessageFormat) -> tuple[list[int | None], set[int]]:
    """Return the ordinals of the stored messages in a list, one for each of its messages up to the last of them.

    ``None`` stands for a message that the host inserted. The second value has the ordinals of those that it altered. If a
    stored message before another is missing, only those at the start are recognized. O(contents).
    """
    count = same_beginning(fingerprints, given, format)
    if count < len(fingerprints):
        known = [Known(Position(ordinal), ordinal, key=key) for ordinal, key in enumerate(fingerprints)]
        found, altered = align(known, given, format)
        ordinals = [None if each is None else each.ordinal for each in found]
        there = [ordinal for ordinal in ordinals if ordinal is not None]
        if there and there == [*range(len(there))]:
            last = ordinals.index(there[-1])
            return ordinals[: last + 1], {each.ordinal for place in altered if (each := found[place]) is not None}
    return [*range(count)], set()


def followed_from_fingerprints(
    known: Columns, messages: NewMessages, fingerprints: Sequence[str], ordinals: Sequence[int | None], altered: set[int]
) -> FollowedList:
    """Return how a list continues a stored conversation, which has the messages of the ``fingerprints``.

    For example, B is the altered b, and c is missing at the end, so it was rewound::

        stored    a  b  c
        list      a  n  B  d        ordinals   0  None  1       entries   a  n  B       known   a  B

    Args:
        known: Empty columns. They get the stored messages that the list has, which are the first ones; so each has the ordinal
            that it has in the stored conversation.
        messages: The list.
        fingerprints: The keys of the stored messages.
        ordinals: The first value of `recognized`.
        altered: The second value.
    """
    known.extend(messages.at([place for place, ordinal in enumerate(ordinals) if ordinal is not None]), restore=bool)
    count = len(known.source)
    rewound = tuple(range(count, len(fingerprints)))
    changes = HostChanges(altered=tuple(sorted(altered)), rewound=rewound, added=len(ordinals) - count)
    followed = FollowedList.of(known, messages.raws, ordinals)
    return attrs.evolve(followed, altered=altered, changes=changes, keys=fingerprints)


def accounts_for_saved(fingerprints: Sequence[str], given: Sequence[Any], format: MessageFormat, *, by_id: bool) -> bool:
    """Whether a list contains all stored messages: at its start, or anywhere if the host names the conversation (``by_id``)."""
    if not by_id:
        return same_beginning(fingerprints, given, format) == len(fingerprints)
    ordinals, _ = recognized(fingerprints, given, format)
    return len(ordinals) - ordinals.count(None) == len(fingerprints)

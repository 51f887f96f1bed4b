"""Identity: which message of the host is this?

A host passes its list on each call. It may be the source, the last view or an earlier one, followed by new messages; the host
may also have altered, removed or added messages, or returned to an earlier point. Nothing is changed here: `follow` returns a
`Plan`, made from the `alignment` of the list, and `MessageIndex.sync` carries it out. `accounts_for` tells whether a list
continues a conversation at all.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, pairwise, takewhile
from typing import Any, TypeAlias, cast

import attrs

from ..formats import MessageFormat
from ..messages import Message
from .alignment import NEVER, Known, Position, align
from .edits import Drop, Edit, Replace, Restore, Rewrite, Together
from .journal import Applied, flat
from .keys import message_key
from .projection import Inserted, Projection


def has_moved_reminder(projection: Projection, given: Sequence[Any]) -> bool:
    """Whether a list has all of the source but a reminder at its end, which some agents move to the end of each call.

    The reminder is a system message, now the list's last, or a part or text that the newest message has lost. An agent may also
    have added it. The list has messages after that place.
    """
    source, newest, format = projection.source, len(projection.source) - 1, projection.format
    if not 0 < newest < len(given) - 1 or format.common_prefix(source, given) != newest:
        return False
    before, now = projection.read(newest), format.read(given[newest], newest)
    if before.is_system and format.common_prefix(source[newest:], given[-1:]):
        return True
    less, more = sorted([before.text, now.text], key=len)
    return is_stripped(before, now) or (before.role == now.role and less != "" and less in more)


def is_stripped(before: Message, now: Message) -> bool:
    """Whether one message has only some of the other's parts, which two conversations hardly share by chance."""
    fewer, more = sorted([before.parts, now.parts], key=len)
    return before.role == now.role and 0 < len(fewer) < len(more) and all(part in more for part in fewer)


# -------------------------------------------------------------------- the conversation after a list


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


SourceEntry: TypeAlias = tuple[Any, int | None, int | None]
"""A message, its previous ordinal (``None`` for a new one), and its place in the host's list, if it is in that list."""


@attrs.define(eq=False)
class Plan:
    """The source of a conversation after a host's list was followed.

    Args:
        entries: The messages up to the last known one.
        altered: The previous ordinals of the messages that changed.
        summaries: Messages of summaries that the host changed, by the summary's id.
        matched: The number of messages of the list that are covered; the rest is new.
        changes: The host's changes.
        shown: The ids of the summaries that the list contains.
    """

    entries: list[SourceEntry]
    altered: set[int] = attrs.Factory(set[int])
    summaries: dict[int, list[Any]] = attrs.Factory(dict[int, list[Any]])
    matched: int = 0
    changes: HostChanges = attrs.Factory(HostChanges)
    shown: frozenset[int] = frozenset()

    @property
    def unchanged(self) -> int:
        """The number of messages at the start of the source that neither moved nor changed."""
        same = (ordinal == place and ordinal not in self.altered for place, (_, ordinal, _) in enumerate(self.entries))
        return sum(takewhile(bool, same))

    @property
    def only_in_source(self) -> list[int]:
        """The positions in ``entries`` of messages that the host's list does not contain."""
        return [position for position, (_, _, place) in enumerate(self.entries) if place is None]

    @classmethod
    def of(cls, given: Iterable[Any], ordinals: Iterable[int | None], altered: Iterable[int] = ()) -> Plan:
        """Return the plan of a list in which each message has one of these previous ordinals; the shorter decides."""
        entries: list[SourceEntry] = [
            (raw, ordinal, place) for place, (raw, ordinal) in enumerate(zip(given, ordinals, strict=False))
        ]
        return cls(entries, set(altered), matched=len(entries))

    def groups(self, old: Projection, new: Projection) -> dict[int, int]:
        """Return the new id of each source group that is unchanged, or was only joined by new results."""
        here = {ordinal: place for place, (_, ordinal, _) in enumerate(self.entries) if ordinal is not None}
        same: dict[int, int] = {}
        for id in old.grouping.ids:
            places = [here[ordinal] for ordinal in old.ordinals(id) if ordinal in here]
            group = new.grouping.group_of[places[0]] if places else None
            if group is None or len(places) < len(old.ordinals(id)):
                continue
            if places == [place for place in new.ordinals(group) if place < len(self.entries)]:
                same[id] = group
        return same

    def groups_of_saved(self, new: Projection) -> dict[int, int]:
        """Return the new id of each stored group whose messages are there, altered or not; its old id is its first ordinal."""
        groups: dict[int, int] = {}
        for place, (_, ordinal, _) in enumerate(self.entries):
            if ordinal is None or new.grouping.group_of[place] != place:
                continue
            if all(self.entries[each][1] is not None for each in new.ordinals(place) if each < self.matched):
                groups[ordinal] = place
        return groups

    def is_altered(self, places: Iterable[int]) -> bool:
        """Whether a message at one of these places changed."""
        return any(place < self.matched and self.entries[place][1] in self.altered for place in places)

    def carried_over(
        self,
        journal: Iterable[Applied],
        *,
        altered: Collection[int],
        count: int,
        key: Callable[[int], str],
        format: MessageFormat,
    ) -> tuple[list[Applied], list[Edit]]:
        """Return the edits without rewrites of altered groups, each knowing the messages that it lost, and these rewrites.

        Args:
            journal: The edits before.
            altered: The groups of which a message changed.
            count: The number of source messages before.
            key: Returns the key of a message, by its previous ordinal.
            format: Reads the host's version of a summary.
        """
        undone: list[Edit] = []

        def after(applied: Applied) -> Applied | None:
            edit = applied.edit
            if isinstance(edit, Rewrite) and edit.group in altered:
                undone.append(edit)
                return None
            if isinstance(edit, Replace) and (written := self.summaries.get(applied.made or 0)):
                edit = attrs.evolve(edit, messages=[format.read(raw) for raw in written])
                return attrs.evolve(applied, edit=edit, seen=None)
            if not isinstance(edit, Together):
                return applied
            parts = [left for part in applied.parts if (left := after(part)) is not None]
            whole = Together(*[cast("Drop", part.edit) for part in parts], reason=edit.reason)
            seen = applied.seen if len(parts) == len(applied.parts) else None
            return attrs.evolve(applied, edit=whole, parts=tuple(parts), seen=seen) if parts else None

        kept = [left for applied in journal if (left := after(applied)) is not None]
        if any(each.writes for each in kept):
            there = {ordinal for _, ordinal, _ in self.entries if ordinal not in self.altered}
            keys = {ordinal: key(ordinal) for ordinal in range(count) if ordinal not in there}
            kept = [attrs.evolve(each, lost=each.lost | _read_of(each, keys)) if each.writes else each for each in kept]
        unchanged = self.unchanged
        return [each if (each.seen or 0) <= unchanged else attrs.evolve(each, seen=None) for each in kept], undone


def _read_of(applied: Applied, keys: Mapping[int, str]) -> set[str]:
    """Return the keys of those messages that had been read when an edit was decided."""
    return {key for ordinal, key in keys.items() if applied.seen is None or ordinal < applied.seen}


def known_beginning(projection: Projection, given: Sequence[Any]) -> int | None:
    """Return how many messages at the start are the whole source or, after edits, the whole view; ``None`` if neither."""
    source, count = projection.source, len(projection.source)
    if 0 < count < len(given) and type(source[0]) is dict:
        source += given[count:]  # for a moment: two lists are compared at C speed, a slice of one would be copied first
        try:
            if source == given:
                return count
        finally:
            del source[count:]
    known = _begins_with(source, given, projection.format)
    if not known and projection.journal and (view := projection.raws()):
        known = _begins_with(view, given, projection.format)
    return known


def _begins_with(known: Sequence[Any], given: Sequence[Any], format: MessageFormat) -> int | None:
    """Return the number of known messages if a list begins with them; ``None`` if it does not."""
    count = len(known)
    if count > len(given):
        return None
    return count if format.common_prefix(known, given) == count else None


def accounts_for(projection: Projection, given: Sequence[Any], *, by_id: bool) -> bool:
    """Whether a list accounts for the whole source, and so continues the conversation. Cost: as for `follow`.

    Each source message must be in the list unchanged, or be shown and have only lost or gained parts, or be replaced by a
    summary in the list. If the host names the conversation (``by_id``), messages before a known one may be altered or missing.
    The newest source message may also be a reminder, see `has_moved_reminder`.
    """
    format = projection.format
    if _begins_with(projection.source, given, format) is not None or has_moved_reminder(projection, given):
        return True
    if by_id and known_beginning(projection, given) is not None:
        return True
    plan = follow(projection, given, verify=False)
    if plan.changes.rewound or by_id:
        return not plan.changes.rewound
    group_of, shown = projection.grouping.group_of, projection.is_included
    if plan.changes.removed or plan.summaries:
        return False
    now = {ordinal: raw for raw, ordinal, _ in plan.entries}
    for ordinal in plan.altered:
        if not shown(group_of[ordinal]) or not is_stripped(projection.read(ordinal), format.read(now[ordinal])):
            return False
    stood_for = set(chain.from_iterable(projection.stands_for(plan.shown)))
    only_in_source = {cast("int", plan.entries[place][1]) for place in plan.only_in_source}
    return all(shown(group_of[ordinal]) for ordinal in only_in_source - stood_for)


def follow(projection: Projection, given: Sequence[Any], *, verify: bool) -> Plan:
    """Return how a list continues a conversation. O(messages), and O(contents) of those that are not the same objects.

    ``verify`` tells whether to compare the contents of the same objects too.
    """
    if not verify and has_moved_reminder(projection, given):  # comparing all contents would take twice as long
        found: list[Known | None] = [None] * len(given)
        for ordinal, group in enumerate(projection.grouping.group_of[:-1]):
            found[ordinal] = Known((ordinal, 0, 0), group)
        return _Merger(projection, given, found, (), _keep_whole_groups(projection, found, set())).plan()
    known, hidden = known_messages(projection)
    format = projection.format

    def changed(each: Known, place: int) -> bool:
        if each.group < 0 or each.raw is not projection.source[each.position[0]]:
            return False
        before, now = projection.read(each.position[0]), format.read(given[place], place)
        return (before.role, before.name, before.parts) != (now.role, now.name, now.parts)

    found, altered = align(known, given, format, changed=changed if verify else None)
    return _Merger(projection, given, found, altered, _keep_whole_groups(projection, found, hidden)).plan()


def known_messages(projection: Projection) -> tuple[list[Known], set[int]]:
    """Return every message in every version that was or may be shown, in order, and the ordinals that a rewrite removed."""
    history = _History(projection.journal)
    known: list[Known] = []
    at_anchor: dict[int, list[Inserted]] = defaultdict(list)
    for group in projection.inserted.values():
        at_anchor[group.anchor].append(group)
    group_of, included = projection.grouping.group_of, projection.is_included
    for ordinal, raw in enumerate(projection.source):
        for group in at_anchor.get(ordinal, ()):
            id, times = group.id, (history.made.get(group.id, 0), history.gone.get(group.id, NEVER))
            for part, each in enumerate(group.messages):
                known.append(Known((ordinal, -1, -2 * id + part), id, each.raw, each.role, group.shown, *times))
        id = group_of[ordinal]
        shown, gone, role = included(id), history.gone.get(id, NEVER), projection.read(ordinal).role
        versions = [(raw, 0), *history.versions.get(ordinal, ())]
        for (version, since), (_, end) in pairwise([*versions, (None, NEVER + 1)]):
            if version is not None:
                known.append(Known((ordinal, 0, 0), id, version, role, shown, since, min(gone, end - 1)))
    return known, history.hidden


class _History:
    """The times at which each message was shown, as numbers of edits. Holds state.

    Attributes:
        made: When a summary was written, by its id.
        gone: When a hidden group was last shown, by its id.
        versions: The rewritten messages shown at an ordinal, ``None`` for a removed one, each with its first time.
    """

    def __init__(self, journal: Iterable[Applied]) -> None:
        self.made: dict[int, int] = {}
        self.gone: dict[int, int] = {}
        self.versions: dict[int, list[tuple[Any, int]]] = defaultdict(list)
        for time, whole in enumerate(journal):
            for applied in flat([whole]):
                self._note(applied, time)

    def _note(self, applied: Applied, time: int) -> None:
        edit = applied.edit
        if isinstance(edit, Rewrite):
            for (ordinal, _), message in zip(applied.before, edit.messages, strict=False):
                self.versions[ordinal].append((None if message is None else message.raw, time + 1))
        elif isinstance(edit, Restore):
            for id in edit.groups:
                self.gone.pop(id, None)
        elif not isinstance(edit, Together):
            self.gone.update(dict.fromkeys(edit.groups, time))
            if applied.made is not None:
                self.made[applied.made] = time + 1

    @property
    def hidden(self) -> set[int]:
        """The ordinals whose message a rewrite removed."""
        return {ordinal for ordinal, versions in self.versions.items() if any(raw is None for raw, _ in versions)}


def _keep_whole_groups(projection: Projection, found: list[Known | None], hidden: set[int]) -> set[int]:
    """Forget the matches of groups of which only a part is in the list, so that they are new; return these groups' ids."""
    positions: dict[int, set[Position]] = defaultdict(set)
    for each in found:
        if each is not None:
            positions[each.group].add(each.position)
    partial = {id for id, own in positions.items() if not _is_whole(projection, id, own, hidden)}
    found[:] = [None if each is None or each.group in partial else each for each in found]
    return partial


def _is_whole(projection: Projection, id: int, positions: set[Position], hidden: set[int]) -> bool:
    if id < 0:
        return len(positions) == len(projection.inserted[id].messages)
    return {position[0] for position in positions}.issuperset(set(projection.ordinals(id)) - hidden)


@attrs.define(eq=False)
class _Merger:
    """Merges a list with the messages that only the source has. Holds state: the messages placed so far.

    Args:
        projection: The conversation.
        given: The list.
        found: For each message of the list, the known one that it is.
        altered: The places in the list of those that changed.
        partial: The groups of which the list has only a part, as new messages.
    """

    projection: Projection
    given: Sequence[Any]
    found: Sequence[Known | None]
    altered: Collection[int]
    partial: Collection[int]
    _entries: list[SourceEntry] = attrs.Factory(list[SourceEntry])
    _removed: list[int] = attrs.Factory(list[int])
    _early: set[int] = attrs.Factory(set[int])  # ordinals that were placed with the first message of their group
    _next: int = 0  # the first ordinal that is not placed yet

    def plan(self) -> Plan:
        """Return the plan."""
        given, source, altered = self.given, self.projection.source, set[int]()
        stood_for = {place: self._stood_for(known) for place, known in enumerate(self.found) if known is not None}
        end = max(map(max, stood_for.values()), default=-1) + 1
        summaries: dict[int, list[int]] = defaultdict(list)  # the places of their messages
        new: list[SourceEntry] = []
        for place, known in enumerate(self.found[: max(stood_for, default=-1) + 1]):
            if known is None:
                new.append((given[place], None, place))
                continue
            first = min(stood_for[place])
            self._place_source(first, end)
            self._entries += new
            new.clear()
            if known.group < 0:
                summaries[known.group].append(place)
                continue
            self._entries.append((given[place] if place in self.altered else source[first], first, place))
            self._next = first + 1
            altered.update([first] if place in self.altered else [])
        self._place_source(end, end)
        changes = HostChanges(
            altered=tuple(sorted(altered)),
            removed=tuple(self._removed),
            rewound=tuple(range(end, len(source))),
            added=sum(ordinal is None for _, ordinal, _ in self._entries),
        )
        edited = {id: places for id, places in summaries.items() if any(place in self.altered for place in places)}
        written = {id: [given[place] for place in places] for id, places in edited.items()}
        return Plan(self._entries, altered, written, max(stood_for, default=-1) + 1, changes, frozenset(summaries))

    def _stood_for(self, known: Known) -> Sequence[int]:
        """Return the ordinal of a message, or those of the messages that a summary replaces."""
        if known.group >= 0:
            return (known.position[0],)
        return list(chain.from_iterable(self.projection.stands_for([known.group])))

    def _place_source(self, stop: int, end: int) -> None:
        """Place the hidden messages up to an ordinal; shown messages that the list does not have were removed.

        A group with a message at or after ``end`` was rewound and is dropped whole. A hidden group of which the list has a part
        as new messages is placed whole, so that none of its results answers a call of the new group.
        """
        projection = self.projection
        for ordinal in range(self._next, stop):
            id = projection.grouping.group_of[ordinal]
            if projection.ordinals(id)[-1] >= end or ordinal in self._early:
                continue
            if id in self.partial and not projection.is_included(id):
                self._entries.extend((projection.source[each], each, None) for each in projection.ordinals(id))
                self._early.update(projection.ordinals(id))
            elif not projection.is_included(id) or not projection.shows(ordinal):
                self._entries.append((projection.source[ordinal], ordinal, None))
            else:
                self._removed.append(ordinal)
        self._next = max(self._next, stop)


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
        source: The source of the conversation, which has followed ``compared``.
        compared: The host's list as it was compared, such as without the fields that the host moves on each call.
        given: The same messages as the host passed them.
        same: Compares two messages.
    """
    places = {id(raw): place for place, raw in enumerate(source)}
    result: list[Any] = []
    following = 0
    for message in view:
        place = places.get(id(message), len(compared))
        if not (following <= place < len(compared) and (compared[place] is message or same(compared[place], message))):
            place = next((at for at in range(following, len(compared)) if same(compared[at], message)), -1)
        result.append(given[place] if place >= 0 else message)
        following = max(following, place + 1)
    return result


# -------------------------------------------------------------------- a conversation of which only fingerprints are known


def same_beginning(fingerprints: Sequence[str], given: Sequence[Any], format: MessageFormat) -> int:
    """Return how many messages at the start of a list are the stored ones; O(their contents)."""
    for place, (known, raw) in enumerate(zip(fingerprints, given, strict=False)):
        if known != message_key(raw, format, place):
            return place
    return min(len(fingerprints), len(given))


def follow_saved(fingerprints: Sequence[str], given: Sequence[Any], format: MessageFormat) -> Plan | None:
    """Return how a list continues stored messages; ``None`` if one before the last recognized message is missing. O(contents).

    Edits thus survive if the host altered or inserted a message while no process was running.
    """
    known = [Known((place, 0, 0), place, key=key) for place, key in enumerate(fingerprints)]
    found, altered = align(known, given, format)
    ordinals = [None if each is None else each.group for each in found]
    there = {ordinal for ordinal in ordinals if ordinal is not None}
    if not there or len(there) <= max(there):
        return None
    matched = max(place for place, ordinal in enumerate(ordinals) if ordinal is not None) + 1
    changed = {each.group for place, each in enumerate(found) if each is not None and place in altered}
    return Plan.of(given[:matched], ordinals, changed)

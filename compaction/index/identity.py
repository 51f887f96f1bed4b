"""Identity: which message of the host is this?

A host passes its list on each call. It may be the source, the last view or an earlier one, followed by new messages; the host
may also have altered, removed or added messages, or returned to an earlier point. Nothing is changed here: `follow` returns a
`Plan`, made from the `alignment` of the list, and `MessageIndex.sync` carries it out. `accounts_for` tells whether a list
continues a conversation at all.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain
from typing import Any, cast

import attrs

from ..formats import MessageFormat
from ..messages import Message
from .alignment import NEVER, Known, Position, align
from .edits import Restore, Rewrite, Together
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


@attrs.define(eq=False)
class Plan:
    """The source of a conversation after a host's list was followed.

    Args:
        entries: The messages up to the last known one, each with its previous ordinal; ``None`` for a new message.
        places: For each of these, its place in the host's list; ``None`` for a message that only the source has.
        altered: The previous ordinals of the messages that changed.
        summaries: Messages of summaries that the host changed, by the summary's id.
        matched: The number of messages of the list that are covered; the rest is new.
        changes: The host's changes.
        shown: The ids of the summaries that the list contains.
    """

    entries: list[tuple[Any, int | None]]
    places: list[int | None]
    altered: set[int]
    summaries: dict[int, list[Any]]
    matched: int
    changes: HostChanges
    shown: frozenset[int] = frozenset()

    @property
    def unchanged(self) -> int:
        """The number of messages at the start of the source that neither moved nor changed."""
        for place, (_, ordinal) in enumerate(self.entries):
            if ordinal != place or ordinal in self.altered:
                return place
        return len(self.entries)

    @property
    def only_in_source(self) -> list[int]:
        """The places in ``entries`` of messages that the host's list does not contain."""
        return [place for place, given in enumerate(self.places) if given is None]

    @classmethod
    def of(cls, entries: list[tuple[Any, int | None]], altered: Iterable[int] = ()) -> Plan:
        """Return the plan of a list with these entries, none of which only the source has."""
        return cls(entries, list(range(len(entries))), set(altered), {}, len(entries), HostChanges())

    def groups(self, old: Projection, new: Projection) -> dict[int, int]:
        """Return the new id of each source group that is unchanged, or was only joined by new results."""
        here = {ordinal: place for place, (_, ordinal) in enumerate(self.entries) if ordinal is not None}
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
        for place, (_, ordinal) in enumerate(self.entries):
            if ordinal is None or new.grouping.group_of[place] != place:
                continue
            if all(self.entries[each][1] is not None for each in new.ordinals(place) if each < self.matched):
                groups[ordinal] = place
        return groups

    def is_altered(self, places: Iterable[int]) -> bool:
        """Whether a message at one of these places changed."""
        return any(place < self.matched and self.entries[place][1] in self.altered for place in places)

    def gone(self, count: int, key: Callable[[int], str]) -> dict[int, str]:
        """Return the keys of those of ``count`` messages that the host altered or removed, by their previous ordinals."""
        left = {ordinal for _, ordinal in self.entries if ordinal not in self.altered}
        return {ordinal: key(ordinal) for ordinal in range(count) if ordinal not in left}


class PassedList:
    """Tells whether a list begins with the whole conversation. Holds state: the last list that began with the source.

    A host that works on copies passes the same copies again, which are then compared by identity, at C speed.
    """

    def __init__(self) -> None:
        self._last: list[Any] = []

    def clear(self) -> None:
        """Forget the last list, because the source is about to change."""
        self._last = []

    def continued(self, projection: Projection, given: list[Any]) -> int | None:
        """Return how many messages at the start are the whole source or, after edits, the whole view; ``None`` if neither."""
        source, format, last = projection.source, projection.format, self._last
        self._last = []
        count = len(source)
        if 0 < count == len(last) <= len(given) and type(last[0]) is dict and last[-1] is given[count - 1]:
            last += given[count:]
            if last == given:
                self._last = last
                return count
            del last[count:]
        is_same = len(last) == count and _begins_with(last, given, format) is not None
        known = count if is_same else _begins_with(source, given, format)
        if known:
            self._last = given.copy()
        elif projection.journal and (view := projection.raws()):
            known = _begins_with(view, given, format)
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
    if by_id and projection.journal and (view := projection.raws()) and _begins_with(view, given, format) is not None:
        return True
    plan = follow(projection, given, verify=False)
    if plan.changes.rewound or by_id:
        return not plan.changes.rewound
    group_of, shown = projection.grouping.group_of, projection.is_included
    if plan.changes.removed or plan.summaries:
        return False
    now = {cast("int", ordinal): raw for raw, ordinal in plan.entries}
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
        return _Planner(projection, found, set(), given, _keep_whole_groups(projection, found, set())).plan()
    known, hidden = known_messages(projection)
    format = projection.format

    def changed(each: Known, place: int) -> bool:
        if each.group < 0 or each.raw is not projection.source[each.position[0]]:
            return False
        before, now = projection.read(each.position[0]), format.read(given[place], place)
        return (before.role, before.name, before.parts) != (now.role, now.name, now.parts)

    found, altered = align(known, given, format, changed=changed if verify else None)
    partial = _keep_whole_groups(projection, found, hidden)
    return _Planner(projection, found, altered, given, partial).plan()


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
        since = 0
        for version, until in [(raw, NEVER)] if ordinal not in history.versions else history.of(ordinal, raw):
            if version is not None:
                known.append(Known((ordinal, 0, 0), id, version, role, shown, since, min(gone, until)))
            since = until + 1
    return known, history.hidden


class _History:
    """The times at which each message was shown, as numbers of edits. Holds state.

    Attributes:
        made: When a summary was written, by its id.
        gone: When a hidden group was last shown, by its id.
        versions: The rewritten messages shown at an ordinal, each with the last time before it was shown.
        hidden: Ordinals whose message a rewrite removed.
    """

    def __init__(self, journal: Iterable[Applied]) -> None:
        self.made: dict[int, int] = {}
        self.gone: dict[int, int] = {}
        self.versions: dict[int, list[tuple[Any, int]]] = defaultdict(list)
        self.hidden: set[int] = set()
        for time, whole in enumerate(journal):
            for applied in flat([whole]):
                self._note(applied, time)

    def _note(self, applied: Applied, time: int) -> None:
        edit = applied.edit
        if isinstance(edit, Rewrite):
            for (ordinal, _), message in zip(applied.before, edit.messages, strict=False):
                self.versions[ordinal].append((None if message is None else message.raw, time))
                if message is None:
                    self.hidden.add(ordinal)
        elif isinstance(edit, Restore):
            for id in edit.groups:
                self.gone.pop(id, None)
        elif not isinstance(edit, Together):
            self.gone.update(dict.fromkeys(edit.groups, time))
            if applied.made is not None:
                self.made[applied.made] = time + 1

    def of(self, ordinal: int, raw: Any) -> list[tuple[Any, int]]:
        """Return the messages shown at an ordinal, each with the last time it was shown."""
        raws, times = zip(*self.versions[ordinal], strict=True)
        return list(zip((raw, *raws), (*times, NEVER), strict=True))


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


class _Planner:
    """Merges a list with the messages that only the source has. Holds state: the progress so far."""

    def __init__(
        self,
        projection: Projection,
        found: Sequence[Known | None],
        altered: set[int],
        given: Sequence[Any],
        partial: Collection[int],
    ) -> None:
        self._projection = projection
        self._found = found
        self._altered = altered  # places in the list
        self._given = given
        self._partial = partial
        self._early: set[int] = set()  # ordinals that were placed with the first message of their group
        self._next = 0  # the first ordinal that is not placed yet
        self._plan = Plan([], [], set(), {}, 0, HostChanges())
        self._removed: list[int] = []
        self._end = max((max(self._stood_for(known)) + 1 for known in found if known is not None), default=0)

    def _stood_for(self, known: Known) -> Sequence[int]:
        """Return the ordinal of a message, or those of the messages that a summary replaces."""
        if known.group >= 0:
            return (known.position[0],)
        return list(chain.from_iterable(self._projection.stands_for([known.group])))

    def plan(self) -> Plan:
        """Return the plan."""
        plan, source = self._plan, self._projection.source
        new: list[int] = []
        summaries: dict[int, list[int]] = defaultdict(list)  # the places of their messages
        plan.matched = max((place + 1 for place, known in enumerate(self._found) if known is not None), default=0)
        for place, known in enumerate(self._found[: plan.matched]):
            if known is None:
                new.append(place)
                continue
            self._place_source(min(self._stood_for(known)))
            for each in new:
                self._place(self._given[each], None, each)
            new.clear()
            if known.group < 0:
                summaries[known.group].append(place)
            else:
                self._place_known(known, place)
        self._place_source(self._end)
        for id, places in summaries.items():
            if not self._altered.isdisjoint(places):
                plan.summaries[id] = [self._given[place] for place in places]
        plan.shown = frozenset(summaries)
        added = sum(ordinal is None for _, ordinal in plan.entries)
        plan.changes = HostChanges(
            altered=tuple(sorted(plan.altered)),
            removed=tuple(self._removed),
            rewound=tuple(range(self._end, len(source))),
            added=added,
        )
        return plan

    def _place(self, raw: Any, ordinal: int | None, place: int | None) -> None:
        self._plan.entries.append((raw, ordinal))
        self._plan.places.append(place)

    def _place_known(self, known: Known, place: int) -> None:
        ordinal = known.position[0]
        if place in self._altered:
            self._plan.altered.add(ordinal)
        self._place(self._given[place] if place in self._altered else self._projection.source[ordinal], ordinal, place)
        self._next = ordinal + 1

    def _place_source(self, end: int) -> None:
        """Place the hidden messages up to an ordinal; shown messages that the list does not have were removed.

        A group whose last message was rewound is dropped whole. A hidden group of which the list has a part as new messages is
        placed whole, so that none of its results answers a call of the new group.
        """
        projection = self._projection
        for ordinal in range(self._next, end):
            id = projection.grouping.group_of[ordinal]
            if projection.ordinals(id)[-1] >= self._end or ordinal in self._early:
                continue
            if id in self._partial and not projection.is_included(id):
                for each in projection.ordinals(id):
                    self._place(projection.source[each], each, None)
                    self._early.add(each)
            elif not projection.is_included(id) or not projection.shows(ordinal):
                self._place(projection.source[ordinal], ordinal, None)
            else:
                self._removed.append(ordinal)
        self._next = max(self._next, end)


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
    return Plan.of(list(zip(given[:matched], ordinals, strict=False)), changed)

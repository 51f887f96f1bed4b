"""Sync: compare a host's list with a known conversation and plan what stays and what changes.

Nothing is changed here; `Intake.sync` carries out the `Plan`. The list may be the source, the last view or an earlier one,
followed by new messages. The host may also have altered, removed or added messages, or returned to an earlier point.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, cast

import attrs

from ..formats import MessageFormat
from .alignment import NEVER, Known, Match, align
from .edits import Drop, Replace, Restore, Rewrite, Together
from .journal import Applied, flat
from .projection import Projection
from .reminders import has_moved_reminder, is_stripped


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

    def altered_groups(self, old: Projection) -> set[int]:
        """Return the previous ids of the groups of which a message changed."""
        return {old.grouping.group_of[ordinal] for ordinal in self.altered}


def edits_after(
    journal: Iterable[Applied],
    altered: Collection[int],
    summaries: Mapping[int, Sequence[Any]] | None = None,
    format: MessageFormat | None = None,
) -> list[Applied]:
    """Return the edits that stay: rewrites of altered groups are removed, and summaries get the host's text.

    Args:
        journal: The edits.
        altered: The groups of which a message changed.
        summaries: The host's messages in place of a summary, by the summary's id.
        format: Reads these messages.
    """

    def after(applied: Applied) -> Applied | None:
        edit = applied.edit
        if isinstance(edit, Rewrite):
            return None if edit.group in altered else applied
        written = summaries.get(applied.made) if summaries and applied.made is not None else None
        if isinstance(edit, Replace) and written and format:
            edit = attrs.evolve(edit, messages=[format.read(raw) for raw in written])
            return attrs.evolve(applied, edit=edit, known=None)
        if not isinstance(edit, Together):
            return applied
        parts = [left for part in applied.parts if (left := after(part)) is not None]
        whole = Together(*[cast("Drop | Replace | Rewrite", part.edit) for part in parts], reason=edit.reason)
        known = applied.known if len(parts) == len(applied.parts) else None
        return attrs.evolve(applied, edit=whole, parts=tuple(parts), known=known) if parts else None

    return [left for applied in journal if (left := after(applied)) is not None]


class PassedList:
    """Tells whether a list begins with the whole conversation. Holds state: the last list that began with the source.

    A host that works on copies passes the same copies again, which are then compared by identity. The last list grows with the
    new messages, so that lists of one length are compared, at C speed and without a copy.
    """

    def __init__(self) -> None:
        self._last: list[Any] = []

    def clear(self) -> None:
        """Forget the last list, because the source is about to change."""
        self._last = []

    def continued(self, projection: Projection, given: list[Any], format: MessageFormat, edited: bool) -> int | None:
        """Return how many messages at the start are the whole source or, after edits, the whole view; ``None`` if neither."""
        source, last = projection.source, self._last
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
        elif edited and (view := projection.raws()):
            known = _begins_with(view, given, format)
        return known


def _begins_with(known: Sequence[Any], given: Sequence[Any], format: MessageFormat) -> int | None:
    """Return the number of known messages if a list begins with them; ``None`` if it does not."""
    count = len(known)
    if count > len(given):
        return None
    return count if format.common_prefix(known, given) == count else None


def read_before(count: int, journal: Iterable[Applied]) -> list[Applied]:
    """Return the edits; those decided when more than ``count`` messages had been read lose their ``known``."""
    return [each if (each.known or 0) <= count else attrs.evolve(each, known=None) for each in journal]


def accounts_for(
    projection: Projection, journal: Sequence[Applied], given: Sequence[Any], format: MessageFormat, *, by_id: bool
) -> bool:
    """Whether a list accounts for the whole source, and so continues the conversation. Cost: as for `follow`.

    Each source message must be in the list unchanged, or be shown and have only lost or gained parts, or be replaced by a
    summary in the list. If the host names the conversation (``by_id``), messages before a known one may be altered or missing.
    The newest source message may also be a reminder, see `has_moved_reminder`.
    """
    if _begins_with(projection.source, given, format) is not None or has_moved_reminder(projection, given, format):
        return True
    if by_id and journal and (view := projection.raws()) and _begins_with(view, given, format) is not None:
        return True
    plan = follow(projection, journal, given, format, verify=False)
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


def follow(
    projection: Projection, journal: Iterable[Applied], given: Sequence[Any], format: MessageFormat, *, verify: bool
) -> Plan:
    """Return how a list continues a conversation. O(messages), and O(contents) of those that are not the same objects.

    Args:
        projection: The known conversation.
        journal: The edits that are currently applied, which contain the versions shown earlier.
        given: The host's full list.
        format: Decides which messages are the same.
        verify: Whether to compare the contents of the same objects too.
    """
    if not verify and has_moved_reminder(projection, given, format):
        matches: list[Match | None] = [None] * len(given)
        for ordinal, group in enumerate(projection.grouping.group_of[:-1]):
            matches[ordinal] = Match(Known((ordinal, 0, 0), group))
        return _Planner(projection, matches, given, _keep_whole_groups(projection, matches, set())).plan()
    known, hidden = known_messages(projection, journal)

    def changed(each: Known, place: int) -> bool:
        if each.group < 0 or each.raw is not projection.source[each.position[0]]:
            return False
        before, now = projection.read(each.position[0]), format.read(given[place], place)
        return (before.role, before.name, before.parts) != (now.role, now.name, now.parts)

    matches = align(known, given, format, changed=changed if verify else None)
    partial = _keep_whole_groups(projection, matches, hidden)
    return _Planner(projection, matches, given, partial).plan()


def known_messages(projection: Projection, journal: Iterable[Applied]) -> tuple[list[Known], set[int]]:
    """Return every message in every version that was or may be shown, in order, and the ordinals that a rewrite removed."""
    history = _History(journal)
    known: list[Known] = []
    group_of, included = projection.grouping.group_of, projection.is_included
    for ordinal, raw in enumerate(projection.source):
        for id in projection.visibility.at_anchor(ordinal):
            times = history.made.get(id, 0), history.gone.get(id, NEVER)
            for part, each in enumerate(projection.inserted[id].messages):
                known.append(Known((ordinal, -1, -2 * id + part), id, each.raw, each.role, included(id), *times))
        group = group_of[ordinal]
        shown, gone, role = included(group), history.gone.get(group, NEVER), projection.read(ordinal).role
        since = 0
        for version, until in [(raw, NEVER)] if ordinal not in history.versions else history.of(ordinal, raw):
            if version is not None:
                known.append(Known((ordinal, 0, 0), group, version, role, shown, since, min(gone, until)))
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


def _keep_whole_groups(projection: Projection, matches: list[Match | None], hidden: set[int]) -> set[int]:
    """Forget the matches of groups of which only a part is in the list, so that they are new; return these groups' ids."""
    found: dict[int, set[Any]] = defaultdict(set)
    for match in matches:
        if match is not None:
            found[match.known.group].add(match.known.position)
    partial = {id for id, positions in found.items() if not _is_whole(projection, id, positions, hidden)}
    for place, match in enumerate(matches):
        if match is not None and match.known.group in partial:
            matches[place] = None
    return partial


def _is_whole(projection: Projection, id: int, positions: set[Any], hidden: set[int]) -> bool:
    if id < 0:
        return len(positions) == len(projection.inserted[id].messages)
    return {position[0] for position in positions}.issuperset(set(projection.ordinals(id)) - hidden)


class _Planner:
    """Merges a list with the messages that only the source has. Holds state: the progress so far."""

    def __init__(
        self, projection: Projection, matches: Sequence[Match | None], given: Sequence[Any], partial: Collection[int]
    ) -> None:
        self._projection = projection
        self._matches = matches
        self._given = given
        self._partial = partial
        self._early: set[int] = set()  # ordinals that were placed with the first message of their group
        self._next = 0  # the first ordinal that is not placed yet
        self._plan = Plan([], [], set(), {}, 0, HostChanges())
        self._removed: list[int] = []
        self._end = max((max(self._stood_for(match)) + 1 for match in matches if match is not None), default=0)

    def _stood_for(self, match: Match) -> Sequence[int]:
        """Return the ordinal of a message, or those of the messages that a summary replaces."""
        known = match.known
        if known.group >= 0:
            return (known.position[0],)
        return list(chain.from_iterable(self._projection.stands_for([known.group])))

    def plan(self) -> Plan:
        """Return the plan."""
        plan, source = self._plan, self._projection.source
        new: list[int] = []
        summaries: dict[int, list[Match]] = defaultdict(list)
        plan.matched = max((place + 1 for place, match in enumerate(self._matches) if match is not None), default=0)
        for place, match in enumerate(self._matches[: plan.matched]):
            if match is None:
                new.append(place)
                continue
            known = match.known
            self._place_source(min(self._stood_for(match)))
            for each in new:
                self._place(self._given[each], None, each)
            new.clear()
            if known.group < 0:
                summaries[known.group].append(attrs.evolve(match, known=attrs.evolve(known, raw=self._given[place])))
            else:
                self._place_known(match, place)
        self._place_source(self._end)
        for id, parts in summaries.items():
            if any(part.altered for part in parts):
                plan.summaries[id] = [part.known.raw for part in parts]
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

    def _place_known(self, match: Match, place: int) -> None:
        ordinal = match.known.position[0]
        if match.altered:
            self._plan.altered.add(ordinal)
        self._place(self._given[place] if match.altered else self._projection.source[ordinal], ordinal, place)
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

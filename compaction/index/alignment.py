"""Alignment: which of the known messages are in a list?

`known_messages` returns every version of every message that the view shows, showed or may show, and when.

`align` finds them in five steps, and keeps only matches that are in order:

1. the same object,
2. the same content, if it occurs once among the known messages and once in the list,
3. the same id, given by the host: the message was altered,
4. the same content that occurs several times, but only between two recognized neighbours, and as often there as before,
5. a single message between two recognized neighbours, in the place of a single known one of the same role: it was altered.

A message that is not recognized is new, so doubt never hides one.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import attrs

from ..errors import InputError
from ..formats import MessageFormat
from .columns import Columns
from .edits import Applied, Restore, Rewrite, named
from .keys import known_key, message_id, message_key

NEVER: Final = 1 << 62
"""A number of edits that is never reached."""

_MOST_VIEWS: Final = 64  # earlier views that are tried for messages which occur several times


class Position(NamedTuple):
    """A position in the order of all known messages.

    The messages of a summary stand before the source message at their ordinal, which may be hidden. ``number`` orders the
    messages there, of which a summary has two at most:

    >>> first, second, other = [Position.of_summary(id, part, anchor=5) for id, part in ((-1, 0), (-1, 1), (-2, 0))]
    >>> Position(4) < first < second < other < Position(5)
    True
    """

    ordinal: int
    side: int = 0  # 0 for a source message, -1 for one of a summary
    number: int = 0

    @classmethod
    def of_summary(cls, id: int, part: int, *, anchor: int) -> Position:
        """Return the position of a message of a summary: the first or the second part of the group with this id."""
        return cls(anchor, -1, part - 2 * id)


@attrs.define(eq=False)
class Known:
    """One version of a message: shown now, shown earlier, or hidden so far. Holds state: its key."""

    position: Position  # in the order of all known messages; versions of one message share it
    group: int
    raw: Any = None  # the message; ``None`` if only its key is known
    role: str | None = None
    is_shown: bool = True  # whether the view shows its group now
    since: int = 0  # the number of edits after which it was first shown
    until: int = NEVER  # the number of edits after which it was last shown
    key: str | None = None  # its key; `align` sets it when it compares contents

    @property
    def ordinal(self) -> int:
        """The ordinal of a source message; for a message of a summary, that of the source message after it."""
        return self.position.ordinal


def known_messages(columns: Columns) -> list[Known]:
    """Return every message in every version that was or may be shown, in order."""
    groups, included = columns.grouping.group_of, columns.is_included
    known = [
        Known(Position(ordinal), groups[ordinal], raw, columns.read(ordinal).role, included(groups[ordinal]))
        for ordinal, raw in enumerate(columns.source)
    ]
    for id, group in columns.inserted.items():
        for part, each in enumerate(group.messages):
            known.append(Known(Position.of_summary(id, part, anchor=group.anchor), id, each.raw, each.role, group.shown))
    return sorted(_with_times(known, columns.journal), key=lambda each: each.position)


def _with_times(known: Sequence[Known], journal: Sequence[Applied]) -> list[Known]:
    """Note in all versions when the view showed them, and return them with the versions that rewrites showed."""
    newest: dict[int, dict[Position, Known]] = defaultdict(dict)  # the newest version of each message, by group
    for each in known:
        newest[each.group][each.position] = each
    rewritten: list[Known] = []
    for time, applied in [(time, part) for time, whole in enumerate(journal) for part in whole.simple]:
        edit = applied.edit
        if isinstance(edit, Rewrite):
            for (ordinal, _), message in zip(applied.before, edit.messages, strict=False):
                before = newest[edit.group].pop(Position(ordinal))
                before.until = time
                if message is not None:
                    rewritten.append(attrs.evolve(before, raw=message.raw, since=time + 1, until=NEVER))
                    newest[edit.group][before.position] = rewritten[-1]
            continue
        for each in [each for id in named(edit) for each in newest[id].values()]:
            each.until = NEVER if isinstance(edit, Restore) else time
        for each in () if applied.made is None else newest[applied.made].values():
            each.since = time + 1
    return [*known, *rewritten]


def align(
    known: Sequence[Known], given: Sequence[Any], format: MessageFormat, *, changed: Callable[[Known, int], bool] | None = None
) -> tuple[list[Known | None], set[int]]:
    """Return the known message for each message of a list, ``None`` for a new one, and the places of those that were altered.

    ``known`` is in order. ``changed`` tells whether a known message, which the list has as the same object at a place, has
    another content now; ``None`` assumes that none has.

    Cost: O(messages) if the list has the same objects, with others only after them; otherwise O(contents).
    """
    search = _Search(known, given, format)
    search.find([id(raw) for raw in given], lambda each: id(each.raw))  # 1
    if changed is not None:
        search.altered = {place for place, each in enumerate(search.found) if each is not None and changed(each, place)}
    if not search.needs_no_contents():
        search.read_contents()
        search.find(search.keys, lambda each: each.key)  # 2
        search.find_ids()  # 3
        moved = search.keep_in_order()
        view = search.view()
        search.find_repeated(view)  # 4
        search.find_altered(view, moved)  # 5
    search.keep_in_order()
    return search.found, {place for place in search.altered if search.found[place] is not None}


class _Gap(NamedTuple):
    """Successive messages of the list that were not found, between two neighbours that were."""

    places: list[int]
    known: Sequence[Known]  # the known messages between the same neighbours
    is_last: bool  # whether the list ends there, without a second neighbour


class _Search:
    """The messages of a list that were found so far. Holds state; `align` calls the steps in order."""

    def __init__(self, known: Sequence[Known], given: Sequence[Any], format: MessageFormat) -> None:
        self._known, self._given, self._format = known, given, format
        self.found: list[Known | None] = [None] * len(given)
        self.altered: set[int] = set()  # the places of found messages whose content changed
        self.keys: list[str | None] = []  # of each message of the list; ``None`` if it was the same object

    def find(self, values: Sequence[Any], value_of: Callable[[Known], Any]) -> list[int]:
        """Find messages by a value that one message of the list and one known one have, not ``None``; return their places."""
        by_value: dict[Any, Known | None] = {}
        for each in self._known:
            value = value_of(each)
            other = by_value.setdefault(value, each)
            if other is not None and other.position != each.position:
                by_value[value] = None
        count, taken, places = Counter(values), self._positions(), list[int]()
        for place, value in enumerate(values):
            known = by_value.get(value) if value is not None and count[value] == 1 else None
            if known is not None and known.position not in taken and self.found[place] is None:
                self.found[place] = known
                places.append(place)
        return places

    def _positions(self) -> set[Position]:
        return {each.position for each in self.found if each is not None}

    def _role(self, place: int) -> str:
        return self._format.read(self._given[place], place).role

    def needs_no_contents(self) -> bool:
        """Whether everything was found; or all known messages up to the last, in order, and the others are behind them."""
        there = [each for each in self.found if each is not None]
        if None in self.found[: len(there)]:
            return False
        in_order = all(one.position < other.position for one, other in itertools.pairwise(there))
        return len(there) == len(self.found) or bool(there and in_order and there[-1].position == self._known[-1].position)

    def read_contents(self) -> None:
        """Compute the keys of the known messages, and of those of the list that were not found."""
        self.keys = [None if each is not None else self._key(place) for place, each in enumerate(self.found)]
        for one in self._known:
            one.key = one.key or known_key(one.raw, self._format)

    def _key(self, place: int) -> str:
        try:
            return message_key(self._given[place], self._format, place)
        except InputError:
            self._role(place)  # its error names the place
            raise

    def find_ids(self) -> None:
        """Find messages that have the same id and role as a known one."""
        ids = [None if each is not None else message_id(raw) for each, raw in zip(self.found, self._given, strict=True)]
        values = [id and (id, self._role(place)) for place, id in enumerate(ids)]
        self.altered.update(self.find(values, lambda each: (message_id(each.raw), each.role)))

    def keep_in_order(self) -> dict[int, Known]:
        """Keep the longest run of matches in order; forget the others, and return them by their places."""
        ends: list[Position] = []  # the last position of the run of each length, as low as possible
        last: list[int] = []  # its place
        before: dict[int, int | None] = {}  # the place before each in its run
        for place, each in enumerate(self.found):
            if each is not None:
                at = bisect_left(ends, each.position)
                ends[at : at + 1] = [each.position]
                last[at : at + 1] = [place]
                before[place] = last[at - 1] if at else None
        kept = last[-1] if last else None
        while kept is not None:
            kept = before.pop(kept)
        moved = {place: each for place in before if (each := self.found[place]) is not None}
        for place in moved:
            self.found[place] = None
        return moved

    def view(self) -> Sequence[Known]:
        """Return the known messages of a view that showed the found ones and not the missing ones.

        A view is named by the number of edits before it. For example, edit 1 replaced ``b`` and the first ``ok`` by the summary
        ``S``, and edit 2 dropped the second ``ok``. Which one is in the list ``a S ok d``? ::

            known           a     b     S     ok    ok    d        a, S and d were found: they are in the views 1 and 2
            since-until     0-    0-0   1-    0-0   0-1   0-
            view 2          a           S                 d        no: the list has an ok between S and d
            view 1          a           S           ok    d        yes: it is the second one

        Only the newest view is tried, and those that were the last to show a version: behind any other, groups were only put
        back. If it is not certain which view that was, return all known messages that may have been in it.
        """
        possible = self._possible_views()
        if not possible:
            return self._known
        newest = possible[-1]
        last_to_show = {each.until for each in self._known if each.until in possible}
        for number in sorted({newest, *last_to_show}, reverse=True)[:_MOST_VIEWS]:
            view = [each for each in self._known if each.since <= number <= each.until]
            gaps = [gap for gap in self._gaps(view) if not gap.is_last]
            if all([self.keys[place] for place in gap.places] == [each.key for each in gap.known] for gap in gaps):
                return view
        return [each for each in self._known if each.since <= newest and each.until >= possible[0]]

    def _possible_views(self) -> range:
        """Return the views that showed every found message, and none that is missing in the list before the last of these."""
        there = [each for each in self.found if each is not None]
        if not there:
            return range(0)
        since, until = max(each.since for each in there), min(each.until for each in there)
        positions, keys, count = self._positions(), set(self.keys), Counter([each.key for each in self._known])
        for each in self._known:
            is_before = each.position < there[-1].position
            is_missing = each.position not in positions and each.key not in keys and count[each.key] == 1
            if is_before and is_missing and each.until < until:
                since = max(since, each.until + 1)
        return range(since, until + 1)

    def _gaps(self, known: Sequence[Known]) -> list[_Gap]:
        """Return the gaps of the list, each with the part of ``known`` that belongs there."""
        positions = [each.position for each in known]
        gaps: list[_Gap] = []
        start, places = 0, list[int]()
        for place, each in enumerate(self.found):
            if each is None:
                places.append(place)
                continue
            if places:
                gaps.append(_Gap(places, known[start : bisect_left(positions, each.position)], is_last=False))
            start, places = bisect_right(positions, each.position), []
        if places:
            gaps.append(_Gap(places, known[start:], is_last=True))
        return gaps

    def find_repeated(self, view: Sequence[Known]) -> None:
        """Find contents that occur several times, where the same neighbours have as many of them between them as before.

        After the last found neighbour, the messages are compared one by one until two of them differ.
        """
        for places, known, is_last in self._gaps(view):
            if is_last:
                for place, each in zip(places, known, strict=False):
                    if self.keys[place] != each.key:
                        break
                    self.found[place] = each
                continue
            here: dict[str | None, list[int]] = defaultdict(list)
            before: dict[str | None, dict[Position, Known]] = defaultdict(dict)
            for place in places:
                here[self.keys[place]].append(place)
            for each in known:
                before[each.key].setdefault(each.position, each)
            for key, same in here.items():
                if len(same) == len(before[key]):
                    for place, each in zip(same, before[key].values(), strict=True):
                        self.found[place] = each

    def find_altered(self, view: Sequence[Known], moved: dict[int, Known]) -> None:
        """Find single messages in the place of a single known one; a hidden one only if the list contains other hidden ones.

        A message that is only out of order (``moved``, or of a known content) is not an altered version of another.
        """
        contents, keys = {each.key for each in self._known}, set(self.keys)
        elsewhere = {each.position for each in self._known if each.key in keys} | {each.position for each in moved.values()}
        has_hidden = any(each is not None and not each.is_shown for each in self.found)
        for places, known, is_last in self._gaps(view):
            before = {each.position: each for each in known if has_hidden or each.is_shown}
            place, is_single = places[0], len(places) == len(before) == 1
            if is_last or place == 0 or not is_single or place in moved or self.keys[place] in contents:
                continue
            [each] = before.values()
            if each.position not in elsewhere and each.role in (None, self._role(place)):
                self.found[place] = each
                self.altered.add(place)

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
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Final, TypeAlias

import attrs

from ..errors import InputError
from ..formats import MessageFormat, fields_of
from .columns import Columns
from .edits import Applied, Restore, Rewrite, named
from .keys import known_key, message_key

_MOST_VIEWS: Final = 64
"""The number of earlier views that are tried for messages which occur several times."""


NEVER: Final = 1 << 62
"""A number of edits that is never reached."""

Position: TypeAlias = tuple[int, int, int]
"""``(ordinal, 0, 0)`` for a source message. ``(ordinal, -1, number)`` for a message of a summary: it stands before that source
message, which may be hidden, and ``number`` orders the messages there, of which a summary has two at most."""


@attrs.define(eq=False)
class Known:
    """A message of the conversation, in a version that the view shows, showed or may show. Holds state: its key."""

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
        return self.position[0]


def known_messages(columns: Columns) -> tuple[list[Known], set[int]]:
    """Return every message in every version that was or may be shown, in order, and the ordinals that a rewrite removed."""
    made, gone, rewritten = _times(columns.journal)
    group_of, included = columns.grouping.group_of, columns.is_included
    known = [
        Known((group.anchor, -1, part - 2 * id), id, each.raw, each.role, group.shown, made.get(id, 0), gone.get(id, NEVER))
        for id, group in columns.inserted.items()
        for part, each in enumerate(group.messages)
    ]
    for ordinal, raw in enumerate(columns.source):
        id = group_of[ordinal]
        shown, until, role = included(id), gone.get(id, NEVER), columns.read(ordinal).role
        versions = [(raw, 0), *rewritten.get(ordinal, ())]
        ends = [*(since - 1 for _, since in versions[1:]), NEVER]  # each was shown until the next one
        for (version, since), end in zip(versions, ends, strict=True):
            if version is not None:
                known.append(Known((ordinal, 0, 0), id, version, role, shown, since, min(until, end)))
    known.sort(key=lambda each: each.position)
    return known, {ordinal for ordinal, versions in rewritten.items() if any(raw is None for raw, _ in versions)}


def _times(journal: Iterable[Applied]) -> tuple[dict[int, int], dict[int, int], dict[int, list[tuple[Any, int]]]]:
    """Return when summaries were first shown and hidden groups last, by id, and what rewrites showed at an ordinal, and when.

    A time is a number of edits. A message that a rewrite removed is ``None``.
    """
    made: dict[int, int] = {}
    gone: dict[int, int] = {}
    rewritten: dict[int, list[tuple[Any, int]]] = defaultdict(list)
    for time, whole in enumerate(journal):
        for applied in whole.simple:
            edit = applied.edit
            if isinstance(edit, Rewrite):
                for (ordinal, _), message in zip(applied.before, edit.messages, strict=False):
                    rewritten[ordinal].append((None if message is None else message.raw, time + 1))
            elif isinstance(edit, Restore):
                for id in edit.groups:
                    gone.pop(id, None)
            else:
                gone.update(dict.fromkeys(named(edit), time))
                if applied.made is not None:
                    made[applied.made] = time + 1
    return made, gone, rewritten


def align(
    known: Sequence[Known],
    given: Sequence[Any],
    format: MessageFormat,
    *,
    changed: Callable[[Known, int], bool] | None = None,
) -> tuple[list[Known | None], set[int]]:
    """Return the known message for each message of a list, ``None`` for a new one, and the places of those that were altered.

    ``known`` is in order. ``changed`` tells whether a known message, which the list has as the same object at a place, has
    another content now; ``None`` assumes that none has.

    Cost: O(messages) if the list has the same objects, with others only after them; otherwise O(contents).
    """
    found: list[Known | None] = _unique(given, known, id, lambda each: id(each.raw))  # 1
    altered = {place for place, each in enumerate(found) if changed and each is not None and changed(each, place)}
    if None in found and not _adds_only_to_the_end(found, known):
        altered |= _find_by_content(found, known, given, format)
    _keep_in_order(found)
    return found, {place for place in altered if found[place] is not None}


def _adds_only_to_the_end(found: Sequence[Known | None], known: Sequence[Known]) -> bool:
    """Whether the found messages are in order, begin the list and include the last known one."""
    there = [each for each in found if each is not None]
    in_order = all(one.position < other.position for one, other in itertools.pairwise(there))
    return bool(in_order and there and None not in found[: len(there)] and there[-1].position == known[-1].position)


def _find_by_content(
    found: list[Known | None], known: Sequence[Known], given: Sequence[Any], format: MessageFormat
) -> set[int]:
    """Find further messages of the list (steps 2 to 5), and return the places of those that were altered."""
    keys = [None if each is not None else _key_at(place, given[place], format) for place, each in enumerate(found)]
    for one in known:
        one.key = one.key or known_key(one.raw, format)
    _add(found, _unique(keys, known, lambda value: value, lambda each: each.key))  # 2
    by_id = _unique(given, known, _id_of, lambda each: _id_of(each.raw))  # 3
    altered: set[int] = set()
    for place, each in enumerate(by_id):
        if found[place] is None and each is not None and format.read(given[place], place).role == each.role:
            altered.add(place)
    _add(found, [each if place in altered else None for place, each in enumerate(by_id)])
    # the known messages that are in the list, even out of order: one that moved is not an altered version of another
    contents, contents_now = {each.key for each in known}, set(keys)
    listed = {place for place, each in enumerate(found) if each is not None or keys[place] in contents}
    in_list = (each for each in known if each.key in contents_now)
    positions = {each.position for each in (*found, *in_list) if each is not None}
    _keep_in_order(found)
    view = _of_one_view(found, known, keys)
    _between_neighbours(found, view, keys)  # 4
    return altered | _altered_between_neighbours(found, view, given, format, listed=listed, positions=positions)  # 5


def _key_at(place: int, raw: Any, format: MessageFormat) -> str:
    try:
        return message_key(raw, format, place)
    except InputError:
        format.read(raw, place)  # its error names the place
        raise


def _unique(
    given: Sequence[Any], known: Iterable[Known], of_given: Callable[[Any], Any], of_known: Callable[[Known], Any]
) -> list[Known | None]:
    """Return for each message of the list the known message with the same value, if each side has only one with it.

    ``of_given`` and ``of_known`` return the values; a message with the value ``None`` is not compared.
    """
    by_value: dict[Any, Known | None] = {}
    for each in known:
        value = of_known(each)
        other = by_value.setdefault(value, each)
        if other is not None and other.position != each.position:
            by_value[value] = None
    values = [of_given(raw) for raw in given]
    count = Counter(values)
    return [by_value.get(value) if value is not None and count[value] == 1 else None for value in values]


def _add(found: list[Known | None], more: Iterable[Known | None]) -> None:
    """Add matches at places that have none, except of known messages that were found elsewhere."""
    taken = {each.position for each in found if each is not None}
    for place, each in enumerate(more):
        if found[place] is None and each is not None and each.position not in taken:
            found[place] = each


def _id_of(raw: Any) -> str | None:
    """Return the id that a host or a provider gave a message."""
    id = (fields_of(raw) or {}).get("id")
    return id if isinstance(id, str) and id else None


def _keep_in_order(found: list[Known | None]) -> None:
    """Forget the matches that are out of order; the longest run of matches in order stays."""
    ends: list[Position] = []  # the last position of the run of each length, as low as possible
    last: list[int] = []  # its place
    before: dict[int, int | None] = {}  # the place before each in its run
    for place, each in enumerate(found):
        if each is not None:
            at = bisect_left(ends, each.position)
            ends[at : at + 1] = [each.position]
            last[at : at + 1] = [place]
            before[place] = last[at - 1] if at else None
    kept = last[-1] if last else None
    while kept is not None:
        kept = before.pop(kept)
    for place in before:
        found[place] = None


def _of_one_view(found: Sequence[Known | None], known: Sequence[Known], keys: Sequence[str | None]) -> Sequence[Known]:
    """Return the known messages of a view that showed the found ones and not the missing ones.

    A view is named by the number of edits before it. For example, edit 1 replaced ``b`` and the first ``ok`` by the summary
    ``S``, and edit 2 dropped the second ``ok``. Which one is in the list ``a S ok d``? ::

        known           a     b     S     ok    ok    d        a, S and d were found: they are in the views 1 and 2
        since-until     0-    0-0   1-    0-0   0-1   0-
        view 2          a           S                 d        no: the list has an ok between S and d
        view 1          a           S           ok    d        yes: it is the second one

    If it is not certain which view that was, return all known messages that may have been in it.
    """
    there = [each for each in found if each is not None]
    if not there:
        return known
    since, until = max(each.since for each in there), min(each.until for each in there)  # these views showed all found ones
    positions, count, listed = {each.position for each in there}, Counter([each.key for each in known]), set(keys)
    for each in known:  # the view is a later one than those that showed a message which the list does not have
        is_missing = each.position not in positions and each.key not in listed and count[each.key] == 1
        if is_missing and each.position < there[-1].position and each.until < until:
            since = max(since, each.until + 1)
    if since > until:
        return known
    times = sorted({until, *(each.until for each in known if since <= each.until < until)}, reverse=True)
    for time in times[:_MOST_VIEWS]:
        view = [each for each in known if each.since <= time <= each.until]
        gaps = [(places, between) for places, between, ends in _gaps(found, view) if not ends]
        if all([keys[place] for place in places] == [each.key for each in between] for places, between in gaps):
            return view
    return [each for each in known if each.since <= until and since <= each.until]


def _gaps(found: Sequence[Known | None], known: Sequence[Known]) -> Iterable[tuple[list[int], Sequence[Known], bool]]:
    """Yield the places between two found neighbours, the known messages between them, and whether the list ends there."""
    positions = [each.position for each in known]
    start, places = 0, list[int]()
    for place, each in enumerate([*found, None]):
        if each is None and place < len(found):
            places.append(place)
            continue
        end = len(known) if each is None else bisect_left(positions, each.position)
        if places:
            yield places, known[start:end], each is None
        if each is not None:
            start, places = end, []
            while start < len(known) and known[start].position == each.position:
                start += 1


def _between_neighbours(found: list[Known | None], known: Sequence[Known], keys: Sequence[str | None]) -> None:
    """Find messages that occur several times, where the same neighbours have as many of them between them as before.

    After the last found neighbour, the messages are compared one by one until two of them differ.
    """
    for places, between, ends in list(_gaps(found, known)):
        if ends:
            pairs = zip(places, between, strict=False)
            same = itertools.takewhile(lambda pair: keys[pair[0]] == pair[1].key, pairs)
            for place, each in same:
                found[place] = each
            continue
        mine: dict[str | None, list[int]] = defaultdict(list)
        theirs: dict[str | None, dict[Position, Known]] = defaultdict(dict)
        for place in places:
            mine[keys[place]].append(place)
        for each in between:
            theirs[each.key].setdefault(each.position, each)
        for key, here in mine.items():
            if len(here) == len(theirs.get(key, ())):
                for place, each in zip(here, theirs[key].values(), strict=True):
                    found[place] = each


def _altered_between_neighbours(
    found: list[Known | None],
    known: Sequence[Known],
    given: Sequence[Any],
    format: MessageFormat,
    *,
    listed: Collection[int],
    positions: Collection[Position],
) -> set[int]:
    """Find single messages in the place of a known message of the same role, and return their places.

    A hidden known message is found only if the list contains other hidden ones. ``listed`` are the places of messages that
    were known before, at ``positions``; they are not altered.
    """
    altered: set[int] = set()
    has_hidden = any(each is not None and not each.is_shown for each in found)
    for places, between, ends in list(_gaps(found, known)):
        there = {each.position: each for each in between if has_hidden or each.is_shown}
        if ends or places[0] == 0 or len(places) != 1 or len(there) != 1 or places[0] in listed:
            continue
        [each] = there.values()
        if each.position not in positions and each.role in (None, format.read(given[places[0]], places[0]).role):
            found[places[0]] = each
            altered.add(places[0])
    return altered

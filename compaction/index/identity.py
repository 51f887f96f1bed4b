"""Identity: which message of the host is this?

A host passes its list on each call. It may be the source, the last view or an earlier one, followed by new messages; the host
may also have altered, removed or added messages, or returned to an earlier point. Nothing is changed here: `follow` returns a
`Plan`, and `MessageIndex.sync` carries it out. `accounts_for` tells whether a list continues a conversation at all, and the
keys of `ListKeys` and `KnownLine` find the conversations that it may continue.

`align` finds the known messages in a list: by identity, then by content, then by the host's id; always in order. A message
that occurs once among the known ones and once in the list is the same message. A message that occurs several times is
recognized only between two recognized neighbours, and only if it occurs there as often as before. A message that is not
recognized is new, so doubt never hides one.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import operator
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from itertools import chain
from typing import Any, Final, TypeAlias, cast

import attrs

from ..errors import InputError, InvalidMessage
from ..formats import MessageFormat, fields_of
from ..json_data import too_deep
from ..messages import Message
from .edits import Restore, Rewrite, Together
from .journal import Applied, flat
from .projection import Projection

NEVER: Final = 1 << 62
"""A number of edits that is never reached."""

_MOST_VIEWS: Final = 64
"""The number of earlier views that are tried for messages which occur several times."""

_NEWEST: Final = 3
"""The number of messages in the key of the end of a list."""

_DIGEST_BYTES: Final = 12
_SORTED: Final = json.JSONEncoder(sort_keys=True)

_Position: TypeAlias = tuple[int, int, int]

# -------------------------------------------------------------------- the keys of messages and lists


def lookup_key(*parts: object) -> str:
    """Return a short digest of the parts, equal in every process."""
    text = "\0".join(map(str, parts)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).hexdigest()


def message_key(raw: Any, format: MessageFormat, place: int = 0) -> str:
    """Return a digest of a message, equal in every process for messages that the format regards as the same; O(content).

    Args:
        raw: The message.
        format: Its format.
        place: Its place in the list, for the error.

    Raises:
        InvalidMessage: If the message is nested too deeply, or has keys that JSON does not allow.
    """
    key = format.key(raw)
    try:
        is_plain = key is raw and raw.__class__ is dict  # its wire data has the same text, unless it holds other objects
        text = _json(key) if is_plain or not (isinstance(key, dict) or key is raw) else None
        if text is None:  # also if the key has objects of a framework, whose text may differ in another process
            text = json.dumps(format.to_wire(raw), sort_keys=True, default=repr)
    except RecursionError:
        raise too_deep([raw], place) from None
    except (TypeError, ValueError) as error:
        rule = f"the message is not JSON data ({error})"
        raise InvalidMessage(f"messages[{place}]", rule, "use strings as keys") from error
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).hexdigest()


def _json(key: object) -> str | None:
    """Return a key as JSON; ``None`` if it is not JSON data."""
    try:
        return _SORTED.encode(key)
    except (TypeError, ValueError):
        return None


def known_key(raw: Any, format: MessageFormat) -> str:
    """Return the key of a message; "?" if it cannot be compared, which is an error only for a message of the host's list."""
    try:
        return message_key(raw, format)
    except InputError:
        return "?"


class ListKeys:
    """The digests of a list's messages, computed when needed. Holds state: the digests so far.

    Args:
        given: The list.
        format: The format of its messages.
    """

    def __init__(self, given: Sequence[Any], format: MessageFormat) -> None:
        self.given = given
        self._format = format
        self._digests: dict[int, str] = {}
        self._whole: list[str] = [""]

    def digest(self, place: int) -> str:
        """Return the digest of the message at a place; O(content) the first time."""
        known = self._digests.get(place)
        if known is None:
            known = self._digests[place] = known_key(self.given[place], self._format)
        return known

    def last(self, count: int) -> tuple[str, ...]:
        """Return the digests of the newest among the first ``count`` messages."""
        known = self._digests
        return tuple([known.get(place) or self.digest(place) for place in range(max(0, count - _NEWEST), count)])

    def whole(self, count: int) -> str:
        """Return one digest of the first ``count`` messages together; O(contents) the first time."""
        while len(self._whole) <= count:
            self._whole.append(lookup_key(self._whole[-1], self.digest(len(self._whole) - 1)))
        return self._whole[count]

    @staticmethod
    def whole_of(keys: Iterable[str]) -> str:
        """Return `whole` of a list of which only the messages' keys are known."""
        return functools.reduce(lookup_key, keys, "")

    def line(self) -> KnownLine:
        """Return the whole list as a line that later lists may continue."""
        count = len(self.given)
        before = (self.last(count - 1), self.whole(count - 1)) if count else ((), "")
        return KnownLine(length=count, last=self.last(count), whole=self.whole(count), before=before)


@attrs.define(eq=False, kw_only=True)
class KnownLine:
    """A list that a host may continue: the source, or an earlier view with the messages after it. Holds state: its end.

    Args:
        base: The view; empty for the source.
        count: The number of source messages that the view replaces.
        length: The number of messages of the line.
        last: The digests of the newest messages.
        whole: One digest of all messages.
        before: ``last`` and ``whole`` without the newest message.
        is_specific: Whether the view cannot be confused with the beginning of another conversation.
    """

    base: Sequence[Any] = ()
    count: int = 0
    length: int = 0
    last: tuple[str, ...] = ()
    whole: str = ""
    before: tuple[tuple[str, ...], str] = ((), "")
    is_specific: bool = True

    @classmethod
    def of_view(cls, view: Sequence[Any], source: Sequence[Any], format: MessageFormat) -> KnownLine:
        """Return the line of a new view; O(contents)."""
        line = ListKeys(view, format).line()
        known = set(map(id, source))
        same = itertools.takewhile(lambda pair: pair[0] is pair[1], zip(view, source, strict=False))
        gap = sum(1 for _ in same)
        is_ours = any(id(raw) not in known for raw in view)
        return attrs.evolve(line, base=view, count=len(source), is_specific=is_ours or len(view) - gap >= _NEWEST)

    def add(self, digest: str) -> None:
        """Append a message of the source."""
        self.before = (self.last, self.whole)
        self.length += 1
        self.last = (*self.last, digest)[-_NEWEST:]
        self.whole = lookup_key(self.whole, digest)

    def shared(self, source: Sequence[Any], known: int, given: Sequence[Any], format: MessageFormat) -> int:
        """Return how many of the first messages of the source a list contains, if it continues this line.

        Args:
            source: The source.
            known: How many messages of the source to compare.
            given: The list.
            format: The format, which compares messages.
        """
        if not self.base:
            return format.common_prefix(source if len(source) == known else source[:known], given)
        if len(given) < len(self.base) or format.common_prefix(self.base, given) < len(self.base):
            return 0
        return self.count + format.common_prefix(source[self.count : known], given[len(self.base) :])


# -------------------------------------------------------------------- the known messages in a list


@attrs.frozen(eq=False)
class Known:
    """A message of the conversation, in a version that the view shows, showed or may show.

    Args:
        position: Its place in the order of all known messages; versions of one message share it.
        group: Its group's id.
        raw: The message; ``None`` if only its key is known.
        role: Its role, if known.
        is_shown: Whether the view shows its group now.
        since: The number of edits after which it was first shown.
        until: The number of edits after which it was last shown.
        key: Its key, if known.
    """

    position: _Position
    group: int
    raw: Any = None
    role: str | None = None
    is_shown: bool = True
    since: int = 0
    until: int = NEVER
    key: str | None = None


def align(
    known: Sequence[Known],
    given: Sequence[Any],
    format: MessageFormat,
    *,
    changed: Callable[[Known, int], bool] | None = None,
) -> tuple[list[Known | None], set[int]]:
    """Return the known message for each message of a list, ``None`` for a new one, and the places of those that were altered.

    Cost: O(messages) if the list has the same objects, with others only after them; otherwise O(contents).

    Args:
        known: Every known message, in order.
        given: The list.
        format: Decides which messages are the same.
        changed: Returns whether the content of a known message changed; its second argument is the place of the same object
            in the list. ``None`` to skip this.
    """
    found: list[Known | None] = _by(given, known, id, lambda each: id(each.raw))
    altered = {place for place, each in enumerate(found) if changed and each is not None and changed(each, place)}
    if None in found and not _adds_to_the_end(found, known):
        digests = [None if each is not None else _key_at(place, given[place], format) for place, each in enumerate(found)]
        of_known = {each: _key_of_known(each, format) for each in known}
        _add(found, _by(digests, known, lambda value: value, of_known.__getitem__))
        by_id = _by(given, known, _id_of, lambda each: None if each.raw is None else _id_of(each.raw))
        for place, each in enumerate(by_id):
            if found[place] is None and each is not None and format.read(given[place], place).role == each.role:
                altered.add(place)
        _add(found, [each if place in altered else None for place, each in enumerate(by_id)])
        in_both = _in_both(found, known, digests, of_known)
        _keep_in_order(found)
        view = _of_one_view(found, known, digests, of_known)
        _between_neighbours(found, view, digests, of_known)
        altered |= _altered_between_neighbours(found, view, given, format, in_both)
    _keep_in_order(found)
    return found, {place for place in altered if found[place] is not None}


def _adds_to_the_end(found: Sequence[Known | None], known: Sequence[Known]) -> bool:
    """Whether the list begins with known objects in their order, up to the last known one, and continues with others."""
    there = [each for each in found if each is not None]
    in_order = all(one.position < other.position for one, other in itertools.pairwise(there))
    return bool(there) and in_order and None not in found[: len(there)] and there[-1].position == known[-1].position


def _key_of_known(known: Known, format: MessageFormat) -> Hashable:
    """Return the key of a known message; if it cannot be compared, a value that no other message has."""
    if known.key is not None:
        return known.key
    try:
        return message_key(known.raw, format)
    except InputError:
        return known.position


def _key_at(place: int, raw: Any, format: MessageFormat) -> str:
    try:
        return message_key(raw, format, place)
    except InputError:
        format.read(raw, place)  # its error names the place
        raise


def _by(
    given: Sequence[Any], known: Iterable[Known], of_given: Callable[[Any], Any], of_known: Callable[[Known], Any]
) -> list[Known | None]:
    """Return for each message of the list the known message with the same value, if each side has only one with it."""
    by_value: dict[Any, Known | None] = {}
    for each in known:
        value = of_known(each)
        other = by_value.setdefault(value, each)
        if other is not None and other.position != each.position:
            by_value[value] = None
    values = [of_given(raw) for raw in given]
    count: dict[Any, int] = defaultdict(int)
    for value in values:
        count[value] += 1
    return [by_value.get(value) if value is not None and count[value] == 1 else None for value in values]


def _add(found: list[Known | None], more: Iterable[Known | None]) -> None:
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
    places = [place for place, each in enumerate(found) if each is not None]
    ends: list[_Position] = []
    last: list[int] = []
    before: dict[int, int | None] = {}
    for place in places:
        each = found[place]
        assert each is not None
        at = bisect_left(ends, each.position)
        ends[at : at + 1] = [each.position]
        last[at : at + 1] = [place]
        before[place] = last[at - 1] if at else None
    kept: set[int] = set()
    newest = last[-1] if last else None
    while newest is not None:
        kept.add(newest)
        newest = before[newest]
    for place in places:
        if place not in kept:
            found[place] = None


def _of_one_view(
    found: Sequence[Known | None], known: Sequence[Known], digests: Sequence[Hashable], of_known: dict[Known, Hashable]
) -> Sequence[Known]:
    """Return the known messages of a view that showed the found ones and not the missing ones.

    If it is not certain which view that was, return all known messages that may have been in it.
    """
    there = [each for each in found if each is not None]
    if not there:
        return known
    since, until = max(each.since for each in there), min(each.until for each in there)
    positions, count, listed = {each.position for each in there}, Counter(of_known.values()), set(digests)
    for each in known:
        is_missing = each.position not in positions and of_known[each] not in listed
        if is_missing and each.position < there[-1].position and count[of_known[each]] == 1:
            since = max(since, each.until + 1) if each.until < until else since
    times = sorted({until, *(each.until for each in known if since <= each.until < until)}, reverse=True)
    for time in times[:_MOST_VIEWS] if since <= until else ():
        view = [each for each in known if each.since <= time <= each.until]
        gaps = [(places, between) for places, between, ends in _gaps(found, view) if not ends]
        if all([digests[place] for place in places] == [of_known[each] for each in between] for places, between in gaps):
            return view
    return known if since > until else [each for each in known if each.since <= until and since <= each.until]


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


def _between_neighbours(
    found: list[Known | None], known: Sequence[Known], digests: Sequence[Hashable], of_known: dict[Known, Hashable]
) -> None:
    """Find messages that occur several times, where the same neighbours have as many of them between them as before.

    After the last found neighbour, the messages are compared one by one until two of them differ.
    """
    for places, between, ends in list(_gaps(found, known)):
        if ends:
            pairs = zip(places, between, strict=False)
            same = itertools.takewhile(lambda pair: digests[pair[0]] == of_known[pair[1]], pairs)
            for place, each in same:
                found[place] = each
            continue
        mine: dict[Hashable, list[int]] = defaultdict(list)
        theirs: dict[Hashable, dict[_Position, Known]] = defaultdict(dict)
        for place in places:
            mine[digests[place]].append(place)
        for each in between:
            theirs[of_known[each]].setdefault(each.position, each)
        for digest, here in mine.items():
            if len(here) == len(theirs.get(digest, ())):
                for place, each in zip(here, theirs[digest].values(), strict=True):
                    found[place] = each


def _in_both(
    found: Sequence[Known | None], known: Sequence[Known], digests: Sequence[Hashable], of_known: dict[Known, Hashable]
) -> tuple[set[int], set[_Position]]:
    """Return the places in the list, and the positions, of messages that are in the list and known, in whatever order."""
    values, listed = set(of_known.values()), set(digests)
    places = {place for place, each in enumerate(found) if each is not None or digests[place] in values}
    positions = {each.position for each in found if each is not None}
    return places, positions | {each.position for each in known if of_known[each] in listed}


def _altered_between_neighbours(
    found: list[Known | None],
    known: Sequence[Known],
    given: Sequence[Any],
    format: MessageFormat,
    in_both: tuple[set[int], set[_Position]],
) -> set[int]:
    """Find single messages in the place of a known message of the same role, and return their places.

    A hidden known message is found only if the list contains other hidden ones. A message that is in the list and known, but in
    another order, may have moved, so it counts neither as the old nor as the new version of an altered message.
    """
    altered: set[int] = set()
    has_hidden = any(each is not None and not each.is_shown for each in found)
    for places, between, ends in list(_gaps(found, known)):
        there = {each.position: each for each in between if has_hidden or each.is_shown}
        if ends or places[0] == 0 or len(places) != 1 or len(there) != 1 or places[0] in in_both[0]:
            continue
        [each] = there.values()
        if each.position not in in_both[1] and each.role in (None, format.read(given[places[0]], places[0]).role):
            found[places[0]] = each
            altered.add(places[0])
    return altered


def has_moved_reminder(projection: Projection, given: Sequence[Any], format: MessageFormat) -> bool:
    """Whether a list has all of the source but a reminder at its end, which some agents move to the end of each call.

    The reminder is a system message, now the list's last, or a part or text that the newest message has lost. An agent may also
    have added it. The list has messages after that place.
    """
    source, newest = projection.source, len(projection.source) - 1
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
            group = new.grouping.group_of[place]
            members = [member for member in new.ordinals(group) if member < self.matched]
            if ordinal is not None and members[0] == place and all(self.entries[each][1] is not None for each in members):
                groups[ordinal] = group
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

    ``verify`` tells whether to compare the contents of the same objects too.
    """
    if not verify and has_moved_reminder(projection, given, format):  # comparing all contents would take twice as long
        found: list[Known | None] = [None] * len(given)
        for ordinal, group in enumerate(projection.grouping.group_of[:-1]):
            found[ordinal] = Known((ordinal, 0, 0), group)
        return _Planner(projection, found, set(), given, _keep_whole_groups(projection, found, set())).plan()
    known, hidden = known_messages(projection, journal)

    def changed(each: Known, place: int) -> bool:
        if each.group < 0 or each.raw is not projection.source[each.position[0]]:
            return False
        before, now = projection.read(each.position[0]), format.read(given[place], place)
        return (before.role, before.name, before.parts) != (now.role, now.name, now.parts)

    found, altered = align(known, given, format, changed=changed if verify else None)
    partial = _keep_whole_groups(projection, found, hidden)
    return _Planner(projection, found, altered, given, partial).plan()


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


def _keep_whole_groups(projection: Projection, found: list[Known | None], hidden: set[int]) -> set[int]:
    """Forget the matches of groups of which only a part is in the list, so that they are new; return these groups' ids."""
    positions: dict[int, set[_Position]] = defaultdict(set)
    for each in found:
        if each is not None:
            positions[each.group].add(each.position)
    partial = {id for id, own in positions.items() if not _is_whole(projection, id, own, hidden)}
    found[:] = [None if each is None or each.group in partial else each for each in found]
    return partial


def _is_whole(projection: Projection, id: int, positions: set[_Position], hidden: set[int]) -> bool:
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

"""Identity: which message of the host is this?

A host passes its list on each call. It may be the source, the last view or an earlier one, followed by new messages; the host
may also have altered, removed or added messages, or returned to an earlier point.

- `known_beginning` recognizes the usual case: the list begins with the whole source or the whole view.
- `follow` handles all others. It finds the `known` messages by `alignment` and returns a `FollowedList`.
- `accounts_for` tells whether a list continues a conversation at all.
- `as_given` puts the host's own objects into a view.

`same_beginning`, `follow_saved` and `accounts_for_saved` do this for a conversation of which only fingerprints are stored.
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any

from ..formats import MessageFormat
from ..messages import Message
from .alignment import Known, Position, align, known_messages
from .columns import Columns
from .following import FollowedList, Merger
from .keys import message_key


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
    known = _begins_with(source, given, columns.format)
    if not known and columns.journal and (view := columns.raws()):
        known = _begins_with(view, given, columns.format)
    return known


def _begins_with(known: Sequence[Any], given: Sequence[Any], format: MessageFormat) -> int | None:
    """Return the number of known messages if a list begins with them; ``None`` if it does not."""
    count = len(known)
    if count > len(given):
        return None
    return count if format.common_prefix(known, given) == count else None


def accounts_for(columns: Columns, given: Sequence[Any], *, by_id: bool) -> bool:
    """Whether a list accounts for the whole source, and so continues the conversation. Cost: as for `follow`.

    Each source message must be in the list unchanged, or be shown and have only lost or gained parts, or be replaced by a
    summary in the list. If the host names the conversation (``by_id``), messages before a known one may be altered or missing.
    The newest source message may also be a reminder, see `has_moved_reminder`.
    """
    format = columns.format
    if _begins_with(columns.source, given, format) is not None or has_moved_reminder(columns, given):
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


def follow(columns: Columns, given: Sequence[Any], *, verify: bool) -> FollowedList:
    """Return how a list continues a conversation. O(messages), and O(contents) of those that are not the same objects.

    ``verify`` tells whether to compare the contents of the same objects too.
    """
    if not verify and has_moved_reminder(columns, given):  # comparing all contents would take twice as long
        same = [Known((ordinal, 0, 0), group) for ordinal, group in enumerate(columns.grouping.group_of[:-1])]
        return _merged(columns, given, [*same, *[None] * (len(given) - len(same))], frozenset(), frozenset())
    known, hidden = known_messages(columns)
    format = columns.format

    def changed(each: Known, place: int) -> bool:
        if each.group < 0 or each.raw is not columns.source[each.ordinal]:
            return False
        before, now = columns.read(each.ordinal), format.read(given[place], place)
        return (before.role, before.name, before.parts) != (now.role, now.name, now.parts)

    found, altered = align(known, given, format, changed=changed if verify else None)
    return _merged(columns, given, found, altered, hidden)


def _merged(
    columns: Columns,
    given: Sequence[Any],
    found: Sequence[Known | None],
    altered: AbstractSet[int],
    hidden: AbstractSet[int],
) -> FollowedList:
    """Merge a list with the source. A group of which only a part is in the list is not recognized: its messages are new.

    ``hidden`` has the ordinals of messages that a rewrite removed, which need not be in the list. The other arguments are those
    of `Merger`.
    """
    positions: dict[int, set[Position]] = defaultdict(set)
    for each in found:
        if each is not None:
            positions[each.group].add(each.position)
    partial = {id for id, own in positions.items() if not _is_whole(columns, id, own, hidden)}
    whole = [None if each is None or each.group in partial else each for each in found]
    return Merger(columns, given, whole, altered, partial).merged()


def _is_whole(columns: Columns, id: int, positions: AbstractSet[Position], hidden: AbstractSet[int]) -> bool:
    if id < 0:
        return len(positions) == len(columns.inserted[id].messages)
    return {position[0] for position in positions}.issuperset(set(columns.ordinals(id)) - hidden)


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
    ordinals = [None if each is None else each.group for each in found]
    there = {ordinal for ordinal in ordinals if ordinal is not None}
    if not there or len(there) <= max(there):
        return None
    matched = max(place for place, ordinal in enumerate(ordinals) if ordinal is not None) + 1
    changed = {each.group for place, each in enumerate(found) if each is not None and place in altered}
    return FollowedList.of(given[:matched], ordinals, changed)


def accounts_for_saved(fingerprints: Sequence[str], given: Sequence[Any], format: MessageFormat, *, by_id: bool) -> bool:
    """Whether a list contains all stored messages: at its start, or anywhere if the host names the conversation (``by_id``)."""
    if same_beginning(fingerprints, given, format) == len(fingerprints):
        return True
    followed = follow_saved(fingerprints, given, format) if by_id else None
    return followed is not None and sum(entry.ordinal is not None for entry in followed.entries) == len(fingerprints)

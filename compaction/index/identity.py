"""Identity: which message of the host is this?

A host passes its list on each call. It may be the source, the last view or an earlier one, followed by new messages; the host
may also have altered, removed or added messages, or returned to an earlier point.

- `known_beginning` recognizes the usual case: the list begins with the whole source or the whole view.
- `following` handles all others.
- `accounts_for` tells whether a list continues a conversation at all.
- `as_given` puts the host's own objects into a view.

`same_beginning` and `accounts_for_saved` do this for a conversation of which only fingerprints are stored.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

from ..formats import MessageFormat
from .columns import Columns
from .following import follow, follow_saved, has_moved_reminder, is_stripped
from .keys import message_key


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


def accounts_for_saved(fingerprints: Sequence[str], given: Sequence[Any], format: MessageFormat, *, by_id: bool) -> bool:
    """Whether a list contains all stored messages: at its start, or anywhere if the host names the conversation (``by_id``)."""
    if same_beginning(fingerprints, given, format) == len(fingerprints):
        return True
    followed = follow_saved(fingerprints, given, format) if by_id else None
    return followed is not None and sum(entry.ordinal is not None for entry in followed.entries) == len(fingerprints)

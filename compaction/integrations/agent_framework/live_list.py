"""Writes our edits into the framework's own list of messages, as exclusion flags and summaries.

The framework sends a model the messages that are not flagged ``_excluded``. The messages of a group that left the view are
therefore flagged. Its summary is inserted after the last of them.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Mapping, Sequence
from operator import attrgetter, is_not, itemgetter
from typing import Any, Final

from ...index import MessageIndex, as_given, named
from .format import agent_framework, without_annotations

_GROUP: Final = "_group"
_EXCLUDED: Final = "_excluded"
_properties: Final = attrgetter("additional_properties")
_flag: Final = itemgetter(_EXCLUDED)


def is_excluded(message: Any) -> bool:
    """Return whether the framework hides a message from the model."""
    return bool(message.additional_properties.get(_EXCLUDED, False))


class LiveLists:
    """The lists into which our edits are written. Holds state: the messages that we inserted, and those that we excluded.

    A message is forgotten when its list no longer exists. An unknown message belongs to the host, whatever its flags say.
    """

    def __init__(self) -> None:
        self._ours: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self._hidden: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()

    def source(self, messages: Sequence[Any]) -> list[Any]:
        """Return the messages that we did not insert and nobody else excluded; O(messages), at C speed if those are all."""
        if not self._ours and not _any_excluded(messages):
            return list(messages)
        ours, hidden = self._ours, self._hidden
        return [each for each in messages if id(each) not in ours and (id(each) in hidden or not is_excluded(each))]

    def write(self, messages: list[Any], source: Sequence[Any], index: MessageIndex) -> bool:
        """Write the view of an index into a list, and return whether the list changed; O(messages).

        Args:
            messages: The list.
            source: Those of its messages that the index has followed, in order.
            index: The index.
        """
        if not index.edit_count and not self._hidden and not self._ours:
            return False
        inserted = {id(each.contents): each for each in messages if id(each) in self._ours}
        places = {id(live): place for place, live in enumerate(source)}
        visible, after = _layout(places, as_given(index.messages(), index.source, source, source, _is_same))
        lives = {place: [self._live(raw, inserted) for raw in raws] for place, raws in after.items()}
        flagged = self._flagged(source, visible, _reasons(index) if len(index.source) == len(source) else {})
        written = lives.get(-1, [])
        for live in messages:
            at = places.get(id(live))
            if at is not None:
                written += [flagged[at], *lives.get(at, ())]
            elif id(live) not in self._ours:
                written.append(live)
        changed = len(written) != len(messages) or any(map(is_not, written, messages))
        messages[:] = written
        return changed

    def _live(self, raw: Any, inserted: Mapping[int, Any]) -> Any:
        """Return the message to insert: the one that is already in the list, or a copy for it."""
        live = inserted.get(id(raw.contents))
        if live is None:
            live = copy.copy(raw)
            live.additional_properties = without_annotations(raw.additional_properties)
            self._ours[id(live)] = live
        return live

    def _flagged(self, source: Sequence[Any], visible: set[int], reasons: Mapping[int, str]) -> list[Any]:
        """Return the messages, with copies of those whose flag is wrong: the originals may be stored without the summary."""
        wrong = [place for place, live in enumerate(source) if is_excluded(live) == (place in visible)]
        if not wrong:
            return list(source)
        flagged = list(source)
        for place in wrong:
            live = flagged[place] = copy.copy(source[place])
            live.additional_properties = {**live.additional_properties, _EXCLUDED: place not in visible}
            if place not in visible:
                live.additional_properties["_exclude_reason"] = reasons.get(place, "compacted")
                self._hidden[id(live)] = live
        return flagged


def _any_excluded(messages: Sequence[Any]) -> bool:
    """Return whether any message is flagged; the framework sets the flag, to true or false, on every message it has read."""
    try:
        return any(map(_flag, map(_properties, messages)))
    except KeyError:
        return any(map(is_excluded, messages))


def _is_same(one: Any, other: Any) -> bool:
    return bool(agent_framework.key(one) == agent_framework.key(other))


def _layout(places: Mapping[int, int], shown: Sequence[Any]) -> tuple[set[int], dict[int, list[Any]]]:
    """Return the places of a list's messages that a view shows, and the messages to insert, by the place before them.

    Args:
        places: The place of each message of the list, by its identity.
        shown: The view, with the list's own messages.
    """
    visible, after, waiting = set[int](), dict[int, list[Any]](), list[Any]()
    for message in shown:
        place = places.get(id(message))
        if place is None:
            waiting.append(message)
            continue
        if waiting:
            after[place - 1], waiting = waiting, []
        visible.add(place)
    if waiting:
        after[len(places) - 1] = waiting
    return visible, after


def _reasons(index: MessageIndex) -> Mapping[int, str]:
    """Return the reason why each message left the view, by its place."""
    reasons: dict[int, str] = {}
    for edit in index.edits:
        for group in named(edit):
            reasons.update(dict.fromkeys(index.ordinals(group), edit.reason))
    return reasons

"""Writes our edits into the framework's own list of messages, as exclusion flags and summaries.

The framework sends a model the messages that are not flagged ``_excluded``. The messages of a group that left the view are
therefore flagged. Its summary is inserted after the last of them, with the links in both directions that the framework's own
strategies set.
"""

from __future__ import annotations

import copy
import hashlib
import weakref
from collections.abc import Hashable, Iterable, Mapping, Sequence
from operator import attrgetter, is_not, itemgetter
from typing import Any, Final

import attrs

from ...index import MessageIndex, digest_of, named
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
        layout = _layout(source, index) if len(index.source) == len(source) else _layout_of_view(source, index)
        lives = {place: self._lives(raws, inserted) for place, raws in layout.after.items()}
        flagged = self._flagged(source, layout.visible, index)
        for place, ordinals in layout.summarized.items():
            if id(lives[place][0].contents) not in inserted:
                _link(lives[place], [flagged[ordinal] for ordinal in ordinals])
        places = {id(live): place for place, live in enumerate(source)}
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

    def _lives(self, raws: Sequence[Any], inserted: Mapping[int, Any]) -> list[Any]:
        """Return the messages to insert: those already in the list, or copies for it."""
        lives: list[Any] = []
        for raw in raws:
            live = inserted.get(id(raw.contents))
            if live is None:
                live = copy.copy(raw)
                live.additional_properties = without_annotations(raw.additional_properties)
                self._ours[id(live)] = live
            lives.append(live)
        return lives

    def _flagged(self, source: Sequence[Any], visible: set[int], index: MessageIndex) -> list[Any]:
        """Return the messages, with copies of those whose flag is wrong: the originals may be stored without the summary."""
        wrong = [place for place, live in enumerate(source) if is_excluded(live) == (place in visible)]
        if not wrong:
            return list(source)
        flagged, reasons = list(source), _reasons(source, index)
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


@attrs.frozen
class _Layout:
    """The place of a view in a list.

    Args:
        visible: The places of the messages that the view shows unchanged.
        after: The messages to insert, by the place before them; -1 for the front.
        summarized: The places that the messages inserted after a place summarize.
    """

    visible: set[int] = attrs.field(factory=set[int])
    after: dict[int, list[Any]] = attrs.field(factory=dict[int, list[Any]])
    summarized: dict[int, list[int]] = attrs.field(factory=dict[int, list[int]])


def _layout(source: Sequence[Any], index: MessageIndex) -> _Layout:
    """Return the layout of the view in the index's source."""
    known, layout = index.source, _Layout()
    for group in index.included_groups:
        ordinals, raws = index.ordinals(group), [message.raw for message in group.messages]
        if group.id < 0:
            layout.after[ordinals[-1]], layout.summarized[ordinals[-1]] = raws, ordinals
            continue
        for ordinal, raw in zip(ordinals, raws, strict=True):
            if raw is known[ordinal]:
                layout.visible.add(ordinal)
            else:
                layout.after[ordinal] = [raw]
    return layout


def _layout_of_view(source: Sequence[Any], index: MessageIndex) -> _Layout:
    """Return the layout of the view in a list that is an earlier view with newer messages behind it; O(contents)."""
    places: dict[Hashable, list[int]] = {}
    for place in range(len(source) - 1, -1, -1):
        places.setdefault(digest_of(source[place], agent_framework, place), []).append(place)
    layout, last = _Layout(), -1
    for raw in index.messages():
        same = places.get(digest_of(raw, agent_framework, 0), [])
        while same and same[-1] <= last:
            same.pop()
        if same:
            last = same.pop()
            layout.visible.add(last)
        else:
            layout.after.setdefault(last, []).append(raw)
    return layout


def _reasons(source: Sequence[Any], index: MessageIndex) -> Mapping[int, str]:
    """Return the reason why each message left the view, by its place; empty for a list that is itself a view."""
    reasons: dict[int, str] = {}
    for edit in index.edits if len(index.source) == len(source) else ():
        for group in named(edit):
            reasons.update(dict.fromkeys(index.ordinals(group), edit.reason))
    return reasons


def _link(made: Sequence[Any], originals: Iterable[Any]) -> None:
    """Link a summary and the messages it stands for, as the framework's own strategies do."""
    lives = list(originals)
    digest = hashlib.blake2s(made[0].text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    for place, message in enumerate(made):
        message.message_id = f"compaction_{digest}" if place == 0 else f"compaction_{digest}_{place}"
    groups = [each.additional_properties.get(_GROUP, {}).get("id") for each in lives]
    made[0].additional_properties[_GROUP] = {
        "_summary_of_message_ids": [each.message_id for each in lives if each.message_id],
        "_summary_of_group_ids": list(dict.fromkeys(group for group in groups if group)),
    }
    for each in lives:
        each.additional_properties[_GROUP] = {
            **each.additional_properties.get(_GROUP, {}),
            "_summarized_by_summary_id": made[0].message_id,
        }

"""The framework's own list of messages, with our edits written into it: exclusion flags and summaries.

The framework shows a model the messages that are not flagged ``_excluded``. So the messages of a group that left the view are
flagged, and its summary is inserted after the last one, linked in both directions like those of the framework's strategies.
"""

from __future__ import annotations

import copy
import hashlib
import operator
from collections.abc import Iterable, Sequence
from typing import Any, Final

from ...index import MessageGroup, MessageIndex, named
from ..conversation import FrameworkConversation
from ..options import IntegrationOptions
from .format import agent_framework, without_annotations

__all__ = ["LiveList", "is_excluded", "source_of"]

_GROUP: Final = "_group"
_EXCLUDED: Final = "_excluded"
_FLAG: Final = operator.itemgetter(_EXCLUDED)
_REASON: Final = "_exclude_reason"
_SUMMARY_OF_MESSAGES: Final = "_summary_of_message_ids"
_SUMMARY_OF_GROUPS: Final = "_summary_of_group_ids"
_SUMMARIZED_BY: Final = "_summarized_by_summary_id"


def is_excluded(message: Any) -> bool:
    """Return whether the framework hides a message from the model."""
    return bool(message.additional_properties.get(_EXCLUDED, False))


def source_of(message: Any) -> str | None:
    """Return the ``source_id`` of the provider that added a message to this run; ``None`` for what the run itself added."""
    attribution = message.additional_properties.get("_attribution")
    return attribution.get("source_id") if attribution.__class__ is dict else None


def _comes_back(known: Sequence[Any], included: Sequence[Any], history: str) -> bool:
    """Return whether a provider brings back what the last run added, after everything it brought for that run."""
    theirs = (each for each in included if source_of(each) == history)
    added = False
    for each in known:
        if (source := source_of(each)) in (None, history):
            other = next(theirs, None)
            if other is None or agent_framework.key(each) != agent_framework.key(other):
                return False
            added = added or source is None
    return added


class LiveList:
    """A list of the framework. Holds state: its conversation, and which of its messages are ours.

    Args:
        options: The integration's options.
    """

    def __init__(self, options: IntegrationOptions) -> None:
        self.conversation = FrameworkConversation(options, agent_framework)
        self._list: list[Any] | None = None
        self._source: list[Any] = []
        self._seen: list[Any] = []
        self._properties: list[dict[str, Any]] = []
        self._flags: list[Any] = []
        self._ours: dict[int, Any] = {}
        self._hidden: dict[int, Any] = {}
        self._history: str | None = None  # the history provider's source_id, once it is known
        self._overhead_tokens = 0

    def is_of(self, messages: list[Any]) -> bool:
        """Return whether this is the list of the last call."""
        return self._list is messages

    def continues(self, included: list[Any]) -> bool:
        """Return whether another list continues the conversation, as the copy in the framework's next run does.

        What the last run added comes back from the history provider, which is then known. What other providers added to the
        last run does not come back; from then on their messages are not part of the conversation.
        """
        known = self.conversation.index.source
        if not known:
            return False
        own = self._own(included) if self._may_begin(included) else []
        if agent_framework.common_prefix(known, own) == len(known):
            if self._history is None:
                pairs = zip(map(source_of, known), map(source_of, own), strict=False)
                self._history = next((new for old, new in pairs if old is None and new is not None), None)
            self._source = own[: len(known)]
        else:
            sources = dict.fromkeys(filter(None, map(source_of, included)))
            history = next((each for each in sources if _comes_back(known, included, each)), None)
            if history is None:
                return False
            self._history, self._source = history, []
        self._list, self._seen, self._ours, self._hidden = None, [], {}, {}
        return True

    def _may_begin(self, included: list[Any]) -> bool:
        """Return whether the conversation begins with the first message of its own in a list: a fast check."""
        first = next((each for each in included if not self._is_of_another(each)), None)
        return first is not None and agent_framework.key(first) == agent_framework.key(self.conversation.index.source[0])

    async def compact(self, messages: list[Any]) -> bool:
        """Run the strategy on the list, write the changes, and return whether there were any; O(new), and a fast comparison."""
        index, fresh_start = self.conversation.index, self._list is not messages
        before = index.edits
        if not fresh_start and self._is_as_it_was(messages):
            source = self._source
            source += [each for each in messages[len(self._seen) :] if not is_excluded(each)]
            await self._view_more(source, index.total.messages)
        else:
            source = self._source_of(messages)
            self._overhead_tokens = self._tokens_of_others(messages)
            await self._follow(source)
        if index.total.messages != len(source):  # read as the last view fed back, into which nothing can be written
            self.conversation = FrameworkConversation(self.conversation.options, agent_framework)
            index, fresh_start = self.conversation.index, True
            await self._view(source)
        changed = index.edits != before or (fresh_start and bool(index.edits))
        if changed:
            self._write(messages, source, index)
        self._list, self._source = messages, source
        self._remember(messages, fresh_start=fresh_start or changed)
        return changed

    def _is_as_it_was(self, messages: list[Any]) -> bool:
        """Return whether the list only grew, and nobody else changed an exclusion flag."""
        known = len(self._seen)
        return messages[:known] == self._seen and _flags(self._properties) == self._flags

    def _remember(self, messages: list[Any], *, fresh_start: bool) -> None:
        fresh = messages if fresh_start else messages[len(self._seen) :]
        properties = [each.additional_properties for each in fresh]
        flags = _flags(properties)
        if fresh_start:
            self._seen, self._properties, self._flags = list(messages), properties, flags
        else:
            self._seen += fresh
            self._properties += properties
            self._flags += flags

    async def _follow(self, source: list[Any]) -> None:
        """Run the strategy on the list; messages known to be the same are not compared again."""
        known = len(self._source)
        if known == self.conversation.index.total.messages and source[:known] == self._source:
            await self._view_more(source, known)
        else:
            await self._view(source)

    async def _view(self, source: list[Any]) -> None:
        await self.conversation.view(source, overhead_tokens=self._overhead_tokens)

    async def _view_more(self, source: list[Any], known: int) -> None:
        await self.conversation.view_more(source, known, total=known, overhead_tokens=self._overhead_tokens)

    def _source_of(self, messages: list[Any]) -> list[Any]:
        """Return the conversation's messages that are not ours and that nobody else excluded."""
        ours, hidden = self._ours, self._hidden
        if ours or hidden:
            messages = [
                each
                for each in messages
                if id(each) not in ours and (id(each) in hidden or not each.additional_properties.get(_EXCLUDED))
            ]
        else:
            messages = [each for each in messages if not each.additional_properties.get(_EXCLUDED)]
        return self._own(messages)

    def _own(self, messages: list[Any]) -> list[Any]:
        """Return the messages that no other provider than the history's added; all of them while that one is not known."""
        return messages if self._history is None else [each for each in messages if not self._is_of_another(each)]

    def _is_of_another(self, message: Any) -> bool:
        return self._history is not None and source_of(message) not in (None, self._history)

    def _tokens_of_others(self, messages: Iterable[Any]) -> int:
        if self._history is None:
            return 0
        others = [each for each in messages if self._is_of_another(each) and not is_excluded(each)]
        measure = self.conversation.index.measure
        return sum(measure(agent_framework.read(each))[0] for each in others)

    # ---------------------------------------------------------------- writing

    def _write(self, messages: list[Any], source: Sequence[Any], index: MessageIndex) -> None:
        for live in self._hidden.values():
            live.additional_properties[_EXCLUDED] = False
        known = index.source
        visible: set[int] = set()
        after: dict[int, list[Any]] = {}
        for group in index.included_groups:
            ordinals = index.ordinals(group)
            raws = [message.raw for message in group.messages]
            if group.id >= 0 and _same(raws, [known[ordinal] for ordinal in ordinals]):
                visible.update(ordinals)
            else:
                originals = [source[ordinal] for ordinal in ordinals]
                after.setdefault(ordinals[-1], []).extend(self._standing_for(group, raws, originals))
        self._hide(source, visible, _reasons(index))
        ordinal_of = {id(live): ordinal for ordinal, live in enumerate(source)}
        written: list[Any] = []
        for live in messages:
            if id(live) in self._ours:
                continue
            written.append(live)
            written += after.get(ordinal_of.get(id(live), -1), ())
        self._ours = {id(live): live for lives in after.values() for live in lives}
        messages[:] = written

    def _standing_for(self, group: MessageGroup, raws: Sequence[Any], originals: Sequence[Any]) -> list[Any]:
        """Return the messages to insert for a changed group; an unchanged message is copied."""
        known = {id(live) for live in originals} | {id(raw) for raw in self.conversation.index.source}
        made: list[Any] = []
        for raw in raws:
            live = raw
            if id(raw) in known:
                live = copy.copy(raw)
                live.additional_properties = without_annotations(raw.additional_properties)
            made.append(live)
        if group.id < 0:
            _link(made, originals)
        return made

    def _hide(self, source: Sequence[Any], visible: set[int], reasons: dict[int, str]) -> None:
        self._hidden = {}
        for ordinal, live in enumerate(source):
            if ordinal in visible:
                continue
            self._hidden[id(live)] = live
            live.additional_properties[_EXCLUDED] = True
            live.additional_properties[_REASON] = reasons.get(ordinal, "compacted")


def _flags(properties: Sequence[dict[str, Any]]) -> list[Any]:
    """Return the exclusion flag of each message; the framework sets one on every message it has read."""
    try:
        return list(map(_FLAG, properties))
    except KeyError:
        return [each.get(_EXCLUDED) for each in properties]


def _same(ones: Sequence[Any], others: Sequence[Any]) -> bool:
    return len(ones) == len(others) and all(one is other for one, other in zip(ones, others, strict=True))


def _reasons(index: MessageIndex) -> dict[int, str]:
    """Return why each message left the view, by its place in the source."""
    reasons: dict[int, str] = {}
    for edit in index.edits:
        for id in named(edit):
            reasons.update(dict.fromkeys(index.ordinals(id), edit.reason))
    return reasons


def _link(made: Sequence[Any], originals: Iterable[Any]) -> None:
    """Link a summary and the messages it stands for, as the framework's own strategies do."""
    lives = list(originals)
    digest = hashlib.blake2s(made[0].text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    for place, message in enumerate(made):
        message.message_id = f"compaction_{digest}" if place == 0 else f"compaction_{digest}_{place}"
    groups = [each.additional_properties.get(_GROUP, {}).get("id") for each in lives]
    made[0].additional_properties[_GROUP] = {
        _SUMMARY_OF_MESSAGES: [each.message_id for each in lives if each.message_id],
        _SUMMARY_OF_GROUPS: list(dict.fromkeys(group for group in groups if group)),
    }
    for each in lives:
        each.additional_properties[_GROUP] = {
            **each.additional_properties.get(_GROUP, {}),
            _SUMMARIZED_BY: made[0].message_id,
        }

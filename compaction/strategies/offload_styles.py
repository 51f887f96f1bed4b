"""The styles of `Offload`: each chooses the content that is stored, in which steps, and writes the stubs in its place.

A stub is a short text that names the id of a stored record::

    [compaction 4b1d22f0 by Offload round 1]
    12,345 characters of read_file(path=a.py) are stored: compaction_expand(id="79bc75dfc3e94de3")
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol, TypeAlias

import attrs

from ..checks import count
from ..errors import StateError
from ..index import Edit, GroupKind, Mark, MessageGroup, MessageIndex, Replace, Rewrite, marked
from ..messages import Message, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from ..stores import TOOLS, StoredRecord
from .summary_text import next_round
from .tool_styles import brief_call

OFFLOADED_BY: Final = "Offload"
"""The name of the strategy that writes stubs."""

_LEAST_CHARS: Final = 250  # of a result that is stored: every stub is shorter
_CALL_CHARS: Final = 40
_WHAT_CHARS: Final = 60
_EARLIER: Final = re.compile(r"(\d{1,3}(?:,\d{3}){0,3}) earlier messages are stored: ")

Leaving: TypeAlias = tuple[Sequence[StoredRecord], Sequence[Edit]]
"""One step: the records to store, and the edits to apply when they are stored."""


class OffloadStyle(Protocol):
    """A style of `Offload`."""

    def __call__(self, index: MessageIndex, groups: Sequence[MessageGroup], salt: str) -> Iterator[Leaving]:
        """Yield the steps, oldest first; each is planned after the edits of the one before.

        Args:
            index: The conversation.
            groups: The groups that may be removed.
            salt: The salt of the records' ids.
        """
        ...


def records_of(index: MessageIndex, group: MessageGroup, messages: Sequence[Message], **about: Any) -> list[StoredRecord]:
    """Return the records of some messages of a group, searchable by their texts, calls, reasoning and results.

    Every message is stored, even if its text looks like a stub. If an edit of this package wrote the message, the store already
    has a placeholder of the same id, and keeps it (see `placeholder_of`). So only the store decides what is a stub, never a
    text. The results of the recall tools are not searchable, so that a search finds the original only.

    Args:
        index: The conversation.
        group: The group of the messages.
        messages: The messages.
        about: ``salt``, ``by``, ``reason`` and ``at``.

    Raises:
        StateError: If a message cannot be written as JSON.
    """
    calls = {call.id: call for message in group.messages for call in message.tool_calls()}
    records: list[StoredRecord] = []
    for message in messages:
        text = "\n".join(filter(None, [_searchable(part, calls) for part in message.parts]))
        records.append(StoredRecord.of_message(_wire(index, message), text=text, **_facts(index, message), **about))
    return records


def is_writable(index: MessageIndex, group: MessageGroup) -> bool:
    """Return whether the messages of a group can be written as JSON; O(their contents)."""
    try:
        records_of(index, group, [*group.messages, *index.read_originals(group)], salt="", by="", reason="", at=None)
    except StateError:
        return False
    return True


def placeholder_of(index: MessageIndex, message: Message, stands_for: str, **about: Any) -> StoredRecord:
    """Return the record of a message that an edit writes, with the record it stands for as its child.

    Args:
        index: The conversation.
        message: The message.
        stands_for: The id of a record.
        about: ``salt``, ``by``, ``reason`` and ``at``.

    Raises:
        StateError: If the message cannot be written as JSON.
    """
    return StoredRecord.of_placeholder(_wire(index, message), [stands_for], **_facts(index, message), **about)


def _facts(index: MessageIndex, message: Message) -> dict[str, Any]:
    return {"role": message.role, "tokens": index.measure(message)[0]}


def _wire(index: MessageIndex, message: Message) -> Any:
    try:
        return index.format.to_wire(message.raw)
    except RecursionError as error:
        raise StateError("a message is nested too deeply to be stored as JSON; it stays in the view") from error


def _searchable(part: object, calls: dict[str, ToolCallPart]) -> str:
    if isinstance(part, ToolCallPart):
        return f"{part.name}({part.arguments})"
    if isinstance(part, ToolResultPart):
        call = calls.get(part.call_id)
        return "" if call is not None and call.name in TOOLS else part.text
    return part.text if isinstance(part, TextPart | ReasoningPart) else ""


@attrs.frozen(kw_only=True)
class StubResults:
    """Replaces large tool results with stubs; calls and all other messages stay.

    Args:
        min_chars: Results of fewer characters stay, >= 1, and so do results of fewer than 250; a stub has about 150. Results
            with images or files are always replaced.
    """

    min_chars: int = attrs.field(default=2_000, validator=count(1))

    def __call__(self, index: MessageIndex, groups: Sequence[MessageGroup], salt: str) -> Iterator[Leaving]:
        size = 1
        records: list[StoredRecord] = []
        edits: list[Edit] = []
        for group in groups:
            stubbed = self._stubbed(index, group, salt)
            if stubbed is None:
                continue
            records += stubbed[0]
            edits.append(stubbed[1])
            if len(edits) == size:
                yield records, edits
                size, records, edits = size * 2, [], []
        if edits:
            yield records, edits

    def _stubbed(self, index: MessageIndex, group: MessageGroup, salt: str) -> tuple[list[StoredRecord], Rewrite] | None:
        """Return the records of the large results, and the edit that replaces them; ``None`` if it would save nothing."""
        if group.kind is not GroupKind.TOOL_CALL or not index.is_rewritable(group):
            return None
        about: dict[str, Any] = {"salt": salt, "by": OFFLOADED_BY, "reason": "a large tool result", "at": index.context.now}
        originals = iter([each for each in index.read_originals(group) if any(each.tool_results())])
        calls = {call.id: call for message in group.messages for call in message.tool_calls()}
        records: list[StoredRecord] = []
        messages: list[Message] = []
        for message in group.messages:
            original = next(originals) if any(message.tool_results()) else message
            shortened = message
            if any(map(self._is_large, message.tool_results())):
                [record] = records_of(index, group, [original], **about)
                parts = [self._shortened(part, calls, record.id) for part in message.parts]
                shortened = message.evolve(parts=parts)
                records += [record, placeholder_of(index, shortened, record.id, **about)]
            messages.append(shortened)
        gain = group.tokens - sum(index.measure(message)[0] for message in messages)
        return (records, Rewrite(group, messages, "a large tool result, stored")) if gain > 0 else None

    def _shortened(self, part: Part, calls: dict[str, ToolCallPart], id: str) -> Part:
        """Return the stub of a large result, or any other part unchanged."""
        if not isinstance(part, ToolResultPart) or not self._is_large(part):
            return part
        return attrs.evolve(part, text=_result_stub(part, calls.get(part.call_id), id), media=())

    def _is_large(self, result: ToolResultPart) -> bool:
        return len(result.text) >= max(self.min_chars, _LEAST_CHARS) or bool(result.media)


def _result_stub(result: ToolResultPart, call: ToolCallPart | None, id: str) -> str:
    what = "a tool result" if call is None else brief_call(call, _CALL_CHARS)[:_WHAT_CHARS]
    media = "".join(f" and its {each.kind}" for each in result.media[:1])
    body = f'{len(result.text):,} characters of {what}{media} are stored: compaction_expand(id="{id}")'
    return marked(" ".join(body.split()), by=OFFLOADED_BY)


@attrs.frozen(kw_only=True)
class StubGroups:
    """Replaces old groups with one stub message, which later steps update; summaries of other strategies stay."""

    def __call__(self, index: MessageIndex, groups: Sequence[MessageGroup], salt: str) -> Iterator[Leaving]:
        free = {group.id for group in groups if group.kind is not GroupKind.SUMMARY or group.is_collapsed or _is_mine(group)}
        lowest = min([0, *(group.id for group in index.included_groups)])
        done = -1
        while index.edit_count > done:  # groups that saved nothing in a large step may do so in smaller ones
            done = index.edit_count
            groups = [group for group in index.included_groups if group.id in free or group.id < lowest]
            for step in self._steps(index, index.replaceable(groups), salt):
                count = index.edit_count
                yield step
                if index.edit_count == count:  # the edit was refused, and would be again
                    return

    def _steps(self, index: MessageIndex, groups: Sequence[MessageGroup], salt: str) -> Iterator[Leaving]:
        """Yield the steps of one pass over the groups."""
        size = 1
        lowest = min([0, *(group.id for group in index.included_groups)])
        mine = [group.id for group in groups if _is_mine(group)]
        fresh = [group for group in groups if group.kind is not GroupKind.SUMMARY or group.is_collapsed]
        waiting: list[MessageGroup] = []
        for place, group in enumerate(fresh):
            waiting.append(group)
            if len(waiting) < size and place + 1 < len(fresh):
                continue
            size *= 2
            stubs = [id for id in mine if index.is_included(id)]
            stubs += [group.id for group in index.included_groups if group.id < lowest]
            stubbed = self._stubbed(index, [index.group(id) for id in stubs], waiting, salt)
            if stubbed is not None:
                yield stubbed
                waiting = []

    def _stubbed(
        self, index: MessageIndex, stubs: Sequence[MessageGroup], fresh: Sequence[MessageGroup], salt: str
    ) -> Leaving | None:
        """Return the step that replaces these groups and the earlier stubs by one; ``None`` if it would save nothing."""
        about: dict[str, Any] = {"salt": salt, "by": OFFLOADED_BY, "reason": "old messages", "at": index.context.now}
        replaced = [*stubs, *fresh]
        records: list[StoredRecord] = []
        for group in replaced:
            sources = group.messages if _is_mine(group) else index.read_originals(group)
            records += records_of(index, group, sources, **about)
        link = StoredRecord.of_summary([each.id for each in records], tokens=sum(group.tokens for group in fresh), **about)
        marks = [group.mark for group in stubs if group.mark is not None]
        body = _group_stub(link.id, marks, sum(len(group.messages) for group in fresh))
        messages = index.summary(body, replaced, by=OFFLOADED_BY, round=next_round(stubs, OFFLOADED_BY))
        if sum(index.measure(message)[0] for message in messages) >= sum(group.tokens for group in replaced):
            return None
        replace = Replace([group.id for group in replaced], messages, "old messages, stored", read=())
        return [*records, link, placeholder_of(index, messages[0], link.id, **about)], [replace]


def _is_mine(group: MessageGroup) -> bool:
    return group.kind is GroupKind.SUMMARY and group.made_by == OFFLOADED_BY


def _group_stub(id: str, stubs: Sequence[Mark], messages: int) -> str:
    """Return the text of a stub after its mark, with the number of messages that it and the earlier stubs stand for."""
    counts = [int(found[1].replace(",", "")) for mark in stubs if (found := _EARLIER.match(mark.body))]
    count = messages + sum(counts)
    return f'{count:,} earlier messages are stored: compaction_expand(id="{id}"), compaction_grep searches them.'

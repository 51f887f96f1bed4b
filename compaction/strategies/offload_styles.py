"""Styles of `Offload`: values that plan which content is stored, in which steps, and the stubs in its place.

A stub is short and marked as this package's own, so that a later run recognizes it and does not offload it again::

    [compaction 4b1d22f0 by Offload round 1]
    12,345 characters of read_file(path=a.py) are stored: compaction_expand(id="79bc75dfc3e94de3")
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol, TypeAlias

import attrs

from ..checks import count
from ..index import LAST_ROUND, Edit, GroupKind, Mark, MessageGroup, MessageIndex, Replace, Rewrite, marked, read_mark
from ..messages import Message, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from ..stores import TOOLS, StoredRecord
from .tool_styles import brief_call

__all__ = ["OFFLOADED_BY", "Leaving", "OffloadStyle", "StubGroups", "StubResults", "stored_as"]

OFFLOADED_BY: Final = "Offload"
"""The strategy whose messages are stubs."""

_STUB_CHARS: Final = 400
_CALL_CHARS: Final = 40
_WHAT_CHARS: Final = 60
_HEX: Final = r"(?:[0-9a-f]{16}|[0-9a-f]{8})"
_ID: Final = re.compile(rf'compaction_expand\(id="({_HEX})"(?:, to="({_HEX})")?\)')
_EXPAND: Final = "compaction_expand"

Leaving: TypeAlias = tuple[Sequence[StoredRecord], Sequence[Edit]]
"""A step: the records to store, and the edits that follow once they are stored."""


class OffloadStyle(Protocol):
    """A way of offloading content."""

    def __call__(self, index: MessageIndex, groups: Sequence[MessageGroup]) -> Iterator[Leaving]:
        """Yield the steps, oldest first, each larger than the one before and planned when the one before is done.

        Args:
            index: The conversation.
            groups: The groups that may leave the view.
        """
        ...


def stored_as(
    index: MessageIndex, group: MessageGroup, messages: Sequence[Message], **about: Any
) -> Iterator[tuple[str, StoredRecord | None]]:
    """Yield the ids under which messages of a group are stored, in order, each with its record unless the store has it.

    A stub, and an answer of `compaction_expand`, gives the ids of the messages it stands for; another summary gives its own id
    too.

    Raises:
        StateError: If a message cannot be written as JSON.
    """
    calls = _calls(group)
    for message in messages:
        mark = read_mark(message)
        if mark is not None:
            ids = _stub_ids(mark)
            yield from ((id, None) for id in ids or (mark.id,))
            if ids:
                continue
        known = [_stub_in(message, result) or _recalled(result, calls) for result in message.tool_results()]
        yield from ((id, None) for id in dict.fromkeys(itertools.chain.from_iterable(known)))
        if not all(known) or not known:
            record = _record_of(index, message, calls, **about)
            yield record.id, record


def _record_of(index: MessageIndex, message: Message, calls: dict[str, ToolCallPart], **about: Any) -> StoredRecord:
    """Return a message as a record, searchable by its texts, calls, reasoning and results, but those of the recall tools."""
    texts = [_searchable(part, calls) for part in message.parts]
    wire, tokens = index.format.to_wire(message.raw), index.measure(message)[0]
    return StoredRecord.of_message(wire, role=message.role, text="\n".join(filter(None, texts)), tokens=tokens, **about)


def _searchable(part: object, calls: dict[str, ToolCallPart]) -> str:
    if isinstance(part, ToolCallPart):
        return f"{part.name}({part.arguments})"
    if isinstance(part, ToolResultPart):
        call = calls.get(part.call_id)
        return "" if call is not None and call.name in TOOLS else part.text
    return part.text if isinstance(part, TextPart | ReasoningPart) else ""


def _stub_ids(mark: Mark) -> tuple[str, ...]:
    """Return the id that a stub names, or the first and last of a range; none for any other mark or long text."""
    found = _ID.findall(mark.body) if mark.by == OFFLOADED_BY and len(mark.body) <= _STUB_CHARS else []
    # The last: a call's own arguments, which come first, may look like one.
    return tuple(str(id) for id in found[-1] if id) if found else ()


def _stub_in(message: Message, result: ToolResultPart) -> tuple[str, ...]:
    """Return the ids that a result names, if the result is a stub."""
    if len(result.text) > 2 * _STUB_CHARS:
        return ()
    mark = read_mark(Message(message.role, (TextPart(result.text),), None, message.format))
    return () if mark is None else _stub_ids(mark)


def _recalled(result: ToolResultPart, calls: dict[str, ToolCallPart]) -> tuple[str, ...]:
    """Return the id of the message that a result of `compaction_expand` copies, or the ends of a range."""
    call = calls.get(result.call_id)
    if call is None or call.name != _EXPAND:
        return ()
    try:
        asked, answer = json.loads(call.arguments), json.loads(result.text)
        ids = (asked["id"],) if asked.get("to") is None else (asked["id"], asked["to"])
        copied = answer["id"] == ids[0] and isinstance(answer["content"], str)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return ()
    return ids if copied and all(isinstance(id, str) and re.fullmatch(_HEX, id) for id in ids) else ()


def _calls(group: MessageGroup) -> dict[str, ToolCallPart]:
    return {call.id: call for message in group.messages for call in message.tool_calls()}


@attrs.frozen(kw_only=True)
class StubResults:
    """Replaces large tool results by stubs; calls, answers and structure stay.

    Args:
        min_chars: Results of fewer characters stay, >= 1; a stub has about 150. Results with images or files always go.
    """

    min_chars: int = attrs.field(default=2_000, validator=count(1))

    def __call__(self, index: MessageIndex, groups: Sequence[MessageGroup]) -> Iterator[Leaving]:
        size = 1
        records: list[StoredRecord] = []
        edits: list[Edit] = []
        for group in groups:
            stubbed = self._stubbed(index, group)
            if stubbed is None:
                continue
            records += stubbed[0]
            edits.append(stubbed[1])
            if len(edits) == size:
                yield records, edits
                size, records, edits = size * 2, [], []
        if edits:
            yield records, edits

    def _stubbed(self, index: MessageIndex, group: MessageGroup) -> tuple[list[StoredRecord], Rewrite] | None:
        """Return the records of the large results, and the edit that stubs them; ``None`` if there is nothing to gain."""
        if group.kind is not GroupKind.TOOL_CALL or not index.is_rewritable(group):
            return None
        about: dict[str, Any] = {"by": OFFLOADED_BY, "reason": "a large tool result", "at": index.context.now}
        originals = iter([each for each in index.read_originals(group) if any(each.tool_results())])
        calls = _calls(group)
        records: list[StoredRecord] = []
        messages: list[Message] = []
        for message in group.messages:
            original = next(originals) if any(message.tool_results()) else message
            shortened, needed = self._shortened(index, message, original, calls, about)
            messages.append(shortened)
            records += needed
        gain = group.tokens - sum(index.measure(message)[0] for message in messages)
        return (records, Rewrite(group, messages, "a large tool result, stored")) if gain > 0 else None

    def _shortened(
        self, index: MessageIndex, message: Message, original: Message, calls: dict[str, ToolCallPart], about: dict[str, Any]
    ) -> tuple[Message, list[StoredRecord]]:
        """Return the message with its large results as stubs, and their records; the same one if it has none."""
        large = [result for result in message.tool_results() if self._is_large(message, result)]
        if not large:
            return message, []
        recalled = {id(result): _recalled(result, calls) for result in large}
        record = None if all(recalled.values()) else _record_of(index, original, calls, **about)
        stubs = {
            id(result): attrs.evolve(
                result, text=_result_stub(result, calls, recalled[id(result)] or (record.id if record else "",)), media=()
            )
            for result in large
        }
        parts = [stubs.get(id(part), part) for part in message.parts]
        return message.evolve(parts=parts), [] if record is None else [record]

    def _is_large(self, message: Message, result: ToolResultPart) -> bool:
        return (len(result.text) >= self.min_chars or bool(result.media)) and not _stub_in(message, result)


def _result_stub(result: ToolResultPart, calls: dict[str, ToolCallPart], ids: tuple[str, ...]) -> str:
    call = calls.get(result.call_id)
    what = "a tool result" if call is None else brief_call(call, _CALL_CHARS)[:_WHAT_CHARS]
    media = "".join(f" and its {each.kind}" for each in result.media[:1])
    named = f'id="{ids[0]}"' if len(ids) == 1 else f'id="{ids[0]}", to="{ids[-1]}"'
    body = f"{len(result.text):,} characters of {what}{media} are stored: compaction_expand({named})"
    return marked(" ".join(body.split()), by=OFFLOADED_BY)


@attrs.frozen(kw_only=True)
class StubGroups:
    """Replaces old groups of any kind by one stub message, which later steps update; other strategies' summaries stay."""

    def __call__(self, index: MessageIndex, groups: Sequence[MessageGroup]) -> Iterator[Leaving]:
        free = {group.id for group in groups if group.kind is not GroupKind.SUMMARY or group.is_collapsed or _is_mine(group)}
        lowest = min([0, *(group.id for group in index.included_groups)])
        done = -1
        while index.edit_count > done:  # a large step that gained nothing may gain in smaller ones
            done = index.edit_count
            groups = [group for group in index.included_groups if group.id in free or group.id < lowest]
            for step in self._steps(index, index.replaceable(groups)):
                count = index.edit_count
                yield step
                if index.edit_count == count:  # refused, and it would be refused again
                    return

    def _steps(self, index: MessageIndex, groups: Sequence[MessageGroup]) -> Iterator[Leaving]:
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
            stubbed = self._stubbed(index, stubs, waiting)
            if stubbed is not None:
                yield stubbed
                waiting = []

    def _stubbed(self, index: MessageIndex, mine: Sequence[int], fresh: Sequence[MessageGroup]) -> Leaving | None:
        """Return the step that replaces these groups and the earlier stubs by one; ``None`` if there is nothing to gain."""
        about: dict[str, Any] = {"by": OFFLOADED_BY, "reason": "old messages", "at": index.context.now}
        records: dict[str, StoredRecord] = {}
        children: list[str] = []
        stubs = [(group, mark) for group in map(index.group, mine) if (mark := read_mark(group.messages[0])) is not None]
        for group in [*(group for group, _ in stubs), *fresh]:
            sources = group.messages if _is_mine(group) else index.read_originals(group)
            for child, record in stored_as(index, group, sources, **about):
                children.append(child)
                if record is not None:
                    records.setdefault(child, record)
        link = StoredRecord.of_summary(children, tokens=sum(group.tokens for group in fresh), **about)
        replaced = [*(group for group, _ in stubs), *fresh]
        body = _group_stub(link.id, [mark for _, mark in stubs], sum(len(group.messages) for group in fresh))
        round = min(max([mark.round for _, mark in stubs], default=0) + 1, LAST_ROUND)
        messages = index.summary(body, replaced, by=OFFLOADED_BY, round=round)
        if sum(index.measure(message)[0] for message in messages) >= sum(group.tokens for group in replaced):
            return None
        replace = Replace([group.id for group in replaced], messages, "old messages, stored")
        return [*records.values(), link], [replace]


def _is_mine(group: MessageGroup) -> bool:
    mark = read_mark(group.messages[0]) if group.kind is GroupKind.SUMMARY else None
    return mark is not None and bool(_stub_ids(mark))


def _group_stub(id: str, stubs: Sequence[Mark], messages: int) -> str:
    """Return the stub's text after its mark: how many messages it stands for, and how to read them."""
    counts = [int(found[1].replace(",", "")) for mark in stubs if (found := re.match(r"([\d,]+) earlier", mark.body))]
    count = messages + sum(counts)
    return f'{count:,} earlier messages are stored: compaction_expand(id="{id}"), compaction_grep searches them.'

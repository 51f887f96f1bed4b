"""What leaves for a store and what stays in its place: a style is a value that plans the steps of an `Offload`.

A stub is marked as this package's own and is short, so that a later run knows it and does not offload it again::

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
from ..edits import Edit, Replace, Rewrite
from ..groups import GroupKind, MessageGroup
from ..index import MessageIndex
from ..marks import Mark, marked, read_mark
from ..messages import Message, Reasoning, Text, ToolCall, ToolResult
from ..recall import TOOLS
from ..stores import Record
from .seams import neighbours, replaceable
from .tool_styles import brief_call

__all__ = ["OFFLOADED_BY", "Leaving", "OffloadStyle", "StubGroups", "StubResults", "stored_as"]

OFFLOADED_BY: Final = "Offload"
"""Who writes stubs."""

_STUB_CHARS: Final = 400
_CALL_CHARS: Final = 40
_WHAT_CHARS: Final = 60
_HEX: Final = r"(?:[0-9a-f]{16}|[0-9a-f]{8})"
_ID: Final = re.compile(rf'compaction_expand\(id="({_HEX})"(?:, to="({_HEX})")?\)')
_EXPAND: Final = "compaction_expand"

Leaving: TypeAlias = tuple[Sequence[Record], Sequence[Edit]]
"""A step: what is to be stored, and the edits that may happen after it is."""


class OffloadStyle(Protocol):
    """How content is offloaded."""

    def __call__(self, index: MessageIndex, groups: Sequence[MessageGroup]) -> Iterator[Leaving]:
        """The steps, oldest first, each larger than the one before and asked for when the one before is done.

        Args:
            index: The conversation.
            groups: What may leave the view.
        """
        ...


def stored_as(
    index: MessageIndex, group: MessageGroup, messages: Sequence[Message], **about: Any
) -> Iterator[tuple[str, Record | None]]:
    """The ids under which messages of a group are stored, in order, each with its record unless the store has it.

    A stub is what it stands for, and so is the answer of `compaction_expand`; another summary is itself and what it stands for.

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


def _record_of(index: MessageIndex, message: Message, calls: dict[str, ToolCall], **about: Any) -> Record:
    """A message as a record, found by its words, calls, results and thoughts; what our tools answered is not found."""
    texts = [_searchable(part, calls) for part in message.parts]
    wire, tokens = index.format.to_wire(message.raw), index.measure(message)[0]
    return Record.of_message(wire, role=message.role, text="\n".join(filter(None, texts)), tokens=tokens, **about)


def _searchable(part: object, calls: dict[str, ToolCall]) -> str:
    if isinstance(part, ToolCall):
        return f"{part.name}({part.arguments})"
    if isinstance(part, ToolResult):
        call = calls.get(part.call_id)
        return "" if call is not None and call.name in TOOLS else part.text
    return part.text if isinstance(part, Text | Reasoning) else ""


def _stub_ids(mark: Mark) -> tuple[str, ...]:
    """The id that a stub names, or the first and last of a range; none for any other mark, and for a text too long for one."""
    found = _ID.findall(mark.body) if mark.by == OFFLOADED_BY and len(mark.body) <= _STUB_CHARS else []
    # The last: a call's own arguments, which come first, may look like one.
    return tuple(str(id) for id in found[-1] if id) if found else ()


def _stub_in(message: Message, result: ToolResult) -> tuple[str, ...]:
    """The ids that a result names, if the result is a stub."""
    if len(result.text) > 2 * _STUB_CHARS:
        return ()
    mark = read_mark(Message(message.role, (Text(result.text),), None, message.format))
    return () if mark is None else _stub_ids(mark)


def _recalled(result: ToolResult, calls: dict[str, ToolCall]) -> tuple[str, ...]:
    """The id of what a result is a copy of, or the ends of a range, because `compaction_expand` gave it."""
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


def _calls(group: MessageGroup) -> dict[str, ToolCall]:
    return {call.id: call for message in group.messages for call in message.tool_calls()}


@attrs.frozen(kw_only=True)
class StubResults:
    """Large tool results give way to stubs in place; calls, answers and structure stay.

    Args:
        min_chars: Results of fewer characters stay, >= 1; a stub has about 150. Results with images or files always go.
    """

    min_chars: int = attrs.field(default=2_000, validator=count(1))

    def __call__(self, index: MessageIndex, groups: Sequence[MessageGroup]) -> Iterator[Leaving]:
        size = 1
        records: list[Record] = []
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

    def _stubbed(self, index: MessageIndex, group: MessageGroup) -> tuple[list[Record], Rewrite] | None:
        """The group with stubs for its large results, and what they stand for; ``None`` if there is nothing to gain."""
        if group.kind is not GroupKind.TOOL_CALL or not index.is_rewritable(group):
            return None
        about: dict[str, Any] = {"by": OFFLOADED_BY, "reason": "a large tool result", "at": index.context.now}
        originals = iter([each for each in index.read_originals(group) if any(each.tool_results())])
        calls = _calls(group)
        records: list[Record] = []
        messages: list[Message] = []
        for message in group.messages:
            original = next(originals) if any(message.tool_results()) else message
            shortened, needed = self._shortened(index, message, original, calls, about)
            messages.append(shortened)
            records += needed
        gain = group.tokens - sum(index.measure(message)[0] for message in messages)
        return (records, Rewrite(group, messages, "a large tool result, stored")) if gain > 0 else None

    def _shortened(
        self, index: MessageIndex, message: Message, original: Message, calls: dict[str, ToolCall], about: dict[str, Any]
    ) -> tuple[Message, list[Record]]:
        """The message with its large results as stubs; the same one if it has none."""
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

    def _is_large(self, message: Message, result: ToolResult) -> bool:
        return (len(result.text) >= self.min_chars or bool(result.media)) and not _stub_in(message, result)


def _result_stub(result: ToolResult, calls: dict[str, ToolCall], ids: tuple[str, ...]) -> str:
    call = calls.get(result.call_id)
    what = "a tool result" if call is None else brief_call(call, _CALL_CHARS)[:_WHAT_CHARS]
    media = "".join(f" and its {each.kind}" for each in result.media[:1])
    named = f'id="{ids[0]}"' if len(ids) == 1 else f'id="{ids[0]}", to="{ids[-1]}"'
    body = f"{len(result.text):,} characters of {what}{media} are stored: compaction_expand({named})"
    return marked(" ".join(body.split()), by=OFFLOADED_BY)


@attrs.frozen(kw_only=True)
class StubGroups:
    """Old groups of any kind give way to one stub message, which later steps update; other strategies' summaries stay."""

    def __call__(self, index: MessageIndex, groups: Sequence[MessageGroup]) -> Iterator[Leaving]:
        free = {group.id for group in groups if group.kind is not GroupKind.SUMMARY or group.is_collapsed or _is_mine(group)}
        lowest = min([0, *(group.id for group in index.included_groups)])
        done = -1
        while index.edit_count > done:  # what gained nothing in a large step may do so in a smaller one
            done = index.edit_count
            groups = [group for group in index.included_groups if group.id in free or group.id < lowest]
            for step in self._steps(index, replaceable(index, groups)):
                count = index.edit_count
                yield step
                if index.edit_count == count:  # refused, as it would be again
                    return

    def _steps(self, index: MessageIndex, groups: Sequence[MessageGroup]) -> Iterator[Leaving]:
        """One pass over the groups."""
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
        """The stub that takes the place of these groups and of the stubs before; ``None`` if there is nothing to gain."""
        about: dict[str, Any] = {"by": OFFLOADED_BY, "reason": "old messages", "at": index.context.now}
        records: dict[str, Record] = {}
        children: list[str] = []
        stubs = [(group, mark) for group in map(index.group, mine) if (mark := read_mark(group.messages[0])) is not None]
        for group in [*(group for group, _ in stubs), *fresh]:
            sources = group.messages if _is_mine(group) else index.read_originals(group)
            for child, record in stored_as(index, group, sources, **about):
                children.append(child)
                if record is not None:
                    records.setdefault(child, record)
        link = Record.of_summary(children, tokens=sum(group.tokens for group in fresh), **about)
        replaced = [*(group for group, _ in stubs), *fresh]
        text = _group_stub(link.id, [mark for _, mark in stubs], sum(len(group.messages) for group in fresh))
        messages = index.format.summary(text, *neighbours(index, {group.id for group in replaced}))
        if sum(index.measure(message)[0] for message in messages) >= sum(group.tokens for group in replaced):
            return None
        replace = Replace([group.id for group in replaced], messages, "old messages, stored")
        return [*records.values(), link], [replace]


def _is_mine(group: MessageGroup) -> bool:
    mark = read_mark(group.messages[0]) if group.kind is GroupKind.SUMMARY else None
    return mark is not None and bool(_stub_ids(mark))


def _group_stub(id: str, stubs: Sequence[Mark], messages: int) -> str:
    """The stub's text: how many messages it stands for, and how to get at them."""
    counts = [int(found[1].replace(",", "")) for mark in stubs if (found := re.match(r"([\d,]+) earlier", mark.body))]
    body = (
        f'{messages + sum(counts):,} earlier messages are stored: compaction_expand(id="{id}"), compaction_grep searches them.'
    )
    return marked(body, by=OFFLOADED_BY, round=max([mark.round for mark in stubs], default=0) + 1)

"""Repair a list of messages for the Anthropic Messages API, and report every change.

First each message is repaired by itself, where that adds nothing it did not say. Then calls and results are paired: a result
that answers nothing is removed, a late one moves to its call, and a call without a result gets a stub that says so. Calls at
the very end stay open, because they may still be answered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from ..base import Repair
from ..wire import NOT_RECORDED, Changes, fields_of, items_of, same, string
from .fields import blocks_of, call_id, is_id, result_id
from .hosted import repair_hosted
from .repair_steps import repair_content, repair_neighbours
from .rules import BREAKPOINTS, validate

__all__ = ["repair"]

_REMOVED: Final = "the result was removed"


def repair(raws: Sequence[Any]) -> Repair:
    """Return a list without problems, except for those that only invented content could fix; O(blocks).

    Args:
        raws: Messages as dictionaries or objects of the ``anthropic`` package; not changed.

    Returns:
        The new list, in which what needed nothing is the same object. A change names its place in ``raws`` and the rule that
        was broken, and its remedy is what was done; ``remaining`` is what `validate` finds in the new list, with places in it.

    >>> lost = {"type": "tool_result", "tool_use_id": "gone", "content": "18"}
    >>> result = repair([{"role": "user", "content": [lost, {"type": "text", "text": "hi"}]}])
    >>> result.messages
    [{'role': 'user', 'content': [{'type': 'text', 'text': 'hi'}]}]
    >>> [(change.where, change.rule, change.remedy) for change in result.changes]
    [('messages[0].content[0]', 'result-without-call', 'the result was removed')]
    """
    changes = Changes()
    messages = _Pairing(changes).run(_repaired(repair_hosted(raws, changes), changes))
    messages = _few_breakpoints(repair_neighbours(messages, changes), changes)
    return Repair([raw for _, raw in messages], changes.in_order(), tuple(validate([raw for _, raw in messages])))


def _repaired(raws: Sequence[Any], changes: Changes) -> list[tuple[int, Any]]:
    """Return the messages repaired one by one, each with its place in the input; empty ones are left out."""
    kept = [(index, repair_content(index, raw, changes, last=index + 1 == len(raws))) for index, raw in enumerate(raws)]
    return [(index, repaired) for index, repaired in kept if repaired is not None or raws[index] is None]


def _few_breakpoints(messages: list[tuple[int, Any]], changes: Changes) -> list[tuple[int, Any]]:
    """Return the messages with ``cache_control`` on the last few blocks only."""
    marked = [
        (place, position)
        for place, (_, raw) in enumerate(messages)
        for position, block in enumerate(blocks_of(fields_of(raw) or {}))
        if (fields_of(block) or {}).get("cache_control") is not None
    ]
    if len(marked) <= BREAKPOINTS:
        return messages
    result = messages.copy()
    for place, position in marked[:-BREAKPOINTS]:
        index, raw = result[place]
        fields = fields_of(raw) or {}
        blocks = list(blocks_of(fields))
        blocks[position] = {
            name: value for name, value in (fields_of(blocks[position]) or {}).items() if name != "cache_control"
        }
        result[place] = (index, {**fields, "content": blocks})
        changes.add(
            index, f".content[{position}].cache_control", "too-many-breakpoints", "later blocks have one", "it was removed"
        )
    return result


@attrs.define
class _Slot:
    """A call that a result may answer: the id that results name, and the id it has now."""

    key: str
    id: str
    answered: bool = False


@attrs.define(eq=False)
class _Turn:
    """An answer with calls, the results that are added after it, and whether a result may still come."""

    index: int
    slots: list[_Slot]
    late: list[Any] = attrs.field(factory=list[Any])
    pending: bool = False

    def stubs(self, changes: Changes) -> list[Any]:
        """Return a stub for every call without a result."""
        made: list[Any] = []
        for slot in self.slots:
            if not slot.answered and not self.pending and slot.id:
                made.append({"type": "tool_result", "tool_use_id": slot.id, "content": NOT_RECORDED})
                text = f"the call {slot.id!r} has no result"
                changes.add(self.index, "", "call-without-result", text, "a result was added that says it was not recorded")
        return made


@attrs.define(eq=False)
class _Placed:
    """A message that stays, its results, and the turn directly before it that they answer."""

    index: int
    raw: Any
    results: list[Any]
    others: list[Any]
    answers: _Turn | None = None


class _Pairing:
    """Puts every result into the message after its call. Holds state: the calls that a later result may still answer."""

    def __init__(self, changes: Changes) -> None:
        self.changes = changes
        self.open: dict[str, list[tuple[_Turn, _Slot]]] = {}
        self.ids: set[str] = set()

    def run(self, messages: Sequence[tuple[int, Any]]) -> list[tuple[int, Any]]:
        placed: list[_Placed | _Turn] = []
        turn: _Turn | None = None
        for place, (index, raw) in enumerate(messages):
            fields = fields_of(raw) or {}
            role = string(fields.get("role"))
            if role == "user":
                item = self.user(index, raw, fields, turn)
                last = place + 1 == len(messages) and not item.others
                self.leave(turn, pending=last)
                placed.extend([item] if turn is None or item.results else [turn, item])
                item.answers = turn if item.results else None
                turn = None
                continue
            if turn is not None:
                placed.append(turn)
            self.leave(turn, pending=False)
            turn = None
            if role == "assistant" and any(call_id(block) is not None for block in blocks_of(fields)):
                turn, begun = self.begin(index, raw, fields)
                placed.append(_Placed(index, begun, [], [begun]))
                continue
            placed.append(_Placed(index, raw, [], [raw]))
        if turn is not None:
            turn.pending = True
            placed.append(turn)
        return [each for item in placed for each in self.written(item)]

    def begin(self, index: int, raw: Any, fields: Mapping[str, Any]) -> tuple[_Turn, Any]:
        """Read the calls, and see to it that each has an id no other has."""
        blocks = items_of(fields.get("content")) or ()
        slots: list[_Slot] = []
        kept: list[Any] = []
        first: dict[str, Any] = {}
        for position, block in enumerate(blocks):
            identifier = call_id(block)
            if identifier is None:
                kept.append(block)
            elif identifier and first.get(identifier) == block:
                text = f"it repeats the call {identifier!r}"
                self.changes.add(index, f".content[{position}]", "duplicate-call-id", text, "the call was removed")
            elif is_id(identifier) and identifier not in self.ids:
                first[identifier] = block
                self.ids.add(identifier)
                slots.append(_Slot(identifier, identifier))
                kept.append(block)
            else:
                first.setdefault(identifier, block)
                given = self.fresh(index, position, identifier)
                slots.append(_Slot(identifier, given))
                kept.append({**(fields_of(block) or {}), "id": given})
        return _Turn(index, slots), raw if same(kept, blocks) else {**fields, "content": kept}

    def fresh(self, index: int, position: int, identifier: str) -> str:
        """Return an id that no call has, for a call without one or with the id of another."""
        given = f"toolu_{index}_{position}"
        while given in self.ids:
            given += "_"
        self.ids.add(given)
        rule, text = _why_renamed(identifier) if identifier else ("call-without-id", "it has no id")
        self.changes.add(index, f".content[{position}].id", rule, text, f"it was given the id {given!r}")
        return given

    def user(self, index: int, raw: Any, fields: Mapping[str, Any], turn: _Turn | None) -> _Placed:
        """Sort the blocks of a user message: its results go to their calls, the rest stays."""
        slots = [] if turn is None else turn.slots
        waiting: dict[str, deque[_Slot]] = {}
        for slot in slots:
            waiting.setdefault(slot.key, deque()).append(slot)
        item = _Placed(index, raw, [], [])
        for position, block in enumerate(items_of(fields.get("content")) or ()):
            identifier = result_id(block)
            if identifier is None:
                item.others.append(block)
            elif waiting.get(identifier):
                slot = waiting[identifier].popleft()
                slot.answered = True
                item.results.append(self.labelled(index, position, block, slot))
            else:
                self.move_or_remove(index, position, block, answered=identifier in waiting)
        if not items_of(fields.get("content")):
            item.others.append(raw)
        return item

    def move_or_remove(self, index: int, position: int, block: Any, *, answered: bool) -> None:
        """Move a late result to its call; remove one that answers nothing, or what is answered already."""
        identifier, place = result_id(block), f".content[{position}]"
        calls = self.open.get(identifier or "")
        if not identifier:
            self.changes.add(index, place, "result-without-id", "it does not say what it answers", _REMOVED)
        elif answered:
            self.changes.add(index, place, "duplicate-result", f"the call {identifier!r} is answered already", _REMOVED)
        elif not calls:
            self.changes.add(index, place, "result-without-call", f"no call {identifier!r} waits for it", _REMOVED)
        else:
            turn, slot = calls.pop()
            slot.answered = True
            text = f"it stands apart from the call {identifier!r}"
            self.changes.add(index, place, "result-without-call", text, "the result was moved to its call")
            turn.late.append(self.labelled(index, position, block, slot))

    def labelled(self, index: int, position: int, block: Any, slot: _Slot) -> Any:
        """Return the result with the id its call has now; the same object if it has that already."""
        if slot.key == slot.id:
            return block
        rule, text = _why_renamed(slot.key) if slot.key else ("result-without-id", "it has no id")
        self.changes.add(index, f".content[{position}].tool_use_id", rule, text, f"it was given the id {slot.id!r}")
        return {**(fields_of(block) or {}), "tool_use_id": slot.id}

    def leave(self, turn: _Turn | None, *, pending: bool) -> None:
        """End a turn; a later result may still answer its open calls."""
        if turn is None:
            return
        turn.pending = pending
        for slot in reversed(turn.slots):
            if not slot.answered and slot.key:
                self.open.setdefault(slot.key, []).append((turn, slot))

    def written(self, item: _Placed | _Turn) -> list[tuple[int, Any]]:
        """Return the messages that an item has become; none if all its blocks were moved."""
        if isinstance(item, _Turn):
            results = [*item.late, *item.stubs(self.changes)]
            return [(item.index, {"role": "user", "content": results})] if results else []
        late = [] if item.answers is None else [*item.answers.late, *item.answers.stubs(self.changes)]
        fields = fields_of(item.raw) or {}
        if item.others and item.others[0] is item.raw:
            return [(item.index, item.raw)]
        blocks = [*item.results, *late, *item.others]
        if same(blocks, items_of(fields.get("content")) or ()):
            return [(item.index, item.raw)]
        return [(item.index, {**fields, "content": blocks})] if blocks else []


def _why_renamed(identifier: str) -> tuple[str, str]:
    """Return the rule that the id of a call and its result breaks, and how."""
    if not is_id(identifier):
        return "malformed-id", "the id has characters that the API refuses"
    return "duplicate-call-id", "the id is another call's"

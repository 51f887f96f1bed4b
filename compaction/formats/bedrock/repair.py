"""Repair a list of messages for Amazon Bedrock's Converse API, and report every change.

First each message is repaired by itself, where that adds nothing it did not say, and those of one role that stand together
become one. Then calls and results are paired: a result that answers nothing is removed, a late one moves to its call, and a
call without a result gets a stub that says so. Calls at the very end stay open, because they may still be answered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Final

import attrs

from ..base import Repair
from ..wire import NOT_RECORDED, Changes, fields_of, items_of, same, string
from .fields import block_body, is_cache_point, is_tool_use_id, message_blocks, tool_result_id, tool_use_id
from .repair_steps import in_order, join_neighbours, repair_blocks
from .rules import CACHE_POINTS, ROLES, validate

__all__ = ["repair"]

_REMOVED: Final = "the result was removed"


def repair(raws: Sequence[Any]) -> Repair:
    """Return a list without problems, except for those that only invented content could fix; O(blocks).

    Args:
        raws: Messages as dictionaries; not changed.

    Returns:
        The new list, in which what needed nothing is the same object. A change names its place in ``raws`` and the rule that
        was broken, and its remedy is what was done; ``remaining`` is what `validate` finds in the new list, with places in it.

    >>> lost = {"toolResult": {"toolUseId": "gone", "content": [{"text": "18"}]}}
    >>> result = repair([{"role": "user", "content": [lost, {"text": "hi"}]}])
    >>> result.messages
    [{'role': 'user', 'content': [{'text': 'hi'}]}]
    >>> [(change.where, change.rule, change.remedy) for change in result.changes]
    [('messages[0].content[0]', 'result-without-call', 'the result was removed')]
    """
    changes = Changes()
    kept = [(index, repair_blocks(index, raw, changes)) for index, raw in enumerate(raws)]
    messages = [(index, raw) for index, raw in kept if raw is not None or raws[index] is None]
    messages = join_neighbours(messages, changes)
    messages = join_neighbours(_Pairing(messages, changes).run(), changes)
    messages = _few_cache_points(messages, changes)
    return Repair([raw for _, raw in messages], changes.in_order(), tuple(validate([raw for _, raw in messages])))


def _few_cache_points(messages: list[tuple[int, Any]], changes: Changes) -> list[tuple[int, Any]]:
    """Return the messages with the last few cache points only."""
    points = [
        (place, position)
        for place, (_, raw) in enumerate(messages)
        if string((fields_of(raw) or {}).get("role")) in ROLES
        for position, block in enumerate(message_blocks(fields_of(raw) or {}))
        if is_cache_point(block)
    ]
    left = messages.copy()
    for place, position in reversed(points[:-CACHE_POINTS]):
        index, raw = left[place]
        fields = fields_of(raw) or {}
        blocks = message_blocks(fields)
        left[place] = (index, {**fields, "content": [*blocks[:position], *blocks[position + 1 :]]})
        changes.add(index, f".content[{position}]", "too-many-cache-points", "there are later ones", "it was removed")
    return left


@attrs.define(eq=False)
class _Slot:
    """A call that a result may answer: its place, the id that results name, and the id it has now."""

    turn: int
    key: str
    id: str
    answered: bool = False


class _Pairing:
    """Puts every result into the message after its call. Holds state: the calls that a later result may still answer.

    Args:
        messages: The messages, each with its place in the input; no two of one role stand together.
        changes: Takes note of what is done.
    """

    def __init__(self, messages: Sequence[tuple[int, Any]], changes: Changes) -> None:
        self.messages = messages
        self.changes = changes
        self.open: dict[str, list[_Slot]] = {}
        self.moved: dict[int, list[Any]] = {}

    def run(self) -> list[tuple[int, Any]]:
        """Return the messages that are left."""
        slots: list[_Slot] = []
        written: list[tuple[int, Any]] = []
        turns: list[tuple[int, list[_Slot]]] = []  # the message after each answer with calls, and these calls
        for place, (index, given) in enumerate(self.messages):
            role = (fields_of(given) or {}).get("role")
            raw = self.answered(index, given, slots) if role == "user" else given
            for slot in reversed(slots):
                if not slot.answered:
                    self.open.setdefault(slot.key, []).append(slot)
            slots = []
            if role == "assistant":
                raw, slots = self.begun(place, index, given)
                turns.append((place + 1, slots))
            written.append((index, raw))
        return self.completed(written, turns)

    def begun(self, turn: int, index: int, raw: Any) -> tuple[Any, list[_Slot]]:
        """Read the calls of an answer, and see to it that each has an id that no other of them has."""
        fields = fields_of(raw) or {}
        blocks = message_blocks(fields)
        slots: list[_Slot] = []
        kept: list[Any] = []
        taken: dict[str, Any] = {}
        for position, block in enumerate(blocks):
            identifier = tool_use_id(block)
            if identifier is None:
                kept.append(block)
            elif identifier and taken.get(identifier) == block:
                text = f"it repeats the call {identifier!r}"
                self.changes.add(index, f".content[{position}]", "duplicate-call-id", text, "the call was removed")
            elif is_tool_use_id(identifier) and identifier not in taken:
                taken[identifier] = block
                slots.append(_Slot(turn, identifier, identifier))
                kept.append(block)
            else:
                given = self.fresh(index, position, identifier, taken)
                taken.setdefault(identifier, block)
                taken[given] = block
                slots.append(_Slot(turn, identifier, given))
                kept.append({"toolUse": {**(block_body(block, "toolUse") or {}), "toolUseId": given}})
        return (raw if same(kept, blocks) else {**fields, "content": kept}), slots

    def fresh(self, index: int, position: int, identifier: str, taken: dict[str, Any]) -> str:
        """Return an id for a call without one, with the id of another, or with one that the API refuses."""
        given = f"tooluse_{index}_{position}"
        while given in taken:
            given += "_"
        rule, text = _why_renamed(identifier)
        self.changes.add(index, f".content[{position}].toolUse.toolUseId", rule, text, f"it was given the id {given!r}")
        return given

    def answered(self, index: int, raw: Any, slots: Sequence[_Slot]) -> Any:
        """Return a user message with the results that answer the calls before it, and what else it says."""
        waiting: dict[str, deque[_Slot]] = {}
        for slot in slots:
            waiting.setdefault(slot.key, deque()).append(slot)
        fields = fields_of(raw) or {}
        kept: list[Any] = []
        for position, block in enumerate(message_blocks(fields)):
            identifier = tool_result_id(block)
            if identifier is None:
                kept.append(block)
            elif waiting.get(identifier):
                kept.append(self.labelled(index, position, block, waiting[identifier].popleft()))
            else:
                self.move_or_remove(index, position, block, identifier, repeated=identifier in waiting)
        return raw if same(kept, message_blocks(fields)) else {**fields, "content": kept}

    def move_or_remove(self, index: int, position: int, block: Any, identifier: str, *, repeated: bool) -> None:
        """Move a late result to its call; remove one that answers nothing, or what is answered already."""
        place, calls = f".content[{position}]", self.open.get(identifier)
        if not identifier:
            self.changes.add(index, place, "result-without-id", "it does not say what it answers", _REMOVED)
        elif repeated:
            self.changes.add(index, place, "duplicate-result", f"the call {identifier!r} is answered already", _REMOVED)
        elif not calls:
            self.changes.add(index, place, "result-without-call", f"no call {identifier!r} waits for it", _REMOVED)
        else:
            slot = calls.pop()
            text = f"it stands apart from the call {identifier!r}"
            self.changes.add(index, place, "result-without-call", text, "the result was moved to its call")
            self.moved.setdefault(slot.turn, []).append(self.labelled(index, position, block, slot))

    def labelled(self, index: int, position: int, block: Any, slot: _Slot) -> Any:
        """Return the result of a call, with the id that the call has now; the same object if it has that already."""
        slot.answered = True
        if slot.key == slot.id:
            return block
        rule, text = _why_renamed(slot.key) if slot.key else ("result-without-id", "it has no id")
        place = f".content[{position}].toolResult.toolUseId"
        self.changes.add(index, place, rule, text, f"it was given the id {slot.id!r}")
        return {"toolResult": {**(block_body(block, "toolResult") or {}), "toolUseId": slot.id}}

    def completed(self, written: Sequence[tuple[int, Any]], turns: Sequence[tuple[int, list[_Slot]]]) -> list[tuple[int, Any]]:
        """Return the messages with late results and stubs after their calls, and without those that are empty now."""
        calls = dict(turns)
        result: list[tuple[int, Any]] = []
        for place, (index, raw) in enumerate(written):
            fields = fields_of(raw) or {}
            owner = result[-1][0] if result else index
            waits = place + 1 == len(written) and _results_alone(raw)
            added = self.added(calls.get(place, []), owner, waits=waits)
            if fields.get("role") != "user":
                result += [(owner, {"role": "user", "content": added})] if added else []
                result.append((index, raw))
                continue
            before = message_blocks(fields)
            blocks = in_order(index, "user", [*added, *before], self.changes)
            if blocks or items_of(fields.get("content")) is None:
                result.append((index, raw if same(blocks, before) else {**fields, "content": blocks}))
        return result

    def added(self, slots: Sequence[_Slot], owner: int, *, waits: bool) -> list[Any]:
        """Return the late results of these calls, and a stub for every call without one."""
        made = list(self.moved.get(slots[0].turn, ())) if slots else []
        for slot in () if waits else slots:
            if not slot.answered:
                made.append({"toolResult": {"toolUseId": slot.id, "content": [{"text": NOT_RECORDED}], "status": "error"}})
                done = "a result was added that says it was not recorded"
                self.changes.add(owner, "", "call-without-result", f"the call {slot.id!r} has no result", done)
        return made


def _results_alone(raw: Any) -> bool:
    """Whether a message is the user's and holds nothing but results, so that others may still come."""
    fields = fields_of(raw) or {}
    blocks = message_blocks(fields)
    return fields.get("role") == "user" and all(tool_result_id(block) is not None or is_cache_point(block) for block in blocks)


def _why_renamed(identifier: str) -> tuple[str, str]:
    """Return the rule that the id of a call and its result breaks, and how."""
    if not identifier:
        return "call-without-id", "it has no id"
    if not is_tool_use_id(identifier):
        return "malformed-id", "the id has characters that the API refuses, or too many"
    return "duplicate-call-id", "the id is another call's"

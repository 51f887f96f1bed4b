"""Repair a list of messages for the chat-completions API, and report every change.

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
from ..wire import NOT_RECORDED, Changes, fields_of, items_of
from .fields import Key, has_calls, result_key, role_of
from .repair_steps import repair_message
from .rules import validate

__all__ = ["repair"]

_REMOVED: Final = "the message was removed"


def repair(raws: Sequence[Any]) -> Repair:
    """Return a list without problems, except for those that only invented content could fix; O(messages).

    Args:
        raws: Messages as dictionaries or objects of the ``openai`` package; not changed.

    Returns:
        The new list, in which what needed nothing is the same object. A change names its place in ``raws`` and the rule that
        was broken, and its remedy is what was done; ``remaining`` is what `validate` finds in the new list, with places in it.

    >>> result = repair([{"role": "user", "content": "hi"}, {"role": "tool", "tool_call_id": "gone", "content": "18"}])
    >>> result.messages
    [{'role': 'user', 'content': 'hi'}]
    >>> [(change.where, change.rule, change.remedy) for change in result.changes]
    [('messages[1]', 'result-without-call', 'the message was removed')]
    """
    changes = Changes()
    messages = _Pairing(changes).run([repair_message(index, raw, changes) for index, raw in enumerate(raws)])
    return Repair(messages, changes.in_order(), tuple(validate(messages)))


@attrs.define
class _Slot:
    """A call that a result may answer: the key that results name, if any, and the id it has now."""

    kind: str
    id: str
    key: Key | None
    answered: bool = False


@attrs.define
class _Result:
    """A result message, and the key of the call it answers, if it has one."""

    index: int
    raw: Any
    kind: str
    key: Key | None


@attrs.define
class _Turn:
    """An assistant message with calls, and the results that will stand directly after it."""

    message: Any
    slots: list[_Slot]
    results: list[Any] = attrs.field(factory=list[Any])

    def stub(self, index: int, changes: Changes) -> None:
        """Answer what is still open."""
        for slot in self.slots:
            if slot.kind == "tool" and not slot.answered:
                self.results.append({"role": "tool", "tool_call_id": slot.id, "content": NOT_RECORDED})
                text = f"the call {slot.id!r} has no result"
                changes.add(index, "", "call-without-result", text, "a result was added that says it was not recorded")


class _Pairing:
    """Puts every result next to its call. Holds state: the calls that a later result may still answer."""

    def __init__(self, changes: Changes) -> None:
        self.changes = changes
        self.open: dict[Key, list[tuple[_Turn, _Slot]]] = {}

    def run(self, messages: Sequence[Any]) -> list[Any]:
        placed: list[Any] = []
        turns: list[tuple[int, _Turn]] = []
        turn: _Turn | None = None
        results: list[_Result] = []
        for index, raw in enumerate(messages):
            fields = fields_of(raw) or {}
            role = role_of(fields)
            if role == "tool" or role == "function":
                results.append(_Result(index, raw, role, result_key(role, fields)))
                continue
            self.close(turn, results)
            turn, results = None, []
            if role == "assistant" and has_calls(fields):
                turn = self.begin(index, raw, fields)
                turns.append((index, turn))
            placed.append(raw if turn is None else turn)
        self.close(turn, results)
        for index, earlier in turns:
            if earlier is not turn:
                earlier.stub(index, self.changes)
        return [raw for item in placed for raw in ((item.message, *item.results) if isinstance(item, _Turn) else (item,))]

    def begin(self, index: int, raw: Any, fields: Mapping[str, Any]) -> _Turn:
        """Read the calls, and see to it that each has an id of its own."""
        entries = [(call, fields_of(call)) for call in items_of(fields.get("tool_calls")) or ()]
        taken = {_id(entry) for _, entry in entries}
        first: dict[str, Mapping[str, Any]] = {}
        slots: list[_Slot] = []
        kept: list[Any] = []
        for position, (call, entry) in enumerate(entries):
            identifier = _id(entry)
            if entry is None:
                kept.append(call)
            elif identifier and first.setdefault(identifier, entry) is entry:
                kept.append(call)
                slots.append(_Slot("tool", identifier, ("tool", identifier)))
            elif identifier and first[identifier] == entry:
                text = f"it repeats the call {identifier!r}"
                self.changes.add(index, f".tool_calls[{position}]", "duplicate-call-id", text, "the call was removed")
            else:
                given = self.fresh(index, position, identifier, taken)
                kept.append({**entry, "id": given})
                slots.append(_Slot("tool", given, ("tool", identifier) if identifier else None))
        legacy = fields_of(fields.get("function_call")) or {}
        if isinstance(name := legacy.get("name"), str) and name:
            slots.append(_Slot("function", name, ("function", name)))
        same = len(kept) == len(entries) and all(one is call for one, (call, _) in zip(kept, entries, strict=True))
        return _Turn(raw if same else {**fields, "tool_calls": kept}, slots)

    def fresh(self, index: int, position: int, identifier: str, taken: set[str]) -> str:
        """Return an id that no call of the message has, for a call without one or with the id of another."""
        given = f"call_{index}_{position}"
        while given in taken:
            given += "_"
        rule, text = ("duplicate-call-id", "its id is another call's") if identifier else ("call-without-id", "it has no id")
        self.changes.add(index, f".tool_calls[{position}]", rule, text, f"it was given the id {given!r}")
        return given

    def close(self, turn: _Turn | None, results: Sequence[_Result]) -> None:
        """Pair a run of results with the calls directly before it; the rest came late, or answers nothing."""
        waiting: dict[Key, deque[_Slot]] = {}
        slots = [] if turn is None else turn.slots
        for slot in slots:
            if slot.key is not None:
                waiting.setdefault(slot.key, deque()).append(slot)
        found = [waiting[result.key].popleft() if result.key and waiting.get(result.key) else None for result in results]
        for answered in found:
            if answered is not None:
                answered.answered = True
        _pair_in_order(slots, results, found)
        for result, own in zip(results, found, strict=True):
            if turn is not None and own is not None:
                turn.results.append(self.labelled(result, own))
            else:
                self.move_or_remove(result, answered=result.key in waiting)
        for slot in reversed(slots):
            if turn is not None and slot.key is not None and not slot.answered:
                self.open.setdefault(slot.key, []).append((turn, slot))

    def move_or_remove(self, result: _Result, *, answered: bool) -> None:
        """Move a late result to its call; remove one that answers nothing, or what is answered already."""
        if result.key is None:
            self.changes.add(result.index, "", "result-without-id", "it does not say what it answers", _REMOVED)
            return
        if answered:
            text = f"the call {result.key[1]!r} is answered already"
            self.changes.add(result.index, "", "duplicate-result", text, _REMOVED)
            return
        rule = "function-without-call" if result.kind == "function" else "result-without-call"
        calls = self.open.get(result.key)
        if not calls:
            self.changes.add(result.index, "", rule, f"no call {result.key[1]!r} waits for it", _REMOVED)
            return
        turn, slot = calls.pop()
        slot.answered = True
        text = f"it stands apart from the call {result.key[1]!r}"
        self.changes.add(result.index, "", rule, text, "the message was moved to the results of its call")
        turn.results.append(self.labelled(result, slot))

    def labelled(self, result: _Result, slot: _Slot) -> Any:
        """Return the result with the id its call has now; the same object if it has that already."""
        if result.key is not None and result.key[1] == slot.id:
            return result.raw
        rule, text = "result-without-id", "it does not say what it answers"
        if result.key is not None:
            rule, text = "duplicate-call-id", f"its call shared the id {result.key[1]!r} with another"
        self.changes.add(result.index, "", rule, text, f"the message was given the id {slot.id!r}")
        return {**(fields_of(result.raw) or {}), "name" if slot.kind == "function" else "tool_call_id": slot.id}


def _pair_in_order(slots: Sequence[_Slot], results: Sequence[_Result], found: list[_Slot | None]) -> None:
    """Give results without an id the calls that are left, in order, if there is exactly one for each."""
    for kind in ("tool", "function"):
        nameless = [n for n, result in enumerate(results) if result.key is None and result.kind == kind]
        left = [slot for slot in slots if slot.kind == kind and not slot.answered]
        if len(nameless) == len(left):
            for position, slot in zip(nameless, left, strict=True):
                found[position] = slot
                slot.answered = True


def _id(entry: Mapping[str, Any] | None) -> str:
    identifier = None if entry is None else entry.get("id")
    return identifier if isinstance(identifier, str) else ""

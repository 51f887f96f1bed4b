"""Repair of a list: empty messages and blocks, wrong starts, repeated ids, and calls and results without each other.

The table of a format's rules says which rules are repaired, and how. All other faults are only reported, because a repair would
have to guess. A repair works in rounds: each repairs the faults of the first step that can repair any.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, Literal, TypeAlias

import attrs

from .base import Problem
from .pairing import Fields, Finding, Pairing, Path, Slot, message_fields, shown_path
from .wire import fields_of, items_of

RepairKind: TypeAlias = Literal["message", "block", "blank", "id", "pair", "join"]
"""How a fault is repaired.

- ``"message"``: the message is removed.
- ``"block"``: the block is removed, and its message if nothing is left in it; or the id of an item, and an item that only
  repeats another.
- ``"blank"``: the missing text becomes an empty string.
- ``"id"``: a call and its result get a new id; a call that repeats another of its message is removed.
- ``"pair"``: a result moves to the latest call that has none, or is removed; a call without a result gets a stub.
- ``"join"``: the message is joined with the one before it, or removed if it is the first.
"""

_ROUNDS: Final = 100
"""The maximum number of rounds; ten are rarely needed."""
_GONE: Final = object()


@attrs.frozen(eq=False)
class _Fault:
    """A fault: the place of its message, the place in the message, what is wrong, and how it is repaired."""

    index: int
    path: Path
    rule: str
    text: str
    kind: RepairKind


def repair_by_rules(
    raws: Sequence[Any],
    findings: Callable[[Sequence[Any]], list[tuple[int, Finding]]],
    kinds: Mapping[str, RepairKind],
    pairing: Pairing,
) -> tuple[list[Any], tuple[Problem, ...]]:
    """Return the list with every fault repaired whose rule says how, and the changes; O(messages) a round.

    Args:
        raws: The list; not changed.
        findings: Returns the faults of a list, each with the place of its message.
        kinds: How the faults of a rule are repaired.
        pairing: The calls and results of the format.
    """
    draft = _Draft(raws, pairing)
    for _ in range(_ROUNDS):
        found = [_Fault(index, *each, kinds[each[1]]) for index, each in findings(draft.messages) if each[1] in kinds]
        if not draft.repair(sorted(found, key=lambda each: (each.index, each.path))):
            break
    return draft.messages, tuple([problem for _, problem in sorted(draft.changes, key=lambda each: each[0])])


class _Draft:
    """A list that is being repaired. Holds state: the messages, their places in the input, and the changes.

    Each step repairs faults from the end of the list to its start, so that earlier places do not move.
    """

    def __init__(self, raws: Sequence[Any], pairing: Pairing) -> None:
        self.messages = list(raws)
        self.changes: list[tuple[int, Problem]] = []
        self._pairing = pairing
        self._origins = list(range(len(raws)))
        self._contents: list[Fields] = []

    def repair(self, found: Sequence[_Fault]) -> bool:
        """Repair the faults of the first step that can repair any; return whether one could."""
        self._contents = list(map(message_fields, self.messages))
        noted, self.changes = self.changes, []
        steps: tuple[tuple[Callable[[Sequence[_Fault]], None], tuple[RepairKind, ...]], ...] = (
            (self._drop, ("message", "block", "blank")),
            (self._give_ids, ("id",)),
            (self._pair, ("pair",)),
            (self._join, ("join",)),
        )
        for step, kinds in steps:
            step([fault for fault in found if fault.kind in kinds])
            if self.changes:
                break
        changed = bool(self.changes)
        self.changes = [*noted, *reversed(self.changes)]
        return changed

    # ------------------------------------------------------------------------ steps

    def _drop(self, faults: Sequence[_Fault]) -> None:
        """Remove messages, blocks and ids, and write empty texts; an item that equals the first one with its id is removed."""
        ids = [(fields.get("id"), index) for index, fields in enumerate(self._contents)]
        first = {id: index for id, index in reversed(ids) if isinstance(id, str)}
        removed: tuple[int, Path] | None = None
        for fault in reversed(faults):
            path = fault.path if fault.kind == "block" else ()
            if path == ("id",) and self.messages[fault.index] == self.messages[first[self._value(fault.index, path)]]:
                path = ()
            if removed is not None and removed == (fault.index, fault.path[: len(removed[1])]):
                continue
            if fault.kind == "blank":
                self._note(fault, "it was made an empty string")
                self._write(fault.index, fault.path, "")
                continue
            what = "message" if not path else "block" if isinstance(path[-1], int) else path[-1]
            self._note(fault, f"the {what} was removed")
            removed = fault.index, () if self._remove(fault.index, path) else path

    def _give_ids(self, faults: Sequence[_Fault]) -> None:
        """Give calls, and their results, new ids, and remove calls that repeat another."""
        if not faults:
            return
        calls = self._answered_calls()
        taken = {slot.key for slot, *_ in calls.values()}
        for fault in reversed(faults):
            slot, repeats, result = calls[fault.index, fault.path]
            if repeats:
                self._note(fault, "the call was removed")
                self._remove(fault.index, slot.path)
                continue
            position = "".join([f"_{name}" for name in slot.path if isinstance(name, int)])
            given = f"{self._pairing.new_id}_{self._origins[fault.index]}{position}"
            while given in taken:
                given += "_"
            if result is not None:
                self._write(result[0], result[1].id, given)
                told = attrs.evolve(fault, index=result[0], path=result[1].id, text="its call was given another id")
                self._note(told, f"it was given the id {given!r}")
            self._note(fault, f"it was given the id {given!r}")
            self._write(fault.index, fault.path, given)

    def _pair(self, faults: Sequence[_Fault]) -> None:
        """Move late results to their calls, remove other results without a call, and add stubs for the other calls."""
        late = self._late_results(faults)
        moving, moved = set(late.values()), {call: self._value(each.index, each.path) for call, each in late.items()}
        for index, group in groupby(reversed(faults), key=lambda fault: fault.index):
            calls = _by_path(self._pairing.calls(self._contents[index]))
            added: list[Any] = []
            for fault in group:
                call = calls.get(fault.path)
                if fault in moved:
                    added.insert(0, moved[fault])
                elif call is not None and (stub := self._pairing.stub(self._value(index, fault.path), call.key)) is not None:
                    self._note(fault, "a result was added that says it was not recorded")
                    added.insert(0, stub)
                else:
                    what = "call" if call is not None else "result" if fault.path else "message"
                    self._note(fault, "the result was moved to its call" if fault in moving else f"the {what} was removed")
                    self._remove(index, fault.path)
            if added:
                self._add_results(index, added)

    def _join(self, faults: Sequence[_Fault]) -> None:
        """Join each message with those of its role before it; of a message that nobody opened, remove it."""
        places = {fault.index for fault in faults}
        content = self._pairing.content
        for fault in reversed(faults):
            index = fault.index
            if not index:
                self._note(fault, "the message was removed")
                self._remove(index)
            while index and self._role(index - 1) == self._role(index):
                blocks, before = (items_of(self._value(place, (content,))) for place in (index, index - 1))
                if blocks is None or before is None:
                    break
                if index == fault.index:
                    self._note(fault, "it was joined with the message before it")
                self._write(index - 1, (content,), [*before, *filter(self._pairing.movable, blocks)])
                self._remove(index)
                index -= 1
                if index in places:
                    break

    # ------------------------------------------------------------------------ calls and results

    def _answered_calls(self) -> dict[tuple[int, Path], tuple[Slot, bool, tuple[int, Slot] | None]]:
        """Return, by the place of its id, every call, whether it repeats another of its message, and its result; O(blocks)."""
        calls: dict[tuple[int, Path], tuple[Slot, bool, tuple[int, Slot] | None]] = {}
        for exchange in self._pairing.exchanges(self._contents):
            results: dict[str, deque[tuple[int, Slot]]] = {}
            for index in exchange:
                for result in self._pairing.results(self._contents[index]):
                    results.setdefault(result.key, deque()).append((index, result))
            for index in exchange:
                first: dict[str, Slot] = {}
                for slot in self._pairing.calls(self._contents[index]):
                    same = first.setdefault(slot.key, slot)
                    repeats = same is not slot and self._value(index, same.path) == self._value(index, slot.path)
                    own = None if repeats else results.get(slot.key)
                    calls[index, slot.id] = slot, repeats, own.popleft() if own and own[0][0] > index else None
        return calls

    def _late_results(self, faults: Iterable[_Fault]) -> dict[_Fault, _Fault]:
        """Return the results that come late, by call; of one message the first call is answered first; O(blocks)."""
        late: dict[_Fault, _Fault] = {}
        open: dict[str, list[_Fault]] = {}
        for index, group in groupby(faults, key=lambda fault: fault.index):
            calls = _by_path(self._pairing.calls(self._contents[index]))
            results = _by_path(self._pairing.results(self._contents[index]))
            made: dict[str, list[_Fault]] = {}
            for fault in group:
                if fault.path in calls:
                    made.setdefault(calls[fault.path].key, []).append(fault)
                elif fault.rule == "duplicate-result":
                    continue
                elif fault.path in results and (waiting := open.get(results[fault.path].key)):
                    late[waiting.pop()] = fault
            for key, waiting in made.items():
                open.setdefault(key, []).extend(reversed(waiting))
        return late

    def _add_results(self, index: int, added: list[Any]) -> None:
        """Put results after the message with their calls, and after the results that it has."""
        pairing, after = self._pairing, index + 1
        while after < len(self.messages) and pairing.answers(message_fields(self.messages[after])):
            after += 1
        blocks = None
        if pairing.content and after < len(self.messages):
            following = message_fields(self.messages[after])
            if pairing.continues(message_fields(self.messages[index]), following):
                blocks = items_of(following.get(pairing.content))
        if blocks is not None:
            own = len(list(pairing.results(message_fields(self.messages[after]))))
            self._write(after, (pairing.content,), [*blocks[:own], *added, *blocks[own:]])
            return
        made = [{"role": pairing.role, pairing.content: added}] if pairing.content else added
        self.messages[after:after] = made
        self._origins[after:after] = [self._origins[index]] * len(made)

    # ------------------------------------------------------------------------ the list

    def _role(self, index: int) -> Any:
        return message_fields(self.messages[index]).get("role")

    def _value(self, index: int, path: Path = ()) -> Any:
        """Return the value at a place; ``None`` if there is none."""
        value = self.messages[index]
        for name in path:
            value = (items_of(value) or ())[name] if isinstance(name, int) else (fields_of(value) or {}).get(name)
        return value

    def _write(self, index: int, path: Path, value: Any) -> None:
        """Put a value at a place; the objects around it are copied."""
        self.messages[index] = _with(self.messages[index], path, value)

    def _remove(self, index: int, path: Path = ()) -> bool:
        """Remove the value at a place, and its message if nothing is left in it; return whether the message is gone."""
        content = self._pairing.content
        if path:
            self._write(index, path, _GONE)
        gone = not path or message_fields(self.messages[index]).keys() <= {"type"}
        gone = gone or (path[0] == content and not self._value(index, (content,)))
        if gone:
            del self.messages[index], self._origins[index]
        return gone

    def _note(self, fault: _Fault, done: str) -> None:
        """Record a change, with its place in the input."""
        origin = self._origins[fault.index]
        where = f"messages[{origin}]{shown_path(fault.path)}"
        self.changes.append((origin, Problem(where, fault.rule, fault.text, done)))


def _by_path(slots: Iterable[Slot]) -> dict[Path, Slot]:
    return {slot.path: slot for slot in slots}


def _with(value: Any, path: Path, new: Any) -> Any:
    """Return a copy of a value with another value at a place in it."""
    if not path:
        return new
    name, rest = path[0], path[1:]
    if isinstance(name, int):
        items = list(items_of(value) or ())
        made = _with(items[name], rest, new)
        items[name : name + 1] = [] if made is _GONE else [made]
        return items
    fields = dict(fields_of(value) or {})
    fields[name] = _with(fields.get(name), rest, new)
    if fields[name] is _GONE:
        del fields[name]
    return fields

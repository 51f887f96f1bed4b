"""Repair of a list: empty messages and blocks, wrong starts, repeated ids, and calls and results without each other.

The table of a format's rules says which rules are repaired, and how. All other faults are only reported, because a repair would
have to guess. A repair works in rounds: each repairs the faults of the first step that can repair any.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, Literal, TypeAlias

import attrs

from .base import Problem
from .pairing import Fields, Finding, Pairing, Path, Slot, message_fields, shown_path
from .wire import fields_of, items_of

RepairKind: TypeAlias = Literal["message", "block", "blank", "id", "pair", "join"]
"""How a fault is repaired.

- ``"message"``: the message is removed.
- ``"block"``: the block is removed, and so is its message if it is then empty. If two items have one id, the later one
  loses its id, or is removed if they are equal.
- ``"blank"``: the missing text becomes an empty string.
- ``"id"``: a call and its result get a new id; a call that repeats another of its message is removed.
- ``"pair"``: a result moves to the latest call that has none, or is removed; a call without a result gets a stub.
- ``"join"``: the message is joined with the one before it, or removed if it is the first.
"""

_ROUNDS: Final = 100
"""The maximum number of rounds; ten are rarely needed."""
_GONE: Final = object()
_Change: TypeAlias = tuple[int, Problem]
"""The place of a message in the input, and what was changed in it."""


@attrs.frozen(eq=False)
class _Fault:
    """A fault: the place of its message, the place in the message, what is wrong, and how it is repaired."""

    index: int
    path: Path
    rule: str
    text: str
    kind: RepairKind


@attrs.frozen
class _ResultAt:
    """A result, and the place of its message."""

    index: int
    slot: Slot


@attrs.frozen
class _AnsweredCall:
    """A call, whether it repeats an earlier call of its message, and its result, if it has one of its own."""

    slot: Slot
    repeats: bool
    result: _ResultAt | None


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
    changes: list[_Change] = []
    for _ in range(_ROUNDS):
        found = [_Fault(index, *each, kinds[each[1]]) for index, each in findings(draft.messages) if each[1] in kinds]
        made = draft.repair(sorted(found, key=lambda fault: (fault.index, fault.path)))
        if not made:
            break
        changes += made
    return draft.messages, tuple([problem for _, problem in sorted(changes, key=lambda change: change[0])])


class _Draft:
    """A list that is being repaired. Holds state: the messages, and their places in the input.

    Each step repairs faults from the end of the list to its start, so that earlier places do not move, and yields its changes.
    """

    def __init__(self, raws: Sequence[Any], pairing: Pairing) -> None:
        self.messages = list(raws)
        self._pairing = pairing
        self._origins = list(range(len(raws)))
        self._contents: list[Fields] = []

    def repair(self, found: Sequence[_Fault]) -> list[_Change]:
        """Repair the faults of the first step that can repair any; return the changes, in the order of the list."""
        self._contents = list(map(message_fields, self.messages))
        steps: tuple[tuple[Callable[[Sequence[_Fault]], Iterator[_Change]], tuple[RepairKind, ...]], ...] = (
            (self._drop, ("message", "block", "blank")),
            (self._give_ids, ("id",)),
            (self._pair, ("pair",)),
            (self._join, ("join",)),
        )
        for step, kinds in steps:
            if changes := list(step([fault for fault in found if fault.kind in kinds])):
                return changes[::-1]
        return []

    # ------------------------------------------------------------------------ empty messages, blocks and texts

    def _drop(self, faults: Sequence[_Fault]) -> Iterator[_Change]:
        """Remove messages, blocks and ids, and write empty texts."""
        originals = self._first_with_id() if faults else {}
        for _, of_message in groupby(reversed(faults), key=_place):
            removed: Path | None = None  # last in this message, with all faults in it; the empty path is the whole message
            for fault in of_message:
                if removed is not None and fault.path[: len(removed)] == removed:
                    continue
                if fault.kind == "blank":
                    yield self._noted(fault, "it was made an empty string")
                    self._write(fault.index, fault.path, "")
                    continue
                path = self._removable(fault, originals)
                what = "message" if not path else "block" if isinstance(path[-1], int) else path[-1]
                yield self._noted(fault, f"the {what} was removed")
                removed = () if self._remove(fault.index, path) else path

    def _first_with_id(self) -> dict[str, int]:
        """Return the place of the first item with each id."""
        ids = [(fields.get("id"), index) for index, fields in enumerate(self._contents)]
        return {id: index for id, index in reversed(ids) if isinstance(id, str)}

    def _removable(self, fault: _Fault, originals: Mapping[str, int]) -> Path:
        """Return the place that a fault removes: its block, its id, or, as an empty path, the message."""
        if fault.kind == "message":
            return ()
        if fault.path == ("id",):
            item = self.messages[fault.index]
            return () if item == self.messages[originals[self._value(fault.index, fault.path)]] else fault.path
        return fault.path

    # ------------------------------------------------------------------------ ids

    def _give_ids(self, faults: Sequence[_Fault]) -> Iterator[_Change]:
        """Give calls, and their results, new ids, and remove calls that repeat another."""
        calls = self._answered_calls() if faults else {}
        taken = {call.slot.key for call in calls.values()}
        for fault in reversed(faults):
            call = calls[fault.index, fault.path]
            if call.repeats:
                yield self._noted(fault, "the call was removed")
                self._remove(fault.index, call.slot.path)
                continue
            given = self._new_id(fault, call.slot, taken)
            done = f"it was given the id {given!r}"
            if (result := call.result) is not None:
                of_result = attrs.evolve(fault, index=result.index, path=result.slot.id, text="its call was given another id")
                yield self._noted(of_result, done)
                self._write(result.index, result.slot.id, given)
            yield self._noted(fault, done)
            self._write(fault.index, fault.path, given)

    def _new_id(self, fault: _Fault, call: Slot, taken: set[str]) -> str:
        """Return an id made from the place of a call in the input, which no call has."""
        position = "".join([f"_{name}" for name in call.path if isinstance(name, int)])
        given = f"{self._pairing.new_id}_{self._origins[fault.index]}{position}"
        while given in taken:
            given += "_"
        return given

    def _answered_calls(self) -> dict[tuple[int, Path], _AnsweredCall]:
        """Return every call by the places of its message and its id; O(blocks)."""
        calls: dict[tuple[int, Path], _AnsweredCall] = {}
        for exchange in self._pairing.exchanges(self._contents):
            results: dict[str, deque[_ResultAt]] = {}
            for index in exchange:
                for result in self._pairing.results(self._contents[index]):
                    results.setdefault(result.key, deque()).append(_ResultAt(index, result))
            for index in exchange:
                first: dict[str, Slot] = {}
                for slot in self._pairing.calls(self._contents[index]):
                    same = first.setdefault(slot.key, slot)
                    repeats = same is not slot and self._value(index, same.path) == self._value(index, slot.path)
                    left = None if repeats else results.get(slot.key)
                    own = left.popleft() if left and left[0].index > index else None
                    calls[index, slot.id] = _AnsweredCall(slot, repeats, own)
        return calls

    # ------------------------------------------------------------------------ calls and results without each other

    def _pair(self, faults: Sequence[_Fault]) -> Iterator[_Change]:
        """Move late results to their calls, add stubs for the other calls, and remove results without a call."""
        late = self._late_results(faults)
        moved, missing = set(late.values()), self._missing_results(faults, late)
        for index, of_message in groupby(reversed(faults), key=_place):
            calls, added = self._calls(index), list[Any]()
            for fault in of_message:
                if fault in missing:
                    added.insert(0, missing[fault])
                    if fault not in late:
                        yield self._noted(fault, "a result was added that says it was not recorded")
                    continue
                what = "call" if fault.path in calls else "result" if fault.path else "message"
                yield self._noted(fault, "the result was moved to its call" if fault in moved else f"the {what} was removed")
                self._remove(index, fault.path)
            if added:
                self._add_results(index, added)

    def _late_results(self, faults: Iterable[_Fault]) -> dict[_Fault, _Fault]:
        """Return the results that come late, by call; of one message the first call is answered first; O(blocks)."""
        late: dict[_Fault, _Fault] = {}
        waiting: dict[str, list[_Fault]] = {}
        for index, of_message in groupby(faults, key=_place):
            calls, results = self._calls(index), _by_path(self._pairing.results(self._contents[index]))
            made: dict[str, list[_Fault]] = {}
            for fault in of_message:
                if fault.path in calls:
                    made.setdefault(calls[fault.path].key, []).append(fault)
                elif fault.rule == "duplicate-result" or fault.path not in results:
                    continue
                elif of_key := waiting.get(results[fault.path].key):
                    late[of_key.pop()] = fault
            for key, of_key in made.items():
                waiting.setdefault(key, []).extend(reversed(of_key))
        return late

    def _missing_results(self, faults: Iterable[_Fault], late: Mapping[_Fault, _Fault]) -> dict[_Fault, Any]:
        """Return the late result of each call, or else its stub; not of a call whose result cannot be invented."""
        missing: dict[_Fault, Any] = {}
        for index, of_message in groupby(faults, key=_place):
            calls = self._calls(index)
            for fault in of_message:
                if fault in late:
                    missing[fault] = self._value(late[fault].index, late[fault].path)
                elif (call := calls.get(fault.path)) is not None:
                    stub = self._pairing.stub(self._value(index, fault.path), call.key)
                    if stub is not None:
                        missing[fault] = stub
        return missing

    def _add_results(self, index: int, added: list[Any]) -> None:
        """Put results after the message with their calls, and after the results that it has."""
        pairing, after = self._pairing, index + 1
        while after < len(self.messages) and pairing.answers(message_fields(self.messages[after])):
            after += 1
        if pairing.content and after < len(self.messages):
            following = message_fields(self.messages[after])
            blocks = items_of(following.get(pairing.content))
            if blocks is not None and pairing.continues(message_fields(self.messages[index]), following):
                own = len(list(pairing.results(following)))
                self._write(after, (pairing.content,), [*blocks[:own], *added, *blocks[own:]])
                return
        made = [{"role": "user", pairing.content: added}] if pairing.content else added
        self.messages[after:after] = made
        self._origins[after:after] = [self._origins[index]] * len(made)

    def _calls(self, index: int) -> dict[Path, Slot]:
        return _by_path(self._pairing.calls(self._contents[index]))

    # ------------------------------------------------------------------------ roles

    def _join(self, faults: Sequence[_Fault]) -> Iterator[_Change]:
        """Join each message with those of its role before it. Remove a first message that may not open the list."""
        places = {fault.index for fault in faults}
        for fault in reversed(faults):
            if not fault.index:
                yield self._noted(fault, "the message was removed")
                self._remove(0)
                continue
            joined = self._noted(fault, "it was joined with the message before it")
            if self._join_with_previous(fault.index):
                yield joined
                index = fault.index - 1
                while index and index not in places and self._join_with_previous(index):
                    index -= 1

    def _join_with_previous(self, index: int) -> bool:
        """Move the blocks of a message into the one before it; return whether both have one role, and blocks."""
        content = self._pairing.content
        before, after = (message_fields(self.messages[place]) for place in (index - 1, index))
        blocks, earlier = items_of(after.get(content)), items_of(before.get(content))
        if blocks is None or earlier is None or before.get("role") != after.get("role"):
            return False
        self._write(index - 1, (content,), [*earlier, *filter(self._pairing.movable, blocks)])
        self._remove(index)
        return True

    # ------------------------------------------------------------------------ the list

    def _value(self, index: int, path: Path) -> Any:
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
            fields = message_fields(self.messages[index])
            only_typed = fields.keys() <= {"type"}  # a reference, which is nothing without its id
            if not only_typed and (path[0] != content or fields.get(content)):
                return False
        del self.messages[index], self._origins[index]
        return True

    def _noted(self, fault: _Fault, done: str) -> _Change:
        """Return a change, with its place in the input."""
        origin = self._origins[fault.index]
        where = f"messages[{origin}]{shown_path(fault.path)}"
        return origin, Problem(where, fault.rule, fault.text, done)


def _place(fault: _Fault) -> int:
    return fault.index


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

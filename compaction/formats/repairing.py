"""Repair of a list: empty messages and blocks, wrong starts, repeated ids, and calls and results without each other.

The table of a format's rules says which rules are repaired, and how. All other faults are only reported, because a repair would
have to guess. A repair works in rounds: each repairs the faults of the first step that can repair any.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
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

_ROUNDS: Final = 100  # the maximum number of rounds; ten are rarely needed
_GONE: Final = object()
_Change: TypeAlias = tuple[int, Problem]  # the place of a message in the input, and what was changed in it
_Place: TypeAlias = tuple[int, Path]  # the place of a message in the draft, and a place in the message


@attrs.frozen(eq=False)
class _Fault:
    """A fault: the place of its message, the place in the message, what is wrong, and how it is repaired."""

    index: int
    path: Path
    rule: str
    text: str
    kind: RepairKind

    @property
    def place(self) -> _Place:
        return self.index, self.path


_message_of: Final[Callable[[_Fault], int]] = attrgetter("index")


def repair_by_rules(
    raws: Sequence[Any],
    findings: Callable[[Sequence[Any]], list[tuple[int, Finding]]],
    kinds: Mapping[str, RepairKind],
    pairing: Pairing,
) -> tuple[list[Any], tuple[Problem, ...]]:
    """Return a copy of the list with every fault repaired whose rule says how, and the changes; O(messages) a round.

    ``findings`` returns the faults of a list, each with the place of its message, and ``kinds`` says how those of a rule are
    repaired.
    """
    draft = _Draft(raws, pairing)
    changes: list[_Change] = []
    for _ in range(_ROUNDS):
        found = [_Fault(index, *each, kinds[each[1]]) for index, each in findings(draft.messages) if each[1] in kinds]
        made = draft.repair(sorted(found, key=attrgetter("place"))) if found else []
        if not made:
            break
        changes += made
    return draft.messages, tuple([problem for _, problem in sorted(changes, key=itemgetter(0))])


class _Draft:
    """A list that is being repaired. Holds state: the messages, and their places in the input.

    Each step repairs faults from the end of the list to its start, so that earlier places do not move, and yields its changes.
    """

    def __init__(self, raws: Sequence[Any], pairing: Pairing) -> None:
        self.messages = list(raws)
        self._pairing = pairing
        self._origins = list(range(len(raws)))
        self._contents: list[Fields] = []
        self._calls: dict[_Place, Slot] = {}
        self._results: dict[_Place, Slot] = {}

    def repair(self, found: Sequence[_Fault]) -> list[_Change]:
        """Repair the faults of the first step that can repair any; return the changes, in the order of the list."""
        self._contents = contents = list(map(message_fields, self.messages))
        pairing = self._pairing
        self._calls = {(index, slot.path): slot for index, fields in enumerate(contents) for slot in pairing.calls(fields)}
        self._results = {(index, slot.path): slot for index, fields in enumerate(contents) for slot in pairing.results(fields)}
        steps: tuple[tuple[Callable[[Sequence[_Fault]], Iterator[_Change]], tuple[RepairKind, ...]], ...] = (
            (self._drop, ("message", "block", "blank")),
            (self._give_ids, ("id",)),
            (self._pair, ("pair",)),
            (self._join, ("join",)),
        )
        for step, kinds in steps:
            faults = [fault for fault in found if fault.kind in kinds]
            if faults and (changes := list(step(faults))):
                return changes[::-1]
        return []

    # ------------------------------------------------------------------------ empty messages, blocks and texts

    def _drop(self, faults: Sequence[_Fault]) -> Iterator[_Change]:
        """Remove messages, blocks and ids, and write empty texts."""
        ids = [(fields.get("id"), index) for index, fields in enumerate(self._contents)]
        first = {id: index for id, index in reversed(ids) if isinstance(id, str)}
        for _, of_message in groupby(reversed(faults), key=_message_of):
            removed: Path | None = None  # last in this message, with all faults in it; the empty path is the whole message
            for fault in of_message:
                if removed is not None and fault.path[: len(removed)] == removed:
                    continue
                if fault.kind == "blank":
                    yield self._noted(fault, "it was made an empty string")
                    self._write(fault.index, fault.path, "")
                    continue
                message = self.messages[fault.index]
                repeats = fault.path == ("id",) and message == self.messages[first[self._contents[fault.index]["id"]]]
                path = () if fault.kind == "message" or repeats else fault.path
                what = "message" if not path else "block" if isinstance(path[-1], int) else path[-1]
                yield self._noted(fault, f"the {what} was removed")
                removed = () if self._remove(fault.index, path) else path

    # ------------------------------------------------------------------------ ids

    def _give_ids(self, faults: Sequence[_Fault]) -> Iterator[_Change]:
        """Give calls, and their results, new ids, and remove calls that repeat another."""
        calls = self._answered_calls()
        taken = {slot.key for slot in self._calls.values()}
        for fault in reversed(faults):
            slot, repeats, of_result = calls[fault.place]
            if repeats:
                yield self._noted(fault, "the call was removed")
                self._remove(fault.index, slot.path)
                continue
            position = "".join([f"_{name}" for name in slot.path if isinstance(name, int)])
            given = f"{self._pairing.new_id}_{self._origins[fault.index]}{position}"
            while given in taken:
                given += "_"
            done = f"it was given the id {given!r}"
            for index, path in of_result:
                yield self._noted(attrs.evolve(fault, index=index, path=path, text="its call was given another id"), done)
                self._write(index, path, given)
            yield self._noted(fault, done)
            self._write(fault.index, fault.path, given)

    def _answered_calls(self) -> dict[_Place, tuple[Slot, bool, list[_Place]]]:
        """Return every call by the place of its id, whether it repeats one of its message, and the place of its result's id."""
        calls: dict[_Place, tuple[Slot, bool, list[_Place]]] = {}
        for exchange in self._pairing.exchanges(self._contents):
            results: dict[str, deque[_Place]] = {}
            for index in exchange:
                for result in self._pairing.results(self._contents[index]):
                    results.setdefault(result.key, deque()).append((index, result.id))
            for index in exchange:
                first: dict[str, Slot] = {}
                for slot in self._pairing.calls(self._contents[index]):
                    same = first.setdefault(slot.key, slot)
                    repeats = same is not slot and self._value(index, same.path) == self._value(index, slot.path)
                    left = None if repeats else results.get(slot.key)
                    calls[index, slot.id] = slot, repeats, [left.popleft()] if left and left[0][0] > index else []
        return calls

    # ------------------------------------------------------------------------ calls and results without each other

    def _pair(self, faults: Sequence[_Fault]) -> Iterator[_Change]:
        """Move late results to their calls, add stubs for the other calls, and remove results without a call."""
        late = self._late_results(faults)
        moved = {result: self._value(*result.place) for result in late.values()}
        for index, of_message in groupby(reversed(faults), key=_message_of):
            added: list[Any] = []
            for fault in of_message:
                call = self._calls.get(fault.place)
                if fault in late:
                    added.insert(0, moved[late[fault]])
                elif call is not None and (stub := self._pairing.stub(self._value(*fault.place), call.key)) is not None:
                    added.insert(0, stub)
                    yield self._noted(fault, "a result was added that says it was not recorded")
                else:
                    what = "call" if call is not None else "result" if fault.path else "message"
                    yield self._noted(
                        fault, "the result was moved to its call" if fault in moved else f"the {what} was removed"
                    )
                    self._remove(*fault.place)
            if added:
                self._add_results(index, added)

    def _late_results(self, faults: Sequence[_Fault]) -> dict[_Fault, _Fault]:
        """Return the results that come late, by call; of one message the first call is answered first; O(blocks)."""
        late: dict[_Fault, _Fault] = {}
        waiting: defaultdict[str, list[_Fault]] = defaultdict(list)
        for _, of_message in groupby(faults, key=_message_of):
            here = list(of_message)
            for fault in here:
                result = self._results.get(fault.place) if fault.rule != "duplicate-result" else None
                if result is not None and (calls := waiting[result.key]):
                    late[calls.pop()] = fault
            for fault in reversed(here):
                if (call := self._calls.get(fault.place)) is not None:
                    waiting[call.key].append(fault)
        return late

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
        origin = self._origins[fault.index]
        where = f"messages[{origin}]{shown_path(fault.path)}"
        return origin, Problem(where, fault.rule, fault.text, done)


def _with(value: Any, path: Path, new: Any) -> Any:
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

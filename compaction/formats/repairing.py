"""Repair of a list by its format's rules: validation finds the faults, and the fix of each rule repairs them.

Fixes are applied in rounds, each from the end of the list to its start, so that earlier places do not move. Each round applies
the fixes of one step: shapes before order, ids before pairs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, TypeAlias, TypeVar, cast

import attrs

from .base import Problem, Repair
from .pairing import Fields, Pairing, Path, Slot, message_fields, shown_path
from .wire import fields_of, items_of

_ROUNDS: Final = 100
"""The maximum number of rounds; ten are rarely needed."""
_STEP: Final = re.compile(r"\.(\w+)|\[(\d+)\]")

_Plan = TypeVar("_Plan")
_Found: TypeAlias = tuple[int, Path, Problem]
"""A problem, the place of its message, and its place in the message."""


class Draft:
    """A list that is being repaired. Holds state: the messages, their places in the input, and the changes.

    Args:
        raws: The list; not changed.
        pairing: The calls and results of the format.

    Attributes:
        contents: The fields of the messages as they were when the round began.
        found: The problems that the round began with.
        late: The results that move to the call at this place.
        added: The results to put after the message that is being repaired.
        rule: The rule that is being repaired.
        edited: Whether the round changed anything.
    """

    def __init__(self, raws: Sequence[Any], pairing: Pairing) -> None:
        self.messages = list(raws)
        self.pairing = pairing
        self.changes: list[tuple[int, Problem]] = []
        self.contents: list[Fields] = []
        self.found: Sequence[_Found] = ()
        self.late: dict[tuple[int, Path], Any] = {}
        self.added: list[Any] = []
        self.rule = ""
        self.edited = False
        self._origins = list(range(len(raws)))
        self._noted: list[tuple[int, Problem]] = []
        self._removed: Path | None = None
        self._plans: dict[Callable[[Draft], Any], Any] = {}
        self._slots: dict[tuple[int, Callable[[Fields], Iterable[Slot]]], dict[Path, Slot]] = {}

    def origin(self, index: int) -> int:
        """Return the place that a message has in the input."""
        return self._origins[index]

    def value(self, index: int, path: Path = ()) -> Any:
        """Return the value at a place; ``None`` if there is none."""
        value = self.messages[index]
        for name in path:
            value = (items_of(value) or ())[name] if isinstance(name, int) else (fields_of(value) or {}).get(name)
        return value

    def fields(self, index: int) -> Fields:
        """Return the fields of a message as it is now."""
        return message_fields(self.messages[index])

    def write(self, index: int, path: Path, value: Any) -> None:
        """Put a value at a place; the objects around it are copied."""
        self.edited = True
        self.messages[index] = _with(self.messages[index], path, value)

    def remove(self, index: int, path: Path = ()) -> None:
        """Remove the value at a place, and its message if no block is left in it."""
        content = self.pairing.content
        self._removed = path
        if path:
            self.write(index, path, _GONE)
        if not path or (content and path[0] == content and not self.value(index, (content,))):
            self.edited = True
            del self.messages[index], self._origins[index]

    def insert(self, index: int, raws: Sequence[Any], origin: int) -> None:
        """Put messages before a place; their changes count as those of the message at ``origin`` in the input."""
        self.edited = True
        self.messages[index:index] = raws
        self._origins[index:index] = [origin] * len(raws)

    def note(self, index: int, path: Path, message: str, done: str) -> None:
        """Record a further change for the rule that is being repaired."""
        origin = self._origins[index]
        self._noted.append((origin, Problem(f"messages[{origin}]{shown_path(path)}", self.rule, message, done)))

    def calls(self, index: int) -> dict[Path, Slot]:
        """Return the calls of a message by place, as they were when the round began."""
        return self._by_path(index, self.pairing.calls)

    def results(self, index: int) -> dict[Path, Slot]:
        """Return the results of a message by place, as they were when the round began."""
        return self._by_path(index, self.pairing.results)

    def _by_path(self, index: int, slots: Callable[[Fields], Iterable[Slot]]) -> dict[Path, Slot]:
        if (index, slots) not in self._slots:
            self._slots[index, slots] = {slot.path: slot for slot in slots(self.contents[index])}
        return self._slots[index, slots]

    def once(self, plan: Callable[[Draft], _Plan]) -> _Plan:
        """Return what a function returns for the list at the start of the round; it is called once a round."""
        if plan not in self._plans:
            self._plans[plan] = plan(self)
        return cast("_Plan", self._plans[plan])

    def round(self, found: Sequence[_Found], fixes: Mapping[str, Fix]) -> bool:
        """Apply fixes, the last place first; return whether any changed the list."""
        self.edited = False
        self._plans, self._slots = {}, {}
        self.contents = list(map(message_fields, self.messages))
        for index, group in groupby(reversed(found), key=lambda each: each[0]):
            self._removed = None
            for _, path, problem in group:
                if self._removed is not None and path[: len(self._removed)] == self._removed:
                    continue
                origin, self.rule = self._origins[index], problem.rule
                if done := fixes[problem.rule](self, index, path):
                    where = f"messages[{origin}]{shown_path(path)}"
                    self._noted.append((origin, attrs.evolve(problem, where=where, remedy=done)))
            self._add_results(index)
        self.changes += reversed(self._noted)
        self._noted = []
        return self.edited

    def _add_results(self, index: int) -> None:
        """Put the added results after the message with their calls."""
        added, self.added = self.added, []
        if not added:
            return
        pairing, after = self.pairing, index + 1
        while after < len(self.messages) and pairing.answers(self.fields(after)):
            after += 1
        if not pairing.content:
            self.insert(after, added, self._origins[index])
            return
        follows = after < len(self.messages) and pairing.continues(self.fields(index), self.fields(after))
        blocks = items_of(self.value(after, (pairing.content,))) if follows else None
        if blocks is None:
            self.insert(after, [{"role": "user", pairing.content: added}], self._origins[index])
        else:
            own = len(list(pairing.results(self.fields(after))))
            self.write(after, (pairing.content,), [*blocks[:own], *added, *blocks[own:]])


Fix: TypeAlias = Callable[[Draft, int, Path], "str | None"]
"""Repairs a fault, given the place of the message and the place in it; returns a description, or ``None`` if it cannot."""
_GONE: Final = object()


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


def repair_by_rules(
    raws: Sequence[Any],
    validate: Callable[[Sequence[Any]], list[Problem]],
    fixes: Mapping[str, tuple[int, Fix]],
    pairing: Pairing,
) -> Repair:
    """Return the list with every fault repaired that has a fix; O(messages) a round.

    Args:
        raws: The list; not changed.
        validate: Finds the faults.
        fixes: The step and the fix of each rule that has one.
        pairing: The calls and results of the format.
    """
    draft = Draft(raws, pairing)
    by_rule = {rule: fix for rule, (_, fix) in fixes.items()}
    remaining: list[Problem] = []
    for _ in range(_ROUNDS):
        remaining = validate(draft.messages)
        draft.found = sorted(
            [(*_place(each.where), each) for each in remaining if each.rule in fixes], key=lambda each: each[:2]
        )
        steps = sorted({fixes[problem.rule][0] for *_, problem in draft.found})
        if not any(draft.round([each for each in draft.found if fixes[each[2].rule][0] == step], by_rule) for step in steps):
            break
    changes = tuple(problem for _, problem in sorted(draft.changes, key=lambda each: each[0]))
    return Repair(draft.messages, changes, tuple(remaining))


def _place(where: str) -> tuple[int, Path]:
    """Return the place of a message and the place in it."""
    [(_, index), *path] = _STEP.findall(where)
    return int(index), tuple(name or int(position) for name, position in path)

"""Fixes for broken rules that several formats share. A fix invents no content."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

from .pairing import Fields, Path, Slot
from .repairing import Draft, Fix
from .wire import items_of, json_object, same


def drop(done: str, *, up: int = 0, field: str = "") -> Fix:
    """Remove the value at a place, the value so many levels above it, or one of its fields."""

    def fix(draft: Draft, index: int, path: Path) -> str:
        draft.remove(index, (*path[: len(path) - up], field) if field else path[: len(path) - up])
        return done

    return fix


def first_of(*fixes: Fix) -> Fix:
    """Apply the first of these fixes that changes something."""
    return lambda draft, index, path: next((done for fix in fixes if (done := fix(draft, index, path))), None)


def rewrite(make: Callable[[Any], Any], done: str, when: Callable[[Path], bool] = lambda path: True) -> Fix:
    """Replace a value with what ``make`` returns for it; leave it if that is ``None``, or at any other place."""

    def fix(draft: Draft, index: int, path: Path) -> str | None:
        value = make(draft.value(index, path)) if when(path) else None
        if value is None:
            return None
        draft.write(index, path, value)
        return done

    return fix


def part_at(make: Callable[[str], Any]) -> Fix:
    """Remove a null from a list of parts; make a bare string a part."""

    def drop_null(draft: Draft, index: int, path: Path) -> str | None:
        return drop("it was removed")(draft, index, path) if _in_list(path) and draft.value(index, path) is None else None

    write = rewrite(lambda value: make(value) if isinstance(value, str) else None, "it was made a text part", _in_list)
    return first_of(drop_null, write)


def _in_list(path: Path) -> bool:
    return isinstance(path[-1], int)


def object_at(name: str) -> Fix:
    """Write the arguments in a field of this name as an object, if they are missing or JSON text that describes one."""
    return rewrite(
        lambda value: json_object(value) if value is None or isinstance(value, str) else None,
        "they were written as an object",
        lambda path: path[-1] == name,
    )


def list_content(is_part: Callable[[Any], object]) -> Fix:
    """Put a lone part into a list."""
    return rewrite(lambda value: [value] if is_part(value) else None, "it was put into a list")


def order(late: Callable[[Any], bool]) -> Fix:
    """Move the blocks for which this is true to the end of their message."""

    def fix(draft: Draft, index: int, path: Path) -> str | None:
        content = (draft.pairing.content,)
        blocks = items_of(draft.value(index, content)) or ()
        ordered = sorted(blocks, key=late)
        if same(blocks, ordered):
            return None
        draft.write(index, content, ordered)
        return "it was put in order"

    return fix


def keep_last(marks: Callable[[Fields], Iterator[Path]], limit: int) -> Fix:
    """Remove the oldest marks above the number that a request may have."""

    def remove_oldest(draft: Draft) -> None:
        found = [(place, mark) for place, fields in enumerate(draft.contents) for mark in marks(fields)]
        for place, mark in reversed(found[:-limit]):
            draft.note(place, mark, "there are later ones", "it was removed")
            draft.remove(place, mark)

    return lambda draft, index, path: draft.once(remove_oldest)


# ------------------------------------------------------------------------ ids


def give_id(draft: Draft, index: int, path: Path) -> str:
    """Give a call and its result a new id; remove a call that repeats another of its message."""
    slot, repeats, result = draft.once(_calls_by_id)[index, path]
    if repeats:
        draft.remove(index, slot.path)
        return "the call was removed"
    given = _fresh(draft, index, slot)
    draft.write(index, path, given)
    if result is not None:
        draft.write(result[0], result[1].id, given)
        draft.note(result[0], result[1].id, "its call was given another id", f"it was given the id {given!r}")
    return f"it was given the id {given!r}"


def _calls_by_id(draft: Draft) -> dict[tuple[int, Path], tuple[Slot, bool, tuple[int, Slot] | None]]:
    """Return, by the place of its id, every call, whether it repeats another of its message, and its result; O(blocks)."""
    late: dict[str, deque[tuple[int, Slot]]] = {}
    for index, path, problem in draft.found:
        if problem.rule == "result-without-call":
            slot = draft.results(index)[path]
            late.setdefault(slot.key, deque()).append((index, slot))
    plan: dict[tuple[int, Path], tuple[Slot, bool, tuple[int, Slot] | None]] = {}
    for exchange in draft.pairing.exchanges(draft.contents):
        results: dict[str, deque[tuple[int, Slot]]] = {}
        for index in exchange:
            for result in draft.results(index).values():
                results.setdefault(result.key, deque()).append((index, result))
        for index in exchange:
            first: dict[str, Slot] = {}
            for slot in draft.calls(index).values():
                same = first.setdefault(slot.key, slot)
                repeats = bool(slot.key) and same is not slot and draft.value(index, same.path) == draft.value(index, slot.path)
                own = results.get(slot.key) or late.get(slot.key) if slot.key and not repeats else None
                plan[index, slot.id] = slot, repeats, own.popleft() if own and own[0][0] > index else None
    return plan


def _fresh(draft: Draft, index: int, slot: Slot) -> str:
    """Return an id that no call has."""
    position = "".join(f"_{name}" for name in slot.path if isinstance(name, int))
    given = f"{draft.pairing.new_id}_{draft.origin(index)}{position}"
    while given in draft.once(_ids):
        given += "_"
    return given


def _ids(draft: Draft) -> set[str]:
    return {slot.key for fields in draft.contents for slot in draft.pairing.calls(fields)}


def name_result(draft: Draft, index: int, path: Path) -> str:
    """Give a result the id of its call, if the exchange has as many calls without a result; otherwise remove the result."""
    slot, key = draft.once(_nameless)[index, path]
    if key is None:
        return drop_result(draft, index, slot.path)
    draft.write(index, path, key)
    return f"it was given the id {key!r}"


def _nameless(draft: Draft) -> dict[tuple[int, Path], tuple[Slot, str | None]]:
    """Return, by the place of its id, every result without an id and the id that it gets, if any; O(blocks)."""
    plan: dict[tuple[int, Path], tuple[Slot, str | None]] = {}
    for exchange in draft.pairing.exchanges(draft.contents):
        results = [(index, slot) for index in exchange for slot in draft.results(index).values()]
        named = Counter(slot.key for _, slot in results)
        left: dict[bool, list[str]] = {True: [], False: []}
        for call in (call for index in exchange for call in draft.calls(index).values() if call.key):
            if named[call.key]:
                named[call.key] -= 1
            else:
                left[call.optional].append(call.key.removeprefix("function:"))
        for legacy, keys in left.items():
            nameless = [each for each in results if not each[1].key and legacy == (each[1].rule == "function-without-call")]
            fits = len(keys) == len(nameless)
            plan |= {(index, slot.id): (slot, keys[n] if fits else None) for n, (index, slot) in enumerate(nameless)}
    return plan


# ------------------------------------------------------------------------ pairs


def move_result(draft: Draft, index: int, path: Path) -> str:
    """Move a late result to the latest earlier call without a result; remove it if there is none."""
    call = draft.once(_moves).get((index, path))
    if call is None:
        return drop_result(draft, index, path)
    draft.late[call] = draft.value(index, path)
    draft.remove(index, path)
    return "the result was moved to its call"


def drop_result(draft: Draft, index: int, path: Path) -> str:
    """Remove a result."""
    draft.remove(index, path)
    return "the result was removed" if path else "the message was removed"


def _moves(draft: Draft) -> dict[tuple[int, Path], tuple[int, Path]]:
    """Return the call of each late result that has one; O(blocks)."""
    moves: dict[tuple[int, Path], tuple[int, Path]] = {}
    open: dict[str, list[tuple[int, Path]]] = {}
    for index, group in groupby(draft.found, key=lambda each: each[0]):
        made: dict[str, list[tuple[int, Path]]] = {}
        for _, path, problem in group:
            if problem.rule == "call-without-result":
                made.setdefault(draft.calls(index)[path].key, []).append((index, path))
            elif path in draft.results(index) and (waiting := open.get(draft.results(index)[path].key)):
                moves[index, path] = waiting.pop()
        for key, calls in made.items():
            open.setdefault(key, []).extend(reversed(calls))  # of one message the first call is answered first
    return moves


def answer_call(draft: Draft, index: int, path: Path) -> str | None:
    """Put the late result of a call after it, or else a stub that says the result was not recorded."""
    if (late := draft.late.pop((index, path), None)) is not None:
        draft.added.insert(0, late)
        return None
    stub = draft.pairing.stub(draft.value(index, path), draft.calls(index)[path].key)
    if stub is None:
        draft.remove(index, path)
        return "the call was removed"
    draft.added.insert(0, stub)
    return "a result was added that says it was not recorded"

"""Repair a list of items for the Responses API, and report every change.

First each item is repaired by itself, where that adds nothing it did not say. Then calls and results are paired: an output that
answers nothing is removed, a call without one gets a stub that says so right after its answer, and reasoning that lost its item
is removed. Calls at the very end stay open, because they may still be answered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import attrs

from ..base import Repair
from ..wire import NOT_RECORDED, Changes, fields_of, items_of, json_text, kind_of, same, string
from .fields import CALLS, RESULTS, call_id_field, call_of, caller_of, is_answer, item_type, result_of
from .rules import validate

__all__ = ["repair"]

_Placed: TypeAlias = tuple[int, Any]
"""An item and its place in the input."""
_REMOVED: Final = "the item was removed"
_NOBODY: Final[Mapping[str, Any]] = {"type": "compaction"}
"""Stands for what is not an item: it ends an answer, as this one does."""
_ARGUMENTS: Final[Mapping[str, tuple[str, str]]] = {
    "function_call": ("arguments", "{}"),
    "custom_tool_call": ("input", ""),
}
_STUBS: Final[Mapping[str, Mapping[str, Any]]] = {
    "function_call": {"type": "function_call_output", "output": NOT_RECORDED},
    "custom_tool_call": {"type": "custom_tool_call_output", "output": NOT_RECORDED},
    "local_shell_call": {"type": "local_shell_call_output", "output": NOT_RECORDED},
    "apply_patch_call": {"type": "apply_patch_call_output", "status": "failed", "output": NOT_RECORDED},
}
"""The stubs, by the type of the call; the outputs of other calls cannot be made up, so they get none."""


def repair(raws: Sequence[Any]) -> Repair:
    """Return a list without problems, except for those that only invented content could fix; O(items).

    Args:
        raws: Items as dictionaries or objects of the ``openai`` package; not changed.

    Returns:
        The new list, in which what needed nothing is the same object. A change names its place in ``raws`` and the rule that
        was broken, and its remedy is what was done; ``remaining`` is what `validate` finds in the new list, with places in it.

    >>> output = {"type": "function_call_output", "call_id": "gone", "output": "18"}
    >>> result = repair([{"role": "user", "content": "hi"}, output])
    >>> result.messages
    [{'role': 'user', 'content': 'hi'}]
    >>> [(change.where, change.rule, change.remedy) for change in result.changes]
    [('messages[1]', 'result-without-call', 'the item was removed')]
    """
    changes = Changes()
    items = _paired([_repaired(index, raw, changes) for index, raw in enumerate(raws)], changes)
    messages = _with_followed_reasoning(_called(items, changes), changes)
    return Repair(messages, changes.in_order(), tuple(validate(messages)))


# ------------------------------------------------------------------------ one item


def _repaired(index: int, raw: Any, changes: Changes) -> Any:
    """Return the item repaired; the same object if nothing was changed."""
    fields = fields_of(raw)
    if fields is None:
        return raw
    kind = item_type(fields)
    if kind == "message":
        return _with_content(index, raw, fields, "content", changes)
    if kind in ("function_call_output", "custom_tool_call_output"):
        return _with_content(index, raw, fields, "output", changes)
    if kind in _ARGUMENTS:
        name, nothing = _ARGUMENTS[kind]
        if not isinstance(value := fields.get(name), str):
            text = nothing if value is None else json_text(value)
            changes.add(index, f".{name}", "malformed-item", "it is no string", f"it was written as {text!r}")
            return {**fields, name: text}
    return raw


def _with_content(index: int, raw: Any, fields: Mapping[str, Any], name: str, changes: Changes) -> Any:
    content = fields.get(name)
    if isinstance(content, str):
        return raw
    said = "output_text" if fields.get("role") == "assistant" else "input_text"
    parts = items_of(content)
    if parts is None and not kind_of(content):
        text = "" if content is None else json_text(content)
        changes.add(index, f".{name}", "malformed-content", "it is neither a string nor a list", "it was written as text")
        return {**fields, name: text}
    if parts is None:
        changes.add(index, f".{name}", "malformed-content", "it is one part, not a list", "it was put into a list")
    elements = [content] if parts is None else parts
    kept = [new for n, part in enumerate(elements) for new in _repaired_part(index, f".{name}[{n}]", part, said, changes)]
    return raw if parts is not None and same(kept, parts) else {**fields, name: kept}


def _repaired_part(index: int, place: str, part: Any, said: str, changes: Changes) -> list[Any]:
    """Return the part, repaired if possible; none for a null."""
    fields, kind = fields_of(part), kind_of(part)
    if part is None:
        changes.add(index, place, "malformed-part", "it is null", "the part was removed")
        return []
    if isinstance(part, str):
        changes.add(index, place, "malformed-part", "it is a bare string", "it was made a text part")
        return [{"type": said, "text": part}]
    if (
        fields is not None
        and kind in ("input_text", "output_text", "text")
        and kind != said
        and isinstance(fields.get("text"), str)
    ):
        changes.add(index, place, "part-not-allowed", f"a part of type {kind!r} stands here", f"it was made {said!r}")
        return [{**fields, "type": said}]
    return [part]


# ------------------------------------------------------------------------ pairs


@attrs.define(eq=False)
class _Open:
    """A call: its place in the input and among what stays, its kind, and the id it has now."""

    index: int
    place: int
    kind: str
    id: str
    answered: bool = False


class _Pairing:
    """Pairs results with calls. Holds state: the items that stay, the open calls, and every id so far.

    Attributes:
        kept: The items that stay, each with its place in the input.
        calls: The calls to be answered, in order.
        settled: How many of them no longer wait, for somebody else spoke after them.
    """

    def __init__(self, changes: Changes) -> None:
        self.changes = changes
        self.kept: list[_Placed] = []
        self.calls: list[_Open] = []
        self.settled = 0
        self.open: dict[str, list[_Open]] = {}
        self.ids: dict[str, Any] = {}
        self.taken: set[str] = set()
        self.references = False
        self.answered: set[str] = set()

    def item(self, index: int, raw: Any) -> None:
        """Keep the item, changed where it has to be, or leave it out."""
        fields = fields_of(raw)
        if fields is None:
            self.settled = len(self.calls)
            self.kept.append((index, raw))
            return
        for one in self.identified(index, raw, fields):
            kept = self.paired(index, one, fields_of(one) or fields)
            self.kept.extend((index, each) for each in kept)

    def paired(self, index: int, raw: Any, fields: Mapping[str, Any]) -> list[Any]:
        """Return the item as it stays among calls and results; none if it is removed."""
        self.references = self.references or item_type(fields) == "item_reference"
        if (call := call_of(fields)) is not None:
            return [self.call(index, raw, fields, call)]
        if (result := result_of(fields)) is not None:
            return self.result(index, raw, fields, result)
        if not is_answer(fields):
            self.settled = len(self.calls)
        return [raw]

    def identified(self, index: int, raw: Any, fields: Mapping[str, Any]) -> list[Any]:
        """Return the item with an id of its own, or without one; none if it repeats another."""
        identifier, kind = string(fields.get("id")), item_type(fields)
        if not identifier or (kind in RESULTS and call_id_field(fields) == "id"):
            return [raw]
        if identifier not in self.ids:
            self.ids[identifier] = raw
            return [raw]
        text = f"the id {identifier!r} is that of an earlier item"
        if kind == "item_reference" or self.ids[identifier] == raw:
            self.changes.add(index, ".id", "duplicate-item-id", text, _REMOVED)
            return []
        self.changes.add(index, ".id", "duplicate-item-id", text, "the id was left out")
        return [{name: value for name, value in fields.items() if name != "id"}]

    def call(self, index: int, raw: Any, fields: Mapping[str, Any], identifier: str) -> Any:
        kind = item_type(fields)
        given = identifier
        if not identifier or self.open.get(identifier):
            given = self.fresh_id(index)
            rule, text = ("duplicate-call-id", "an open call has its id") if identifier else ("call-without-id", "it has no id")
            self.changes.add(index, f".{CALLS[kind].key}", rule, text, f"it was given the id {given!r}")
            raw = {**fields, CALLS[kind].key: given}
        self.taken.add(given)
        call = _Open(index, len(self.kept), kind, given)
        self.open.setdefault(identifier, []).append(call)
        if CALLS[kind].answered:
            self.calls.append(call)
        return raw

    def fresh_id(self, index: int) -> str:
        given = f"call_{index}"
        while given in self.taken or given in self.open:
            given += "_"
        return given

    def result(self, index: int, raw: Any, fields: Mapping[str, Any], identifier: str) -> list[Any]:
        waiting = self.open.get(identifier)
        if not waiting:
            if identifier and self.references and identifier not in self.answered:
                return [raw]
            rule, text = "result-without-call", f"no call {identifier!r} waits for it"
            if not identifier:
                rule, text = "result-without-id", "it does not say what it answers"
            elif identifier in self.answered:
                rule, text = "duplicate-result", f"the call {identifier!r} is answered already"
            self.changes.add(index, "", rule, text, _REMOVED)
            return []
        call = waiting.pop(0)
        call.answered = True
        self.answered.add(identifier)
        if call.id == identifier:
            return [raw]
        rule, text = (
            ("duplicate-call-id", "its call had the id of another") if identifier else ("result-without-id", "it has no id")
        )
        key = call_id_field(fields)
        self.changes.add(index, f".{key}", rule, text, f"it was given the id {call.id!r}")
        return [{**fields, key: call.id}]


def _paired(items: Sequence[Any], changes: Changes) -> list[_Placed]:
    """Return the items with every call answered and every result after its call, each with its place in the input."""
    pairing = _Pairing(changes)
    for index, raw in enumerate(items):
        pairing.item(index, raw)
    kept = pairing.kept
    ends = _answer_ends(kept)
    stubs: dict[int, list[Any]] = {}
    dropped: set[int] = set()
    for call in pairing.calls[: pairing.settled]:
        if call.answered:
            continue
        text = f"the call {call.id!r} has no output"
        if call.kind not in _STUBS:
            dropped.add(call.place)
            changes.add(call.index, "", "call-without-result", text, _REMOVED)
            continue
        key = RESULTS[str(_STUBS[call.kind]["type"])].key
        stubs.setdefault(ends[call.place], []).append({**_STUBS[call.kind], key: call.id})
        changes.add(call.index, "", "call-without-result", text, "an output was added that says it was not recorded")
    placed: list[_Placed] = []
    for place, item in enumerate(kept):
        if place not in dropped:
            placed.append(item)
        placed.extend((item[0], stub) for stub in stubs.get(place, ()))
    return placed


def _answer_ends(items: Sequence[_Placed]) -> list[int]:
    """Return for each item the place of the last item of its answer."""
    ends = list(range(len(items)))
    for place in range(len(items) - 2, -1, -1):
        if is_answer(fields_of(items[place + 1][1]) or _NOBODY):
            ends[place] = ends[place + 1]
    return ends


def _called(items: Sequence[_Placed], changes: Changes) -> list[_Placed]:
    """Return the items, where calls and outputs of a program that does not run before them name no caller."""
    running: set[str] = set()
    alone: set[str] = set()
    kept: list[_Placed] = []
    for place, (index, raw) in enumerate(items):
        fields = fields_of(raw) or _NOBODY
        kind, program = item_type(fields), caller_of(fields)
        if kind == "item_reference":
            return [*kept, *items[place:]]
        if kind == "program":
            running.add(call_of(fields) or "")
        call, result = call_of(fields), result_of(fields)
        if kind == "program_output":
            running.discard(result or "")
        elif result in alone or (call is not None and program is not None and program not in running):
            alone.add(call or "")
            text = f"no program {program!r} runs before it"
            changes.add(index, ".caller", "call-without-program", text, "the caller was left out")
            kept.append((index, {name: value for name, value in fields.items() if name != "caller"}))
            continue
        kept.append((index, raw))
    return kept


def _with_followed_reasoning(items: Sequence[_Placed], changes: Changes) -> list[Any]:
    """Return the items without reasoning that no item of its answer follows."""
    kept: list[Any] = []
    followed = False
    for index, raw in reversed(items):
        fields = fields_of(raw) or _NOBODY
        if item_type(fields) == "reasoning" and not followed:
            text = "no item of the same answer comes after it"
            changes.add(index, "", "reasoning-without-item", text, _REMOVED)
            continue
        followed = is_answer(fields)
        kept.append(raw)
    return kept[::-1]

"""What came of one run, and the laws that can be read off it: 1 to 4."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from ..edits import Drop, Edit, Together, brief, named
from ..formats import Problem
from ..groups import GroupKind, MessageGroup
from ..index import MessageIndex
from ..outcome import CompactionResult

__all__ = ["Outcome", "broken_law", "described"]

_PLACE: Final = re.compile(r"messages\[(\d+)\]")
_SAME_FAULT: Final = {
    "pending-call": "call-without-result",
    "duplicate-result": "result-without-call",
    "function-without-call": "result-without-call",
}
"""Rules whose name depends on what stands around the message; the fault is the same."""
_INSERTED: Final = -1
"""What all inserted groups count as."""


@attrs.frozen(eq=False)
class Outcome:
    """One run on a fresh index, and what there was before it.

    Args:
        source: The caller's messages.
        before: The groups before the run.
        index: The index after it.
        result: What the run returned.
        read: Makes an index of other messages in the same way.
    """

    source: list[Any]
    before: tuple[MessageGroup, ...]
    index: MessageIndex
    result: CompactionResult
    read: Callable[[Sequence[Any]], MessageIndex]

    @property
    def kept(self) -> list[tuple[MessageGroup, MessageGroup]]:
        """The groups that the view still shows, as they were and as they are."""
        return [(group, self.index.group(group.id)) for group in self.before if self.index.is_included(group.id)]

    @property
    def lost(self) -> list[MessageGroup]:
        """The groups that the view no longer shows, as they were."""
        return [group for group in self.before if not self.index.is_included(group.id)]


def broken_law(outcome: Outcome) -> tuple[int, str] | None:
    """The first of laws 1 to 4 that the run broke, and how."""
    for law, check in ((2, _parted), (3, _exchanged), (3, _unprotected), (4, _grown), (1, _invalid)):
        if what := check(outcome):
            return law, what
    return None


def described(edits: Iterable[Edit]) -> list[str]:
    """Edits in words, equal for edits that do the same."""
    return [brief(edit) for edit in edits]


# ------------------------------------------------------------------------ law 1


def _invalid(outcome: Outcome) -> str | None:
    validate, view = outcome.index.format.validate, outcome.index.messages()
    owners = _owners(outcome)
    problems = validate(view)
    new = _faults(problems, view, owners) - _faults(validate(outcome.source), outcome.source, owners)
    if not new:
        return None
    rules = ", ".join(f"{rule} in group {owner}" for rule, owner in new)
    return f"new in what it left: {rules} ({'; '.join(map(str, problems))})"


def _owners(outcome: Outcome) -> dict[int, int]:
    """The group of every message there was or is, by the object's identity; the first one of an object that is there twice."""
    groups = (*outcome.index.included_groups, *reversed(outcome.before))
    return {id(message.raw): max(group.id, _INSERTED) for group in groups for message in group.messages}


def _faults(problems: Iterable[Problem], messages: Sequence[Any], owners: Mapping[int, int]) -> Counter[tuple[str, int | None]]:
    """How often each rule is broken in each group."""
    faults: Counter[tuple[str, int | None]] = Counter()
    for problem in problems:
        place = _PLACE.match(problem.where)
        owner = None if place is None else owners[id(messages[int(place[1])])]
        faults[_SAME_FAULT.get(problem.rule, problem.rule), owner] += 1
    return faults


# ------------------------------------------------------------------------ law 2


def _parted(outcome: Outcome) -> str | None:
    shown = {id(raw) for raw in outcome.index.messages()}
    of_kept = {id(message.raw) for group, _ in outcome.kept for message in group.messages}
    for before, after in outcome.kept:
        if not all(id(message.raw) in shown for message in after.messages):
            return f"group {before.id} is shown in part"
        if _links(before) != _links(after):
            return f"group {before.id} had the calls and results {_links(before)}, now {_links(after)}"
    for group in outcome.lost:
        if any(id(message.raw) in shown - of_kept for message in group.messages):
            return f"group {group.id} was taken out in part"
    return None


def _links(group: MessageGroup) -> list[tuple[str, str]]:
    """The calls and results of a group, by id, in an order that does not matter."""
    calls = [("call", call.id) for message in group.messages for call in message.tool_calls()]
    return sorted(calls + [("result", result.call_id) for message in group.messages for result in message.tool_results()])


# ------------------------------------------------------------------------ law 3


def _exchanged(outcome: Outcome) -> str | None:
    """Whether a message that no edit names is gone or is another object, or the order is another."""
    touched = {id for edit in outcome.result.edits for id in named(edit)}
    view = outcome.index.messages()
    left = Counter(map(id, view))
    left.subtract(id(message.raw) for group in outcome.before if group.id not in touched for message in group.messages)
    if any(count < 0 for count in left.values()):
        return "a message that no edit names is gone, or is another object"
    places = iter(outcome.source)
    known = set(map(id, outcome.source))
    if not all(any(raw is other for other in places) for raw in view if id(raw) in known):
        return "the messages that were kept stand in another order"
    return None


def _unprotected(outcome: Outcome) -> str | None:
    """Whether an instruction or the last user message is gone, or something stands before the first instructions."""
    allowed = {id for edit in _flat(outcome.result.edits) if isinstance(edit, Drop) and edit.allow_system for id in edit.groups}
    users = [group.id for group in outcome.before if group.kind is GroupKind.USER]
    lost = [group for group in outcome.lost if group.kind is GroupKind.SYSTEM and group.id not in allowed]
    if lost:
        return f"system group {lost[0].id} is gone"
    if users and not outcome.index.is_included(users[-1]):
        return f"the last user message, group {users[-1]}, is gone"
    before, after = outcome.before, outcome.index.included_groups
    first = next((place for place, group in enumerate(before) if group.kind is not GroupKind.SYSTEM), len(before))
    leading = [group.id for group in before[:first] if outcome.index.is_included(group.id)]
    if [group.id for group in after[: len(leading)]] != leading:
        return "something stands before the first system messages"
    return None


def _flat(edits: Iterable[Edit]) -> Iterable[Edit]:
    for edit in edits:
        yield from edit.edits if isinstance(edit, Together) else (edit,)


# ------------------------------------------------------------------------ law 4


def _grown(outcome: Outcome) -> str | None:
    before = outcome.read(outcome.source).included.tokens
    after = outcome.read(outcome.index.messages()).included.tokens
    if after > before:
        return f"{before} tokens became {after}"
    if (claimed := outcome.result.after.tokens) != after:
        return f"the run says {claimed} tokens are left; measured anew there are {after}"
    return None

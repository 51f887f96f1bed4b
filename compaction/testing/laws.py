"""The laws that every strategy must keep, the error for a broken one, and the check of one run against laws 1 to 4."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, cast

import attrs

from ..errors import CompactionError
from ..formats import Problem
from ..index import Drop, Edit, GroupKind, MessageGroup, MessageIndex, named, simple_edits
from ..messages import TextPart
from ..result import CompactionResult

LAWS: Final[Mapping[int, str]] = {
    1: "A valid conversation stays valid under its format's rules; an invalid one gains no new violation.",
    2: "A group is kept, dropped, replaced or rewritten whole; no call is separated from its results.",
    3: (
        "A kept message that no rewrite names is the same object, and the order is kept. System messages come first. The last "
        "user message survives; so does the newest message, or a part of it, in which the user says something."
    ),
    4: "Included tokens never grow over a run.",
    5: (
        "Running again with nothing new, after a run without failures, changes nothing, also on an index of the output. "
        "If the list is invalid in its format, or its output is read as other groups, this holds after a few runs."
    ),
    7: "Same input, same output; the caller's list and messages stay as they are.",
    9: "Rolling back every edit gives back the original conversation, metrics included.",
    11: (
        "What a person said leaves a view only if its words, or a summary made from it, are in the new view. Otherwise the "
        "outcome is degraded, and failures says what was lost."
    ),
}
"""The laws that `check_strategy` checks, by number. The project has others, which are not about a single run: 6 is about
interrupted runs, 8 about how an index is built, 10 about the algebra of triggers, and 12 about the size of what is kept."""

_SHOWN_MESSAGES: Final = 20
_SHOWN_CHARS: Final = 120


class LawBroken(CompactionError, AssertionError):
    """A strategy or trigger breaks a law; the text shows how, and the beginning of the conversation.

    Attributes:
        law: The law's number in `LAWS`; 0 for a trigger, which has one contract and no laws.
        what: How the law is broken.
        messages: The conversation that shows it; `conversations` lets Hypothesis find a small one.
    """

    def __init__(self, law: int, what: str, messages: Sequence[Any]) -> None:
        super().__init__(law, what, messages)
        self.law = law
        self.what = what
        self.messages = messages

    def __str__(self) -> str:
        rule = f"law {self.law}: {LAWS[self.law]}\n" if self.law else ""
        shown = [json.dumps(_brief(message), default=repr) for message in self.messages[:_SHOWN_MESSAGES]]
        more = ["..."] if len(shown) < len(self.messages) else []
        return "\n".join([f"{rule}{self.what}", f"on these {len(self.messages)} messages:", *shown, *more])


def _brief(value: Any) -> Any:
    """Return the value with long texts shortened for display."""
    if isinstance(value, str) and len(value) > _SHOWN_CHARS:
        return f"{value[:_SHOWN_CHARS]}... ({len(value):,} characters)"
    if isinstance(value, Mapping):
        return {key: _brief(each) for key, each in cast("Mapping[str, Any]", value).items()}
    return [_brief(each) for each in cast("Sequence[Any]", value)] if isinstance(value, list | tuple) else value


_PLACE: Final = re.compile(r"messages\[(\d+)\]")
_SAME_FAULT: Final = {
    "pending-call": "call-without-result",
    "duplicate-result": "result-without-call",
    "function-without-call": "result-without-call",
}
"""Rules that name the same fault differently depending on the messages around it."""
_INSERTED: Final = -1  # the group id that all inserted groups count as; their own ids are negative and different in each run


@attrs.frozen(eq=False)
class CheckedRun:
    """One run of a strategy on a new index, with the conversation before it."""

    source: list[Any]  # the caller's messages
    before: tuple[MessageGroup, ...]  # the groups before the run
    index: MessageIndex  # after the run
    result: CompactionResult
    read: Callable[[Sequence[Any]], MessageIndex]  # returns an index of other messages, made with the same options

    @property
    def kept(self) -> list[tuple[MessageGroup, MessageGroup]]:
        """The groups still in the view, each before and after the run."""
        return [(group, self.index.group(group.id)) for group in self.before if self.index.is_included(group.id)]

    @property
    def lost(self) -> list[MessageGroup]:
        """The groups no longer in the view, as they were before."""
        return [group for group in self.before if not self.index.is_included(group.id)]


def broken_law(checked: CheckedRun, *, words: bool = False) -> tuple[int, str] | None:
    """Return the first of laws 1 to 4, and with ``words`` 11, that the run broke, and how; ``None`` if it kept them."""
    checks = [(2, _split_groups), (3, _exchanged_messages), (3, _lost_protected), (4, _grown_tokens), (1, _new_problems)]
    checks += [(11, _forgotten_words)] if words else []
    return next(((law, what) for law, check in checks if (what := check(checked))), None)


def described(edits: Iterable[Edit]) -> list[str]:
    """Return the edits in words; edits that do the same have the same words."""
    return [f"{type(edit).__name__} of groups {', '.join(map(str, named(edit)))} ({edit.reason})" for edit in edits]


def _new_problems(checked: CheckedRun) -> str | None:
    """Compare how often each rule is broken in each group; of an object that is in several groups, the first counts."""
    groups = (*checked.index.included_groups, *reversed(checked.before))
    owners = {id(message.raw): max(group.id, _INSERTED) for group in groups for message in group.messages}

    def faults(problems: Iterable[Problem], messages: Sequence[Any]) -> Counter[tuple[str, int | None]]:
        placed = [(problem.rule, _PLACE.match(problem.where)) for problem in problems]
        return Counter(
            (_SAME_FAULT.get(rule, rule), None if place is None else owners[id(messages[int(place[1])])])
            for rule, place in placed
        )

    validate, view = checked.index.format.validate, checked.index.messages()
    problems = validate(view)
    new = faults(problems, view) - faults(validate(checked.source), checked.source)
    if not new:
        return None
    rules = ", ".join(f"{rule} in group {owner}" for rule, owner in new)
    return f"new problems in the result: {rules} ({'; '.join(map(str, problems))})"


def lost_words(index: MessageIndex) -> list[int]:
    """Return the places of the messages in which the user says something, and that left the view without a summary.

    A message is not lost while its group is in the view, shortened or not, or while a summary in the view stands for it.

    Cost: O(messages).

    >>> from compaction import Drop
    >>> index = MessageIndex([{"role": "user", "content": text} for text in ("Never push.", "Go on.")], counter="chars/4")
    >>> index.apply(Drop([0], reason="old"))
    True
    >>> lost_words(index)
    [0]
    """
    shown = [group for group in index.included_groups if not group.is_collapsed or group.id >= 0]
    kept = {ordinal for group in shown for ordinal in index.ordinals(group)}
    return [place for place, raw in enumerate(index.source) if place not in kept and index.format.read(raw).said]


def _forgotten_words(checked: CheckedRun) -> str | None:
    """Return which words of the user the run lost without saying so."""
    lost = lost_words(checked.index)
    if not lost or checked.result.failures:
        return None
    return f"what the user said in messages {', '.join(map(str, lost))} is gone, and failures does not say so"


def _split_groups(checked: CheckedRun) -> str | None:
    shown = {id(raw) for raw in checked.index.messages()}
    of_kept = {id(message.raw) for group, _ in checked.kept for message in group.messages}
    for before, after in checked.kept:
        if not all(id(message.raw) in shown for message in after.messages):
            return f"group {before.id} is only partly in the view"
        if _links(before) != _links(after):
            return f"group {before.id} had the calls and results {_links(before)}, and now has {_links(after)}"
    for group in checked.lost:
        if any(id(message.raw) in shown - of_kept for message in group.messages):
            return f"group {group.id} was only partly removed"
    return None


def _links(group: MessageGroup) -> list[tuple[str, str]]:
    calls = [("call", call.id) for message in group.messages for call in message.tool_calls()]
    return sorted(calls + [("result", result.call_id) for message in group.messages for result in message.tool_results()])


def _exchanged_messages(checked: CheckedRun) -> str | None:
    """Check that messages no edit names are the same objects, and that the order is kept."""
    touched = {id for edit in checked.result.edits for id in named(edit)}
    view = checked.index.messages()
    left = Counter(map(id, view))
    left.subtract(id(message.raw) for group in checked.before if group.id not in touched for message in group.messages)
    if any(count < 0 for count in left.values()):
        return "a message that no edit names is missing or is another object"
    places = iter(checked.source)
    known = set(map(id, checked.source))
    if not all(any(raw is other for other in places) for raw in view if id(raw) in known):
        return "the kept messages are in another order"
    return None


def _lost_protected(checked: CheckedRun) -> str | None:
    """Check that the system messages come first and that they and the last user message are kept; old reminders may leave."""
    simple = (each for edit in checked.result.edits for each in simple_edits(edit))
    allowed = {id for edit in simple if isinstance(edit, Drop) and edit.allow_system for id in edit.groups}
    allowed |= checked.index.columns.grouping.instructions.outdated
    users = [
        group.id
        for group in checked.before
        if group.kind is GroupKind.USER
        and any(not isinstance(part, TextPart) or part.text.strip() for message in group.messages for part in message.parts)
    ]
    words = _last_words(checked)
    lost = [group for group in checked.lost if group.kind is GroupKind.SYSTEM and group.id not in allowed]
    if lost:
        return f"system group {lost[0].id} is missing"
    if users and not checked.index.is_included(users[-1]):
        return f"the last user message, group {users[-1]}, is missing"
    if words is not None and not checked.index.is_included(words):
        return f"the user's last words, in group {words}, are missing"
    before, after = checked.before, checked.index.included_groups
    first = next((place for place, group in enumerate(before) if group.kind is not GroupKind.SYSTEM), len(before))
    leading = [group.id for group in before[:first] if checked.index.is_included(group.id)]
    if [group.id for group in after[: len(leading)]] != leading:
        return "a message comes before the first system messages"
    return None


def _last_words(checked: CheckedRun) -> int | None:
    """Return the group of the newest message in which the user says something: a late result belongs to an earlier group."""
    places = {id(raw): place for place, raw in enumerate(checked.source)}
    spoken = [
        (places.get(id(message.raw), -1), group.id)
        for group in checked.before
        if group.kind is not GroupKind.SUMMARY
        for message in group.messages
        if message.said
    ]
    return max(spoken)[1] if spoken else None


def _grown_tokens(checked: CheckedRun) -> str | None:
    before = checked.read(checked.source).included.tokens
    after = checked.read(checked.index.messages()).included.tokens
    if after > before:
        return f"{before} tokens became {after}"
    if (claimed := checked.result.after.tokens) != after:
        return f"the run reports {claimed} tokens; a new index counts {after}"
    return None

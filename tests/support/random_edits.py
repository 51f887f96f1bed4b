"""Random edits: a strategy that yields arbitrary edits, and the checks after them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, Final, TypeAlias

import attrs
from hypothesis import strategies as st

from compaction import Drop, Edit, GroupKind, Message, MessageIndex, Replace, Rewrite, Together, run_sync
from compaction.errors import ConfigurationError, NoProgress
from compaction.formats import FORMATS, MessageFormat
from compaction.index import Marks
from compaction.index.edits import signature
from compaction.index.marks import marked
from compaction.messages import Part, ReasoningPart, TextPart, ToolResultPart
from compaction.testing.laws import CheckedRun, broken_law

RUNS_PER_CONVERSATION: Final = 10
"""The runs for each generated conversation; generating one costs more than a run."""

_MAX_EDITS: Final = 12
_TEXTS: Final = ("", " ", "\n", "short", "ends with a blank ", "words " * 40, marked("so far", by="Tests"))
_ROLES: Final = ("user", "user", "assistant", "assistant", "system")
_Part: TypeAlias = Drop | Replace | Rewrite


@attrs.frozen(eq=False)
class RandomEdits:
    """A strategy that yields random edits of any groups with any content.

    It ignores whether an edit was applied. A quarter of the edits are applied to the index directly, and once more if they are
    refused. A refused edit is not yielded again, because the driver would stop the run.

    Args:
        random: Makes the choices.

    Attributes:
        asked: The edits of the last run.
    """

    random: Random
    asked: list[Edit] = attrs.field(factory=list[Edit], init=False)

    def __call__(self, index: MessageIndex) -> Iterator[Edit]:
        self.asked.clear()
        for _ in range(self.random.randint(1, _MAX_EDITS)):
            edit = self.edit(index)
            self.asked.append(edit)
            if self.random.random() < 0.25:
                for _ in range(2):
                    try:
                        granted = index.apply(edit)
                    except NoProgress:
                        granted = True
                    if granted:
                        break
            elif signature(edit) not in [signature(refusal.edit) for refusal in index.refused]:
                yield edit

    def edit(self, index: MessageIndex) -> Edit:
        """A random edit of the index in its current state."""
        if self.random.random() < 0.1:
            return Together(*[self._part(index) for _ in range(self.random.randint(0, 3))])
        return self._part(index)

    def _part(self, index: MessageIndex) -> _Part:
        random, kind = self.random, self.random.choice((Drop, Drop, Drop, Replace, Rewrite, Rewrite))
        if kind is Rewrite:
            group = index.group(random.choice(self._ids(index)))
            return Rewrite(group, self._rewritten(index, group.messages), "random")
        ids = self._ids(index)
        start = random.randrange(len(ids))
        run = ids[start : start + random.randint(1, 4)]
        chosen = run if random.random() < 0.5 else random.choices(ids, k=random.randint(1, 3))
        if kind is Drop:
            return Drop(chosen, "random", allow_system=random.random() < 0.2)
        return Replace(chosen, self._brought_in(index), "random")

    def _ids(self, index: MessageIndex) -> Sequence[int]:
        """Return mostly groups that may be removed, sometimes any group or one that does not exist."""
        ids = index.removable_ids() if self.random.random() < 0.8 else index.included_ids
        if self.random.random() < 0.05:
            ids = [*range(-2, len(index.source) + 1)]
            ids = [id for id in ids if _exists(index, id)]
        return ids or index.included_ids

    def _brought_in(self, index: MessageIndex) -> list[Message]:
        count = self.random.choice((1, 1, 1, 2, 2, 3, 0))
        return [self._any_message(index) for _ in range(count)]

    def _any_message(self, index: MessageIndex) -> Message:
        random, format = self.random, index.format
        if random.random() < 0.6:
            return format.new(random.choice(_ROLES), random.choice(_TEXTS))
        if random.random() < 0.2:
            return random.choice([other for other in FORMATS if other is not format]).new(random.choice(_ROLES), "of another")
        said = random.choice(index.group(random.choice(index.included_ids)).messages)
        changed = said if random.random() < 0.5 else self._changed(said)
        return format.read(copy.deepcopy(said.raw)) if changed.raw is said.raw else changed  # law 3 knows messages by identity

    def _rewritten(self, index: MessageIndex, messages: Sequence[Message]) -> list[Message | None]:
        random = self.random
        rewritten: list[Message | None] = []
        for message in messages:
            choice = random.random()
            if choice < 0.3:
                rewritten.append(message)
            elif choice < 0.4:
                rewritten.append(None)
            elif choice < 0.5:
                rewritten.append(self._any_message(index))
            else:
                rewritten.append(self._changed(message))
        return rewritten[: random.randint(1, len(messages) + 1)]

    def _changed(self, message: Message) -> Message:
        """The message with other content, or unchanged if its format cannot write that content."""
        random, parts = self.random, message.parts
        choices: list[dict[str, Any]] = [
            {"text": random.choice(_TEXTS)},
            {"parts": [part for part in parts if not isinstance(part, ReasoningPart)]},
            {"parts": [part for part in parts if random.random() < 0.7]},
            {"parts": [*parts, TextPart(random.choice(_TEXTS))]},
            {"parts": random.sample(parts, len(parts))},
            {"parts": [self._reworded(part) for part in parts]},
        ]
        try:
            return message.evolve(**random.choice(choices))
        except ConfigurationError:
            return message

    def _reworded(self, part: Part) -> Part:
        if isinstance(part, TextPart | ToolResultPart):
            return attrs.evolve(part, text=self.random.choice(_TEXTS))
        return part


def _exists(index: MessageIndex, id: int) -> bool:
    return id in index.included_ids or id in [group for edit in index.edits for group in getattr(edit, "groups", ())]


def random_edits() -> st.SearchStrategy[RandomEdits]:
    """Return strategies that yield random edits, different ones in each run."""
    return st.builds(RandomEdits, st.randoms(use_true_random=True))


def check_run(format: MessageFormat, messages: list[Any], edits: Callable[[MessageIndex], Iterator[Edit]]) -> int:
    """Run the edits, check that the result has no new problem, and return the number of applied edits.

    The checks are law 1 for each rule and group, and laws 2 to 4; the metrics must equal a fresh count, and a rollback must
    restore the conversation.
    """
    messages = [copy.copy(raw) for raw in messages]  # law 1 identifies messages by identity, and the list may repeat one object
    read = lambda raws: MessageIndex(raws, counter="chars/4", format=format, marks=Marks(ceilings={}))  # noqa: E731
    index = read(messages)
    before, total = index.included_groups, index.included
    result = run_sync(index, edits)
    broken = broken_law(CheckedRun(source=messages, before=before, index=index, result=result, read=read))
    assert broken is None, broken
    shown, included = index.included_groups, index.included
    fresh = read(index.messages()).included
    assert (included.tokens, included.bytes, included.messages) == (fresh.tokens, fresh.bytes, fresh.messages)
    assert included.groups == len(shown)
    assert index.columns.system_messages == sum(group.kind is GroupKind.SYSTEM for group in shown)
    if total.tool_calls == sum(group.tool_calls for group in before):  # not where the user makes calls
        assert included.tool_calls == sum(group.tool_calls for group in shown)
    granted = index.edit_count
    index.rollback()
    assert index.included == total
    assert [id(raw) for raw in index.messages()] == [id(raw) for raw in messages]
    return granted

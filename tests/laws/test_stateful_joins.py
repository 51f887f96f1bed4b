"""An index under any sequence of operations, in the formats in which not every message may follow every other.

`test_stateful` compares an index of chat completions with a model. Here the rules of the format decide: after every step the
view has no problem that the source does not have, sums equal a fresh count, and every edit can be undone exactly.
"""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from compaction import MessageIndex
from compaction.errors import NoProgress
from compaction.formats import MessageFormat, anthropic, bedrock, gemini
from compaction.index.edits import named
from tests.support.limits import examples
from tests.support.random_edits import RandomEdits
from tests.support.wires import any_conversation

Chat = list[dict[str, Any]]

_SAME = {"pending-call": "call-without-result", "duplicate-result": "result-without-call"}
"""Rules that name the same fault differently depending on the messages around it."""


def distinct(messages: Sequence[Any]) -> Chat:
    return [copy.deepcopy(raw) for raw in messages]


def rebuilt(messages: Sequence[Any]) -> Chat:
    return list(json.loads(json.dumps(list(messages))))


class Joins(RuleBasedStateMachine):
    """The operations on an index, and the laws that hold after each."""

    format: MessageFormat

    def __init__(self) -> None:
        super().__init__()
        self.index = MessageIndex(counter="chars/4", format=self.format)
        self.random = Random(0)

    # ---------------------------------------------------------------- growing

    @initialize(data=st.data(), random=st.randoms(use_true_random=True))
    def begin(self, data: st.DataObject, random: Random) -> None:
        self.random = random
        self.append(data)

    def some_messages(self, data: st.DataObject) -> Chat:
        """A part of a conversation, from its start or from its middle."""
        messages = distinct(data.draw(any_conversation(self.format)))
        start = data.draw(st.integers(0, len(messages) - 1))
        return messages[start : start + data.draw(st.integers(1, 8))]

    @rule(data=st.data())
    def append(self, data: st.DataObject) -> None:
        self.index.append(self.some_messages(data))

    @precondition(lambda self: self.index.source)
    @rule(data=st.data())
    def append_result(self, data: st.DataObject) -> None:
        """An answer to a call comes again, late: its group comes back if the call still waits."""
        results = [raw for raw in self.index.source if any(self.format.read(raw).tool_results())]
        if results:
            self.index.append([copy.deepcopy(data.draw(st.sampled_from(results)))])

    @precondition(lambda self: self.index.source)
    @rule(data=st.data(), cut=st.integers(0, 4), again=st.booleans(), of_view=st.booleans())
    def sync(self, data: st.DataObject, cut: int, again: bool, of_view: bool) -> None:
        """The framework continues from all it had or from what it was given, and may have taken back the end."""
        known = self.index.messages() if of_view else list(self.index.source)
        known = rebuilt(known) if again else known
        more = self.some_messages(data) if data.draw(st.booleans()) else []
        self.index.sync([*known[: max(1, len(known) - cut)], *more])

    # ---------------------------------------------------------------- editing

    @precondition(lambda self: self.index.source)
    @rule(count=st.integers(1, 6), by_step=st.booleans())
    def edit(self, count: int, by_step: bool) -> None:
        """Random edits, of which some are held; undoing them leaves everything as it was."""
        before, view, mark = self.index.included, list(map(id, self.index.messages())), self.index.checkpoint()
        self.index.begin_step("")
        for _ in range(count):
            try:
                self.index.apply(RandomEdits(self.random).edit(self.index), by="Tests")
            except NoProgress:
                continue
        if by_step:
            self.index.end_step("")
        after = [applied.edit for applied in self.index.journal[mark:]]
        if self.random.random() < 0.3:
            self.index.rollback(mark)
            assert (self.index.included, list(map(id, self.index.messages()))) == (before, view), after

    @rule()
    def rollback(self) -> None:
        """Back to any place in the journal."""
        self.index.rollback(self.random.randint(0, self.index.edit_count))

    # ---------------------------------------------------------------- storing

    @rule(with_messages=st.booleans())
    def store(self, with_messages: bool) -> None:
        """An index that was stored as JSON and read again shows the same view."""
        data = json.loads(json.dumps(self.index.to_dict(messages=with_messages)))
        view, source = self.index.messages(), list(self.index.source)
        self.index = MessageIndex.from_dict(data, counter="chars/4")
        if not with_messages:
            self.index.sync(rebuilt(source))
        assert self.index.messages() == view

    # ---------------------------------------------------------------- what must hold

    def faults(self, messages: Sequence[Any]) -> Counter[tuple[str, int | None]]:
        """How often each rule is broken in each group, of those that no edit inserted."""
        index, found = self.index, Counter[tuple[str, int | None]]()
        every = {id for edit in index.edits for id in named(edit)} | set(index.included_ids)
        owners = {id(message.raw): max(group, -1) for group in every for message in index.group(group).messages}
        owners |= {id(index.source[at]): group for group in every if group >= 0 for at in index.ordinals(group)}
        for problem in self.format.validate(messages):
            place = re.match(r"messages\[(\d+)\]", problem.where)
            found[_SAME.get(problem.rule, problem.rule), place and owners[id(messages[int(place[1])])]] += 1
        return found

    @invariant()
    def the_view_has_no_new_problem(self) -> None:
        if self.index.source:
            source, view = list(self.index.source), self.index.messages()
            assert self.faults(view) - self.faults(source) == Counter()

    @invariant()
    def sums_are_those_of_a_fresh_count(self) -> None:
        index = self.index
        for included, messages in ((index.included, index.messages()), (index.total, index.source)):
            fresh = MessageIndex(messages, counter="chars/4", format=self.format).total
            assert (included.tokens, included.bytes, included.messages) == (fresh.tokens, fresh.bytes, fresh.messages)
        assert index.included.groups == len(index.included_groups)

    def teardown(self) -> None:
        """Undoing everything gives back the objects that were passed in."""
        self.index.rollback()
        assert self.index.included == self.index.total
        assert list(map(id, self.index.messages())) == list(map(id, self.index.source))


class OfGemini(Joins):
    format = gemini


class OfAnthropic(Joins):
    format = anthropic


class OfBedrock(Joins):
    format = bedrock


TestGemini = OfGemini.TestCase
TestAnthropic = OfAnthropic.TestCase
TestBedrock = OfBedrock.TestCase
TestGemini.settings = TestAnthropic.settings = TestBedrock.settings = settings(examples(15), stateful_step_count=20)

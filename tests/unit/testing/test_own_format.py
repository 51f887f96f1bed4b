"""The checks, samples and benchmarks of ``compaction.testing`` in a user's own format."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction import Drop, GroupKind, MessageIndex
from compaction.formats import MessageFormat, Problem, Repair, Side
from compaction.messages import Message, Part, TextPart
from compaction.selectors import last
from compaction.strategies import SlidingWindow, Strategy, ToolResult, Truncation
from compaction.testing import (
    LawBroken,
    agent_session,
    benchmark_strategy,
    check_strategy,
    check_trigger,
    conversations,
    sample_conversations,
)
from compaction.triggers import messages_exceed


class Debate(MessageFormat):
    """Two sides that alternate, the user first: ``{"side": ..., "says": ...}``; leading system messages are allowed."""

    name = "debate"

    def read(self, raw: Any, position: int = 0) -> Message:
        return Message(raw["side"], (TextPart(raw["says"]),), raw, self)

    def changed(self, message: Message, parts: Sequence[Part]) -> Message:
        return self.read({**message.raw, "says": "\n".join(part.text for part in parts if isinstance(part, TextPart))})

    def new(self, role: str, text: str) -> Message:
        return self.read({"side": role, "says": text})

    def message_problems(self, raw: Any) -> list[Problem]:
        return [] if raw["says"].strip() else [Problem("messages[0]", "silent", "nothing is said", "leave it out")]

    def join_problem(self, before: Message | None, after: Message | None) -> tuple[str, Side] | None:
        if before is None or after is None or after.role == "system":
            leads = before is None and after is not None and after.role == "assistant"
            return ("out-of-turn", "after") if leads or (before is not None and after is not None) else None
        return ("out-of-turn", "after") if before.role == after.role else None

    def validate(self, raws: Sequence[Any]) -> list[Problem]:
        messages = [self.read(raw) for raw in raws]
        leading = next((place for place, message in enumerate(messages) if message.role != "system"), len(messages))
        found = [
            Problem(f"messages[{place}]", problem.rule, problem.message, problem.remedy)
            for place, raw in enumerate(raws)
            for problem in self.message_problems(raw)
        ]
        for place, (before, after) in enumerate(pairwise([None, *messages[leading:]])):
            if (broken := self.join_problem(before, after)) is not None:
                found.append(Problem(f"messages[{leading + place}]", broken[0], "the other side speaks", "wait"))
        return sorted(found, key=lambda problem: int(re.findall(r"\d+", problem.where)[0]))

    def repair(self, raws: Sequence[Any]) -> Repair:
        return Repair(list(raws), (), tuple(self.validate(raws)))


DEBATE = Debate()


@pytest.mark.parametrize(
    "strategy",
    [Truncation(keep=last(groups=2)), Truncation(trigger=messages_exceed(6)), SlidingWindow(keep=last(turns=1)), ToolResult()],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore:.*this checks little")
def test_a_strategy_is_checked_in_it(strategy: Strategy) -> None:
    check_strategy(strategy, format=DEBATE)
    check_strategy(strategy, format=DEBATE, messages=agent_session(40, format=DEBATE))


def test_a_law_that_is_broken_is_found() -> None:
    def mute(index: MessageIndex) -> Any:
        for group in index.included_groups[2:-2]:
            if group.kind is GroupKind.ASSISTANT:
                yield Drop(group, reason="too long")

    class Blind(Debate):
        """The same rules, but ``join_problem`` reports nothing."""

        def join_problem(self, before: Message | None, after: Message | None) -> tuple[str, Side] | None:
            return None

        def validate(self, raws: Sequence[Any]) -> list[Problem]:
            return DEBATE.validate(raws)

    messages = agent_session(40, format=DEBATE)
    with pytest.raises(LawBroken, match="new problems in the result: out-of-turn"):
        check_strategy(mute, format=Blind(), messages=messages)


def test_samples_are_written_in_it() -> None:
    """Samples in a custom format contain text messages only; all but the damaged ones at the end are valid in that format."""
    samples = [agent_session(60, format=DEBATE), *sample_conversations(DEBATE)[:-6]]
    assert [DEBATE.validate(each) for each in samples] == [[]] * len(samples)
    assert samples[0][0] == {"side": "system", "says": "You fix bugs. Read before you write."}
    assert sum(len(each) > 4 for each in samples) >= 5
    check_trigger(messages_exceed(6), format=DEBATE)
    [row] = benchmark_strategy(Truncation(keep=last(groups=2)), [60], format=DEBATE, repeats=1).rows
    assert row.edits > 0


@given(data=st.data())
def test_conversations_are_drawn_in_it(data: st.DataObject) -> None:
    assert DEBATE.validate(data.draw(conversations(format=DEBATE))) == []
    assert isinstance(data.draw(conversations(format=DEBATE, valid=False)), list)

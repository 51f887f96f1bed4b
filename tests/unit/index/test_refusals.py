"""Refused edits may not be repeated; drops refused only for their new neighbours are tried together when the step ends.

In Anthropic's format an instruction within the conversation stands between the user and an answer, and an answer with thoughts
does not follow another. So neither the answer nor the question of ``user, system, answer, question, thoughts`` may leave alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest

from compaction import Drop, Edit, MessageIndex, Pipeline, Replace, Together, run_sync, validate
from compaction.errors import NoProgress
from compaction.formats import anthropic
from tests.support.chats import assistant, indexed, system, turns, user
from tests.support.letters import Letters, lettered

Raw: TypeAlias = dict[str, Any]
Chat: TypeAlias = list[Raw]

ANSWER, QUESTION = 2, 3
RULE = "the provider would reject the rest of the view [misplaced-system]: group 1 or group 3 would have to be dropped, too"


def block(number: int = 0) -> Chat:
    """A question, an instruction, the answer, a question, an answer with thoughts."""
    signed = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    return [
        {"role": "user", "content": f"first question {number}"},
        {"role": "system", "content": "be brief"},
        {"role": "assistant", "content": f"first answer {number}"},
        {"role": "user", "content": f"second question {number}"},
        {"role": "assistant", "content": [signed, {"type": "text", "text": f"second answer {number}"}]},
    ]


def index_of(blocks: int = 1) -> MessageIndex:
    messages = [message for number in range(blocks) for message in block(number)]
    messages.append({"role": "user", "content": "and now?"})
    assert validate(messages, format=anthropic) == []
    return MessageIndex(messages, counter="chars/4", format=anthropic)


def rules(index: MessageIndex) -> list[str]:
    return [refusal.rule for refusal in index.refused]


def ended(index: MessageIndex, *drops: Drop) -> bool:
    """Ask for each drop in one step, and return whether the end of the step applied any."""
    index.begin_step("")
    for drop in drops:
        index.apply(drop, by="Tests")
    return index.end_step("")


class TestRefused:
    def test_it_names_what_it_would_have_needed(self) -> None:
        index = index_of()
        assert not index.apply(Drop(ANSWER))
        assert rules(index) == [RULE]
        assert not index.end_step("")
        assert (rules(index), index.edits, index.included) == ([RULE], (), index.total)

    def test_what_is_refused_for_another_reason_does_not_wait(self) -> None:
        index = index_of()
        assert not ended(index, Drop([ANSWER, 5]), Drop(QUESTION))
        assert rules(index)[0] == "the newest group must be kept"
        index.begin_step("")
        assert not index.apply(Drop(ANSWER))
        index.rollback()
        assert not index.apply(Drop(QUESTION), by="Tests")
        assert not index.end_step("")

    def test_a_trial_leaves_what_waits_as_it_was(self) -> None:
        index = index_of()
        assert not index.apply(Drop(ANSWER))
        with index.trial():
            assert not index.apply(Drop(QUESTION))
            assert not index.end_step("")
        assert rules(index) == [RULE]
        assert not index.apply(Drop(QUESTION))
        assert index.end_step("")

    def test_drops_of_one_group_are_not_applied_together(self) -> None:
        index = index_of()
        assert not ended(index, Drop(ANSWER), Drop([ANSWER, QUESTION]))
        assert (index.edits, index.refused) == ((Drop([ANSWER, QUESTION]),), ())
        index = index_of(2)
        assert not ended(index, *map(Drop, ([2], [2, 7], [7])))
        assert (len(index.refused), index.edits) == (3, ())


def test_two_that_need_one_another() -> None:
    index = index_of()
    assert ended(index, Drop(QUESTION), Drop(ANSWER))
    assert index.edits == (Together(Drop(ANSWER), Drop(QUESTION)),)
    assert [applied.by for applied in index.journal] == ["Tests"]
    assert (index.refused, index.included_ids, index.end_step("")) == ((), [0, 1, 4, 5], False)


def ask_for(*groups: int) -> Callable[[MessageIndex], Iterator[Edit]]:
    """A function that drops these groups one by one."""
    return lambda index: iter([Drop(id, "old") for id in groups])


def test_steps_do_not_help_one_another() -> None:
    """Each function of a pipeline is a step; the second may ask for what the first was refused."""
    index = index_of()
    run_sync(index, Pipeline(ask_for(ANSWER), ask_for(QUESTION)))
    assert index.edits == ()
    run_sync(index, Pipeline(ask_for(ANSWER), ask_for(ANSWER, QUESTION)))
    assert len(index.edits) == 1


# ---------------------------------------------------------------- in a format of letters


def needed(index: MessageIndex) -> list[str]:
    """Return the groups that each refusal names as needed."""
    return [refusal.rule.partition("]: ")[2].partition(" would")[0] for refusal in index.refused]


def test_what_is_needed_are_groups() -> None:
    """The first group by its id too, one of several messages by the id of its first, and a summary by its own."""
    index = lettered("uabu", "ub")
    index.apply(Drop(1))
    assert needed(index) == ["group 0 or group 2"]
    called = [
        {"role": "user", "text": "u0 word word word"},
        {"role": "assistant", "text": "c1", "calls": ["x"]},
        {"role": "tool", "text": "r2", "answers": "x"},
        {"role": "assistant", "text": "a3"},
        {"role": "assistant", "text": "b4"},
        {"role": "user", "text": "u5"},
    ]
    format = Letters({("r", "b"): ("rule", "after"), ("u", "b"): ("rule", "after")})
    index = MessageIndex(called, counter="chars/4", format=format)
    index.apply(Drop(3))
    assert needed(index) == ["group 1 or group 4"]
    assert index.apply(Replace([0, 1], [format.new("user", "u")]))
    index.begin_step("")
    index.apply(Drop(3))
    assert needed(index)[-1] == "group -1 or group 4"


class TestAskingAgain:
    def test_the_same_refused_edit_twice_is_no_progress(self) -> None:
        index = indexed([system("s"), user("q")])
        assert not index.apply(Drop([0]), by="Stubborn")
        with pytest.raises(NoProgress, match=r"^Stubborn repeated the refused .*: system messages must be kept"):
            index.apply(Drop([0], "another reason"), by="Stubborn")

    def test_another_permission_makes_another_edit(self) -> None:
        index = MessageIndex([system("s"), user("q"), user("r")], counter="chars/4", pin=lambda message: message.is_system)
        assert not index.apply(Drop([0]))
        assert not index.apply(Drop([0], allow_system=True))
        assert rules(index) == ["system messages must be kept", "pinned groups must be kept"]

    def test_after_a_change_it_may_be_asked_for_again(self) -> None:
        index = indexed([*turns(2), user("q")])
        assert not index.apply(Drop([4]))
        assert index.apply(Drop([0]))
        assert not index.apply(Drop([4]))
        index.append([assistant("a")])
        assert not index.apply(Drop([4]))
        assert len(index.refused) == 3
        index.checkpoint()
        assert not index.apply(Drop([4]))
        assert len(index.refused) == 1

"""Drops that are refused only for the messages they would make neighbours: held until later drops of the step close the gap.

In Anthropic's format an instruction within the conversation stands between the user and an answer, and an answer with thoughts
does not follow another. So neither the answer nor the question of ``user, system, answer, question, thoughts`` may leave alone.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any, TypeAlias

import pytest

from compaction import Drop, Edit, MessageIndex, Pipeline, Together, compact_sync, run_sync, validate
from compaction.errors import NoProgress
from compaction.formats import anthropic, gemini
from compaction.selectors import last
from compaction.strategies import Truncation

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


class TestClosed:
    @pytest.mark.parametrize(("first", "second"), [(ANSWER, QUESTION), (QUESTION, ANSWER)])
    def test_by_a_later_drop(self, first: int, second: int) -> None:
        """Both become one journal entry, and neither counts as refused."""
        index = index_of()
        assert not index.apply(Drop(first, "one"), by="Tests")
        assert len(index.refused) == 1
        assert index.apply(Drop(second, "other"), by="Tests")
        assert index.edits == (Together(Drop(first, "one"), Drop(second, "other")),)
        assert [applied.by for applied in index.journal] == ["Tests"]
        assert index.refused == ()
        assert index.included_ids == [0, 1, 4, 5]
        assert validate(index.messages(), format=anthropic) == []

    def test_by_another_edit_that_is_allowed_itself(self) -> None:
        """Once the call is dropped, the held drop of its question is applied as a separate journal entry."""
        messages: Chat = [
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"r": 1}}}]},
            {"role": "user", "parts": [{"text": "now"}]},
        ]
        index = MessageIndex(messages, counter="chars/4", format=gemini)
        assert not index.apply(Drop(0))
        assert index.apply(Drop(1))
        assert (index.edits, index.refused) == ((Drop(1), Drop(0)), ())
        assert index.messages() == messages[3:]

    def test_a_rollback_lets_go_of_what_is_held(self) -> None:
        index = index_of()
        assert not index.apply(Drop(ANSWER))
        index.rollback()
        assert not index.apply(Drop(QUESTION))
        assert index.edits == ()

    @pytest.mark.parametrize("blocks", [40, 100])
    def test_many_that_are_connected(self, blocks: int) -> None:
        """Each is wrong at two places until all of them are gone; the last of a hundred, only when the step ends."""
        index = index_of(blocks)
        index.begin_step()
        asked = [Drop([5 * n - 2, 5 * n + 2]) for n in range(1, blocks)]
        for drop in [Drop(2), *asked]:
            assert not index.apply(drop)
        connected = blocks <= 64
        assert index.apply(Drop(5 * blocks - 2)) == connected
        assert index.end_step() != connected
        assert [type(edit) for edit in index.edits] == [Together]
        assert index.refused == ()
        assert index.included.messages == 3 * blocks + 1
        assert validate(index.messages(), format=anthropic) == []
        index.rollback()
        assert index.included == index.total


class TestStillHeld:
    def test_it_is_refused_with_what_it_would_have_needed(self) -> None:
        """From the moment it is asked for, and after the step."""
        index = index_of()
        index.begin_step()
        assert not index.apply(Drop(ANSWER))
        assert rules(index) == [RULE]
        assert not index.end_step()
        assert rules(index) == [RULE]
        assert (index.edits, index.included) == ((), index.total)

    def test_asking_twice_is_no_progress(self) -> None:
        """As for any refusal; it is held once all the same."""
        index = index_of()
        assert not index.apply(Drop(ANSWER))
        with pytest.raises(NoProgress, match="repeated the refused Drop of group 2"):
            index.apply(Drop(ANSWER))
        assert index.apply(Drop(QUESTION))
        assert index.edits == (Together(Drop(ANSWER), Drop(QUESTION)),)

    def test_what_is_refused_for_another_reason_is_not_held(self) -> None:
        """A drop refused by a rule about one of its groups is not held."""
        index = index_of()
        assert not index.apply(Drop([ANSWER, 5]))
        assert not index.apply(Drop(QUESTION))
        assert rules(index)[0] == "the newest group must be kept"
        assert index.edits == ()

    def test_a_trial_leaves_what_is_held_as_it_was(self) -> None:
        index = index_of()
        assert not index.apply(Drop(ANSWER))
        with index.trial():
            assert not index.apply(Drop(QUESTION))
        assert rules(index) == [RULE]
        assert index.apply(Drop(QUESTION))


class TestSharedGroups:
    """Drops that name a group of one another are never applied together."""

    def test_a_drop_of_more_takes_the_place_of_one_that_is_held(self) -> None:
        """The groups of the held drop have left the view."""
        index = index_of()
        assert not index.apply(Drop(ANSWER))
        assert index.apply(Drop([ANSWER, QUESTION]))
        assert (index.edits, index.refused) == ((Drop([ANSWER, QUESTION]),), ())

    def test_the_one_that_asks_for_more_goes_first(self) -> None:
        index = index_of(2)
        assert not index.apply(Drop(2))
        assert not index.apply(Drop([2, 7]))
        assert index.apply(Drop([3, 8]))
        assert (index.edits, index.refused) == ((Together(Drop([2, 7]), Drop([3, 8])),), ())

    def test_at_the_end_of_a_step(self) -> None:
        index = index_of(2)
        index.begin_step()
        for groups in ([2], [2, 7], [7]):
            assert not index.apply(Drop(groups))
        assert not index.end_step()
        assert len(index.refused) == 3
        assert index.edits == ()

    def test_a_group_that_left_is_held_no_longer(self) -> None:
        """The drop of its other group stays refused, and blocks no later drop."""
        index = index_of(2)
        assert not index.apply(Drop([2, 7]))
        assert index.apply(Drop([2, 3]))
        assert not index.apply(Drop(8))
        assert index.apply(Drop(7))
        assert index.edits == (Drop([2, 3]), Together(Drop(8), Drop(7)))


def ask_for(*groups: int, told: list[bool] | None = None) -> Callable[[MessageIndex], Iterator[Edit]]:
    """A function that drops these groups one by one, and records the answers."""

    def strategy(index: MessageIndex) -> Generator[Edit, bool]:
        for id in groups:
            done = yield Drop(id, "old")
            if told is not None:
                told.append(done)

    return strategy


class TestInARun:
    def test_steps_do_not_help_one_another(self) -> None:
        """Each function of a pipeline is a step; the second may ask for what the first was refused."""
        index = index_of()
        run_sync(index, Pipeline(ask_for(ANSWER), ask_for(QUESTION)))
        assert index.edits == ()
        run_sync(index, Pipeline(ask_for(ANSWER), ask_for(ANSWER, QUESTION)))
        assert len(index.edits) == 1


class TestMessagesThatCome:
    """An edit whose view is invalid with later messages is undone, and ``undone`` lists it."""

    def gemini_with_an_open_call(self) -> MessageIndex:
        messages: Chat = [
            {"role": "user", "parts": [{"text": "first"}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
            {"role": "user", "parts": [{"text": "never mind"}]},
            {"role": "model", "parts": [{"text": "fine"}]},
        ]
        return MessageIndex(messages, counter="chars/4", format=gemini)

    def test_a_late_result_brings_a_call_back_to_the_start(self) -> None:
        """In Gemini's format a call must follow the user, so the user message is shown again, too."""
        index = self.gemini_with_an_open_call()
        assert index.apply(Drop(1, "the call"))
        assert index.apply(Drop(0, "the question"))
        late = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"r": 1}}}]}
        index.append([late])
        assert index.undone == (Drop(0, "the question"),)
        assert index.messages() == list(index.source)
        assert index.included == MessageIndex(index.messages(), counter="chars/4", format=gemini).included
        index.rollback()
        assert index.included == index.total

    def test_the_host_writes_the_rest_anew(self) -> None:
        """A call now follows the dropped messages, so the user message before it is needed."""
        words = [{"role": "user", "parts": [{"text": text}]} for text in ("a", "b", "c", "d")]
        index = MessageIndex(
            [*words[:2], {"role": "model", "parts": [{"text": "x"}]}, words[2]], counter="chars/4", format=gemini
        )
        assert index.apply(Drop([0, 1]))
        call = {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]}
        result = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"r": 1}}}]}
        index.sync([*words[:2], call, result, words[3]])
        assert index.undone == (Drop([0, 1]),)
        assert index.messages() == [*words[:2], call, result, words[3]]


def test_a_built_in_strategy_asks_for_steps_and_holds_nothing() -> None:
    """It plans with ``index.steps``, so that nothing is refused."""
    result = compact_sync(index_of(3).messages(), Truncation(keep=last(groups=1)), counter="chars/4", format="anthropic")
    assert result.refused == ()
    assert validate(result.messages, format=anthropic) == []

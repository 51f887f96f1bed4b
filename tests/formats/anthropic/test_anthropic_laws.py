"""Strategy laws that depend on the Anthropic format: system messages in the middle of the conversation."""

from __future__ import annotations

import pytest

from compaction import Drop, GroupKind, Replace, compact_sync, kinds
from compaction.formats import anthropic
from compaction.index.marks import marked
from compaction.selectors import first, last
from compaction.strategies import Lossless, SlidingWindow, Strategy, Summarization, ToolResult, Truncation
from compaction.testing import check_strategy
from compaction.triggers import turns_exceed
from tests.support.wires import Brief, Shelf, indexed


def test_an_instruction_that_says_nothing_gets_no_note() -> None:
    """Summarization adds no note to a system message whose content is not text: that would break another rule."""
    said = [{"role": role, "content": "word " * 200} for role in ("user", "assistant", "user", "assistant")]
    strategy = Summarization(keep=last(groups=1), system_note="Some of it was summarized.")
    check_strategy(strategy, messages=[{"role": "system", "content": 5}, *said], format=anthropic)


@pytest.mark.parametrize(
    "strategy",
    [Lossless(SlidingWindow(keep=last(groups=1)), Shelf()), Summarization(Brief(), keep=last(groups=1))],
    ids=["SlidingWindow", "Summarization of another name"],
)
def test_another_strategys_summary_holds_an_instruction_in_its_place(strategy: Strategy) -> None:
    """If another strategy's summary stays before a system message, the answer to that message is not dropped."""
    by = "GrowingSummary"
    summary = {"role": "user", "content": marked("The user wants to know the time.", by=by)}
    said = [{"role": role, "content": "word " * 90 + "end"} for role in ("assistant", "user")]
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "word " * 90}
    looked = [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    messages = [summary, {"role": "system", "content": "now be kind"}, *said * 2, *looked, said[0]]
    assert anthropic.validate(messages) == []
    check_strategy(strategy, messages=messages, format=anthropic)


def test_truncation_goes_on_once_an_instruction_is_gone() -> None:
    """Truncation keeps the answer to a mid-conversation system message only while that message is in the view."""
    asked, answered = ({"role": role, "content": "word " * 90 + "end"} for role in ("user", "assistant"))
    messages = [asked, {"role": "system", "content": "now be kind"}, answered, asked, answered]
    truncation = Truncation(keep=kinds(GroupKind.USER), drop_system=True)
    assert compact_sync(messages, truncation, counter="chars/4").messages == [asked, asked, answered]
    check_strategy(truncation, messages=messages, format=anthropic)


def test_what_answered_an_instruction_that_is_gone_is_free() -> None:
    """The answer to an instruction may be replaced by a user message only after the instruction was dropped."""
    asked, answered = ({"role": role, "content": "word " * 90 + "end"} for role in ("user", "assistant"))
    index = indexed([asked, {"role": "system", "content": "now be kind"}, answered, asked, answered], anthropic)
    stands_for_it = Replace([2], [anthropic.new("user", "It was kind.")], "shorter")
    assert not index.apply(stands_for_it)
    assert index.apply(Drop([1], "it is no longer wanted", allow_system=True))
    assert index.apply(stands_for_it)
    assert anthropic.validate(index.messages()) == []


def test_what_comes_to_follow_an_instruction_answers_it() -> None:
    """After the first answer is dropped, the next group answers the instruction and may only be replaced by an answer."""
    asked, answered = ({"role": role, "content": "word " * 90 + "end"} for role in ("user", "assistant"))
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "word " * 90}]}
    messages = [asked, {"role": "system", "content": "now be kind"}, answered, asked, call, result, answered, asked, answered]
    index = indexed(messages, anthropic)
    note = [anthropic.new("user", "It looked.")]
    assert index.apply(Drop([2, 3], "old"))
    assert not index.apply(Replace([4], note, "shorter"))
    pair = [anthropic.new("assistant", "It looked."), anthropic.new("user", "Go on.")]
    assert index.apply(Replace([4], pair, "shorter"))
    assert not index.apply(Replace([-1], note, "shorter still"))
    assert anthropic.validate(index.messages()) == []
    first_words = Truncation(target=turns_exceed(2), keep=last(groups=4))
    check_strategy(first_words >> ToolResult(keep=last(groups=2)), messages=messages, format=anthropic, settles_in=4)


def test_what_stood_before_an_instruction_is_summed_up_in_one_run() -> None:
    """Summarization keeps the user message that must come before an instruction, and a second run changes nothing."""
    asked = {"role": "user", "content": "and what then? " * 9}
    said = {"role": "assistant", "content": "this, and that, and more. " * 9}
    messages = [said, asked, said, asked, {"role": "system", "content": "be kind"}, said, asked, said, asked]
    strategy = Summarization(Brief(), keep=first(messages=1) | last(messages=1))
    once = compact_sync(messages, strategy, format=anthropic, counter="chars/4").messages
    assert [message["role"] for message in once] == ["assistant", "user", "system", "assistant", "user", "user"]
    assert once[1] is messages[3]
    assert compact_sync(once, strategy, format=anthropic, counter="chars/4").messages == once

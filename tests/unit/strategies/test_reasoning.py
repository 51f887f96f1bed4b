"""Clearing reasoning: old reasoning is removed, texts and calls stay."""

from __future__ import annotations

from typing import Any

import pytest

from compaction import Drop, Rewrite, compact_sync, nothing, validate
from compaction.strategies import ClearReasoning
from tests.support.chats import Chat, assistant, call, edits_of, indexed, result, shown, thought, user


def thinking(message: dict[str, Any], text: str = "hm") -> dict[str, Any]:
    """The message with reasoning in front of it."""
    return {**message, "reasoning": text}


def cleared(messages: Chat, **options: Any) -> Chat:
    return compact_sync(messages, ClearReasoning(**options), counter="chars/4").messages


DETAILS = [{"type": "reasoning.text", "text": "hm"}, {"type": "reasoning.encrypted", "data": "x" * 400}]
WORDS = {"type": "text", "text": "4"}


@pytest.mark.parametrize(
    ("thought", "content"),
    [
        ({"reasoning": "two and two", "content": "4"}, "4"),
        ({"reasoning_content": "two and two", "content": "4"}, "4"),
        ({"reasoning_details": DETAILS, "content": "4"}, "4"),
        ({"content": [{"type": "thinking", "thinking": "hm"}, WORDS]}, [WORDS]),
    ],
    ids=["reasoning", "reasoning_content", "details", "a part"],
)
def test_the_thought_goes_and_the_words_stay(thought: dict[str, Any], content: Any) -> None:
    said = {"role": "assistant", "trace": 7, **thought}
    messages = [user("2+2?"), said, user("thanks"), assistant("sure"), user("bye")]
    left = cleared(messages)
    assert left[1] == {"role": "assistant", "content": content, "trace": 7}
    assert said == {"role": "assistant", "trace": 7, **thought}
    assert [out is put_in for out, put_in in zip(left, messages, strict=True)] == [True, False, True, True, True]


def test_a_tool_group_keeps_calls_and_results() -> None:
    group = [thought("a"), thinking(call("1")), thought("b"), result("1"), thought("c")]
    messages = [user("q"), *group, assistant("a"), user("r")]
    index = indexed(messages)
    (edit,) = edits_of(ClearReasoning(), index)
    assert isinstance(edit, Rewrite)
    assert [None if message is None else message.role for message in edit.messages] == [None, "assistant", None, "tool", None]
    assert index.messages() == [user("q"), call("1"), result("1"), assistant("a"), user("r")]
    assert index.included.tool_calls == 1
    assert validate(index.messages()) == []


def test_a_group_of_nothing_but_reasoning_is_dropped() -> None:
    messages = [user("q"), thought("a"), thought("b"), assistant("a"), user("r")]
    assert list(edits_of(ClearReasoning(), indexed(messages))) == [Drop([1], "nothing but old reasoning")]
    assert shown(cleared(messages)) == ["q", "a", "r"]


def test_the_last_turn_stays_by_default() -> None:
    messages = [user("q"), thinking(assistant("a")), user("r"), thinking(call("1")), result("1"), thinking(assistant("b"))]
    assert ["reasoning" in message for message in cleared(messages)] == [False, False, False, True, False, True]
    assert not any("reasoning" in message for message in cleared(messages, keep=nothing))

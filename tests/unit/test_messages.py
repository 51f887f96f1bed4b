"""Messages as read: their text, their parts, and changed copies that keep all other fields."""

from __future__ import annotations

import attrs
import pytest

from compaction.errors import ConfigurationError
from compaction.formats import anthropic, openai_chat
from compaction.messages import MediaPart, Message, OtherPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from tests.support.chats import assistant, call, result, thought, user

PICTURE = {"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}}


def test_text_is_words_and_results_without_reasoning_and_calls() -> None:
    parts = ReasoningPart("hm"), TextPart("one"), ToolCallPart("1", "look", "{}"), TextPart("two")
    message = Message("assistant", parts, {}, openai_chat)
    assert message.text == "one\ntwo"
    assert openai_chat.read(result("1", "found it")).text == "found it"
    assert openai_chat.read(thought("hm")).text == ""


@pytest.mark.parametrize(("role", "instructs"), [("system", True), ("developer", True), ("user", False), ("critic", False)])
def test_system_and_developer_messages_instruct(role: str, instructs: bool) -> None:
    assert openai_chat.read({"role": role, "content": "x"}).is_system is instructs


def test_calls_and_results_come_in_order() -> None:
    assert [each.id for each in openai_chat.read(call("2", "1", text="both")).tool_calls()] == ["2", "1"]
    assert [each.call_id for each in openai_chat.read(result("2")).tool_results()] == ["2"]
    assert list(openai_chat.read(user()).tool_calls()) == []


def test_messages_are_equal_only_if_they_are_the_same() -> None:
    raw = user("hi")
    one, other = openai_chat.read(raw), openai_chat.read(raw)
    assert one != other
    assert [one] == [one]
    assert one.raw is raw


def test_a_message_cannot_be_changed() -> None:
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        openai_chat.read(user()).role = "system"  # type: ignore[misc]


def test_new_text_takes_the_place_of_the_first_words() -> None:
    """``evolve(text=)`` replaces the first text and removes the others; media, unknown fields and the original stay."""
    parts = [PICTURE, {"type": "text", "text": "one", "cache": 1}, {"type": "text", "text": "two"}]
    message = openai_chat.read({"role": "user", "content": parts, "trace": 7})
    changed = message.evolve(text="short")
    assert changed.raw == {"role": "user", "content": [PICTURE, {"type": "text", "text": "short", "cache": 1}], "trace": 7}
    assert changed.raw["content"][0] is PICTURE
    assert (len(parts), message.text) == (3, "one\ntwo")


def test_new_text_of_a_result_keeps_the_id() -> None:
    assert openai_chat.read(result("1", "long")).evolve(text="short").raw == result("1", "short")


def test_new_text_beside_a_result_replaces_the_words() -> None:
    """A user message of Anthropic's format may have results and words; the results stay."""
    found = {"type": "tool_result", "tool_use_id": "1", "content": "found it"}
    message = anthropic.read({"role": "user", "content": [found, {"type": "text", "text": "and now paint it"}]})
    assert message.evolve(text="paint it").raw["content"] == [found, {"type": "text", "text": "paint it"}]


def test_new_text_where_there_was_none() -> None:
    assert openai_chat.read(call("1")).evolve(text="looking").raw == call("1", text="looking")


def test_evolve_without_arguments_is_a_copy() -> None:
    message = openai_chat.read(assistant("x"))
    copy = message.evolve()
    assert copy.raw == message.raw
    assert copy is not message


def test_evolve_takes_a_text_or_parts() -> None:
    with pytest.raises(ConfigurationError, match="pass only one of them"):
        openai_chat.read(user()).evolve(text="A", parts=[TextPart("B")])


@pytest.mark.parametrize(
    "part",
    [
        TextPart("a", raw={"type": "text"}),
        ReasoningPart("a", raw=1),
        ToolCallPart("1", "t", "{}", raw=2),
        MediaPart("image", "low", 3, raw=4),
        ToolResultPart("1", "a", (MediaPart("image"),), raw=5),
        OtherPart("{}", raw=6),
    ],
)
def test_parts_are_values(part: Part) -> None:
    assert attrs.evolve(part, raw=None) == part
    assert "raw" not in repr(part)


def test_parts_that_do_not_change_leave_the_message_as_it_is() -> None:
    message = openai_chat.read({"role": "user", "content": "hello", "x_trace": 7})
    assert message.with_parts(lambda part: part) is message
    assert message.with_parts(lambda part: TextPart("bye")).raw == {"role": "user", "content": "bye", "x_trace": 7}

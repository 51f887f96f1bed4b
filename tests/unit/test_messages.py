"""Messages as read: their text, their parts, and changed copies that keep all other fields."""

from __future__ import annotations

import attrs
import pytest

from compaction.errors import ConfigurationError
from compaction.formats import openai_chat
from compaction.messages import MediaPart, Message, OtherPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from tests.support.chats import result, thought, user

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


def test_new_text_takes_the_place_of_the_first_words() -> None:
    """``evolve(text=)`` replaces the first text and removes the others; media, unknown fields and the original stay."""
    parts = [PICTURE, {"type": "text", "text": "one", "cache": 1}, {"type": "text", "text": "two"}]
    message = openai_chat.read({"role": "user", "content": parts, "trace": 7})
    changed = message.evolve(text="short")
    assert changed.raw == {"role": "user", "content": [PICTURE, {"type": "text", "text": "short", "cache": 1}], "trace": 7}
    assert changed.raw["content"][0] is PICTURE
    assert (len(parts), message.text) == (3, "one\ntwo")


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

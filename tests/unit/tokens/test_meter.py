"""Measuring a message: how many tokens and bytes each part adds."""

from __future__ import annotations

import pickle
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.errors import UnknownCounter
from compaction.formats import openai_chat
from compaction.messages import MediaPart, Message, OtherPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from compaction.tokens import MessageMeter, counter
from tests.support.wires import valid_conversation

METER = MessageMeter("chars/4")
TEXTS = st.text(max_size=80)
KINDS, DETAILS = st.sampled_from(["image", "audio", "video", "file", "hologram"]), st.sampled_from(["", "low", "high"])
MEDIA = st.builds(MediaPart, KINDS, DETAILS, st.integers(0, 9))
PARTS = st.one_of(
    st.builds(TextPart, TEXTS),
    st.builds(ReasoningPart, TEXTS),
    st.builds(OtherPart, TEXTS),
    st.builds(ToolCallPart, TEXTS, TEXTS, TEXTS),
    st.builds(ToolResultPart, TEXTS, TEXTS, st.lists(MEDIA, max_size=2).map(tuple)),
    MEDIA,
)


def message(*parts: Part, role: str = "user", name: str | None = None) -> Message:
    """A message of these parts; the meter uses neither its source nor its format."""
    source: Any = None
    return Message(role=role, parts=parts, raw=source, format=source, name=name)


@pytest.mark.parametrize(
    ("measured", "tokens", "size"),
    [
        (message(), 4, 0),
        (message(TextPart("twelve chars")), 4 + 3, 12),
        (message(TextPart("twelve chars"), TextPart("four")), 4 + 3 + 1, 16),
        (message(TextPart("한국어입니다")), 4 + 2, 18),
        (message(TextPart("four"), name="Bob"), 4 + 1 + 1 + 1, 7),
        (message(TextPart("four"), name=""), 4 + 1, 4),
        (message(ReasoningPart("hm, hm, hm")), 4 + 3, 10),
        (message(OtherPart('{"a": 1}')), 4 + 2, 8),
        (message(ToolCallPart("call_8xU2", "read", '{"path": "a"}')), 4 + 4 + 1 + 4, 17),
        (message(ToolResultPart("call_8xU2", "content")), 4 + 3 + 2, 7),
        (message(ToolResultPart("call_8xU2", "seen", (MediaPart("image", size_bytes=900),))), 4 + 3 + 1 + 765, 904),
        (message(MediaPart("image", "low", 5_000_000)), 4 + 85, 5_000_000),
        (message(MediaPart("image", "high")), 4 + 765, 0),
        (message(MediaPart("audio", size_bytes=7)), 4 + 600, 7),
        (message(MediaPart("video")), 4 + 15_780, 0),
        (message(MediaPart("file")), 4 + 2_333, 0),
        (message(MediaPart("hologram")), 4 + 2_333, 0),
    ],
)
def test_what_a_message_measures(measured: Message, tokens: int, size: int) -> None:
    """A message costs the tokens of its texts, fixed figures for media, and gpt-4o's costs around them; ids cost nothing."""
    assert METER.measure(measured) == (tokens, size)


@given(parts=st.lists(PARTS, max_size=5), name=st.none() | TEXTS)
def test_a_message_measures_the_sum_of_its_parts(parts: list[Part], name: str | None) -> None:
    """Measures are additive: parts in one message measure what they do apart, less the repeated cost of a message."""
    around, _ = METER.measure(message())
    apart = [METER.measure(message(part)) for part in parts] + [METER.measure(message(name=name))]
    tokens, size = METER.measure(message(*parts, name=name))
    assert tokens + around * len(parts) == sum(each for each, _ in apart)
    assert size == sum(each for _, each in apart)


def test_a_meter_is_a_value() -> None:
    assert pickle.loads(pickle.dumps(METER)) == METER == MessageMeter(counter("chars/4"))
    assert MessageMeter("bytes/4") != METER
    with pytest.raises(UnknownCounter):
        MessageMeter("no such counter")
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        METER.counter = counter("bytes/4")  # type: ignore[misc]


@given(valid_conversation(openai_chat))
def test_an_outline_has_the_size_of_its_message(messages: list[Any]) -> None:
    """Outlines are measured by a faster formula of their own, with the same result."""
    meter = MessageMeter("chars/4")
    outlined = [(raw, outline) for raw in messages if (outline := openai_chat.outline(raw)) is not None]
    measured = [meter.measure(openai_chat.read(raw)) for raw, _ in outlined]
    assert list(zip(*meter.measure_outlines([outline for _, outline in outlined]), strict=True)) == measured

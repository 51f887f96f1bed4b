"""Format detection: a list that fits exactly one format is in that format, and ``detect`` never guesses."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import pytest
from openai.types.chat import ChatCompletionMessage
from openai.types.responses import ResponseReasoningItem

from compaction.errors import UnknownFormat
from compaction.formats import FORMATS, MessageFormat, anthropic, detect, gemini, openai_chat, openai_responses
from compaction.formats.detect import fits, resolve
from compaction.formats.openai_chat.reading import OpenAIChat

Raw = dict[str, Any]

USER: Raw = {"role": "user", "content": "hi"}
SAID: Raw = {"role": "assistant", "content": [{"type": "text", "text": "hi"}]}


def possible(messages: list[Any]) -> list[str]:
    """Return the names of the formats that messages may be in."""
    try:
        return [detect(messages).name]
    except UnknownFormat as error:
        return str(error).removeprefix("these messages can be ").partition(";")[0].split(", ")


@pytest.mark.parametrize(
    ("messages", "format"),
    [
        ([USER, {"role": "assistant", "content": None, "tool_calls": [{"id": "a"}]}], openai_chat),
        ([USER, {"role": "tool", "tool_call_id": "a", "content": "x"}], openai_chat),
        ([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}], openai_chat),
        ([ChatCompletionMessage(role="assistant", refusal="no")], openai_chat),
        ([USER, {"type": "function_call_output", "call_id": "a", "output": "x"}], openai_responses),
        ([{"role": "user", "content": [{"type": "input_text", "text": "x"}]}], openai_responses),
        ([{"type": "message", "role": "user", "content": "x"}], openai_responses),
        ([ResponseReasoningItem(type="reasoning", id="rs_1", summary=[]), USER], openai_responses),
        ([USER, {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "x", "input": {}}]}], anthropic),
        ([{"role": "user", "content": [{"type": "image", "source": {"type": "url"}}]}], anthropic),
        ([{"id": "msg_1", "type": "message", "role": "assistant", "content": [], "stop_reason": "end_turn"}], anthropic),
        ([{"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": "x"}]}], anthropic),
        ([{"role": "user", "parts": [{"text": "x"}]}], gemini),
        ([{"role": "model", "parts": []}], gemini),
        ([{"role": "user", "parts": None}], gemini),
        ([{"role": "assistant", "content": "x", "parts": None, "tool_calls": [{"id": "a"}]}], openai_chat),
    ],
)
def test_one_format_fits(messages: list[Any], format: MessageFormat) -> None:
    assert detect(messages) is format


@pytest.mark.parametrize(
    ("messages", "names"),
    [
        ([USER], "openai-chat, openai-responses, anthropic"),
        ([USER, SAID], "openai-chat, anthropic"),
        ([{"role": "developer", "content": "x"}], "openai-chat, openai-responses"),
        ([], ", ".join(format.name for format in FORMATS)),
    ],
)
def test_more_than_one_fits(messages: list[Any], names: str) -> None:
    with pytest.raises(UnknownFormat, match=f"these messages can be {names}; name one with format="):
        detect(messages)


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ([USER, {"role": "model", "parts": []}], r"messages\[1\] is gemini, but the messages before it are not"),
        (
            [{"role": "tool", "content": "x"}, USER, {"type": "reasoning", "summary": []}],
            r"messages\[2\] is openai-responses, but messages\[0\] is openai-chat; one list has one format",
        ),
        ([USER, "hi"], r"messages\[1\]: a message is an object with fields \(got str\)"),
        ([{"messages": [{"role": "user", "content": "hi"}]}], r"messages\[0\] is a conversation, not a message; pass one"),
        ([{"type": "human", "text": "hi"}], r"messages\[0\]: no wire format has such a message"),
        ([{"role": "tool", "content": [{"type": "tool_use"}]}], r"messages\[0\]: no wire format has such a message"),
    ],
)
def test_none_fits(messages: list[Any], text: str) -> None:
    """A list of several formats, or of none, raises an error that names the first message that does not fit."""
    with pytest.raises(UnknownFormat, match=text):
        detect(messages)


@pytest.mark.parametrize(
    ("message", "format"),
    [
        ({"type": "additional_tools", "role": "developer", "tools": []}, openai_responses),
        ({"type": "configuration_update", "reasoning": {"effort": "low"}}, openai_responses),
        ({"id": "msg_1"}, openai_responses),
        ({"id": "msg_1", "type": None}, openai_responses),
        *(
            ({"role": "assistant", "content": [{"type": kind}]}, anthropic)
            for kind in ("compaction", "fallback", "mcp_tool_listing", "tool_addition", "tool_removal")
        ),
    ],
    ids=str,
)
def test_what_only_one_provider_has_names_it(message: dict[str, Any], format: MessageFormat) -> None:
    assert detect([message]) is format


@pytest.mark.parametrize(
    ("message", "formats"),
    [
        ({"role": "assistant", "content": None}, [openai_chat, anthropic]),
        ({"role": "assistant", "content": None, "stop_reason": "end_turn"}, [openai_chat, openai_responses, anthropic]),
        ({"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}, [openai_chat, openai_responses]),
        ({"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}, [openai_chat, openai_responses]),
        ({"role": "user", "content": [{"type": "image", "url": "x"}]}, [openai_chat, openai_responses, anthropic]),
        ({"role": "user", "content": [{"type": "x", "source": {}}]}, [openai_chat, openai_responses, anthropic]),
        ({"role": "user", "content": [{"type": "x", "signature": "y"}]}, [openai_chat, openai_responses, anthropic]),
        ({"role": "user", "content": ["bare"]}, [openai_chat, openai_responses, anthropic]),
    ],
    ids=["nothing said", "stopped", "audio", "refusal", "image of a compatible server", "a source", "a signature", "bare"],
)
def test_what_several_formats_have(message: Raw, formats: list[MessageFormat]) -> None:
    assert possible([message]) == [format.name for format in formats]


@pytest.mark.parametrize(
    ("message", "format"),
    [
        (USER, gemini),
        ({"type": "message", "role": "user", "content": "hi"}, openai_chat),
        ({"role": "user", "content": "hi", "parts": [{"text": "hi"}]}, openai_chat),
        ({"role": "model", "content": None}, openai_chat),
        (
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "x", "input": {}}], "tool_calls": []},
            openai_chat,
        ),
    ],
    ids=["gemini has parts", "an item", "parts", "gemini's role", "a call of anthropic's"],
)
def test_what_shows_another_format(message: Raw, format: MessageFormat) -> None:
    assert not fits([message], format)
    assert not fits([message, message], format)


def test_messages_of_no_format_say_nothing() -> None:
    """Messages that fit no format are ignored if others show a format; a list with only such messages is an error."""
    assert resolve(None, [None, {"x": 1}, {"role": "user", "parts": [{"text": "hi"}]}]) is gemini
    assert resolve(None, [None, {"role": "assistant"}]) is openai_chat
    with pytest.raises(UnknownFormat, match=r"messages\[1\]: no wire format has such a message \(its fields: 'x'\)"):
        resolve(None, [None, {"x": 1}])


class Telegram(OpenAIChat):
    """An unknown format: ``{"from": ..., "words": [...]}``."""

    name = "telegram"

    def recognizes(self, fields: Mapping[str, Any]) -> bool | None:
        return None if {"from", "content"} <= fields.keys() else "words" in fields

    def recognizes_part(self, fields: Mapping[str, Any]) -> bool:
        return fields.get("type") == "stop"


def test_a_format_is_detected_by_its_own_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """A format added to the registry is detected by its own ``recognizes`` and ``recognizes_part``."""
    telegram = Telegram()
    monkeypatch.setattr(sys.modules["compaction.formats.detect"], "FORMATS", (*FORMATS, telegram))
    assert detect([{"from": "Kim", "words": ["arrived"]}]) is telegram
    assert possible([{**USER, "from": "Kim"}]) == ["openai-chat", "openai-responses", "anthropic", telegram.name]
    assert detect([{**USER, "from": "Kim", "content": [{"type": "stop"}]}]) is telegram
    assert possible([USER]) == ["openai-chat", "openai-responses", "anthropic"]


def test_a_format_of_ones_own_is_not_detected() -> None:
    assert MessageFormat.recognizes(Telegram(), USER) is False
    assert MessageFormat.recognizes_part(Telegram(), {"type": "text"}) is False
    assert not fits([USER], Telegram())

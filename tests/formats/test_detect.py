"""Format detection: a list that fits exactly one format is in that format, and ``detect`` never guesses."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from openai.types.chat import ChatCompletionMessage
from openai.types.responses import ResponseReasoningItem

from compaction import compact_sync, validate
from compaction.errors import UnknownFormat
from compaction.formats import FORMATS, MessageFormat, OpenAIChat, anthropic, detect, gemini, openai_chat, openai_responses
from compaction.formats.detect import fits, resolve
from compaction.strategies import Pipeline

Raw = dict[str, Any]

USER: Raw = {"role": "user", "content": "hi"}
SAID: Raw = {"role": "assistant", "content": [{"type": "text", "text": "hi"}]}
USE: Raw = {"type": "tool_use", "id": "a", "name": "x", "input": {}}
CHAT_OR_ITEMS = [openai_chat, openai_responses]
CHAT_LIKE = [*CHAT_OR_ITEMS, anthropic]


def user(*parts: Any) -> Raw:
    return {"role": "user", "content": list(parts)}


def answer(*parts: Any) -> Raw:
    return {"role": "assistant", "content": list(parts)}


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
        ([user({"type": "image_url", "image_url": {"url": "x"}})], openai_chat),
        ([ChatCompletionMessage(role="assistant", refusal="no")], openai_chat),
        ([USER, {"type": "function_call_output", "call_id": "a", "output": "x"}], openai_responses),
        ([user({"type": "input_text", "text": "x"})], openai_responses),
        ([{"type": "message", "role": "user", "content": "x"}], openai_responses),
        ([ResponseReasoningItem(type="reasoning", id="rs_1", summary=[]), USER], openai_responses),
        ([USER, answer(USE)], anthropic),
        ([user({"type": "image", "source": {"type": "url"}})], anthropic),
        ([{"id": "msg_1", "type": "message", "role": "assistant", "content": [], "stop_reason": "end_turn"}], anthropic),
        ([answer({"type": "thinking", "thinking": "", "signature": "x"})], anthropic),
        ([{"role": "user", "parts": [{"text": "x"}]}], gemini),
        ([{"role": "model", "parts": []}], gemini),
        ([{"role": "user", "parts": None}], gemini),
        ([{"role": "assistant", "content": "x", "parts": None, "tool_calls": [{"id": "a"}]}], openai_chat),
        ([{"type": "additional_tools", "role": "developer", "tools": []}], openai_responses),
        ([{"type": "configuration_update", "reasoning": {"effort": "low"}}], openai_responses),
        ([{"id": "msg_1"}], openai_responses),
        ([{"id": "msg_1", "type": None}], openai_responses),
        *(([answer({"type": kind})], anthropic) for kind in ("compaction", "fallback", "mcp_tool_listing")),
        *(([answer({"type": kind})], anthropic) for kind in ("tool_addition", "tool_removal")),
    ],
    ids=str,
)
def test_one_format_fits(messages: list[Any], format: MessageFormat) -> None:
    assert detect(messages) is format


@pytest.mark.parametrize(
    ("messages", "formats"),
    [
        ([USER], CHAT_LIKE),
        ([USER, SAID], [openai_chat, anthropic]),
        ([{"role": "developer", "content": "x"}], CHAT_OR_ITEMS),
        ([], FORMATS),
        ([{"role": "assistant", "content": None}], [openai_chat, anthropic]),
        ([{"role": "assistant", "content": None, "stop_reason": "end_turn"}], CHAT_LIKE),
        ([user({"type": "input_audio", "input_audio": {}})], CHAT_OR_ITEMS),
        ([answer({"type": "refusal", "refusal": "no"})], CHAT_OR_ITEMS),
        ([user({"type": "image", "url": "x"})], CHAT_LIKE),
        ([user({"type": "x", "source": {}})], CHAT_LIKE),
        ([user({"type": "x", "signature": "y"})], CHAT_LIKE),
        ([user("bare")], CHAT_LIKE),
    ],
    ids=str,
)
def test_more_than_one_fits(messages: list[Any], formats: list[MessageFormat]) -> None:
    names = ", ".join(format.name for format in formats)
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
        ([{"messages": [USER]}], r"messages\[0\] is a conversation, not a message; pass one"),
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
        (USER, gemini),
        ({"type": "message", "role": "user", "content": "hi"}, openai_chat),
        ({"role": "user", "content": "hi", "parts": [{"text": "hi"}]}, openai_chat),
        ({"role": "model", "content": None}, openai_chat),
        ({**answer(USE), "tool_calls": []}, openai_chat),
    ],
    ids=["gemini has parts", "an item", "parts", "gemini's role", "a call of anthropic's"],
)
def test_what_shows_another_format(message: Raw, format: MessageFormat) -> None:
    assert not fits([message], format)
    assert not fits([message, message], format)


def test_messages_of_no_format_say_nothing() -> None:
    """Messages that fit no format are ignored if others show a format; a list with only such messages is an error."""
    odd = {"by": "Kim", "said": "hi"}
    assert resolve(None, [None, odd, {"role": "user", "parts": [{"text": "hi"}]}]) is gemini
    for messages in ([None, {"role": "assistant"}], [odd, USER], [{"role": "assistant"}]):
        assert resolve(None, messages) is openai_chat
    with pytest.raises(
        UnknownFormat, match=r"messages\[1\]: no wire format has such a message \(its fields: 'by', 'said'\); name"
    ):
        compact_sync([None, odd], Pipeline(), counter="chars/4")


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
    assert detect([{**user({"type": "stop"}), "from": "Kim"}]) is telegram
    assert possible([USER]) == ["openai-chat", "openai-responses", "anthropic"]


def test_a_format_of_ones_own_is_not_detected() -> None:
    assert MessageFormat.recognizes(Telegram(), USER) is False
    assert MessageFormat.recognizes_part(Telegram(), {"type": "text"}) is False
    assert not fits([USER], Telegram())


VERCEL_UI, VERCEL = "the Vercel AI SDK (UI messages)", "the Vercel AI SDK (model messages)"
UI_CALL = {"type": "tool-weather", "toolCallId": "a", "state": "output-available", "input": {}, "output": 18}
MODEL_CALL = {"type": "tool-call", "toolCallId": "a", "toolName": "weather", "input": {}}
MODEL_RESULT = {"type": "tool-result", "toolCallId": "a", "toolName": "weather", "output": {"type": "text", "value": "18"}}
UI_TALK = [
    {"role": "user", "parts": [{"type": "text", "text": "hi"}]},
    {"role": "assistant", "parts": [{"type": "dynamic-tool"}]},
]
OLDER_UI = {"role": "assistant", "content": "", "parts": [{"type": "tool-invocation", "toolInvocation": {}}]}
PYDANTIC_AI = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "hi"}]}

FOREIGN: list[tuple[str, str, list[Any]]] = [
    (VERCEL_UI, "convertToModelMessages", [{"id": "1", "role": "assistant", "parts": [UI_CALL]}]),
    (VERCEL_UI, "convertToModelMessages", UI_TALK),
    (VERCEL_UI, "convertToModelMessages", [OLDER_UI]),
    (VERCEL, "its own wire format", [USER, {"role": "assistant", "content": [MODEL_CALL]}]),
    (VERCEL, "its own wire format", [USER, {"role": "tool", "content": [MODEL_RESULT]}]),
    ("LangChain", "convert_to_openai_messages", [{"type": "human", "data": {"content": "hi"}}]),
    ("LangChain", "convert_to_openai_messages", [{"type": "human", "content": "hi", "id": None}]),
    ("LangChain", "convert_to_openai_messages", [{"lc": 1, "type": "constructor", "id": [], "kwargs": {"content": "hi"}}]),
    ("Cohere's first chat API", "chat completions", [{"role": "CHATBOT", "message": "hi"}]),
    ("pydantic-ai", "integrations.pydantic_ai", [PYDANTIC_AI]),
    ("Agent Framework", "integrations.agent_framework", [{"role": "user", "contents": [{"type": "text", "text": "hi"}]}]),
    ("LlamaIndex", "convert them", [{"role": "user", "blocks": [{"block_type": "text", "text": "hi"}]}]),
    ("AutoGen", "convert them", [{"source": "user", "type": "TextMessage", "content": "hi"}]),
    ("a ShareGPT data set", "'from' as 'role'", [{"from": "human", "value": "hi"}]),
]
"""Messages of frameworks and services: their source, and the remedy."""


@pytest.mark.parametrize("take", [detect, lambda messages: resolve(None, messages)], ids=["detect", "resolve"])
@pytest.mark.parametrize(("name", "remedy", "messages"), FOREIGN, ids=[f"{name} {at}" for at, (name, *_) in enumerate(FOREIGN)])
def test_it_is_named_with_a_remedy(take: Callable[[list[Any]], object], name: str, remedy: str, messages: list[Any]) -> None:
    """Without a named format, ``UnknownFormat`` names the source and a remedy; a named one reads what it can."""
    with pytest.raises(UnknownFormat) as caught:
        take(messages)
    assert f"these look like messages of {name}, " in str(caught.value)
    assert remedy in str(caught.value)
    assert isinstance(validate(messages, format="openai-chat"), list)

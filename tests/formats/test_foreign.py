"""Messages of frameworks and services that are not wire formats raise an error that names their source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compaction import compact_sync, validate
from compaction.errors import UnknownFormat
from compaction.formats import MessageFormat, detect, gemini, openai_chat, resolve
from compaction.strategies import Pipeline

ASKED = {"role": "user", "content": "hi"}
UI_CALL = {"type": "tool-weather", "toolCallId": "a", "state": "output-available", "input": {}, "output": 18}
MODEL_CALL = {"type": "tool-call", "toolCallId": "a", "toolName": "weather", "input": {}}
MODEL_RESULT = {"type": "tool-result", "toolCallId": "a", "toolName": "weather", "output": {"type": "text", "value": "18"}}

FOREIGN: list[tuple[str, str, list[Any]]] = [
    ("the Vercel AI SDK (UI messages)", "convertToModelMessages", [{"id": "1", "role": "assistant", "parts": [UI_CALL]}]),
    (
        "the Vercel AI SDK (UI messages)",
        "convertToModelMessages",
        [
            {"role": "user", "parts": [{"type": "text", "text": "hi"}]},
            {"role": "assistant", "parts": [{"type": "dynamic-tool"}]},
        ],
    ),
    (
        "the Vercel AI SDK (UI messages)",
        "convertToModelMessages",
        [{"role": "assistant", "content": "", "parts": [{"type": "tool-invocation", "toolInvocation": {}}]}],
    ),
    ("the Vercel AI SDK (model messages)", "its own wire format", [ASKED, {"role": "assistant", "content": [MODEL_CALL]}]),
    ("the Vercel AI SDK (model messages)", "its own wire format", [ASKED, {"role": "tool", "content": [MODEL_RESULT]}]),
    ("LangChain", "convert_to_openai_messages", [{"type": "human", "data": {"content": "hi"}}]),
    ("LangChain", "convert_to_openai_messages", [{"type": "human", "content": "hi", "id": None}]),
    ("LangChain", "convert_to_openai_messages", [{"lc": 1, "type": "constructor", "id": [], "kwargs": {"content": "hi"}}]),
    ("Cohere's first chat API", "chat completions", [{"role": "CHATBOT", "message": "hi"}]),
    (
        "pydantic-ai",
        "integrations.pydantic_ai",
        [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "hi"}]}],
    ),
    ("Agent Framework", "integrations.agent_framework", [{"role": "user", "contents": [{"type": "text", "text": "hi"}]}]),
    ("LlamaIndex", "convert them", [{"role": "user", "blocks": [{"block_type": "text", "text": "hi"}]}]),
    ("AutoGen", "convert them", [{"source": "user", "type": "TextMessage", "content": "hi"}]),
    ("a ShareGPT data set", "'from' as 'role'", [{"from": "human", "value": "hi"}]),
]


def resolve_any(messages: list[Any]) -> MessageFormat:
    return resolve(None, messages)


@pytest.mark.parametrize("take", [detect, resolve_any], ids=["detect", "resolve"])
@pytest.mark.parametrize(("name", "remedy", "messages"), FOREIGN, ids=[f"{name} {at}" for at, (name, *_) in enumerate(FOREIGN)])
def test_it_is_named_with_a_remedy(take: Callable[[list[Any]], object], name: str, remedy: str, messages: list[Any]) -> None:
    """Without a named format, ``UnknownFormat`` names the source of the messages and a remedy."""
    with pytest.raises(UnknownFormat) as caught:
        take(messages)
    assert f"these look like messages of {name}, " in str(caught.value)
    assert remedy in str(caught.value)


@pytest.mark.parametrize("messages", [each for _, _, each in FOREIGN], ids=range(len(FOREIGN)))
def test_a_named_format_reads_what_it_can(messages: list[Any]) -> None:
    assert isinstance(validate(messages, format="openai-chat"), list)


@pytest.mark.parametrize(
    ("messages", "format"),
    [
        ([{**ASKED, "id": "1", "createdAt": "today", "parts": None}], openai_chat),
        ([{**ASKED, "source": "web", "from": "Kim", "value": 7, "blocks": [1], "message": "x"}], openai_chat),
        ([ASKED, {"role": "assistant", "content": [{"type": "hologram"}]}], openai_chat),
        ([{"role": "user", "parts": [{"text": "hi", "x_trace": 1}]}], gemini),
    ],
    ids=range(4),
)
def test_further_fields_are_no_reason(messages: list[Any], format: MessageFormat) -> None:
    """A message that fits a format is read in that format, whatever extra fields it has."""
    assert resolve(None, messages) is format


def test_messages_that_nobody_knows() -> None:
    """A list in which no message fits a format raises an error; beside messages that do, an unknown message is accepted."""
    odd = {"by": "Kim", "said": "hi"}
    with pytest.raises(
        UnknownFormat, match=r"messages\[0\]: no wire format has such a message \(its fields: 'by', 'said'\); name"
    ):
        compact_sync([odd, odd], Pipeline(), counter="chars/4")
    assert resolve(None, [odd, ASKED]) is openai_chat
    assert resolve(None, [{"role": "assistant"}]) is openai_chat

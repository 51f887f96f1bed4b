"""Prompt-cache breakpoints: which messages get one, where in the message, and never more than four."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from compaction.errors import ConfigurationError, InvalidMessage
from compaction.formats import anthropic
from compaction.formats.blocks import MOST_BREAKPOINTS
from compaction.integrations.hermes import apply_cache_control, should_cache

FIVE = {"type": "ephemeral"}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
SYSTEM = {"role": "system", "content": "be brief"}


def said(count: int) -> list[dict[str, Any]]:
    return [{"role": "user" if n % 2 == 0 else "assistant", "content": f"{n}"} for n in range(count)]


def carriers(messages: list[Any]) -> list[int]:
    return [place for place, message in enumerate(messages) if "cache_control" in repr(message)]


def test_system_and_three() -> None:
    """The system message and the three latest have a breakpoint; without a system message, the four latest have one."""
    assert carriers(apply_cache_control([SYSTEM, *said(9)])) == [0, 7, 8, 9]
    assert carriers(apply_cache_control(said(9))) == [5, 6, 7, 8]
    assert carriers(apply_cache_control([SYSTEM, *said(2)])) == [0, 1, 2]
    assert apply_cache_control([]) == []


def test_what_cannot_carry_one_takes_none() -> None:
    """If a message cannot have a breakpoint, an earlier message gets it."""
    empty = {"role": "assistant", "content": "", "tool_calls": [CALL]}
    assert carriers(apply_cache_control([SYSTEM, *said(4), empty, empty])) == [0, 2, 3, 4]
    odd = {"role": "user", "content": ["text"]}
    assert carriers(apply_cache_control([SYSTEM, *said(4), odd], native=True)) == [0, 2, 3, 4]
    with pytest.raises(InvalidMessage, match=r"messages\[1\]"):
        apply_cache_control([SYSTEM, "hi"])


def text(words: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **fields}


MARK = {"cache_control": FIVE}
TOOL = {"role": "tool", "tool_call_id": "c"}
LISTED = {**TOOL, "content": [text("18")]}
NOTHING = {"role": "assistant", "content": None, "tool_calls": [CALL]}


@pytest.mark.parametrize(
    ("message", "native", "through_a_gateway"),
    [
        ({"role": "user", "content": "hi"}, {"role": "user", "content": [text("hi", **MARK)]}, ...),
        ({"role": "user", "content": [text("a"), text("b")]}, {"role": "user", "content": [text("a"), text("b", **MARK)]}, ...),
        ({**TOOL, "content": "18"}, {**TOOL, "content": "18", **MARK}, {**TOOL, "content": [text("18", **MARK)]}),
        (LISTED, {**LISTED, **MARK}, {**TOOL, "content": [text("18", **MARK)]}),
        ({**TOOL, "content": ""}, {**TOOL, "content": "", **MARK}, None),
        (NOTHING, {**NOTHING, **MARK}, None),
        ({"role": "system", "content": ""}, {"role": "system", "content": "", **MARK}, ...),
    ],
)
def test_where_in_the_message(message: dict[str, Any], native: Any, through_a_gateway: Any) -> None:
    """The table in the docstring of `apply_cache_control`, alone and behind a system message, which gets one of its own."""
    expected = native if through_a_gateway is ... else through_a_gateway or message
    assert apply_cache_control([message], native=True) == [native]
    assert apply_cache_control([message]) == apply_cache_control([message], native=False) == [expected]
    if message["role"] != "system":
        assert apply_cache_control([SYSTEM, SYSTEM, message])[1:] == [SYSTEM, expected]


def test_an_hour() -> None:
    """One hour is written, five minutes are the default, and other values raise a ``ConfigurationError``."""
    assert "'ttl': '1h'" in repr(apply_cache_control([SYSTEM], "1h"))
    assert "ttl" not in repr(apply_cache_control([SYSTEM]))
    with pytest.raises(ConfigurationError, match="'5m' or '1h'"):
        apply_cache_control([SYSTEM], "2h")  # type: ignore[arg-type]


@pytest.mark.parametrize("native", [True, False])
def test_marking_again_moves_them(native: bool) -> None:
    """Existing breakpoints are removed first, so there are never more than four."""
    messages: list[Any] = [SYSTEM, *said(3)]
    for more in range(6):
        messages = apply_cache_control([*messages, *said(more)], native=native)
        assert len(carriers(messages)) == MOST_BREAKPOINTS
        assert repr(messages).count("cache_control") == MOST_BREAKPOINTS


def test_the_callers_list_is_untouched() -> None:
    """The caller's list and messages do not change, and messages without a breakpoint are the same objects."""
    messages = [SYSTEM, *said(9), {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "r"}]}]
    before = copy.deepcopy(messages)
    marked = apply_cache_control(messages, native=True)
    assert messages == before
    assert marked[1] is messages[1]


def test_anthropic_messages() -> None:
    """In Anthropic messages the last block is marked, but not a thinking block; ``native`` makes no difference."""
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]}
    answer = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "18"}]}
    thought = {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}]}
    messages = [*said(1), call, answer, thought]
    marked = apply_cache_control(messages, native=True)
    assert marked == apply_cache_control(messages, format="anthropic")
    assert carriers(marked) == [0, 1, 2]
    assert marked[2]["content"] == [{**answer["content"][0], "cache_control": FIVE}]  # type: ignore[index]
    assert marked[3] == thought
    assert anthropic.validate(marked[:3]) == []


@pytest.mark.parametrize("format", ["bedrock", "gemini", "openai-responses"])
def test_formats_without_breakpoints(format: str) -> None:
    with pytest.raises(ConfigurationError, match=f"{format} has no such breakpoints; use openai-chat or anthropic"):
        apply_cache_control([{"role": "user", "content": "hi"}], format=format)


@pytest.mark.parametrize(
    ("model", "provider", "expected"),
    [
        ("claude-sonnet-4-5", "anthropic", True),
        ("anthropic/Claude-Opus-4", "OpenRouter", True),
        ("claude-sonnet-4-5", "nous", True),
        ("claude-sonnet-4-5", "local", False),
        ("gpt-5", "openrouter", False),
        ("", "", False),
    ],
)
def test_should_cache(model: str, provider: str, expected: bool) -> None:
    """Breakpoints are used for a Claude model at a provider that passes them on, and for no other."""
    assert should_cache(model, provider) is expected

"""Prompt-cache breakpoints beside Hermes' own: the messages that carry one, and its place in them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from agent.prompt_caching import apply_anthropic_cache_control

from compaction.integrations.hermes import apply_cache_control

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CONTENTS: dict[str, Any] = {
    "text": {"role": "user", "content": "hi"},
    "list": {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    "empty text": {"role": "user", "content": ""},
    "none": {"role": "assistant", "content": None, "tool_calls": [CALL]},
    "empty assistant": {"role": "assistant", "content": "", "tool_calls": [CALL]},
    "tool": {"role": "tool", "tool_call_id": "c1", "content": "result"},
    "empty tool": {"role": "tool", "tool_call_id": "c1", "content": ""},
    "system": {"role": "system", "content": "be brief"},
    "system list": {"role": "system", "content": [{"type": "text", "text": "be brief"}]},
    "empty system": {"role": "system", "content": ""},
}


@pytest.mark.parametrize("ttl", ["5m", "1h"])
@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("name", CONTENTS)
def test_each_content(name: str, native: bool, ttl: Any) -> None:
    for messages in ([CONTENTS[name]], [CONTENTS["system"], CONTENTS["text"], CONTENTS[name]]):
        expected = apply_anthropic_cache_control([copy.deepcopy(each) for each in messages], ttl, native)
        assert apply_cache_control(messages, ttl, native=native) == expected


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("system", [True, False])
def test_long_requests(native: bool, system: bool, coding: list[dict[str, Any]]) -> None:
    """In a recorded session, the breakpoints are at the same places as Hermes', after any number of messages."""
    for end in range(1, 60):
        messages = coding[:end] if system else coding[1:end]
        assert apply_cache_control(messages, native=native) == apply_anthropic_cache_control(messages, "5m", native)

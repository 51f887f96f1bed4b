"""Reading Google ADK's contents without the framework; other tests are in ``tests.frameworks.test_google_adk``."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from compaction import MessageIndex
from compaction.errors import InvalidMessage
from compaction.integrations.google_adk import adk_contents
from compaction.messages import TextPart, ToolCallPart


def content(role: str, *parts: dict[str, Any]) -> SimpleNamespace:
    return SimpleNamespace(role=role, parts=list(parts))


def test_objects_are_read_by_their_attributes() -> None:
    """Parts are read from an object's attributes in snake case, and a call is grouped with its result."""
    call: dict[str, Any] = {"name": "now", "args": {}}
    answer = {"name": "now", "response": {"result": "noon"}}
    messages = [
        content("user", {"text": "time?"}),
        content("model", {"text": "hm"}, {"function_call": call}),
        content("user", {"function_response": answer}),
    ]
    read = [adk_contents.read(raw) for raw in messages]
    assert [message.role for message in read] == ["user", "assistant", "tool"]
    assert [type(part) for part in read[1].parts] == [TextPart, ToolCallPart]
    assert [message.raw for message in read] == messages
    index = MessageIndex(messages, format=adk_contents, counter="chars/4")
    assert [len(group.messages) for group in index.included_groups] == [1, 2]


def test_the_same_contents_are_one_message() -> None:
    """Contents that ADK builds again for each call are recognized as the same messages if they are equal."""
    messages = [content("user", {"text": f"note {place}"}) for place in range(3)]
    again = [content("user", {"text": f"note {place}"}) for place in range(3)]
    assert adk_contents.common_prefix(messages, again) == 3
    assert adk_contents.common_prefix(messages, [*again[:1], content("user", {"text": "other"})]) == 1


def test_what_is_no_content() -> None:
    with pytest.raises(InvalidMessage, match="contents of an LlmRequest"):
        adk_contents.read("hi")

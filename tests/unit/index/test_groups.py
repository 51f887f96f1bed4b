"""Groups as values: their names, sizes and kinds."""

from __future__ import annotations

from typing import Any

import pytest

from compaction import GroupKind, MessageGroup
from compaction.index.groups import only_reasoning
from tests.support.chats import Chat, call, indexed, result, thought


def group_of(messages: Chat, place: int = -1) -> MessageGroup:
    """One group of a conversation; by default the last."""
    return indexed(messages).included_groups[place]


def test_names_of_the_tools_called() -> None:
    mixed = call("1", "2", name="read")
    mixed["tool_calls"].append({"id": "3", "type": "custom", "custom": {"name": "grep", "input": "x"}})
    assert group_of([mixed, result("1"), result("2"), result("3")]).tool_names == ("read", "read", "grep")
    legacy = {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}}
    assert group_of([legacy, {"role": "function", "name": "look", "content": "found"}]).tool_names == ("look",)


@pytest.mark.parametrize(
    ("message", "only"),
    [
        (thought(), True),
        ({**thought(), "content": ""}, True),
        ({**thought(), "content": "so"}, False),
        ({**thought(), "role": "user"}, False),
        ({"role": "assistant", "content": None}, False),
        ({**call("1"), "reasoning": "hm"}, False),
    ],
)
def test_what_counts_as_nothing_but_reasoning(message: dict[str, Any], only: bool) -> None:
    assert only_reasoning(group_of([message]).messages[0]) is only


class TestValues:
    def test_kinds_are_written_as_they_are_named(self) -> None:
        assert [repr(kind) for kind in GroupKind] == [
            "GroupKind.SYSTEM",
            "GroupKind.USER",
            "GroupKind.ASSISTANT",
            "GroupKind.TOOL_CALL",
            "GroupKind.SUMMARY",
        ]

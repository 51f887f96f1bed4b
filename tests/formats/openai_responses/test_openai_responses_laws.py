"""Strategy laws that depend on the Responses format: one answer whose calls are separate items."""

from __future__ import annotations

import pytest

from compaction import GroupKind, compact_sync, kinds, last
from compaction.formats import openai_responses
from compaction.selectors import Selector
from compaction.strategies import Pipeline, SlidingWindow, ToolResult
from compaction.testing import check_strategy

ASKED = {"role": "user", "content": "and now?"}


@pytest.mark.parametrize("keep", [last(turns=1), last(groups=1), last(groups=3), kinds(GroupKind.TOOL_CALL)], ids=repr)
def test_calls_that_interleave_go_with_their_turns(keep: Selector) -> None:
    """Calls separated by a user message belong to different turns, and strategies on such a list keep the laws."""
    calls = [{"type": "function_call", "call_id": id, "name": "look", "arguments": "{}"} for id in ("call_1", "call_2")]
    outputs = [{"type": "function_call_output", "call_id": id, "output": "ok " * 90} for id in ("call_1", "call_2")]
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi", "annotations": []}]}
    messages = [calls[0], ASKED, calls[1], *outputs, said, ASKED]
    assert openai_responses.validate(messages) == []
    for strategy in (SlidingWindow(keep=keep), Pipeline(ToolResult(keep=last(groups=1)), SlidingWindow(keep=keep))):
        check_strategy(strategy, messages=messages, format=openai_responses)
    assert compact_sync(messages, SlidingWindow(), counter="chars/4").messages == [ASKED]

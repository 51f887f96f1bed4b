"""Reading Anthropic messages into parts, and writing changed messages."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel

from compaction.formats import anthropic
from compaction.messages import TextPart
from tests.formats.anthropic.examples import FOUND, RESULT, SEARCH, WORDS, answer, user


def test_an_answer_goes_on_after_a_hosted_tool() -> None:
    """An answer that starts with the result of a hosted tool called earlier continues the previous answer."""
    assert [anthropic.read(raw).continues for raw in (answer(FOUND, WORDS), answer(SEARCH, FOUND), user(RESULT))] == [
        True,
        False,
        False,
    ]


class Block(BaseModel):
    """A content block as an object with attributes, as in the provider's package."""

    type: str = "text"
    text: str = "hi"
    citations: list[str] | None = None


class Whole(BaseModel):
    """A response as an object with attributes."""

    id: str = "msg_1"
    role: str = "assistant"
    content: list[Block] = [Block()]
    stop_reason: str | None = None


def test_objects() -> None:
    whole = Whole()
    message = anthropic.read(whole)
    assert message.parts == (TextPart("hi"),)
    assert message.raw is whole
    assert anthropic.read(answer(Block())).parts == (TextPart("hi"),)
    assert message.evolve(text="new").raw == {"id": "msg_1", **answer({"type": "text", "text": "new"})}
    assert anthropic.to_wire(whole) == {"id": "msg_1", **answer({"type": "text", "text": "hi"})}
    assert anthropic.to_wire(user(WORDS))["content"][0] is WORDS
    assert json.loads(json.dumps(anthropic.to_wire(answer(Block())))) == answer({"type": "text", "text": "hi"})


def test_what_stands_for_others() -> None:
    """Summaries and placeholders are user messages; directly after a system message an assistant message comes first."""
    asked, said, told = (anthropic.new(role, "x") for role in ("user", "assistant", "system"))
    assert [each.role for each in anthropic.summary("s", asked, said)] == ["user"]
    assert [each.role for each in anthropic.summary("s", told, said)] == ["assistant", "user"]
    assert [each.role for each in anthropic.summary("s", told, asked)] == ["assistant", "user"]
    assert anthropic.placeholder("s")[0].role == "user"


def test_preferred_neighbours() -> None:
    """The format prefers a user message first, no two answers in a row, and instructions between user and answer."""
    asked, said, told = (anthropic.new(role, "x") for role in ("user", "assistant", "system"))
    allowed = [
        (None, asked),
        (None, told),
        (asked, said),
        (said, asked),
        (asked, asked),
        (told, said),
        (said, None),
        (asked, told),
    ]
    refused = [(None, said), (said, said), (told, asked), (said, told), (told, told)]
    assert [pair for pair in allowed if not anthropic.prefers(*pair)] == []
    assert [pair for pair in refused if anthropic.prefers(*pair)] == []


def test_ten_levels_and_ten_thousand_parts() -> None:
    """Deep nesting and 10,000 blocks in a message are read and validated without an error."""
    deep: Any = "x"
    for _ in range(10):
        deep = [{"type": "tool_result", "tool_use_id": "a", "content": deep}]
    assert anthropic.read({"role": "user", "content": deep}).role == "tool"
    assert len(anthropic.read(user(*[WORDS] * 10_000)).parts) == 10_000
    assert {problem.rule for problem in anthropic.validate([user(*[WORDS] * 10_000)])} == {"too-many-breakpoints"}


def test_results_within_results_are_not_read() -> None:
    """A tool result nested in a tool result is not a block that the API accepts: it is kept, and is not a result."""
    nested: Any = {"type": "text", "text": "x"}
    for _ in range(100):
        nested = {"type": "tool_result", "tool_use_id": "a", "content": [nested]}
    raw = {"role": "user", "content": [nested]}
    assert [part.call_id for part in anthropic.read(raw).tool_results()] == ["a"]
    assert anthropic.repair([raw, {"role": "user", "content": "hi"}]).messages == [{"role": "user", "content": "hi"}]

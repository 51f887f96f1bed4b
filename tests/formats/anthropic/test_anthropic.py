"""The Anthropic format: what its examples do not show, and the laws with instructions in the middle of a conversation."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel

from compaction.formats import anthropic
from compaction.messages import TextPart
from tests.formats.anthropic.examples import FOUND, RESULT, SEARCH, WORDS, answer, result, user

ASKED, SAID = ({"role": role, "content": "word " * 90 + "end"} for role in ("user", "assistant"))


def test_an_answer_goes_on_after_a_hosted_tool() -> None:
    """An answer that starts with the result of a hosted tool called earlier continues the previous answer."""
    raws = (answer(FOUND, WORDS), answer(SEARCH, FOUND), user(RESULT))
    assert [anthropic.read(raw).continues for raw in raws] == [True, False, False]


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
    assert message.parts == anthropic.read(answer(Block())).parts == (TextPart("hi"),)
    assert message.raw is whole
    assert message.evolve(text="new").raw == {"id": "msg_1", **answer({"type": "text", "text": "new"})}
    assert anthropic.to_wire(whole) == {"id": "msg_1", **answer({"type": "text", "text": "hi"})}
    assert anthropic.to_wire(user(WORDS))["content"][0] is WORDS
    assert json.loads(json.dumps(anthropic.to_wire(answer(Block())))) == answer({"type": "text", "text": "hi"})


def test_what_stands_for_others() -> None:
    """Summaries and placeholders are user messages; directly after a system message an assistant message comes first."""
    asked, said, told = (anthropic.new(role, "x") for role in ("user", "assistant", "system"))
    assert [each.role for each in anthropic.summary("s", asked, said)] == ["user"]
    for after in (said, asked):
        assert [each.role for each in anthropic.summary("s", told, after)] == ["assistant", "user"]
    assert anthropic.placeholder("s")[0].role == "user"


def test_preferred_neighbours() -> None:
    """The format prefers a user message first, no two answers in a row, and instructions between user and answer."""
    roles = {"u": "user", "a": "assistant", "s": "system"}
    messages = {letter: anthropic.new(role, "x") for letter, role in roles.items()}
    pairs = [(before, after) for before in "-uas" for after in "uas-"]
    preferred = {before + after for before, after in pairs if anthropic.prefers(messages.get(before), messages.get(after))}
    assert preferred >= {*["-u", "-s", "ua", "au", "uu", "sa", "a-", "us"]}
    assert preferred.isdisjoint(["-a", "aa", "su", "as", "ss"])


def test_results_within_results_are_not_read() -> None:
    """A tool result nested in a tool result is not a block that the API accepts: it is kept, and is not a result."""
    nested: Any = {"type": "text", "text": "x"}
    for _ in range(100):
        nested = result(content=[nested])
    assert [part.call_id for part in anthropic.read(user(nested)).tool_results()] == ["a"]
    assert anthropic.repair([user(nested), {"role": "user", "content": "hi"}]).messages == [{"role": "user", "content": "hi"}]

"""Converse rules beyond the examples on the format's page."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.formats import bedrock
from compaction.index import GroupKind, MessageIndex, Rewrite
from tests.support.rulebook import places, rules

Raw = dict[str, Any]

POINT: Raw = {"cachePoint": {"type": "default"}}
THOUGHT: Raw = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c"}}}
ASKED: Raw = {"role": "user", "content": [{"text": "hi"}]}
SAID: Raw = {"role": "assistant", "content": [{"text": "Hello!"}]}


def user(*blocks: Any) -> Raw:
    return {"role": "user", "content": list(blocks)}


def answer(*blocks: Any) -> Raw:
    return {"role": "assistant", "content": list(blocks)}


def call(id: str = "a", input: Any = None, name: str = "look") -> Raw:
    return {"toolUse": {"toolUseId": id, "name": name, "input": {} if input is None else input}}


def result(id: str = "a", *content: Any, **fields: Any) -> Raw:
    return {"toolResult": {"toolUseId": id, "content": list(content) or [{"text": "found"}], **fields}}


@pytest.mark.parametrize(
    ("block", "rule", "where"),
    [
        ({}, "malformed-block", ""),
        ({"text": "a", "image": {}}, "malformed-block", ""),
        ({"text": 5}, "malformed-block", ".text"),
        ({"image": "x"}, "malformed-block", ".image"),
        ({"image": {"format": "png"}}, "malformed-block", ".image.source"),
        ({"video": {"format": "", "source": {}}}, "malformed-block", ".video.format"),
        ({"toolResult": {"toolUseId": "a", "content": "x"}}, "malformed-block", ".toolResult.content"),
        (result("a", {"json": [1]}), "malformed-block", ".toolResult.content[0].json"),
        (result("a", {"text": " "}), "empty-text", ".toolResult.content[0]"),
        (result("a", call()), "block-not-allowed", ".toolResult.content[0]"),
        (call(), "block-not-allowed", ""),
        (THOUGHT, "block-not-allowed", ""),
    ],
    ids=str,
)
def test_what_is_wrong_with_a_block(block: Any, rule: str, where: str) -> None:
    """Each fault of a block is reported at its place."""
    found = [(problem.where, problem.rule) for problem in bedrock.message_problems(user({"text": "hi"}, block))]
    assert (f"messages[0].content[1]{where}", rule) in found


@pytest.mark.parametrize(
    "block", [{"hologram": 1}, {"guardContent": {}}, {"searchResult": {"source": "a", "title": "b", "content": []}}], ids=str
)
def test_what_nobody_knows_is_no_problem(block: Any) -> None:
    """A new or little-known kind of block breaks no rule."""
    assert bedrock.validate([user(block)]) == []


@pytest.mark.parametrize(
    ("messages", "problems"),
    [
        ([ASKED, answer(call()), user(result(), POINT)], []),
        ([ASKED, answer(call()), user(result(), POINT, {"text": "so?"})], []),
        ([ASKED, answer(call("a"), call("b")), user(result("b"))], [("messages[1].content[0]", "pending-call")]),
        ([ASKED, answer(call("a"), call("b")), user(result("b")), SAID], [("messages[1].content[0]", "call-without-result")]),
        ([ASKED, answer(call()), user(result()), answer(call()), user(result())], []),
        ([ASKED, answer({"text": "x"}, POINT, THOUGHT)], []),
        ([ASKED, answer(THOUGHT, POINT, {"text": "x"})], [("messages[1].content[1]", "misplaced-cache-point")]),
        ([answer(call())], [("messages[0]", "starts-with-answer"), ("messages[0].content[0]", "pending-call")]),
        ([ASKED, {"role": "system", "content": [{"text": "x"}]}], []),
        (
            [ASKED, SAID, {"role": "system", "content": [{"toolAddition": {"tool": {"name": "f"}}}]}, ASKED],
            [("messages[2]", "misplaced-system")],
        ),
    ],
    ids=range(10),
)
def test_what_stands_together(messages: list[Any], problems: list[tuple[str, str]]) -> None:
    """Pairs of calls and results, alternating turns and cache points are checked across messages."""
    assert places(bedrock, messages) == problems


def test_words_with_citations_are_words() -> None:
    """Cited text counts as text: it may not come after a call."""
    cited = {"citationsContent": {"content": [{"text": "Grass is green."}], "citations": []}}
    messages = [ASKED, answer(call(), cited), user(result("a", {"text": "noon"}))]
    assert places(bedrock, messages) == [("messages[1].content[1]", "text-after-call")]


@pytest.mark.parametrize(
    ("blocks", "rule"),
    [
        ([{"text": "I look."}, call(), THOUGHT], "an answer has no thoughts after its calls [thinking-after-call]"),
        ([{"text": "I look."}, THOUGHT, call()], "an answer that began with thoughts still begins with them, or has none"),
    ],
    ids=["behind a call", "behind words"],
)
def test_an_edit_that_moves_a_thought_is_refused(blocks: list[Raw], rule: str) -> None:
    """A rewrite keeps the order in which the model thought, spoke and called; another order is refused with its rule."""
    messages = [ASKED, answer(THOUGHT, {"text": "I look."}, call()), user(result()), SAID, ASKED, SAID]
    index = MessageIndex(messages, format=bedrock)
    group = next(group for group in index.included_groups if group.kind is GroupKind.TOOL_CALL)
    moved = bedrock.read(answer(*blocks))
    index.apply(Rewrite(group, [moved], reason="shorter"))
    assert index.messages() == messages
    assert [refusal.rule for refusal in index.refused] == [rule]


@pytest.mark.parametrize("thought", [THOUGHT, {"reasoningContent": {"redactedContent": b"x"}}])
def test_thoughts_between_and_after_calls(thought: Raw) -> None:
    """Thoughts stand before the first call of the caller's tools; after a tool that the provider ran there may be more."""
    late = [ASKED, answer(call("a"), thought, call("b")), user(result("a"), result("b"))]
    assert rules(bedrock, late) == ["thinking-after-call"]
    hosted: Raw = {"toolUse": {"toolUseId": "h", "name": "search", "input": {}, "type": "server_tool_use"}}
    assert rules(bedrock, [ASKED, answer(thought, hosted, thought, call()), user(result())]) == []

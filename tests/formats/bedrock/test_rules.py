"""Converse rules beyond the examples on the format's page, and what a repair changes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from compaction.formats import bedrock
from compaction.formats.bedrock.rules import RULES
from compaction.index import GroupKind, MessageIndex, Rewrite
from tests.support.rulebook import expect_problems_in_order, expect_repaired_once, places, rules
from tests.support.wires import bedrock_conversations, damaged, wrecked

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


ALWAYS_REPAIRED = {
    "empty-text",
    "thinking-alone",
    "misplaced-cache-point",
    "text-after-call",
    "thinking-after-call",
    "result-after-text",
    "call-without-id",
    "malformed-id",
    "duplicate-call-id",
    "result-without-id",
    "duplicate-result",
    "empty-error",
    "result-without-call",
    "too-many-cache-points",
}


@given(damaged(bedrock_conversations()) | wrecked(bedrock_conversations()))
def test_whatever_the_list_holds(messages: list[Any]) -> None:
    """Problems come in order and without an exception; a repair says what it leaves, and is done at once."""
    expect_problems_in_order(bedrock, messages, RULES)
    expect_repaired_once(bedrock, messages, ALWAYS_REPAIRED)
    assert len(bedrock.repair(messages).remaining) <= len(bedrock.validate(messages))


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


@pytest.mark.parametrize(
    ("messages", "repaired"),
    [
        pytest.param(
            [ASKED, answer(call("a"), call("b")), user(result("a")), user(result("b"))],
            [ASKED, answer(call("a"), call("b")), user(result("a"), result("b"))],
            id="results of one answer in two messages",
        ),
        pytest.param(
            [ASKED, answer(call()), ASKED, SAID, user({"text": "late:"}, result())],
            [ASKED, answer(call()), user(result(), {"text": "hi"}), SAID, user({"text": "late:"})],
            id="a late result",
        ),
        pytest.param(
            [ASKED, SAID, user(result("gone")), answer({"text": "so"})],
            [ASKED, answer({"text": "Hello!"}, {"text": "so"})],
            id="nothing but a result of no call",
        ),
        pytest.param(
            [ASKED, SAID, answer(THOUGHT, {"text": "again"}, call())],
            [ASKED, answer({"text": "Hello!"}, {"text": "again"}, call())],
            id="thoughts of a second answer",
        ),
        pytest.param(
            [ASKED, answer(call("a", '{"q": 1}')), user(result("a", {"json": [1]}, {"text": ""}))],
            [ASKED, answer(call("a", {"q": 1})), user(result("a", {"text": "[1]"}))],
            id="arguments and data",
        ),
        pytest.param(
            [ASKED, answer(call("a!"), call("a!", name="f")), user(result("a!"), result("a!", {"text": "2"}))],
            [
                ASKED,
                answer(call("tooluse_1_0"), call("tooluse_1_1", name="f")),
                user(result("tooluse_1_0"), result("tooluse_1_1", {"text": "2"})),
            ],
            id="ids that are refused",
        ),
        pytest.param(
            [ASKED, answer(call(), call()), user(result())],
            [ASKED, answer(call()), user(result())],
            id="a call twice",
        ),
        pytest.param(
            [ASKED, answer(call(), {"text": "I look."}), user(POINT, {"text": "so"}, result(), None)],
            [ASKED, answer({"text": "I look."}, call()), user(result(), POINT, {"text": "so"})],
            id="the wrong order",
        ),
        pytest.param(
            [ASKED, answer(call()), user({"toolResult": {"toolUseId": "a", "content": "noon"}})],
            [ASKED, answer(call()), user(result("a", {"text": "noon"}))],
            id="a result that is a text",
        ),
        pytest.param([{"role": "user", "content": {"text": "hi"}}], [ASKED], id="one block"),
    ],
)
def test_a_repair(messages: list[Any], repaired: list[Any]) -> None:
    """Each fault whose repair needs no invented content is repaired."""
    assert bedrock.repair(messages).messages == repaired


def test_a_call_without_a_result_gets_a_stub() -> None:
    """A call without a result gets a result with the status ``error`` among the existing results."""
    done = bedrock.repair([ASKED, answer(call("a"), call("b")), user(result("b"), {"text": "well?"})])
    stub = done.messages[2]["content"][1]["toolResult"]
    assert (stub["toolUseId"], stub["status"]) == ("a", "error")
    assert done.messages[2]["content"][::2] == [result("b"), {"text": "well?"}]
    assert [(change.where, change.rule) for change in done.changes] == [("messages[1].content[0]", "call-without-result")]
    assert rules(bedrock, done.messages) == []


def test_a_stub_before_an_answer_is_a_message_of_its_own() -> None:
    """A placeholder result before a system message is a separate user message."""
    aside = {"role": "system", "content": [{"text": "be kind"}]}
    done = bedrock.repair([ASKED, answer(call()), aside, SAID])
    assert [message["role"] for message in done.messages] == ["user", "assistant", "user", "system", "assistant"]
    assert done.remaining == ()


def test_words_with_citations_are_words() -> None:
    """Cited text counts as text: it may not come after a call, and a repair moves it before the call."""
    cited = {"citationsContent": {"content": [{"text": "Grass is green."}], "citations": []}}
    messages = [ASKED, answer(call(), cited), user(result("a", {"text": "noon"}))]
    assert places(bedrock, messages) == [("messages[1].content[1]", "text-after-call")]
    assert bedrock.repair(messages).messages[1] == answer(cited, call())
    joined = bedrock.repair([ASKED, answer(call()), answer(cited), user(result("a", {"text": "noon"}))])
    assert (joined.messages[1], joined.remaining) == (answer(cited, call()), ())


def test_an_edit_that_moves_a_thought_behind_a_call_is_refused() -> None:
    """A rewrite keeps the order in which the model thought, spoke and called; another order is refused with its rule."""
    messages = [ASKED, answer(THOUGHT, {"text": "I look."}, call()), user(result()), SAID, ASKED, SAID]
    index = MessageIndex(messages, format=bedrock)
    group = next(group for group in index.included_groups if group.kind is GroupKind.TOOL_CALL)
    moved = bedrock.read(answer({"text": "I look."}, call(), THOUGHT))
    index.apply(Rewrite(group, [moved], reason="shorter"))
    assert index.messages() == messages
    assert [refusal.rule for refusal in index.refused] == ["an answer has no thoughts after its calls [thinking-after-call]"]


@pytest.mark.parametrize("thought", [THOUGHT, {"reasoningContent": {"redactedContent": b"x"}}])
def test_thoughts_between_and_after_calls(thought: Raw) -> None:
    """Thoughts stand before the first call of the caller's tools; after a tool that the provider ran there may be more."""
    late = [ASKED, answer(call("a"), thought, call("b")), user(result("a"), result("b"))]
    assert rules(bedrock, late) == ["thinking-after-call"]
    hosted: Raw = {"toolUse": {"toolUseId": "h", "name": "search", "input": {}, "type": "server_tool_use"}}
    assert rules(bedrock, [ASKED, answer(thought, hosted, thought, call()), user(result())]) == []

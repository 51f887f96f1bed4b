"""Tools that the Anthropic API runs itself: what a call, its result and the calls it made miss, and what the repair does."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.formats import anthropic
from compaction.formats.anthropic.hosted import block_links, unpaired

Raw = dict[str, Any]
WORDS: Raw = {"type": "text", "text": "so"}
RESULT: Raw = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "noon"}


def asked(id: str) -> Raw:
    """A call that the provider answers."""
    return {"type": "server_tool_use", "id": id, "name": "code_execution", "input": {}}


def found(id: str) -> Raw:
    """Its result."""
    return {"type": "code_execution_tool_result", "tool_use_id": id, "content": []}


def called(caller: str = "") -> Raw:
    """A call of the caller's tool, made by the model or by a call of the provider's."""
    made = {"caller": {"type": "code_execution_20250825", "tool_id": caller}} if caller else {}
    return {"type": "tool_use", "id": "toolu_1", "name": "now", "input": {}, **made}


def answer(*blocks: Raw) -> Raw:
    """What the model wrote."""
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks: Raw) -> Raw:
    """What the caller sent."""
    return {"role": "user", "content": list(blocks or (WORDS,))}


@pytest.mark.parametrize(
    ("messages", "missing"),
    [
        pytest.param([answer(asked("a"), found("a"), WORDS), user()], [], id="a pair"),
        pytest.param([answer(asked("a"), called("a")), user(RESULT), answer(found("a"))], [], id="over results"),
        pytest.param([answer(asked("a"), found("a")), user(), answer(called("a"))], [], id="a call made later"),
        pytest.param([user(called("gone"), found("gone"))], [], id="not the user's"),
        pytest.param([answer(asked("a"))], [], id="it may still come"),
        pytest.param([answer(WORDS, called("gone"))], [(0, 1, "call-without-caller", "gone")], id="no caller"),
        pytest.param([answer(WORDS, found("gone"))], [(0, 1, "server-result-without-call", "gone")], id="no call"),
        pytest.param([answer(asked("a")), user(), user()], [(0, 0, "server-call-without-result", "a")], id="told once"),
        pytest.param(
            [answer(asked("a")), user(), answer(found("a"))],
            [(0, 0, "server-call-without-result", "a"), (2, 0, "server-result-without-call", "a")],
            id="too late",
        ),
        pytest.param(
            [answer(asked("a"), asked("a"), found("a")), user()],
            [(0, 0, "server-call-without-result", "a")],
            id="one of two with an id",
        ),
    ],
)
def test_what_misses_what(messages: list[Raw], missing: list[tuple[int, int, str, str]]) -> None:
    """A result needs its call before it, a call its result before the user goes on, and what a call made needs that call."""
    assert [(each.index, each.position, each.rule, each.id) for each in unpaired(messages)] == missing


@pytest.mark.parametrize(
    ("blocks", "open", "earlier"),
    [
        pytest.param([asked("a")], ("a",), (), id="open"),
        pytest.param([asked("a"), called("a"), found("a")], (), (), id="closed"),
        pytest.param([WORDS, found("a")], (), ("a",), id="a result of an earlier one"),
        pytest.param([called("a")], (), ("a",), id="a call of an earlier one"),
        pytest.param([called()], (), (), id="the model's own call"),
        pytest.param([RESULT], (), (), id="another kind of result"),
    ],
)
def test_what_links_answers(blocks: list[Raw], open: tuple[str, ...], earlier: tuple[str, ...]) -> None:
    """An answer begins what its calls without results await, and goes on with what it names and did not call."""
    assert block_links(blocks) == (open, earlier)


def test_what_is_left_out() -> None:
    """Results and calls that miss each other; of a call that one of these made, who made it. Nothing else is touched."""
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "noon"}
    messages = [answer(found("gone"), WORDS), answer(WORDS, called("gone")), user(result), answer(WORDS)]
    done = anthropic.repair(messages)
    left = done.messages
    assert left == [answer(WORDS), answer(WORDS, called()), *messages[2:]]
    assert left[2] is messages[2]
    assert left[3] is messages[3]
    assert [(change.where, change.rule) for change in done.changes] == [
        ("messages[0].content[0]", "server-result-without-call"),
        ("messages[1].content[1]", "call-without-caller"),
    ]

"""Tools that the Anthropic API runs itself: unpaired calls and results, calls made by such tools, and their repair."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.formats.anthropic.hosted import block_links, unpaired

Raw = dict[str, Any]
WORDS: Raw = {"type": "text", "text": "so"}
RESULT: Raw = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "noon"}


def asked(id: str) -> Raw:
    """Return a call of a tool that the provider runs."""
    return {"type": "server_tool_use", "id": id, "name": "code_execution", "input": {}}


def found(id: str) -> Raw:
    """Return the provider's result of that call."""
    return {"type": "code_execution_tool_result", "tool_use_id": id, "content": []}


def called(caller: str = "") -> Raw:
    """Return a call of one of the caller's tools, made by the model or by a call of a provider's tool."""
    made = {"caller": {"type": "code_execution_20250825", "tool_id": caller}} if caller else {}
    return {"type": "tool_use", "id": "toolu_1", "name": "now", "input": {}, **made}


def answer(*blocks: Raw) -> Raw:
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks: Raw) -> Raw:
    return {"role": "user", "content": list(blocks or (WORDS,))}


@pytest.mark.parametrize(
    ("messages", "missing"),
    [
        pytest.param([answer(asked("a"), found("a"), WORDS), user()], [], id="a pair"),
        pytest.param([answer(asked("a"), called("a")), user(RESULT), answer(found("a"))], [], id="over results"),
        pytest.param([answer(asked("a"), found("a")), user(), answer(called("a"))], [], id="a call made later"),
        pytest.param([user(called("gone"), found("gone"))], [], id="not the user's"),
        pytest.param([answer(asked("a"))], [], id="it may still come"),
        pytest.param([answer(WORDS, called("gone"))], [(0, 1, "call-without-caller")], id="no caller"),
        pytest.param([answer(WORDS, found("gone"))], [(0, 1, "server-result-without-call")], id="no call"),
        pytest.param([answer(asked("a")), user(), user()], [(0, 0, "server-call-without-result")], id="told once"),
        pytest.param(
            [answer(asked("a")), user(), answer(found("a"))],
            [(0, 0, "server-call-without-result"), (2, 0, "server-result-without-call")],
            id="too late",
        ),
        pytest.param(
            [answer(asked("a"), asked("a"), found("a")), user()],
            [(0, 0, "server-call-without-result")],
            id="one of two with an id",
        ),
    ],
)
def test_what_misses_what(messages: list[Raw], missing: list[tuple[int, int, str]]) -> None:
    """A result needs an earlier call, a call a result before the next user message, and a called tool its calling call."""
    found = [(index, ("content", position), rule) for index, position, rule in missing]
    assert [(index, where, rule) for index, (where, rule, _) in unpaired(messages)] == found


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
    """``block_links`` returns the calls an answer leaves open and the earlier calls that it refers to."""
    assert block_links(blocks) == (open, earlier)

"""The defaults of strategies and styles, their positional arguments, and the smallest numbers they accept."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from compaction import compact_sync
from compaction.strategies import (
    Clear,
    ClearMedia,
    ClearReasoning,
    Collapse,
    Dedupe,
    HeadTail,
    SelectiveToolCall,
    SlidingWindow,
    Strategy,
    Summarization,
    TokenBudgetComposed,
    ToolResult,
    Truncation,
)
from tests.support.chats import call, result, user

STRATEGIES: list[Callable[[], Strategy]] = [
    Truncation,
    SlidingWindow,
    ToolResult,
    SelectiveToolCall,
    ClearReasoning,
    ClearMedia,
    Summarization,
    lambda: TokenBudgetComposed([], budget=1),
]


@pytest.mark.parametrize("made", STRATEGIES, ids=[type(make()).__name__ for make in STRATEGIES])
def test_options_are_named(made: Callable[[], Strategy]) -> None:
    """Only the main argument of a strategy may be positional: the style, the summarizer or the strategies."""
    strategy = made()
    by_position = {"ToolResult": ["style"], "Summarization": ["summarizer"], "TokenBudgetComposed": ["strategies"]}
    parameters = inspect.signature(type(strategy)).parameters.values()
    named = [each.name for each in parameters if each.kind is not inspect.Parameter.KEYWORD_ONLY]
    assert named == by_position.get(type(strategy).__name__, [])
    assert compact_sync([user("q")], strategy, counter="chars/4").messages == [user("q")]


@pytest.mark.parametrize(
    ("style", "shown"),
    [
        (Clear(), "Clear(placeholder='[Old tool output cleared to save context space]', min_chars=200, inputs=())"),
        (HeadTail(), "HeadTail(chars=2000, values=0)"),
        (Dedupe(), "Dedupe(min_chars=200, reads=())"),
        (Collapse(), "Collapse(outcome_chars=160, argument_chars=80)"),
    ],
    ids=["Clear", "HeadTail", "Dedupe", "Collapse"],
)
def test_what_styles_do_by_default(style: Any, shown: str) -> None:
    """The defaults of the styles are fixed, and with them short results do not change."""
    assert repr(style) == shown
    short = [user("q"), call("1"), result("1", "r"), user("s")]
    assert compact_sync(short, ToolResult(style), counter="chars/4").messages == short

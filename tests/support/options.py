"""Strategies with random options, sensible or not, and compositions of them; all must keep the laws."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

from compaction.index.groups import GroupKind
from compaction.selectors import first, kinds, last, nothing, pinned, system, tools
from compaction.strategies import (
    Clear,
    ClearMedia,
    ClearReasoning,
    Collapse,
    Dedupe,
    HeadTail,
    Pipeline,
    SelectiveToolCall,
    SlidingWindow,
    Strategy,
    TokenBudgetComposed,
    ToolResult,
    ToolStyle,
    Truncation,
)
from compaction.triggers import (
    Trigger,
    always,
    bytes_exceed,
    context_exceeds,
    every,
    groups_exceed,
    has_tool_calls,
    idle_for,
    messages_exceed,
    never,
    tokens_below,
    tokens_exceed,
    turns_exceed,
)

TRIGGER_ATOMS: Final[list[Trigger]] = [
    *(always, never, has_tool_calls, tokens_exceed(90), tokens_below(60), messages_exceed(4), messages_exceed(4, system=False)),
    *(turns_exceed(1), groups_exceed(4), bytes_exceed(150), context_exceeds(0.5), every(2), idle_for(60)),
]
"""A trigger of each kind but ``worth_it``."""


SETTLES_IN: Final = 4
"""The runs after which a composition must have settled; its parts may give each other more to do."""


def settling(strategy: Strategy) -> int:
    """Return the number of runs after which a strategy must have settled: several if ``keep`` depends on sizes."""
    return SETTLES_IN if "fitting(" in repr(strategy) else 1


CALLS: Final = kinds(GroupKind.TOOL_CALL)
USERS: Final = kinds(GroupKind.USER)


def combined(atoms: st.SearchStrategy[Any], *, inverted: bool = True, max_leaves: int = 4) -> st.SearchStrategy[Any]:
    """Triggers or selectors, and expressions of them with ``&`` and ``|``, and with ``~`` unless ``inverted`` is false."""

    def expressions(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        pairs = st.tuples(inner, inner)
        either = st.one_of(pairs.map(lambda pair: pair[0] & pair[1]), pairs.map(lambda pair: pair[0] | pair[1]))
        return either | inner.map(lambda one: ~one) if inverted else either

    return st.recursive(atoms, expressions, max_leaves=max_leaves)


# Without selectors whose choice changes with each cut: after a run with keep=~last(groups=2), the last two groups are others.
KEEPS = combined(
    st.sampled_from(
        [
            *(nothing, system, pinned, USERS, first(messages=2), first(groups=2), first(turns=1), tools("f", "browser_*")),
            *(last(groups=1), last(groups=2), last(turns=1), last(turns=2), last(tokens=60), last(messages=3)),
            *(last(groups=1, of=CALLS), CALLS, kinds(GroupKind.ASSISTANT), tools("look")),
        ]
    ),
    inverted=False,
    max_leaves=3,
)
TRIGGERS = st.sampled_from(
    [
        *(always, has_tool_calls, tokens_exceed(50), tokens_exceed(120), messages_exceed(3), groups_exceed(3)),
        *(bytes_exceed(200), turns_exceed(1), turns_exceed(2)),
        *(tokens_exceed(80) & messages_exceed(3), tokens_exceed(200) | turns_exceed(2)),
    ]
)
TARGETS = st.sampled_from([never, tokens_below(60), tokens_below(150), ~messages_exceed(2)])
STYLES: list[ToolStyle] = [
    *(Collapse(), Collapse(outcome_chars=9, argument_chars=9), Clear(), Clear(min_chars=1)),
    *(Clear(min_chars=1, inputs=["*"]), HeadTail(chars=1), Dedupe(min_chars=9)),
]


@st.composite
def single_strategies(draw: st.DrawFn) -> Strategy:
    """A built-in strategy with any trigger, target and keep."""
    options: dict[str, Any] = {"trigger": draw(TRIGGERS), "keep": draw(KEEPS)}
    if draw(st.booleans()):
        options["target"] = draw(TARGETS)
    kind = draw(st.sampled_from([Truncation, SlidingWindow, ToolResult, SelectiveToolCall, ClearReasoning, ClearMedia]))
    if kind is Truncation:
        options["drop_system"] = draw(st.booleans())
    if kind is ToolResult:
        options |= {"style": draw(st.sampled_from(STYLES)), "at_least": draw(st.sampled_from([0, 30, 100]))}
    return kind(**options)


@st.composite
def compositions(draw: st.DrawFn) -> Strategy:
    """A pipeline of up to three strategies, or a budget over them."""
    parts = draw(st.lists(single_strategies(), min_size=1, max_size=3))
    if draw(st.booleans()):
        return Pipeline(*parts)
    return TokenBudgetComposed(parts, budget=draw(st.integers(20, 200)), early_stop=draw(st.booleans()), keep=draw(KEEPS))

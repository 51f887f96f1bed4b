"""The laws on all recorded conversations of real agents."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from compaction import MessageIndex, compact_sync, presets
from compaction.index.groups import GroupKind
from compaction.selectors import first, kinds, last, nothing
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
    Summarization,
    TokenBudgetComposed,
    ToolResult,
    Truncation,
)
from compaction.testing import check_strategy
from compaction.triggers import tokens_below, tokens_exceed, turns_exceed
from tests.support.options import settling

Corpus = Callable[[str], list[dict[str, Any]]]

FILES = (
    "acebench_zh",
    "cassettes",
    "coding_long",
    "inspect_logs",
    "openhands",
    "sweagent_demos",
    "tau_airline",
    "tau_long",
    "whowhen_multiagent",
)
CONFIGURATIONS: dict[str, Strategy] = {
    "truncation": Truncation(trigger=tokens_exceed(1_000), target=tokens_below(600), keep=first(messages=2) | last(groups=2)),
    "truncation of all": Truncation(keep=nothing, drop_system=True),
    "window of turns": SlidingWindow(trigger=turns_exceed(2)),
    "window of groups": SlidingWindow(keep=last(groups=5) | kinds(GroupKind.USER)),
    "collapse": ToolResult(Collapse(), keep=last(groups=2), at_least=500),
    "clear": ToolResult(Clear(), trigger=tokens_exceed(2_000)),
    "head and tail": ToolResult(HeadTail(chars=300), keep=nothing),
    "dedupe": ToolResult(Dedupe(min_chars=20), keep=nothing),
    "calls": SelectiveToolCall(keep=last(groups=3, of=kinds(GroupKind.TOOL_CALL))),
    "reasoning and media": Pipeline(ClearReasoning(), ClearMedia()),
    "digest": Summarization(keep=last(groups=4) | first(messages=2), system_note="Some of it was summarized."),
    "budget": TokenBudgetComposed([ToolResult(HeadTail(chars=500)), SlidingWindow()], budget=800),
    "budget, each to its end": TokenBudgetComposed([ToolResult(), SelectiveToolCall()], budget=500, early_stop=False),
    "hermes": presets.hermes(4_000, protect_last_n=4),
    "context window": presets.context_window(4_000, reserve_output=1_000),
}


@pytest.mark.parametrize("strategy", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
@pytest.mark.parametrize("name", FILES)
def test_laws_hold_on_recorded_conversations(corpus: Corpus, name: str, strategy: Strategy) -> None:
    """Every strategy keeps laws 1 to 5, 7 and 9 on recorded conversations of agents and their providers.

    Each takes a third of them, beginning at another one, so that five strategies meet each conversation.
    """
    for conversation in corpus(name)[[*CONFIGURATIONS.values()].index(strategy) % 3 :: 3]:
        check_strategy(strategy, messages=conversation["messages"], settles_in=settling(strategy))


@pytest.mark.parametrize("name", FILES)
def test_growing_recorded_conversations_equal_the_whole(corpus: Corpus, name: str) -> None:
    """Law 8: an index of a recorded conversation is the same whether built at once, message by message, or by several syncs."""
    for messages in (conversation["messages"] for conversation in corpus(name)):
        appended, synced = MessageIndex(counter="chars/4"), MessageIndex(counter="chars/4")
        for message in messages:
            appended.append([message])
        for end in (len(messages) // 3, len(messages) // 2, len(messages)):
            synced.sync(json.loads(json.dumps(messages[:end])))
        whole = MessageIndex(messages, counter="chars/4")
        for index in (appended, synced):
            assert (index.included, index.total, index.to_dict()) == (whole.included, whole.total, whole.to_dict())
            assert [(group.id, group.kind, group.turn) for group in index.included_groups] == [
                (group.id, group.kind, group.turn) for group in whole.included_groups
            ]


def test_every_configuration_does_something(corpus: Corpus) -> None:
    """Every configuration edits at least one recorded conversation, so none keeps the laws by doing nothing."""
    recorded = [conversation["messages"] for name in FILES for conversation in corpus(name)]
    idle = [
        name
        for name, strategy in CONFIGURATIONS.items()
        if not any(compact_sync(messages, strategy, counter="chars/4").edits for messages in recorded)
    ]
    assert idle == []

"""Defects found in other toolkits, as far as no other law shows that this package does not have them."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest

from compaction import Edit, GroupKind, MessageIndex, Replace, compact_sync, last, nothing, presets, run_sync
from compaction.formats import openai_chat
from compaction.index.marks import marked
from compaction.strategies import Clip, LastResort, Pipeline, SlidingWindow, Steps, Strategy, TokenBudgetComposed, Truncation
from compaction.triggers import never, tokens_exceed
from tests.support.chats import Chat, assistant, call, developer, indexed, result, system, turns, user

LONG = "word " * 200


def test_a_token_strategy_counts_wherever_it_is_nested() -> None:
    """In other toolkits, it counts nothing inside another one, and never runs, unless it gets a tokenizer itself."""
    messages = turns(10, words=100)
    truncation = Truncation(trigger=tokens_exceed(1_000), keep=last(groups=1))

    def wrapped(index: MessageIndex) -> Steps:
        yield from truncation(index)

    alone = compact_sync(messages, truncation, counter="chars/4").edits
    assert alone
    for strategy in (
        Pipeline(Pipeline(truncation)),
        Truncation(trigger=never) >> truncation,
        TokenBudgetComposed([Pipeline(truncation)], budget=1_000),
        TokenBudgetComposed([TokenBudgetComposed([truncation], budget=1_000)], budget=1_000),
        wrapped,
    ):
        assert compact_sync(messages, strategy, counter="chars/4").edits == alone


@pytest.mark.parametrize(
    "strategy",
    [
        Truncation(keep=nothing, drop_system=True),
        SlidingWindow(keep=nothing),
        TokenBudgetComposed([], budget=1, drop_system=True),
        presets.context_window(1, keep_groups=0, keep_tool_groups=0),
    ],
    ids=repr,
)
@pytest.mark.parametrize(
    "messages",
    [
        *([user(LONG)], [assistant(LONG)], [system(LONG)], [developer(LONG), system(LONG)], [result("1", LONG)]),
        *([call("1"), result("1", LONG)], [{"role": "assistant", "content": None, "reasoning": LONG}]),
        *([user(marked(LONG, by="Summarization"))], [{"role": "critic", "content": LONG}], turns(5)),
    ],
)
def test_something_is_always_left(strategy: Strategy, messages: Chat) -> None:
    """The newest group, and the last user message: the same object, or shortened by a strategy that clips.

    In other toolkits, every message can be excluded, and the provider rejects the empty list.
    """
    done = compact_sync(messages, strategy, counter="chars/4")
    assert done.messages
    users = [message for message in messages if message["role"] == "user"]
    if users and any(isinstance(part, Clip | LastResort) for part in strategy.parts()):
        left = [message["content"] for message in done.messages if message["role"] == "user"]
        assert len(left[-1]) <= len(users[-1]["content"])
        assert left[-1][:5] == users[-1]["content"][:5]
    elif users:
        assert any(message is users[-1] for message in done.messages)


def summarizing(index: MessageIndex) -> Iterator[Edit]:
    """Replace all but the last two groups with a summary that contains their texts."""
    old = index.included_groups[1:-2]
    if len(old) >= 4:
        said = " ".join(message.text.split("\n")[-1] for group in old for message in group.messages)
        body = f"So far: {' '.join(said.replace('So far: ', '').split())}".replace("word ", "")
        yield Replace(old, [openai_chat.new("assistant", marked(body, by="summarizing"))], "old")


@pytest.mark.parametrize("keep_index", [True, False])
def test_feeding_the_projection_back_never_brings_a_summary_back(keep_index: bool) -> None:
    """The view has at most one summary, which covers every removed turn once; the index is kept, or made from the view.

    In other toolkits, two summaries get the same id if the view is passed back each turn, and removed messages return.
    """
    index = indexed([system("s")])
    view: Chat = index.messages()
    for turn in range(1, 14):
        view = [*copy.deepcopy(view), user(f"q{turn} " + "word " * 20), assistant(f"a{turn} " + "word " * 20)]
        if keep_index:
            index.sync(view)
        else:
            index = indexed(view)
        run_sync(index, summarizing)
        view = index.messages()
        summaries = [group for group in index.included_groups if group.kind is GroupKind.SUMMARY]
        assert len(summaries) <= 1
    (summary,) = summaries
    asked = [f"q{turn}" for turn in range(1, 13)]
    assert [summary.messages[0].text.count(f"{each} ") for each in asked] == [1] * 12
    assert not keep_index or [message["content"].split()[0] for message in index.originals(summary)[::2]] == asked

"""Law 11: what a person said leaves a view only if its words, or a summary made from it, are in the new view."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from compaction import CompactionSession, Drop, MessageIndex, RunContext, compact_sync, last, presets, run_sync
from compaction.formats import FORMATS, MessageFormat, gemini, openai_chat
from compaction.messages import ToolCallPart, ToolResultPart
from compaction.strategies import Strategy, Truncation
from compaction.testing import LawBroken, check_strategy, sample_conversations
from compaction.testing.laws import lost_words
from compaction.triggers import tokens_exceed
from tests.laws.test_instructions import PRESETS
from tests.support.chats import assistant, user
from tests.support.limits import count, seeds
from tests.support.options import settling
from tests.support.worded_sessions import problems

Corpus = Callable[[str], list[dict[str, Any]]]

FILES = ("openhands", "sweagent_demos", "tau_airline", "cassettes", "inspect_logs", "acebench_zh", "whowhen_multiagent")


@pytest.mark.parametrize("first", seeds(50, 120)[::10])
def test_no_session_loses_what_the_user_said(first: int) -> None:
    """In random sessions, with summarizers that fail, nothing the user said is lost unless ``failures`` says so."""
    assert [found for seed in range(first, first + 10) for found in problems(seed)] == []


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("window", [300, 1_500])
def test_every_preset_keeps_the_law_in_every_format(format: Any, name: str, window: int) -> None:
    strategy = PRESETS[name](window)
    for conversation in sample_conversations(format):
        check_strategy(strategy, messages=conversation, format=format, words=True, settles_in=settling(strategy))


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("window", [1_000, 4_000])
def test_every_preset_keeps_the_law_on_recorded_conversations(corpus: Corpus, file: str, window: int) -> None:
    for conversation in corpus(file)[: count(6, 12)]:
        for make in PRESETS.values():
            index = MessageIndex(conversation["messages"], counter="chars/4", context=RunContext(window=window))
            result = run_sync(index, make(window))
            assert result.failures or lost_words(index) == []


def test_a_dropped_message_is_noticed() -> None:
    index = MessageIndex([user("Never push."), assistant("No."), user("Go on.")], counter="chars/4")
    assert lost_words(index) == []
    index.apply(Drop([0], reason="old"))
    assert lost_words(index) == [0]


def test_a_strategy_that_drops_the_oldest_breaks_the_law() -> None:
    """``check_strategy(words=True)`` refuses a strategy that drops user messages, which the other laws allow."""
    said = [user(f"Order {number}: " + "word " * 40) for number in range(9)]
    strategy = Truncation(trigger=tokens_exceed(200))
    check_strategy(strategy, messages=said)
    with pytest.raises(LawBroken, match="law 11"):
        check_strategy(Truncation(trigger=tokens_exceed(100), keep=last(groups=1)), messages=said, words=True)


ORDERS = (
    "Please clean up the billing module, one commit per file.",
    "Set the retry limit to 3.",
    "Add a flag --strict to the command line.",
    "Drop the flag --strict again, the product team does not want it.",
    "The retry limit is 8 now, the vendor asked for it.",
    "Which files are left?",
)


def in_one_session(strategy: Strategy, format: MessageFormat) -> Callable[[list[Any], list[Any]], list[Any]]:
    session, whole = CompactionSession(strategy, counter="chars/4", format=format), list[Any]()

    def turn(view: list[Any], new: list[Any]) -> list[Any]:
        whole.extend(new)
        return session.view_sync(whole)

    return turn


def with_stored_views(strategy: Strategy, format: MessageFormat) -> Callable[[list[Any], list[Any]], list[Any]]:
    """Each call compacts the list that the previous call returned, with the new messages behind it."""
    return lambda view, new: compact_sync([*view, *new], strategy, counter="chars/4", format=format).messages


def work(format: MessageFormat, step: str) -> list[Any]:
    """Return a tool call with a long result; for the format that cannot write one, a long answer."""
    output = f"line {step} of the output\n" * 70
    if format is gemini:
        return [format.new("assistant", output).raw]
    calls = format.compose("assistant", [ToolCallPart(f"c{step}", "sh", json.dumps({"n": step}))])
    return [message.raw for message in (*calls, *format.compose("user", [ToolResultPart(f"c{step}", output)]))]


@pytest.mark.parametrize("start", [in_one_session, with_stored_views])
@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
@pytest.mark.parametrize("name", PRESETS)
def test_the_view_quotes_the_user_in_order(name: str, format: MessageFormat, start: Callable[..., Any]) -> None:
    """A rule that a later message revokes never stands behind that message."""
    turn, view = start(PRESETS[name](2_000), format), list[Any]()
    for number, order in enumerate(ORDERS):
        view = turn(view, [format.new("user", order).raw])
        for step in range(5):
            view = turn(view, work(format, f"{number}.{step}"))
    text = json.dumps(view)
    places = [text.find(json.dumps(order)[1:-1]) for order in ORDERS]
    found = [place for place in places if place >= 0]
    assert found == sorted(found)
    assert places[-1] >= 0


@pytest.mark.parametrize("make", [presets.token_budget, presets.hermes])
def test_a_short_answer_is_quoted_once(make: Callable[[int], Strategy]) -> None:
    """That it was quoted with its question, while it stayed, is known from the text of the earlier summary alone."""
    view = list[Any]()
    for number, thing in enumerate(("lamp", "chair", "desk")):
        for raw in (user(f"Look at the {thing}s."), assistant(f"Shall I order one more {thing}, or two?"), user("one more")):
            view = compact_sync([*view, raw], make(2_000), counter="chars/4").messages
        for step in range(5):
            view = compact_sync([*view, *work(openai_chat, f"{number}.{step}")], make(2_000), counter="chars/4").messages
    view = compact_sync([*view, user("Thanks."), *work(openai_chat, "9")], make(2_000), counter="chars/4").messages
    lines = [line.removeprefix("- ") for message in view for line in str(message["content"]).split("\n")]
    assert sum(line.startswith("one more") for line in lines) == 3

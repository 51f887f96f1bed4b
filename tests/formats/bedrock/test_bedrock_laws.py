"""Strategy laws that depend on the Converse format: strict turns, and summaries and notes of two messages."""

from __future__ import annotations

from typing import Any

import pytest

from compaction import GroupKind, MessageIndex, Rewrite, compact_sync, last
from compaction.formats import bedrock
from compaction.session import CompactionSession
from compaction.strategies import SlidingWindow, Strategy, Summarization, ToolResult, Truncation
from compaction.testing import agent_session, check_strategy
from compaction.triggers import messages_exceed, tokens_below, tokens_exceed
from tests.formats.bedrock.examples import ASKED, SAID, THOUGHT, Raw, answer, call, result, user
from tests.support.wires import Brief, indexed

SESSION = agent_session(120, format=bedrock)


@pytest.mark.parametrize(
    "strategy",
    [
        ToolResult(keep=last(groups=1)),
        Truncation(keep=last(groups=3)),
        SlidingWindow(keep=last(turns=1)),
        Summarization(Brief(), keep=last(groups=3)),
        Truncation(trigger=tokens_exceed(3_000), target=tokens_below(2_500)),
    ],
    ids=str,
)
def test_strict_turns_do_not_keep_a_strategy_from_its_work(strategy: Strategy) -> None:
    """With strict turns a strategy still halves an agent's session, its output is valid, and no edit is refused."""
    done = compact_sync(SESSION, strategy, counter="chars/4")
    assert (bedrock.validate(done.messages), done.refused) == ([], ())
    assert done.after.tokens < done.before.tokens / 2
    check_strategy(strategy, messages=SESSION, format=bedrock)


def test_a_note_of_two_messages_is_one_group() -> None:
    """A note of two messages is one summary group, also when the output is read again, and adds no user turn."""
    done = compact_sync(SESSION[:12], ToolResult(keep=last(groups=1)), counter="chars/4")
    for index in (indexed(done.messages, bedrock), MessageIndex(done.messages, counter="chars/4")):
        notes = [group for group in index.included_groups if group.kind is GroupKind.SUMMARY]
        assert {(len(group.messages), group.made_by) for group in notes} == {(2, "ToolResult")}
        assert index.included.turns == indexed(SESSION[:12], bedrock).included.turns


def test_the_words_are_the_users_own_elsewhere() -> None:
    """The words that complete a summary are read as an ordinary user message where no summary comes before them."""
    word: dict[str, Any] = {"role": "user", "content": [{"text": "Go on from there."}]}
    noted: dict[str, Any] = {"role": "assistant", "content": [{"text": "Noted."}]}
    index = indexed([word, noted, word], bedrock)
    assert [group.kind for group in index.included_groups] == [GroupKind.USER, GroupKind.ASSISTANT, GroupKind.USER]


def test_a_session_over_many_turns() -> None:
    session = CompactionSession(Summarization(Brief(), trigger=messages_exceed(12), keep=last(groups=4)), counter="chars/4")
    for end in range(1, len(SESSION), 2):
        view = session.view_sync(SESSION[:end])
        assert {problem.rule for problem in bedrock.validate(view)} <= {"pending-call"}
        assert len(view) <= 14


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

"""Selective tool calls: old calls are dropped with their results, and all texts stay."""

from __future__ import annotations

import pytest

from compaction import Drop, GroupKind, compact_sync, kinds, last
from compaction.strategies import SelectiveToolCall
from tests.support.chats import assistant, edits_of, indexed, shown, system, tool_turns, user

TOOL_GROUPS = kinds(GroupKind.TOOL_CALL)


def test_all_but_the_newest_go_by_default() -> None:
    index = indexed([system("s"), *tool_turns(3, words=1), user("q"), assistant("a")])
    assert list(edits_of(SelectiveToolCall(), index)) == [Drop([2], "an old tool call"), Drop([6], "an old tool call")]
    assert shown(index.messages()) == ["s", "q1", "a1", "q2", "a2", "q3", "c3", "r3 word", "a3", "q", "a"]


@pytest.mark.parametrize(("groups", "kept"), [(0, []), (1, ["c3"]), (2, ["c2", "c3"]), (9, ["c1", "c2", "c3"])])
def test_how_many_stay(groups: int, kept: list[str]) -> None:
    done = compact_sync(tool_turns(3), SelectiveToolCall(keep=last(groups=groups, of=TOOL_GROUPS)), counter="chars/4")
    assert [each for each in shown(done.messages) if each.startswith("c")] == kept
    assert done.outcome == ("unchanged" if groups == 9 else "compacted")


def test_a_call_that_must_stay_is_named() -> None:
    """In Gemini's format, a call between an answer and another call cannot leave alone; the result names the rule."""

    def called(number: int) -> list[dict[str, object]]:
        return [
            {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {"n": number}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"n": number}}}]},
        ]

    said = {"role": "user", "parts": [{"text": "q"}]}
    messages = [said, {"role": "model", "parts": [{"text": "I look."}]}, *called(1), *called(2), said]
    done = compact_sync(messages, SelectiveToolCall(), counter="chars/4", format="gemini")
    assert done.outcome == "unchanged"
    assert ["misplaced-call" in refusal.rule for refusal in done.refused] == [True]

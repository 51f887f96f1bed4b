"""Strategy laws that depend on the Gemini format: calls paired by name and order, and what may come first."""

from __future__ import annotations

from compaction import compact_sync
from compaction.errors import SummaryFailed
from compaction.formats import gemini
from compaction.index.marks import marked
from compaction.selectors import last
from compaction.strategies import Summarization, ToolResult, Truncation
from compaction.testing import check_strategy
from tests.support.chats import edits_of
from tests.support.scripted import Scripted
from tests.support.wires import STRATEGIES, indexed

CALLED = [
    {"role": "model", "parts": [{"functionCall": {"name": "now", "args": {}}}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "now", "response": {"result": "noon " * 200}}}]},
]
ASKED = {"role": "user", "parts": [{"text": "and now?"}]}
SUMMED_UP = {"role": "user", "parts": [{"text": marked("The user wants to know the time.", by="Summarization")}]}


def test_truncation_never_leaves_a_call_first() -> None:
    """Truncation keeps a summary before a call: without it the list would start with a call, which the format refuses."""
    check_strategy(Truncation(keep=last(groups=2)), messages=[SUMMED_UP, *CALLED, ASKED], format=gemini)


def test_truncation_goes_on_once_a_summary_is_gone() -> None:
    """Truncation drops a call and then the summary before it; the last summary stays, as a call may not come first."""
    messages = [SUMMED_UP, CALLED[0], SUMMED_UP, *CALLED[1:], CALLED[0]]
    index = indexed(messages, gemini)
    assert [edit.groups for edit in edits_of(Truncation(keep=last(groups=1)), index)] == [(1,), (0,)]
    check_strategy(Truncation(keep=last(groups=1)), messages=messages, format=gemini)


def test_collapse_shortens_old_calls() -> None:
    index = indexed([ASKED, *CALLED, *CALLED], gemini)
    assert list(edits_of(ToolResult(keep=last(groups=1)), index)) != []
    assert [content["role"] for content in index.messages()] == ["user", "user", "model", "user"]


def test_responses_go_with_the_call_directly_before_them() -> None:
    """A content with responses to calls of two contents is grouped with the call directly before it."""
    calls = [{"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}}]} for name in ("early", "late")]
    answers = [{"functionResponse": {"name": name, "response": {"result": "ok " * 90}}} for name in ("early", "late")]
    messages = [ASKED, *calls, {"role": "user", "parts": answers}, ASKED, *CALLED, ASKED]
    assert [group.messages[-1].raw for group in indexed(messages, gemini).included_groups][1:3] == [calls[0], messages[3]]
    for strategy in STRATEGIES:
        check_strategy(strategy, messages=messages, format=gemini)


def test_dropping_without_a_summary_leaves_somebody_to_answer() -> None:
    """When summarization fails and drops instead, the last user message before a call that is kept is kept too."""
    asked = [{"role": "user", "parts": [{"text": f"question {number}"}]} for number in range(3)]
    call = {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]}
    found = {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"result": "found"}}}]}
    strategy = Summarization(Scripted(SummaryFailed("away")), keep=last(groups=2), on_failure="drop")
    result = compact_sync([*asked[:2], call, found, asked[2]], strategy, format=gemini, counter="chars/4")
    assert result.messages == [asked[1], call, found, asked[2]]
    assert len(result.failures) == 1

"""The Gemini format: what its examples do not show, and the laws with calls paired by name and order."""

from __future__ import annotations

from compaction import compact_sync
from compaction.errors import SummaryFailed
from compaction.formats import gemini
from compaction.index.marks import marked
from compaction.selectors import last
from compaction.strategies import Summarization, ToolResult, Truncation
from compaction.testing import check_strategy
from tests.formats.gemini.examples import CALL, RESPONSE, USER, call, model, response, user
from tests.support.chats import edits_of, indexed
from tests.support.scripted import Scripted
from tests.support.wires import STRATEGIES

CALLED = [model(call()), user(response(text="noon " * 200))]
SUMMED_UP = user({"text": marked("The user wants to know the time.", by="Summarization")})


def test_new_contents() -> None:
    assert gemini.new("assistant", "hi").raw == model({"text": "hi"})
    assert gemini.new("user", "hi").raw == gemini.placeholder("hi")[0].raw == USER
    assert [each.role for each in gemini.summary("s", gemini.new("user", "x"), gemini.new("assistant", "x"))] == ["user"]


def test_joins() -> None:
    """A call may follow only the user or a response; other model contents may follow anything, but prefer the same places."""
    words = gemini.new("assistant", "x")
    asked, said, answered = gemini.new("user", "x"), gemini.read(model(CALL)), gemini.read(user(RESPONSE))
    before = (asked, answered, said, None)
    assert [gemini.follows(each, said) for each in before] == [True, True, False, False]
    assert [gemini.follows(each, words) for each in before] == [True, True, True, True]
    assert [gemini.prefers(each, words) for each in before] == [True, True, False, False]
    assert [gemini.prefers(each, asked) and gemini.follows(each, asked) for each in before] == [True, True, True, True]


def test_signed_thoughts_stay_in_the_current_turn() -> None:
    """Signed thoughts may not be removed in the current turn, but may in an earlier one; unsigned thoughts may in both."""
    signed = [gemini.read(model({"text": "hm", "thought": True, "thoughtSignature": "c2ln"}, CALL))]
    plain = [gemini.read(model({"text": "hm", "thought": True}, CALL))]
    bare = [message.evolve(parts=message.parts[1:]) for message in (*signed, *plain)]
    assert gemini.rewrite_problem(signed, bare[:1], current=True) is not None
    assert gemini.rewrite_problem(signed, bare[:1], current=False) is None
    assert gemini.rewrite_problem(plain, bare[1:], current=True) is None


def test_the_first_call_of_the_current_turn_stays_signed() -> None:
    """A signed call may not be exchanged for an unsigned one in the current turn, but may in an earlier one."""
    unsigned = {"functionCall": CALL["functionCall"]}
    before, after, shorter = ([gemini.read(raw)] for raw in (model(CALL), model({"text": "so"}, unsigned), model(unsigned)))
    assert gemini.rewrite_problem(before, after, current=True) is not None
    assert gemini.rewrite_problem(before, after, current=False) is None
    assert gemini.rewrite_problem(after, shorter, current=True) is None  # it was not signed before


def test_truncation_never_leaves_a_call_first() -> None:
    """Truncation keeps a summary before a call: without it the list would start with a call, which the format refuses."""
    check_strategy(Truncation(keep=last(groups=2)), messages=[SUMMED_UP, *CALLED, USER], format=gemini)


def test_truncation_goes_on_once_a_summary_is_gone() -> None:
    """Truncation drops a call and then the summary before it; the last summary stays, as a call may not come first."""
    messages = [SUMMED_UP, CALLED[0], SUMMED_UP, *CALLED[1:], CALLED[0]]
    edits = edits_of(Truncation(keep=last(groups=1)), indexed(messages, format=gemini))
    assert [edit.groups for edit in edits] == [(1,), (0,)]
    check_strategy(Truncation(keep=last(groups=1)), messages=messages, format=gemini)


def test_collapse_shortens_old_calls() -> None:
    index = indexed([USER, *CALLED, *CALLED], format=gemini)
    assert list(edits_of(ToolResult(keep=last(groups=1)), index)) != []
    assert [content["role"] for content in index.messages()] == ["user", "user", "model", "user"]


def test_responses_go_with_the_call_directly_before_them() -> None:
    """A content with responses to calls of two contents is grouped with the call directly before it."""
    calls = [model(call("early")), model(call("late"))]
    messages = [USER, *calls, user(response("early", "ok " * 90), response("late", "ok " * 90)), USER, *CALLED, USER]
    groups = indexed(messages, format=gemini).included_groups
    assert [group.messages[-1].raw for group in groups][1:3] == [calls[0], messages[3]]
    for strategy in STRATEGIES:
        check_strategy(strategy, messages=messages, format=gemini)


def test_dropping_without_a_summary_leaves_somebody_to_answer() -> None:
    """When summarization fails and drops instead, the last user message before a call that is kept is kept too."""
    asked = [user({"text": f"question {number}"}) for number in range(3)]
    called = [model(call()), user(response())]
    strategy = Summarization(Scripted(SummaryFailed("away")), keep=last(groups=2), on_failure="drop")
    done = compact_sync([*asked[:2], *called, asked[2]], strategy, format=gemini, counter="chars/4")
    assert done.messages == [asked[1], *called, asked[2]]
    assert len(done.failures) == 1

"""The Gemini format: what its examples do not show, and the laws with calls paired by name and order."""

from __future__ import annotations

from compaction.formats import gemini
from compaction.testing import check_strategy
from tests.formats.gemini.examples import CALL, USER, call, model, response, user
from tests.support.chats import indexed
from tests.support.wires import STRATEGIES

CALLED = [model(call()), user(response(text="noon " * 200))]


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


def test_responses_go_with_the_call_directly_before_them() -> None:
    """A content with responses to calls of two contents is grouped with the call directly before it."""
    calls = [model(call("early")), model(call("late"))]
    messages = [USER, *calls, user(response("early", "ok " * 90), response("late", "ok " * 90)), USER, *CALLED, USER]
    groups = indexed(messages, format=gemini).included_groups
    assert [group.messages[-1].raw for group in groups][1:3] == [calls[0], messages[3]]
    for strategy in STRATEGIES:
        check_strategy(strategy, messages=messages, format=gemini)

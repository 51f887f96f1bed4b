"""Reading Gemini contents into parts, and writing changed contents."""

from __future__ import annotations

from compaction.formats import gemini
from tests.formats.gemini.examples import CALL, RESPONSE, model, user


def test_new_contents() -> None:
    assert gemini.new("assistant", "hi").raw == model({"text": "hi"})
    assert gemini.new("user", "hi").raw == user({"text": "hi"})
    assert gemini.placeholder("hi")[0].raw == user({"text": "hi"})
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
    before = [gemini.read(model({**CALL, "thoughtSignature": "c2ln"}))]
    after = [gemini.read(model({"text": "so"}, {"functionCall": CALL["functionCall"]}))]
    assert gemini.rewrite_problem(before, after, current=True) is not None
    assert gemini.rewrite_problem(before, after, current=False) is None
    shorter = [gemini.read(model({"functionCall": CALL["functionCall"]}))]
    assert gemini.rewrite_problem(after, shorter, current=True) is None  # it was not signed before

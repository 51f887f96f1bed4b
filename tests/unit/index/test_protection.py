"""What the rules that protect groups say at the edges: the first group, a collapsed call there, results without a call."""

from __future__ import annotations

from compaction import MessageIndex, Replace
from compaction.formats import openai_chat
from compaction.index.marks import COLLAPSED_BY, marked
from tests.support.chats import assistant, call, indexed, result, user
from tests.support.letters import Letters


def test_a_collapsed_call_that_comes_first_may_be_shortened() -> None:
    """As one anywhere else; a summary of the conversation may not."""
    for by, rewritable in ((COLLAPSED_BY, True), ("Summarization", False)):
        index = indexed([assistant(marked("look: found it", by=by)), user(), assistant(marked("look: more", by=by)), user()])
        assert [index.is_rewritable(id) for id in (0, 2)] == [rewritable] * 2


def test_what_follows_a_call_that_waits_stays() -> None:
    """Results that answer nothing leave the call waiting."""
    index = indexed([user(), assistant(), user(), call("1"), result("other"), result("more")])
    assert index.removable_ids() == [0, 1]
    assert [id for id in index.included_ids if index.is_removable(id)] == [0, 1]


def test_no_words_between_a_call_and_its_results() -> None:
    """A result of another call stands there; with the call, or after its last result, it may be replaced."""
    words = [openai_chat.new("assistant", "so")]
    chat = [user(), call("1", "2"), result("1"), result("other", "long " * 40), result("2"), user(), assistant(), user()]
    assert not indexed(chat).apply(Replace(3, words))
    assert indexed(chat).apply(Replace([1, 3], words))
    chat = [user(), call("1", "2"), result("1"), result("2"), result("other", "long " * 40), user(), assistant(), user()]
    assert indexed(chat).apply(Replace(4, words))
    chat = [result("other", "long " * 40), call("1"), result("1"), user()]
    assert indexed(chat).apply(Replace(0, words))


def test_no_words_between_the_messages_of_a_group_that_stays() -> None:
    """Its messages may stand on both sides of several groups that go; then it, too, or one end of it, has to be named."""
    messages = [
        {"role": "assistant", "text": "c0", "calls": ["x"]},
        {"role": "user", "text": "u1 word word word"},
        {"role": "assistant", "text": "a2 word word word"},
        {"role": "tool", "text": "r3", "answers": "x"},
        {"role": "user", "text": "u4 word word word"},
        {"role": "assistant", "text": "a5"},
        {"role": "user", "text": "u6"},
    ]

    def allowed(*groups: int) -> bool:
        index = MessageIndex(messages, counter="chars/4", format=Letters())
        return index.apply(Replace(groups, [index.format.new("user", "u")]))

    assert [allowed(1), allowed(2), allowed(1, 2), allowed(4), allowed(0, 1), allowed(2, 4)] == [
        False,
        False,
        False,
        True,
        True,
        True,
    ]

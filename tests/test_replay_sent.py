"""The chain of requests: what is shared, how large each is, and what can be read in it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from chats import Chat, assistant, call, result, said, system, tool_turns, user
from hypothesis import given
from hypothesis import strategies as st

from compaction.formats import openai_chat
from compaction.replay.recording import Recording
from compaction.replay.sent import Sent, Step
from compaction.replay.transcript import Transcript
from compaction.tokens import MessageMeter

METER = MessageMeter("chars/4")


def sent(messages: Chat, **options: Any) -> Sent:
    """A chain of requests for this conversation, none sent yet."""
    recording = Recording(id="1", messages=messages)
    transcript = Transcript(recording, format=openai_chat, meter=METER, window=1_000)
    return Sent(transcript, meter=METER, **options)


def tokens_of(messages: Chat) -> int:
    """Their tokens."""
    return sum(METER.measure(openai_chat.read(message))[0] for message in messages)


def test_a_longer_request_continues_the_last() -> None:
    """All of the last request is shared, and nothing is lost."""
    chat = [user("one"), assistant("two"), user("three")]
    chain = sent(chat, overhead_tokens=5)
    first = tokens_of(chat[:1]) + 5
    assert chain.follow(chat[:1]) == Step(first, 0, 5, 5, broken=False, lost_tokens=0)
    assert chain.follow(chat[:]) == Step(tokens_of(chat) + 5, 1, first, first, broken=False, lost_tokens=0)


def test_a_request_that_departs_breaks_the_prefix() -> None:
    """What is shared ends at the first difference; the rest of the last request is lost."""
    chat = [system(), user("one"), assistant("two"), user("three")]
    chain = sent(chat)
    chain.follow(chat[:])
    step = chain.follow([chat[0], chat[3]])
    assert (step.shared_messages, step.whole_tokens, step.broken) == (1, tokens_of(chat[:1]), True)
    assert step.lost_tokens == tokens_of(chat[1:])


def test_a_shorter_request_breaks_the_prefix() -> None:
    """A request that ends before the last one does not continue it."""
    chat = [user("one"), assistant("two")]
    chain = sent(chat)
    chain.follow(chat[:])
    assert chain.follow(chat[:1]).broken


def test_a_message_cut_at_its_end_shares_its_start() -> None:
    """A provider's cache may end within a message: the tokens before the first difference are shared."""
    long, short = user("a" * 400), user("a" * 200 + " [cut]")
    chain = sent([long])
    chain.follow([long])
    step = chain.follow([short])
    assert (step.whole_tokens, step.shared_tokens) == (0, 50)


def test_recorded_messages_are_seen_unchanged_or_rebuilt() -> None:
    """A message is in view as the same object or as one of equal role and text, as frameworks build them."""
    chat = [user("order A-170"), assistant("two")]
    chain = sent(chat)
    chain.follow([dict(chat[0]), chat[1]])
    assert chain.visible == {0, 1}
    assert chain.holds("A-170", [0])


def test_equal_messages_are_told_apart_by_order() -> None:
    """Two messages that say the same are two."""
    chat = [user("yes"), assistant("go on"), user("yes")]
    chain = sent(chat)
    chain.follow([dict(message) for message in chat])
    assert chain.visible == {0, 1, 2}


def test_a_summary_holds_what_it_says() -> None:
    """A fact can be read in a message that was not recorded, whatever stands around it, but not as a part of another."""
    chat = [user("order A-170, order A-17"), assistant("I look")]
    chain = sent(chat)
    chain.follow([said("user", "Earlier: A-170 came."), chat[1]])
    assert (chain.holds("A-170", [0]), chain.holds("A-17", [0])) == (True, False)


def test_a_summary_that_left_holds_nothing() -> None:
    """What the last request does not hold is not there, though one before it did."""
    chat = [user("abcdefghijklm A-170"), assistant("abcdefghijklm")]
    chain = sent(chat)
    chain.follow([said("user", "abcdefghijklm A-170")])
    assert chain.holds_span("abcdefghijkl", [0])
    chain.follow([said("user", "nothing")])
    assert (chain.holds_span("abcdefghijkl", [0]), chain.holds("A-170", [0])) == (False, False)


def test_an_instruction_is_quoted_verbatim_or_lost() -> None:
    """A sentence in other words is another sentence."""
    chat = [user("Never touch prod.db."), assistant()]
    chain = sent(chat)
    chain.follow([said("user", "He said: Never touch prod.db. Mind it.")])
    assert chain.quotes("Never touch prod.db.", 0)
    chain.follow([said("user", "He said not to touch prod.db.")])
    assert not chain.quotes("Never touch prod.db.", 0)


def test_a_message_nobody_can_read_is_the_formats_to_complain_of() -> None:
    """A strategy may send anything; it is measured as nothing and named by its rule."""
    chain = sent([user()])
    assert chain.follow([{"content": "?"}]).tokens == 0
    assert chain.broken_rules() == Counter({"missing-role": 1})


steps = st.lists(st.sampled_from(["user", "say", "call", "result", "orphan", "drop first", "drop call"]), max_size=25)


@given(steps)
def test_rules_looked_at_piece_by_piece_are_those_of_the_whole(actions: list[str]) -> None:
    """Not looking again at what did not change finds the same faults as looking at everything."""
    view: Chat = []
    chain = sent(tool_turns(2))
    for number, action in enumerate(actions):
        if action == "user":
            view = [*view, user(f"u{number}")]
        elif action == "say":
            view = [*view, assistant(f"a{number}")]
        elif action == "call":
            view = [*view, call(f"c{number}")]
        elif action == "result":
            calls = [message["tool_calls"][0]["id"] for message in view if "tool_calls" in message]
            view = [*view, result(calls[-1] if calls else "none")]
        elif action == "orphan":
            view = [*view, result("nobody")]
        elif action == "drop first":
            view = view[1:]
        else:
            view = [message for message in view if "tool_calls" not in message]
        chain.follow(view)
        assert chain.broken_rules() == Counter(problem.rule for problem in openai_chat.validate(view))

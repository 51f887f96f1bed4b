"""The chain of requests: what each shares with the previous one, its size and its contents."""

from __future__ import annotations

from typing import Any

from compaction.formats import openai_chat
from compaction.replay.recordings import Recording
from compaction.replay.request_chain import RequestChain, RequestDiff
from compaction.replay.transcript import Transcript
from compaction.tokens import MessageMeter
from tests.support.chats import Chat, assistant, said, system, user

METER = MessageMeter("chars/4")


def requests_of(messages: Chat, **options: Any) -> RequestChain:
    recording = Recording(id="1", messages=messages)
    return RequestChain(Transcript(recording, format=openai_chat, meter=METER, window=1_000, **options))


def tokens_of(messages: Chat) -> int:
    return sum(METER.measure(openai_chat.read(message))[0] for message in messages)


def test_a_longer_request_continues_the_last() -> None:
    """All of the last request is shared, and nothing is lost."""
    chat = [user("one"), assistant("two"), user("three")]
    chain = requests_of(chat, overhead_tokens=5)
    first = tokens_of(chat[:1]) + 5
    assert chain.add(chat[:1]) == RequestDiff(first, 0, 5, 5, broken=False, lost_tokens=0)
    assert chain.add(chat[:]) == RequestDiff(tokens_of(chat) + 5, 1, first, first, broken=False, lost_tokens=0)


def test_a_request_that_differs_breaks_the_prefix() -> None:
    """The shared part ends at the first difference, or where a shorter request ends; the rest of the last one is lost."""
    chat = [system(), user("one"), assistant("two"), user("three")]
    chain = requests_of(chat)
    chain.add(chat[:])
    step = chain.add([chat[0], chat[3]])
    assert (step.shared_messages, step.shared_whole_tokens, step.broken) == (1, tokens_of(chat[:1]), True)
    assert step.lost_tokens == tokens_of(chat[1:])
    assert chain.add(chat[:1]).broken


def test_a_message_cut_at_its_end_shares_its_start() -> None:
    """A provider's cache may end within a message: the tokens before the first difference are shared."""
    long, short = user("a" * 400), user("a" * 200 + " [cut]")
    chain = requests_of([long])
    chain.add([long])
    step = chain.add([short])
    assert (step.shared_whole_tokens, step.shared_tokens) == (0, 50)


def test_recorded_messages_are_seen_unchanged_or_rebuilt() -> None:
    """The same object, or the same role and text, as frameworks build them; equal messages are told apart by order."""
    chat = [user("order A-170"), assistant("two"), user("order A-170")]
    chain = requests_of(chat)
    chain.add([dict(chat[0]), chat[1], dict(chat[2])])
    assert chain.visible == {0, 1, 2}
    assert chain.contains("A-170", [0])


def test_a_summary_holds_what_it_says() -> None:
    """Facts, spans and instructions are found verbatim in a new message, not as part of others, and only while it is sent."""
    chat = [user("abcdefghijklm A-170, order A-17. Never touch prod.db."), assistant("abcdefghijklm")]
    chain = requests_of(chat)

    def found() -> list[bool]:
        facts = [chain.contains(fact, [0]) for fact in ("A-170", "A-17")]
        return [*facts, chain.contains_span("abcdefghijkl", [0]), chain.quotes("Never touch prod.db.", 0)]

    chain.add([said("user", "Earlier: abcdefghijklm A-170. He said: Never touch prod.db. Mind it."), chat[1]])
    assert found() == [True, False, True, True]
    chain.add([said("user", "He said not to touch prod.db.")])
    assert found() == [False, False, False, False]


def test_an_unreadable_message_counts_no_tokens() -> None:
    assert requests_of([user()]).add([{"content": "?"}]).tokens == 0

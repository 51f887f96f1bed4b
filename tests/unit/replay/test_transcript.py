"""The needs of each recorded answer, computed once before any candidate runs."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.formats import openai_chat
from compaction.replay.recordings import Recording
from compaction.replay.transcript import NeededPlaces, Needs, Transcript
from compaction.tokens import MessageMeter
from tests.support.chats import Chat, assistant, call, result, system, user


def transcript(messages: Chat, *, window: int = 1_000, **options: Any) -> Transcript:
    recording = Recording(id="1", messages=messages)
    return Transcript(recording, format=openai_chat, meter=MessageMeter("chars/4"), window=window, **options)


def last_needs(messages: Chat, **options: Any) -> Needs:
    return transcript(messages, **options).needs[-1]


def last_places(messages: Chat, **options: Any) -> NeededPlaces:
    return transcript(messages, **options).places[-1]


def filler(count: int) -> Chat:
    return [user("and then?") if at % 2 else assistant("so it is") for at in range(count)]


def test_each_answer_with_a_history_is_a_call() -> None:
    """An answer before anything was asked has no input to replay."""
    assert transcript([assistant(), user(), assistant(), assistant()]).calls == [2, 3]


@pytest.mark.parametrize(
    ("messages", "facts"),
    [
        ([user("order A-170 came"), *filler(6), assistant("I cancel A-170 and B-280 now")], [("A-170", 0, 7)]),
        ([user("order A-170 came"), *filler(4), assistant("I cancel A-170")], [("A-170", 0, 5)]),
        ([user("order A-170 came"), *filler(3), assistant("I cancel A-170")], []),
        ([system("orders such as A-170"), user("A-170"), *filler(6), assistant("A-170")], []),
        ([user("A-170"), *filler(4), user("still A-170"), *filler(5), assistant("A-170")], [("A-170", 5, 6)]),
        ([user(), call("c1", arguments='{"path": "src/app.py"}'), *filler(6), assistant("src/app.py")], [("src/app.py", 1, 7)]),
        ([user(), call("c1"), result("c1", "id 4WQ150"), *filler(5), assistant("4WQ150")], [("4WQ150", 2, 6)]),
    ],
    ids=["not its own idea", "the fifth last", "the last four", "the system's", "restated", "an argument", "a result"],
)
def test_which_facts_an_answer_needs(messages: Chat, facts: list[tuple[str, int, int]]) -> None:
    """Those of earlier messages, with last place and age, except what every candidate keeps: the system's and the newest."""
    assert [(fact.text, fact.last, fact.age) for fact in last_needs(messages).facts] == facts


def test_old_is_what_the_newest_messages_lack() -> None:
    """A fact is old if it occurs before the newest messages that fit the window together with the system message."""
    chat = [system(), user("order A-170 came"), *filler(8), assistant("A-170")]
    sizes = transcript(chat).tokens
    whole = sum(sizes[:-1])
    assert [fact.old for fact in last_needs(chat, window=whole).facts] == [False]
    assert [fact.old for fact in last_needs(chat, window=whole - 1).facts] == [True]
    assert [fact.old for fact in last_needs(chat, window=whole, overhead_tokens=1).facts] == [True]


def test_spans_are_copied_from_older_history_only() -> None:
    said = [user("abcdefghijklm"), *filler(5), assistant("abcdefghijklm")]
    assert last_places(said).spans == {"abcdefghijkl": [0, 6], "bcdefghijklm": [0, 6]}
    assert list(last_places([*said[:-1], user("abcdefghijkl"), said[-1]]).spans) == ["bcdefghijklm"]


def test_what_cannot_fit_is_known() -> None:
    """If the system message and the last user message alone exceed the window, hardly any candidate can help."""
    chat = [system("s" * 400), user("u" * 400), assistant("a" * 400), user("short"), assistant()]
    sizes = transcript(chat).tokens
    at_first, at_last = transcript(chat, window=sizes[0] + sizes[1] - 1).needs
    assert (at_first.fits, at_last.fits) == (False, True)

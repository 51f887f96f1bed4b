"""The needs of each recorded answer, computed once before any candidate runs."""

from __future__ import annotations

from typing import Any

from compaction.formats import openai_chat
from compaction.replay.recordings import Recording
from compaction.replay.transcript import Needs, Transcript
from compaction.tokens import MessageMeter
from tests.support.chats import Chat, assistant, call, result, system, user


def transcript(messages: Chat, *, window: int = 1_000, **options: Any) -> Transcript:
    recording = Recording(id="1", messages=messages)
    return Transcript(recording, format=openai_chat, meter=MessageMeter("chars/4"), window=window, **options)


def last_needs(messages: Chat, **options: Any) -> Needs:
    return transcript(messages, **options).needs[-1]


def filler(count: int) -> Chat:
    return [user("and then?") if at % 2 else assistant("so it is") for at in range(count)]


def test_each_answer_with_a_history_is_a_call() -> None:
    """An answer before anything was asked has no input to replay."""
    assert transcript([assistant(), user(), assistant(), assistant()]).calls == [2, 3]


def test_a_fact_from_long_ago_is_needed() -> None:
    """A fact is needed, with its place and age, if an earlier message contains it, and not if the agent came up with it."""
    needs = last_needs([user("order A-170 came"), *filler(6), assistant("I cancel A-170 and B-280 now")])
    assert [(fact.text, fact.last, fact.age) for fact in needs.facts] == [("A-170", 0, 7)]


def test_what_was_just_said_is_not_needed() -> None:
    """Every policy keeps the last four messages; the fifth last is not among them."""
    fresh = [user("order A-170 came"), *filler(3), assistant("I cancel A-170")]
    assert last_needs(fresh).facts == ()
    assert [fact.text for fact in last_needs([*fresh[:1], *filler(4), fresh[-1]]).facts] == ["A-170"]


def test_what_the_system_message_says_is_not_needed() -> None:
    assert last_needs([system("orders such as A-170"), user("A-170"), *filler(6), assistant("A-170")]).facts == ()


def test_a_restated_fact_counts_from_its_last_occurrence() -> None:
    needs = last_needs([user("A-170"), *filler(4), user("still A-170"), *filler(5), assistant("A-170")])
    assert [(fact.last, fact.age) for fact in needs.facts] == [(5, 6)]


def test_old_is_what_the_newest_messages_lack() -> None:
    """A fact is old if it occurs before the newest messages that fit the window together with the system message."""
    chat = [system(), user("order A-170 came"), *filler(8), assistant("A-170")]
    sizes = transcript(chat).tokens
    whole = sum(sizes[:-1])
    assert [fact.old for fact in last_needs(chat, window=whole).facts] == [False]
    assert [fact.old for fact in last_needs(chat, window=whole - 1).facts] == [True]
    assert [fact.old for fact in last_needs(chat, window=whole, overhead_tokens=1).facts] == [True]


def test_results_and_arguments_show_facts() -> None:
    """A fact may come from a tool's answer or the agent's own call."""
    chat = [
        user(),
        call("c1", arguments='{"path": "src/app.py"}'),
        result("c1", "id 4WQ150"),
        *filler(5),
        assistant("4WQ150 of src/app.py"),
    ]
    assert {fact.text: fact.last for fact in last_needs(chat).facts} == {"src/app.py": 1, "4WQ150": 2}


def test_a_word_is_rare_in_three_messages() -> None:
    """A word that four messages use is common and is not needed."""
    said = [user("the frobnicator"), *filler(5), assistant("frobnicator")]
    assert last_needs(said).word_count == 1
    assert last_needs([*[said[0]] * 3, *said[1:]]).word_count == 1
    assert last_needs([*[said[0]] * 4, *said[1:]]).word_count == 0


def test_spans_are_copied_from_older_history_only() -> None:
    """Each span that the answer copied counts once; spans in a recent message do not count."""
    said = [user("abcdefghijklm"), *filler(5), assistant("abcdefghijklm")]
    assert last_needs(said).span_count == 2
    assert last_needs([*said[:-1], user("abcdefghijkl"), said[-1]]).span_count == 1


def test_what_cannot_fit_is_known() -> None:
    """If the system message and the last user message alone exceed the window, no policy can help."""
    chat = [system("s" * 400), user("u" * 400), assistant("a" * 400), user("short"), assistant()]
    sizes = transcript(chat).tokens
    at_first, at_last = transcript(chat, window=sizes[0] + sizes[1] - 1).needs
    assert (at_first.fits, at_last.fits) == (False, True)


def test_a_result_keeps_no_places() -> None:
    """A result from another process is smaller and otherwise equal."""
    needs = last_needs([user("order A-170 came"), *filler(6), assistant("I cancel A-170 now")])
    small = needs.without_places()
    assert (small.words, small.spans, small.facts[0].places) == ((), (), ())
    assert small == needs


def test_constraints_are_sentences_of_the_user() -> None:
    """Sentences of the assistant or a tool are not constraints."""
    chat = [user("Hi. You must never touch prod.db."), assistant("You should always rest."), result("x", "must not happen")]
    assert transcript(chat).constraints == [(0, "You must never touch prod.db.")]

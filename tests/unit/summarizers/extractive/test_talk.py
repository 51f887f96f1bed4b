"""Conversations between people: which of their sentences a digest chooses, and which conversations are such."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from compaction.formats import openai_chat
from compaction.summarizers import DigestSummarizer, FactSummarizer, Summarizer
from compaction.summarizers.extractive import excerpt_options
from compaction.summarizers.extractive.memory import Memories
from compaction.summarizers.extractive.talk import WEIGHTS, Utterance, chosen, lines_of, talk_in
from tests.support.chats import Chat, assistant, call, result, user
from tests.support.scripted import request_for

CHATTER = ("Oh really?", "Yes, that is so nice!", "Ha ha, I know!", "Well, you know how it is.")
TALK: Chat = [(user, assistant)[place % 2](CHATTER[place % len(CHATTER)]) for place in range(40)]
TALK[10] = user("Where did your sister learn to carve those owls?")
TALK[11] = assistant("In Lillehammer, from a retired boat builder called Torvald.")


def summary_of(messages: list[dict[str, Any]], budget: int, summarizer: Summarizer) -> str:
    return str(summarizer.summarize(request_for(summarizer, messages, budget=budget)))


def talk_of(messages: list[dict[str, Any]]) -> list[Utterance]:
    return talk_in([openai_chat.read(each) for each in messages], Memories().read, str)


def test_an_answer_with_names_is_kept_before_chatter() -> None:
    for summarizer in (DigestSummarizer(growth=1.0), FactSummarizer()):
        [line] = [line for line in summary_of(TALK, 60, summarizer).split("\n") if "Torvald" in line]
        assert line.startswith("- Assistant: ")


def test_answers_and_names_weigh_and_questions_do_not() -> None:
    said = talk_of(TALK)
    worth = {each.text: each.score for each in said}
    assert all(len(each.features) == len(WEIGHTS) for each in said)
    assert worth[TALK[11]["content"]] > worth[TALK[10]["content"]]


def test_speakers_are_told_apart() -> None:
    """If most messages begin with a name, it speaks all their sentences. Otherwise, the user does."""
    said = [f"{('Ann Lee', 'Bo')[place % 2]}: I see. We go to Rome in May." for place in range(12)]
    talk = talk_of([{"role": "user", "content": each} for each in said])
    assert [(each.by, each.text) for each in talk[:2]] == [("Ann Lee", "I see."), ("Ann Lee", "We go to Rome in May.")]
    assert talk_of([*TALK, {"role": "user", "content": "Note: bring eggs."}])[-1].by == ""


def test_one_speaker_has_one_line_until_another_one_speaks() -> None:
    """Sentences of a line stand in the order said; messages, and a sentence without an end mark, are set apart; all fit."""
    said = [("A", "One.", 1), ("A", "Two", 1.3), ("A", "Three!", 1.7), ("B", "Four.", 2), ("A", "Five.", 3), ("A", "Six.", 3.5)]
    talk = [Utterance(text, text, place, "", by) for by, text, place in said]
    for across, order, expected in (
        (True, [4, 0, 1, 2, 3, 5], ["A: One. / Two / Three!", "B: Four.", "A: Five. Six."]),
        (True, [4, 0, 2, 5], ["A: One. Three! / Five. Six."]),
        (False, [4, 0, 2, 5], ["A: One. Three!", "A: Five. Six."]),
    ):
        found = sorted(lines_of(talk, chosen(talk, order, 99, len, across=across), across=across), key=lambda line: line.place)
        assert [f"{each.by}: {each.text}" for each in found] == expected
        for room in range(99):
            lines = lines_of(talk, chosen(talk, order, room, len, across=across), across=across)
            assert sum(len(f"- {each.by}: {each.text}") - 2 * (not each.by) for each in lines) <= room


NOVEL: Chat = [
    user("I have a novel of 94,000 words, set in a flooded Rotterdam. Her brother Jelle is missing."),
    assistant("Which subplots do you feel least attached to?"),
    user("The smugglers with Aunt Brecht. Bitte rechne nie mit gerundeten Zahlen."),
    assistant("Removing the smugglers saves about 11,200 words. Noted. I never round."),
    user("Is there a heron outside? It wants the koi. Probably the koi."),
    assistant("Herons are famously unsentimental about koi."),
    user("The council hearing is 6,800 words. I could halve it. What I can't do is lose Oyelaran's speech."),
    assistant("Halve the hearing, keep the speech intact."),
    user("And Wietske is twelve, by 3 votes to 2. That changes the school scene. The gate closes at 21:10."),
    assistant("Wietske is twelve and in groep 8."),
]


@pytest.mark.parametrize("budget", [140, 180, 240, 300, 400])
def test_a_short_message_to_an_assistant_stays_together(budget: int) -> None:
    """Its sentences stand on one line in their order, with none of another message; lines stand in the order said."""
    text = summary_of(NOVEL, budget, DigestSummarizer(growth=1.0))
    assert not Memories().of([openai_chat.read(each) for each in NOVEL]).is_between_people
    for whole in [each["content"] for each in NOVEL[1:] if each["role"] == "user"]:
        parts = whole.replace("? ", "?|").replace(". ", ".|").split("|")
        assert whole in text or not any(part in text for part in parts)
    context = text.partition("## Critical Context")[2].split("\n")
    places = [number for line in context for number, each in enumerate(NOVEL) if line[2:].startswith(each["content"][:20])]
    assert places == sorted(places)


def test_agents_do_not_talk() -> None:
    """With calls, results, long messages or hardly any messages, a conversation is not one between people."""
    long = [user("word " * 200)] * 20
    for messages, expected in ((TALK, True), (TALK[:5], False), ([*TALK, call("c"), result("c")], False), (long, False)):
        assert Memories().of([openai_chat.read(each) for each in messages]).is_talk is expected


def test_a_user_who_gives_an_assistant_work_is_not_one_of_two_people() -> None:
    """Such a user states values. People who do so begin with their names, or the host names them. Both are talks."""
    told = [user(f"Room {n} costs {n + 200} euros.") for n in range(20)]
    named = [user(f"{'Ann' if n % 2 else 'Bo'}: Room {n} costs {n + 200} euros.") for n in range(20)]
    for messages, expected in (
        (told, False),
        ([*TALK, *told], False),
        (named, True),
        ([{**each, "name": "ann"} for each in told], True),
        (TALK * 20 + told[:4], True),
    ):
        memory = Memories().of([openai_chat.read(each) for each in messages])
        assert (memory.is_between_people, memory.is_talk) == (expected, True)


def test_half_of_a_chat_is_for_what_the_user_tells_the_assistant() -> None:
    """Although the assistant's sentences have more names and rarer words; they would leave room for two of these values."""
    things = [(thing, town) for thing in ("door code", "alarm code", "phone extension") for town in ("Lund", "Graz", "Bergen")]
    told = [f"The {thing} of the shop in {town} is {1_000 + 7 * n}." for n, (thing, town) in enumerate(things)]
    names = ("Ada", "Bo", "Cy", "Dee", "Eli", "Fay", "Gus", "Hal", "Ida")
    events = ("harvest", "parade", "regatta", "eclipse", "circus", "opera", "race", "bazaar", "fair")
    chat: list[dict[str, Any]] = []
    for said, name, event in zip(told, names, events, strict=True):
        chat += [user(said), assistant(f"Good to know. {name} told me about the {event} near the chapel of {event.title()}.")]
        chat += [user("Nice, thanks."), assistant(f"By the way, {name} plans a trip to Mount {event[::-1].title()} with Jo.")]
    text = summary_of(chat, 250, DigestSummarizer(growth=1.0))
    assert sum(said in text for said in told) >= 7


def test_an_assistant_is_not_one_of_two_people() -> None:
    """If the user says little of it, an excerpt may quote as much as in other conversations; if people talk, an eighth."""
    digest = DigestSummarizer(growth=1.0)
    assert excerpt_options(request_for(digest, TALK), 400)[1] == 50
    answers = [{**each, "content": each["content"] * 4} if each["role"] == "assistant" else each for each in TALK]
    assert Memories().of([openai_chat.read(each) for each in answers]).is_talk
    assert excerpt_options(request_for(digest, answers), 400)[1] == 400


def test_a_replaced_sentence_does_not_come_back() -> None:
    said = [*TALK, {"role": "user", "content": "The port is 8080."}, {"role": "user", "content": "The port is now 9090."}]
    text = summary_of(said, 400, DigestSummarizer(growth=1.0))
    assert "The port is now 9090. (was 8080 until message 42)" in text
    assert "The port is 8080." not in text


NOTE: dict[str, Any] = {"role": "user", "content": "Note: Torvald lives in Bergen. He sails a Colin Archer called Sigrid."}
NAMED = [{"role": "user", "content": f"{('Ann Lee', 'Bo')[place % 2]}: {each['content']}"} for place, each in enumerate(TALK)]


@pytest.mark.parametrize("messages", [TALK, [*TALK, NOTE], [*NAMED, NOTE]])
def test_a_later_round_repeats_no_sentence(messages: list[dict[str, Any]]) -> None:
    """A digest of the same messages and an earlier digest holds each sentence once, whatever stands before a colon."""
    digest = DigestSummarizer()
    request = request_for(digest, messages)
    again = attrs.evolve(request, previous=digest.summarize(request))
    told, _, text = digest.summarize(again).partition("## Critical Context")
    found = [text.count(each.text) for each in talk_of(messages) if each.text not in told and len(each.text) > len(CHATTER[0])]
    assert max(found) == 1
    assert "a retired boat builder called Torvald." in text

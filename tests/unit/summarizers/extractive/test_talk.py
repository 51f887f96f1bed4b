"""Conversations between people: which of their sentences a digest chooses, and which conversations are such."""

from __future__ import annotations

from typing import Any

from compaction import MessageIndex
from compaction.formats import openai_chat
from compaction.summarizers import DigestSummarizer, FactSummarizer, Summarizer, SummaryRequest
from compaction.summarizers.extractive.memory import Memories
from compaction.summarizers.extractive.talk import WEIGHTS, talk_in

CHATTER = ("Oh really?", "Yes, that is so nice!", "Ha ha, I know!", "Well, you know how it is.")
TALK: list[dict[str, Any]] = [
    {"role": ("user", "assistant")[place % 2], "content": CHATTER[place % len(CHATTER)]} for place in range(40)
]
TALK[10] = {"role": "user", "content": "Where did your sister learn to carve those owls?"}
TALK[11] = {"role": "assistant", "content": "In Lillehammer, from a retired boat builder called Torvald."}


def summary_of(messages: list[dict[str, Any]], budget: int, summarizer: Summarizer) -> str:
    index = MessageIndex(messages, counter="chars/4")
    request = SummaryRequest(summarizer=summarizer, groups=index.included_groups, budget=budget, counter=index.counter)
    return str(summarizer.summarize(request))


def test_an_answer_with_names_is_kept_before_chatter() -> None:
    """In a small room, the sentence that somebody may ask about stands in the digest and in the list, with who said it."""
    for summarizer in (DigestSummarizer(growth=1.0), FactSummarizer()):
        assert f"- Assistant: {TALK[11]['content']}" in summary_of(TALK, 60, summarizer)


def test_answers_and_names_weigh_and_questions_do_not() -> None:
    """The features of a sentence are those of the weights; an answer is worth more than its question."""
    messages = [openai_chat.read(each) for each in TALK]
    memories = Memories()
    said = talk_in(messages, memories.readings.of, str)
    worth = {each.text: each.worth for each in said}
    assert all(len(each.features) == len(WEIGHTS) for each in said)
    assert worth[TALK[11]["content"]] > worth[TALK[10]["content"]] > 0


def test_agents_do_not_talk() -> None:
    """With calls, results, long messages or hardly any messages, a conversation is not one between people."""
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    turn = [{"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c", "content": "1"}]
    long = [{"role": "user", "content": "word " * 200}] * 20
    for messages, expected in ((TALK, True), (TALK[:5], False), (TALK + turn, False), (long, False)):
        assert Memories().of([openai_chat.read(each) for each in messages]).is_talk is expected


def test_a_replaced_sentence_does_not_come_back() -> None:
    """Of a value that changed, a talk shows the sentence that holds, with the value before."""
    said = [*TALK, {"role": "user", "content": "The port is 8080."}, {"role": "user", "content": "The port is now 9090."}]
    text = summary_of(said, 400, DigestSummarizer(growth=1.0))
    assert "The port is now 9090. (was 8080 until message 42)" in text
    assert "The port is 8080." not in text


def test_a_later_round_repeats_no_sentence() -> None:
    """A digest of the same messages and an earlier digest holds each sentence once."""
    digest = DigestSummarizer()
    index = MessageIndex(TALK, counter="chars/4")
    request = SummaryRequest(summarizer=digest, groups=index.included_groups, budget=200, counter=index.counter)
    before = digest.summarize(request)
    again = SummaryRequest(summarizer=digest, groups=index.included_groups, budget=200, counter=index.counter, previous=before)
    lines = [line for line in digest.summarize(again).split("\n") if line.startswith("- ")]
    assert len(lines) == len(set(lines))
    assert f"- Assistant: {TALK[11]['content']}" in lines

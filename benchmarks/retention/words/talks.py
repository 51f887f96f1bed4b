"""Conversations between people, with questions and the sentences that answer them, and what stays of these at a budget."""

from __future__ import annotations

import random
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import attrs

from compaction import CompactionSession, MessageIndex, presets, run_sync
from compaction.tokens import TokenCounter

from .forms import FOLDER
from .judging import Finder, text_of

KINDS: Final = ("support", "meeting", "friends")
SHARE: Final = 0.2
"""The budget as a share of a conversation's tokens."""

_SYSTEM: Final = "You are part of this conversation. Answer from what was said."
_LAST: Final = "Can I ask you something about what we talked about?"
_EVIDENCE: Final = re.compile("«(.+?)»")
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+")
_WORD: Final = re.compile(r"\w+(?:[-']\w+)*")
_BETWEEN: Final = 0.5
_ROUNDS: Final = 3

Message: TypeAlias = dict[str, Any]


@attrs.frozen(eq=False)
class Talk:
    """A conversation between people.

    Args:
        kind: One of `KINDS`.
        messages: Its messages.
        evidence: Each question with the sentence that answers it.
    """

    kind: str
    messages: tuple[Message, ...]
    evidence: tuple[tuple[str, str], ...]


def talk(kind: str, seed: int) -> Talk:
    """Return a conversation: each thread in random order, some rounds with other values, with short turns between.

    The rounds are three customers of the same desk, three meetings, or three friends.
    """
    data = tomllib.loads((FOLDER / "talks" / f"{kind}.toml").read_text("utf-8"))
    rng = random.Random(f"{seed}/{kind}")
    turns: list[str] = []
    evidence: dict[str, str] = {}
    order = [(number, thread) for number in range(_ROUNDS) for thread in rng.sample(data["threads"], len(data["threads"]))]
    for at, (number, thread) in enumerate(order):
        turns += data["opening"] if at % len(data["threads"]) == 0 else []
        if number and not any("{" in turn for turn in thread["turns"] if "«" in turn):
            continue  # it would be said again in the same words
        slots = {name: rng.choice(values) for name, values in data["slots"].items()}
        slots |= {
            "n": rng.randrange(3, 30),
            "nth": f"{rng.randrange(4, 21)}th",
            "amount": f"{rng.randrange(11, 95)}.{rng.randrange(10, 100)}",
        }
        slots["code"] = f"{rng.choice('KLMR')}{rng.randrange(10, 100)}-{rng.randrange(1_000, 10_000)}"
        said = [turn.format(**slots) for turn in thread["turns"]]
        evidence |= {found[1]: thread["ask"] for turn in said if (found := _EVIDENCE.search(turn))}
        turns += [turn.replace("«", "").replace("»", "") for turn in said]
        if rng.random() < _BETWEEN:
            turns += [rng.choice(data["between"]), rng.choice(data["answers"])]
    messages = [_message(turn, data["speakers"]) for turn in turns]
    asked = tuple([(question, sentence) for sentence, question in evidence.items()])
    return Talk(kind, ({"role": "system", "content": _SYSTEM}, *messages, {"role": "user", "content": _LAST}), asked)


def _message(turn: str, speakers: Mapping[str, str]) -> Message:
    """Return a turn as a message; names longer than a letter stay in it."""
    speaker, _, text = turn.partition(": ")
    return {"role": speakers[speaker], "content": turn if len(speaker) > 1 else text}


# ---------------------------------------------------------------- subjects

Shortening: TypeAlias = Callable[[Sequence[Message], int, TokenCounter], list[Any]]


def _newest(messages: Sequence[Message], budget: int, counter: TokenCounter) -> list[Any]:
    view: list[Any] = list(messages[:1])
    for message in reversed(messages[1:]):
        if MessageIndex([*view, message], counter=counter).tokens > budget:
            break
        view.insert(1, message)
    return view


def rare_sentences(messages: Sequence[Message], budget: int, counter: TokenCounter) -> list[Any]:
    """Return the sentences with the most rare words for their length, in order, as one message: a rule without any grammar."""
    sentences = [(at, text) for at, each in enumerate(messages[1:-1]) for text in _SENTENCE.split(text_of(each))]
    words = [set(_WORD.findall(text.casefold())) for _, text in sentences]
    seen = Counter(word for each in words for word in each)
    rarity = [sum(1 / seen[word] for word in each) / (len(text) + 1) for each, (_, text) in zip(words, sentences, strict=True)]
    room = budget - MessageIndex([messages[0], messages[-1]], counter=counter).tokens
    kept: list[int] = []
    for place in sorted(range(len(sentences)), key=rarity.__getitem__, reverse=True):
        tokens = counter.count_text(f"{sentences[place][1]}\n") + 1
        if tokens <= room:
            kept.append(place)
            room -= tokens
    text = "\n".join(sentences[place][1] for place in sorted(kept))
    return [messages[0], {"role": "user", "content": text}, messages[-1]]


def _token_budget(messages: Sequence[Message], budget: int, counter: TokenCounter) -> list[Any]:
    index = MessageIndex(list(messages), counter=counter)
    run_sync(index, presets.token_budget(budget))
    return index.messages()


def _adaptive(messages: Sequence[Message], budget: int, counter: TokenCounter) -> list[Any]:
    session = CompactionSession(presets.adaptive(budget), counter=counter, window=budget)
    view: list[Any] = []
    for count, message in enumerate(messages, 1):
        if message["role"] == "user":
            view = session.view_sync(messages[:count])
    return view


SHORTENINGS: Final[Mapping[str, Shortening]] = {
    "newest messages": _newest,
    "rare sentences": rare_sentences,
    "token_budget": _token_budget,
    "adaptive": _adaptive,
}
"""The ways to bring a conversation down to a budget, by name; `adaptive` in a session with that window."""


@attrs.frozen
class TalkOutcome:
    """One conversation under one subject.

    Args:
        kind: The kind of conversation.
        subject: The subject.
        whole: Share of the evidence that is sent word for word.
        words: Share of which the rare words are in one message that is sent.
        view: What is sent.
        talk: The conversation.
    """

    kind: str
    subject: str
    whole: float
    words: float
    view: Sequence[Any]
    talk: Talk


def talk_outcomes(each_kind: int, seed: int, counter: TokenCounter) -> Iterator[TalkOutcome]:
    """Yield what each subject keeps of so many conversations of each kind."""
    for kind in KINDS:
        for number in range(each_kind):
            said = talk(kind, seed + number)
            budget = int(MessageIndex(list(said.messages), counter=counter).tokens * SHARE)
            for name, shorten in SHORTENINGS.items():
                view = shorten(said.messages, budget, counter)
                sentences = [sentence for _, sentence in said.evidence]
                whole = Finder(sentences).found(view)
                words = sum(_has_words(sentence, view) for sentence in sentences)
                yield TalkOutcome(kind, name, len(whole) / len(sentences), words / len(sentences), view, said)


def _has_words(sentence: str, view: Iterable[Any]) -> bool:
    """Return whether a message has all words of a sentence that have five letters or a digit."""
    words = [word for word in _WORD.findall(sentence.casefold()) if len(word) > 4 or any(map(str.isdigit, word))]
    return any(all(word in text for word in words) for each in view if (text := text_of(each).casefold()))

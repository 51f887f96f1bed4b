"""Talk: which sentences of a conversation between people are likely to be asked about later, and how they are written.

Where few messages are calls and results, what was said is all there is, and most of it is neither a rule nor a decision. A
sentence is worth its room if it has many words that few other sentences have and names somebody, and more so if its whole
message does; if it answers a question; if it is short, but not of a few words. How much each counts was learned from half of
three public sets of conversations: ``python -m benchmarks.retention.dialogue FOLDER --fit``. Only the kinds depend on a
language. What one speaker says is written on one line as long as nothing that others say is chosen in between.
"""

from __future__ import annotations

import math
import re
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import mul
from typing import Final

import attrs

from ...messages import Message
from .classifier import KINDS, PER_MILLE, classifier, words_of
from .facts import FactSource
from .reading import Reading
from .sentences import both_ends, sentences, sentences_in
from .statements import ASSISTANT

_LONGEST: Final = 400
_FRAME_CHARS: Final = 4  # of a line of a list
_LEAST_CHARS: Final = 12
_LEAST_WORDS: Final = 4
_MOST_NAMES: Final = 4
_LEAST_SPEAKING: Final = 0.5  # of the user's messages, so that the words before a colon are names of speakers
_MOST_MISSES: Final = 12
_ASKING: Final = ("?", "？", "؟")
_ENDS: Final = (*_ASKING, ".", "!", "…", "。", "！", "।")
SPEAKER: Final = re.compile(r"([^\W\d_][^:!?\n]{0,40}): ")
_WORD: Final = re.compile(r"[^\W\d_]+")
_DIGIT: Final = re.compile(r"\d")
_LOGARITHMS: Final = tuple([math.log((share + 2) / PER_MILLE) for share in range(PER_MILLE + 1)])
_FACT, _REQUEST, _QUESTION = map(KINDS.index, ("fact", "request", "question"))

WEIGHTS: Final = {
    "density": 11.99,
    "names": 0.38,
    "number": 1.53,
    "asks": -1.52,
    "brief": -7.32,
    "length": -4.4,
    "answers": 2.4,
    "follows": 1.63,
    "its message: density": 76.35,
    "its message: names": 2.64,
    "its message: number": 1.89,
    "its message: fact": 1.24,
    "its message: request": -0.42,
    "its message: question": -0.13,
    "its message: sentences": -0.31,
    "length of the message before": 0.02,
    "length of the message after": 0.23,
    "asked after": 0.99,
}
"""The weight of each feature of a sentence, see `_features`."""


@attrs.frozen
class Sentence:
    """A sentence of a conversation.

    Args:
        text: The words, as said.
        statement: The words of the user's statement that it is, or is a part of; the same words for others.
        place: The number of its message, from 1, and the share of the message that stands before it.
        lead: What it stands under, as in a `Statement`.
        by: Who said it, if not the user.
        features: Its features, in the order of `WEIGHTS`.
    """

    text: str
    statement: str
    place: float
    lead: str
    by: str
    features: tuple[float, ...] = ()

    @property
    def worth(self) -> float:
        """How likely it is asked about, for its length; only for comparing sentences of one conversation."""
        return round(sum(weight * value for weight, value in zip(WEIGHTS.values(), self.features, strict=True)), 9)


def talk_in(messages: Sequence[Message], read: Callable[[Message], Reading], redact: Callable[[str], str]) -> list[Sentence]:
    """Return the sentences of users and assistants, in order; O(characters)."""
    said = [found for place, each in enumerate(messages, 1) if (found := _said(each, place, read, redact))]
    said = _by_speakers(said)
    words = [[{word for word in words_of(each.text) if word[0].isalnum()} for each in message] for message in said]
    frequency = Counter(word for message in words for own in message for word in own)
    total = sum(map(len, said))
    most = math.log(1 + total)
    rarity = {word: math.log(total / count) / most for word, count in frequency.items()}
    own: list[list[tuple[float, ...]]] = []
    for message, sets in zip(said, words, strict=True):
        rare = [math.fsum(map(rarity.__getitem__, each)) for each in sets]  # the same in any order
        own.append([_own_features(each, rare) for each, rare in zip(message, rare, strict=True)])
    return [each for place in range(len(said)) for each in _with_features(said, own, place)]


def _said(message: Message, place: int, read: Callable[[Message], Reading], redact: Callable[[str], str]) -> list[Sentence]:
    if message.role == "assistant":
        text = redact(both_ends(message.text))
        return [Sentence(each, each, place, "", ASSISTANT) for each in sentences(text) if len(each) <= _LONGEST]
    reading = read(message)
    if reading.source is not FactSource.USER:
        return []
    return [
        Sentence(part, each.text, place, each.lead, each.by) for each in reading.statements for part in sentences_in(each.text)
    ]


def _by_speakers(said: list[list[Sentence]]) -> list[list[Sentence]]:
    """Return the messages, with the speakers' names apart where the user's messages begin with them."""
    users = [message for message in said if message[0].by != ASSISTANT]
    named = [match for message in users if (match := SPEAKER.match(message[0].text))]
    if len(named) < max(2, _LEAST_SPEAKING * len(users)):
        return said
    return [_of_speaker(message) for message in said]


def _of_speaker(message: list[Sentence]) -> list[Sentence]:
    first = message[0]
    match = None if first.by == ASSISTANT else SPEAKER.match(first.text)
    if match is None:
        return message
    rest = attrs.evolve(first, text=first.text[match.end() :])
    return [attrs.evolve(each, by=each.by or match[1]) for each in (rest, *message[1:])]


def _own_features(sentence: Sentence, rarity: float) -> tuple[float, ...]:
    """Return the features that a sentence has by itself, and the logarithms of the probabilities of three kinds."""
    text = sentence.text
    words = _WORD.findall(text)
    shares = classifier().probabilities(text)
    return (
        rarity / (_LEAST_CHARS + len(text)),
        min(sum(word[0].isupper() and len(word) > 1 for word in words[1:]), _MOST_NAMES),
        _DIGIT.search(text) is not None,
        text.endswith(_ASKING),
        len(words) < _LEAST_WORDS,
        math.log(_FRAME_CHARS + len(text) + len(sentence.by)),
        *[_LOGARITHMS[shares[kind]] for kind in (_FACT, _REQUEST, _QUESTION)],
    )


def _with_features(said: list[list[Sentence]], own: list[list[tuple[float, ...]]], place: int) -> Iterator[Sentence]:
    """Yield the sentences of a message with their features: their own, those of the message and of the ones beside it."""
    sizes = [len(each.text) for each in said[place]]
    means = [sum(map(mul, sizes, column)) / sum(sizes) for column in zip(*own[place], strict=True)]
    before = said[place - 1] if place else []
    after = said[place + 1] if place + 1 < len(said) else []
    asked = bool(before) and before[-1].text.endswith(_ASKING)
    around = (
        *[means[column] for column in _OF_MESSAGE],
        math.log(len(sizes)),
        math.log(1 + sum(len(each.text) for each in before)),
        math.log(1 + sum(len(each.text) for each in after)),
        any(each.text.endswith(_ASKING) for each in after),
    )
    for number, (each, features) in enumerate(zip(said[place], own[place], strict=True)):
        answers, follows = asked and not number, asked and number > 0
        yield attrs.evolve(each, place=each.place + number / len(sizes), features=(*features[:_OWN], answers, follows, *around))


_OWN: Final = 6
_OF_MESSAGE: Final = (0, 1, 2, 6, 7, 8)


# ---------------------------------------------------------------- lines


def lines_of(talk: Sequence[Sentence], order: Iterable[int], tokens: float, count: Callable[[str], int]) -> list[Sentence]:
    """Return lines, the most important first: each is a sentence, or those of one speaker with no other line between them.

    Args:
        talk: The sentences.
        order: The places of those that may be chosen, the most important first.
        tokens: Tokens of all lines, >= 0.
        count: Counts the tokens of a text.
    """
    ranks = _chosen(talk, order, tokens, count)
    lines: list[list[int]] = []
    chars = 0
    for place in sorted(ranks):
        chars += 1 + len(talk[place].text)
        if lines and chars <= _LONGEST and _on_one_line(talk[lines[-1][-1]], talk[place]):
            lines[-1].append(place)
        else:
            lines.append([place])
            chars = len(talk[place].text)
    lines.sort(key=lambda line: min(map(ranks.__getitem__, line)))
    return [attrs.evolve(talk[line[0]], text=" ".join([talk[place].text for place in line])) for line in lines]


def _chosen(talk: Sequence[Sentence], order: Iterable[int], tokens: float, count: Callable[[str], int]) -> dict[int, int]:
    """Return the places of the sentences that fit, each with its rank."""
    frames = {by: count(f"- {by}:" if by else "-") for by in {each.by for each in talk}}

    def beginning(one: Sentence | None, other: Sentence | None) -> int:
        return 0 if other is None or _on_one_line(one, other) else frames[other.by]

    ranks: dict[int, int] = {}
    chosen: list[int] = []  # the same places in order
    misses = 0
    for place in order:
        at = bisect(chosen, place)
        before, each = talk[chosen[at - 1]] if at else None, talk[place]
        after = talk[chosen[at]] if at < len(chosen) else None
        cost = count(f" {each.text}\n") + beginning(before, each) + beginning(each, after) - beginning(before, after)
        if cost <= tokens:
            misses = 0
            tokens -= cost
            chosen.insert(at, place)
            ranks[place] = len(ranks)
        elif (misses := misses + 1) > _MOST_MISSES:
            break
    return ranks


def _on_one_line(one: Sentence | None, other: Sentence) -> bool:
    """Whether a sentence continues the line of another one; only after an end mark, so that a line can be split again."""
    return one is not None and (one.by, one.lead) == (other.by, other.lead) and one.text.endswith(_ENDS)

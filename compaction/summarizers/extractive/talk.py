"""Talk: which sentences of a conversation between people are likely to be asked about later, and how they are written.

Where few messages are calls and results, what was said is all there is, and most of it is neither a rule nor a decision. What
makes a sentence worth its room:

- it has many words that few other sentences have, a number, or somebody's name;
- so has its whole message, which also may state a fact;
- it answers a question;
- it is short, but has more than a few words.

How much each counts depends on the shape of the conversation, and was learned from half of three public sets: ``python -m
benchmarks.retention.dialogue FOLDER --fit``. Only the kinds depend on a language. What one speaker says in one message is on
one line. Between people, that of several messages is, too, as long as nothing of others is chosen in between.
"""

from __future__ import annotations

import math
import re
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from operator import mul
from statistics import median
from typing import Final

import attrs

from ...messages import Message
from .classifier import PER_MILLE, classifier, words_of
from .facts import FactSource
from .lines import SPEAKER, are_named
from .reading import Reading, Redact
from .sentences import ASKING, ENDS, LONGEST_SENTENCE, both_ends, ends_in, joint, sentences, sentences_in
from .statements import ASSISTANT, QUOTED

_FRAME_CHARS: Final = 4  # of a line of a list
_LEAST_CHARS: Final = 12
_LEAST_WORDS: Final = 4
_MOST_NAMES: Final = 4
_USUAL_CHARS: Final = 60  # of a message
_MOST_MISSES: Final = 12
APART: Final = " / "
"""The sign between two messages of one speaker on one line, and behind a sentence without an end mark."""

_WORD: Final = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]|[^\W\d_]+")  # of scripts without blanks, a character
_DIGIT: Final = re.compile(r"\d")

WEIGHTS: Final = {
    "density": (18.05, -48.01, -5.87),
    "names": (2.1, -2.93, -1.35),
    "number": (7.97, -3.39, -5.23),
    "brief": (-4.88, -5.67, -2.9),
    "length": (-2.95, -1.55, -0.47),
    "answers": (3.11, -2.22, -0.13),
    "follows": (1.55, -2.64, 0.71),
    "its message: density": (67.44, -46.95, 38.83),
    "its message: names": (2.55, -2.53, -0.09),
    "its message: number": (6.15, -10.8, -3.54),
    "its message: fact": (0.64, -0.38, 0.32),
    "its message: request": (0.02, -0.39, -0.15),
    "its message: question": (-0.48, 0.64, -0.05),
}
"""Of each feature of a sentence (w, a, b): it counts w + a * unevenness + b * length of the conversation, see `shape_of`.

So a number weighs 7.97 - 3.39 = 4.58 in a meeting whose shape is (1, 1, 0), and 7.97 + 5.23 = 13.2 in a chat whose shape is
(1, 0, -1). Those of "its message" are means over all its sentences.
"""


@attrs.frozen
class Utterance:
    """A sentence of a conversation."""

    text: str
    statement: str  # the text of the `Statement` that it belongs to; of an assistant, its own text
    place: float  # the number of its message, from 1, and the share of the message that stands before it
    lead: str  # what it stands under, as in a `Statement`
    by: str  # who said it, if not the user
    score: float = 0.0  # how likely it is asked about, for its length; only for comparing sentences of one conversation
    features: tuple[float, ...] = ()  # its features, in the order of `WEIGHTS`


def talk_in(messages: Sequence[Message], read: Callable[[Message], Reading], redact: Redact) -> list[Utterance]:
    """Return the sentences of users and assistants, in order; O(characters)."""
    said = _by_speakers([found for place, each in enumerate(messages, 1) if (found := _said(each, place, read, redact))])
    frequency = Counter(word for turn in said for each in turn for word in _words_in(each))
    total = sum(map(len, said))
    rarity = {word: math.log(total / count) / math.log(1 + total) for word, count in frequency.items()}
    shape = shape_of([_chars(turn) for turn in said])
    weights = {name: sum(map(mul, shape, weights)) for name, weights in WEIGHTS.items()}
    weighed: list[Utterance] = []
    is_asked = False  # whether the message before ends with a question
    for turn in said:
        for number, (each, features) in enumerate(zip(turn, _features(turn, rarity, is_asked=is_asked), strict=True)):
            values = tuple([features[name] for name in weights])
            score = round(sum(map(mul, weights.values(), values)), 9)
            weighed.append(attrs.evolve(each, place=each.place + number / len(turn), score=score, features=values))
        is_asked = ends_in(turn[-1].text, ASKING)
    return weighed


def shape_of(sizes: Sequence[int]) -> tuple[float, float, float]:
    """Return 1, how uneven the messages of a conversation are, and how long, given their characters.

    Friends who chat write even messages. In a meeting, a few speak at length, and most only agree.
    """
    if not sizes:
        return 1.0, 0.0, 0.0
    mean = sum(sizes) / len(sizes)
    return 1.0, math.log(mean / median(sizes)), math.log(mean / _USUAL_CHARS)


def _said(message: Message, place: int, read: Callable[[Message], Reading], redact: Redact) -> list[Utterance]:
    if message.role == "assistant":
        text = redact(both_ends(message.text))
        return [Utterance(each, each, place, "", ASSISTANT) for each in sentences(text) if len(each) <= LONGEST_SENTENCE]
    reading = read(message)
    said = reading.statements if reading.source is FactSource.USER else ()
    return [Utterance(part, each.text, place, each.lead, each.by) for each in said for part in sentences_in(each.text)]


def _by_speakers(said: list[list[Utterance]]) -> list[list[Utterance]]:
    """Return the messages, with the speakers' names apart where the user's messages begin with them."""
    users = [sentences for sentences in said if sentences[0].by != ASSISTANT]
    if are_named([sentences[0].text for sentences in users]):
        for sentences in users:
            if name := SPEAKER.match(sentences[0].text):
                sentences[0] = attrs.evolve(sentences[0], text=sentences[0].text[name.end() :])
                sentences[:] = [attrs.evolve(each, by=each.by or name[1]) for each in sentences]
    return said


def _words_in(sentence: Utterance) -> set[str]:
    return {word for word in words_of(sentence.text) if word[0].isalnum()}


def _chars(turn: Iterable[Utterance]) -> int:
    return sum(len(each.text) for each in turn)


def _features(turn: Sequence[Utterance], rarity: Mapping[str, float], *, is_asked: bool) -> Iterator[dict[str, float]]:
    """Yield the features of each sentence of a message by their names in `WEIGHTS`."""
    every = [_own_features(each, rarity) for each in turn]
    weights = [len(each.text) / _chars(turn) for each in turn]
    means = {f"its message: {name}": sum(map(mul, weights, [own[name] for own in every])) for name in every[0]}
    for number, own in enumerate(every):
        yield {**own, **means, "answers": is_asked and number == 0, "follows": is_asked and number > 0}


def _own_features(sentence: Utterance, rarity: Mapping[str, float]) -> dict[str, float]:
    """Return the features of a sentence itself, and the logarithms of the probabilities of three kinds, by name."""
    text = sentence.text
    said = _WORD.findall(text)
    names = sum(word[0].isupper() and len(word) > 1 for word in said[1:])
    shares = classifier().probabilities(text)
    return {
        "density": math.fsum(rarity[word] for word in _words_in(sentence)) / (_LEAST_CHARS + len(text)),  # in whatever order
        "names": min(names, _MOST_NAMES),
        "number": _DIGIT.search(text) is not None,
        "brief": len(said) < _LEAST_WORDS,
        "length": math.log(_FRAME_CHARS + len(text) + len(sentence.by)),
        **{kind: math.log((shares[kind] + 2) / PER_MILLE) for kind in ("fact", "request", "question")},
    }


_SHORT_MESSAGE: Final = 240  # characters of a message whose sentences stay together


def whole_messages(talk: Sequence[Utterance]) -> Iterator[list[Utterance]]:
    """Yield the sentences of each short message of the user, if all are the user's own and stand under the same line."""
    for _, said in groupby(talk, lambda each: int(each.place)):
        found = [*said]
        one_voice = len({(each.by, each.lead) for each in found}) == 1 and found[0].by not in (ASSISTANT, QUOTED)
        if len(found) > 1 and one_voice and _chars(found) <= _SHORT_MESSAGE:
            yield found


def as_one(said: Sequence[Utterance]) -> Utterance:
    """Return the sentences of a message as one, with their mean score."""
    text = said[0].text
    for before, each in pairwise(said):
        is_closed = before.statement == each.statement or ends_in(before.text, ENDS)
        text += f"{joint(before.text) if is_closed else APART}{each.text}"
    score = sum(each.score * len(each.text) for each in said) / _chars(said)
    return attrs.evolve(said[0], text=text, score=score)


# ---------------------------------------------------------------- lines


def chosen(
    talk: Sequence[Utterance], order: Iterable[int], tokens: float, count: Callable[[str], int], *, across: bool = True
) -> dict[int, int]:
    """Return the places of the sentences that fit into lines of so many tokens, each with its rank in ``order``.

    A sentence costs its text and the beginning of its line, unless there is one already; if it divides a line, the second half
    needs a beginning, too. Here "Bring soup." costs 13 + 6 for "- Ann:", "OK." 5 + 5 for "- Bo:", and "We leave at 9." 16: the
    line of "Bring soup." begins with it then, and has its beginning already.

    >>> said = [("Ann", "We leave at 9."), ("Ann", "Bring soup."), ("Bo", "OK.")]
    >>> talk = [Utterance(text, text, place, "", by) for place, (by, text) in zip((1, 1.5, 2), said)]
    >>> chosen(talk, [1, 2, 0], 45, len), chosen(talk, [1, 2, 0], 44, len)
    ({1: 0, 2: 1, 0: 2}, {1: 0, 2: 1})
    """
    frames = {by: count(f"- {by}:" if by else "-") for by in {each.by for each in talk}}
    apart = count(APART.rstrip())

    def beginning(before: Utterance | None, each: Utterance | None) -> int:
        if each is None:
            return 0
        sign = _between(before, each, across=across)
        return frames[each.by] if sign is None else apart if sign == APART else 0

    ranks: dict[int, int] = {}
    places: list[int] = []  # the same, in the order of the talk
    misses = 0
    for place in order:
        at = bisect(places, place)
        before, each = talk[places[at - 1]] if at else None, talk[place]
        after = talk[places[at]] if at < len(places) else None
        text = count(f" {each.text}\n")
        cost = text + beginning(before, each) + beginning(each, after) - beginning(before, after)
        if cost <= tokens:
            misses = 0
            tokens -= cost
            places.insert(at, place)
            ranks[place] = len(ranks)
        elif (misses := misses + 1) > _MOST_MISSES:
            break
    return ranks


def lines_of(talk: Sequence[Utterance], ranks: Mapping[int, int], *, across: bool = True) -> list[Utterance]:
    """Return the lines of chosen sentences, the most important first; one speaker's are on one with no other between them.

    Without ``across``, a line holds sentences of one message only.
    """
    lines: list[list[int]] = []
    texts: list[str] = []
    for place in sorted(ranks):
        each = talk[place]
        sign = _between(talk[lines[-1][-1]], each, across=across) if lines else None
        if sign is not None and len(texts[-1]) + len(sign) + len(each.text) <= LONGEST_SENTENCE:
            lines[-1].append(place)
            texts[-1] += sign + each.text
        else:
            lines.append([place])
            texts.append(each.text)
    order = sorted(range(len(lines)), key=lambda at: min(map(ranks.__getitem__, lines[at])))
    return [attrs.evolve(talk[lines[at][0]], text=texts[at]) for at in order]


def _between(one: Utterance | None, other: Utterance, *, across: bool) -> str | None:
    """Return what stands between two sentences on one line; ``None`` if the second one needs a line of its own.

    A blank stands behind a sentence of the same message that ends in an end mark, so that the line can be split again.
    """
    if one is None or (one.by, one.lead) != (other.by, other.lead):
        return None
    if int(one.place) == int(other.place) and ends_in(one.text, ENDS) and ends_in(other.text, ENDS):
        return joint(one.text)
    return APART if across and APART not in one.text + other.text else None

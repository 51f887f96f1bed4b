"""Talk: which sentences of a conversation between people are likely to be asked about later.

Where few messages are calls and results, what was said is all there is, and most of it is neither a rule nor a decision. A
sentence is worth its room if it has many words that few other sentences have, names somebody, answers a question, or is of some
kinds. How much each counts was learned from half of a public set of conversations:
``python -m benchmarks.retention.dialogue FOLDER --fit``. Only the kinds depend on a language.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

import attrs

from ...messages import Message
from .classifier import PER_MILLE, classifier, words_of
from .facts import FactSource
from .reading import Reading
from .sentences import both_ends, sentences
from .statements import ASSISTANT

_LONGEST: Final = 400
_FRAME_CHARS: Final = 14  # of a line of a list
_LENGTH_POWER: Final = 0.8
_LEAST_CHARS: Final = 12
_MOST_NAMES: Final = 4
_ASKING: Final = ("?", "？", "؟")
_CALLING: Final = ("!", "！")
_SPEAKER: Final = re.compile(r"[^\W\d_][^:.!?\n]{0,40}: ")
_WORD: Final = re.compile(r"[^\W\d_]+")
_DIGIT: Final = re.compile(r"\d")
_LOGARITHMS: Final = tuple([math.log((share + 2) / PER_MILLE) for share in range(PER_MILLE + 1)])

WEIGHTS: Final = {
    "length": 0.38,
    "density": 26.26,
    "names": 0.43,
    "answers": 0.54,
    "follows": 0.96,
    "asks": 0.36,
    "number": 0.63,
    "exclaims": -0.01,
    "rule": -0.02,
    "prohibition": -0.12,
    "preference": -0.03,
    "fact": 0.06,
    "value": -0.03,
    "change": 0.1,
    "decision": 0.14,
    "task": 0.1,
    "request": -0.07,
    "question": -0.05,
    "others_rule": 0.03,
    "hypothetical": -0.06,
    "small_talk": 0.1,
    "acknowledgement": -0.02,
    "program": 0.0,
}
"""The weight of each feature of a sentence, see `_features`."""

BIAS: Final = -4.36


@attrs.frozen
class Sentence:
    """A sentence of a conversation, or a statement of the user with the sentence that it refers to.

    Args:
        text: The words, as said.
        place: The number of its message, from 1.
        lead: What it stands under, as in a `Statement`.
        by: Who said it, if not the user.
        features: Its features, in the order of `WEIGHTS`.
    """

    text: str
    place: int
    lead: str
    by: str
    features: tuple[float, ...] = ()

    @property
    def worth(self) -> float:
        """The probability that it is asked about, for its length; a long one is not worth less by all of that."""
        score = BIAS + sum(weight * value for weight, value in zip(WEIGHTS.values(), self.features, strict=True))
        return round(1 / (1 + math.exp(-score)) / math.pow(_FRAME_CHARS + len(self.text), _LENGTH_POWER), 9)


def talk_in(messages: Sequence[Message], read: Callable[[Message], Reading], redact: Callable[[str], str]) -> list[Sentence]:
    """Return the sentences of users and assistants, in order; O(characters)."""
    found: list[tuple[Sentence, bool, bool]] = []
    asked = False
    for place, message in enumerate(messages, 1):
        said = _said(message, place, read, redact)
        found += [(each, asked and not number, asked and number > 0) for number, each in enumerate(said)]
        asked = said[-1].text.endswith(_ASKING) if said else asked
    words = [sorted({word for word in words_of(each.text) if word[0].isalnum()}) for each, _, _ in found]
    frequency = Counter(word for each in words for word in each)
    most = math.log(1 + len(found))
    rarity = {word: math.log(len(found) / count) / most for word, count in frequency.items()}
    return [
        attrs.evolve(each, features=_features(each.text, sum(rarity[word] for word in own), answers, follows))
        for (each, answers, follows), own in zip(found, words, strict=True)
    ]


def _said(message: Message, place: int, read: Callable[[Message], Reading], redact: Callable[[str], str]) -> list[Sentence]:
    if message.role == "assistant":
        text = redact(both_ends(message.text))
        return [Sentence(each, place, "", ASSISTANT) for each in sentences(text) if len(each) <= _LONGEST]
    reading = read(message)
    if reading.source is not FactSource.USER:
        return []
    return [Sentence(each.text, place, each.lead, each.by) for each in reading.statements]


def _features(text: str, rarity: float, answers: bool, follows: bool) -> tuple[float, ...]:
    """Return the features of a sentence, given how rare its words are, and whether a question stands before it.

    The last ones are the logarithms of the probabilities of the kinds.
    """
    names = sum(word[0].isupper() and len(word) > 1 for word in _WORD.findall(_SPEAKER.sub("", text, count=1))[1:])
    return (
        math.log(1 + len(text)),
        rarity / (_LEAST_CHARS + len(text)),
        min(names, _MOST_NAMES),
        answers,
        follows,
        text.endswith(_ASKING),
        _DIGIT.search(text) is not None,
        text.endswith(_CALLING),
        *[_LOGARITHMS[share] for share in classifier().probabilities(text)],
    )

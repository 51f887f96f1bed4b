"""The kind of a sentence: a rule, a fact, a question, small talk and so on, by the learned `classifier`.

What makes a sentence one of these is learned from examples (``benchmarks/statements``), whose report measures the thresholds
below. Who says it is decided by `voices`, and what it is about by `subjects`.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from .classifier import PER_MILLE, classifier
from .lines import UNSPACED
from .sentences import ASKING, LONGEST_SENTENCE, WORDS
from .subjects import is_eastern, points_back, stems_of, values_of


class Kind(float, enum.Enum):
    """The kind of a statement; the value is its weight: where there is little room, heavier statements are chosen first."""

    RULE = 5.0  # a lasting order to the assistant
    DUTY = 4.8  # a quoted order, or an obligation that may be somebody else's
    PREFERENCE = 4.2
    DECISION = 4.1
    TASK = 4.0
    VALUE = 3.9  # states a value, such as a date or a number
    FACT = 3.8  # surely a circumstance that is worth remembering, such as an allergy
    PLAIN = 3.0  # any other plain statement
    SMALL_TALK = 1.6  # small talk that sounds like a rule
    REQUEST = 1.2
    FINDING = 1.0  # a value that the assistant tells
    ANSWER = 0.9  # something that the assistant says it did
    QUESTION = 0.6
    SUPPOSED = 0.5  # only assumed
    REMARK = 0.2  # only acknowledges


@attrs.frozen
class Statement:
    """A sentence, with the sentence before it if it refers to that one; or an item of a list, or a row of a table."""

    text: str
    kind: Kind
    stems: frozenset[str] = frozenset()  # the beginnings of its words, by which two statements about one thing are recognized
    values: tuple[tuple[str, str], ...] = ()  # the values in it, each with its shape
    changes: bool = False  # whether it says that something changed
    is_request: bool = False  # whether it asks something, or for something now
    refers: bool = False  # whether it cannot be understood without the sentence before it
    worth: int = PER_MILLE  # the probability that it is worth keeping, in per mille
    lead: str = ""  # what it stands under: a heading, the words before a list, a tag, the header of a table; ``""`` without one
    by: str = ""  # who said it, if it may not have been the user; ``""`` for the user


# The learned kinds, and the kind of statement that each stands for: those that are worth keeping, and the others.
_KEPT: Final = {
    "rule": Kind.RULE,
    "prohibition": Kind.RULE,
    "preference": Kind.PREFERENCE,
    "fact": Kind.FACT,
    "value": Kind.VALUE,
    "change": Kind.VALUE,
    "decision": Kind.DECISION,
    "task": Kind.TASK,
}
_OTHERS: Final = {
    "request": Kind.REQUEST,
    "question": Kind.QUESTION,
    "others_rule": Kind.SMALL_TALK,
    "hypothetical": Kind.SUPPOSED,
    "small_talk": Kind.SMALL_TALK,
    "acknowledgement": Kind.REMARK,
}
_RULES: Final = ("rule", "prohibition")
_TOLD: Final = ("fact", "value", "change", "program")  # a row of figures looks like a program's
_WANTED: Final = (*_RULES, "preference", "task", "request")
_REQUESTED: Final = ("request", "task", "question")
_VALUED: Final = (Kind.FACT, Kind.PLAIN, Kind.TASK, Kind.SMALL_TALK, Kind.REMARK)  # with a number or an id, it states a value

# Thresholds, in per mille. A higher one lets fewer orders of others stand under the rules, and fewer rules of the user.
_SURE: Final = 825  # of a rule, so that it stands among the rules
_PRINTED: Final = 970  # of a program: from here on, a sentence does not stand among the rules, and demands nothing
_LIKELY: Final = 350  # of a rule, so that it is not left out before others
_WORTH_KEEPING: Final = 250  # then it is a plain statement at least
_SURELY_WORTH: Final = 850  # then it may be more, such as a decision
_CHANGES: Final = 250
_HALF: Final = 500
_ASKED: Final = 150  # of a question without a mark

_LABEL: Final = 12  # characters of a label, as in "Important: ...", which announces nobody else's rule
_EASTERN_LABEL: Final = 5
_QUOTED: Final = re.compile(  # words in quotation marks, two or more
    r"[“„\"«「『]\w[^“”„\"«»「」『』\n]{6,150}\s[^“”„\"«»「」『』\n]{0,150}[”“\"»」』]"
)
_REFERRING: Final = (Kind.RULE, Kind.DUTY, Kind.REQUEST)
_LAID_DOWN: Final = (Kind.RULE, Kind.DUTY, Kind.DECISION)
_FEW_STEMS: Final = 2  # of such a sentence: it has hardly an object, as "never again" and "but not above it"
_AROUND_WORD: Final = "\"'“”‘’„«»().,:;!?¡¿…*_"
_PERSON: Final = re.compile(r"저는|제가|우리|나는|내가|제 |세요|我|咱|您|你|请|私|僕|あなた|ください")


def judge(sentence: str) -> Statement:
    """Return a sentence that a user said as a statement, with all that its words tell; O(characters).

    >>> judge("Never touch prod.db.").kind.name, judge("The sign by the door: you must never touch prod.db.").kind.name
    ('RULE', 'DUTY')
    """
    read = sentence[:LONGEST_SENTENCE]
    said = _QUOTED.sub(" ", read)
    shares = classifier().probabilities(said, is_said=True)
    worth, values, stems, points = _share(shares, _KEPT), values_of(read), stems_of(read), points_back(read)
    kind = _kind(shares, worth, has_value=bool(values))
    head, colon, _ = said.replace("：", ": ").partition(": ")
    is_long = len(head) > (_EASTERN_LABEL if is_eastern(head) else _LABEL)
    if kind is Kind.RULE and colon and is_long and not demands(head):  # it announces a rule that may be somebody else's
        kind = Kind.DUTY
    change = shares["change"] * (PER_MILLE - shares["program"]) // PER_MILLE  # a program's times look like new values
    changes = change >= _CHANGES or (kind is Kind.VALUE and len(stems) <= 1 and points)
    is_request = _share(shares, _REQUESTED) >= _HALF
    has_no_object = kind in _LAID_DOWN and (len(stems) <= _FEW_STEMS or read[:1].islower())
    refers = has_no_object or (kind in _REFERRING and points)
    return Statement(sentence, kind, stems, values, changes, is_request, refers, worth)


def _kind(shares: Mapping[str, int], worth: int, *, has_value: bool) -> Kind:
    """Return the kind of a sentence with these probabilities.

    | probability, in per mille | kind | with a number or an id in it |
    |---|---|---|
    | of a rule: from `_SURE`, if it does not look printed; from `_LIKELY` | rule; duty | the same |
    | that it is worth keeping: from `_SURELY_WORTH` | the likeliest that is | a value, if that is a fact or a task |
    | from `_WORTH_KEEPING` | plain | a value |
    | below | the likeliest that is not | a value, if that is small talk or a remark |
    """
    rule = _share(shares, _RULES)
    if rule >= _LIKELY:
        return Kind.RULE if rule >= _SURE and shares["program"] < _PRINTED else Kind.DUTY
    if worth >= _SURELY_WORTH:
        kind = _KEPT[max(_KEPT, key=shares.__getitem__)]
    elif worth >= _WORTH_KEEPING:
        kind = Kind.PLAIN
    else:
        kind = _OTHERS[max(_OTHERS, key=shares.__getitem__)]
    return Kind.VALUE if has_value and kind in _VALUED else kind


def _share(shares: Mapping[str, int], kinds: Iterable[str]) -> int:
    return sum(shares[kind] for kind in kinds)


def demands(sentence: str) -> bool:
    """Whether a sentence says what the user wants of the assistant."""
    shares = classifier().probabilities(sentence, is_said=True)
    return _share(shares, _WANTED) >= _HALF and shares["program"] < _PRINTED


def concerns_user(sentence: str) -> bool:
    """Whether a sentence speaks of what the user wants or does."""
    return names_person(sentence) or demands(sentence)


def kind_of_assistant(sentence: str) -> Kind | None:
    """Return the kind of a sentence of the assistant: a decision, a value, or something that it did; ``None`` for any other."""
    has_value, is_own = bool(values_of(sentence)), names_person(sentence) or is_eastern(sentence)
    if not (has_value or is_own):
        return None
    shares = classifier().probabilities(sentence)
    if is_own and shares["decision"] >= _HALF:
        return Kind.DECISION
    if has_value and _share(shares, _TOLD) >= _HALF:
        return Kind.FINDING
    likeliest = max(shares, key=shares.__getitem__)
    return Kind.ANSWER if is_own and likeliest not in ("question", "hypothetical") else None


def asks(sentence: str) -> bool:
    """Whether a sentence asks something, by its mark or, where a script needs none, by its kind.

    >>> asks("Is it late?"), asks("紙は白にしますか。"), asks("我读了日历。")
    (True, True, False)
    """
    if any(mark in sentence for mark in ASKING):
        return True
    return UNSPACED.search(sentence) is not None and classifier().probabilities(sentence)["question"] >= _ASKED


def names_person(sentence: str) -> bool:
    """Whether a sentence names the first or the second person."""
    words = [word.strip(_AROUND_WORD) for word in sentence.lower().replace("’", "'").split()]
    return not WORDS["persons"].isdisjoint(words) or (not sentence.isascii() and _PERSON.search(sentence) is not None)

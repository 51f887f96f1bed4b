"""Scores: the kind of a sentence, by the learned `classifier`, and the words by which two sentences are about one thing.

`judge` is the only place that judges words; splitting a message and telling who speaks is `speech`.
"""

from __future__ import annotations

import enum
import re
from typing import Final

import attrs

from .classifier import KINDS, PER_MILLE, classifier
from .sentences import values_of, word_set

_LONGEST: Final = 400


class Kind(float, enum.Enum):
    """The kind of a statement; the value is its weight: where there is little room, heavier statements are chosen first."""

    RULE = 5.0  # a lasting order to the assistant
    DUTY = 4.8  # a quoted order, or an obligation that may be somebody else's
    PREFERENCE = 4.2
    DECISION = 4.1
    TASK = 4.0
    VALUE = 3.9  # states a value, such as a date or a number
    PLAIN = 3.0  # any other plain statement
    SMALL_TALK = 1.6  # small talk that sounds like a rule
    REQUEST = 1.2
    ANSWER = 0.9  # something that the assistant says it did
    QUESTION = 0.6
    SUPPOSED = 0.5  # only assumed
    REMARK = 0.2  # only acknowledges


@attrs.frozen
class Judgement:
    """The judgement of a sentence."""

    kind: Kind
    stems: frozenset[str]  # the beginnings of its words, by which two statements about one thing are recognized
    changes: bool  # whether it says that something changed
    refers: bool  # whether it cannot be understood without the sentence before it
    worth: int  # the probability that it is worth keeping, in per mille


_KINDS: Final = {
    "rule": Kind.RULE,
    "prohibition": Kind.RULE,
    "preference": Kind.PREFERENCE,
    "fact": Kind.PLAIN,
    "value": Kind.VALUE,
    "change": Kind.VALUE,
    "decision": Kind.DECISION,
    "task": Kind.TASK,
    "request": Kind.REQUEST,
    "question": Kind.QUESTION,
    "others_rule": Kind.SMALL_TALK,
    "hypothetical": Kind.SUPPOSED,
    "small_talk": Kind.SMALL_TALK,
    "acknowledgement": Kind.REMARK,
    "program": Kind.PLAIN,
}
_KIND_OF: Final = tuple([_KINDS[kind] for kind in KINDS])
_RULE, _PROHIBITION, _CHANGE, _DECISION, _PROGRAM = map(KINDS.index, ("rule", "prohibition", "change", "decision", "program"))
_KEPT: Final = tuple(map(KINDS.index, ("rule", "prohibition", "preference", "fact", "value", "change", "decision", "task")))
_OTHERS: Final = tuple([place for place in range(_PROGRAM) if place not in _KEPT])
_WANTED: Final = tuple(map(KINDS.index, ("rule", "prohibition", "preference", "task", "request")))
_SURE: Final = 790  # per mille: of a rule, so that it stands among the rules
_LIKELY: Final = 350  # of a rule, so that it is not left out before others
_WORTH_KEEPING: Final = 250  # per mille: then it is a plain fact at least
_SURELY_WORTH: Final = 850  # then it may be more, such as a decision
_CHANGES: Final = 250
_HALF: Final = 500


def judge(sentence: str) -> Judgement:
    """Return the judgement of a sentence that a user said; O(characters).

    Args:
        sentence: The sentence.

    >>> judge("Never touch prod.db.").kind.name, judge("The sign at the door: never touch prod.db.").kind.name
    ('RULE', 'DUTY')
    """
    read = sentence[:_LONGEST]
    said = _QUOTED.sub(" ", read)
    shares = classifier().probabilities(said)
    worth = PER_MILLE * sum(shares[place] for place in _KEPT) // _people(shares)
    kind = _kind(shares, worth, has_value=bool(values_of(read)))
    if kind is Kind.RULE and is_announced(said):
        kind = Kind.DUTY
    stems = _stems(read)
    points = is_eastern(read) or _PRONOUN.search(read) is not None  # Korean may leave out the pronoun
    changes = shares[_CHANGE] >= _CHANGES or (kind is Kind.VALUE and len(stems) <= 1 and points)
    return Judgement(kind, stems, changes, kind in _REFERRING and points, worth)


def _kind(shares: list[int], worth: int, *, has_value: bool) -> Kind:
    """Return the kind of a sentence with these probabilities."""
    rule = shares[_RULE] + shares[_PROHIBITION]
    if rule * PER_MILLE >= _SURE * _people(shares):
        return Kind.RULE
    if rule * PER_MILLE >= _LIKELY * _people(shares):
        return Kind.DUTY
    if _WORTH_KEEPING <= worth < _SURELY_WORTH:
        return Kind.VALUE if has_value else Kind.PLAIN
    kind = _KIND_OF[max(_KEPT if worth >= _SURELY_WORTH else _OTHERS, key=shares.__getitem__)]
    return Kind.VALUE if has_value and kind in (Kind.PLAIN, Kind.TASK, Kind.SMALL_TALK, Kind.REMARK) else kind


def _people(shares: list[int]) -> int:
    """Return the probability that a person wrote a sentence, at least 1 per mille.

    What a program printed is recognized by its shape, and does not come here. So all shares are compared with this one.
    """
    return max(1, PER_MILLE - shares[_PROGRAM])


def demands(sentence: str) -> bool:
    """Whether a sentence says what the user wants of the assistant."""
    shares = classifier().probabilities(sentence)
    return PER_MILLE * sum(shares[place] for place in _WANTED) >= _HALF * _people(shares)


def concerns_user(sentence: str) -> bool:
    """Whether a sentence speaks of what the user wants or does."""
    return names_person(sentence) or demands(sentence)


def is_announced(sentence: str) -> bool:
    """Whether words before a colon, which demand nothing themselves, announce the rule: it may be somebody else's."""
    head, colon, _ = sentence.replace("：", ": ").partition(": ")
    return bool(colon) and len(head) > (_EASTERN_LABEL if is_eastern(head) else _LABEL) and not demands(head)


def is_eastern(text: str) -> bool:
    """Whether a text has Korean or Chinese characters."""
    return not text.isascii() and _EASTERN.search(text) is not None


def kind_of_assistant(sentence: str) -> Kind | None:
    """Return the kind of a sentence of the assistant: a decision, or something that it did; ``None`` for any other."""
    if not (names_person(sentence) or is_eastern(sentence)):
        return None
    shares = classifier().probabilities(sentence)
    if shares[_DECISION] >= _HALF:
        return Kind.DECISION
    return None if _KIND_OF[shares.index(max(shares))] in (Kind.QUESTION, Kind.SUPPOSED) else Kind.ANSWER


_LABEL: Final = 12
_EASTERN_LABEL: Final = 5
_EASTERN: Final = re.compile(r"[가-힣\u4e00-\u9fff]")
_PERSONS: Final = word_set(  # the first and the second person
    "i i'm i've i'd i'll we we're we've we'll let's you your yours me my mine our us please ich wir mir mich mein meine meinen "
    "meiner uns unser unsere du dir dich dein deine bitte je j'ai nous mon ma mes vous tu yo nosotros mi mis tú usted "
    "ustedes io noi mio mia eu nós meu minha você vocês ik wij mijn ons jij jullie ja my mój moja ty я мы мой моя "
    "мне ты вы вам "
    "ben biz benim bizim sen siz أنا نحن मैं हम मेरा मेरी मेरे"
)
_PERSON: Final = re.compile(r"저는|제가|우리|나는|내가|제 |세요|我|咱|您|你|请|私|僕|あなた|ください")


def names_person(sentence: str) -> bool:
    """Whether a sentence names the first or the second person."""
    words = sentence.lower().replace("’", "'").split()
    return not _PERSONS.isdisjoint(words) or (not sentence.isascii() and _PERSON.search(sentence) is not None)


_REFERRING: Final = (Kind.RULE, Kind.DUTY, Kind.REQUEST)
_PRONOUN: Final = re.compile(
    r"\b(?:its?|they|them|their|this|that|these|those|there|he|him|his|she|her|one|ones|same|such|it['’]s|"
    r"es|ihn|ihm|sie|ihr\w*|das|dies\w*|den|dem|der|die|dort|da\w*|deren|dessen|hier\w*|solche\w*)\b",
    re.IGNORECASE,
)
_PRONOUN_FIRST: Final = re.compile(
    r"(?:it|they|this|that|these|those|he|she|es|er|sie|dies\w*|il|elle|ils|elles|ça|esto|eso|ella|isso|ele|ela)\b",
    re.IGNORECASE,
)
_NAME: Final = re.compile(r"(?:[A-Za-z]+-?)?\d+(?:-\d+)*")
_HANGUL: Final = re.compile(r"[가-힣]{2,}")
_HAN: Final = re.compile(r"[\u4e00-\u9fff]{2,}")
_WORD: Final = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_ASCII_WORD: Final = re.compile(r"[A-Za-z]+(?:['-][A-Za-z]+)*")
_QUOTED: Final = re.compile(r"[“„\"«「『]\w[^“”„\"«»「」『』\n]{6,150}\s[^“”„\"«»「」『』\n]{0,150}[”“\"»」』]")
_CLOSED: Final = word_set(
    "the a an and but or if when while as since because that this these those there here it he she they we i you my "
    "your our their his her its in on at of to from for with by about under over after before until once so then also "
    "just even what which who how why where is are was were be been has have had do does did will would can could "
    "should may might must not let's there's that's it's one some many most more both either der die das ein eine und "
    "oder aber wenn als weil dass es er sie wir ich du man mein meine unser unsere sein ihr ihre im in am an auf aus "
    "bei mit nach von vor zu zum zur für über unter um durch bis seit so dann auch noch schon nur was wer wie wo warum "
    "ist sind war waren hat haben wird werden kann können"
)
_UNITS: Final = word_set(
    "perce proze 퍼센 百分 分之 port numbe numme versi code date time uhr minut secon sekun euro dolla hours stund month "
    "monat 포트 번호 시간 现在 编号 端口 时间 itis there 다시 이제 now is at few too 太少 太多 少了 多了 好了"
)


def is_name(sentence: str, value: str) -> bool:
    """Whether a number or an id names what a sentence is about: the one of "Invoice 4411 is paid", not of "The port is 8080".

    It follows the first word that says something, and more such words follow. Not judged in Korean and Chinese.
    """
    before, _, after = sentence.partition(value)
    *articles, label = _WORD.findall(before) or [""]
    return (
        _NAME.fullmatch(value) is not None
        and not is_eastern(sentence)
        and before.rstrip().endswith(label)
        and [*map(_is_closed, [*articles, label])] == [True] * len(articles) + [False]
        and not all(map(_is_closed, _WORD.findall(after)))
    )


def names_nothing(sentence: str) -> bool:
    """Whether the first word of a sentence is a pronoun, so that only the one before it tells what it is about."""
    return _PRONOUN_FIRST.match(sentence) is not None


def _is_closed(word: str) -> bool:
    return len(word) < 2 or word.lower() in _CLOSED


def _stems(sentence: str) -> frozenset[str]:
    """Return the beginnings of the words that may name a thing."""
    words = (_ASCII_WORD if sentence.isascii() else _WORD).findall(sentence)
    if sentence.isascii():
        found = {word.replace("y", "i")[:5] for word in {*map(str.lower, words)} - _CLOSED if len(word) > 2}
        return frozenset(found - _UNITS or found)
    found = {stem for word in words if len(word) > 1 and (lower := word.lower()) not in _CLOSED for stem in _of_word(lower)}
    for run in _HAN.findall(sentence):
        found.update(run[at : at + 2] for at in range(len(run) - 1))
    return frozenset(found - _UNITS or found)


def _of_word(word: str) -> tuple[str, ...]:
    if word.isascii() or not _EASTERN.search(word):
        return (word.replace("y", "i")[:5],) if len(word) > 2 else ()
    return (word[:2],) if _HANGUL.match(word) else ()

"""Scores: the kind of a sentence, by its function words in English, German, Korean and Chinese.

`score` is the only place that judges words; splitting a message and telling who speaks is `speech`.
"""

from __future__ import annotations

import enum
import re
from typing import Final

import attrs

from .cues import (
    ASKS,
    CHANGE,
    DECIDES,
    FAILS,
    IF,
    LASTING,
    MINE,
    MUST,
    NOT,
    OPEN,
    OTHERS,
    PAST,
    SAYS,
    SCOPE,
    SELF,
    THANKS,
    WANT,
    WHY,
    YOU,
    cues_of,
    words_of,
)
from .orders import (
    CLOSED,
    EASTERN,
    KOREAN_ORDER,
    is_announced,
    is_command,
    is_eastern,
    words_in,
)
from .sentences import values_of

_LONGEST: Final = 400


class Kind(float, enum.Enum):
    """The kind of a statement; the value is its weight: where there is little room, heavier statements are chosen first."""

    RULE = 5.0  # a lasting order to the assistant
    DUTY = 4.8  # a quoted order, or an obligation that may be somebody else's
    PREFERENCE = 4.2
    DECISION = 4.1
    TASK = 4.0
    VALUE = 3.9  # states a value, such as a date or a number
    FACT = 3.0  # any other plain statement; not a fact of `facts`
    TALK = 1.6  # small talk that sounds like a rule
    REQUEST = 1.2
    ANSWER = 0.9  # something that the assistant says it did
    QUESTION = 0.6
    SUPPOSED = 0.5  # only assumed
    REMARK = 0.2  # only acknowledges


@attrs.frozen
class Judgement:
    """The judgement of a sentence.

    Args:
        kind: Its kind.
        stems: The beginnings of its words, by which two statements about one thing are recognized.
        changes: Whether it says that something changed.
        refers: Whether it cannot be understood without the sentence before it.
    """

    kind: Kind
    stems: frozenset[str]
    changes: bool
    refers: bool


def score(sentence: str, *, is_own: bool = True) -> Judgement:
    """Return the judgement of a sentence that a user said; O(characters).

    Args:
        sentence: The sentence.
        is_own: Whether the words are surely the user's own. What may be somebody else's is no rule of the user.

    >>> score("Never touch prod.db.").kind.name, score("Never touch prod.db.", is_own=False).kind.name
    ('RULE', 'DUTY')
    """
    read = sentence[:_LONGEST]
    words = all_words = words_of(read)
    said = _QUOTED.sub(" ", read)
    if said != read:
        words = words_of(said)
    cues = cues_of(said, words)
    has_value = bool(values_of(read))
    kind = _kind(said, words, cues, has_value)
    if kind is Kind.RULE and (not is_own or is_announced(said) or _REPORTED.search(said)):
        kind = Kind.DUTY
    stems = _stems(read, all_words)
    points = is_eastern(read) or _PRONOUN.search(read) is not None  # Korean may leave out the pronoun
    changes = bool(cues & CHANGE) or (kind is Kind.VALUE and len(stems) <= 1 and points)
    return Judgement(kind, stems, changes, kind in _REFERRING and points)


def score_of_assistant(sentence: str) -> Kind | None:
    """Return the kind of a sentence of the assistant: a decision, or something that it did; ``None`` for any other."""
    cues = cues_of(sentence, words_of(sentence))
    if (cues & DECIDES and cues & (SELF | WHY)) or (cues & WHY and cues & SELF and _WILL.search(sentence)):
        return Kind.DECISION
    return Kind.ANSWER if cues & SELF and not cues & (IF | ASKS) else None


def reports_failure(text: str) -> bool:
    """Return whether a text of the assistant says that something failed."""
    return bool(cues_of(text, words_of(text)) & FAILS)


_REFERRING: Final = (Kind.RULE, Kind.DUTY, Kind.REQUEST)
_PRONOUN: Final = re.compile(
    r"\b(?:its?|they|them|their|this|that|these|those|there|he|him|his|she|her|one|ones|same|such|it['’]s|"
    r"es|ihn|ihm|sie|ihr\w*|das|dies\w*|den|dem|der|die|dort|da\w*|deren|dessen|hier\w*|solche\w*)\b",
    re.IGNORECASE,
)
_WILL: Final = re.compile(
    (
        r"\bI(?:['’]ll| will| used| use| took| take)\b|\bich\b.{0,400}\b(?:nehme|genommen|lese|nutze|verwende|setze)\b|"
        r"\b(?:nehme|lese|nutze|verwende|setze) ich\b|我用了?|我写"
    ),
    re.IGNORECASE,
)


_HANGUL: Final = re.compile(r"[가-힣]{2,}")
_HAN: Final = re.compile(r"[\u4e00-\u9fff]{2,}")


_UNITS: Final = words_in(
    "perce proze 퍼센 百分 分之 port numbe numme versi code date time uhr minut secon sekun euro dolla hours stund month "
    "monat 포트 번호 시간 现在 编号 端口 时间 itis there 다시 이제 now is at few too 太少 太多 少了 多了 好了"
)
_HONOURED: Final = re.compile(r"께서|께선|[님분](?:은|이|도|들은|들이) ")
_KOREAN_DUTY: Final = re.compile(
    r"(?:[야만] ?(?:해요?|합니다|하고요|돼요|됩니다|하셔야 해요|한다)|안 ?(?:돼요?|됩니다|된다)|곤란(?:합니다|해요))[.!\s]*$"
)
_UNWANTED: Final = re.compile(
    r"\b(?:I|we) (?:don['’]t|do not|never) want\b|\bwill ich\b.*\b(?:kein\w*|nicht|nie)\b|我不想", re.IGNORECASE
)
_CHINESE_GUESS: Final = re.compile(r"一定(?:是|很|会)|必须(?:承认|说)|不能不|不得不|不能再")
_CHINESE_ORDER: Final = re.compile(
    r"请|麻烦|务必|千万|不要|不许|不得|禁止|严禁|(?:^|[，,；;：:])(?:一定)?(?:别(?![提说笑人的问担怪急闹逗])|勿|避免|必须|只能|只用)"
)
_CHINESE_PLACE: Final = re.compile(r"在|[^，,；;：:]+[里上中](?:不许|不得|禁止|严禁|必须|不要|不能)|.{2,}(?:不许|不得|严禁)")
_TOLD: Final = re.compile(
    r"(?i:\b(?:please|kindly|bitte)\b|\byou(?:['’]re| are)? (?:\w+ )?(?:must|should|shall|ought|may|not|only|never|to)\b|"
    r"\b(?:want|like|expect|need) you\b)|"
    r"\b(?:Sie|[dD]u)\b.{0,200}\b(?:nicht|nie|niemals|nur|kein\w*|erst)\b|\b(?:nicht|nie|niemals|nur|kein\w*|erst)\b.{0,200}\b(?:Sie|du)\b"
)
_GENERAL: Final = re.compile(
    r"\byou (?:can|could|will|would) never\b|\byou (?:should|must|could) have (?:been|seen|heard|\w+ed)\b|"
    r"\bdu (?:kannst|willst|hättest|wirst) |\b(?:kannst|willst|hättest|wirst) du |"
    # words of a place or a time before the subject
    r"^\W*(?:in|at|on|back|where|during|around|im|in|am|auf|bei|beim|an|zu|dort|da|damals|früher)\b[^,]*\b(?:you|du|sie)\b",
    re.IGNORECASE,
)
_REPORTED: Final = re.compile(
    r", (?:(?:as|like|so|wie) (?!much|long|soon|far|little|well|möglich|lange|viel)[^,]{3,40}|"
    r"(?:I|we) (?:was |were )?(?:read|heard|saw|told)|"
    r"(?:habe|hab) ich (?:gelesen|gehört)|sagt\w* [^,]{2,30}|(?:ha){1,4}h?|lol|honestly|to be honest|(?:I )?(?:swear|tell you)|"
    r"imagine(?: that)?|would you believe it|funny \w+|right|innit|echt|ehrlich|stell dir vor|ne)[.!]*$"
)
_PERFECT: Final = re.compile(r"\bmust have \w+|\b(?:muss|müssen)\b.*\b(?:haben|sein)\b", re.IGNORECASE)
_KOREAN_QUESTION: Final = re.compile(r"(?:나요|(?<!니)까요|습니까)[.?\s]*$")


_QUOTED: Final = re.compile(r"[“„\"«「『]\w[^“”„\"«»「」『』\n]{6,150}\s[^“”„\"«»「」『』\n]{0,150}[”“\"»」』]")


def _kind(sentence: str, words: list[str], cues: int, has_value: bool) -> Kind:
    asks = sentence.rstrip().endswith(("?", "？"))
    asks = asks or (not sentence.isascii() and _KOREAN_QUESTION.search(sentence) is not None)
    if asks and cues & OPEN and cues & YOU:
        return Kind.TASK
    if cues & IF and (asks or not (cues & (YOU | WANT) or is_command(sentence, cues))):
        return Kind.SUPPOSED if asks or cues & SELF else Kind.FACT
    return Kind.QUESTION if asks else _kind_of_claim(sentence, words, cues, has_value)


def _kind_of_claim(sentence: str, words: list[str], cues: int, has_value: bool) -> Kind:
    if not has_value and _is_remark(sentence, words, cues):
        return Kind.REMARK
    if rule := _rule(sentence, words, cues):
        return rule
    if cues & OPEN and not cues & SAYS:
        return Kind.TASK if not has_value else Kind.VALUE
    if cues & DECIDES and cues & (SELF | WHY):
        return Kind.DECISION
    if cues & WANT and not cues & (OTHERS | SAYS | PAST) and (cues & (SELF | MINE) or _HANGUL.search(sentence)):
        return Kind.PREFERENCE
    if has_value:
        return Kind.VALUE
    if (cues & YOU and not cues & SAYS) or is_command(sentence, cues):
        return Kind.REQUEST
    return Kind.TALK if cues & (NOT | SCOPE | MUST | SAYS | THANKS) else Kind.FACT


def _is_remark(sentence: str, words: list[str], cues: int) -> bool:
    """Whether a sentence only acknowledges."""
    if cues & (MUST | NOT | WANT | OPEN | DECIDES):
        return False
    size = len(sentence) if is_eastern(sentence) else 5 * len([word for word in words if word.lower() not in CLOSED])
    return size <= (16 if cues & THANKS else 5)


def _rule(sentence: str, words: list[str], cues: int) -> Kind | None:
    """Return whether a sentence is a rule for the assistant or a duty, which may be somebody else's; ``None`` if neither."""
    if cues & SELF and _UNWANTED.search(sentence):
        return Kind.DUTY
    if not cues & (MUST | NOT | SCOPE | LASTING) or cues & SAYS:
        return None
    if is_eastern(sentence):
        return _eastern_rule(sentence, cues)
    command = is_command(sentence, cues)
    if cues & OTHERS and not command:
        return None
    if cues & YOU:
        told = cues & (NOT | SCOPE) and not cues & PAST and _TOLD.search(sentence) and not _GENERAL.search(sentence)
        if command or told:
            return Kind.RULE
        return Kind.DUTY if cues & (MUST | NOT) else None
    if cues & SELF:
        return None
    if command:
        return Kind.RULE
    return Kind.DUTY if cues & MUST and not cues & (PAST | OPEN) and not _PERFECT.search(sentence) else None


def _eastern_rule(sentence: str, cues: int) -> Kind | None:
    if _HANGUL.search(sentence):
        if KOREAN_ORDER.search(sentence):
            return Kind.DUTY if _HONOURED.search(sentence) else Kind.RULE
        duty = _KOREAN_DUTY.search(sentence) and not cues & (SELF | OTHERS | OPEN)
        return Kind.DUTY if duty else None
    if not cues & (MUST | NOT) or cues & (SELF | OTHERS | OPEN) or _CHINESE_GUESS.search(sentence):
        return None
    of_a_place = not cues & YOU and _CHINESE_PLACE.match(sentence)
    return Kind.RULE if _CHINESE_ORDER.search(sentence) and not of_a_place else Kind.DUTY


def _stems(sentence: str, words: list[str]) -> frozenset[str]:
    """Return the beginnings of the words that may name a thing."""
    if sentence.isascii():
        found = {word.replace("y", "i")[:5] for word in {*map(str.lower, words)} - CLOSED if len(word) > 2}
        return frozenset(found - _UNITS or found)
    found = {stem for word in words if len(word) > 1 and (lower := word.lower()) not in CLOSED for stem in _of_word(lower)}
    for run in _HAN.findall(sentence):
        found.update(run[at : at + 2] for at in range(len(run) - 1))
    return frozenset(found - _UNITS or found)


def _of_word(word: str) -> tuple[str, ...]:
    if word.isascii() or not EASTERN.search(word):
        return (word.replace("y", "i")[:5],) if len(word) > 2 else ()
    return (word[:2],) if _HANGUL.match(word) else ()

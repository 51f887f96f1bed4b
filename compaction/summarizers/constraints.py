"""What a user laid down: the sentences a summary must never lose, word for word.

A constraint is found by the words that state one, in English, Korean, Chinese and Japanese; a constraint in other words or
another language is not found, but the user's latest and first words are kept whatever they say. To find one too many costs a
line; to lose one can cost the work.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from .sentences import clipped, sentences

__all__ = ["constraints_in", "forbids", "is_strict", "latest_constraints"]

_LONGEST: Final = 400
_PASTED: Final = 4_000
_COMPARED: Final = 500
_ENGLISH: Final = re.compile(
    r"\b(?:must(?!\s+have\b)|mustn[’']?t|never|always|only|avoid|make\s+sure|be\s+sure\s+to|do\s+not|don[’']?t|may\s+not|"
    r"you\s+(?:should|cannot|can[’']?t|have\s+to|need\s+to)|should\s+(?:not|never|always|only|use)|shouldn[’']?t|"
    r"prefer(?:s|red|ably)?|instead|(?:I|we|it|they)\s+(?:\w+\s+)?need\s+to|needs\s+to|without|unless|no\s+(?:more|less)\s+than|"
    r"at\s+(?:most|least)|not\s+allowed|forbidden|prohibited|under\s+no\s+circumstances|from\s+now\s+on|stick\s+to|"
    r"remember\s+to|ensure|please\s+(?:keep|use|write|reply|answer|respond|leave|stay|follow|note|limit|include|exclude|stop|be))\b",
    re.IGNORECASE,
)
_OTHER: Final = re.compile(
    r"반드시|절대|항상|언제나|꼭 |금지|지 마|지마|말아|말고|말 것|하면 안|안 됩|안 돼|안됩|안돼|않도록|해야|되어야|여야 |"
    r"만 사용|만 써|만 쓰|만 수정|대신|선호|피해 ?주|피하|유지해|유지하|없이|이내로|이하로|이상이어야|부터는|"
    r"必须|必須|务必|務必|一定要|绝对|絕對|绝不|決不|永远|永遠|始终|始終|总是|總是|不要|不能|不可|不得|不许|不許|不应|不應|不准|禁止|切勿|"
    r"请勿|請勿|请用|請用|请使用|請使用|请保持|請保持|避免|确保|確保|只能|只用|只要求|仅限|僅限|优先|優先|尽量|盡量|改用|而不是|"
    r"至少|最多|不超过|不超過|以内|如果需要|"
    r"必ず|絶対|常に|しないで|ないでください|てはいけ|なければ|だけを|のみ|避けて|代わりに|優先して|以下に|以内に"
)
_ABOUT_THEMSELVES: Final = re.compile(
    r"\b(?:I|we|they|it|you|that|this)\s+(?:really\s+|still\s+|just\s+)?(?:do\s+not|don[’']?t|can[’']?t|cannot)\s+"
    r"(?:have|know|remember|think|see|understand|recall|mind|believe|get|find|figure|imagine|seem|wait|tell|care)\b"
    r"|\bdon[’']?t\s+(?:worry|mind)\b|\bI\s+should\s+(?:be|have)\b|\bcan[’']?t\s+(?:remember|find|recall|see|wait)\b",
    re.IGNORECASE,
)
_QUESTION: Final = re.compile(
    r"(?:should|do|does|did|is|are|was|were|have|has|what|why|how|when|where|which|who)\b", re.IGNORECASE
)
_REQUEST: Final = re.compile(
    r"\b(?:please|make\s+sure|ensure|must|never|always|only|avoid|instead|at\s+(?:least|most)|prefer\w*)\b", re.IGNORECASE
)
_STRICT: Final = re.compile(
    r"\b(?:must(?!\s+have\b)|mustn[’']?t|never|always|only|do\s+not|don[’']?t|avoid|make\s+sure|ensure|no\s+(?:more|less)\s+than|at\s+(?:most|least)|"
    r"without|forbidden|prohibited|not\s+allowed)\b"
    r"|반드시|절대|항상|금지|지 마|지마|말아|말고|안 됩|안 돼|必须|必須|务必|務必|绝|絕|不要|不能|不可|不得|禁止|只能|确保|確保|必ず|絶対",
    re.IGNORECASE,
)
_NUMBER: Final = re.compile(r"[$€£¥₩]?\d[\d.,:]*")
_WORD: Final = re.compile(r"[^\W\d_]+")
_CODE: Final = re.compile(
    r"^\s*(?:\d+[:|]|[{}<>$;@]|def |class |import |from \S+ import|return |raise |assert )|[;{}]\s*$|\w\(\w*\)|==|\w+\.\w+\("
)


def constraints_in(text: str) -> Iterator[str]:
    """The sentences of a user's text that lay something down, as they stand there; O(characters).

    Of a long text, such as a pasted document, only those that admit of no exception.

    >>> list(constraints_in("Book a flight. I don't have my ID. Never spend more than $300! 설정 파일은 절대 수정하지 마세요."))
    ['Never spend more than $300!', '설정 파일은 절대 수정하지 마세요.']
    """
    pasted = len(text) > _PASTED
    for sentence in sentences(text):
        if _states_one(sentence) and (not pasted or is_strict(sentence)):
            yield _around(sentence)


def _states_one(sentence: str) -> bool:
    if _CODE.search(sentence[:_LONGEST]):
        return False
    if _OTHER.search(sentence):
        return True
    if _ENGLISH.search(sentence) is None:
        return False
    if sentence.endswith("?") and (_QUESTION.match(sentence) or _REQUEST.search(sentence) is None):
        return False
    rest = _ABOUT_THEMSELVES.sub("", sentence)
    return _ENGLISH.search(rest) is not None


def _around(sentence: str) -> str:
    """The sentence, or of one too long the part around the words that state the constraint."""
    if len(sentence) <= _LONGEST:
        return sentence
    match = _OTHER.search(sentence) or _ENGLISH.search(sentence)
    start = max(0, match.start() - _LONGEST // 3) if match else 0
    return ("..." if start else "") + clipped(sentence[start:], _LONGEST - 3)


def is_strict(sentence: str) -> bool:
    """Whether a constraint admits of no exception: the words ``must``, ``never``, ``only`` and the like."""
    return _STRICT.search(sentence) is not None


def forbids(sentence: str) -> bool:
    """Whether a constraint says what must not be."""
    return _NEGATIVE.search(sentence) is not None


def latest_constraints(stated: Iterable[str]) -> list[str]:
    """Each constraint once, in the order stated: none that another holds word for word, and of two that differ in numbers the later.

    One that forbids something is never taken for a new value of another: both hold.

    >>> latest_constraints(["Use at most 4 workers.", "Never use port 80.", "Use at most 8 workers!", "Never use port 81."])
    ['Never use port 80.', 'Use at most 8 workers!', 'Never use port 81.']
    """
    known: dict[str, str] = {}
    for sentence in stated:
        key = _key(sentence)
        if known.get(key) is None or _words(known[key]) != _words(sentence):
            known.pop(key, None)
            known[key] = sentence
    sentences = list(known.values())
    if len(sentences) > _COMPARED:
        return sentences
    words = [_words(sentence) for sentence in sentences]
    return [each for each, own in zip(sentences, words, strict=True) if not any(own in other != own for other in words)]


def _words(sentence: str) -> str:
    return " ".join(re.findall(r"\w+", sentence)).casefold()


def _key(sentence: str) -> str:
    """What two statements share if the later one replaces the earlier."""
    template = _NUMBER.sub("0", sentence)
    if template == sentence or forbids(sentence) or len(_WORD.findall(template)) < 3:
        return _words(sentence)
    return _words(template)

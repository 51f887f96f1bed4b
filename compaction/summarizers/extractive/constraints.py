"""The user's constraints: sentences that a summary must keep word for word.

A constraint is found by typical words, in English, Korean, Chinese and Japanese. One in other words or another language is not
found, but the user's first and latest messages are kept whatever they say. A sentence too many costs a line, a lost constraint
can cost the work, so the list of words is long.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from .sentences import CUT, clipped, sentences

_LONGEST: Final = 400
_PASTED: Final = 4_000
_COMPARED: Final = 500
_STRICT: Final = re.compile(
    r"\b(?:must(?!\s+have\b)|mustn[’']?t|never|always|only|do\s+not|don[’']?t|avoid|make\s+sure|ensure|without|may\s+not|"
    r"(?:you|should)\s+(?:cannot|can[’']?t|not|never|always|only)|shouldn[’']?t|no\s+(?:more|less)\s+than|at\s+(?:most|least)|"
    r"forbidden|prohibited|not\s+allowed|under\s+no\s+circumstances)\b"
    r"|반드시|절대|항상|언제나|금지|지 ?마|말아|말고|말 것|하면 안|안 ?됩|안 ?돼|않도록|없이"
    r"|必须|必須|务必|務必|一定要|绝|絕|决不|決不|永远|永遠|始终|始終|总是|總是|不要|不能|不可|不得|不许|不許|不应|不應|不准|禁止|切勿|勿|"
    r"避免|确保|確保|只能|只用|仅限|僅限|必ず|絶対|常に|しないで|ないでください|てはいけ",
    re.IGNORECASE,
)
_OTHER: Final = re.compile(
    r"\b(?:prefer(?:s|red|ably)?|instead|(?:I|we|it|they|you)\s+(?:\w+\s+)?(?:need|have)\s+to|needs\s+to|you\s+should|should\s+use|"
    r"unless|from\s+now\s+on|stick\s+to|be\s+sure\s+to|remember\s+to|"
    r"please\s+(?:keep|use|write|reply|answer|respond|leave|stay|follow|note|limit|include|exclude|stop|be))\b"
    r"|꼭 |해야|되어야|만 사용|만 써|만 쓰|만 수정|대신|선호|피해 ?주|피하|유지해|유지하|이내로|이하로|이상이어야|부터는"
    r"|请用|請用|请使用|請使用|请保持|請保持|优先|優先|尽量|盡量|改用|而不是|至少|最多|不超过|不超過|以内"
    r"|なければ|だけを|のみ|避けて|代わりに|優先して|以下に",
    re.IGNORECASE,
)
_ABOUT_THEMSELVES: Final = re.compile(
    r"\b(?:I|we|they|it|you|that|this)\s+(?:really\s+|still\s+|just\s+)?(?:do\s+not|don[’']?t|can[’']?t|cannot)\s+"
    r"(?:have|know|remember|think|see|understand|recall|mind|believe|get|find|figure|imagine|seem|wait|tell|care)\b"
    r"|\bdon[’']?t\s+(?:worry|mind)\b|\bcan[’']?t\s+(?:remember|find|recall|see|wait)\b",
    re.IGNORECASE,
)
_QUESTION: Final = re.compile(
    r"(?:should|do|does|did|is|are|was|were|have|has|what|why|how|when|where|which|who)\b", re.IGNORECASE
)
_REQUEST: Final = re.compile(
    r"\b(?:please|make\s+sure|ensure|must|never|always|only|avoid|instead|at\s+(?:least|most)|prefer\w*)\b"
    r"|\b(?:can|could|would|will)\s+you\b.*\bwithout\b",
    re.IGNORECASE,
)
_NEGATIVE: Final = re.compile(
    r"\b(?:no|not|never|avoid|without|except|unless|forbidden|prohibited|cannot|\w+n[’']?t)\b"
    r"|절대|금지|마세요|마라|말|않|없이|안 |피|不|勿|禁|别|別|避免|ない|いけ|避け",
    re.IGNORECASE,
)
_CODE: Final = re.compile(
    r"\s*(?:\d+[:|]|[{}<>;]|(?:def|class|import|from|return|raise|assert|self|if|for)\b[^.!?]*[:=()]|[\w.]+\s*=)|.*[;{}]\s*$"
)
_NUMBER: Final = re.compile(r"[$€£¥₩]?\d[\d.,:]*")
_WORD: Final = re.compile(r"[^\W\d_]+")


def stated_constraints(text: str) -> Iterator[str]:
    """Yield the sentences of a user's text that state a constraint, word for word; O(characters).

    Of a long text, such as a pasted document, only the strict ones.

    >>> said = "Book a flight. I don't have my ID. Never spend more than $300! 설정 파일은 절대 수정하지 마세요."
    >>> list(stated_constraints(said))
    ['Never spend more than $300!', '설정 파일은 절대 수정하지 마세요.']
    """
    pasted = len(text) > _PASTED
    for sentence in sentences(text):
        if _states_one(sentence) and (not pasted or is_strict(sentence)):
            yield _around(sentence)


def _states_one(sentence: str) -> bool:
    if not is_strict(sentence) and _OTHER.search(sentence) is None:
        return False
    if _CODE.match(sentence[:_LONGEST]):
        return False
    if sentence.endswith("?") and (_QUESTION.match(sentence) or _REQUEST.search(sentence) is None):
        return False
    rest = _ABOUT_THEMSELVES.sub("", sentence)
    return rest == sentence or is_strict(rest) or _OTHER.search(rest) is not None


def _around(sentence: str) -> str:
    """Return the sentence, or, if it is too long, the part around the words that state the constraint."""
    if len(sentence) <= _LONGEST:
        return sentence
    match = _STRICT.search(sentence) or _OTHER.search(sentence)
    start = max(0, match.start() - _LONGEST // 3) if match else 0
    return (CUT if start else "") + clipped(sentence[start:], _LONGEST)


def is_strict(sentence: str) -> bool:
    """Return whether a constraint allows no exception: it holds ``must``, ``never``, ``only`` or the like."""
    return _STRICT.search(sentence) is not None


def forbids(sentence: str) -> bool:
    """Return whether a constraint forbids something."""
    return _NEGATIVE.search(sentence) is not None


def latest_constraints(stated: Iterable[str]) -> list[str]:
    """Return each constraint once, in the order stated; of two that differ only in numbers the later one.

    A constraint that is part of another one is left out. One that forbids something never replaces another.

    >>> latest_constraints(["Use at most 4 workers.", "Never use port 80.", "Use at most 8 workers!", "Never use port 81."])
    ['Never use port 80.', 'Use at most 8 workers!', 'Never use port 81.']
    """
    known: dict[str, str] = {}
    for sentence in stated:
        key = _key(sentence)
        if key not in known or _words(known[key]) != _words(sentence):
            known.pop(key, None)
            known[key] = sentence
    latest = list(known.values())
    if len(latest) > _COMPARED:
        return latest
    return [each for each in latest if not any(each in other and each != other for other in latest)]


def _words(sentence: str) -> str:
    return " ".join(re.findall(r"\w+", sentence)).casefold()


def _key(sentence: str) -> str:
    """Return a key that two statements share if the later one replaces the earlier."""
    template = _NUMBER.sub("0", sentence)
    if template == sentence or forbids(sentence) or len(_WORD.findall(template)) < 3:
        return _words(sentence)
    return _words(template)

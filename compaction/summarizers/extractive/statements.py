"""Statements about the work: decisions, next steps, and finished items, found by typical words.

The sentences are quoted word for word. English, Korean, Chinese and Japanese are known; in other languages a digest has no such
quotations, but still the facts, the calls and the user's words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from .facts import facts_in
from .sentences import sentences

_LONGEST: Final = 240
_SHORTEST: Final = 12
_DECISION: Final = re.compile(
    r"\b(?:decided|decision|chose|choose|chosen|opted|going with|go with|we(?:['’]ll| will| should) use|I(?:['’]ll| will) use|"
    r"use \S+ instead|instead of|rather than|root cause|the fix is|turns out|because|the reason|"
    r"approach is|settled on|switch(?:ed|ing)? to)\b"
    r"|결정|하기로|선택|대신|원인은|때문|확정"
    r"|决定|決定|选择|選擇|采用|採用|改用|原因是|因为|因為|确认|確認|方案|ことにし|選択|採用|原因",
    re.IGNORECASE,
)
_NEXT: Final = re.compile(
    r"\b(?:next,? (?:I|we|step)|next step|then (?:I|we) (?:will|should|need)|I(?:['’]ll| will) now|still (?:need|have) to|"
    r"remaining|to do|todo|after that|we need to|I need to|let['’]?s|now (?:I|we)(?:['’]ll| will| need))\b"
    r"|다음으로|다음 단계|이제|남은|하겠습니다|해야"
    r"|接下来|接下來|下一步|然后我|然後我|还需要|還需要|我将|我將|剩下|次に|これから",
    re.IGNORECASE,
)
_FINISHED: Final = re.compile(
    r"\b(?:done|finished|completed?|fixed|resolved|solved|implemented|works now|now (?:works|passes)|pass(?:es|ed)?|merged|"
    r"deployed|succeeded|successful(?:ly)?)\b"
    r"|완료|끝났|해결|고쳤|수정했|통과|成功|完成|已修复|已修復|解决了|解決|修好|搞定|通过了|終わ|完了|直し",
    re.IGNORECASE,
)
_UNFINISHED: Final = re.compile(
    r"\b(?:not|isn['’]t|hasn['’]t|once|when|until|if|before|will be|to be)\b|않|못|아직|未|没|沒|还|還|まだ", re.IGNORECASE
)
_WORD: Final = re.compile(r"[^\W_]{3,}")


def decisions_in(text: str) -> Iterator[str]:
    """Yield the sentences that state a decision, a choice or a reason; O(characters).

    >>> list(decisions_in("I read it all. I'll use SQLite instead of Redis, it needs no server."))
    ["I'll use SQLite instead of Redis, it needs no server."]
    """
    return _matching(text, _DECISION)


def next_steps_in(text: str) -> Iterator[str]:
    """Yield the sentences that state a next step; O(characters)."""
    return _matching(text, _NEXT)


def _matching(text: str, pattern: re.Pattern[str]) -> Iterator[str]:
    if pattern.search(text) is None:
        return
    for sentence in sentences(text):
        if _SHORTEST <= len(sentence) <= _LONGEST and pattern.search(sentence):
            yield sentence


def last_sentence(text: str) -> str:
    """Return the last sentence of a text; empty if it has none."""
    last = ""
    for sentence in sentences(text):
        if any(mark.isalnum() for mark in sentence):
            last = sentence
    return last


def finishes(sentence: str, item: str) -> bool:
    """Return whether a sentence says that an item of work is finished: it holds such a word, and most of the item's words.

    >>> finishes("The login test in auth.py is fixed now.", "Fixing the login test in auth.py")
    True
    >>> finishes("The build is done.", "Fixing the login test in auth.py")
    False
    """
    if _FINISHED.search(sentence) is None or _UNFINISHED.search(sentence):
        return False
    facts = facts_in(item)
    if facts:
        return all(fact in sentence for fact in facts)
    words = {word.casefold()[:5] for word in _WORD.findall(item)}
    said = {word.casefold()[:5] for word in _WORD.findall(sentence)}
    return bool(words) and len(words & said) >= 0.6 * len(words)

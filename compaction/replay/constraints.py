"""User constraints: the sentences in which a user says what must, must never or may only be done."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import attrs

__all__ = ["UserConstraint", "user_constraints_in"]

_SENTENCE: Final = re.compile(r"[^\n.!?。！？]*(?:[.!?](?=\S)[^\n.!?。！？]*)*[.!?。！？]?")
_INSTRUCTS: Final = re.compile(
    r"\b(?:must|never|always|only|do not|don['’]t|cannot|can['’]t|make sure|ensure|required?|forbidden|at (?:most|least)"
    r"|no more than|without|avoid|prefer|instead of)\b"
    r"|반드시|절대|항상|하지 ?마|말아|금지|必须|不要|绝不|总是|禁止|必ず|決して|しないで",
    re.IGNORECASE,
)
_SHORTEST: Final = 12
_LONGEST: Final = 300


@attrs.frozen
class UserConstraint:
    """One instruction of the user.

    Args:
        text: The sentence, with runs of white space as single blanks.
        ordinal: The message that states it.
    """

    text: str
    ordinal: int


def user_constraints_in(text: str, ordinal: int) -> Iterator[UserConstraint]:
    r"""Yield the instructions in a user's text; O(characters).

    >>> [each.text for each in user_constraints_in("Fix v1.2 first. Never touch prod.db!\nThanks", 3)]
    ['Never touch prod.db!']
    """
    for match in _SENTENCE.finditer(text):
        sentence = " ".join(match[0].split())
        if _SHORTEST <= len(sentence) <= _LONGEST and _INSTRUCTS.search(sentence):
            yield UserConstraint(sentence, ordinal)

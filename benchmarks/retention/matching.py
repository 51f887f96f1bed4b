"""Finds words in a text whatever the case, the quotation marks, the inflection and the separators of thousands."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

import attrs

Group: TypeAlias = tuple[str, ...]
"""Words of which one is enough."""

_QUOTES: Final = dict.fromkeys(map(ord, "\"'`*“”„‟‘’‚‛«»‹›「」『』《》〈〉"))
_THOUSANDS: Final = re.compile(r"(?<![\d.,])(\d{1,3})((?:[.,]\d{3})+)(?![\d])(?![.,]\d)")
_SPACE: Final = re.compile(r"\s+")
_CJK: Final = re.compile(r"[\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_LETTER: Final = "a-z0-9\u00df-\u024f"
_BULLET: Final = re.compile(r"\s*(?:[-+•·]|\d{1,3}[.)])\s")


@lru_cache(maxsize=200_000)
def normalised(text: str) -> str:
    """Return a text without the differences that do not count.

    >>> normalised("The  “cap” is 12,500")
    'the cap is 12500'
    """
    plain = unicodedata.normalize("NFKC", text).casefold().translate(_QUOTES)
    plain = _THOUSANDS.sub(lambda found: found[1] + re.sub("[.,]", "", found[2]), plain)
    return _SPACE.sub(" ", plain).strip()


@attrs.frozen
class Passage:
    """A piece of text whose words belong together: a message that was not changed, or one line of any other.

    Args:
        text: The normalised text.
        message: Place of its message in what is sent.
        original: Place of its message in the conversation; ``None`` if it is not one of it.
        section: The normalised heading above it, in a message that is not one of the conversation.
    """

    text: str
    message: int
    original: int | None = None
    section: str = ""

    def has(self, group: Group) -> bool:
        """Return whether one of the words is in the passage."""
        return any(_is_in(word, self.text) for word in group)

    def has_all(self, groups: Iterable[Group]) -> bool:
        """Return whether each group is in the passage."""
        return all(map(self.has, groups))


def holds(passages: Iterable[Passage], groups: Sequence[Group]) -> bool:
    """Return whether one passage has every group."""
    return any(passage.has_all(groups) for passage in passages)


def text_passages(text: str) -> list[str]:
    """Return the lines of a text, each with the indented lines after it that do not begin with a bullet."""
    found: list[str] = []
    for line in text.splitlines():
        if found and line[:1].isspace() and line.strip() and found[-1] and not _BULLET.match(line):
            found[-1] += " " + line.strip()
        else:
            found.append(line.strip())
    return [each for each in found if each]


@lru_cache(maxsize=200_000)
def _is_in(word: str, text: str) -> bool:
    plain = normalised(word)
    if _CJK.search(plain):
        return plain.replace(" ", "") in _squeezed(text)
    return plain in text and _pattern(plain).search(text) is not None


@lru_cache(maxsize=50_000)
def _squeezed(text: str) -> str:
    return text.replace(" ", "")


@lru_cache(maxsize=50_000)
def _pattern(word: str) -> re.Pattern[str]:
    """Return a pattern for a word at the beginning of a word; numbers and short words must also end there."""
    start = rf"(?<![{_LETTER}])(?<!\d[.,:/-])" if word[0].isdigit() else rf"(?<![{_LETTER}])"
    whole = word[-1].isdigit() or len(word) <= 3
    end = rf"(?![{_LETTER}])(?![.,:/-]\d)" if whole else ""
    return re.compile(start + re.escape(word) + end)

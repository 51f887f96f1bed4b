"""The subject of a sentence: its values, and the words by which two sentences are about one thing.

Words are compared by their beginnings, without those that name nothing: articles, pronouns, and words for the value itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from .sentences import WORDS

_EASTERN: Final = re.compile(r"[가-힣\u4e00-\u9fff]")
_VALUE: Final = re.compile(r"(?<![A-Za-z0-9_.])(?:[A-Za-z_-]{0,40}\d[A-Za-z0-9_.,:/-]*|[0-9a-f]{7,}(?![A-Za-z0-9_]))")
_HAS_VALUE: Final = re.compile(r"\d|[a-f]{7}")
_DIGITS: Final = re.compile(r"\d+")
_LETTERS: Final = re.compile(r"[A-Za-z]+")
_HANGUL: Final = re.compile(r"[가-힣]{2,}")
_HAN: Final = re.compile(r"[\u4e00-\u9fff]{2,}")
_WORD: Final = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_PLAIN_WORD: Final = re.compile(r"[a-z]+(?:['-][a-z]+)*")  # the same in an ASCII text in small letters, in half the time
_NAME: Final = re.compile(r"(?:[A-Za-z]+-?)?\d+(?:-\d+)*")  # "4411", "BX-1008"
_QUANTITY: Final = re.compile(r"v?\d+(?:[.,:/T-]\d+)*[A-Za-z]{0,4}")  # "1,900", "14:35", "16GB", "v2.1"; not "web01", "48a1"
_INITIALS: Final = re.compile(r"(?<![\w.])(?<!^)[A-Z]{1,2}(?![\w'’])")
_PRONOUN: Final = re.compile(rf"\b(?:{'|'.join(sorted(WORDS['pronouns']))})\b".replace("*", r"\w*"), re.IGNORECASE)
_PRONOUNS: Final = frozenset(word for word in WORDS["pronouns"] if not word.endswith("*"))
_BEGINNINGS: Final = tuple(word[:-1] for word in WORDS["pronouns"] if word.endswith("*"))
_RUN: Final = re.compile(r"\w+")
_PRONOUN_FIRST: Final = re.compile(rf"(?:{'|'.join(sorted(WORDS['first_pronouns']))})\b".replace("*", r"\w*"), re.IGNORECASE)


def is_eastern(text: str) -> bool:
    """Whether a text has Korean or Chinese characters."""
    return not text.isascii() and _EASTERN.search(text) is not None


def values_of(sentence: str) -> tuple[tuple[str, str], ...]:
    """Return the values of a sentence, such as numbers and ids, each with its shape: digits and letters count as one.

    >>> values_of("Rooms 12 and 14 cost $1,900 from 2026-05-03.")
    (('0', '12'), ('0', '14'), ('0', '1,900'), ('0-0-0', '2026-05-03'))
    """
    if _HAS_VALUE.search(sentence) is None:
        return ()
    found = [match.rstrip(".,:/-") for match in _VALUE.findall(sentence)]
    return tuple([(_shape_of(value), value) for value in found])


def has_value(sentence: str) -> bool:
    """Whether a sentence has any of `values_of`."""
    return _HAS_VALUE.search(sentence) is not None and _VALUE.search(sentence) is not None


def _shape_of(value: str) -> str:
    if value.isascii() and value.isdigit():  # most are
        return "x" if len(value) >= 7 else "0"
    if value.isalnum() and not value.isalpha() and len(value) >= (7 if value.isdigit() else 6):
        return "x"  # an id: "XEHM4B", "4417720"
    return _LETTERS.sub("a", _DIGITS.sub("0", value.replace(",", "")))


def _is_closed(word: str) -> bool:
    """Whether a word names nothing."""
    return len(word) < 2 or word.lower() in WORDS["closed"]


def stems_of(sentence: str) -> frozenset[str]:
    """Return the beginnings of the words that may name a thing.

    >>> sorted(stems_of("The harbour ferries sail at 14:35.")), sorted(stems_of("六点关门。"))
    (['ferri', 'harbo', 'sail'], ['六点', '关门', '点关'])
    """
    words = _PLAIN_WORD.findall(sentence.lower()) if sentence.isascii() else map(str.lower, _WORD.findall(sentence))
    found = _beginnings({*words} - WORDS["closed"])
    return frozenset(found - _UNITS or found)


def _beginnings(words: Iterable[str]) -> set[str]:
    """Return the first five letters of each word, the first two of a Korean one, and all pairs of Chinese characters."""
    found = set[str]()
    for word in words:
        if word.isascii():
            if len(word) > 2:
                found.add(word.replace("y", "i")[:5])
        elif is_eastern(word):
            found.update(run[at : at + 2] for run in _HAN.findall(word) for at in range(len(run) - 1))
            if _HANGUL.match(word):
                found.add(word[:2])
        elif len(word) > 2:
            found.add(word.replace("y", "i")[:5])
    return found


_UNITS: Final = _beginnings(WORDS["units"])


def initials_of(sentence: str) -> frozenset[str]:
    """Return the words of one or two capitals, which name a thing but are not stems: "Room B", "the VAT in DE"."""
    return frozenset(_INITIALS.findall(sentence)) - {"I"}


def points_back(sentence: str) -> bool:
    """Whether a sentence may mean something that the one before it names; Korean and Chinese may leave out the pronoun."""
    if not sentence.isascii():
        return is_eastern(sentence) or _PRONOUN.search(sentence) is not None
    words = {*_RUN.findall(sentence.lower())}  # in a third of the time of the expression
    return not _PRONOUNS.isdisjoint(words) or any(word.startswith(_BEGINNINGS) for word in words)


def is_quantity(value: str) -> bool:
    """Whether a value is a number, a date, a time, an amount or a version; any other one with letters names a thing.

    >>> [value for value in ("1,900", "14:35", "30s", "v2.1", "web01", "orders_23", "48a1", "XEHM4B") if is_quantity(value)]
    ['1,900', '14:35', '30s', 'v2.1']
    """
    return _QUANTITY.fullmatch(value) is not None


def is_name(sentence: str, value: str) -> bool:
    """Whether a number or an id names what a sentence is about: the one of "Invoice 4411 is paid", not of "The port is 8080".

    It follows the first word that says something, and more such words follow. Not judged in Korean and Chinese.
    """
    before, _, after = sentence.partition(value)
    *articles, label = _WORD.findall(before) or [""]
    return (
        _NAME.fullmatch(value) is not None
        and not is_eastern(sentence)
        and before.rstrip().endswith(label)  # not "Port: 8080"
        and all(map(_is_closed, articles))  # "The"
        and not _is_closed(label)  # "invoice"
        and not all(map(_is_closed, _WORD.findall(after)))  # "is paid"
    )


def begins_with_pronoun(sentence: str) -> bool:
    """Whether the first word of a sentence is a pronoun, so that only the one before it tells what it is about."""
    return _PRONOUN_FIRST.match(sentence) is not None

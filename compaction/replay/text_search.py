"""Text search in a conversation: an index of its texts, built once, that finds whole strings and verbatim spans.

A string occurs in a text if it is there letter by letter and is not part of a longer word or number: ``30`` does not occur in
``2030`` or ``3.30``, and ``user_id`` does not occur in ``user_id_2``; ``app.py`` occurs in ``src/app.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Final

SPAN_CHARACTERS: Final = 12  # length of a verbatim span

_WORD: Final = re.compile(r"[A-Za-z0-9_]+")
_OTHER: Final = re.compile(r"[^\W_A-Za-z0-9]{2,}")
_LEAST_LETTERS: Final = 6

# The edge of a string, and the characters beside it, if they are one word or one decimal number
_JOINS_BEFORE: Final = re.compile(r"(?:[A-Za-z0-9_]{2}|\d[.,][0-9])\Z")
_JOINS_AFTER: Final = re.compile(r"[A-Za-z0-9_]{2}|[0-9][.,]\d")


def search_keys(text: str) -> set[str]:
    """Return a text's search keys: its words, and pairs of letters in scripts that do not separate words. O(characters)."""
    keys = set(_WORD.findall(text))
    if not text.isascii():
        for run in _OTHER.findall(text):
            keys.update(run[at : at + 2] for at in range(len(run) - 1))
    return keys


def occurs_in(string: str, text: str) -> bool:
    """Return whether a string occurs in a text, not as part of a longer word or number.

    >>> occurs_in("app.py", "src/app.py: ok"), occurs_in("30", "in 2030"), occurs_in("30", "3.30"), occurs_in("30", "30, 31")
    (True, False, False, True)
    """
    at = text.find(string)
    while at >= 0:
        end = at + len(string)
        if not _JOINS_BEFORE.search(text[max(0, at - 2) : at + 1]) and not _JOINS_AFTER.match(text[end - 1 : end + 2]):
            return True
        at = text.find(string, at + 1)
    return False


class TextSearch:
    """An index of texts that finds the places of strings. Holds state: the index, and earlier answers.

    Building it costs O(characters); a search costs O(texts with the string's rarest word), once per string.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = list(texts)
        self._by_key: dict[str, list[int]] = {}
        for place, text in enumerate(self._texts):
            for key in search_keys(text):
                self._by_key.setdefault(key, []).append(place)
        self._known: dict[str, tuple[int, ...]] = {}

    def places_of(self, string: str) -> tuple[int, ...]:
        """Return the places of the texts in which a string occurs, in order."""
        known = self._known.get(string)
        if known is None:
            keys = search_keys(string)
            possible = min((self.places_of_word(key) for key in keys), key=len, default=range(len(self._texts)))
            known = self._known[string] = tuple([at for at in possible if occurs_in(string, self._texts[at])])
        return known

    def places_of_word(self, word: str) -> Sequence[int]:
        """Return the same for a string that is one word of ASCII letters."""
        return self._by_key.get(word, ())


def spans_in(text: str) -> list[str]:
    """Return every run of twelve characters with at least six letters or digits; O(characters)."""
    letters = list(accumulate(map(str.isalnum, text), initial=0))  # letters and digits before each place
    return [
        text[start : start + SPAN_CHARACTERS]
        for start, (before, after) in enumerate(zip(letters, letters[SPAN_CHARACTERS:], strict=False))
        if after - before >= _LEAST_LETTERS
    ]


class SpanIndex:
    """An index of the spans that occur in the answers among texts: which texts contain each. O(characters) to build."""

    def __init__(self, texts: Iterable[str], answers: Iterable[int]) -> None:
        every = list(texts)
        self._spans = {answer: dict.fromkeys(spans_in(every[answer])) for answer in answers}
        self._places: dict[str, list[int]] = {span: [] for spans in self._spans.values() for span in spans}
        for place, text in enumerate(every):
            for span in self.known_spans(text):
                self._places[span].append(place)

    def known_spans(self, text: str) -> set[str]:
        """Return the spans of a text that occur in some answer."""
        places = self._places
        return {span for at in range(len(text) - SPAN_CHARACTERS + 1) if (span := text[at : at + SPAN_CHARACTERS]) in places}

    def spans_of_answer(self, answer: int) -> dict[str, list[int]]:
        """Return the spans of an indexed answer, in order, each with the places of the texts that contain it, in order."""
        places = self._places
        return {span: places[span] for span in self._spans[answer]}

"""Where in a conversation a string stands: an index over its texts, built once, asked for as many strings as needed.

A string stands in a text if it is there letter by letter and is not a part of something longer: ``30`` is not in ``2030``, nor
in ``3.30``, and ``user_id`` is not in ``user_id_2``; ``app.py`` is in ``src/app.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

__all__ = ["SPAN_CHARACTERS", "Occurrences", "SpanIndex", "keys_of", "spans_in", "stands_in"]

SPAN_CHARACTERS: Final = 12
"""Length of a verbatim span."""

_WORD: Final = re.compile(r"[A-Za-z0-9_]+")
_OTHER: Final = re.compile(r"[^\W_A-Za-z0-9]{2,}")
_LEAST_LETTERS: Final = 6


def keys_of(text: str) -> set[str]:
    """What a text can be found by: its words, and the pairs of letters of scripts that do not part words. O(characters).

    >>> sorted(keys_of("retry_limit 설정은"))
    ['retry_limit', '설정', '정은']
    """
    keys = set(_WORD.findall(text))
    if not text.isascii():
        for run in _OTHER.findall(text):
            keys.update(run[at : at + 2] for at in range(len(run) - 1))
    return keys


def stands_in(string: str, text: str) -> bool:
    """Whether a string stands in a text by itself.

    >>> stands_in("app.py", "src/app.py: ok"), stands_in("30", "in 2030"), stands_in("30", "3.30"), stands_in("30", "30, 31")
    (True, False, False, True)
    """
    at = text.find(string)
    while at >= 0:
        if not _continues(text, at - 1, string[0], -1) and not _continues(text, at + len(string), string[-1], 1):
            return True
        at = text.find(string, at + 1)
    return False


def _continues(text: str, at: int, edge: str, step: int) -> bool:
    """Whether the character at a place makes a longer word or number of what ends beside it in ``edge``."""
    if not 0 <= at < len(text) or not _in_word(edge):
        return False
    if _in_word(text[at]):
        return True
    beyond = at + step
    return edge.isdigit() and text[at] in ".," and 0 <= beyond < len(text) and text[beyond].isdigit()


def _in_word(character: str) -> bool:
    return character == "_" or (character.isascii() and character.isalnum())


class Occurrences:
    """The places of strings in a list of texts. Holds state: the index, and what was asked before.

    Building costs O(characters); a question O(the texts that hold its rarest word), once.

    >>> places = Occurrences(["see src/app.py", "and app.py", "mapp.py"])
    >>> places.of("app.py")
    (0, 1)
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = list(texts)
        self._by_key: dict[str, list[int]] = {}
        for place, text in enumerate(self._texts):
            for key in keys_of(text):
                self._by_key.setdefault(key, []).append(place)
        self._known: dict[str, tuple[int, ...]] = {}

    def of(self, string: str) -> tuple[int, ...]:
        """The places of the texts in which a string stands, in order."""
        known = self._known.get(string)
        if known is None:
            texts = self._texts
            known = self._known[string] = tuple([at for at in self._candidates(string) if stands_in(string, texts[at])])
        return known

    def of_word(self, word: str) -> tuple[int, ...]:
        """The same for a string that is one word of ASCII letters."""
        return tuple(self._by_key.get(word, ()))

    def _candidates(self, string: str) -> Iterable[int]:
        keys = keys_of(string)
        if not keys:
            return range(len(self._texts))
        empty: list[int] = []
        return min((self._by_key.get(key, empty) for key in keys), key=len)


def spans_in(text: str) -> Iterator[str]:
    """Every stretch of twelve characters that holds at least six letters or digits; O(characters).

    >>> list(spans_in("retry_limits!"))
    ['retry_limits', 'etry_limits!']
    """
    solid = [character.isalnum() for character in text]
    filled = sum(solid[: SPAN_CHARACTERS - 1])
    for end in range(SPAN_CHARACTERS, len(text) + 1):
        filled += solid[end - 1]
        if filled >= _LEAST_LETTERS:
            yield text[end - SPAN_CHARACTERS : end]
        filled -= solid[end - SPAN_CHARACTERS]


class SpanIndex:
    """Which texts hold which spans, for the spans that occur in actions. Holds state; O(characters) to build.

    Args:
        texts: All texts, in order.
        actions: The places of those whose spans matter.
    """

    def __init__(self, texts: Iterable[str], actions: Iterable[int]) -> None:
        every = list(texts)
        self._places: dict[str, list[int]] = {}
        for action in actions:
            for span in spans_in(every[action]):
                self._places.setdefault(span, [])
        for place, text in enumerate(every):
            for span in self.known(text):
                self._places[span].append(place)

    def known(self, text: str) -> set[str]:
        """The spans of a text that occur in some action."""
        places = self._places
        return {span for at in range(len(text) - SPAN_CHARACTERS + 1) if (span := text[at : at + SPAN_CHARACTERS]) in places}

    def of(self, span: str) -> list[int]:
        """The places of the texts that hold a span, in order."""
        return self._places[span]

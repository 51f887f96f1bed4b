"""The table ``secrets.toml``, and the searches that its rows become."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

TABLE: Final[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("secrets.toml").read_text("utf-8"))

SecretSpan: TypeAlias = tuple[int, int, str]
"""Where a secret starts and ends, and its kind."""

REDACTED: Final = "[REDACTED:"
"""The beginning of the mark in place of a secret; its kind and a bracket follow."""

Judge: TypeAlias = Callable[[re.Match[str]], Iterator[tuple[int, int]]]
"""A function that yields where the secrets in a match start and end."""


def whole_value(found: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield where the group ``value`` of a match is: all of it is a secret."""
    yield found.span("value")


class Search(NamedTuple):
    """A search for secrets of one kind."""

    words: tuple[str, ...]  # of which a text with such a secret has one; in small letters, except for tokens
    shape: re.Pattern[str]
    kind: str
    judge: Judge = whole_value

    def spans(self, text: str) -> Iterator[SecretSpan]:
        """Yield the secrets in a text."""
        for found in self.shape.finditer(text):
            for start, end in self.judge(found):
                yield start, end, self.kind


def search_for(words: Iterable[str], shape: str, kind: str, judge: Judge = whole_value) -> Search:
    """Return the search for an expression of the table, in texts with one of these words."""
    return Search(tuple(words), re.compile(expression(shape)), kind, judge)


class Searches:
    """Searches in an order, from which a text takes those that may find something: it has one of their words.

    The words are found in one scan, which is quick where few letters stop it. So each word is looked for from its rarest letter
    on. If a word that is shortened so begins with another one, both have one group of the expression::

        words       token, secret, pass, password; the rare letters are k, c and p
        shortened   ken, cret, pass; "password" begins with "pass"
        expression  c(?=ret())|k(?=en())|p(?=ass())
        groups      1: secret; 2: token; 3: pass, password

    Args:
        searches: The searches.
        stops: The rare letters, the rarest first; a word without one is looked for from its first letter on.
    """

    def __init__(self, searches: Iterable[Search], stops: str) -> None:
        self.searches = tuple(searches)
        words = [(_from_rare_letter(word, stops), word, n) for n, search in enumerate(self.searches) for word in search.words]
        self._groups: list[list[tuple[str, int]]] = []  # the words of each, with the numbers of their searches
        rests: dict[str, list[str]] = {}  # what follows each letter, and an empty group behind it
        begins = ""
        for shortened, word, number in sorted(words):
            if not begins or not shortened.startswith(begins):
                begins = shortened
                self._groups.append([])
                rests.setdefault(begins[0], []).append(f"{re.escape(begins[1:])}()")
            self._groups[-1].append((word, number))
        self._scan = re.compile("|".join(f"{re.escape(letter)}(?={'|'.join(each)})" for letter, each in rests.items()))

    def for_text(self, text: str) -> list[Search]:
        """Return the searches for a text, in order; O(characters)."""
        groups = {found.lastindex or 0 for found in self._scan.finditer(text)}
        numbers = {number for group in groups for word, number in self._groups[group - 1] if word in text}
        return [self.searches[number] for number in sorted(numbers)]


def _from_rare_letter(word: str, stops: str) -> str:
    """Return a word from its rarest letter on, or a little before: two letters at least."""
    places = [at for at, letter in enumerate(word[: max(1, len(word) - 1)]) if letter in stops or not letter.isascii()]
    at = min(places, key=lambda at: stops.find(word[at]), default=len(word) - len(word.lstrip()))
    return word[at:]


def replaced(text: str, spans: Iterable[SecretSpan]) -> str:
    """Return the text with a mark in place of each span; of spans that overlap, the first to start stays."""
    pieces: list[str] = []
    done = 0
    for start, end, kind in sorted(spans):
        if start >= done:
            pieces += [text[done:start], f"{REDACTED}{kind.replace('_', '-')}]"]
            done = end
    return "".join([*pieces, text[done:]])


def without(text: str, spans: Callable[[str], Iterable[SecretSpan]]) -> str:
    r"""Return the text without what a search finds in it, and in the same text with blanks for ``\n``, ``\r`` and ``\t``.

    Written as two characters, these are blanks in JSON; elsewhere they may begin a word, as in ``DOMAIN\token=...``.
    A search sees each line end as ``\n``, and every character in its place.
    """
    lines = text.replace("\r\r\n", "  \n").replace("\r\n", " \n").replace("\r", "\n")
    blanked = lines.replace(r"\r\n", "   \n").replace(r"\r\\n", "    \n")  # the second one in JSON within JSON
    blanked = blanked.replace(r"\n", " \n").replace(r"\r", " \n").replace(r"\t", " \t")
    return replaced(text, [*spans(lines), *(() if blanked == lines else spans(blanked))])


def any_of(words: Iterable[str]) -> str:
    """Return an expression for the words, letter by letter, so that it fails early; a space in a word is any blank."""
    tails: dict[str, set[str]] = {}
    for word in words:
        tails.setdefault(word[0], set()).add(word[1:])
    branches = ["[ _-]" if first == " " else re.escape(first) for first in tails]
    for number, rest in enumerate(tails.values()):
        longer = rest - {""}
        branches[number] += (any_of(sorted(longer)) + "?" * (len(longer) < len(rest))) if longer else ""
    return f"(?:{'|'.join(branches)})"


_LISTS: Final[dict[str, list[str]]] = {**TABLE["sentences"], **TABLE["names"], **TABLE["labels"]}
_PARTS: Final[dict[str, str]] = {
    **{name: part if isinstance(part, str) else f"(?:{'|'.join(part)})" for name, part in TABLE["parts"].items()},
    **{name: any_of(words) for name, words in _LISTS.items()},
}
_PART: Final = re.compile(r"(?<!\?P)<([a-z_]+)>")  # not of a group, as in (?P<value>


def expression(shape: str) -> str:
    """Return an expression of the table with its parts, such as ``<quote>``."""
    return _PART.sub(lambda part: expression(_PARTS[part[1]]) if part[1] in _PARTS else part[0], shape)


def in_small_letters(text: str) -> str:
    """Return the text in small letters, each character in its place."""
    small = text.lower()
    if len(small) == len(text):
        return small  # no capital becomes two letters
    return "".join(one if len(one := character.lower()) == 1 else character for character in text)

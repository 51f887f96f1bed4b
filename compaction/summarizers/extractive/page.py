"""The page of a summary: takes lines and facts in the order of their importance, counts their tokens, and writes the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import attrs

from ...errors import SummaryFailed
from ..sections import Section
from .facts import FactKind, fact_kind

_NOTHING: Final = "Nothing in them is likely to be needed word for word."
_HEADING_TOKENS: Final = 5
_LABEL_TOKENS: Final = 5
_WORD: Final = re.compile(r"[^\W_]+")
_BLANK: Final = re.compile(r"\s")
_LABELS: Final = ("Changed", "Read", *(kind.value for kind in FactKind))


def listed(values: Iterable[str]) -> str:
    """Return values in one line that can be read back; blanks between them cost a quarter less than commas.

    >>> listed(["a.py", "John Smith", "1,200"])
    'a.py "John Smith" 1,200'
    """
    return " ".join(f'"{value}"' if _BLANK.search(value) else value for value in values)


@attrs.frozen
class _Item:
    section: Section
    label: str
    text: str
    place: float


class SummaryPage:
    """A page that is being filled. Holds state: its items, added most important first.

    Args:
        limit: Tokens the text may have.
        count: Counts the tokens of a text.
        visible: The text that stays beside the page; nothing of it is repeated.

    Attributes:
        used: Tokens of the items so far, approximately.
        tokens: Counts the tokens of a text.
        left_out: The number of rules that had no room.
    """

    def __init__(self, limit: int, count: Callable[[str], int], visible: str = "") -> None:
        self.limit = limit
        self.used = 1
        self.left_out = 0
        self.tokens = count
        self._visible = visible
        self._visible_words = frozenset(_WORD.findall(visible))
        self._visible_pieces = frozenset(visible.split())
        self._items: list[_Item] = []
        self._started: set[tuple[Section, str]] = set()
        self._lines: set[str] = set()
        self._pieces: set[str] = set()

    def add(self, section: Section, text: str, *, upto: float, label: str = "", place: float | None = None) -> bool:
        """Add an item if the text stays within ``upto`` tokens with it, and it is not visible.

        Args:
            section: The section it belongs to.
            text: Its text; a value if it has a label.
            upto: Tokens of the whole text.
            label: The list that the value is part of.
            place: Its place among the section's items; by default the last.

        Returns:
            Whether it was added or stands somewhere already.
        """
        if text in self._lines:
            return True
        if not label and self._stands_whole(text):
            self._lines.add(text)
            return True
        tokens = self.tokens(f" {text}") + (2 if " " in text else 0) if label else self.tokens(f"- {text}\n")
        tokens += 0 if (section, "") in self._started else _HEADING_TOKENS
        tokens += _LABEL_TOKENS if label and (section, label) not in self._started else 0
        if self.used + tokens > min(upto, self.limit):
            return False
        self.used += tokens
        self._started.update({(section, ""), (section, label)})
        self._items.append(_Item(section, label, text, len(self._items) if place is None else place))
        self._lines.add(text)
        self._pieces.update(text.split())
        return True

    def _stands_whole(self, text: str) -> bool:
        """Return whether a text is part of an item or visible.

        Only a text whose words stand there, but for its first and last one, is searched for.
        """
        inner = text.split()[1:-1]
        if self._visible_pieces.issuperset(inner) and text in self._visible:
            return True
        return self._pieces.issuperset(inner) and any(text in item.text for item in self._items)

    def has(self, text: str) -> bool:
        """Return whether a line is on the page, or visible beside it."""
        return text in self._lines

    def add_facts(self, facts: Iterable[str], *, upto: float, held: bool = False) -> None:
        """Add the facts that have room and stand nowhere else; those most likely to be needed must come first.

        Args:
            facts: The facts.
            upto: Tokens of the whole text.
            held: Whether they were on an earlier page, where they stay although they are visible just now.
        """
        body = "\n".join(["", *[item.text for item in self._items]])
        words = frozenset(_WORD.findall(body))
        misses = 0
        for fact in facts:
            if min(upto, self.limit) - self.used < 2 or misses > 20:
                return
            runs = _WORD.findall(fact)
            if fact in self._lines or _stands(fact, runs, body, words):
                continue
            if not held and _stands(fact, runs, self._visible, self._visible_words):
                continue
            misses = 0 if self.add(Section.CONTEXT, fact, upto=upto, label=fact_kind(fact).value) else misses + 1

    def shortened(self, text: str, tokens: float, cut: Callable[[str, int], str]) -> str:
        """Return the text, or its beginning in about that many tokens."""
        chars = len(text)
        while chars > 8 and (found := self.tokens(cut(text, chars))) > tokens:
            chars = max(8, min(chars - 1, int(chars * tokens / found)))
        return cut(text, chars)

    def text(self, write: Callable[[Mapping[Section, Sequence[str]]], str]) -> str:
        """Return the text, without the least important items if it exceeds the limit; a sentence if there is nothing to say.

        Raises:
            SummaryFailed: If the limit is too small for a single item.
        """
        items = self._items
        while items:
            text = write(self._sections(items))
            excess = self.tokens(text) - self.limit
            if excess <= 0:
                return text
            items = items[: len(items) - max(1, excess * len(items) // (2 * self.used))]
        if not self._items and self.tokens(_NOTHING) <= self.limit:
            return _NOTHING
        raise SummaryFailed(f"a budget of {self.limit} tokens is too small for a summary; give it 200 or more")

    def _sections(self, items: Sequence[_Item]) -> dict[Section, list[str]]:
        sections: dict[Section, list[str]] = {}
        lists: dict[tuple[Section, str], list[str]] = {}
        for item in sorted(items, key=lambda item: item.place):
            if item.label:
                lists.setdefault((item.section, item.label), []).append(item.text)
            else:
                sections.setdefault(item.section, []).append(item.text)
        for label in _LABELS:
            for section in (Section.FILES, Section.CONTEXT):
                if values := lists.get((section, label)):
                    sections.setdefault(section, []).append(f"{label}: {listed(values)}")
        if self.left_out:
            sections.setdefault(Section.CONSTRAINTS, []).append(f"({self.left_out} more had no room)")
        return sections


def _stands(fact: str, runs: Sequence[str], text: str, words: frozenset[str]) -> bool:
    """Return whether a fact occurs in a text and is not part of a longer word there; O(fact) if a word of it is missing."""
    for run in runs:
        if run not in words:
            return False
    if runs == [fact]:
        return True
    at = text.find(fact)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(fact) : at + len(fact) + 1]
        if not (before.isalnum() and fact[0].isalnum()) and not (after.isalnum() and fact[-1].isalnum()):
            return True
        at = text.find(fact, at + 1)
    return False

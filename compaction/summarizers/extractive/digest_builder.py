"""The digest builder: takes items in the order of their importance, counts their tokens, and writes the text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from ...errors import SummaryFailed
from ..sections import HEADER, Section, write_sections
from .facts import FactKind, fact_kind, facts_in
from .notes import listed
from .sentences import clipped

_HEADING_TOKENS: Final = 6
_LABEL_TOKENS: Final = 5
_LONG: Final = 6
_LABELS: Final = ("Changed", "Read", "Settings", *(kind.value for kind in FactKind))


@attrs.frozen
class _Item:
    section: Section
    label: str
    text: str
    place: int


class DigestBuilder:
    """A digest that is being filled. Holds state: its items, added most important first.

    Args:
        limit: Tokens the text may have.
        count: Counts the tokens of a text.

    Attributes:
        used: Tokens of the items so far, approximately.
        rest: Tokens that were free when this was last set; sections have shares of it.
        narrowed: The part of its share that a section may use.
        left_out: The number of constraints that had no room.
    """

    def __init__(self, limit: int, count: Callable[[str], int]) -> None:
        self.limit = limit
        self.count = count
        self.used = count(HEADER) + 1
        self.rest = limit
        self.narrowed = 1.0
        self.left_out = 0
        self._items: list[_Item] = []
        self._started: set[tuple[Section, str]] = set()
        self._body: list[str] = []
        self._lines: set[str] = set()
        self._facts: set[str] | None = None

    def add(self, section: Section, text: str, *, upto: float, label: str = "", place: int | None = None) -> bool:
        """Add an item if the text stays within ``upto`` tokens with it.

        Args:
            section: The section it belongs to.
            text: Its text; a value if it has a label.
            upto: Tokens of the whole text.
            label: The list that the value is part of.
            place: Its place among the section's items; by default the last.

        Returns:
            Whether it was added; an item is never added twice.
        """
        if not label and text in self._lines:
            return False
        tokens = self.count(f" {text}") + (2 if " " in text else 0) if label else self.count(f"- {text}\n")
        tokens += 0 if (section, "") in self._started else _HEADING_TOKENS
        tokens += _LABEL_TOKENS if label and (section, label) not in self._started else 0
        if self.used + tokens > min(upto, self.limit):
            return False
        self.used += tokens
        self._started.update({(section, ""), (section, label)})
        self._items.append(_Item(section, label, text, len(self._items) if place is None else place))
        self._body.append(text)
        self._lines.add(text)
        self._facts = None
        return True

    def add_fact(self, fact: str, *, upto: float, place: int) -> bool:
        """Add a fact to its list under Critical Context, unless an item holds it; returns whether it was added."""
        if self._facts is None:
            self._facts = facts_in("\n".join(self._body)).keys() | set(self._body)
        facts = self._facts
        if fact in facts or (len(fact) >= _LONG and any(fact in text for text in self._body)):
            return False
        added = self.add(Section.CONTEXT, fact, upto=upto, label=fact_kind(fact).value, place=place)
        if added:
            facts.add(fact)
        self._facts = facts
        return added

    def shortened(self, text: str, tokens: float) -> str:
        """Return the text, or its beginning in about that many tokens."""
        chars = len(text)
        while chars > _LONG and (found := self.count(clipped(text, chars))) > tokens:
            chars = max(_LONG, min(chars - 1, int(chars * tokens / found)))
        return clipped(text, chars)

    def text(self) -> str:
        """Return the digest, without the least important items if it exceeds the limit.

        Raises:
            SummaryFailed: If the limit is too small for a single item.
        """
        items = self._items
        while items:
            text = self._written(items)
            excess = self.count(text) - self.limit
            if excess <= 0:
                return text
            items = items[: len(items) - max(1, excess * len(items) // (2 * self.used))]
        raise SummaryFailed(f"a budget of {self.limit} tokens is too small for a digest; give it 200 or more")

    def _written(self, items: list[_Item]) -> str:
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
        if left_out := self.left_out + sum(item.section is Section.CONSTRAINTS for item in self._items[len(items) :]):
            sections.setdefault(Section.CONSTRAINTS, []).append(f"({left_out} more had no room)")
        return write_sections(sections)

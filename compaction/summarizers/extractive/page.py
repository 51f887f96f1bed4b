"""The page of a summary: takes lines and facts in the order of their importance, counts their tokens, and writes the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Final

import attrs

from ...errors import SummaryFailed
from .facts import FROM, FactKind, FoundIn, fact_kind
from .sections import Section, write_sections
from .sentences import WORD, chars_within, clipped

_MOST_FACT_MISSES: Final = 20
_BESIDE: Final = 2  # more facts of the same result that are added with one
_LEAST_LINE: Final = 12  # characters, with the two of its mark
_NOTHING: Final = "Nothing in them is likely to be needed word for word."
_TAG: Final = re.compile(r"<[\w:.-]+>")
_BLANK: Final = re.compile(r"\s")
_AROUND: Final = ".,;:!?()[]{}<>'\"`"  # signs around a word

# The words of lines that the digest itself writes; `earlier` knows the lines by them.
CHANGED: Final = "Changed"
READ: Final = "Read"
FIRST: Final = "First"
NO_ROOM: Final = "more had no room"
UNREAD: Final = "texts were so long that only both ends were read"
_LABELS: Final = (CHANGED, READ, *(kind.value for kind in FactKind))


def listed(values: Iterable[str]) -> str:
    """Return values in one line that can be read back; blanks between them cost a quarter less than commas.

    >>> listed(["a.py", "John Smith", "1,200"])
    'a.py "John Smith" 1,200'
    """
    return " ".join(f'"{value}"' if _BLANK.search(value) else value for value in values)


@attrs.frozen
class Item:
    """A line of the page, or a value of one of its lists."""

    section: Section
    text: str
    label: str = ""  # the list that a value is part of; ``""`` for a line
    place: float | None = None  # its place among the section's items; by default the last
    under: str = ""  # the line that it stands below: another item of the section, or a heading, which is written with it
    by: str = ""  # who said it, if not the user

    @property
    def shown(self) -> str:
        """The line with who said it."""
        return f"{self.by}: {self.text}" if self.by else self.text


class SearchedText:
    """A text in which many others are looked for. Holds state: it may grow.

    Most are ruled out by their pieces between blanks: all but the first and the last must be pieces of this text too. The text
    is searched only for the others.

    >>> "needs a" in SearchedText("The build needs a disk."), "needs two a" in SearchedText("The build needs a disk.")
    (True, False)
    """

    def __init__(self, text: str = "") -> None:
        self.text = text
        self._pieces = set(text.split())
        self._words: set[str] | None = None

    def __contains__(self, part: str) -> bool:
        return self._pieces.issuperset(part.split()[1:-1]) and part in self.text

    def add(self, text: str) -> None:
        """Add a line."""
        self.text += f"\n{text}"
        self._pieces.update(text.split())
        self._words = None

    def finder(self) -> Callable[[str, Collection[str]], bool]:
        """Return a function that says whether the text, as it is now, has a part with these words. O(different pieces).

        The text is searched only for a part that has all words in it, and is not a piece of its own: so many parts of a long
        text are found in time that does not depend on its length.
        """
        if self._words is None:
            self._words = set(WORD.findall(" ".join(self._pieces)))
        words, text, bare = self._words, self.text, {piece.strip(_AROUND) for piece in self._pieces}
        return lambda part, of_part: words.issuperset(of_part) and (part in bare or part in text)


class SummaryPage:
    """A page that is being filled. Holds state: its items, added most important first.

    Args:
        limit: Tokens the text may have.
        count: Counts the tokens of a text.
        visible: The text that stays beside the page; nothing of it is repeated.

    >>> page = SummaryPage(400, len)
    >>> rules = [Item(Section.CONSTRAINTS, "no mocks", place=2, under="Rules:"), Item(Section.CONSTRAINTS, "Ask me.", place=3)]
    >>> said = [Item(Section.CONSTRAINTS, "no tabs", place=1, under="Rules:", by="Ann")]
    >>> files = [Item(Section.FILES, "b.py", label="Read"), Item(Section.FILES, "a.py", label="Read")]
    >>> all(page.add(item, upto=400) for item in [*rules, *said, *files])
    True
    >>> print(page.text())
    ## Constraints & Preferences
    - Rules:
      - Ann: no tabs
      - no mocks
    - Ask me.
    <BLANKLINE>
    ## Relevant Files
    - Read: b.py a.py
    """

    def __init__(self, limit: int, count: Callable[[str], int], visible: str = "") -> None:
        self.limit = limit
        self.used = 1  # tokens of the items so far, without headings and labels
        self.left_out = 0  # rules that had no room
        self.tokens = count
        self._visible = SearchedText(visible)
        self._own = SearchedText()
        self._items: list[Item] = []
        self._begun: set[tuple[Section, str]] = set()  # sections, each with a line that others stand below, or ""
        self._refused: Item | None = None  # the first line that had no room
        self._lines: set[str] = set()

    def add(self, item: Item, *, upto: float) -> bool:
        """Add an item if the text stays within ``upto`` tokens with it; return whether it stands somewhere now."""
        text, label, under = item.text, item.label, item.under
        if text in self._lines or (not label and self.stands(text)):
            self._lines.add(text)
            return True
        tokens = self.tokens(f" {listed([text])}" if label else f"- {item.shown}\n")
        if under and under not in self._lines and (item.section, under) not in self._begun:
            tokens += self.tokens(f"- {under}\n")
        if label.startswith(FROM) and (item.section, label) not in self._begun:
            tokens += self.tokens(f"- {label}:\n")
        if self.used + tokens > min(upto, self.limit):
            if self._refused is None and not label:
                self._refused = item
            return False
        self.used += tokens
        self._begun.add((item.section, label or under))
        self._items.append(item if item.place is not None else attrs.evolve(item, place=len(self._items)))
        self._lines.add(text)
        self._own.add(text)
        return True

    def stands(self, text: str) -> bool:
        """Return whether a text is on the page, or visible beside it."""
        if text in self._lines or text in self._visible:
            return True
        return text in self._own and ("\n" not in text or any(text in each.text for each in self._items))

    def add_facts(self, facts: Sequence[str], sources: Mapping[str, FoundIn], *, upto: float, held: bool = False) -> None:
        """Add the facts that have room and stand nowhere else; those most likely to be needed must come first.

        Facts of one result stand together behind its call, in their order there: alone, "2366" says nothing.

        With ``held``, they are those of an earlier page, and are added even if a message shows them now: it may leave later.
        """
        shown = [self._own] if held else [self._own, self._visible]
        stand = [each.finder() for each in shown]  # now: a fact added below does not hide later ones
        most, misses = min(upto, self.limit), 0
        for fact in _with_those_beside(facts, sources):
            if most - self.used < 2 or misses > _MOST_FACT_MISSES:
                return
            words = WORD.findall(fact)
            if fact not in self._lines and not any(stands(fact, words) for stands in stand):
                source = sources.get(fact)
                item = Item(Section.CONTEXT, fact, label=fact_kind(fact).value)
                if source and fact not in source.label:
                    item = attrs.evolve(item, label=source.label, place=source.place)
                misses = 0 if self.add(item, upto=most) else misses + 1

    def shortened(self, text: str, tokens: float) -> str:
        """Return the text, or its beginning in about that many tokens."""
        return clipped(text, chars_within(len(text), tokens, lambda chars: self.tokens(clipped(text, chars)), least=8))

    def text(self) -> str:
        """Return the text, without the least important items if it exceeds the limit; a sentence if there is nothing to say.

        If there is room for no item, the beginning of the first one is returned, of ten characters or more: fewer mean nothing.

        Raises:
            SummaryFailed: If the limit is too small for that.
        """
        items = self._items
        while items:
            text = write_sections(self._sections(items))
            excess = self.tokens(text) - self.limit
            if excess <= 0:
                return text
            items = items[: len(items) - max(1, excess * len(items) // self.used)]  # as if all were of one size
        first = self._items[0] if self._items else self._refused
        line = _NOTHING if first is None else self.shortened(f"- {first.shown}", self.limit)
        if self.tokens(line) > self.limit or len(line) < _LEAST_LINE:
            raise SummaryFailed(f"a budget of {self.limit} tokens is too small for a few words")
        return line

    def _sections(self, items: Sequence[Item]) -> dict[Section, list[str]]:
        lists: dict[tuple[Section, str], list[str]] = {}
        blocks: dict[tuple[Section, str], list[str]] = {}  # a line and those below it
        for item in sorted(items, key=attrgetter("place")):
            if item.label:
                lists.setdefault((item.section, item.label), []).append(item.text)
            elif item.under:
                blocks.setdefault((item.section, item.under), [item.under]).append(f"- {item.shown}")
            else:
                blocks.setdefault((item.section, item.text), [item.shown])[0] = item.shown
        sections: dict[Section, list[str]] = {}
        for (section, _), (head, *below) in blocks.items():
            closing = [f"</{head[1:]}"] if below and _TAG.fullmatch(head) else []
            sections.setdefault(section, []).append("\n".join([head, *below, *closing]))
        for label in (*dict.fromkeys([label for _, label in lists if label.startswith(FROM)]), *_LABELS):
            for section in (Section.FILES, Section.CONTEXT):
                if values := lists.get((section, label)):
                    sections.setdefault(section, []).append(f"{label}: {listed(values)}")
        if self.left_out:
            sections.setdefault(Section.CONSTRAINTS, []).append(f"({self.left_out} {NO_ROOM})")
        return sections


def _with_those_beside(facts: Sequence[str], sources: Mapping[str, FoundIn]) -> Iterable[str]:
    """Return the facts, with a few more of the same result behind the first one of each."""
    of_call: dict[str, list[str]] = {}
    for fact in facts:
        if fact in sources:
            of_call.setdefault(sources[fact].call, []).append(fact)
    found: dict[str, None] = {}
    for fact in facts:
        found[fact] = None
        if fact in sources:
            found.update(dict.fromkeys(of_call.pop(sources[fact].call, [])[: _BESIDE + 1]))
    return found

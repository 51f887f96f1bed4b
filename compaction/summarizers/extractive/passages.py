"""The passages of a message: items of lists, rows of tables and paragraphs, each with who speaks and what it stands under.

Who speaks is decided before, by `voices`; here only the lines' layout is read.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Final

import attrs

from .lines import BULLET, CODE, DASH, HEADING, QUOTED_LINE, ROW, RULED, TAG, UNDERLINE, blocks, is_table, without_bullet
from .sentences import STATING, continues, sentences_in
from .voices import Voice, voices_of

_LEAD_CHARS: Final = 200
_WRAPPED: Final = 24  # characters of a line that may continue in the next


@attrs.frozen
class Passage:
    """Lines of a message that belong together."""

    text: str  # without the mark of a list
    voice: Voice = Voice.OWN  # who speaks
    lead: str = ""  # the heading, the words before a list, the tag, or the header of a table that it stands under
    is_whole: bool = False  # whether it is an item of a list or a row of a table, which is not split into sentences
    block: int = 0  # the first line of its block: the lines without a blank one between them


def passages(text: str) -> Iterator[Passage]:
    r"""Yield the passages of a user's message, in order; O(characters).

    >>> rules = "Please keep to this:\n- tabs\n- never touch prod.db\n\n2026-01-03 10:11:12 ERROR no disk"
    >>> for each in passages(rules):
    ...     print(each.voice.name, repr(each.lead), repr(each.text))
    OWN 'Please keep to this:' 'tabs'
    OWN 'Please keep to this:' 'never touch prod.db'
    PROGRAM '' '2026-01-03 10:11:12 ERROR no disk'
    """
    return _Reader(text).passages()


@attrs.frozen
class _Lead:
    """A line that introduces what stands below it: one block, or of a heading or a tag everything up to the next lead."""

    text: str = ""  # empty if nothing introduces what follows
    line: int | None = None  # where it stands, as long as nothing stands under it; then it is a passage of its own

    @property
    def lasts(self) -> bool:
        return HEADING.fullmatch(self.text) is not None or TAG.fullmatch(self.text) is not None


class _Reader:
    """Reads one message from its first line to its last. Holds state, which changes while passages are yielded.

    - The lead, and the list items above: `_begin` sets both, and `_item` adds one.
    - The prose that has not ended: `_block` adds to it, and `_end_prose` yields it.
    """

    def __init__(self, text: str) -> None:
        self._lines, self._voices = voices_of(text)
        self._block_of = {at: block.start for block in blocks(self._lines) for at in block}
        self._prose: list[str] = []
        self._begin(_Lead())

    def _begin(self, lead: _Lead) -> None:
        self._lead = lead
        self._parents: list[tuple[int, str]] = []  # the indents and texts of the list items above

    def passages(self) -> Iterator[Passage]:
        for is_printed, run in itertools.groupby(range(len(self._lines)), self._is_printed):
            places = [*run]
            start, end = places[0], places[-1] + 1
            if is_printed:
                if end > start + 1:  # a line alone does not end a list
                    yield from self._end_lead()
                yield self._passage("\n".join(self._lines[start:end]), start)
            elif is_printed is False:
                if not self._lead_reaches(self._lines[start]):
                    self._begin(_Lead())
                yield from self._block(start, end)
        yield from self._end_lead()

    def _is_printed(self, at: int) -> bool | None:
        """Whether a program wrote a line; ``None`` for a blank line, unless it stands in what a program wrote."""
        if self._voices[at] is Voice.PROGRAM:
            return True
        return False if self._lines[at].strip() else None

    def _passage(self, text: str, at: int) -> Passage:
        return Passage(text, self._voices[at], block=self._block_of[at])

    def _passage_under(self, lead: str, text: str, at: int, *, is_whole: bool = False) -> Passage:
        """Return a passage that stands under the lead, or under an item of a list below it."""
        self._lead = attrs.evolve(self._lead, line=None)
        return Passage(text, self._voices[at], lead, is_whole, self._block_of[at])

    def _lead_reaches(self, first: str) -> bool:
        """Return whether a block with this first line stands under the lead: nothing did so far, or its list continues."""
        continues_list = BULLET.match(first) is not None and self._parents != []
        return first[:1].isspace() or continues_list or self._lead.lasts or self._lead.line is not None

    def _end_lead(self) -> Iterator[Passage]:
        """End the lead; yield it as a passage of its own if nothing stood under it."""
        if self._lead.line is not None:
            yield self._passage(self._lead.text, self._lead.line)
        self._begin(_Lead())

    def _block(self, start: int, end: int) -> Iterator[Passage]:
        """Yield the passages of lines without a blank one between them."""
        in_table, at = is_table(self._lines[start:end]), start
        while at < end:
            line, behind = self._lines[at], at + 1
            found: Iterable[Passage] | None = None  # nothing if the line is prose
            if bullet := BULLET.match(line):
                while behind < end and self._continues_item(self._lines[behind]):
                    behind += 1
                found = self._item(at, behind, len(bullet[1].expandtabs(4)))
            elif self._is_lead(at):
                found = self._new_lead(at)
            elif in_table and ROW.fullmatch(line):
                found = self._row(at)
            elif QUOTED_LINE.match(line):
                found = [self._passage(QUOTED_LINE.sub("", line, count=1).strip(), at)]
            if found is not None:
                yield from self._end_prose(at - 1)
                yield from found
            elif any(map(str.isalnum, line)):
                before = self._prose[-1] if self._prose and self._voices[at] is self._voices[at - 1] else ""
                if len(before) < _WRAPPED or not continues(before, line):
                    yield from self._end_prose(at - 1)
                self._prose.append(line.strip())
            at = behind
        yield from self._end_prose(end - 1)

    @staticmethod
    def _continues_item(line: str) -> bool:
        """Return whether a line continues the item of a list above it: it is indented, and has no mark."""
        return line[:1].isspace() and not BULLET.match(line) and not TAG.fullmatch(line)

    def _end_prose(self, at: int) -> Iterator[Passage]:
        """Yield the lines of prose so far, of which this is the last."""
        if self._prose:
            text = " ".join(self._prose)
            self._prose.clear()
            yield self._passage_under(self._lead.text, text, at)

    def _is_lead(self, at: int) -> bool:
        """Return whether a line introduces what stands below it."""
        line, following = self._lines[at], self._following(at + 1)
        bare = line.strip()
        if len(bare) > _LEAD_CHARS or CODE.match(line):
            return False
        if HEADING.fullmatch(line) or TAG.fullmatch(line) or (UNDERLINE.fullmatch(following) and not ROW.fullmatch(line)):
            return True
        if bare.endswith((":", "：")):
            return at + 1 < len(self._lines)
        return BULLET.match(following) is not None and not bare.endswith(STATING) and not line[:1].isspace()

    def _following(self, at: int) -> str:
        return self._lines[at] if at < len(self._lines) else ""

    def _new_lead(self, at: int) -> Iterator[Passage]:
        """Begin a lead with a line, or end one with a closing tag; a heading or tag without anything under it is left out."""
        line = self._lines[at].strip()
        if (tag := TAG.fullmatch(line)) and tag[1]:
            yield from self._end_lead()
            return
        if not self._lead.lasts:
            yield from self._end_lead()
        *before, lead = [line] if HEADING.fullmatch(line) else sentences_in(line)
        for sentence in before:
            yield self._passage(sentence, at)
        self._begin(_Lead(lead, at))

    def _item(self, at: int, behind: int, indent: int) -> Iterator[Passage]:
        """Yield an item of a list; one above deeper ones stands with those."""
        item = " ".join([self._lines[at], *map(str.strip, self._lines[at + 1 : behind])])
        text = without_bullet(item, DASH.match).strip()  # a number or a box stays
        while self._parents and self._parents[-1][0] >= indent:
            self._parents.pop()
        found = self._passage_under(self._parents[-1][1] if self._parents else self._lead.text, text, at, is_whole=True)
        self._parents.append((indent, text))
        inner = BULLET.match(self._following(behind))
        if not (inner and len(inner[1].expandtabs(4)) > indent and len(text) <= _LEAD_CHARS):
            yield found

    def _row(self, at: int) -> Iterator[Passage]:
        """Yield a row of a table under the header, which stands above a line of signs."""
        line, following = self._lines[at].strip(), self._following(at + 1)
        if RULED.fullmatch(line):
            return
        if RULED.fullmatch(following) and "|" in following:
            yield from self._end_lead()
            self._begin(_Lead(line, at))
        else:
            yield self._passage_under(self._lead.text, line, at, is_whole=True)

"""A text in which many others are looked for."""

from __future__ import annotations

from .sentences import WORD


class SearchedText:
    """A text in which many others are looked for. Holds state: it may grow.

    Most are ruled out by their pieces between blanks: all but the first and the last must be pieces of this text too. The text
    is searched only for the others.

    >>> "needs a" in SearchedText("The build needs a disk."), "needs two a" in SearchedText("The build needs a disk.")
    (True, False)
    """

    def __init__(self, text: str = "") -> None:
        self._text = text
        self._new: list[str] = []  # the lines that are not yet a part of it
        self._pieces = set(text.split())
        self._words: set[str] = set()  # of the first `_read` characters
        self._read = 0

    def __contains__(self, part: str) -> bool:
        return self._pieces.issuperset(part.split()[1:-1]) and part in self.text

    def add(self, text: str) -> None:
        """Add a line."""
        self._new.append(text)
        self._pieces.update(text.split())

    @property
    def text(self) -> str:
        """The whole text."""
        if self._new:
            self._text = "\n".join([self._text, *self._new])
            self._new.clear()
        return self._text

    @property
    def words(self) -> set[str]:
        """The words of the text. O(characters that are new since they were last asked for)."""
        new = self.text[self._read :]
        if new:
            self._words.update(WORD.findall(new if self._read else " ".join(self._pieces)))  # the same words, in less text
            self._read = len(self._text)
        return self._words

"""Keys by which the session of a list is found: made of the newest messages, or of all of them, up to a place.

A key says nothing for certain: whoever finds a session by one compares the messages themselves.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from typing import Any, Final

import attrs

from ..errors import InputError
from ..formats import MessageFormat
from ..index import digest_of

_WINDOW: Final = 3  # messages of which the key of a list's end is made
_DIGEST_BYTES: Final = 12


def lookup_key(*parts: object) -> str:
    """Return a short text that equal parts share, in every process."""
    text = "\0".join(map(str, parts)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).hexdigest()


def _digest(raw: Any, format: MessageFormat, place: int) -> str:
    try:
        return lookup_key(digest_of(raw, format, place))
    except InputError:  # it cannot be written as JSON; the session says so when it reads it
        return "?"


class ListKeys:
    """The digests of a list's messages, each made when it is asked for. Holds state: those made so far.

    Args:
        given: The list.
        format: Says what of a message counts.
    """

    def __init__(self, given: Sequence[Any], format: MessageFormat) -> None:
        self.given = given
        self._format = format
        self._digests: dict[int, str] = {}
        self._whole: list[str] = [""]

    def digest(self, place: int) -> str:
        """The digest of the message at a place; O(content) the first time."""
        known = self._digests.get(place)
        if known is None:
            known = self._digests[place] = _digest(self.given[place], self._format, place)
        return known

    def last(self, count: int) -> tuple[str, ...]:
        """The digests of the newest of the first messages."""
        return tuple([self.digest(place) for place in range(max(0, count - _WINDOW), count)])

    def whole(self, count: int) -> str:
        """One digest of all of the first messages; O(contents) the first time."""
        while len(self._whole) <= count:
            self._whole.append(lookup_key(self._whole[-1], self.digest(len(self._whole) - 1)))
        return self._whole[count]

    def line(self) -> KnownLine:
        """The whole list as a line that later lists may continue."""
        count = len(self.given)
        return KnownLine(length=count, last=self.last(count), whole=self.whole(count))


@attrs.define(eq=False, kw_only=True)
class KnownLine:
    """A list that a host may pass and continue: the source, or a sent view with what came after it. Holds state: its end.

    Args:
        base: The view; empty for the source.
        count: How many messages of the source the view stands for.
        length: Messages of the line.
        last: Digests of the newest ones.
        whole: A digest of all.
        is_specific: Whether the view cannot be mistaken for the beginning of another conversation.
    """

    base: Sequence[Any] = ()
    count: int = 0
    length: int = 0
    last: tuple[str, ...] = ()
    whole: str = ""
    is_specific: bool = True

    @classmethod
    def of_view(cls, view: Sequence[Any], source: Sequence[Any], format: MessageFormat) -> KnownLine:
        """The line of a view that was just sent; O(contents)."""
        line = ListKeys(view, format).line()
        known = set(map(id, source))
        same = itertools.takewhile(lambda pair: pair[0] is pair[1], zip(view, source, strict=False))
        gap = sum(1 for _ in same)
        is_ours = any(id(raw) not in known for raw in view)
        return attrs.evolve(line, base=view, count=len(source), is_specific=is_ours or len(view) - gap >= _WINDOW)

    def add(self, digest: str) -> None:
        """Add a message of the source at the end."""
        self.length += 1
        self.last = (*self.last, digest)[-_WINDOW:]
        self.whole = lookup_key(self.whole, digest)

    def shared(self, source: Sequence[Any], known: int, given: Sequence[Any], format: MessageFormat) -> int:
        """Return how many first messages of a source a list has by this line; compared at C speed.

        Args:
            source: The source, of which only the first ``known`` messages count.
            known: How many that are.
            given: The list.
            format: Compares messages.
        """
        if not self.base:
            return format.common_prefix(source if len(source) == known else source[:known], given)
        if len(given) < len(self.base) or format.common_prefix(self.base, given) < len(self.base):
            return 0
        return self.count + format.common_prefix(source[self.count : known], given[len(self.base) :])

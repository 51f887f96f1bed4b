"""Keys to find the session of a list: digests of the newest messages up to a place in it, or of all messages up to that place.

A matching key is not proof. Callers compare the messages themselves before they use a session.
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

_WINDOW: Final = 3  # messages in the key of the end of a list
_DIGEST_BYTES: Final = 12


def lookup_key(*parts: object) -> str:
    """Return a short digest of the parts, equal in every process."""
    text = "\0".join(map(str, parts)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).hexdigest()


def _digest(raw: Any, format: MessageFormat, place: int) -> str:
    try:
        return lookup_key(digest_of(raw, format, place))
    except InputError:  # not JSON; the session raises an error when it reads the message
        return "?"


class ListKeys:
    """The digests of a list's messages, computed when needed. Holds state: the digests so far.

    Args:
        given: The list.
        format: The format of its messages.
    """

    def __init__(self, given: Sequence[Any], format: MessageFormat) -> None:
        self.given = given
        self._format = format
        self._digests: dict[int, str] = {}
        self._whole: list[str] = [""]

    def digest(self, place: int) -> str:
        """Return the digest of the message at a place; O(content) the first time."""
        known = self._digests.get(place)
        if known is None:
            known = self._digests[place] = _digest(self.given[place], self._format, place)
        return known

    def last(self, count: int) -> tuple[str, ...]:
        """Return the digests of the newest among the first ``count`` messages."""
        return tuple([self.digest(place) for place in range(max(0, count - _WINDOW), count)])

    def whole(self, count: int) -> str:
        """Return one digest of the first ``count`` messages together; O(contents) the first time."""
        while len(self._whole) <= count:
            self._whole.append(lookup_key(self._whole[-1], self.digest(len(self._whole) - 1)))
        return self._whole[count]

    def line(self) -> KnownLine:
        """Return the whole list as a line that later lists may continue."""
        count = len(self.given)
        before = (self.last(count - 1), self.whole(count - 1)) if count else ((), "")
        return KnownLine(length=count, last=self.last(count), whole=self.whole(count), before=before)


@attrs.define(eq=False, kw_only=True)
class KnownLine:
    """A list that a host may continue: the source, or an earlier view with the messages after it. Holds state: its end.

    Args:
        base: The view; empty for the source.
        count: The number of source messages that the view replaces.
        length: The number of messages of the line.
        last: The digests of the newest messages.
        whole: One digest of all messages.
        before: ``last`` and ``whole`` without the newest message.
        is_specific: Whether the view cannot be confused with the beginning of another conversation.
    """

    base: Sequence[Any] = ()
    count: int = 0
    length: int = 0
    last: tuple[str, ...] = ()
    whole: str = ""
    before: tuple[tuple[str, ...], str] = ((), "")
    is_specific: bool = True

    @classmethod
    def of_view(cls, view: Sequence[Any], source: Sequence[Any], format: MessageFormat) -> KnownLine:
        """Return the line of a new view; O(contents)."""
        line = ListKeys(view, format).line()
        known = set(map(id, source))
        same = itertools.takewhile(lambda pair: pair[0] is pair[1], zip(view, source, strict=False))
        gap = sum(1 for _ in same)
        is_ours = any(id(raw) not in known for raw in view)
        return attrs.evolve(line, base=view, count=len(source), is_specific=is_ours or len(view) - gap >= _WINDOW)

    def add(self, digest: str) -> None:
        """Append a message of the source."""
        self.before = (self.last, self.whole)
        self.length += 1
        self.last = (*self.last, digest)[-_WINDOW:]
        self.whole = lookup_key(self.whole, digest)

    def shared(self, source: Sequence[Any], known: int, given: Sequence[Any], format: MessageFormat) -> int:
        """Return how many of the first messages of the source a list contains, if it continues this line.

        Args:
            source: The source.
            known: How many messages of the source to compare.
            given: The list.
            format: The format, which compares messages.
        """
        if not self.base:
            return format.common_prefix(source if len(source) == known else source[:known], given)
        if len(given) < len(self.base) or format.common_prefix(self.base, given) < len(self.base):
            return 0
        return self.count + format.common_prefix(source[self.count : known], given[len(self.base) :])

"""The keys of messages and of lists: digests that are equal in every process if the contents are.

`message_key` is the key of one message. `ListKeys` has the keys of a list's beginnings, and `KnownLine` those of a list that a
host may continue; a pool of sessions compares both to find the conversation that a list may belong to.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

import attrs

from ..errors import InputError, InvalidMessage
from ..formats import MessageFormat
from ..json_data import too_deep

_NEWEST: Final = 3
"""The number of messages in the key of the end of a list."""

_DIGEST_BYTES: Final = 12
_SORTED: Final = json.JSONEncoder(sort_keys=True)


def lookup_key(*parts: object) -> str:
    """Return a short digest of the parts, equal in every process."""
    text = "\0".join(map(str, parts)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).hexdigest()


def message_key(raw: Any, format: MessageFormat, place: int = 0) -> str:
    """Return a digest of a message, equal in every process for messages that the format regards as the same; O(content).

    Args:
        raw: The message.
        format: Its format.
        place: Its place in the list, for the error.

    Raises:
        InvalidMessage: If the message is nested too deeply, or has keys that JSON does not allow.
    """
    key = format.key(raw)
    try:
        is_plain = key is raw and raw.__class__ is dict  # its wire data has the same text, unless it holds other objects
        text = _json(key) if is_plain or not (isinstance(key, dict) or key is raw) else None
        if text is None:  # also if the key has objects of a framework, whose text may differ in another process
            text = json.dumps(format.to_wire(raw), sort_keys=True, default=repr)
    except RecursionError:
        raise too_deep([raw], place) from None
    except (TypeError, ValueError) as error:
        rule = f"the message is not JSON data ({error})"
        raise InvalidMessage(f"messages[{place}]", rule, "use strings as keys") from error
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).hexdigest()


def _json(key: object) -> str | None:
    """Return a key as JSON; ``None`` if it is not JSON data."""
    try:
        return _SORTED.encode(key)
    except (TypeError, ValueError):
        return None


def known_key(raw: Any, format: MessageFormat) -> str:
    """Return the key of a message; "?" if it cannot be compared, which is an error only for a message of the host's list."""
    try:
        return message_key(raw, format)
    except InputError:
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
            known = self._digests[place] = known_key(self.given[place], self._format)
        return known

    def last(self, count: int) -> tuple[str, ...]:
        """Return the digests of the newest among the first ``count`` messages."""
        known = self._digests
        return tuple([known.get(place) or self.digest(place) for place in range(max(0, count - _NEWEST), count)])

    def whole(self, count: int) -> str:
        """Return one digest of the first ``count`` messages together; O(contents) the first time."""
        while len(self._whole) <= count:
            self._whole.append(lookup_key(self._whole[-1], self.digest(len(self._whole) - 1)))
        return self._whole[count]


@attrs.define(eq=False, kw_only=True)
class KnownLine:
    """A list that a host may continue: the source, or an earlier view with the messages after it. Holds state: its end."""

    base: Sequence[Any] = ()  # the view; empty for the source
    count: int = 0  # the number of source messages that the view replaces
    last: tuple[str, ...] = ()  # the digests of the newest messages
    whole: str = ""  # one digest of all messages
    before: tuple[tuple[str, ...], str] = ((), "")  # ``last`` and ``whole`` without the newest message
    is_specific: bool = True  # whether the view cannot be confused with the beginning of another conversation

    @classmethod
    def of(cls, keys: Iterable[str]) -> KnownLine:
        """Return the line of messages with these keys, as one of the source."""
        line = cls()
        for key in keys:
            line.add(key)
        return line

    @classmethod
    def of_view(cls, view: Sequence[Any], source: Sequence[Any], format: MessageFormat) -> KnownLine:
        """Return the line of a new view; O(contents)."""
        line = cls.of(known_key(raw, format) for raw in view)
        known = set(map(id, source))
        same = itertools.takewhile(lambda pair: pair[0] is pair[1], zip(view, source, strict=False))
        gap = sum(1 for _ in same)
        is_ours = any(id(raw) not in known for raw in view)
        return attrs.evolve(line, base=view, count=len(source), is_specific=is_ours or len(view) - gap >= _NEWEST)

    def add(self, digest: str) -> None:
        """Append a message of the source."""
        self.before = (self.last, self.whole)
        self.last = (*self.last, digest)[-_NEWEST:]
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

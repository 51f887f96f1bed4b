"""Fingerprints: short hashes that identify messages which are not stored.

`Fingerprints` computes each one once and keeps a copy of the message's dictionaries, lists and numbers; the copy shares the
message's texts. The fingerprint is valid while the message equals this copy exactly, and texts that are still the same
objects are not compared. A message changed in place is therefore fingerprinted again. So is a message that is not plain JSON
data, such as a framework's object, since changes inside it cannot be detected.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any, Final, cast

import attrs

from ..errors import InvalidMessage
from ..formats import MessageFormat
from ..json_data import too_deep

_DEEPEST: Final = 32


def fingerprint(raw: Any, format: MessageFormat, place: int = 0) -> str:
    """Return sixteen hexadecimal digits that two messages share if their wire data is equal; ``place`` is for the error.

    Raises:
        InvalidMessage: If the message is nested too deeply, or has keys that JSON does not allow.
    """
    try:
        text = json.dumps(format.to_wire(raw), sort_keys=True, ensure_ascii=True, default=repr)
    except RecursionError:
        raise too_deep([raw], place) from None
    except (TypeError, ValueError) as error:
        rule = f"the message is not JSON data ({error})"
        raise InvalidMessage(f"messages[{place}]", rule, "use strings as keys") from error
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


class Fingerprints:
    """The fingerprints of a growing list. Holds state: each fingerprint with a copy of its message.

    >>> from compaction.formats import openai_chat
    >>> known, message = Fingerprints(), {"role": "user", "content": "hi"}
    >>> [before] = known.of([message], openai_chat)
    >>> message["content"] = "ho"
    >>> known.of([message], openai_chat) == [before]
    False
    """

    def __init__(self) -> None:
        self._format: MessageFormat | None = None
        self._made: list[tuple[Any, str]] = []

    def of(self, source: Sequence[Any], format: MessageFormat) -> list[str]:
        """Return the fingerprint of each message; O(messages), and O(contents) of those that are new or changed."""
        made = self._made if format is self._format else []
        known = len(made)
        self._format = format
        self._made = [
            made[place] if place < known and made[place][0] == raw else (_copied(raw), fingerprint(raw, format, place))
            for place, raw in enumerate(source)
        ]
        return [each for _, each in self._made]


@attrs.frozen(eq=False)
class _Exactly:
    """A number that equals only numbers written alike: 1 equals neither 1.0 nor ``True``."""

    value: object

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self.value) and repr(other) == repr(self.value)

    __hash__ = None  # type: ignore[assignment]


_UNKNOWN: Final = _Exactly(object())  # equals nothing


def _copied(value: object, depth: int = _DEEPEST) -> Any:
    """Return a copy that equals the data while its JSON text is the same; of other or deep data, one that equals nothing."""
    kind = type(value)
    if kind is str or value is None:
        return value
    if kind in {int, float, bool}:
        return _Exactly(value)
    if kind is list and depth:
        return [_copied(each, depth - 1) for each in cast("list[Any]", value)]
    if kind is dict and depth and all(type(name) is str for name in cast("dict[Any, Any]", value)):
        return {name: _copied(each, depth - 1) for name, each in cast("dict[str, Any]", value).items()}
    return _UNKNOWN

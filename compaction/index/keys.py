"""The keys of messages: digests that are equal in every process if the contents are."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

from ..errors import InputError, InvalidMessage
from ..formats import MessageFormat, fields_of
from ..json_data import too_deep

_DIGEST_BYTES: Final = 12
UNKNOWN_KEY: Final = "?"
"""The key of a message that cannot be compared."""

_SORTED: Final = json.JSONEncoder(sort_keys=True)


def lookup_key(*parts: object) -> str:
    """Return a short digest of the parts, equal in every process."""
    text = "\0".join(map(str, parts)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).hexdigest()


def message_key(raw: Any, format: MessageFormat, place: int = 0) -> str:
    """Return a digest of a message, equal in every process for messages that the format regards as the same; O(content).

    A message that is nested too deeply, or has keys that JSON does not allow, raises `InvalidMessage`, which names its place.
    """
    key = format.key(raw)
    try:
        is_plain = key is raw and raw.__class__ is dict  # then its JSON is that of its wire data
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
    """Return the key of a message; `UNKNOWN_KEY` if it cannot be compared: only in the host's list is that an error."""
    try:
        return message_key(raw, format)
    except InputError:
        return UNKNOWN_KEY


def message_id(raw: Any) -> str | None:
    """Return the id that a host or a provider gave a message; ``None`` without one. A number may be a mere position."""
    id = (fields_of(raw) or {}).get("id")
    return id if isinstance(id, str) and id else None

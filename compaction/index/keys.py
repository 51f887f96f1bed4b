"""The keys of messages: digests that are equal in every process if the contents are."""

from __future__ import annotations

import contextlib
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
    try:
        text = _compared_text(raw, format)
    except RecursionError:
        raise too_deep([raw], place) from None
    except (TypeError, ValueError) as error:
        rule = f"the message is not JSON data ({error})"
        raise InvalidMessage(f"messages[{place}]", rule, "use strings as keys") from error
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).hexdigest()


def _compared_text(raw: Any, format: MessageFormat) -> str:
    """Return the text of a message that its key is made of."""
    key = format.key(raw)
    is_wire_data = key is raw and raw.__class__ is dict  # as most messages are: there is nothing to convert
    is_extract = key is not raw and not isinstance(key, dict)  # the parts of a message that the format compares
    if is_wire_data or is_extract:
        with contextlib.suppress(TypeError, ValueError):  # it is not JSON data
            return _SORTED.encode(key)
    # an object, or a dictionary that may contain some: its text may differ in another process, that of its wire data does not
    return json.dumps(format.to_wire(raw), sort_keys=True, default=repr)


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

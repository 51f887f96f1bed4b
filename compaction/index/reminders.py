"""Recognizes messages of which a host moved or removed a part, such as a reminder at the end of each call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..formats import MessageFormat
from ..messages import Message
from .projection import Projection


def has_moved_reminder(projection: Projection, given: Sequence[Any], format: MessageFormat) -> bool:
    """Whether a list has all of the source but a reminder at its end, which some agents move to the end of each call.

    The reminder is a system message, now the list's last, or a part or text that the newest message has lost. An agent may also
    have added it. The list has messages after that place.
    """
    source, newest = projection.source, len(projection.source) - 1
    if not 0 < newest < len(given) - 1 or format.common_prefix(source, given) != newest:
        return False
    before, now = projection.read(newest), format.read(given[newest], newest)
    if before.is_system and format.common_prefix(source[newest:], given[-1:]):
        return True
    less, more = sorted([before.text, now.text], key=len)
    return is_stripped(before, now) or (before.role == now.role and less != "" and less in more)


def is_stripped(before: Message, now: Message) -> bool:
    """Whether one message has only some of the other's parts, which two conversations hardly share by chance."""
    fewer, more = sorted([before.parts, now.parts], key=len)
    return before.role == now.role and 0 < len(fewer) < len(more) and all(part in more for part in fewer)

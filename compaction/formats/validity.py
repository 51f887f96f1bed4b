"""Judge a conversation by the rules of its wire format, and repair it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import InputError
from .base import MessageFormat, Problem, Repair
from .detect import resolve


def as_list(messages: Iterable[Any]) -> list[Any]:
    """Return the messages as a list.

    Raises:
        InputError: If this is not a list of messages.
    """
    if isinstance(messages, list):
        return messages
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Iterable):
        raise InputError("messages: a conversation is a list of messages; wrap a single message in one")
    return list(messages)


def validate(messages: Iterable[Any], *, format: MessageFormat | str | None = None) -> list[Problem]:
    """Return every rule of the wire format that a conversation breaks; O(messages).

    Args:
        messages: The conversation, oldest first.
        format: The wire format; ``None`` to detect it, see `compaction.formats.resolve`.

    Returns:
        The problems in order of place; none if a provider would take the list.

    Raises:
        InputError: If ``messages`` is not a list, or of different formats.

    >>> validate([{"role": "tool", "tool_call_id": "call_1", "content": "18 degrees"}])[0].rule
    'result-without-call'
    """
    given = as_list(messages)
    return resolve(format, given).validate(given)


def repair(messages: Iterable[Any], *, format: MessageFormat | str | None = None) -> Repair:
    """Return a valid conversation made from this one, and every change. Nothing is repaired unless asked for.

    Args:
        messages: The conversation, oldest first; not changed.
        format: The wire format; ``None`` to detect it, see `compaction.formats.resolve`.

    Raises:
        InputError: If ``messages`` is not a list, or of different formats.

    >>> repair([{"role": "user", "content": "hi"}, {"role": "tool", "tool_call_id": "call_1", "content": "18"}]).messages
    [{'role': 'user', 'content': 'hi'}]
    """
    given = as_list(messages)
    return resolve(format, given).repair(given)

"""Whether a provider would take a conversation, and what to do if not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .formats import MessageFormat, Problem, Repair, resolve
from .sync import as_list

__all__ = ["repair", "validate"]


def validate(messages: Iterable[Any], *, format: MessageFormat | str | None = None) -> list[Problem]:
    """Every rule of the wire format that a conversation breaks; O(messages).

    Args:
        messages: The conversation, oldest first.
        format: The wire format; ``None`` to look, see `compaction.formats.resolve`.

    Returns:
        The problems in order of place; none if a provider would take the list.

    Raises:
        InputError: If ``messages`` is no list, or of different formats.

    >>> validate([{"role": "tool", "tool_call_id": "call_1", "content": "18 degrees"}])[0].rule
    'result-without-call'
    """
    given = as_list(messages)
    return resolve(format, given).validate(given)


def repair(messages: Iterable[Any], *, format: MessageFormat | str | None = None) -> Repair:
    """A valid conversation made from this one, and everything that was done to it. Nothing is repaired unless asked for.

    Args:
        messages: The conversation, oldest first; not changed.
        format: The wire format; ``None`` to look, see `compaction.formats.resolve`.

    Raises:
        InputError: If ``messages`` is no list, or of different formats.

    >>> repair([{"role": "user", "content": "hi"}, {"role": "tool", "tool_call_id": "call_1", "content": "18"}]).messages
    [{'role': 'user', 'content': 'hi'}]
    """
    given = as_list(messages)
    return resolve(format, given).repair(given)

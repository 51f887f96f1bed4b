"""How a list that a framework passes relates to what an index has read: what is new, what is gone, and from where.

Pure comparison; `MessageIndex.sync` acts on the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from .errors import InputError
from .formats import MessageFormat
from .messages import Message
from .projection import Projection

__all__ = ["Departure", "as_list", "common_prefix", "follow"]


@attrs.frozen
class Departure:
    """Where a list goes on from what is known.

    Args:
        matched: How many messages of the list are known; the rest is new.
        cut: The source ordinal from which the known part no longer holds; ``None`` if all of it does.
        fed_back: Whether the list follows the last view, not the source.
    """

    matched: int
    cut: int | None = None
    fed_back: bool = False


def as_list(messages: Iterable[Any]) -> list[Any]:
    """The messages as a list.

    Raises:
        InputError: If this is no list of messages.
    """
    if isinstance(messages, list):
        return messages
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Iterable):
        raise InputError("messages: a conversation is a list of messages; wrap a single message in one")
    return list(messages)


def follow(
    projection: Projection, view: Sequence[Any] | None, given: Sequence[Any], format: MessageFormat, *, verify: bool
) -> Departure:
    """Where ``given`` goes on from the source or, if that matches further, from the last view.

    Args:
        projection: What is known.
        view: What was last sent, if that differs from the source.
        given: The full list as the framework has it.
        format: Says which messages are the same.
        verify: Whether to compare the contents of the same objects too.
    """
    source = projection.source
    matched = common_prefix(source, given, format)
    if verify:
        matched = _unchanged(projection.read, given, matched, format)
    if matched == len(source):
        return Departure(matched)
    shown = 0 if view is None else common_prefix(view, given, format)
    if verify:
        shown = _unchanged([message for message, _, _ in projection.messages()], given, shown, format)
    if view is not None and shown == len(view):
        return Departure(shown, fed_back=True)
    if shown > matched:
        return Departure(shown, cut=_ordinal_of(projection, shown), fed_back=True)
    return Departure(matched, cut=matched)


def _unchanged(known: Sequence[Message], given: Sequence[Any], matched: int, format: MessageFormat) -> int:
    """How many of the first messages still read as they did."""
    for place in range(matched):
        before, now = known[place], format.read(given[place], place)
        if (before.role, before.name, before.parts) != (now.role, now.name, now.parts):
            return place
    return matched


def _ordinal_of(projection: Projection, place: int) -> int:
    """The source ordinal that stands at a place of the view; for a summary, the first of what it stands for."""
    for at, (_, record, ordinal) in enumerate(projection.messages()):
        if at == place:
            return ordinal if record.inserted is None else min(projection.stands_for(record))
    raise AssertionError("the place lies within the view")


def common_prefix(known: Sequence[Any], given: Sequence[Any], format: MessageFormat) -> int:
    """How many first messages two lists share; O(shared), by identity first, then by the format's key."""
    shortest = min(len(known), len(given))
    if known[:shortest] == given[:shortest]:
        return shortest
    key = format.key
    for place in range(shortest):
        one, other = known[place], given[place]
        if one is not other and key(one) != key(other):
            return place
    return shortest

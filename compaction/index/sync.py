"""How a list that a framework passes relates to what an index has read: what is new, what is gone, and from where.

Pure comparison; `MessageIndex.sync` acts on the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from ..formats import MessageFormat
from ..messages import Message
from .projection import Projection

__all__ = ["Divergence", "follow"]


@attrs.frozen
class Divergence:
    """Where a list goes on from what is known.

    Args:
        matched: How many messages of the list are known; the rest is new.
        cut: The source ordinal from which the known part no longer holds; ``None`` if all of it does.
        fed_back: Whether the list follows the last view, not the source.
    """

    matched: int
    cut: int | None = None
    fed_back: bool = False


def follow(
    projection: Projection, view: Sequence[Any] | None, given: Sequence[Any], format: MessageFormat, *, verify: bool
) -> Divergence:
    """Where ``given`` goes on from the source or, if that matches further, from the last view.

    Args:
        projection: What is known.
        view: What was last sent, if that differs from the source.
        given: The full list as the framework has it.
        format: Says which messages are the same.
        verify: Whether to compare the contents of the same objects too.
    """
    source = projection.source
    matched = format.common_prefix(source, given)
    if verify:
        matched = _unchanged(projection.read, given, matched, format)
    if matched == len(source):
        return Divergence(matched)
    shown = 0 if view is None else format.common_prefix(view, given)
    if verify:
        shown = _unchanged([message for message, _, _ in projection.messages()].__getitem__, given, shown, format)
    if view is not None and shown == len(view):
        return Divergence(shown, fed_back=True)
    if shown > matched:
        return Divergence(shown, cut=_ordinal_of(projection, shown), fed_back=True)
    return Divergence(matched, cut=matched)


def _unchanged(known: Callable[[int], Message], given: Sequence[Any], matched: int, format: MessageFormat) -> int:
    """How many of the first messages still read as they did."""
    for place in range(matched):
        before, now = known(place), format.read(given[place], place)
        if (before.role, before.name, before.parts) != (now.role, now.name, now.parts):
            return place
    return matched


def _ordinal_of(projection: Projection, place: int) -> int:
    """The source ordinal that stands at a place of the view; for a summary, the first of what it stands for."""
    for at, (_, id, ordinal) in enumerate(projection.messages()):
        if at == place:
            return ordinal if id >= 0 else min(projection.stands_for(id))
    raise AssertionError("the place lies within the view")

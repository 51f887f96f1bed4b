"""The columns of an index, and what stands in them: messages that come in, and groups that edits insert."""

from __future__ import annotations

from typing import Any

import attrs

from ..messages import Message, Outline

__all__ = ["Fresh", "Inserted"]


@attrs.define(eq=False)
class Fresh:
    """Messages that are not added yet, as columns.

    Args:
        raws: The caller's objects.
        reads: What was read of each: all of it, or its outline.
        tokens: The tokens of each.
        bytes: The bytes of each.
        pinned: The places, from 0, of those whose groups must stay as they are.
    """

    raws: list[Any]
    reads: list[Outline | Message]
    tokens: list[int]
    bytes: list[int]
    pinned: list[int] = attrs.Factory(list[int])

    def __getitem__(self, part: slice) -> Fresh:
        start, end, _ = part.indices(len(self.raws))
        pinned = [place - start for place in self.pinned if start <= place < end]
        return Fresh(self.raws[part], self.reads[part], self.tokens[part], self.bytes[part], pinned)

    def __add__(self, other: Fresh) -> Fresh:
        pinned = self.pinned + [place + len(self.raws) for place in other.pinned]
        return Fresh(
            self.raws + other.raws, self.reads + other.reads, self.tokens + other.tokens, self.bytes + other.bytes, pinned
        )


@attrs.define(eq=False)
class Inserted:
    """A summary group that an edit inserted. Holds state: whether the view shows it.

    Args:
        id: Its id, below 0.
        messages: Its messages.
        anchor: The ordinal of the source message it stands directly before.
        replaces: Ids of the groups it stands for.
        tokens: Its tokens.
        bytes: Its bytes.
        made_by: The strategy that wrote it.
        excluded: Whether it is out of the view.
    """

    id: int
    messages: tuple[Message, ...]
    anchor: int
    replaces: tuple[int, ...]
    tokens: int
    bytes: int
    made_by: str | None
    excluded: bool = False

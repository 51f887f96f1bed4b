"""Reading: new messages are read and measured before the index adds them, so that nothing changes if one cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from ..checks import must_be
from ..formats import MessageFormat
from ..json_data import too_deep
from ..messages import Message, Outline
from ..tokens import MessageMeter
from .marks import MARK_START


@attrs.define(eq=False)
class NewMessages:
    """Messages that were read and measured and can be added to an index, as columns."""

    raws: list[Any]
    reads: list[Outline | Message]  # each message as it was read: completely, or its outline only
    tokens: list[int]
    bytes: list[int]
    pinned: list[int] = attrs.Factory(list[int])  # the places, from 0, of the messages whose groups must be kept unchanged

    def at(self, places: Sequence[int]) -> NewMessages:
        """Return the messages at these places."""
        raws, reads = [self.raws[place] for place in places], [self.reads[place] for place in places]
        return NewMessages(raws, reads, [self.tokens[place] for place in places], [self.bytes[place] for place in places])


@attrs.frozen(eq=False)
class MessageReader:
    """Reads and measures the messages of one format."""

    format: MessageFormat
    meter: MessageMeter
    # returns true for a message whose group must be kept unchanged; ``None`` if no message is
    pin: Callable[[Message], bool] | None = attrs.field(
        default=None, validator=must_be("a function of a message", lambda pin: pin is None or callable(pin))
    )

    def new(self, raws: Sequence[Any], start: int = 0) -> NewMessages:
        """Read and measure messages. ``start`` is the place of the first one in the caller's list, for errors."""
        return self.measured(list(raws), self.outlines(raws, start))

    def outlines(self, raws: Sequence[Any], start: int) -> list[Outline | Message]:
        """Read messages: of most only the outline, completely if they have none, may be marked or may be pinned."""
        outline: Callable[[Any], Outline | None] = self.format.outline if self.pin is None else lambda _: None
        return [
            glance
            if (glance := outline(raw)) is not None and (glance[1] is None or not glance[1].startswith(MARK_START))
            else self.read(raw, place)
            for place, raw in enumerate(raws, start)
        ]

    def read(self, raw: Any, place: int) -> Message:
        """Read a message completely."""
        try:
            return self.format.read(raw, place)
        except RecursionError:
            raise too_deep([raw], place) from None

    def measured(self, raws: list[Any], reads: list[Outline | Message]) -> NewMessages:
        """Measure messages that were read."""
        outlines = [read for read in reads if isinstance(read, tuple)]
        tokens, sizes = self.meter.measure_outlines(outlines)
        if len(outlines) == len(reads):
            return NewMessages(raws, reads, tokens, sizes)
        outlined = zip(tokens, sizes, strict=True)
        both = [next(outlined) if isinstance(read, tuple) else self.meter.measure(read) for read in reads]
        pin, pinned = self.pin, list[int]()
        if pin is not None:
            pinned = [place for place, read in enumerate(reads) if isinstance(read, Message) and pin(read)]
        return NewMessages(raws, reads, [tokens for tokens, _ in both], [size for _, size in both], pinned)

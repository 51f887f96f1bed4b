"""The state behind an index: every message read, what the view shows of it, and the sums.

All that happens is made of a few changes, each with an exact inverse: `exclude` and `include`, `insert` and `withdraw`,
`show` and `show` again with what it returned. So an edit is undone by undoing its changes in reverse. Source messages have
ordinals; what an edit inserts hangs at the ordinal where it stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from .groups import Grouping, GroupKind, GroupRecord, MessageGroup
from .making import maker
from .marks import COLLAPSED_BY
from .messages import Message
from .metrics import Tally

__all__ = ["Projection", "Shown"]

Shown: TypeAlias = tuple[Message | None, int, int]
"""What the view shows at an ordinal: the message (``None``: nothing), its tokens and its bytes."""

_group = maker(MessageGroup)


class Projection:
    """Messages, groups and sums. Holds state; every change is O(what it names).

    Attributes:
        source: The caller's objects, in order.
        read: The same, read; these never change.
        grouping: The groups of the source.
        by_id: Every group, of the source or inserted, by its id.
        total: Sums over the source.
        included: Sums over what the view shows.
        made: How many groups were inserted; the next one's id is ``-(made + 1)``.
    """

    __slots__ = ("_anchored", "_owners", "_shown", "by_id", "grouping", "included", "made", "read", "source", "total")

    def __init__(self) -> None:
        self.source: list[Any] = []
        self.read: list[Message] = []
        self.grouping = Grouping()
        self.by_id: dict[int, GroupRecord] = {}
        self.total = Tally()
        self.included = Tally()
        self.made = 0
        self._shown: list[Shown] = []
        self._owners: list[GroupRecord] = []
        self._anchored: dict[int, list[GroupRecord]] = {}

    # ---------------------------------------------------------------- growing

    def append(self, raw: Any, message: Message, tokens: int, size: int) -> GroupRecord:
        """Add the next source message and return its group; if that is excluded, the caller restores it."""
        ordinal = len(self.source)
        pending = self.grouping.pending
        record = self.grouping.add(ordinal, message)
        if pending is not None and pending is not self.grouping.pending:
            pending.snapshot = None
        self.source.append(raw)
        self.read.append(message)
        self._shown.append((message, tokens, size))
        self._owners.append(record)
        if record.id == ordinal:
            record.tokens, record.bytes, record.messages = tokens, size, 1
            self.by_id[ordinal] = record
            self.total.add(record)
            self.included.add(record)
            return record
        calls = 0 if message.role == "tool" else sum(1 for _ in message.tool_calls())
        if calls:
            self.total.tool_calls += calls
            if not record.excluded:
                self.included.tool_calls += calls
        if self.grouping.left_turn is not None:
            self.total.turn_over(record, self.grouping.left_turn)
            if not record.excluded:
                self.included.turn_over(record, self.grouping.left_turn)
        self.total.grow(tokens, size, 1)
        self._grow(record, tokens, size, 1)
        return record

    def _grow(self, record: GroupRecord, tokens: int, size: int, messages: int) -> None:
        record.tokens += tokens
        record.bytes += size
        record.messages += messages
        record.snapshot = None
        if not record.excluded:
            self.included.grow(tokens, size, messages)

    # ---------------------------------------------------------------- changing

    def exclude(self, record: GroupRecord) -> None:
        """Take a group out of the view."""
        record.excluded = True
        self.included.remove(record)

    def include(self, record: GroupRecord) -> None:
        """Bring an excluded group back."""
        record.excluded = False
        self.included.add(record)

    def insert(
        self, messages: tuple[Message, ...], sizes: tuple[int, int], anchor: int, replaces: tuple[int, ...]
    ) -> GroupRecord:
        """Show a new summary group directly before the source message at ``anchor``.

        Args:
            messages: Its messages.
            sizes: Their tokens and bytes.
            anchor: The ordinal where it stands.
            replaces: Ids of the groups it stands for.
        """
        self.made += 1
        record = GroupRecord(-self.made, GroupKind.SUMMARY, None)
        record.ordinals = []
        record.inserted = messages
        record.anchor = anchor
        record.replaces = replaces
        record.tokens, record.bytes = sizes
        record.messages = len(messages)
        self.by_id[record.id] = record
        self._anchored.setdefault(anchor, []).append(record)
        self.included.add(record)
        return record

    def line_for(self, record: GroupRecord) -> GroupRecord | None:
        """The collapsed tool call that the view shows for this group alone; ``None`` if there is none."""
        for line in self._anchored.get(record.anchor, ()):
            if not line.excluded and line.made_by == COLLAPSED_BY and line.replaces == (record.id,):
                return line
        return None

    def withdraw(self, record: GroupRecord) -> None:
        """Undo the newest insertion."""
        self.included.remove(record)
        here = self._anchored[record.anchor]
        here.pop()
        if not here:
            del self._anchored[record.anchor]
        del self.by_id[record.id]
        self.made -= 1

    def show(self, ordinal: int, shown: Shown) -> Shown:
        """Show something else at an ordinal; returns what was shown before."""
        before = self._shown[ordinal]
        self._shown[ordinal] = shown
        messages = (shown[0] is not None) - (before[0] is not None)
        self._grow(self._owners[ordinal], shown[1] - before[1], shown[2] - before[2], messages)
        return before

    # ---------------------------------------------------------------- reading

    def visible_ordinals(self, record: GroupRecord) -> list[int]:
        """The ordinals of a source group at which the view shows a message."""
        return [ordinal for ordinal in record.ordinals if self._shown[ordinal][0] is not None]

    def directly_before(self, record: GroupRecord) -> int | None:
        """Where the source message stands that the view shows directly before a group; ``None`` if it is none of the source.

        O(messages passed over, which are not in the view).
        """
        anchored = self._anchored
        for inserted in anchored.get(record.anchor, ()):
            if inserted is record:
                break
            if not inserted.excluded:
                return None
        for ordinal in range(record.anchor - 1, -1, -1):
            if not self._owners[ordinal].excluded and self._shown[ordinal][0] is not None:
                return ordinal
            if any(not inserted.excluded for inserted in anchored.get(ordinal, ())):
                return None
        return None

    def records(self) -> Iterator[GroupRecord]:
        """Every group that the view shows, in the order of their first messages."""
        anchored = self._anchored
        for record in self.grouping.records:
            if anchored and record.id in anchored:
                for inserted in anchored[record.id]:
                    if not inserted.excluded:
                        yield inserted
            if not record.excluded:
                yield record

    def messages(self) -> Iterator[tuple[Message, GroupRecord, int]]:
        """Every message that the view shows, in order, with its group and the ordinal where it stands."""
        anchored = self._anchored
        for ordinal, (shown, record) in enumerate(zip(self._shown, self._owners, strict=True)):
            if anchored and ordinal in anchored:
                for inserted in anchored[ordinal]:
                    if not inserted.excluded:
                        for message in inserted.inserted or ():
                            yield message, inserted, ordinal
            if not record.excluded and shown[0] is not None:
                yield shown[0], record, ordinal

    def stands_for(self, record: GroupRecord) -> set[int]:
        """The ordinals of the source messages that a group stands for, through any number of rounds."""
        ordinals: set[int] = set(record.ordinals)
        waiting = list(record.replaces)
        while waiting:
            inner = self.by_id[waiting.pop()]
            ordinals.update(inner.ordinals)
            waiting.extend(inner.replaces)
        return ordinals

    def snapshot(self, record: GroupRecord) -> MessageGroup:
        """The group as a value; cached until it changes."""
        if record.snapshot is None:
            record.snapshot = self._freeze(record)
        return record.snapshot

    def _freeze(self, record: GroupRecord) -> MessageGroup:
        messages = record.inserted
        if messages is None:
            shown = self._shown
            messages = tuple([message for at in record.ordinals if (message := shown[at][0]) is not None])
        calls = record.call_ids
        return _group(
            record.id,
            record.kind,
            messages,
            record.turn,
            record.tokens,
            record.bytes,
            0 if calls is None else len(calls),
            bool(record.open_ids),
            self.grouping.pending is record,
            record.orphan,
            record.pinned,
            record.made_by,
            record.replaces,
        )

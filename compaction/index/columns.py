"""The columns: all data of an index. They are the source and its groups, the view with its sums, and the journal.

Messages and groups are stored as columns: flat lists indexed by a message's ordinal, or by the ordinal of a group's first
message. Every edit consists of a few changes, each with an exact inverse: `set_shown` with the opposite, `insert` and
`withdraw`, `show` and `show` with its result.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, TypeAlias

from ..errors import InputError
from ..formats import MessageFormat
from ..messages import Message, Outline
from .edits import Applied, Shown
from .grouping import Grouping
from .groups import GroupKind, MessageGroup, asks_user
from .marks import COLLAPSED_BY, Marks
from .metrics import Tally
from .reading import NewMessages
from .visibility import Inserted, Node, Visibility

Measure: TypeAlias = Callable[[Message], tuple[int, int]]
"""Tokens and bytes of one message."""


class Columns:
    """The data of an index. Holds state; a change costs O(the messages of the group it names)."""

    def __init__(self, format: MessageFormat, measure: Measure, marks: Marks | None = None) -> None:
        self.format = format
        self.measure = measure
        self.source: list[Any] = []  # the caller's objects, in order
        self.grouping = Grouping(marks)
        self.journal: list[Applied] = []
        self.visibility = Visibility()  # the nodes that the view shows, and their neighbours
        self.inserted = self.visibility.inserted  # the groups that edits inserted, by id
        self.pinned: set[int] = set()  # ids of the groups that must be kept unchanged
        self.pinned_by_id: set[int] = set()  # those that were pinned by id, not by a function
        self.total, self.included = Tally(), Tally()
        self.system_messages = 0  # the number of system messages in the view
        self.reads: list[Outline | Message] = []  # each message as it was read so far: completely, or its outline only
        self._tokens: list[int] = []  # of the message that the view shows at an ordinal
        self._bytes: list[int] = []
        self._group_tokens: list[int] = []  # of the group that starts at an ordinal
        self._group_bytes: list[int] = []
        self._group_messages: list[int] = []
        self._gone = bytearray()  # by group: whether it is excluded
        self._rewritten: dict[int, Message | None] = {}
        self._raws: list[Any] = []  # the object of the message that the view shows at an ordinal
        self._snapshots: dict[int, MessageGroup] = {}

    # ---------------------------------------------------------------- adding messages

    def extend(self, fresh: NewMessages, restore: Callable[[int], object]) -> None:
        """Add source messages at the end; O(new). ``restore`` is called with the id of an excluded group that one joins."""
        grouping = self.grouping
        start, groups_before = len(self.source), len(grouping.ids)
        instructions_before, calls_before = grouping.instructions.count, grouping.calls.count
        self._add_columns(fresh)
        add, add_outline, tool_calls = grouping.add, grouping.add_outline, grouping.calls
        for ordinal, read in enumerate(fresh.reads, start):
            turn, calls = grouping.turn, tool_calls.count
            id = add_outline(read) if isinstance(read, tuple) else add(read, self._tokens[ordinal])
            if id != ordinal:
                self._join(id, ordinal, start, moved=grouping.turn != turn, calls=tool_calls.count - calls)
                if self._gone[id]:
                    restore(id)
        self.system_messages += grouping.instructions.count - instructions_before
        if fresh.pinned:
            self.pinned.update([grouping.group_of[start + place] for place in fresh.pinned])
        new_groups = Counter([grouping.turns[id] for id in grouping.ids[groups_before:]])
        for tally in (self.total, self.included):
            tally.tool_calls += tool_calls.count - calls_before
            for turn_of_groups, count in new_groups.items():
                tally.count_groups(turn_of_groups, count)

    def _add_columns(self, fresh: NewMessages) -> None:
        """Add messages as separate groups that the view shows; groups are counted later."""
        count = len(fresh.raws)
        self.source += fresh.raws
        self._raws += fresh.raws
        self.reads += fresh.reads
        self._tokens += fresh.tokens
        self._bytes += fresh.bytes
        self._group_tokens += fresh.tokens
        self._group_bytes += fresh.bytes
        self._group_messages += [1] * count
        self._gone += bytes(count)
        self.visibility.messages += b"\1" * count
        for tally in (self.total, self.included):
            tally.grow(sum(fresh.tokens), sum(fresh.bytes), count)

    def _join(self, id: int, ordinal: int, start: int, *, moved: bool, calls: int) -> None:
        """Add a message's sizes to the earlier group that it joined."""
        tokens, size = self._tokens[ordinal], self._bytes[ordinal]
        self._group_tokens[id] += tokens
        self._group_bytes[id] += size
        self._group_messages[id] += 1
        self._snapshots.pop(id, None)
        gone = self._gone[id]
        if gone:
            self.visibility.messages[ordinal] = 0
            self.included.grow(-tokens, -size, -1, -calls)
        if moved and id < start:  # a message with a result and the user's words moved the group to a new turn
            for tally in (self.total,) if gone else (self.total, self.included):
                tally.count_groups(self.grouping.moved_from, -1)
                tally.count_groups(self.grouping.turns[id], 1)

    # ---------------------------------------------------------------- facts of one group, by its id

    def require(self, id: int) -> int:
        """Return the id if a group has it; otherwise raise an `InputError`."""
        if self.exists(id):
            return id
        raise InputError(f"group {id}: this group does not exist; take ids from included_groups or edits")

    def exists(self, id: int) -> bool:
        """Whether the group exists, in the view or not."""
        if id < 0:
            return id in self.inserted
        return id < len(self.source) and self.grouping.group_of[id] == id

    def is_included(self, id: int) -> bool:
        """Whether the group exists and the view shows it."""
        if id < 0:
            return self.visibility.is_shown(id)
        return id < len(self._gone) and not self._gone[id] and self.grouping.group_of[id] == id

    def in_view(self, ids: Collection[int]) -> list[int]:
        """Return those of these groups that the view shows; raise an `InputError` if one does not exist."""
        shown = [*filter(self.is_included, ids)]
        if len(shown) < len(ids):
            for id in ids:
                self.require(id)
        return shown

    def kind(self, id: int) -> GroupKind:
        """Return the kind of a group."""
        return GroupKind.SUMMARY if id < 0 else self.grouping.kinds[id]

    def asks_user(self, id: int) -> bool:
        """Return `MessageGroup.asks_user` of a group that calls tools; O(its messages), of which none is read completely."""
        for ordinal in self.grouping.ordinals(id):
            read = self.reads[ordinal]
            names = [name for _, name, _ in read[2]] if isinstance(read, tuple) else [call.name for call in read.tool_calls()]
            if any(map(asks_user, names)):
                return True
        return False

    def turn(self, id: int) -> int | None:
        """Return the turn of a group."""
        return None if id < 0 else self.grouping.turns[id]

    def anchor(self, id: int) -> int:
        """Return the ordinal of a node; of an inserted group, the ordinal of the source message after it."""
        return self.inserted[id].anchor if id < 0 else id

    def tokens(self, id: int) -> int:
        """Return the tokens of a group as the view shows it."""
        return self.inserted[id].tokens if id < 0 else self._group_tokens[id]

    def messages_in(self, id: int) -> int:
        """Return how many messages of a group the view shows."""
        return len(self.inserted[id].messages) if id < 0 else self._group_messages[id]

    def made_by(self, id: int) -> str | None:
        """Return the strategy that wrote a summary."""
        return self.inserted[id].made_by if id < 0 else self.grouping.made_by.get(id)

    def summaries(self) -> set[int]:
        """Return the ids of the summary groups, in the view or not; O(their number)."""
        return {*self.grouping.made_by, *self.inserted}

    def is_collapsed(self, id: int) -> bool:
        """Whether a group is a tool call collapsed to a line of text."""
        return self.kind(id) is GroupKind.SUMMARY and self.made_by(id) == COLLAPSED_BY

    def ordinals(self, id: int) -> Sequence[int]:
        """Return the ordinals of a group's source messages; none for an inserted group."""
        return () if id < 0 else self.grouping.ordinals(id)

    # ---------------------------------------------------------------- single messages and nodes

    def read(self, ordinal: int) -> Message:
        """Return the source message at an ordinal."""
        read = self.reads[ordinal]
        if isinstance(read, tuple):
            read = self.reads[ordinal] = self.format.of_outline(read, self.source[ordinal])
        return read

    def shown(self, ordinal: int) -> Message | None:
        """Return the present version of a source message, in the view or not; ``None`` if a rewrite removed it."""
        return self._rewritten[ordinal] if ordinal in self._rewritten else self.read(ordinal)

    def shows(self, ordinal: int) -> bool:
        """Whether `shown` is a message."""
        return self._rewritten.get(ordinal, self) is not None

    def shown_ordinals(self, id: int) -> list[int]:
        """Return the ordinals of a source group without the messages that a rewrite removed."""
        return [ordinal for ordinal in self.ordinals(id) if self.shows(ordinal)]

    def at(self, node: Node, *, end: bool) -> Message:
        """Return the first or the last message of a node; they differ only for a summary of two messages."""
        if node < 0:
            return self.inserted[node].messages[-1 if end else 0]
        message = self.shown(node)
        assert message is not None
        return message

    def group_at(self, node: Node) -> int:
        """Return the group of a node."""
        return node if node < 0 else self.grouping.group_of[node]

    # ---------------------------------------------------------------- changing the view

    def set_shown(self, ids: Iterable[int], *, shown: bool) -> None:
        """Hide groups of the view, or show hidden ones again."""
        visibility, grouping, included, times = self.visibility, self.grouping, self.included, 1 if shown else -1
        for id in ids:
            if id < 0:
                visibility.set(id, shown=shown)
                group = self.inserted[id]
                included.grow(times * group.tokens, times * group.bytes, times * len(group.messages))
                included.groups += times
                continue
            self._gone[id] = not shown
            for ordinal in grouping.ordinals(id):
                visibility.messages[ordinal] = shown and self.shows(ordinal)
            if grouping.kinds[id] is GroupKind.SYSTEM:
                self.system_messages += times
            tokens, size, messages = self._group_tokens[id], self._group_bytes[id], self._group_messages[id]
            included.grow(times * tokens, times * size, times * messages, times * len(grouping.calls.ids.get(id, ())))
            included.count_groups(grouping.turns[id], times)

    def insert(
        self, messages: tuple[Message, ...], sizes: tuple[int, int], anchor: int, replaces: tuple[int, ...], made_by: str | None
    ) -> int:
        """Show a new summary group directly before the source message at ``anchor``, and return its id."""
        id = -len(self.inserted) - 1
        self.inserted[id] = Inserted(id, messages, anchor, replaces, *sizes, made_by)
        self.set_shown([id], shown=True)
        return id

    def withdraw(self, id: int) -> None:
        """Undo the newest insertion."""
        self.set_shown([id], shown=False)
        del self.inserted[id]
        self._snapshots.pop(id, None)
        self.pinned.discard(id)
        self.pinned_by_id.discard(id)

    def show(self, ordinal: int, shown: Shown) -> Shown:
        """Show another message at an ordinal, or none, and return what was shown before."""
        before = (self.shown(ordinal), self._tokens[ordinal], self._bytes[ordinal])
        message, tokens, size = shown
        if message is self.reads[ordinal]:
            self._rewritten.pop(ordinal, None)
            self._raws[ordinal] = self.source[ordinal]
        else:
            self._rewritten[ordinal] = message
            self._raws[ordinal] = None if message is None else message.raw
        self._tokens[ordinal], self._bytes[ordinal] = tokens, size
        id = self.grouping.group_of[ordinal]
        more = (message is not None) - (before[0] is not None)
        self._group_tokens[id] += tokens - before[1]
        self._group_bytes[id] += size - before[2]
        self._group_messages[id] += more
        self._snapshots.pop(id, None)
        if not self._gone[id]:
            self.included.grow(tokens - before[1], size - before[2], more)
            self.visibility.messages[ordinal] = message is not None
        return before

    def pin(self, ids: Collection[int], *, by_id: bool) -> None:
        """Keep groups unchanged from now on."""
        self.pinned.update(ids)
        if by_id:
            self.pinned_by_id.update(ids)
        for id in ids:
            self._snapshots.pop(id, None)

    # ---------------------------------------------------------------- the view as a whole

    def ids(self) -> list[int]:
        """Return the id of every group of the view, in the order of their first messages; O(the view)."""
        visibility = self.visibility
        if visibility.is_complete:
            return self.grouping.ids.copy()
        found, groups = list[int](), list[int]()  # the second in the order of messages, with repetitions
        visibility.add_shown(groups, self.grouping.group_of, 0, len(self.source))
        ids = sorted(set(groups))
        for start, end, inserted in visibility.parts():
            found += ids[bisect_left(ids, start) : bisect_left(ids, end)]
            found += inserted
        return found

    def raws(self) -> list[Any]:
        """Return the view as wire messages: the caller's objects, and new ones of edits. O(messages), at C speed."""
        if self.visibility.is_complete:
            return self._raws.copy()
        raws: list[Any] = []
        for start, end, inserted in self.visibility.parts():
            self.visibility.add_shown(raws, self._raws, start, end)
            raws += [message.raw for id in inserted for message in self.inserted[id].messages]
        return raws

    def stands_for(self, ids: Iterable[int]) -> list[range]:
        """Return the ordinals of the messages that groups contain or replace, through any number of rounds; O(these)."""
        ordinals, waiting, members = set[int](), list(ids), self.grouping.members.get
        while waiting:
            of_source = [id for id in waiting if id >= 0]
            ordinals.update(of_source, *filter(None, map(members, of_source)))  # the id of a group is its first ordinal
            waiting = [each for id in waiting if id < 0 for each in self.inserted[id].replaces]
        return runs_of(ordinals)

    def snapshot(self, id: int) -> MessageGroup:
        """Return the group as a value, which is made once until the group changes; each time for one with open calls."""
        group = self._snapshots.get(id) or self._freeze(id)
        if not group.open:
            self._snapshots[id] = group
        return group

    def snapshots(self, ids: Iterable[int]) -> tuple[MessageGroup, ...]:
        """Return groups as values; O(groups) at C speed for those that have not changed."""
        known, snapshot = self._snapshots.get, self.snapshot
        return tuple([known(id) or snapshot(id) for id in ids])

    def _freeze(self, id: int) -> MessageGroup:
        if id < 0:
            group = self.inserted[id]
            return MessageGroup(
                *(id, GroupKind.SUMMARY, group.messages, None, group.tokens, group.bytes),
                pinned=id in self.pinned,
                made_by=group.made_by,
                replaces=group.replaces,
            )
        grouping, rewritten, read = self.grouping, self._rewritten, self.read
        shown = [rewritten[at] if at in rewritten else read(at) for at in grouping.ordinals(id)]
        messages = tuple([message for message in shown if message is not None])
        calls = grouping.calls
        sizes = (self._group_tokens[id], self._group_bytes[id], len(calls.ids.get(id, ())))
        state = (bool(calls.waiting.get(id)), calls.pending == id, id in grouping.orphans, id in self.pinned)
        return MessageGroup(id, grouping.kinds[id], messages, grouping.turns[id], *sizes, *state, grouping.made_by.get(id))


def runs_of(ordinals: Iterable[int]) -> list[range]:
    """Return ordinals as runs.

    >>> runs_of([4, 5, 0, 1, 2])
    [range(0, 3), range(4, 6)]
    """
    found: list[range] = []
    start = stop = -1
    for at in sorted(ordinals):
        if at != stop:
            if stop > start:
                found.append(range(start, stop))
            start = at
        stop = at + 1
    return [*found, range(start, stop)] if stop > start else found

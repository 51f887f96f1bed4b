"""Groups: the units a conversation can be taken apart into without breaking it.

A provider refuses a tool result whose call is gone, and a call whose results are. So nothing here is ever dropped by the
message: an assistant message with tool calls, every result that answers them, and the reasoning around it are one
`MessageGroup`, kept or dropped whole. `Grouping` reads a conversation message by message; its rules look backward only, so a
conversation may be appended to for ever at O(1) a message.
"""

from __future__ import annotations

import enum
from typing import Final

import attrs

from .collapsed import tools_of
from .marks import COLLAPSED_BY, read_mark
from .messages import Message, Reasoning, Text, ToolCall, ToolResult

__all__ = ["GroupKind", "GroupRecord", "Grouping", "MessageGroup", "only_reasoning"]


class GroupKind(enum.Enum):
    """What a group is, which decides what may happen to it."""

    SYSTEM = "system"
    """One system or developer message; belongs to no turn and is never dropped unless a strategy's options say so."""

    USER = "user"
    """One user message; starts the next turn."""

    ASSISTANT = "assistant"
    """What the assistant says without calling a tool."""

    TOOL_CALL = "tool_call"
    """An assistant message with tool calls, the results that answer them, and the reasoning directly around it."""

    SUMMARY = "summary"
    """What a strategy wrote in place of other groups; belongs to no turn."""

    def __repr__(self) -> str:
        return f"GroupKind.{self.name}"


@attrs.frozen(weakref_slot=False)
class MessageGroup:
    """Messages that stay or go together: a snapshot, safe to keep while the index changes.

    Args:
        id: The ordinal of its first message, from 0; negative for a group that an edit inserted.
        kind: What it is.
        messages: Its messages as the view shows them now, in order.
        turn: The turn it belongs to, from 1; 0 before the first user message; ``None`` for system and summary groups.
        tokens: Tokens of its messages, their overhead included.
        bytes: UTF-8 bytes of its texts, and of data carried in it.
        tool_calls: How many calls it makes.
        open: Whether a call has no result.
        pending: Whether it is open and a result may still come, because nothing but results follows it.
        orphan: Whether it is a result that answers no call.
        pinned: Whether somebody asked for it to be kept as it is.
        made_by: The strategy that wrote it, for a summary.
        replaces: Ids of the groups it stands for, for a summary written on this index.
    """

    id: int
    kind: GroupKind
    messages: tuple[Message, ...]
    turn: int | None
    tokens: int
    bytes: int
    tool_calls: int = 0
    open: bool = False
    pending: bool = False
    orphan: bool = False
    pinned: bool = False
    made_by: str | None = None
    replaces: tuple[int, ...] = ()

    @property
    def is_collapsed(self) -> bool:
        """Whether it is a tool call shortened to a line: dropped like what it stands for, not kept like a summary."""
        return self.kind is GroupKind.SUMMARY and self.made_by == COLLAPSED_BY

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The names of the tools it calls, in order, repeated as called; of a collapsed tool call, those its text names."""
        if self.is_collapsed:
            return tools_of(self.messages[0].text)
        return tuple(call.name for message in self.messages for call in message.tool_calls())


class GroupRecord:
    """A group while it can still grow; the index keeps one for each group, and hands out `MessageGroup` snapshots."""

    __slots__ = (
        "anchor",
        "answering",
        "bytes",
        "call_ids",
        "excluded",
        "id",
        "inserted",
        "kind",
        "made_by",
        "messages",
        "open_ids",
        "ordinals",
        "orphan",
        "pinned",
        "reasoning_only",
        "replaces",
        "snapshot",
        "tokens",
        "turn",
    )

    def __init__(self, id: int, kind: GroupKind, turn: int | None) -> None:
        self.id: Final = id
        self.kind = kind
        self.turn = turn
        self.ordinals = [id]
        self.call_ids: list[str] | None = None
        self.open_ids: list[str] | None = None
        self.orphan = False
        self.reasoning_only = False
        self.answering = False
        self.pinned = False
        self.excluded = False
        self.made_by: str | None = None
        self.replaces: tuple[int, ...] = ()
        self.inserted: tuple[Message, ...] | None = None
        self.anchor = id
        self.tokens = 0
        self.bytes = 0
        self.messages = 0
        self.snapshot: MessageGroup | None = None


class Grouping:
    """The grouping rules, applied message by message. Holds state: the groups so far and the calls still open.

    Attributes:
        records: Every group so far, by first message.
        turn: The current turn; 0 before the first user message.
        newest: The newest group that is not a system group.
        last_user: The group of the last user message.
        last_words: The last tool-call group with words of the user beside its results, if that comes after ``last_user``.
        pending: The tool-call group that may still get results because nothing but results follows it.
        left_turn: The turn that the last message added moved its group out of, because the user's words came with results;
            ``None`` if it did not.
    """

    def __init__(self) -> None:
        self.records: list[GroupRecord] = []
        self.turn = 0
        self.newest: GroupRecord | None = None
        self.last_user: GroupRecord | None = None
        self.last_words: GroupRecord | None = None
        self.pending: GroupRecord | None = None
        self.left_turn: int | None = None
        self._previous: GroupRecord | None = None
        self._open: dict[str, list[GroupRecord]] = {}
        self._begun: dict[str, GroupRecord] = {}

    def add(self, ordinal: int, message: Message) -> GroupRecord:
        """The group that the next message belongs to: a new one, or an earlier one it joins. O(parts of the message)."""
        role = message.role
        self.left_turn = None
        if role == "tool" or role == "function":
            record = self._add_result(ordinal, message)
            record.answering = False
        elif role == "user" and _has(message, ToolResult):
            record = self._add_results_and_words(ordinal, message)
        elif (mark := read_mark(message)) is not None and not _has(message, ToolCall):
            record = self._start(ordinal, GroupKind.SUMMARY, None)
            record.made_by = mark.by
        elif role == "user" and message.continues and self._previous is not None and self._previous.kind is GroupKind.SUMMARY:
            record = self._previous
            record.ordinals.append(ordinal)
        elif role == "user":
            self.turn += 1
            record = self._start(ordinal, GroupKind.USER, self.turn)
            self.last_user, self.last_words = record, None
        elif role == "system" or role == "developer":
            record = self._start(ordinal, GroupKind.SYSTEM, None)
        else:
            record = self._add_assistant(ordinal, message)
            record.answering = role == "assistant"
            for id in message.begins:
                self._begun[id] = record
        self._previous = record
        return record

    def _start(self, ordinal: int, kind: GroupKind, turn: int | None) -> GroupRecord:
        record = GroupRecord(ordinal, kind, turn)
        self.records.append(record)
        if kind is not GroupKind.SYSTEM:
            self.newest = record
        self.pending = None
        return record

    def _add_assistant(self, ordinal: int, message: Message) -> GroupRecord:
        calls = [part.id for part in message.parts if isinstance(part, ToolCall)]
        previous = self._previous
        if message.resumes and (begun := self._begun_by(message.resumes)) is not None:
            return self._go_on(begun, ordinal, calls)
        if message.continues and previous is not None and previous.answering:
            return self._go_on(previous, ordinal, calls)
        if calls:
            return self._add_calls(ordinal, calls)
        if not only_reasoning(message):
            return self._start(ordinal, GroupKind.ASSISTANT, self.turn)
        follows = previous is not None and (previous.reasoning_only or (previous.call_ids is not None and not previous.orphan))
        if previous is not None and follows and not message.continues:
            previous.ordinals.append(ordinal)
            return previous
        record = self._start(ordinal, GroupKind.ASSISTANT, self.turn)
        record.reasoning_only = True
        return record

    def _begun_by(self, ids: tuple[str, ...]) -> GroupRecord | None:
        """The group in which the provider began to run one of these, or may have, if only the provider knows."""
        return next((self._begun[id] for id in (*ids, "") if id in self._begun), None)

    def _go_on(self, record: GroupRecord, ordinal: int, calls: list[str]) -> GroupRecord:
        """The group of the answer that this message goes on with."""
        record.ordinals.append(ordinal)
        record.reasoning_only = False
        if calls:
            record.kind = GroupKind.TOOL_CALL
            record.call_ids = (record.call_ids or []) + calls
            record.open_ids = (record.open_ids or []) + calls
            self._wait(record, calls)
        return record

    def _wait(self, record: GroupRecord, calls: list[str]) -> None:
        """Let later results find the group that made these calls."""
        for call_id in calls:
            self._open.setdefault(call_id, []).append(record)
        self.pending = record

    def _add_calls(self, ordinal: int, calls: list[str]) -> GroupRecord:
        """A new tool-call group; reasoning directly before it becomes part of it."""
        record = self._previous
        if record is not None and record.reasoning_only:
            record.ordinals.append(ordinal)
            record.kind = GroupKind.TOOL_CALL
            record.reasoning_only = False
        else:
            record = self._start(ordinal, GroupKind.TOOL_CALL, self.turn)
        record.call_ids = calls
        record.open_ids = calls.copy()
        self._wait(record, calls)
        return record

    def _add_results_and_words(self, ordinal: int, message: Message) -> GroupRecord:
        """The group of the calls it answers, or one of its own; either way the user speaks in it, so it starts a turn."""
        record = self._add_result(ordinal, message)
        self.turn += 1
        if record.id != ordinal:
            self.left_turn = record.turn
        record.turn = self.turn
        record.answering = False
        self.last_words = record
        self.pending = None
        return record

    def _add_result(self, ordinal: int, message: Message) -> GroupRecord:
        """The group of the call that the result answers, or may answer if only the provider knows it; else a group of its own.

        A message that answers calls of several groups belongs to the one directly before it, or else to that of its first
        result; the others' calls count as answered. Where a message holds several results, a provider wants them directly after
        their calls: it refuses the others as they are, and no edit makes that worse.
        """
        record: GroupRecord | None = None
        for part in message.parts:
            if isinstance(part, ToolResult):
                answered = self._answered(part.call_id)
                if record is None or answered is self._previous:
                    record = answered
        if record is None and (record := self._begun.get("")) is not None:
            record.kind = GroupKind.TOOL_CALL
        if record is not None:
            record.ordinals.append(ordinal)
            return record
        pending = self.pending
        record = self._start(ordinal, GroupKind.TOOL_CALL, self.turn)
        record.orphan = True
        self.pending = pending
        return record

    def _answered(self, call_id: str) -> GroupRecord | None:
        """The group of the latest open call with that id, now closed; else the group just before, if it made it."""
        waiting = self._open.get(call_id)
        if waiting:
            record = waiting.pop()
            if not waiting:
                del self._open[call_id]
            if record.open_ids is not None:
                record.open_ids.remove(call_id)
                record.snapshot = None
                if not record.open_ids and self.pending is record:
                    self.pending = None
            return record
        previous = self._previous
        if previous is not None and previous.call_ids is not None and call_id in previous.call_ids:
            return previous
        return None


def _has(message: Message, kind: type[ToolCall | ToolResult]) -> bool:
    for part in message.parts:  # noqa: SIM110 (asked of every message: a generator would take twice as long)
        if isinstance(part, kind):
            return True
    return False


def only_reasoning(message: Message) -> bool:
    """Whether the message holds thoughts and nothing else; an empty message does not."""
    if message.role != "assistant":
        return False
    thought = False
    for part in message.parts:
        if isinstance(part, Reasoning):
            thought = True
        elif not isinstance(part, Text) or part.text:
            return False
    return thought

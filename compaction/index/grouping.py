"""Grouping: the rules that read messages into groups, one message after the other.

A group's id is the ordinal of its first message. Facts that every group has are in lists indexed by that id; facts that only
some have (more than one message, an author) are in dictionaries. The rules only look backward, so adding a message costs O(1)
however long the conversation is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import attrs

from ..messages import Message, Outline, ToolCallPart, ToolResultPart
from .groups import GroupKind, only_reasoning, says_nothing
from .instructions import Instructions, text_alone
from .marks import BelievedMarks, Marks

_KINDS = {"user": GroupKind.USER, "assistant": GroupKind.ASSISTANT, "system": GroupKind.SYSTEM, "developer": GroupKind.SYSTEM}

_SYSTEM, _USER, _SUMMARY = GroupKind.SYSTEM, GroupKind.USER, GroupKind.SUMMARY  # a member is found more slowly

_NO_ID: Final = ""
"""The id of a call that the provider runs itself and gave no id."""

_Open: TypeAlias = "tuple[int, _Open | None]"
"""The latest group with an open call of some id, and, if the id was used before, the earlier ones."""


class ToolCalls:
    """The tool calls of a conversation: which calls each group made, and which group a result answers. Holds state."""

    def __init__(self) -> None:
        # the call ids of a group, in order; a group without calls is missing
        self.ids: dict[int, tuple[str, ...] | list[str]] = {}
        self.waiting: dict[int, int] = {}  # the number of calls of such a group that have no result yet
        self.count = 0
        self.pending: int | None = None  # the group that may still get results, because only results follow it
        self._open: dict[str, _Open] = {}
        self._made: set[tuple[int, str]] = set()  # each group with each of its calls, because a group may have thousands

    def make(self, group: int, calls: tuple[str, ...]) -> None:
        """Add the calls that the newest message of a group makes."""
        known = self.ids.setdefault(group, calls)
        if known is not calls:
            if isinstance(known, list):
                known += calls
            else:
                self.ids[group] = [*known, *calls]
        self.count += len(calls)
        self.waiting[group] = self.waiting.get(group, 0) + len(calls)
        for call_id in calls:
            self._open[call_id] = group, self._open.get(call_id)
            self._made.add((group, call_id))
        self.pending = group

    def answer(self, call_id: str) -> int | None:
        """Close the latest open call with this id, and return its group; ``None`` if there is none."""
        found = self._open.pop(call_id, None)
        if found is None:
            return None
        group, earlier = found
        if earlier is not None:
            self._open[call_id] = earlier
        left = self.waiting[group] = self.waiting[group] - 1
        if not left and self.pending == group:
            self.pending = None
        return group

    def has_call(self, group: int, call_id: str) -> bool:
        """Whether a group made a call with this id."""
        return (group, call_id) in self._made


@attrs.define
class Newest:
    """The groups that stay because each is the newest of its kind. Holds state."""

    group: int | None = None  # of all but the system groups
    user: int | None = None  # of the user groups that are not empty, even with media only; the first one if all are empty
    words: int | None = None  # of those with words of the user, see `Message.said`; they may stand beside results
    history: int | None = None  # of those in which the provider itself summarized everything before it
    # by strategy: its last summary after ``words`` in a user message; with a forged mark, it would be the user's words
    marked: dict[str, int] = attrs.Factory(dict[str, int])

    def marked_by_others(self, by: str) -> int | None:
        """Return the last summary that may be the user's words, without those of one strategy, which it may replace."""
        if not self.marked:  # asked for each edit
            return None
        return max((id for maker, id in self.marked.items() if not by or maker != by), default=None)

    def note_words(self, id: int) -> None:
        """Note that the user says something in a group."""
        self.words = id
        self.marked.clear()

    def note_user(self, id: int, *, words: bool, empty: bool) -> None:
        """Note a user group, and whether it has words or is empty."""
        if words:
            self.note_words(id)
        if self.user is None or not empty:
            self.user = id


class Grouping:
    """The groups of a conversation, filled message by message. Holds state."""

    def __init__(self, marks: Marks | None = None) -> None:
        self.ids: list[int] = []  # the id of every group, in order
        self.group_of: list[int] = []  # the group of each message
        # the kind of the group that starts at an ordinal; meaningless at other ordinals, like ``turns``
        self.kinds: list[GroupKind] = []
        # the turn of the group that starts at an ordinal; ``None`` for system and summary groups
        self.turns: list[int | None] = []
        self.members: dict[int, tuple[int, int] | list[int]] = {}  # the ordinals of a group with more than one message
        self.calls = ToolCalls()
        self.instructions = Instructions()
        self.marks = BelievedMarks(marks or Marks())  # the marked messages that are read as summaries
        self.orphans: set[int] = set()  # groups of results that answer no known call
        self.made_by: dict[int, str] = {}  # the strategy that wrote a summary
        self.turn = 0  # the current turn; 0 before the first user message
        self.newest = Newest()
        self.moved_from: int | None = None  # the former turn of the group that last moved to a new turn
        # of the message added last, which the next one may join or continue
        self._previous = -1  # its group
        self._answering = False  # whether it is a part of the assistant's answer
        self._thinking = False  # whether its group contains only reasoning so far
        # the group in which the provider began to run a call, by the call's id
        self._begun: dict[str, int] = {}

    def ordinals(self, id: int) -> Sequence[int]:
        """Return the ordinals of a group's messages."""
        return self.members.get(id) or (id,)

    def add_outline(self, outline: Outline) -> int:
        """Add the next message, of which only the outline was read, and return its group's id. O(calls).

        The result is that of `add` for the same message, which ``tests/unit/index/test_grouping.py`` compares.
        """
        role, text, calls, answers, _ = outline
        if answers is not None:
            group = self.calls.answer(answers)
            id = self._join_or_orphan([answers]) if group is None else self._join(group)
        elif calls:
            id = self._add_calls(tuple([call[0] for call in calls]))
        else:
            id = self._start(kind := _KINDS[role])
            if kind is _USER:
                words = Message.has_words(text or "")
                self.newest.note_user(id, words=words, empty=not words and (not text or text.isspace()))
            elif kind is _SYSTEM:
                self.instructions.add(id, text or "")
        self._previous, self._answering, self._thinking = id, role == "assistant", False
        return id

    def add(self, message: Message, tokens: int) -> int:
        """Add the next message and return the id of its group, which is new or an earlier one. O(parts).

        The first rule that fits decides:

        1. Results join the group of the call that they answer. Words of the user beside them start a turn.
        2. A message whose mark is believed starts a summary; ``tokens``, its size, decides that. A second message joins it.
        3. Any other message of the user, and an instruction, starts a group.
        4. A message of the assistant joins the group that it continues. Reasoning joins the calls beside it.
        """
        role = message.role
        answering = thinking = False
        words, has_results = bool(message.said), ToolResultPart in map(type, message.parts)
        if role == "tool" or role == "function" or (role == "user" and not words and has_results):
            id = self._join_or_orphan([part.call_id for part in message.parts if isinstance(part, ToolResultPart)])
        elif role == "user" and has_results:
            id = self._add_results_and_words(message)
        elif (mark := self.marks.believed(message, len(self.group_of), tokens)) is not None:
            id = self._start(GroupKind.SUMMARY)
            self.made_by[id] = mark.by
            if role == "user":
                self.newest.marked[mark.by] = id
        elif (  # the previous group is a summary of one message so far
            self._previous in self.made_by and self._previous not in self.members and message.format.completes_summary(message)
        ):
            id = self._join(self._previous)
        elif role == "user" or role == "system" or role == "developer":
            id = self._start(_KINDS[role])
            if role == "user":
                self.newest.note_user(id, words=words, empty=says_nothing(message))
            else:
                self.instructions.add(id, text_alone(message))
        else:
            id, thinking = self._add_assistant(message)
            answering = role == "assistant"
            for started in message.begins:
                self._begun[started] = id
        if message.holds_history:
            self.newest.history = id
        self._previous, self._answering, self._thinking = id, answering, thinking
        return id

    def _start(self, kind: GroupKind, *, keeps_pending: bool = False) -> int:
        """Start a group with the next message, which ends the wait for results unless it is one; a user's starts a turn."""
        id = len(self.group_of)
        if kind is _USER:
            self.turn += 1
        if kind is not _SYSTEM:
            self.newest.group = id
        self.group_of.append(id)
        self.kinds.append(kind)
        self.turns.append(None if kind is _SYSTEM or kind is _SUMMARY else self.turn)
        self.ids.append(id)
        if not keeps_pending:
            self.calls.pending = None
        return id

    def _join(self, id: int) -> int:
        ordinal = len(self.group_of)
        self.group_of.append(id)
        self.kinds.append(self.kinds[id])
        self.turns.append(None)
        members = self.members.get(id)
        if members is None:
            self.members[id] = (id, ordinal)  # most have two; the garbage collector does not keep track of a tuple of numbers
        elif isinstance(members, tuple):
            self.members[id] = [*members, ordinal]
        else:
            members.append(ordinal)
        return id

    def _add_assistant(self, message: Message) -> tuple[int, bool]:
        """Return the group of an assistant message, and whether it contains only reasoning so far."""
        calls = tuple([part.id for part in message.parts if isinstance(part, ToolCallPart)])
        previous = self._previous
        if message.resumes:  # the provider began to run one of these calls, or may have begun one without an id
            begun = next((self._begun[id] for id in (*message.resumes, _NO_ID) if id in self._begun), None)
            if begun is not None:
                return self._continue(begun, calls), False
        if message.continues and self._answering:
            return self._continue(previous, calls), False
        if calls:
            return self._add_calls(calls), False
        if not only_reasoning(message):
            return self._start(GroupKind.ASSISTANT), False
        if not message.continues and (self._thinking or (previous in self.calls.ids and previous not in self.orphans)):
            return self._join(previous), self._thinking
        return self._start(GroupKind.ASSISTANT), True

    def _continue(self, id: int, calls: tuple[str, ...]) -> int:
        """Join the answer that the message continues."""
        self._join(id)
        if calls:
            self.kinds[id] = GroupKind.TOOL_CALL
            self.calls.make(id, calls)
        return id

    def _add_calls(self, calls: tuple[str, ...]) -> int:
        """Start a tool-call group; reasoning directly before it becomes part of it."""
        if self._thinking:
            id = self._join(self._previous)
            self.kinds[id] = GroupKind.TOOL_CALL
        else:
            id = self._start(GroupKind.TOOL_CALL)
        self.calls.make(id, calls)
        return id

    def _add_results_and_words(self, message: Message) -> int:
        """Join the calls that the message answers, or start a group; the user's words in it start a turn."""
        id = self._join_or_orphan([part.call_id for part in message.parts if isinstance(part, ToolResultPart)])
        self.turn += 1
        self.moved_from = self.turns[id]
        self.turns[id] = self.turn
        self.newest.note_words(id)
        self.calls.pending = None
        return id

    def _join_or_orphan(self, answers: Sequence[str]) -> int:
        """Join the group of the answered call, or one in which the provider may have made the call; otherwise start one.

        A message that answers calls of several groups joins the group directly before it, or else that of its first result. For
        example, the provider began to run a call without an id in a1, so r3 may be its result, and makes 1 a tool call::

            u0  a1  u2  r3      r3 answers "x", which no message called: it joins 1; without the call in a1, it starts group 3
        """
        answered = [self._answered(call_id) for call_id in answers]
        joined = self._previous if self._previous in answered else next((id for id in answered if id is not None), None)
        if joined is not None:
            return self._join(joined)
        if (begun := self._begun.get(_NO_ID)) is not None:
            self.kinds[begun] = GroupKind.TOOL_CALL
            return self._join(begun)
        id = self._start(GroupKind.TOOL_CALL, keeps_pending=True)
        self.orphans.add(id)
        return id

    def _answered(self, call_id: str) -> int | None:
        """Close the latest open call with this id, and return its group, or else the previous group if it made such a call."""
        group = self.calls.answer(call_id)
        return self._previous if group is None and self.calls.has_call(self._previous, call_id) else group

"""Groups: messages that are kept or dropped together, and the rules that read messages into groups.

A provider refuses a tool result without its call, and a call without its results. An assistant message with tool calls, every
result that answers them and the reasoning around them are therefore one `MessageGroup`. Edits name groups, never messages.

A group's id is the ordinal of its first message. Facts that every group has are in lists indexed by that id; facts that only
some have (more than one message, calls, an author) are in dictionaries. The rules only look backward, so adding a message costs
O(1) however long the conversation is.
"""

from __future__ import annotations

import enum
import operator
import re
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import attrs

from ..messages import Message, Outline, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from .marks import COLLAPSED_BY, Mark, MarkCeiling, Marks, read_mark, text_digest, tools_of


class GroupKind(enum.Enum):
    """The kind of a group. The rules for edits depend on it."""

    SYSTEM = "system"
    """One system or developer message; belongs to no turn, and is dropped only by an edit with ``allow_system``."""

    USER = "user"
    """One user message; starts the next turn."""

    ASSISTANT = "assistant"
    """An assistant message without tool calls."""

    TOOL_CALL = "tool_call"
    """An assistant message with tool calls, the results that answer them, and the reasoning directly around it."""

    SUMMARY = "summary"
    """A message that a strategy wrote in place of other groups: a summary, or one line for a tool call; belongs to no turn."""

    def __repr__(self) -> str:
        return f"GroupKind.{self.name}"


@attrs.frozen(weakref_slot=False)
class MessageGroup:
    """Messages that are kept or dropped together: a snapshot, safe to keep while the index changes.

    Args:
        id: The position of its first message in the source, from 0; negative for a group that an edit inserted.
        kind: Its kind.
        messages: Its messages as the view shows them at the time of the snapshot, in order.
        turn: The turn it belongs to, from 1; 0 before the first user message; ``None`` for system and summary groups.
        tokens: Tokens of its messages, per-message overhead included.
        bytes: Bytes of its texts in UTF-8, and of the data in it.
        tool_calls: The number of calls.
        open: Whether a call has no result yet.
        pending: Whether it is open and its result may still arrive, because only results follow the call.
        orphan: Whether it is a result that answers no call.
        pinned: Whether it must be kept unchanged.
        made_by: The strategy that wrote it, for a summary.
        replaces: Ids of the groups that it replaces; empty for a summary that was already in the list.
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
        """Whether it is a tool call collapsed to a line of text, which is dropped like a tool call and unlike a summary."""
        return self.kind is GroupKind.SUMMARY and self.made_by == COLLAPSED_BY

    @property
    def mark(self) -> Mark | None:
        """The mark of a summary; ``None`` without one, and for any other group: a mark in its text is not believed."""
        return read_mark(self.messages[0]) if self.kind is GroupKind.SUMMARY else None

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The names of the tools that it calls, in order, with repetitions; for a collapsed tool call, read from its text."""
        if self.is_collapsed:
            return tools_of(self.messages[0].text)
        return tuple(call.name for message in self.messages for call in message.tool_calls())


def says_nothing(message: Message) -> bool:
    """Whether the message contains only whitespace."""
    return all(isinstance(part, TextPart) and not part.text.strip() for part in message.parts)


def only_reasoning(message: Message) -> bool:
    """Whether the message contains only reasoning; False for an empty message."""
    if message.role != "assistant":
        return False
    thought = False
    for part in message.parts:
        if isinstance(part, ReasoningPart):
            thought = True
        elif not isinstance(part, TextPart) or part.text:
            return False
    return thought


def unchanged_groups(before: Iterable[MessageGroup], after: Iterable[MessageGroup]) -> int:
    """Return how many groups at the start of two views are the same, with the same message objects. O(messages in these).

    A provider's prompt cache still covers these groups when the second view is sent after the first.
    """
    count = 0
    for one, other in zip(before, after, strict=False):
        if one.id != other.id or len(one.messages) != len(other.messages):
            break
        if not all(map(operator.is_, one.messages, other.messages)):
            break
        count += 1
    return count


_KINDS = {
    "user": GroupKind.USER,
    "assistant": GroupKind.ASSISTANT,
    "system": GroupKind.SYSTEM,
    "developer": GroupKind.SYSTEM,
}

_SYSTEM, _USER, _CALLS = GroupKind.SYSTEM, GroupKind.USER, GroupKind.TOOL_CALL  # a member is found more slowly

_FEW = 16
"""Up to this number of call ids are searched in a list; more are looked up in a set."""

_MOST_REMINDERS: Final = 4
"""Instructions after the leading ones that stay, if no two of them are alike."""

_ALIKE: Final = 0.6  # of the words of two instructions are in both
_READ_CHARS: Final = 4_000  # of an instruction, to compare it
_WORD: Final = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\d_]+")


_Open: TypeAlias = "tuple[int, _Open | None]"
"""The latest group with an open call of some id, and, if the id was used before, the earlier ones."""


class Grouping:
    """The groups of a conversation, filled message by message. Holds state.

    Args:
        marks: The rules by which marked messages are read as summaries.

    Attributes:
        ids: The id of every group, in order.
        group_of: The group of each message.
        kinds: The kind of the group that starts at an ordinal; meaningless at other ordinals, like ``turns``.
        turns: The turn of the group that starts at an ordinal; ``None`` for system and summary groups.
        members: The ordinals of a group with more than one message.
        calls: The call ids of a tool-call group, in order; a group without calls is missing.
        waiting: The number of calls of such a group that have no result yet.
        orphans: Groups of results that answer no known call.
        made_by: The strategy that wrote a summary.
        turn: The current turn; 0 before the first user message.
        newest: The newest group that is not a system group.
        last_user: The last user group that is not empty, which may hold only media; the first one if all are empty.
        last_words: The last group with words of the user, see `Message.said`; they may stand beside results.
        last_marked: Each strategy's last summary with the role of the user after ``last_words``; its mark may be forged.
        history: The newest group in which the provider itself summarized everything before it.
        pending: The tool-call group that may still get results, because only results follow it.
        leading: The number of *instructions*, that is, system or developer messages, at the start.
        outdated: The instructions after the leading ones that may leave, see `_note_instruction`.
        system: The number of system groups.
        answered: The groups of which the newest messages answered a call without joining them; the projection clears it.
        left_turn: The turn that a group belonged to before words of the user moved it to the next.
        has_marks: Whether any message begins with a mark, believed or not.
    """

    def __init__(self, marks: Marks | None = None) -> None:
        self.marks = marks or Marks()
        self.has_marks = False
        self.ids: list[int] = []
        self.group_of: list[int] = []
        self.kinds: list[GroupKind] = []
        self.turns: list[int | None] = []
        self.members: dict[int, tuple[int, int] | list[int]] = {}
        self.calls: dict[int, tuple[str, ...] | list[str]] = {}
        self.waiting: dict[int, int] = {}
        self.orphans: set[int] = set()
        self.made_by: dict[int, str] = {}
        self.turn = self.leading = self.system = 0
        self.newest: int | None = None
        self.last_user: int | None = None
        self.last_marked: dict[str, int] = {}
        self.last_words: int | None = None
        self.history: int | None = None
        self.pending: int | None = None
        self.outdated: set[int] = set()
        self._reminders: list[tuple[frozenset[str], int]] = []  # words and id of those that are not outdated, oldest first
        self.left_turn: int | None = None
        self.answered: set[int] = set()
        self._previous = -1
        self._answering = False  # whether the last message is a part of the assistant's answer
        self._thinking = False  # whether the last group contains only reasoning so far
        self._open: dict[str, _Open] = {}
        self._id_sets: dict[int, set[str]] = {}
        self._begun: dict[str, int] = {}
        self._believed: dict[str, MarkCeiling] = {}
        self._recognized: set[str] = set()

    def ordinals(self, id: int) -> Sequence[int]:
        """Return the ordinals of a group's messages."""
        return self.members.get(id) or (id,)

    def add_outline(self, outline: Outline) -> int:
        """Add the next message, of which only the outline was read, and return its group's id. O(calls).

        Most messages are added here, so the frequent cases are written out: a call of a method takes as long as the rest.
        """
        role, text, calls, answers, _ = outline
        if answers is not None:
            found = self._open.get(answers)
            if found is None or found[1] is not None:
                id = self._join_or_orphan([answers])
            else:
                del self._open[answers]
                self._answer(id := self._join(found[0]))
        elif calls and self._thinking:
            id = self._add_calls(tuple([call[0] for call in calls]))
        elif (kind := _CALLS if calls else _KINDS[role]) is _SYSTEM:
            id = self._start(kind)
            self._note_instruction(id, text or "")
        else:
            id = self.newest = len(self.group_of)
            if kind is _USER:
                self.turn += 1
                words = Message.has_words(text or "")
                self._note_user(id, words=words, empty=not words and (not text or text.isspace()))
            self.turns.append(self.turn)
            self.group_of.append(id)
            self.kinds.append(kind)
            self.ids.append(id)
            self.pending = None
            if calls:
                self._wait(id, tuple([call[0] for call in calls]))
        self._previous, self._answering, self._thinking = id, role == "assistant", False
        return id

    def add(self, message: Message, tokens: int) -> int:
        """Add the next message and return the id of its group, which is new or an earlier one. O(parts).

        Args:
            message: The message.
            tokens: Its tokens, which decide whether its mark is believed.
        """
        role = message.role
        answering = thinking = False
        words = bool(message.said)
        if role == "tool" or role == "function" or (role == "user" and not words and _has(message, ToolResultPart)):
            id = self._join_or_orphan([part.call_id for part in message.parts if isinstance(part, ToolResultPart)])
        elif role == "user" and _has(message, ToolResultPart):
            id = self._add_results_and_words(message)
        elif (mark := read_mark(message)) is not None and self._is_summary(message, mark, tokens):
            id = self._start(GroupKind.SUMMARY)
            self.made_by[id] = mark.by
            if role == "user":
                self.last_marked[mark.by] = id
        elif self._follows_summary() and message.format.completes_summary(message):
            id = self._join(self._previous)
        elif role == "user" or role == "system" or role == "developer":
            id = self._start(_KINDS[role])
            if role == "user":
                self._note_user(id, words=words, empty=says_nothing(message))
            else:
                self._note_instruction(id, _text_alone(message))
        else:
            id, thinking = self._add_assistant(message)
            answering = role == "assistant"
            for started in message.begins:
                self._begun[started] = id
        if message.holds_history:
            self.history = id
        self._previous, self._answering, self._thinking = id, answering, thinking
        return id

    def _is_summary(self, message: Message, mark: Mark, tokens: int) -> bool:
        """Whether a marked message is read as a summary that this package wrote."""
        self.has_marks = True
        if message.role not in ("user", "assistant") or _has(message, ToolCallPart):
            return False
        if self.marks.own and (digest := text_digest(message)) in self.marks.own - self._recognized:
            self._recognized.add(digest)
            return True
        before = self._believed.get(mark.by, MarkCeiling(0, 0))
        together = MarkCeiling(before.tokens + tokens, before.messages + 1)
        if not self.marks.believes(mark, message.role, len(self.group_of), together):
            return False
        self._believed[mark.by] = together
        return True

    def last_marked_of_others(self, by: str) -> int | None:
        """Return the last summary that may be the user's words, without those of one strategy, which it may replace."""
        return max((id for maker, id in self.last_marked.items() if not by or maker != by), default=None)

    def _follows_summary(self) -> bool:
        """Whether the previous group is a summary of one message so far."""
        previous = self._previous
        return previous >= 0 and self.kinds[previous] is GroupKind.SUMMARY and previous not in self.members

    def _start(self, kind: GroupKind) -> int:
        """Start a group with the next message; a user message starts a turn, too."""
        id = len(self.group_of)
        turn: int | None = self.turn
        if kind is GroupKind.SYSTEM:
            turn = None
            self.system += 1
            self.leading += self.leading == id
        else:
            self.newest = id
            if kind is GroupKind.USER:
                turn = self.turn = self.turn + 1
            elif kind is GroupKind.SUMMARY:
                turn = None
        self.group_of.append(id)
        self.kinds.append(kind)
        self.turns.append(turn)
        self.ids.append(id)
        self.pending = None
        return id

    def _note_user(self, id: int, *, words: bool, empty: bool) -> None:
        """Note a user group, unless it is empty and there was one before, and whether the user says something in it."""
        if words:
            self.last_words = id
            self.last_marked.clear()
        if self.last_user is None or not empty:
            self.last_user = id

    def _note_instruction(self, id: int, text: str | None) -> None:
        """Note an instruction, and the one that it makes outdated: an earlier one that is alike, or the oldest of five kinds.

        ``text`` is ``None`` for an instruction that is never outdated.
        """
        if id < self.leading or text is None:
            return
        words = frozenset(_WORD.findall(text[:_READ_CHARS].lower()))
        outdated = next((each for each in self._reminders if _alike(each[0], words)), None)
        if outdated is None and len(self._reminders) == _MOST_REMINDERS:
            outdated = self._reminders[0]
        if outdated is not None:
            self._reminders.remove(outdated)
            self.outdated.add(outdated[1])
        self._reminders.append((words, id))

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
        if message.resumes and (begun := self._begun_by(message.resumes)) is not None:
            return self._continue(begun, calls), False
        if message.continues and self._answering:
            return self._continue(previous, calls), False
        if calls:
            return self._add_calls(calls), False
        if not only_reasoning(message):
            return self._start(GroupKind.ASSISTANT), False
        if not message.continues and (self._thinking or (previous in self.calls and previous not in self.orphans)):
            return self._join(previous), self._thinking
        return self._start(GroupKind.ASSISTANT), True

    def _begun_by(self, ids: tuple[str, ...]) -> int | None:
        """Return the group in which the provider began to run one of these calls, or may have begun one without an id."""
        return next((self._begun[id] for id in (*ids, "") if id in self._begun), None)

    def _continue(self, id: int, calls: tuple[str, ...]) -> int:
        """Join the answer that the message continues."""
        self._join(id)
        if calls:
            self.kinds[id] = GroupKind.TOOL_CALL
            self._wait(id, calls)
        return id

    def _add_calls(self, calls: tuple[str, ...]) -> int:
        """Start a tool-call group; reasoning directly before it becomes part of it."""
        if self._thinking:
            id = self._join(self._previous)
            self.kinds[id] = GroupKind.TOOL_CALL
        else:
            id = self._start(GroupKind.TOOL_CALL)
        self._wait(id, calls)
        return id

    def _wait(self, id: int, calls: tuple[str, ...]) -> None:
        """Note the open calls of a group, for the results that answer them later."""
        known = self.calls.setdefault(id, calls)
        if known is not calls:
            if isinstance(known, list):
                known += calls
            else:
                self.calls[id] = [*known, *calls]
            if id in self._id_sets:
                self._id_sets[id].update(calls)
        self.waiting[id] = self.waiting.get(id, 0) + len(calls)
        for call_id in calls:
            self._open[call_id] = id, self._open.get(call_id)
        self.pending = id

    def _add_results_and_words(self, message: Message) -> int:
        """Join the calls that the message answers, or start a group; the user's words in it start a turn."""
        id = self._join_or_orphan([part.call_id for part in message.parts if isinstance(part, ToolResultPart)])
        self.turn += 1
        self.left_turn = self.turns[id]
        self.turns[id] = self.turn
        self.last_words = id
        self.last_marked.clear()
        self.pending = None
        return id

    def _join_or_orphan(self, answers: Sequence[str]) -> int:
        """Join the group of the answered call, or one in which the provider may have made the call; otherwise start one.

        A message that answers calls of several groups joins the group directly before it, or else that of its first result.
        """
        answered = [self._answered(call_id) for call_id in answers]
        joined = self._previous if self._previous in answered else next((id for id in answered if id is not None), None)
        self.answered.update(id for id in answered if id is not None and id != joined)
        if joined is None and (joined := self._begun.get("")) is not None:
            self.kinds[joined] = GroupKind.TOOL_CALL
        if joined is not None:
            return self._join(joined)
        pending = self.pending
        id = self._start(GroupKind.TOOL_CALL)
        self.orphans.add(id)
        self.pending = pending
        return id

    def _answered(self, call_id: str) -> int | None:
        """Close the latest open call with this id, and return its group, or else the previous group if it made such a call."""
        found = self._open.pop(call_id, None)
        if found is None:
            return self._previous if self._made(self._previous, call_id) else None
        id, earlier = found
        if earlier is not None:
            self._open[call_id] = earlier
        self._answer(id)
        return id

    def _answer(self, id: int) -> None:
        """Note that one more call of a group has its result."""
        left = self.waiting[id] = self.waiting[id] - 1
        if not left and self.pending == id:
            self.pending = None

    def _made(self, id: int, call_id: str) -> bool:
        """Whether a group made a call with this id."""
        ids = self.calls.get(id, ())
        if len(ids) <= _FEW:
            return call_id in ids
        if id not in self._id_sets:
            self._id_sets[id] = set(ids)
        return call_id in self._id_sets[id]


def _text_alone(message: Message) -> str | None:
    """Return the text of an instruction; ``None`` if it has other parts, such as a tool that it adds."""
    return message.text if all(isinstance(part, TextPart) for part in message.parts) else None


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two texts have most of their words in common."""
    return 2 * len(one & other) >= _ALIKE * (len(one) + len(other))


def _has(message: Message, kind: type[ToolCallPart | ToolResultPart]) -> bool:
    for part in message.parts:  # noqa: SIM110 (runs for every message: a generator takes twice as long)
        if isinstance(part, kind):
            return True
    return False

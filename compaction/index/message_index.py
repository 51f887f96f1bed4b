"""The index: a conversation read once into groups, with running metrics and a journal of edits.

It answers what triggers and selectors ask in O(1), applies edits and undoes them exactly, refuses what would break the
conversation, and projects what is left as a list of the caller's own objects, which are never changed or copied.

    >>> index = MessageIndex([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}], counter="chars/4")
    >>> index.included.groups, index.included.turns
    (2, 1)
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..formats import MessageFormat, as_list, resolve
from ..messages import Message
from ..tokens import TokenCounter
from ..tokens import counter as resolve_counter
from . import replacing
from .columns import Metrics
from .context import RunContext
from .editing import Editor
from .edits import Edit, Refusal
from .groups import GroupKind, MessageGroup
from .intake import Intake
from .journal import Applied
from .marks import Marks
from .projection import Projection
from .rules import protection, removable, rewritable
from .state import Saved
from .steps import steps, units_of
from .sync import HostChanges


class MessageIndex:
    """A conversation as groups. Holds state: the groups, the metrics and the journal.

    Appending costs O(new messages), metrics O(1), an edit O(the groups it names), a projection O(messages) after a change.

    Args:
        messages: The conversation so far, oldest first.
        counter: A token counter, or the name of one; see `compaction.tokens.counter`.
        format: The wire format, or its name; ``None`` to detect it, see `compaction.formats.resolve`.
        context: What else a strategy may know; replace it at any time.
        pin: Says of a message whether its group must be kept as it is.
        marks: Says which marked messages are summaries, and how new ones are marked; ``None`` to leave that to the first run.

    Raises:
        InputError: If ``messages`` is not a list of messages.
    """

    def __init__(
        self,
        messages: Iterable[Any] = (),
        *,
        counter: TokenCounter | str = "auto",
        format: MessageFormat | str | None = None,
        context: RunContext | None = None,
        pin: Callable[[Message], bool] | None = None,
        marks: Marks | None = None,
    ) -> None:
        given = as_list(messages)
        self.context = RunContext() if context is None else context
        self.counter = resolve_counter(counter)
        self._use(Intake(self.counter, resolve(format, given), detects=format is None, pin=pin, marks=marks))
        self.append(given)

    def _use(self, intake: Intake) -> None:
        self._intake = intake
        self.measure = intake.measure
        self._view: list[Any] | None = None
        self._groups: tuple[MessageGroup, ...] | None = None

    @property
    def format(self) -> MessageFormat:
        """The wire format of the messages."""
        return self._intake.format

    @property
    def _editor(self) -> Editor:
        return self._intake.editor

    def _changed(self) -> None:
        self._groups, self._view = None, None

    @property
    def included(self) -> Metrics:
        """Sizes of what the view shows. O(1)."""
        return self.columns.included.metrics()

    @property
    def total(self) -> Metrics:
        """Sizes of the source, whatever was edited. O(1)."""
        return self.columns.total.metrics()

    @property
    def tokens(self) -> int:
        """Tokens a request would send: the included messages and the context's overhead. What token triggers compare."""
        return self.columns.included.tokens + self.context.overhead_tokens

    @property
    def included_groups(self) -> tuple[MessageGroup, ...]:
        """The groups the view shows, in order: a snapshot, safe to edit while walking it. O(groups) after a change."""
        if self._groups is None:
            snapshot = self.columns.snapshot
            self._groups = tuple([snapshot(id) for id in self.columns.ids()])
        return self._groups

    @property
    def columns(self) -> Projection:
        """The groups as columns, to look at: kind, turn and sizes by a group's id, each O(1), without reading a message."""
        return self._intake.projection

    @property
    def included_ids(self) -> list[int]:
        """The ids of the groups the view shows, in order; O(groups), without reading a message."""
        return list(self.columns.ids())

    def removable_ids(self, by: str = "") -> list[int]:
        """Return the ids of the groups that `is_removable`, in order, and of the summary that ``by`` may replace; O(groups)."""
        return removable(self.columns, by)

    def group(self, id: int) -> MessageGroup:
        """Return the group with that id, in the view or not; an `InputError` if there is none."""
        return self.columns.snapshot(self.columns.known(id))

    def is_included(self, group: MessageGroup | int) -> bool:
        """Whether the view shows the group. O(1)."""
        return self.columns.is_included(group if isinstance(group, int) else group.id)

    def is_removable(self, group: MessageGroup | int) -> bool:
        """Whether the group may leave by itself, as far as it is its own concern: see `protection`. O(1)."""
        return self.protection(group) is None

    def protection(self, group: MessageGroup | int) -> str | None:
        """Return why `apply` would not let the group leave, whatever its neighbours, on which see `steps`. O(1)."""
        return protection(self.columns, group if isinstance(group, int) else group.id)

    def is_rewritable(self, group: MessageGroup | int) -> bool:
        """Whether the group's content may be shortened: it is not pinned, pending or a summary of ours. O(1)."""
        return rewritable(self.columns, group if isinstance(group, int) else group.id)

    def steps(
        self,
        groups: Iterable[MessageGroup | int],
        together: Callable[[int, int], bool] | None = None,
        *,
        preferred_only: bool = False,
        replaced: bool = False,
    ) -> Iterator[list[int]]:
        """Plan what to drop: the smallest runs of these groups that can leave together, oldest first.

        What is left after each step is a list that the provider takes. Steps that the format prefers come first; the others
        follow. Groups that cannot leave are in no step. Where any message may follow any other, a user message that opens the
        view leaves with what is left before the next. O(messages) for all.

        Args:
            groups: The groups that may leave, in order.
            together: Says of two of them that follow one another whether one does not leave without the other.
            preferred_only: Whether to leave out steps that the format allows and does not prefer.
            replaced: Whether a message will stand in their place, and so may open the view.

        Yields:
            The ids of the groups of a step. Drop each step before you ask for the next, or only plan with them.
        """
        units = units_of([group if isinstance(group, int) else group.id for group in groups], together)
        return steps(self.columns, self.format, units, preferred_only=preferred_only, replaced=replaced)

    def replaceable(self, groups: Sequence[MessageGroup]) -> list[MessageGroup]:
        """Return those of these groups that one message can stand for, in the order in which they end. O(messages)."""
        by_id = {group.id: group for group in groups}
        return [by_id[id] for id in replacing.replaceable(self.columns, self.format, list(by_id))]

    def interleaved(self) -> set[int]:
        """Return the groups that stand between messages of others, and those others, where that matters. O(messages)."""
        return replacing.interleaved(self.columns, self.format)

    def summary(self, body: str, groups: Iterable[MessageGroup], *, by: str, round: int = 1) -> tuple[Message, ...]:
        """Return a text as the messages of a `Replace` of these groups: marked, in the role that fits there. O(messages).

        For ``by``, ``round`` and the errors see `marked`.
        """
        before, after = replacing.neighbours(self.columns, {group.id for group in groups})
        text = (self.marks or Marks()).write(body, by=by, round=round, role=self.format.summary(body, before, after)[0].role)
        return self.format.summary(text, before, after)

    def messages(self) -> list[Any]:
        """Return the view: the caller's own objects where nothing changed; a new list each time, built once after a change."""
        if self._view is None:
            self._view = self.columns.raws()
        return self._view.copy()

    @property
    def source(self) -> Sequence[Any]:
        """Every message of the conversation, as it was passed in."""
        return tuple(self.columns.source)

    def ordinals(self, group: MessageGroup | int) -> list[int]:
        """Return the places in the source, from 0, of the messages that a group stands for, through any number of rounds."""
        return sorted(self.columns.stands_for(self.columns.known(group if isinstance(group, int) else group.id)))

    def originals(self, group: MessageGroup | int) -> list[Any]:
        """Return the caller's messages that a group stands for; its own where nothing replaced them."""
        return [self.columns.source[ordinal] for ordinal in self.ordinals(group)]

    def read_originals(self, group: MessageGroup | int, *, summaries: bool = True) -> list[Message]:
        """Return what `originals` returns, as read; ``summaries=False`` leaves out those that are summaries themselves."""
        kind, group_of = self.columns.kind, self.columns.grouping.group_of
        ordinals = self.ordinals(group)
        return [self.columns.read(at) for at in ordinals if summaries or kind(group_of[at]) is not GroupKind.SUMMARY]

    @property
    def journal(self) -> tuple[Applied, ...]:
        """The edits in force, in order, each with the strategy that asked for it."""
        return tuple(self._editor.journal)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits in force, in order."""
        return self.edits_since(0)

    def edits_since(self, mark: int) -> tuple[Edit, ...]:
        """Return the edits made since the journal had ``mark`` entries and still in force, in order. O(their number)."""
        return tuple([applied.edit for applied in self._editor.journal[mark:]])

    @property
    def edit_count(self) -> int:
        """How many edits are in force. O(1)."""
        return len(self._editor.journal)

    @property
    def refused(self) -> tuple[Refusal, ...]:
        """What was not allowed since the last `mark`, with which a run begins, in order."""
        return tuple(self._editor.refusals.noted)

    @property
    def changes(self) -> HostChanges:
        """What the host did to messages that were known, as the last `sync` found."""
        return self._intake.changes

    @property
    def undone(self) -> tuple[Edit, ...]:
        """Edits that were undone because, beside messages that came later, the provider would not take the view."""
        return tuple(self._editor.undone)

    @property
    def turns_since_edit(self) -> int:
        """User turns that began since the last edit a strategy made; all of them if there was none."""
        return self._editor.turns_since_edit()

    @property
    def idle_seconds(self) -> float:
        """Seconds between the last two appends, or since the last one if that is longer; 0 without a clock."""
        return self._intake.idle_seconds(self.context.now)

    def apply(self, edit: Edit, *, by: str = "") -> bool:
        """Apply an edit, unless it would break a rule, and return whether it was applied; O(the groups it names).

        The index refuses messages that break a rule of the format, and neighbours that may not follow one another. A drop that
        is refused only for its neighbours is held: if later drops of the same step close the gap, they are applied together.
        A refusal is recorded in ``refused``, with the rule, until the next run.

        Args:
            edit: The edit.
            by: The strategy that asks, for the journal.

        Raises:
            NoProgress: If this edit was refused before, nothing changed since, and no other strategy began.
        """
        self._changed()
        return self._editor.apply(edit, by)

    def mark(self) -> int:
        """Begin a run: forget what an earlier run was refused. Returns a place in the journal to roll back to."""
        return self._editor.mark()

    def begin_step(self) -> None:
        """Begin a strategy: it may ask, once, for what another was refused."""
        self._editor.begin_step()

    def end_step(self) -> bool:
        """End a strategy: apply the drops that are still held, as far as the gaps close; says whether any was applied."""
        applied = self._editor.end_step()
        if applied:
            self._changed()
        return applied

    @contextlib.contextmanager
    def trial(self) -> Generator[None]:
        """Try edits out: what is applied inside is undone at its end, and what is refused there is forgotten."""
        try:
            with self._editor.trial():
                yield
        finally:
            self._changed()

    def rollback(self, mark: int = 0) -> None:
        """Undo every edit made since the mark: the exact inverse. An `InputError` if the mark lies beyond the journal."""
        self._intake.rollback(mark)
        self._changed()

    @property
    def marks(self) -> Marks | None:
        """Which marked messages are summaries, and how new ones are marked; ``None`` until `believe` says so."""
        return self._intake.marks

    def believe(self, marks: Marks) -> None:
        """Read marked messages in this way from now on. O(messages) if there are any, else O(1)."""
        if self._intake.believe(marks):
            self._changed()

    def pin(self, ids: Iterable[int]) -> None:
        """Keep these groups as they are from now on; an `InputError` if one of them does not exist."""
        for id in ids:
            self._intake.pin([self.columns.known(id)])
        self._groups = None

    def append(self, messages: Iterable[Any]) -> None:
        """Add messages at the end; O(new). If one of them cannot be read, that is an `InputError` and none is added.

        A result that answers a call whose group was dropped brings it back, by a journaled `Restore`; see also ``undone``.
        """
        given = as_list(messages)
        self._grew(self._intake.append(given), len(given))

    def sync(self, messages: Iterable[Any], *, verify: bool = False) -> None:
        """Follow the full list a framework passes on each call, by its messages and not by their places.

        The list may be the source, the last view or an earlier one with what came since, the same objects or rebuilt ones.
        What the host changed is in ``changes``; decisions about the other messages stay, and a message that is not known
        again is new. O(list) comparisons, by identity first; where the list departs, O(contents).

        Args:
            messages: Everything, oldest first.
            verify: Whether to compare contents of the same objects too, and so notice a message changed in place; O(contents).
        """
        known = len(self.columns.source)
        only_grew = self._intake.sync(as_list(messages), verify=verify)
        self._grew(only_grew, len(self.columns.source) - known)

    def accounts_for(self, messages: Iterable[Any], *, by_id: bool = False) -> bool:
        """Whether a list has all of the source, or what stands for it; ``by_id``: the host knows it. Cost as for `sync`."""
        return self._intake.accounts_for(as_list(messages), by_id=by_id)

    def forget(self, messages: Iterable[Any]) -> int:
        """Remove all messages that say the same as these, undo every edit that knew them, and return their number; O(contents).

        If the rest of a group would break more rules, it leaves too, until the host's next list brings it back.
        """
        self._changed()
        return self._intake.forget(as_list(messages))

    def _grew(self, only_grew: bool, count: int) -> None:
        """Take note that messages came; the view is built again unless it only grew by them."""
        if not count and only_grew:
            return
        self._intake.note_time(self.context.now)
        self._groups = None
        if not only_grew:
            self._view = None
        elif self._view is not None:
            self._view += self.columns.source[-count:]

    def to_dict(self, *, messages: bool = True) -> dict[str, Any]:
        """Return the index as JSON-ready data. O(messages and edits), and O(contents) of what is stored or not fingerprinted.

        With ``messages=False`` it holds fingerprints only: what `from_dict` makes is empty until the first `sync`, and raises a
        `StateError` if asked for messages before.
        """
        return self._intake.to_dict(messages=messages)

    @classmethod
    def from_dict(
        cls,
        data: Mapping[str, Any],
        *,
        counter: TokenCounter | str = "auto",
        context: RunContext | None = None,
        pin: Callable[[Message], bool] | None = None,
        format: MessageFormat | None = None,
        marks: Marks | None = None,
    ) -> MessageIndex:
        """Return what `to_dict` described, or raise a `StateError`; ``format`` is for one without a name here, or detected."""
        return cls.from_saved(Saved.read(data, format), counter=counter, context=context, pin=pin, marks=marks)

    @property
    def snapshot(self) -> Saved:
        """The state that would be saved, with the messages; O(edits)."""
        return self._intake.snapshot()

    @classmethod
    def from_saved(cls, saved: Saved, *, counter: TokenCounter | str = "auto", **options: Any) -> MessageIndex:
        """Return the index of a `snapshot`, or of a part of one; the other options and errors are those of `from_dict`."""
        index = cls(counter=counter, context=options.pop("context", None))
        index._use(Intake.from_saved(saved, index.counter, **options))
        return index

"""The index: a conversation read once into groups, with running metrics and a journal of edits.

Triggers and selectors read sizes and groups from it, and strategies' edits are applied to it. An edit that would make the
conversation invalid is refused. The view, which is the list that would be sent now, contains the caller's own objects. They are
never changed; a shortened message is a new object.

    >>> index = MessageIndex([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}], counter="chars/4")
    >>> index.included.groups, index.included.turns
    (2, 1)
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import attrs

from ..errors import InputError, StateError
from ..formats import MessageFormat, as_list, resolve
from ..messages import Message
from ..tokens import TokenCounter
from ..tokens import counter as resolve_counter
from . import replacing
from .columns import Metrics
from .context import RunContext
from .edits import Drops, Edit, Refusal, group_id
from .groups import MessageGroup
from .intake import Intake
from .journal import Applied
from .marks import Marks
from .rules import protection, removable, rewrite_protection
from .state import Saved
from .steps import steps, units_of


class MessageIndex(Intake):
    """A conversation as groups. Holds state: the groups, the metrics and the journal.

    Appending costs O(new messages), metrics O(1), an edit O(the groups it names), the view O(messages) after a change.

    Args:
        messages: The conversation so far, oldest first.
        counter: A token counter, or the name of one; see `compaction.tokens.counter`.
        format: The wire format, or its name; ``None`` to detect it (see `compaction.formats.resolve`).
        context: Facts about the request that a strategy may use; may be replaced at any time.
        pin: A function that returns true for a message that must stay; its whole group is then neither removed nor changed.
        marks: The rules by which marked messages are read as summaries, and by which new ones are marked. With ``None``, the
            first run sets them from its strategy.

    Attributes:
        format: The wire format of the messages.
        columns: The groups as columns: kind, turn and sizes by a group's id, each O(1), without reading a message.
        measure: Counts the tokens and bytes of a message.
        changes: What the host did to known messages, according to the last `sync`.

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
        found = resolve(format, given)
        context = RunContext() if context is None else context
        super().__init__(resolve_counter(counter), found, detects=format is None, context=context, pin=pin, marks=marks)
        self._add(given)

    def __repr__(self) -> str:
        shown, source = self.included, self.total
        sizes = f"messages {shown.messages:,} of {source.messages:,}, tokens {shown.tokens:,} of {source.tokens:,}"
        return f"<MessageIndex {self.format.name}: {sizes}, groups {shown.groups:,}, edits {self.edit_count:,}>"

    # ---------------------------------------------------------------- reading

    @property
    def included(self) -> Metrics:
        """Sizes of the view. O(1)."""
        return self.columns.included.metrics()

    @property
    def total(self) -> Metrics:
        """Sizes of the source, without regard to edits. O(1)."""
        return self.columns.total.metrics()

    @property
    def tokens(self) -> int:
        """Tokens of a request: the view and the context's overhead. Token triggers compare this number."""
        return self.columns.included.tokens + self.context.overhead_tokens

    @property
    def included_groups(self) -> tuple[MessageGroup, ...]:
        """The groups of the view, in order: a copy, so the index may be edited in a loop over it. O(groups) after a change."""
        if self._groups is None:
            snapshot = self.columns.snapshot
            self._groups = tuple([snapshot(id) for id in self.columns.ids()])
        return self._groups

    @property
    def included_ids(self) -> list[int]:
        """The ids of the groups of the view, in order; O(groups), without reading a message."""
        return self.columns.ids()

    def removable_ids(self, by: str = "") -> list[int]:
        """Return the ids of all removable groups, in order, including the summary that ``by`` may replace; O(groups)."""
        return removable(self.columns, by)

    def group(self, id: int) -> MessageGroup:
        """Return the group with this id, in the view or not; raise an `InputError` if it does not exist."""
        return self.columns.snapshot(self.columns.known(id))

    def is_included(self, group: MessageGroup | int) -> bool:
        """Whether the view shows the group. O(1)."""
        return self.columns.is_included(group_id(group))

    def is_removable(self, group: MessageGroup | int) -> bool:
        """Whether the group may be removed, apart from what its neighbours require; see `protection`. O(1)."""
        return self.protection(group) is None

    def protection(self, group: MessageGroup | int) -> str | None:
        """Return why the group may not be removed, or ``None``. Neighbours are not checked; `steps` does this. O(1)."""
        return protection(self.columns, group_id(group))

    def is_rewritable(self, group: MessageGroup | int) -> bool:
        """Whether the group's content may be shortened: it is not pinned, pending or a summary. O(1)."""
        return rewrite_protection(self.columns, group_id(group)) is None

    def steps(
        self,
        groups: Iterable[MessageGroup | int],
        together: Callable[[int, int], bool] | None = None,
        *,
        preferred_only: bool = False,
        replaced: bool = False,
    ) -> Iterator[list[int]]:
        """Plan what to drop: the smallest sets of these groups that can only be removed together, oldest first.

        After each set is removed, the provider accepts the rest of the view. Sets after which the view is as the format prefers
        it come first; most formats prefer a view that begins with a user message. Groups that cannot be removed are in no set.
        In a format where any message may follow any other, the user message that begins the view stays until the next user
        message can begin it. O(messages) for all sets.

        Args:
            groups: The groups that may be removed, in order.
            together: Returns whether two successive groups must be removed together; ``None`` if none have to be.
            preferred_only: Whether to leave out sets that the format allows but does not prefer.
            replaced: Whether a message will replace the groups; it may then be the first message of the view.

        Yields:
            The ids of the groups of a set. Each set is planned as if the earlier ones had been dropped: drop each before you
            request the next, or request all of them first.
        """
        units = units_of(map(group_id, groups), together)
        return steps(self.columns, self.format, units, preferred_only=preferred_only, replaced=replaced)

    def replaceable(self, groups: Sequence[MessageGroup]) -> list[MessageGroup]:
        """Return those of these groups that one message can replace, in the order of their last messages. O(messages)."""
        by_id = {group.id: group for group in groups}
        return [by_id[id] for id in replacing.replaceable(self.columns, self.format, list(by_id))]

    def interleaved(self) -> set[int]:
        """Return the ids of groups whose messages are mixed with those of other groups, and of these others. O(messages).

        The set is empty for a format in which any message may follow any other.
        """
        return replacing.interleaved(self.columns, self.format)

    def summary(self, body: str, groups: Iterable[MessageGroup], *, by: str, round: int = 1) -> tuple[Message, ...]:
        """Return ``body`` as the messages of a `Replace` of these groups: with a mark, and a role that fits there. O(messages).

        There are two messages if the format requires alternating roles; the mark is in the first. ``by``, ``round`` and the
        errors are those of `marked`.
        """
        before, after = replacing.neighbours(self.columns, {group.id for group in groups})
        text = (self.marks or Marks()).write(body, by=by, round=round, role=self.format.summary(body, before, after)[0].role)
        return self.format.summary(text, before, after)

    def messages(self) -> list[Any]:
        """Return the view: the caller's own objects where nothing changed. Each call returns a new list, O(messages)."""
        if self._view is None:
            self._view = self.columns.raws()
        return self._view.copy()

    @property
    def source(self) -> Sequence[Any]:
        """Every message of the conversation, as it was passed in."""
        return tuple(self.columns.source)

    def ordinals(self, group: MessageGroup | int) -> list[int]:
        """Return the positions in the source, from 0, of a group's messages; for a summary, of all that it replaced."""
        return list(chain.from_iterable(self.places([group])))

    def places(self, groups: Iterable[MessageGroup | int]) -> list[range]:
        """Return the `ordinals` of some groups as ranges, in order. O(the groups)."""
        return self.columns.stands_for([self.columns.known(group_id(group)) for group in groups])

    def originals(self, group: MessageGroup | int) -> list[Any]:
        """Return the caller's messages of a group: its own, or those that a summary replaced."""
        return [self.columns.source[ordinal] for ordinal in self.ordinals(group)]

    def read_originals(self, *groups: MessageGroup | int, summaries: bool = True) -> list[Message]:
        """Return the `originals` of these groups as read messages; ``summaries=False`` omits those that are summaries."""
        columns = self.columns
        made_by = {} if summaries else columns.grouping.made_by
        found: list[Message] = []
        for group in groups:
            id = columns.known(group_id(group))
            for run in columns.stands_for([id]) if id < 0 else (columns.ordinals(id),):
                left = [at for at in run if columns.grouping.group_of[at] not in made_by] if made_by else run
                found += columns.read_all(left)
        return found

    # ---------------------------------------------------------------- editing

    @property
    def journal(self) -> tuple[Applied, ...]:
        """The edits that are currently applied, in order, each with the strategy that made it."""
        return tuple(self._editor.journal)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits that are currently applied, in order."""
        return self.edits_since(0)

    def edits_since(self, mark: int) -> tuple[Edit, ...]:
        """Return the edits that were applied since the journal had ``mark`` entries, in order. O(their number)."""
        return tuple([applied.edit for applied in self._editor.journal[mark:]])

    @property
    def edit_count(self) -> int:
        """The number of edits that are currently applied. O(1)."""
        return len(self._editor.journal)

    @property
    def refused(self) -> tuple[Refusal, ...]:
        """The edits that were refused since the last run began, in order."""
        return tuple(self._editor.refusals.noted)

    @property
    def undone(self) -> tuple[Edit, ...]:
        """The edits that were undone because new messages made the view invalid."""
        return tuple(self._editor.undone)

    @property
    def turns_since_edit(self) -> int:
        """User turns that began since the last edit of any strategy; all user turns if there was no edit."""
        return self._editor.turns_since_edit()

    def apply(self, edit: Edit, *, by: str = "") -> bool:
        """Apply an edit unless it would break a rule, and return whether it was applied; O(the groups it names).

        The index refuses messages that break a rule of the format, and neighbours that may not follow one another. A drop that
        is refused only for its neighbours is held, and applied together with later drops of the same strategy that make it
        valid. Its refusal is then removed from ``refused``, which lists each refusal with its rule until the next run.

        Args:
            edit: The edit.
            by: The strategy that makes the edit, for the journal.

        Raises:
            NoProgress: If a strategy repeats a refused edit although nothing has changed. In a run, this undoes all edits.
        """
        self._changed()
        return self._editor.apply(edit, by)

    def apply_all(self, drops: Drops, *, by: str = "") -> None:
        """Apply drops one after the other, as `apply` would, until their target holds."""
        self._editor.apply_all(drops, by, self._changed)

    def mark(self) -> int:
        """Begin a run: clear ``refused`` and the held drops, and return the position in the journal, for `rollback`."""
        return self._editor.mark()

    def begin_step(self) -> None:
        """Begin a strategy, which may try an edit again that was refused when an earlier strategy made it."""
        self._editor.begin_step()

    def end_step(self) -> bool:
        """End a strategy: apply the held drops that are valid together, and return whether there were any."""
        applied = self._editor.end_step()
        if applied:
            self._changed()
        return applied

    @contextlib.contextmanager
    def trial(self) -> Generator[None]:
        """Return a context manager that, at its end, undoes the edits applied in it and discards the refusals made in it."""
        try:
            with self._editor.trial():
                yield
        finally:
            self._changed()

    def rollback(self, mark: int = 0) -> None:
        """Undo every edit since a position in the journal, exactly. Raise an `InputError` if the journal has fewer edits."""
        self._editor.rollback(mark)
        self._pinned_ids = {id for id in self._pinned_ids if self.columns.exists(id)}
        self._changed()

    # ---------------------------------------------------------------- storing

    def to_dict(self, *, messages: bool = True) -> dict[str, Any]:
        """Return the index as JSON-ready data. O(edits), plus O(contents) of messages stored or not fingerprinted yet.

        With ``messages=False`` the data contains fingerprints instead of messages: `from_dict` then returns an empty index,
        which the first `sync` fills. Until then, `append` raises a `StateError`.
        """
        if messages and self._saved is not None:
            raise StateError("to_dict: this index was saved without its messages; call sync first, or pass messages=False")
        saved = self.snapshot
        if not messages and self._saved is None:
            fingerprints = self._fingerprints.of(self.columns.source, self.format)
            saved = attrs.evolve(saved, messages=None, fingerprints=fingerprints)
        return saved.to_dict(seen_at=self._seen_at)

    @property
    def snapshot(self) -> Saved:
        """The state that would be saved, with the messages; O(edits). It shares the index's message list: do not modify it."""
        return self._saved or Saved(
            format=self.format,
            messages=self.columns.source,
            fingerprints=(),
            journal=self.journal,
            pinned=sorted(self._pinned_ids),
            detects=self._detects,
            believed_until=None if self.marks is None else self.marks.until,
            known=frozenset() if self.marks is None else self.marks.known,
        )

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
        """Return the index that `to_dict` described, or raise a `StateError`.

        Pass ``format`` if it is not a built-in one, such as a framework's, or if the saved index had detected its format.
        """
        return cls.from_saved(Saved.read(data, format), counter=counter, context=context, pin=pin, marks=marks)

    @classmethod
    def from_saved(
        cls,
        saved: Saved,
        *,
        counter: TokenCounter | str = "auto",
        context: RunContext | None = None,
        pin: Callable[[Message], bool] | None = None,
        marks: Marks | None = None,
    ) -> MessageIndex:
        """Return the index of a `snapshot`, or of a part of one; the other options and errors are those of `from_dict`."""
        marks = None if marks is None else attrs.evolve(marks, until=saved.believed_until, known=saved.known)
        index = cls(counter=counter, format=saved.format, context=context, marks=marks)
        index._detects, index._seen_at = saved.detects, saved.seen_at
        index._pinned_ids.update(saved.pinned)
        if saved.messages is None:
            index._saved = saved
        else:
            index._load(saved, saved.messages)
        index._pin = pin
        for id in index.columns.every_id() if pin is not None else ():  # the saved edits may name pinned groups
            if pin is not None and any(pin(index.columns.read(ordinal)) for ordinal in index.columns.ordinals(id)):
                index.columns.pin(id)
        return index

    def _load(self, saved: Saved, messages: Sequence[Any]) -> None:
        """Read saved messages and apply their edits; raise a `StateError` if any of them cannot be applied."""
        try:
            self._extend(self._measured(messages, 0))
        except InputError as error:
            raise StateError(f"saved {error}") from error
        if left_out := self._replay(saved.journal):
            unfit = left_out[0].edit
            raise StateError(f"{unfit}: this edit does not fit the saved messages; discard the saved state and start again")
        if unknown := set(saved.pinned) - self._pinned_ids:
            raise StateError(
                f"pinned {sorted(unknown)}: the saved messages have no such groups; discard the saved state and start again"
            )

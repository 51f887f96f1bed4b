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
from functools import partial
from itertools import chain
from typing import Any, Final, TypeVar

import attrs

from ..checks import is_count
from ..errors import ConfigurationError, InputError, StateError
from ..formats import MessageFormat, as_list, fits, resolve
from ..json_data import too_deep
from ..messages import Message
from ..tokens import MessageMeter, TokenCounter
from ..tokens import counter as resolve_counter
from . import cuts, editing, replacements
from .columns import Columns
from .context import Notes, RunContext
from .editing import Broken
from .edits import Applied, Edit, Refusal, Restore, group_id, group_ids, summary_digests, written
from .forgetting import forgotten, saved_without
from .groups import GroupKind, MessageGroup
from .identity import (
    FollowedList,
    HostChanges,
    accounts_for,
    accounts_for_saved,
    follow,
    followed_from_fingerprints,
    known_beginning,
    recognized,
)
from .keys import message_key
from .marks import Marks
from .metrics import Metrics
from .reading import MessageReader, NewMessages
from .relay import Drops
from .rules import protection, removable, rewrite_protection
from .state import Saved, in_format

_UNCHANGED: Final = HostChanges()
_Group = TypeVar("_Group", bound=MessageGroup | int)


class MessageIndex:
    """A conversation as groups. Holds state: the groups, the metrics and the journal.

    Appending costs O(new messages), metrics O(1), an edit O(the groups it names), the view O(messages).

    Messages come in by two methods. `_extend` adds messages at the end. `_rebuild` reads all again, and repeats the edits that
    are still allowed: in ``sync`` and ``forget`` if known messages changed (`_adopt_changes`), in ``append`` and ``sync`` if
    new ones show that the detected format is wrong (`_switch_format`), in ``believe`` because other marked messages are then
    read as summaries, and in ``from_dict``. If the view then breaks more rules than the host's list, the list is read without
    edits (`_start_over`).

    Args:
        messages: The conversation so far, oldest first.
        counter: A token counter, or the name of one; see `compaction.tokens.counter`.
        format: The wire format, or its name; ``None`` to detect it (see `compaction.formats.resolve`).
        context: Facts about the request that a strategy may use; may be replaced at any time.
        pin: A function that returns true for a message that must stay; its whole group is then neither removed nor changed.
        marks: The rules by which marked messages are read as summaries, and by which new ones are marked. With ``None``, the
            first run sets them from its strategy.

    Attributes:
        columns: All data, such as kind, turn and sizes by a group's id, each O(1), without reading a message.
        measure: Counts the tokens and bytes of a message.
        changes: What the host did to known messages, according to the last `sync`.
        notes: What summarizers remember of the conversation between their rounds.

    Raises:
        InputError: If ``messages`` is not a list of messages.
        ConfigurationError: If an option is of the wrong type.
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
        for name, value, kind in (("context", context, RunContext), ("marks", marks, Marks)):
            if not isinstance(value, kind | None):
                raise ConfigurationError(f"MessageIndex: {name!r} must be a {kind.__name__} (got {value!r})", argument=name)
        self.counter = resolve_counter(counter)
        self.context = RunContext() if context is None else context
        self.marks = marks
        self.changes = _UNCHANGED
        self.notes = Notes()
        meter = MessageMeter(counter=self.counter)
        self.measure = meter.measure
        self._reader = MessageReader(resolve(format, given), meter, pin)
        self._detects = format is None  # later messages may then show that it is another format
        self._saved: Saved | None = None  # the stored state, until its messages arrive
        self._arrived_at: float | None = None  # when messages last arrived
        self._gap_seconds = 0.0  # between the last two times that messages arrived
        self._keys: list[str] = []  # of the first source messages, as far as they were needed
        self._running: list[Any] = []
        self._undone: list[Edit] = []
        self._empty()
        self._extend(self._reader.new(given))
        if given:
            self._note_time()

    def __repr__(self) -> str:
        shown, source = self.included, self.total
        sizes = f"messages {shown.messages:,} of {source.messages:,}, tokens {shown.tokens:,} of {source.tokens:,}"
        return f"<MessageIndex {self.format.name}: {sizes}, groups {shown.groups:,}, edits {self.edit_count:,}>"

    # ---------------------------------------------------------------- sizes, groups and messages

    @property
    def format(self) -> MessageFormat:
        """The wire format of the messages. A detected one changes if later messages show that it is another."""
        return self._reader.format

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
        """The groups of the view, in order: a copy, so the index may be edited in a loop over it. O(groups)."""
        return self.columns.snapshots(self.columns.ids())

    @property
    def included_ids(self) -> list[int]:
        """The ids of the groups of the view, in order; O(groups), without reading a message."""
        return self.columns.ids()

    def removable_ids(self, by: str = "") -> list[int]:
        """Return the ids of all removable groups, in order, including the summary that ``by`` may replace; O(groups)."""
        return removable(self.columns, by)

    def group(self, id: MessageGroup | int) -> MessageGroup:
        """Return the group with this id as it is now, in the view or not; raise an `InputError` if it does not exist."""
        return self.columns.snapshot(self.columns.require(group_id(id)))

    def _ids(self, groups: Iterable[MessageGroup | int]) -> list[int]:
        """Return the ids of groups; raise an `InputError` if one does not exist."""
        return list(map(self.columns.require, group_ids(groups)))

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
        """Plan what to drop: yield the smallest sets of these groups that can only be removed together, as ids, oldest first.

        After each set is removed, the provider accepts the rest of the view. Sets after which the view is as the format prefers
        it come first (see `cuts`). Each set is planned as if the earlier ones had been dropped. O(messages) for all sets.

        Args:
            groups: The groups that may be removed, in order. Only neighbours are checked: pass groups of `removable_ids`.
            together: Returns whether two successive groups must be removed together; ``None`` if none have to be.
            preferred_only: Whether to leave out sets that the format allows but does not prefer.
            replaced: Whether a message will replace the groups; it may then be the first message of the view.
        """
        ids = self.columns.in_view(group_ids(groups))
        return cuts.plan_cuts(self.columns, ids, together, preferred_only=preferred_only, replaced=replaced)

    def replaceable(self, groups: Sequence[_Group]) -> list[_Group]:
        """Return those of these groups (or ids) that one message can replace, in the given order. O(messages)."""
        by_id = dict(zip(group_ids(groups), groups, strict=True))
        return [by_id[id] for id in replacements.replaceable(self.columns, self.columns.in_view(by_id))]

    def interleaved(self) -> set[int]:
        """Return the ids of groups whose messages are mixed with those of other groups, and of these others. O(messages)."""
        return replacements.interleaved(self.columns)

    def summary(self, body: str, groups: Iterable[MessageGroup | int], *, by: str, round: int = 1) -> tuple[Message, ...]:
        """Return ``body`` as the messages of a `Replace` of these groups: with a mark, and a role that fits there. O(messages).

        There are two messages if the format requires alternating roles; the mark is in the first. ``by``, ``round`` and the
        errors are those of `marked`. A `StrategyError` is raised if none of the groups is in the view.
        """
        before, after = replacements.neighbours(self.columns, set(self._ids(groups)))
        text = (self.marks or Marks()).write(body, by=by, round=round, role=self.format.summary(body, before, after)[0].role)
        return self.format.summary(text, before, after)

    def messages(self) -> list[Any]:
        """Return the view: the caller's own objects where nothing changed. Each call returns a new list, O(messages)."""
        return self.columns.raws()

    @property
    def source(self) -> Sequence[Any]:
        """Every message of the conversation, as it was passed in."""
        return tuple(self.columns.source)

    def ordinals(self, group: MessageGroup | int) -> list[int]:
        """Return the positions in the source, from 0, of a group's messages; for a summary, of all that it replaced."""
        return list(chain.from_iterable(self.places([group])))

    def kind_at(self, ordinal: int) -> GroupKind:
        """Return the kind of the group of the message at a position in the source, from 0. O(1)."""
        if not is_count(ordinal) or ordinal >= len(self.columns.source):
            raise InputError(f"kind_at({ordinal}): the source has {len(self.columns.source)} messages")
        return self.columns.kind(self.columns.grouping.group_of[ordinal])

    def places(self, groups: Iterable[MessageGroup | int]) -> list[range]:
        """Return the `ordinals` of some groups as ranges, in order. O(the groups)."""
        return self.columns.stands_for(self._ids(groups))

    def originals(self, group: MessageGroup | int) -> list[Any]:
        """Return the caller's messages of a group: its own, or those that a summary replaced."""
        return [self.columns.source[ordinal] for ordinal in self.ordinals(group)]

    def read_originals(self, *groups: MessageGroup | int, summaries: bool = True) -> list[Message]:
        """Return the `originals` of these groups as read messages, oldest first; ``summaries=False`` omits the summaries."""
        columns = self.columns
        made_by = {} if summaries else columns.grouping.made_by
        ordinals = chain.from_iterable(self.places(groups))
        return [columns.read(at) for at in ordinals if columns.grouping.group_of[at] not in made_by]

    # ---------------------------------------------------------------- editing

    @property
    def journal(self) -> tuple[Applied, ...]:
        """The edits that are currently applied, in order, each with the strategy that made it; O(edits)."""
        return tuple(self.columns.journal)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits that are currently applied, in order."""
        return self.edits_since(0)

    def edits_since(self, checkpoint: int) -> tuple[Edit, ...]:
        """Return the edits that were applied since a checkpoint, in order. O(their number)."""
        return tuple([applied.edit for applied in self.columns.journal[checkpoint:]])

    @property
    def edit_count(self) -> int:
        """The number of edits that are currently applied. O(1)."""
        return len(self.columns.journal)

    @property
    def refused(self) -> tuple[Refusal, ...]:
        """The edits that were refused since the last run began, in order."""
        return tuple(self._refusals.noted)

    @property
    def undone(self) -> tuple[Edit, ...]:
        """The edits that the last `sync`, `append` or `forget` undid: new, altered or missing messages made them invalid."""
        return tuple(self._undone)

    @property
    def turns_since_edit(self) -> int:
        """User turns that began since the last edit of any strategy; all user turns if there was no edit."""
        newest = next((each.turn for each in reversed(self.columns.journal) if not isinstance(each.edit, Restore)), 0)
        return self.columns.grouping.turn - newest

    @property
    def idle_seconds(self) -> float:
        """Seconds between the last two appends, or since the last one if that is longer; 0 without a clock."""
        now, arrived_at = self.context.now, self._arrived_at
        return 0.0 if now is None or arrived_at is None else max(self._gap_seconds, now - arrived_at)

    def apply(self, edit: Edit, *, by: str = "") -> bool:
        """Apply an edit unless it would break a rule, and return whether it was applied; O(the groups it names).

        The index refuses messages that break a rule of the format, and neighbours that may not follow one another; ``refused``
        lists each refusal until the next run. Drops that are refused only for their neighbours are tried together when the
        strategy ends, see `end_step`.

        Args:
            edit: The edit.
            by: The strategy that makes the edit, for the journal; by default the one that is running.

        Raises:
            NoProgress: If a strategy repeats a refused edit although nothing has changed. In a run, this undoes all edits.
        """
        by = by or self.running_name
        return self._note(edit, by, editing.apply(self.columns, edit, by))

    def apply_all(self, drops: Drops) -> None:
        """Apply drops one after the other, as `apply` would, until their target holds."""
        by = self.running_name
        for drop, broken in editing.apply_all(self.columns, drops.one_by_one(), by):
            self._note(drop, by, broken)

    def _note(self, edit: Edit, by: str, broken: Broken | None) -> bool:
        """Note that an edit was applied, or the rule that it would have broken; return whether it was applied."""
        if broken is None:
            self._refusals.changed()
            return True
        self._refusals.note(edit, broken.rule, by, waits=broken.by_neighbours)
        return False

    def checkpoint(self) -> int:
        """Begin a run: clear ``refused``, and return the position in the journal, for `rollback`."""
        self._refusals = editing.Refusals()
        self._running = []
        return self.edit_count

    @property
    def running(self) -> Any:
        """The innermost strategy that is running; ``None`` if none is."""
        return self._running[-1] if self._running else None

    @property
    def running_name(self) -> str:
        """The name of that strategy; empty if none is running."""
        return getattr(self.running, "name", "")

    def begin_step(self, strategy: Any) -> None:
        """Begin a strategy, which may try an edit again that was refused when an earlier strategy made it."""
        self._running.append(strategy)
        self._refusals.changed()
        self._refusals.stop_waiting()

    def end_step(self, strategy: Any) -> bool:
        """End a strategy, and those inside it that were stopped and so could not report their end.

        Its refused drops that are valid together are applied; returns whether there were any. The others stay refused.
        """
        while self._running and self._running.pop() is not strategy:
            pass
        if not self._refusals.apply_waiting(self.columns):
            return False
        self._refusals.changed()
        return True

    @contextlib.contextmanager
    def trial(self) -> Generator[None]:
        """Return a context manager that, at its end, undoes the edits applied in it and discards the refusals made in it."""
        before, refusals, running = self.edit_count, self._refusals, self._running
        self.checkpoint()
        try:
            yield
        finally:
            editing.rollback(self.columns, before)
            self._refusals, self._running = refusals, running

    def rollback(self, checkpoint: int = 0) -> None:
        """Undo every edit since a position in the journal, exactly. Raise an `InputError` if the journal has fewer edits.

        If messages came since, an earlier edit that they make invalid is undone, too, and the user's last words stay.
        """
        if not is_count(checkpoint) or checkpoint > self.edit_count:
            raise InputError(f"rollback({checkpoint}): the journal has {self.edit_count} edits; pass a value from checkpoint()")
        columns = self.columns
        self._refusals.stop_waiting()
        self._running = []
        undone = editing.rollback(columns, checkpoint)
        editing.restore_joined(columns)
        if columns.journal and undone:
            nodes = editing.touched(columns, *undone)
            self._undone += editing.settle(columns, [node for node in nodes if node >= 0])

    def pin(self, ids: Iterable[MessageGroup | int]) -> None:
        """Keep these groups unchanged from now on; raise an `InputError` if one of them does not exist."""
        self.columns.pin(self._ids(ids), by_id=True)

    # ---------------------------------------------------------------- adding

    def append(self, messages: Iterable[Any]) -> None:
        """Add messages at the end; O(new). If one of them cannot be read, an `InputError` is raised and none is added.

        A result that answers a call of a dropped group brings the group back, by a journaled `Restore`; see also ``undone``.
        """
        given = as_list(messages)
        if self._saved is not None:
            raise StateError("append: this index was saved without its messages; pass the full list to sync first")
        self._undone.clear()
        if self._detects and not fits(given, self.format):
            self._switch_format(resolve(None, [*self.columns.source, *given]))
        self._extend(self._reader.new(given, len(self.columns.source)))
        if given:
            self._note_time()

    def believe(self, marks: Marks | None) -> None:
        """Treat marked messages by these rules from now on (see ``marks``). O(messages) if there are any, otherwise O(1)."""
        known, self.marks = self.marks, marks
        columns, rules = self.columns, marks or Marks()
        only_until_differs = known is not None and attrs.evolve(known, until=rules.until) == rules
        if only_until_differs or not columns.grouping.marks.found:
            columns.grouping.marks.rules = rules  # for later messages; the others are read as before
        else:
            self._rebuild(self._reader.measured(columns.source, columns.reads), columns.journal)

    # ---------------------------------------------------------------- following a host's list

    def sync(self, messages: Iterable[Any], *, verify: bool = False) -> None:
        """Update the index from the full list that a framework passes on each call.

        The list may be the source, the last view or an earlier view, followed by newer messages. Messages are recognized by
        identity and content, not by position (see `identity`). Edits of messages that the host did not touch stay. What the
        host changed is in ``changes``. O(list) for the same objects; from the first difference on, O(contents).

        Args:
            messages: The whole conversation, oldest first.
            verify: Whether to compare the contents of identical objects too, to detect a message changed in place; O(contents).
        """
        columns, count, given = self.columns, len(self.columns.source), as_list(messages)
        self._undone.clear()
        if self._saved is not None:
            self._load_from_host(self._saved, given)
        else:
            try:
                known = self._follow(given, verify=verify)
            except RecursionError:
                raise too_deep(given) from None
            if self._extend(self._reader.new(given[known:], known)) and self._is_worse(given):
                self._start_over(given)
        if self.columns is not columns or len(columns.source) > count:  # built again, or extended
            self._note_time()

    def _follow(self, given: list[Any], *, verify: bool) -> int:
        """Adopt what the host did to known messages, and return how many messages of its list the index then has."""
        self.changes, columns = _UNCHANGED, self.columns
        known = None if verify else known_beginning(columns, given)
        new = given if known is None else given[known:]
        if self._detects and not fits(new, self.format) and (other := resolve(None, given)) != self.format:
            self._switch_format(other)
            return self._follow(given, verify=verify)  # in another format, other messages may be the same
        if known is None:
            followed = follow(columns, given, verify=verify)
            self.changes, known = followed.changes, followed.covered
            if followed.changes or followed.edited:
                self._adopt_changes(followed, given, columns.journal)
                return len(given)
        return known

    def accounts_for(self, messages: Iterable[Any], *, by_id: bool = False) -> bool:
        """Whether a list contains the whole source, or summaries in its place. Cost as for `sync`.

        Args:
            messages: The list.
            by_id: Whether the host names the conversation: messages before a known one may then be altered or missing.
        """
        given, saved = as_list(messages), self._saved
        if saved is None:
            return accounts_for(self.columns, given, by_id=by_id)
        format = resolve(None, given) if self._detects else self.format
        return accounts_for_saved(saved.in_format(format).fingerprints, given, format, by_id=by_id)

    # ---------------------------------------------------------------- forgetting

    def forget(self, messages: Iterable[Any]) -> int:
        """Remove all messages with the same content as these, and undo every edit that used them; O(contents).

        A group whose rest would break more rules of the format is removed whole, until the host's next list brings it back.

        Returns:
            The number of messages removed.
        """
        given = as_list(messages)
        if self._detects and not fits(given, self.format):
            return 0
        for place, raw in enumerate(given):
            self._reader.read(raw, place)  # if one cannot be read, raise before anything changes
        self.notes.clear()
        self._undone.clear()
        if self._saved is not None:
            self._saved, count, _ = saved_without(self._saved, given)
            return count
        gone = forgotten(self.columns, given)
        if gone:
            followed = gone.followed(self.columns)
            self.marks = None if self.marks is None else gone.marks(self.marks)
            self.changes = _UNCHANGED
            self._adopt_changes(followed, followed.raws, gone.kept)
        return len(gone.found)

    def traces_of(self, messages: Iterable[Any]) -> list[Any]:
        """Return what `forget` would remove of these messages: those with their content, and what was written from them.

        An edit that was made from a message may quote another that stays. O(contents).
        """
        given, found = as_list(messages), list[Any]()
        if self._saved is None:
            gone = forgotten(self.columns, given)
            found, undone = [self.columns.source[ordinal] for ordinal in sorted(gone.found)], gone.undone
        else:
            _, _, undone = saved_without(self._saved, given)
        return [*found, *(message.raw for applied in undone for message in written(applied.edit))]

    # ---------------------------------------------------------------- storing

    def to_dict(self, *, messages: bool = True) -> dict[str, Any]:
        """Return the index as JSON-ready data. O(edits), plus O(contents) of messages stored or not fingerprinted yet.

        With ``messages=False`` it has fingerprints instead: the index of `from_dict` is then empty until the first `sync`, and
        `append` raises a `StateError` until then.
        """
        if messages and self._saved is not None:
            raise StateError("to_dict: this index was saved without its messages; call sync first, or pass messages=False")
        saved = self.snapshot
        if not messages and self._saved is None:
            source, known, format = self.columns.source, len(self._keys), self.format
            self._keys += [message_key(raw, format, place) for place, raw in enumerate(source[known:], known)]
            saved = attrs.evolve(saved, messages=None, fingerprints=self._keys.copy())
        return saved.to_dict()

    @property
    def snapshot(self) -> Saved:
        """The state that would be saved, with the messages; O(edits). It shares the index's message list: do not modify it."""
        return self._saved or Saved(
            format=self.format,
            messages=self.columns.source,
            fingerprints=(),
            journal=self.journal,
            pinned=sorted(self.columns.pinned_by_id),
            detects=self._detects,
            seen_at=self._arrived_at,
            believed_until=None if self.marks is None else self.marks.until,
            own=frozenset() if self.marks is None else self.marks.own,
        )

    @classmethod
    def from_dict(
        cls,
        data: Mapping[str, Any] | Saved,
        *,
        counter: TokenCounter | str = "auto",
        context: RunContext | None = None,
        pin: Callable[[Message], bool] | None = None,
        format: MessageFormat | None = None,
        marks: Marks | None = None,
    ) -> MessageIndex:
        """Return the index that `to_dict` described, or that of a `snapshot`, or raise a `StateError`.

        Pass ``format`` if it is not a built-in one, such as a framework's, or if the saved index had detected its format; a
        `snapshot` has its own. The index shares the messages in ``data``, perhaps with another index: do not modify them.
        """
        saved = data if isinstance(data, Saved) else Saved.read(data, format)
        marks = None if marks is None else attrs.evolve(marks, until=saved.believed_until, own=saved.own)
        index = cls(counter=counter, format=saved.format, context=context, marks=marks)
        index._detects, index._arrived_at = saved.detects, saved.seen_at
        index.columns.pinned_by_id.update(saved.pinned)
        if saved.messages is None:
            index._saved = saved
        else:
            index._load(saved, saved.messages)
        index._reader = attrs.evolve(index._reader, pin=pin)  # only now: the saved edits may name pinned groups
        if pin is not None:
            columns = index.columns
            wanted = [id for id in columns.grouping.ids if any(pin(columns.read(at)) for at in columns.ordinals(id))]
            columns.pin(wanted, by_id=False)
        return index

    # ---------------------------------------------------------------- reading, and building the conversation again

    def _extend(self, fresh: NewMessages) -> bool:
        """Add messages at the end, and return whether edits had to be undone."""
        if not fresh.raws:
            return False
        columns, undone = self.columns, list[Edit]()
        self._refusals.changed()
        start, count = len(columns.source), len(columns.journal)
        columns.extend(fresh, partial(editing.restore, columns))
        if columns.journal:
            undone = editing.settle(columns, [start, *editing.touched(columns, *columns.journal[count:])])
            self._undone += undone
        return bool(undone)

    def _note_time(self) -> None:
        now, before = self.context.now, self._arrived_at
        if now is not None and now != before:
            self._gap_seconds = 0.0 if before is None else max(0.0, now - before)
            self._arrived_at = now

    def _empty(self) -> None:
        self.columns = Columns(self.format, self.measure, self.marks)
        self._refusals = editing.Refusals()
        self._keys = []

    def _rebuild(
        self, messages: NewMessages, journal: Sequence[Applied] = (), followed: FollowedList | None = None
    ) -> list[Applied]:
        """Read all messages again, with the edits and pins that are still allowed; return the edits that are not.

        Without ``followed``, they are the same messages. Otherwise those after its entries are new. The order of the steps:

        1. Read the messages, as a list without edits. Only the new groups tell which edits can be repeated.
        2. Repeat the edits, which may have any neighbours until all of them are there.
        3. Undo edits that the new neighbours make invalid.
        """
        pinned = self.columns.pinned_by_id
        self._empty()
        columns = self.columns
        self._extend(messages)  # 1
        new_ids, late = None, list[int]()
        if followed is not None:
            new_ids, late = followed.new_ids(columns), columns.grouping.group_of[len(followed.entries) :]
            journal, undone = followed.carried_over(journal, self.format)
            self._undone += undone
        left_out = editing.reapply(columns, journal, pinned, new_ids, late)  # 2
        self._undone += editing.edits_of(left_out)
        self._undone += editing.settle(columns, editing.touched(columns, *columns.journal))  # 3
        return left_out

    def _switch_format(self, format: MessageFormat) -> None:
        """Read the messages in another format, which only later ones revealed."""
        reader = attrs.evolve(self._reader, format=format)
        messages, journal = reader.new(self.columns.source), in_format(self.columns.journal, self.format, format)
        self._reader = reader
        self._rebuild(messages, journal)

    def _adopt_changes(self, followed: FollowedList, given: Sequence[Any], journal: Sequence[Applied]) -> None:
        """Change known messages as the host did. If a message cannot be read, raise before anything changes."""
        old = self.columns
        reads = [
            old.reads[ordinal] if ordinal is not None and ordinal not in followed.altered else self.format.read(raw, place or 0)
            for raw, ordinal, place in followed.entries
        ]
        tail = given[followed.covered :]
        messages = self._reader.measured([*followed.raws, *tail], reads + self._reader.outlines(tail, followed.covered))
        self._rebuild(messages, journal, followed)
        if not self._is_followed(followed, given):
            self._start_over(given)

    def _is_followed(self, followed: FollowedList, given: Sequence[Any]) -> bool:
        """Whether the view is the host's list, or one that breaks fewer rules, after its changes were adopted.

        ==================================================  ==========================================================
        The view shows messages that the list lacks         It is accepted
        ==================================================  ==========================================================
        none                                                if it breaks no more rules than the list
        a dropped call, of which a new result came          yes: the result has to follow its call
        a message of which the edit that hid it was undone  no: the host does not want it
        ==================================================  ==========================================================
        """
        group_of, is_shown = self.columns.grouping.group_of, self.columns.visibility.is_shown
        unlisted = {group_of[new] for new, entry in enumerate(followed.entries) if entry.place is None and is_shown(new)}
        if unlisted:
            with_new_messages = group_of[len(followed.entries) :]
            return unlisted.issubset(with_new_messages)
        return not self._is_worse(given)

    def _is_worse(self, given: Sequence[Any]) -> bool:
        """Whether the view breaks more rules of the format than the host's own list. O(contents)."""
        return len(self.format.validate(self.columns.raws())) > len(self.format.validate(given))

    def _start_over(self, given: Sequence[Any]) -> None:
        """Read the host's list, without edits; the summaries in it that edits wrote are still summaries, and pins stay."""
        old, messages = self.columns, self._reader.new(given)
        self._undone += editing.edits_of(old.journal)
        self._remember_summaries(self._undone)
        followed: FollowedList | None = None
        if old.pinned_by_id:
            known = {entry.place: entry.ordinal for entry in follow(old, given, verify=False).entries}
            followed = FollowedList.of(old, given, map(known.get, range(len(given))))
        self._rebuild(messages, (), followed)

    def _remember_summaries(self, edits: Iterable[Edit]) -> None:
        """Believe the marks of the summaries that these edits wrote."""
        if self.marks is not None:
            self.marks = attrs.evolve(self.marks, own=self.marks.own | summary_digests(edits))

    def _load(self, saved: Saved, messages: Sequence[Any]) -> None:
        """Build the conversation of a state with its messages; raise a `StateError` if an edit or a pin does not fit them."""
        try:
            fresh = self._reader.new(messages)
        except InputError as error:
            raise StateError(f"saved {error}") from error
        if left_out := self._rebuild(fresh, saved.journal):
            unfit = left_out[0].edit
            raise StateError(f"{unfit}: this edit does not fit the saved messages; discard the saved state and start again")
        if unknown := sorted(set(saved.pinned) - self.columns.pinned_by_id):
            raise StateError(
                f"pinned {unknown}: the saved messages have no such groups; discard the saved state and start again"
            )

    def _load_from_host(self, saved: Saved, given: list[Any]) -> None:
        """Build the conversation of a state without its messages, as far as the host's list has them."""
        if self._detects:
            self._reader = attrs.evolve(self._reader, format=resolve(None, given))
        saved = saved.in_format(self.format)
        ordinals, altered = recognized(saved.fingerprints, given, self.format)
        messages = self._reader.new(given)  # raises before anything changes
        self._saved = None
        self._remember_summaries(applied.edit for applied in saved.journal)
        empty = Columns(self.format, self.measure, self.marks)
        followed = followed_from_fingerprints(empty, messages, saved.fingerprints, ordinals, altered)
        self.changes = followed.changes
        self._rebuild(messages, saved.journal, followed)

"""Taking messages into an index: read and measure them, follow a host's list, forget messages.

`Intake` is the base class of `MessageIndex`. Appended messages go into the columns of `projection`. A full list from a host is
compared with the known messages by `sync`; if the host changed something, the conversation is read again and its edits are
applied again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from ..errors import StateError
from ..formats import MessageFormat, as_list, fits, resolve
from ..json_data import too_deep
from ..messages import Message, Outline
from ..tokens import MessageMeter, TokenCounter
from .columns import Fresh
from .context import RunContext
from .editing import Editor
from .edits import Replace, named
from .fingerprints import Fingerprints
from .forgetting import forgotten, saved_without
from .groups import MessageGroup
from .journal import Applied, flat, touched
from .marks import MARK_START, Marks
from .projection import Projection
from .state import Saved, in_format
from .sync import HostChanges, PassedList, Plan, accounts_for, edits_after, follow, read_before

_UNCHANGED: Final = HostChanges()


class Intake:
    """The part of a `MessageIndex` that takes messages in. Holds state.

    Args:
        counter: Counts tokens.
        format: The wire format.
        detects: Whether the format was detected, not named; later messages may then show that it is another.
        context: Facts about the request, such as the window and the time.
        pin: Returns whether the group of a message must be kept unchanged; ``None`` to pin none.
        marks: The rules for marked messages; ``None`` to leave them to the first run.

    Attributes:
        columns: The groups as columns: kind, turn and sizes by a group's id, each O(1), without reading a message.
        measure: Counts the tokens and bytes of a message.
        changes: What the host did to known messages, according to the last `sync`.
    """

    def __init__(
        self,
        counter: TokenCounter,
        format: MessageFormat,
        *,
        detects: bool,
        context: RunContext,
        pin: Callable[[Message], bool] | None,
        marks: Marks | None,
    ) -> None:
        self.counter = counter
        self.format = format
        self.context = context
        self.marks = marks
        self.changes = _UNCHANGED
        self._meter = MessageMeter(counter=counter)
        self.measure = self._meter.measure
        self._detects = detects
        self._pin = pin
        self._pinned_ids: set[int] = set()
        self._saved: Saved | None = None  # the stored state, until its messages arrive
        self._seen_at: float | None = None  # when messages last arrived
        self._gap_seconds = 0.0  # between the last two times that messages arrived
        self._fingerprints = Fingerprints()
        self._passed = PassedList()
        self._start()

    def _start(self, fresh: Fresh | None = None) -> None:
        """Begin with these messages and no edits."""
        self.columns = Projection(self.format, self.marks)
        self._editor = Editor(self.columns, self.format, self.measure)
        self._changed()
        self._passed.clear()
        if fresh is not None:
            self._extend(fresh)

    def _changed(self) -> None:
        """Discard the cached view, which `messages` and `included_groups` build again."""
        self._groups: tuple[MessageGroup, ...] | None = None
        self._view: list[Any] | None = None

    @property
    def idle_seconds(self) -> float:
        """Seconds between the last two appends, or since the last one if that is longer; 0 without a clock."""
        now = self.context.now
        since = 0.0 if now is None or self._seen_at is None else now - self._seen_at
        return max(self._gap_seconds, since)

    def _note_time(self) -> None:
        now = self.context.now
        if now is None or now == self._seen_at:
            return
        self._gap_seconds = 0.0 if self._seen_at is None else max(0.0, now - self._seen_at)
        self._seen_at = now

    # ---------------------------------------------------------------- adding

    def append(self, messages: Iterable[Any]) -> None:
        """Add messages at the end; O(new). If one of them cannot be read, an `InputError` is raised and none is added.

        A result that answers a call of a dropped group brings the group back, by a journaled `Restore`; see also ``undone``.
        """
        given = as_list(messages)
        if self._saved is not None:
            raise StateError("append: this index was saved without its messages; pass the full list to sync first")
        self._passed.clear()
        if self._detects and not fits(given, self.format):
            self._turn_to(resolve(None, [*self.columns.source, *given]))
        self._add(given)

    def _add(self, given: Sequence[Any]) -> None:
        """Add messages of this format at the end."""
        self._extend(self._measured(given, len(self.columns.source)))
        if given:
            self._note_time()

    def _turn_to(self, format: MessageFormat) -> None:
        """Read everything again in another format, which only later messages revealed."""
        source, journal = self.columns.source, in_format(self._editor.journal, self.format, format)
        self.format = format
        self._start(self._measured(source, 0))
        self._replay(journal)

    def believe(self, marks: Marks) -> None:
        """Treat marked messages by these rules from now on. O(messages) if there are any, otherwise O(1)."""
        known, self.marks = self.marks, marks
        old, journal = self.columns, self._editor.journal
        if not old.grouping.has_marks or (known is not None and attrs.evolve(known, until=marks.until) == marks):
            old.grouping.marks = marks
            return
        self._start(self._fresh(old.source, old.reads))
        self._replay(journal)

    def _measured(self, raws: Sequence[Any], start: int) -> Fresh:
        """Read and measure messages before they are added; everything that may fail happens here.

        Only the outline of a plain message is read. ``start`` is the place of the first message, for errors.
        """
        outline: Callable[[Any], Outline | None] = self.format.outline if self._pin is None else lambda _: None
        reads = [
            glance
            if (glance := outline(raw)) is not None and (glance[1] is None or not glance[1].startswith(MARK_START))
            else self._read(raw, place)
            for place, raw in enumerate(raws, start)
        ]
        return self._fresh(list(raws), reads)

    def _read(self, raw: Any, place: int) -> Message:
        try:
            return self.format.read(raw, place)
        except RecursionError:
            raise too_deep([raw], place) from None

    def _fresh(self, raws: list[Any], reads: list[Outline | Message]) -> Fresh:
        """Measure messages that were read."""
        outlines = [read for read in reads if isinstance(read, tuple)]
        tokens, sizes = self._meter.measure_outlines(outlines)
        if len(outlines) == len(reads):
            return Fresh(raws, reads, tokens, sizes)
        pin, outlined = self._pin, zip(tokens, sizes, strict=True)
        both = [next(outlined) if isinstance(read, tuple) else self.measure(read) for read in reads]
        pinned = [] if pin is None else [place for place, read in enumerate(reads) if isinstance(read, Message) and pin(read)]
        return Fresh(raws, reads, [tokens for tokens, _ in both], [size for _, size in both], pinned)

    def _extend(self, fresh: Fresh) -> list[Applied] | None:
        """Add messages at the end; return the journal before, if edits had to be undone.

        If the view only grows, its cached list is extended; otherwise it is discarded.
        """
        if not fresh.raws:
            return None
        editor, before = self._editor, None
        editor.refusals.changed()
        start, count = len(self.columns.source), len(editor.journal)
        self.columns.extend(fresh, editor.restore)
        if editor.journal:
            restored = [place for applied in editor.journal[count:] for place in touched(self.columns, applied)]
            before = editor.settle([start, *restored])
        self._groups = None
        if len(editor.journal) != count or before is not None:
            self._view = None
        elif self._view is not None:
            self._view += fresh.raws
        return before

    def _replay(self, journal: Iterable[Applied], groups: Mapping[int, int] | None = None) -> list[Applied]:
        """Apply journaled edits and pins again (see `Editor.replay`), and return the edits that are not allowed now."""
        left_out, ids = self._editor.replay(journal, groups)
        pinned = {ids.get(id, id) for id in self._pinned_ids if id in ids or (id >= 0 and groups is None)}
        self._pinned_ids.clear()
        self.pin(sorted(id for id in pinned if self.columns.exists(id)))
        self._editor.settle(place for applied in self._editor.journal for place in touched(self.columns, applied))
        return left_out

    def pin(self, ids: Iterable[int]) -> None:
        """Keep these groups unchanged from now on; raise an `InputError` if one of them does not exist."""
        for id in ids:
            self.columns.pin(self.columns.known(id))
            self._pinned_ids.add(id)
        self._groups = None

    # ---------------------------------------------------------------- following a host's list

    def sync(self, messages: Iterable[Any], *, verify: bool = False) -> None:
        """Update the index from the full list that a framework passes on each call.

        The list may be the source, the last view or an earlier view, followed by newer messages. They may be the same objects
        or equal ones. Messages are recognized by identity and content, not by position; one that is not recognized is new.
        Edits of messages that the host did not touch stay. What the host changed is in ``changes``. O(list) comparisons, by
        identity first; from the first difference on, O(contents).

        Args:
            messages: The whole conversation, oldest first.
            verify: Whether to compare the contents of identical objects too, to detect a message changed in place; O(contents).
        """
        columns, count = self.columns, len(self.columns.source)
        self._sync(as_list(messages), verify=verify)
        if self.columns is not columns or len(columns.source) > count:
            self._note_time()

    def _sync(self, given: list[Any], *, verify: bool) -> None:
        if self._saved is not None:
            self.format = resolve(None, given) if self._detects else self.format
            self._bind(self._saved.in_format(self.format), given)
            return
        self.changes = _UNCHANGED
        journal = self._editor.journal
        try:
            known = None if verify else self._passed.continued(self.columns, given, self.format, bool(journal))
            new = given if known is None else given[known:]
            if self._detects and not fits(new, self.format) and (other := resolve(None, given)) != self.format:
                self._turn_to(other)
                self._sync(given, verify=verify)
                return
            if known is None:
                plan = follow(self.columns, journal, given, self.format, verify=verify)
                self.changes = plan.changes
                if plan.changes or plan.summaries:
                    self._follow(plan, given, journal)
                    return
                known = plan.matched
        except RecursionError:
            raise too_deep(given) from None
        before = self._extend(self._measured(given[known:], known))
        if before is not None and self._is_worse(given):
            self._take_list(given, before)

    def accounts_for(self, messages: Iterable[Any], *, by_id: bool = False) -> bool:
        """Whether a list contains the whole source, or summaries in its place. Cost as for `sync`.

        Args:
            messages: The list.
            by_id: Whether the host names the conversation: messages before a known one may then be altered or missing.
        """
        given, saved = as_list(messages), self._saved
        if saved is None:
            return accounts_for(self.columns, self._editor.journal, given, self.format, by_id=by_id)
        format = resolve(None, given) if self._detects else self.format
        saved = saved.in_format(format)
        if saved.matching(given, format) == len(saved.fingerprints):
            return True
        places = saved.places(given, format) if by_id else None
        return places is not None and len(places.places) == len(saved.fingerprints)

    def _is_worse(self, given: Sequence[Any]) -> bool:
        """Whether the view breaks more rules of the format than the host's own list. O(contents)."""
        return len(self.format.validate(self.columns.raws())) > len(self.format.validate(given))

    def _follow(self, plan: Plan, given: Sequence[Any], journal: Sequence[Applied]) -> None:
        """Build the conversation again as the host has it now. If a message cannot be read, raise before anything changes."""
        old = self.columns
        reads = [
            old.reads[ordinal] if ordinal is not None and ordinal not in plan.altered else self.format.read(raw, place or 0)
            for (raw, ordinal), place in zip(plan.entries, plan.places, strict=True)
        ]
        fresh = self._fresh([raw for raw, _ in plan.entries], reads)
        tail = self._measured(given[plan.matched :], plan.matched)
        kept = edits_after(journal, plan.altered_groups(old), plan.summaries, self.format)
        self._start(fresh + tail)
        self._replay(read_before(plan.unchanged, kept), plan.groups(old, self.columns))
        self._restore_late(len(fresh.raws))
        group_of = self.columns.grouping.group_of
        late = set(group_of[len(fresh.raws) :])
        back = [place for place in plan.only_in_source if self.columns.visibility.messages[place]]
        if any(group_of[place] not in late for place in back) or (not back and self._is_worse(given)):
            self._take_list(given, journal)  # the view would show messages the host does not have, or be less valid

    def _bind(self, saved: Saved, given: list[Any]) -> None:
        """Load a state that was saved without its messages, from a list that contains them as far as the host kept them."""
        matched = saved.matching(given, self.format)
        known, new = self._measured(given[:matched], 0), self._measured(given[matched:], matched)
        places = None if matched == len(saved.fingerprints) else saved.places(given, self.format)
        self._saved = None
        self._remember_summaries(saved.journal)
        if matched == len(saved.fingerprints):
            self._start(known)
            self._replay(saved.journal)
            self._extend(new)
            return
        self._start(known + new)
        if places is not None:
            groups = places.groups(self.columns)
            altered = {id for id, group in groups.items() if places.changed_in(self.columns.ordinals(group))}
            self._replay(read_before(matched, edits_after(saved.journal, altered)), groups)
            self._restore_late(places.matched)
        else:
            beyond = {id for id in self.columns.every_id() if self.columns.ordinals(id)[-1] >= matched}
            self._replay(read_before(matched, [each for each in saved.journal if beyond.isdisjoint(named(each.edit))]))

    def _restore_late(self, start: int) -> None:
        """Bring back the hidden groups that have messages at or after a place."""
        for id in dict.fromkeys(self.columns.grouping.group_of[start:]):
            if self.columns.excluded(id):
                self._editor.restore(id)

    def _take_list(self, given: Sequence[Any], journal: Iterable[Applied]) -> None:
        """Start from the host's list without edits; summaries in it that the journal knows are still summaries."""
        fresh = self._measured(given, 0)
        self._remember_summaries(journal)
        self._pinned_ids.clear()
        self._start(fresh)

    def _remember_summaries(self, journal: Iterable[Applied]) -> None:
        """Believe the marks of the summaries that these edits wrote."""
        if self.marks is not None:
            edits = [applied.edit for applied in flat(journal)]
            self.marks = self.marks.knowing(each for edit in edits if isinstance(edit, Replace) for each in edit.messages[:1])

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
            self._read(raw, place)
        if self._saved is not None:
            self._saved, count = saved_without(self._saved, given)
            return count
        gone = forgotten(self.columns, self._editor.journal, given, self.format)
        if gone:
            plan = gone.plan(self.columns.source)
            self.marks = None if self.marks is None else gone.marks(self.marks)
            self._fingerprints, self.changes = Fingerprints(), _UNCHANGED
            self._follow(plan, [raw for raw, _ in plan.entries], gone.kept)
        return gone.count

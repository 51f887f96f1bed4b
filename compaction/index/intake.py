"""How messages come into an index: read, measured, added, followed in a host's list, and bound to a saved state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from ..errors import InputError, StateError
from ..formats import MessageFormat, fits, resolve
from ..json_data import too_deep
from ..messages import Message, Outline
from ..tokens import MessageMeter, TokenCounter
from . import state
from .columns import Fresh
from .editing import Editor
from .edits import Replace, brief, named
from .fingerprints import Fingerprints
from .forgetting import forgotten, saved_without
from .journal import Applied, flat, touched
from .marks import MARK_START, Marks
from .projection import Projection
from .sync import HostChanges, PassedList, Plan, accounts_for, edits_after, follow, read_before


class Intake:
    """The messages of an index and what happened to them. Holds state; `MessageIndex` is what programs use.

    Args:
        counter: Counts tokens.
        format: The wire format.
        detects: Whether the format was detected, not named; then it may turn out to be another.
        pin: Says of a message whether its group must be kept as it is.
        marks: Says which marked messages are summaries; ``None`` until somebody says so.

    Attributes:
        projection: The messages and groups.
        editor: The edits.
        measure: Counts the tokens and bytes of a message.
        gap_seconds: Seconds between the last two times that messages came.
        seen_at: When messages last came; ``None`` without a clock.
        saved: What the index was saved as, until its messages come.
        changes: How the host changed known messages in the last list.
    """

    def __init__(
        self,
        counter: TokenCounter,
        format: MessageFormat,
        *,
        detects: bool,
        pin: Callable[[Message], bool] | None,
        marks: Marks | None = None,
    ) -> None:
        self.format = format
        self.marks = marks
        self._meter = MessageMeter(counter=counter)
        self.measure = self._meter.measure
        self.gap_seconds = 0.0
        self.seen_at: float | None = None
        self.saved: state.Saved | None = None
        self.changes = HostChanges()
        self._detects = detects
        self._pin = pin
        self._pinned_ids: set[int] = set()
        self._fingerprints = Fingerprints()
        self._passed = PassedList()
        self._start()

    def _start(self) -> None:
        self.projection = Projection(self.format, self.marks)
        self.editor = Editor(self.projection, self.format, self.measure)

    def note_time(self, now: float | None) -> None:
        """Take note that messages come now."""
        if now is None or now == self.seen_at:
            return
        self.gap_seconds = 0.0 if self.seen_at is None else max(0.0, now - self.seen_at)
        self.seen_at = now

    def idle_seconds(self, now: float | None) -> float:
        """Seconds between the last two appends, or since the last one if that is longer; 0 without a clock."""
        since = 0.0 if now is None or self.seen_at is None else now - self.seen_at
        return max(self.gap_seconds, since)

    # ---------------------------------------------------------------- adding

    def append(self, given: Sequence[Any]) -> bool:
        """Add messages at the end; says whether the view only grew by them. If one cannot be read, none is added."""
        if self.saved is not None:
            raise StateError("append: this index was saved without its messages; pass the full list to sync first")
        self._passed.clear()
        if self._detects and not fits(given, self.format):
            self._turn_to(resolve(None, [*self.projection.source, *given]))
            self._extend(self._measured(given, len(self.projection.source)))
            return False
        return self._extend(self._measured(given, len(self.projection.source)))

    def _turn_to(self, format: MessageFormat) -> None:
        """Read everything again in a format that shows only now."""
        source = self.projection.source
        journal = state.in_format(self.editor.journal, self.format, format)
        self.format = format
        fresh = self._measured(source, 0)
        self._start()
        self._extend(fresh)
        self._replay(journal)

    def believe(self, marks: Marks) -> bool:
        """Read marks in this way from now on; says whether groups changed, as there are marked messages."""
        known, self.marks = self.marks, marks
        if not self.projection.grouping.has_marks or (known is not None and attrs.evolve(known, until=marks.until) == marks):
            self.projection.grouping.marks = marks
            return False
        old, journal = self.projection, self.editor.journal
        fresh = self._fresh(old.source, old.reads)
        self._start()
        self._extend(fresh)
        self._replay(journal)
        return True

    def _measured(self, raws: Sequence[Any], start: int) -> Fresh:
        """Read and measure messages that are not added yet; ``start`` is the place of the first, for errors.

        All that may fail happens here. Plain messages are only glanced at.
        """
        reads: list[Outline | Message] = []
        outline, pin = self.format.outline, self._pin
        for raw in raws:
            glance = outline(raw) if pin is None else None
            if glance is None or (glance[1] is not None and glance[1].startswith(MARK_START)):
                reads.append(self._read(raw, start + len(reads)))
            else:
                reads.append(glance)
        return self._fresh(list(raws), reads)

    def _read(self, raw: Any, place: int) -> Message:
        try:
            return self.format.read(raw, place)
        except RecursionError:
            raise too_deep([raw], place) from None

    def _fresh(self, raws: list[Any], reads: list[Outline | Message]) -> Fresh:
        """Measure what was read."""
        outlines = [read for read in reads if isinstance(read, tuple)]
        tokens, sizes = self._meter.measure_outlines(outlines)
        if len(outlines) == len(reads):
            return Fresh(raws, reads, tokens, sizes)
        pin, outlined = self._pin, zip(tokens, sizes, strict=True)
        both = [next(outlined) if isinstance(read, tuple) else self.measure(read) for read in reads]
        pinned = [] if pin is None else [place for place, read in enumerate(reads) if isinstance(read, Message) and pin(read)]
        return Fresh(raws, reads, [tokens for tokens, _ in both], [size for _, size in both], pinned)

    def _extend(self, fresh: Fresh) -> bool:
        """Add messages; says whether the view only grew by them."""
        if not fresh.raws:
            return True
        editor = self.editor
        editor.refusals.changed()
        start, count = len(self.projection.source), len(editor.journal)
        self.projection.extend(fresh, editor.restore)
        if not editor.journal:
            return True
        restored = [place for applied in editor.journal[count:] for place in touched(self.projection, applied)]
        undone = len(editor.undone)
        editor.settle([start, *restored])
        return len(editor.journal) == count and len(editor.undone) == undone

    def _replay(self, journal: Iterable[Applied], groups: Mapping[int, int] | None = None) -> list[Applied]:
        """Apply journaled edits again and pin again, see `Editor.replay`; returns the edits that are not allowed here."""
        left_out, ids = self.editor.replay(journal, groups)
        pinned = {ids.get(id, id) for id in self._pinned_ids if id in ids or (id >= 0 and groups is None)}
        self._pinned_ids.clear()
        self.pin(sorted(id for id in pinned if self.projection.exists(id)))
        self.editor.settle(place for applied in self.editor.journal for place in touched(self.projection, applied))
        return left_out

    # ---------------------------------------------------------------- pinning

    def pin(self, ids: Iterable[int]) -> None:
        """Keep groups that exist as they are from now on."""
        for id in ids:
            self.projection.pin(id)
            self._pinned_ids.add(id)

    def rollback(self, mark: int) -> None:
        """Undo every edit made since the mark; pins on groups that are gone go too."""
        self.editor.rollback(mark)
        self._pinned_ids = {id for id in self._pinned_ids if self.projection.exists(id)}

    # ---------------------------------------------------------------- following

    def sync(self, given: list[Any], *, verify: bool) -> bool:
        """Follow a host's list, see `MessageIndex.sync`; says whether the view only grew by what is new."""
        if self.saved is not None:
            self.format = resolve(None, given) if self._detects else self.format
            self._bind(self.saved.in_format(self.format), given)
            return False
        self.changes = HostChanges()
        try:
            known = None if verify else self._passed.continued(self.projection, given, self.format, bool(self.editor.journal))
            new = given if known is None else given[known:]
            if self._detects and not fits(new, self.format) and (other := resolve(None, given)) != self.format:
                self._turn_to(other)
                return self.sync(given, verify=verify)
            if known is not None:
                return self._go_on(given, known)
            plan = follow(self.projection, self.editor.journal, given, self.format, verify=verify)
        except RecursionError:
            raise too_deep(given) from None
        self.changes = plan.changes
        if not plan.changes and not plan.summaries:
            return self._go_on(given, plan.matched)
        self._follow(plan, given, self.editor.journal)
        return False

    def accounts_for(self, given: list[Any], *, by_id: bool) -> bool:
        """Whether a list accounts for the whole source, see `MessageIndex.accounts_for`."""
        if self.saved is None:
            return accounts_for(self.projection, self.editor.journal, given, self.format, by_id=by_id)
        format = resolve(None, given) if self._detects else self.format
        saved = self.saved.in_format(format)
        if saved.matching(given, format) == len(saved.fingerprints):
            return True
        places = saved.places(given, format) if by_id else None
        return places is not None and len(places.places) == len(saved.fingerprints)

    def _go_on(self, given: list[Any], known: int) -> bool:
        """Add what is new in a list; says whether the view only grew by that."""
        undone, journal = len(self.editor.undone), list(self.editor.journal)
        only_grew = self._extend(self._measured(given[known:], known))
        if len(self.editor.undone) > undone and self._is_worse(given):
            self._read_anew(given, journal)
        return only_grew

    def _is_worse(self, given: Sequence[Any]) -> bool:
        """Whether the view breaks more rules of the format than the host's own list. O(contents)."""
        return len(self.format.validate(self.projection.raws())) > len(self.format.validate(given))

    def _follow(self, plan: Plan, given: Sequence[Any], journal: Sequence[Applied]) -> None:
        """Take a conversation as the host has it now. What cannot be read is noticed before anything changes."""
        old = self.projection
        reads = [
            old.reads[ordinal] if ordinal is not None and ordinal not in plan.altered else self.format.read(raw, place or 0)
            for (raw, ordinal), place in zip(plan.entries, plan.places, strict=True)
        ]
        fresh = self._fresh([raw for raw, _ in plan.entries], reads)
        tail = self._measured(given[plan.matched :], plan.matched)
        kept = edits_after(journal, plan.altered_groups(old), plan.summaries, self.format)
        kept = read_before(plan.unchanged, kept)
        self._start()
        self._extend(fresh + tail)
        self._replay(kept, plan.groups(old, self.projection))
        self._restore_late(len(fresh.raws))
        group_of = self.projection.grouping.group_of
        late = set(group_of[len(fresh.raws) :])
        back = [place for place in plan.only_in_source if self.projection.visibility.messages[place]]
        if any(group_of[place] not in late for place in back) or (not back and self._is_worse(given)):
            self._read_anew(given, journal)  # the list does not have what would be shown, or shows it better

    def forget(self, given: list[Any]) -> int:
        """Forget messages and the edits that knew them, see `MessageIndex.forget`; says how many messages."""
        if self._detects and not fits(given, self.format):
            return 0
        for place, raw in enumerate(given):
            self._read(raw, place)
        if self.saved is not None:
            self.saved, count = saved_without(self.saved, given)
            return count
        gone = forgotten(self.projection, self.editor.journal, given, self.format)
        if gone:
            plan = gone.plan(self.projection.source)
            self.marks = None if self.marks is None else gone.marks(self.marks)
            self._fingerprints, self.changes = Fingerprints(), HostChanges()
            self._follow(plan, [raw for raw, _ in plan.entries], gone.kept)
        return gone.count

    def _restore_late(self, start: int) -> None:
        """Bring back the groups that are out of the view and have messages from a place on."""
        projection = self.projection
        for id in dict.fromkeys(projection.grouping.group_of[start:]):
            if projection.excluded(id):
                self.editor.restore(id)

    def _read_anew(self, given: Sequence[Any], journal: Iterable[Applied]) -> None:
        """Take a list as it is; summaries in it that the journal knows are summaries."""
        fresh = self._measured(given, 0)
        self._remember_summaries(journal)
        self._start()
        self._pinned_ids.clear()
        self._extend(fresh)

    def _remember_summaries(self, journal: Iterable[Applied]) -> None:
        """Believe what the journal knows to be a summary, should the list hold it as an ordinary message."""
        if self.marks is not None:
            edits = [applied.edit for applied in flat(journal)]
            self.marks = self.marks.knowing(each for edit in edits if isinstance(edit, Replace) for each in edit.messages[:1])

    # ---------------------------------------------------------------- storing

    def to_dict(self, *, messages: bool) -> dict[str, Any]:
        """Return the index as JSON-ready data, see `MessageIndex.to_dict`."""
        if messages and self.saved is not None:
            raise StateError("to_dict: this index was saved without its messages; sync it first, or pass messages=False")
        saved = self.snapshot()
        if not messages and self.saved is None:
            fingerprints = self._fingerprints.of(self.projection.source, self.format)
            saved = attrs.evolve(saved, messages=None, fingerprints=fingerprints)
        return saved.to_dict(seen_at=self.seen_at)

    def snapshot(self) -> state.Saved:
        """Return what would be saved, messages and all; O(edits). The list of messages is this index's own."""
        return self.saved or state.Saved(
            format=self.format,
            messages=self.projection.source,
            fingerprints=(),
            journal=tuple(self.editor.journal),
            pinned=sorted(self._pinned_ids),
            detects=self._detects,
            believed_until=None if self.marks is None else self.marks.until,
            known=frozenset() if self.marks is None else self.marks.known,
        )

    @classmethod
    def from_saved(
        cls,
        saved: state.Saved,
        counter: TokenCounter,
        *,
        pin: Callable[[Message], bool] | None = None,
        marks: Marks | None = None,
    ) -> Intake:
        """Return what was saved, see `MessageIndex.from_saved`."""
        marks = None if marks is None else attrs.evolve(marks, until=saved.believed_until, known=saved.known)
        intake = cls(counter, saved.format, detects=saved.detects, pin=None, marks=marks)
        intake.seen_at = saved.seen_at
        intake._pinned_ids.update(saved.pinned)
        if saved.messages is None:
            intake.saved = saved
        else:
            intake._take(saved, saved.messages)
        intake._pin = pin
        intake._pin_by_predicate()
        return intake

    def _take(self, saved: state.Saved, messages: Sequence[Any]) -> None:
        """Take what was saved whole: all of it has to fit."""
        try:
            self._extend(self._measured(messages, 0))
        except InputError as error:
            raise StateError(f"saved {error}") from error
        if left_out := self._replay(saved.journal):
            unfit = brief(left_out[0].edit)
            raise StateError(f"{unfit}: this edit does not fit the saved messages; compact the conversation from scratch")
        if unknown := set(saved.pinned) - self._pinned_ids:
            raise StateError(
                f"pinned {sorted(unknown)}: the saved messages have no such groups; compact the conversation from scratch"
            )

    def _bind(self, saved: state.Saved, given: list[Any]) -> None:
        """Take the messages that a state without messages was saved of, as far as they are the same."""
        matched = saved.matching(given, self.format)
        fresh = self._measured(given, 0)
        places = None if matched == len(saved.fingerprints) else saved.places(given, self.format)
        self.saved = None
        self._remember_summaries(saved.journal)
        self._start()
        if places is not None:
            self._extend(fresh)
            groups = places.groups(self.projection)
            altered = {id for id, group in groups.items() if places.changed_in(self.projection.ordinals(group))}
            self._replay(read_before(matched, edits_after(saved.journal, altered)), groups)
            self._restore_late(places.matched)
        elif matched < len(saved.fingerprints):
            self._extend(fresh)
            beyond = {id for id in self.projection.every_id() if self.projection.ordinals(id)[-1] >= matched}
            self._replay(read_before(matched, [each for each in saved.journal if beyond.isdisjoint(named(each.edit))]))
        else:
            self._extend(fresh[:matched])
            self._replay(saved.journal)
            self._extend(fresh[matched:])

    def _pin_by_predicate(self) -> None:
        """Pin what ``pin=`` names, after edits that were made without it were applied again."""
        if self._pin is None:
            return
        for id in self.projection.every_id():
            if any(self._pin(self.projection.read(ordinal)) for ordinal in self.projection.ordinals(id)):
                self.projection.pin(id)

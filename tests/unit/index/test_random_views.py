"""Small random views under edits of any kind, each step compared with what is worked out from scratch."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from compaction import Drop, Edit, Message, MessageIndex, Replace, Rewrite, Together
from compaction.index.editing import perform
from compaction.index.edits import Applied, Restore
from compaction.index.rules import refusal
from compaction.messages import ReasoningPart
from tests.support.index_model import View
from tests.support.letters import Fault, Letters, disallowed

EDITS = 12
WITHIN = "a replacement must not be written between the messages of a remaining group"

each_seed = pytest.mark.parametrize("seed", range(24))


def index_of(random: Random, length: int = 10) -> tuple[Letters, MessageIndex]:
    """A random conversation in a random format, valid or damaged."""
    format = Letters.chosen(random, random.choice((0.15, 0.3)))
    messages = format.conversation(random, random.randint(5, length), valid=random.random() < 0.7)
    return format, MessageIndex(messages, counter="chars/4", format=format)


def any_edit(random: Random, format: Letters, index: MessageIndex) -> Edit:
    """Return a random edit, mostly of groups that may be dropped."""
    ids = index.removable_ids() if random.random() < 0.9 else index.included_ids
    ids = ids or index.included_ids
    start = random.randrange(len(ids))
    chosen = ids[start : start + random.randint(1, 3)]
    kind = random.choice((Drop, Drop, Replace, Rewrite))
    if kind is Drop:
        return Drop(chosen)
    if kind is Rewrite:
        messages = index.group(chosen[0]).messages
        thoughts = [isinstance(message.parts[0], ReasoningPart) and len(message.parts) == 1 for message in messages]
        return Rewrite(
            chosen[0],
            [
                None if thought and random.random() < 0.6 else format.shorter(random, message)
                for thought, message in zip(thoughts, messages, strict=True)
            ],
        )
    said = [format.new(role, letter) for role, letter in (("user", "u"), ("user", "v"), ("assistant", "a"), ("assistant", "b"))]
    return Replace(chosen, random.choices(said, k=random.choice((1, 1, 2))))


def check(index: MessageIndex, view: View) -> None:
    """The index shows what the model shows, with its neighbours and sums."""
    places = view.places()
    assert index.messages() == [message.raw for _, message in places]
    fresh = MessageIndex(index.messages(), counter="chars/4", format=index.format).total
    included, shown = index.included, index.included_groups
    assert (included.tokens, included.bytes, included.messages) == (fresh.tokens, fresh.bytes, fresh.messages)
    assert (included.groups, included.tool_calls) == (len(shown), sum(group.tool_calls for group in shown))
    assert included.turns == len({group.turn for group in shown if group.turn})
    assert index.removable_ids() == [id for id in index.included_ids if index.is_removable(id)]
    visibility = index.columns.visibility
    order = list(dict.fromkeys(place for place, _ in places))
    assert visibility.after(None) == order[0]
    assert list(visibility.nodes()) == order
    inserted = sorted(visibility.inserted.values(), key=lambda group: (group.anchor, -group.id))
    every = [place for at in range(len(view.shown)) for place in (*[each.id for each in inserted if each.anchor == at], at)]
    for number, place in enumerate(every):
        assert visibility.is_shown(place) == (place in order)
        assert visibility.before(place) == next((each for each in reversed(every[:number]) if each in order), None)
        assert visibility.after(place) == next((each for each in every[number + 1 :] if each in order), None)


def may_happen(format: Letters, index: MessageIndex, edit: Edit) -> bool:
    """Whether an edit is allowed: by the rules about itself, by its size, and by the neighbours it makes."""
    before, after = View.of(index), View.of(index)
    rule = refusal(index.columns, edit, "Tests")
    if isinstance(edit, Replace) and rule in (None, WITHIN):
        assert (rule == WITHIN) == within(before, edit, index.columns.grouping.orphans)
    if rule is not None:
        return False
    after.do(edit)
    sizes = [sum(index.measure(message)[0] for _, message in view.places()) for view in (before, after)]
    return sizes[1] <= sizes[0] and not disallowed(format, before.places(), after.places())


def owners(view: View) -> list[tuple[int, Message]]:
    """Every message of a view with its group."""
    owner = {ordinal: id for id, ordinals in view.members.items() for ordinal in ordinals}
    return [(place if place < 0 else owner[place], message) for place, message in view.places()]


def within(view: View, edit: Replace, orphans: set[int]) -> bool:
    """Whether what is beside a replacement is of a group whose messages stand on both sides of it; orphans are passed over."""
    last = view.place_of(edit)
    anchor = view.anchor(last)
    groups = [id for id, _ in owners(view)]
    beside = groups.index(last)
    left = [id for id in groups[:beside] if id not in edit.groups and id not in orphans][-1:]
    right = [id for id in groups[beside:] if id not in edit.groups and id not in orphans][:1]
    return any(id >= 0 and view.members[id][0] < anchor < view.members[id][-1] for id in left + right)


@each_seed
def test_every_edit_is_judged_by_the_view_it_makes(seed: int) -> None:
    """It is applied if and only if it blames nobody by a rule that was kept before; undoing it is exact."""
    random = Random(seed)
    format, index = index_of(random)
    check(index, View.of(index))
    for _ in range(EDITS):
        edit = any_edit(random, format, index)
        mark, before, view = index.checkpoint(), index.included, index.messages()
        expected = may_happen(format, index, edit)
        assert index.apply(edit, by="Tests") == expected, (edit, index.refused)
        check(index, View.of(index))
        if random.random() < 0.4:
            index.rollback(mark)
            assert (index.included, index.messages()) == (before, view)
            check(index, View.of(index))
    index.rollback()
    assert (index.included, index.messages()) == (index.total, list(index.source))
    check(index, View.of(index))


def as_grouped(index: MessageIndex, id: int) -> tuple[object, ...]:
    """Return the facts that grouping determines for a group."""
    group = index.group(id)
    return index.ordinals(id), group.kind, group.turn, group.open, group.pending, group.orphan


def settled(index: MessageIndex, edits: Sequence[Edit]) -> tuple[list[Edit], list[Edit], bool]:
    """The edits that stay, those that do not, newest first, and whether each of these is undone for one fault alone.

    An edit does not stay if it made two neighbours that are wrong, and that the source has as right.
    """
    left, undone, plain = list(edits), list[Edit](), True
    while True:
        source, view = View.of(index, ()), MessageIndex(index.source, counter="chars/4", format=index.format)
        applied: list[Applied] = []
        for edit in left:  # again, if it is still allowed; the first time they simply stay
            if not undone or refusal(view.columns, edit, "Tests") is None:
                assert not isinstance(edit, Together)
                applied.append(perform(view.columns, edit, "Tests"))
        left, model = [each.edit for each in applied], View.of(view, applied)
        wrong = [
            (fault, place)
            for fault in disallowed(index.format, source.places(), model.places())
            if (place := newest_at(model, fault, left)) is not None
        ]
        if not wrong:
            return left, undone, plain
        plain = plain and len(wrong) == 1
        undone.append(left.pop(wrong[0][1]))


def newest_at(view: View, fault: Fault, edits: Sequence[Edit]) -> int | None:
    """Return the newest of these edits that changed something between two neighbours."""

    def ordinal(place: int) -> int:
        return view.inserted[place][0] if place < 0 else place

    start = 0 if fault.before is None else ordinal(fault.before)
    end = len(view.shown) if fault.after is None else ordinal(fault.after)
    return max((at for at, edit in enumerate(edits) if any(start <= each <= end for each in view.span(edit))), default=None)


@each_seed
def test_what_is_wrong_beside_new_messages_is_undone(seed: int) -> None:
    """The newest edit at such a place is undone first, the others stay, and the view has only faults that the source has.

    A group that a late result restores is left out of the comparison, and so is a source that was wrong where it ended.
    """
    random = Random(seed)
    format, index = index_of(random)
    for _ in range(5):
        for _ in range(5):
            index.begin_step("")
            index.apply(any_edit(random, format, index), by="Tests")
        edits, known, gone = index.edits, list(index.source), View.of(index).gone
        sound = not format.validate(known)
        valid = random.random() < 0.5
        index.append(format.conversation(random, len(known) + random.randint(1, 4), valid=valid, known=known)[len(known) :])
        check(index, View.of(index))
        whole = MessageIndex(index.source, counter="chars/4", format=format)
        assert index.total == whole.total
        for id in whole.included_ids:
            assert as_grouped(index, id) == as_grouped(whole, id)
        if sound:
            assert disallowed(format, View.of(index, ()).places(), View.of(index).places()) == []
        restores = any(isinstance(edit, Restore) for edit in edits)
        if not restores and gone.isdisjoint(index.columns.grouping.group_of[len(known) :]):
            left, undone, plain = settled(index, edits)
            if plain:
                assert (index.edits, index.undone) == ((*left,), (*undone,))

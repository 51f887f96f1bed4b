"""Small random views under edits of any kind, each step compared with what is worked out from scratch."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from compaction import Drop, Edit, Message, MessageIndex, Replace, Rewrite, Together
from compaction.errors import NoProgress
from compaction.index.edits import named
from compaction.index.rules import refusal
from compaction.messages import ReasoningPart
from tests.support.letters import Letters, View, disallowed, faults

EDITS = 12

each_seed = pytest.mark.parametrize("seed", range(24))


def index_of(random: Random, length: int = 10) -> tuple[Letters, MessageIndex]:
    """A random conversation in a random format, valid or damaged."""
    format = Letters(random, random.choice((0.15, 0.3)))
    messages = format.conversation(random, random.randint(5, length), valid=random.random() < 0.7)
    return format, MessageIndex(messages, counter="chars/4", format=format)


def any_edit(random: Random, format: Letters, index: MessageIndex) -> Edit:
    """Mostly an edit of groups that may leave."""
    if random.random() < 0.15:
        return Together(any_edit(random, format, index), any_edit(random, format, index))
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
    assert [(id, message.raw) for id, message in places] == [
        (id if id < 0 else at, message.raw) for message, id, at in index.columns.messages()
    ]
    assert index.messages() == [message.raw for _, message in places]
    fresh = MessageIndex(index.messages(), counter="chars/4", format=index.format).total
    included, shown = index.included, index.included_groups
    assert (included.tokens, included.bytes, included.messages) == (fresh.tokens, fresh.bytes, fresh.messages)
    assert (included.groups, included.tool_calls) == (len(shown), sum(group.tool_calls for group in shown))
    visibility = index.columns.visibility
    order = list(dict.fromkeys(place for place, _ in places))
    assert visibility.first() == order[0]
    assert list(visibility.nodes()) == order
    every = [place for at in range(len(view.shown)) for place in (*visibility.at_anchor(at), at)]
    for number, place in enumerate(every):
        assert visibility.is_shown(place) == (place in order)
        assert visibility.before(place) == next((each for each in reversed(every[:number]) if each in order), None)
        assert visibility.after(place) == next((each for each in every[number + 1 :] if each in order), None)


def judged(format: Letters, index: MessageIndex, edit: Edit) -> bool:
    """Whether an edit may happen, but for rules that look at neither sizes nor neighbours."""
    before, parts = View.of(index), edit.edits if isinstance(edit, Together) else (edit,)
    after, mark = View.of(index), index.edit_count
    tokens = sum(index.measure(message)[0] for _, message in before.places())
    for part in parts:
        if isinstance(part, Together):
            return False
        if refusal(index.columns, format, part, "Tests") is not None:
            return False
        after.do(part)
    grown = sum(index.measure(message)[0] for _, message in after.places()) > tokens
    assert index.edit_count == mark
    return not grown and not disallowed(format, before.places(), after.places())


@each_seed
def test_every_edit_is_judged_by_the_view_it_makes(seed: int) -> None:
    """It is applied if and only if it blames nobody by a rule that was kept before; undoing it is exact."""
    random = Random(seed)
    format, index = index_of(random)
    check(index, View.of(index))
    for _ in range(EDITS):
        edit = any_edit(random, format, index)
        while isinstance(edit, Together):
            edit = any_edit(random, format, index)
        mark, before, view = index.mark(), index.included, index.messages()
        expected = judged(format, index, edit)
        assert index.apply(edit, by="Tests") == expected, (edit, index.refused)
        check(index, View.of(index))
        if random.random() < 0.4:
            index.rollback(mark)
            assert (index.included, index.messages()) == (before, view)
            check(index, View.of(index))
    index.rollback()
    assert (index.included, index.messages()) == (index.total, list(index.source))
    check(index, View.of(index))

"""An index under any sequence of operations, compared with a model that computes everything from scratch.

The test keeps the source, the journal and the pins, and nothing else. After every step the model groups the source with its own
slow implementation of the rules, replays the journal, measures the view, and gives the values the index should have.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import attrs
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from compaction import Drop, Edit, Message, MessageIndex, Replace, Rewrite, Together
from compaction.errors import InvalidMessage, NoProgress
from compaction.formats import openai_chat
from compaction.index.edits import Restore
from compaction.index.marks import marked
from compaction.messages import ReasoningPart
from compaction.testing import conversations
from tests.support.index_model import Model, flat
from tests.support.limits import examples

Chat = list[dict[str, Any]]


def rewordings(message: Message) -> list[Message | None]:
    """Messages that a strategy might write in place of another, allowed or not."""
    spoken = [part for part in message.parts if not isinstance(part, ReasoningPart)]
    reworded = [message.evolve(text=text) for text in ("", "short", "long " * 90)]
    return [message, message, None, openai_chat.new("user", "other"), *reworded, message.evolve(parts=spoken)]


def rebuilt(messages: Sequence[Any]) -> Chat:
    return list(json.loads(json.dumps(list(messages))))


batches = conversations(valid=False, pending=True, max_size=3)


class Index(RuleBasedStateMachine):
    """The operations on an index, and the laws that hold after each."""

    def __init__(self) -> None:
        super().__init__()
        self.index = MessageIndex(counter="chars/4")
        self.source: Chat = []
        self.journal: list[tuple[Edit, str]] = []
        self.pins: set[int] = set()
        self.asked = 0

    @property
    def model(self) -> Model:
        return Model(self.source, self.journal, self.pins)

    def grow(self, messages: Sequence[Any]) -> None:
        """Add messages to the model; a late result brings its group back."""
        for message in messages:
            self.source.append(message)
            model = self.model
            back = [id for id in model.gone if len(self.source) - 1 in model.groups[id].ordinals]
            self.journal += [(Restore((id,), reason="a late result came for its call"), "") for id in back]

    def adopt(self) -> None:
        """Believe the index about what its source and journal are; all else is still worked out."""
        self.source = list(self.index.source)
        self.journal = [(applied.edit, applied.by) for applied in self.index.journal]

    # ---------------------------------------------------------------- growing

    @initialize(messages=conversations(pending=True, max_size=6))
    def begin(self, messages: Chat) -> None:
        self.append(messages)

    @rule(messages=batches)
    def append(self, messages: Chat) -> None:
        self.index.append(messages)
        self.grow(messages)

    @rule(data=st.data())
    def append_result(self, data: st.DataObject) -> None:
        """A result for a call made at some time, answered already or not, in the view or not."""
        ids = [id for group in self.model.groups.values() for id in group.open or group.calls]
        self.append([{"role": "tool", "tool_call_id": data.draw(st.sampled_from(ids or ["gone"])), "content": "late"}])

    @rule(messages=batches, bad=st.sampled_from([5, {"role": ""}, {"content": "?"}, None]), cut=st.none() | st.integers(0, 20))
    def add_unreadable(self, messages: Chat, bad: Any, cut: int | None) -> None:
        """If one message cannot be read, none is added; nor is anything cut."""
        add = self.index.append if cut is None else self.index.sync
        with pytest.raises(InvalidMessage):
            add([*self.source[: cut or 0], *messages, bad])

    # ---------------------------------------------------------------- following

    @rule(messages=batches | st.just([]), again=st.booleans())
    def sync_source(self, messages: Chat, again: bool) -> None:
        """The framework kept all it ever had."""
        self.index.sync([*(rebuilt(self.source) if again else self.source), *messages])
        self.grow(messages)

    @rule(messages=batches | st.just([]), again=st.booleans())
    def sync_view(self, messages: Chat, again: bool) -> None:
        """The framework went on from what it was given."""
        view = self.index.messages()
        given = [*(rebuilt(view) if again else view), *messages]
        self.index.sync(given)
        is_source = given[: len(self.source)] == self.source
        self.grow(given[len(self.source) if is_source else len(view) :])

    # ---------------------------------------------------------------- editing

    def some_edit(self, data: st.DataObject, kinds: Sequence[type[Any]]) -> Any:
        """An edit of one of these kinds, mostly of groups that may go, now and then of any there ever was."""
        self.asked += 1
        reason, kind = f"edit {self.asked}", data.draw(st.sampled_from(kinds))
        if kind is Together:
            parts = [self.some_edit(data, (Drop, Replace, Rewrite)) for _ in range(data.draw(st.integers(0, 3)))]
            return Together(*parts, reason=reason)
        free = [group for group in self.index.included_groups if self.index.is_removable(group) or kind is Rewrite]
        every = [self.index.group(id) for id in sorted(self.model.groups)]
        groups = st.sampled_from(free if free and data.draw(st.integers(0, 3)) else every)
        if kind is Rewrite:
            group = data.draw(groups)
            return Rewrite(group, [data.draw(st.sampled_from(rewordings(message))) for message in group.messages], reason)
        ids = [group.id for group in data.draw(st.lists(groups, min_size=data.draw(st.integers(0, 1)), max_size=4))]
        if kind is Drop:
            return Drop(ids, reason, allow_system=data.draw(st.booleans()))
        texts = data.draw(st.sampled_from([[""], [""], ["", ""], [marked("short", by="Tests")], ["words " * 90], [""] * 3]))
        return Replace(ids, [openai_chat.new("user", text) for text in texts], reason)

    def apply(self, edit: Any, by: str = "") -> None:
        """An edit happens if no law forbids it, whoever asks."""
        expected = self.model.may(edit, by)
        try:
            done = self.index.apply(edit, by=by)
        except NoProgress:
            done = False
        assert done == expected
        if done:
            self.journal.append((edit, by))
        else:
            assert self.index.refused[-1].edit is edit

    @precondition(lambda self: self.source)
    @rule(data=st.data(), kind=st.sampled_from([Drop, Replace, Rewrite, Together]))
    def edit(self, data: st.DataObject, kind: type[Any]) -> None:
        self.apply(self.some_edit(data, [kind]), by="Tests" if kind in (Replace, Together) else "")

    @precondition(lambda self: self.source)
    @rule(data=st.data())
    def several(self, data: st.DataObject) -> None:
        for _ in range(4):
            self.apply(self.some_edit(data, [Drop, Replace, Rewrite, Together]))

    @rule(data=st.data())
    def rollback(self, data: st.DataObject) -> None:
        """Back to any place in the journal."""
        mark = data.draw(st.integers(0, len(self.journal)))
        self.index.rollback(mark)
        del self.journal[mark:]
        self.pins &= self.model.groups.keys()

    @rule()
    def mark(self) -> None:
        """The number of edits so far, after which what was refused may be asked for again."""
        assert self.index.checkpoint() == len(self.journal)

    @precondition(lambda self: self.source)
    @rule(data=st.data())
    def pin(self, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(sorted(self.model.groups)))  # an inserted one, if there is one, comes first
        self.index.pin([id])
        self.pins.add(id)

    # ---------------------------------------------------------------- storing

    @rule(with_messages=st.booleans())
    def store(self, with_messages: bool) -> None:
        """An index that was stored as JSON and read again is the same, once it has its messages."""
        data = json.loads(json.dumps(self.index.to_dict(messages=with_messages)))
        view, edits = self.index.messages(), [edit.reason for edit in self.index.edits]
        self.index = MessageIndex.from_dict(data, counter="chars/4")
        if not with_messages:
            self.index.sync(rebuilt(self.source))
        assert list(self.index.source) == self.source
        assert [edit.reason for edit in self.index.edits] == edits
        assert self.index.messages() == view
        self.adopt()

    # ---------------------------------------------------------------- what must hold

    @invariant()
    def answers_are_those_of_the_model(self) -> None:
        """Metrics, groups, projection and originals are what they are when worked out from scratch."""
        index, model = self.index, self.model
        assert index.total == Model(self.source, [], set()).included
        assert index.included == model.included
        assert [id(raw) for raw in index.messages()] == [id(message.raw) for _, message in model.places()]
        groups = [(attrs.asdict(group, recurse=False), group.messages) for group in index.included_groups]
        shown = [{**fields, "messages": tuple(message.raw for message in messages)} for fields, messages in groups]
        assert shown == model.portrait()
        assert list(index.edits) == [edit for edit, _ in self.journal]
        assert index.edit_count == len(self.journal)
        for group in index.included_groups:
            assert index.originals(group) == [self.source[at] for at in sorted(model.stands_for(group.id))]
            assert index.is_removable(group) == model.may_remove(Drop(group))

    @invariant()
    def what_is_protected_is_there(self) -> None:
        """Instructions, the newest group, the last user message and calls that wait are in the view, whatever was asked for."""
        model = self.model
        drops = [each for edit, _ in self.journal for each in flat(edit) if isinstance(each, Drop) and each.allow_system]
        allowed = {id for drop in drops for id in drop.groups}
        kept = {*(model.standing - allowed), *model.protected, *([] if model.pending is None else [model.pending])}
        assert [id for id in kept if not self.index.is_included(id)] == []

    @invariant()
    def turns_are_counted_forward(self) -> None:
        """No edit is later than the conversation."""
        assert 0 <= self.index.turns_since_edit <= Model(self.source, [], set()).included.turns


TestIndex = Index.TestCase
TestIndex.settings = examples(20)


def test_a_pin_goes_with_the_summary_it_was_on() -> None:
    """After a rollback removed a pinned summary, the next summary with the same id is not pinned, also after it was stored."""
    index = MessageIndex([{"role": "user", "content": "words " * 50} for _ in range(4)], counter="chars/4")
    assert index.apply(Replace(0, [openai_chat.new("user", "one")]))
    index.pin([-1])
    index.rollback()
    assert MessageIndex.from_dict(index.to_dict(), counter="chars/4").included == index.included
    assert index.apply(Replace(1, [openai_chat.new("user", "two")]))
    assert not MessageIndex.from_dict(index.to_dict(), counter="chars/4").group(-1).pinned


def test_an_edit_is_never_later_than_what_is_left() -> None:
    """After the host cut the conversation, a remaining edit counts as made in the last remaining turn."""
    messages = [{"role": "user", "content": str(turn)} for turn in range(6)]
    index = MessageIndex(messages, counter="chars/4")
    assert index.apply(Drop(0))
    index.sync(messages[:2])
    assert index.edit_count == 1
    assert index.turns_since_edit == 0

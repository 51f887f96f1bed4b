"""An index under any sequence of what can be done to it, against a model that works everything out from scratch each time.

The test holds the source, the journal and the pins, and nothing else. After every step the model groups the source by its own slow
reading of the rules, does the journal over, measures what is left, and says what the index should answer.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import attrs
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from index_model import Model, flat, named

from compaction import Drop, Edit, GroupKind, Message, MessageIndex, Replace, Rewrite, Together
from compaction.edits import Restore, renamed
from compaction.errors import InvalidMessage, NoProgress
from compaction.formats import openai_chat
from compaction.marks import marked
from compaction.messages import Reasoning
from compaction.testing import conversations

Chat = list[dict[str, Any]]


def rewordings(message: Message) -> list[Message | None]:
    """What a strategy might put in a message's place, allowed or not."""
    spoken = [part for part in message.parts if not isinstance(part, Reasoning)]
    return [
        *(message, message, None, openai_chat.new("user", "other")),
        *(
            message.evolve(text=""),
            message.evolve(text="short"),
            message.evolve(text="long " * 90),
            message.evolve(parts=spoken),
        ),
    ]


def rebuilt(messages: Sequence[Any]) -> Chat:
    """The same messages as new objects, as from a store."""
    return list(json.loads(json.dumps(list(messages))))


batches = conversations(valid=False, pending=True, max_size=3)


class Index(RuleBasedStateMachine):
    """What can be done to an index, and what must hold after each step."""

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
            back = [group.id for group in model.groups.values() if group.excluded and len(self.source) - 1 in group.ordinals]
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

    @rule(messages=batches, place=st.integers(0, 9), bad=st.sampled_from([5, {"role": ""}, {"content": "who?"}, None]))
    def append_unreadable(self, messages: Chat, place: int, bad: Any) -> None:
        """One message that cannot be read, and nothing is added."""
        with pytest.raises(InvalidMessage):
            self.index.append([*messages[:place], bad, *messages[place:]])

    @rule(messages=batches, bad=st.sampled_from([5, {"role": ""}]), cut=st.integers(0, 20))
    def sync_unreadable(self, messages: Chat, bad: Any, cut: int) -> None:
        """The same for sync, also where it would cut."""
        with pytest.raises(InvalidMessage):
            self.index.sync([*self.source[:cut], *messages, bad])

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

    @precondition(lambda self: self.source)
    @rule(data=st.data(), messages=batches | st.just([]))
    def sync_departed(self, data: st.DataObject, messages: Chat) -> None:
        """The framework took back or changed the end of the source or of the view: what is left is that, and edits that made it."""
        known = data.draw(st.sampled_from([self.source, self.index.messages()]))
        given = [*known[: data.draw(st.integers(0, len(known)))], *messages]
        before = self.journal
        self.index.sync(given)
        self.adopt()
        restored = any(isinstance(edit, Restore) for edit, _ in self.journal)
        assert restored or given in (self.source, self.index.messages())
        ours = [edit.reason for edit, _ in before if not isinstance(edit, Restore)]
        left = iter(ours)
        assert all(edit.reason in left for edit, _ in self.journal if not isinstance(edit, Restore))
        self.pins = {id for id in self.model.groups if self.index.group(id).pinned}

    @precondition(lambda self: self.source)
    @rule(data=st.data())
    def sync_cut(self, data: st.DataObject) -> None:
        """The end of the source was taken back: edits of what is left stay, unless a law now forbids them."""
        length = data.draw(st.integers(0, len(self.source)))
        model, given = self.model, self.source[:length]
        if length < len(self.source) and given[: len(model.view)] == model.view:
            return  # it goes on from the view just as well
        touched = {id for id in model.groups if any(at >= length for at in model.stands_for(id))}
        expected: list[tuple[Edit, str]] = []
        ids: dict[int, int] = {}
        for edit, by in self.journal:
            state = Model(given, expected, set())
            again = renamed(edit, ids) if touched.isdisjoint(named(edit)) else None
            back = isinstance(again, Restore) and all(state.groups[id].excluded for id in again.groups)
            if again is None or not (back or state.attempt(again)):
                continue
            made = [id for id in state.groups if id < 0]
            expected.append((again, by))
            ids |= dict(
                zip(
                    self.made_by_edit(edit),
                    [id for id in Model(given, expected, set()).groups if id < 0 and id not in made],
                    strict=False,
                )
            )
        self.index.sync(given)
        self.adopt()
        assert [edit.reason for edit, _ in self.journal] == [edit.reason for edit, _ in expected]
        self.pins = {ids.get(id, id) for id in self.pins if id in ids or id >= 0} & Model(given, expected, set()).groups.keys()

    def made_by_edit(self, edit: Edit) -> list[int]:
        """The ids of the groups an edit of the journal inserted."""
        place = next(at for at, (each, _) in enumerate(self.journal) if each is edit)
        before, after = (Model(self.source, self.journal[:end], set()).groups for end in (place, place + 1))
        return [id for id in after if id not in before]

    # ---------------------------------------------------------------- editing

    def some_edit(self, data: st.DataObject, model: Model, parts: bool = True) -> Any:
        """An edit of any kind, lawful or not; now and then of a group that is not there."""
        self.asked += 1
        reason = f"edit {self.asked}"
        groups = (
            [group for group in model.groups.values() if not group.excluded]
            if data.draw(st.integers(0, 9))
            else list(model.groups.values())
        )
        kind = data.draw(st.sampled_from([Drop, Drop, Replace, Rewrite, Together] if parts else [Drop, Replace, Rewrite]))
        if kind is Together:
            return Together(
                *[self.some_edit(data, model, parts=False) for _ in range(data.draw(st.integers(0, 3)))], reason=reason
            )
        if kind is Rewrite:
            group = data.draw(st.sampled_from(groups))
            return Rewrite(
                group.id, [data.draw(st.sampled_from(rewordings(message))) for message in self.index.group(group.id).messages], reason
            )
        ids = [group.id for group in data.draw(st.lists(st.sampled_from(groups), max_size=4))]
        if kind is Drop:
            ids += [99] if data.draw(st.integers(0, 19)) == 19 else []
            return Drop(ids, reason, allow_system=data.draw(st.booleans()))
        texts = data.draw(st.lists(st.sampled_from(["", "short", "words " * 50]), min_size=1, max_size=2))
        return Replace(ids, [openai_chat.new("user", marked(text, by="Tests")) for text in texts], reason)

    @precondition(lambda self: self.source)
    @rule(data=st.data(), by=st.sampled_from(["", "Tests"]))
    def apply(self, data: st.DataObject, by: str) -> None:
        """An edit happens if no law forbids it, whoever asks."""
        model = self.model
        edit = self.some_edit(data, model)
        try:
            done = self.index.apply(edit, by=by)
        except NoProgress:
            done = False
        assert done == model.may(edit)
        if done:
            self.journal.append((edit, by))
        else:
            assert self.index.refused[-1].edit is edit

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
        assert self.index.mark() == len(self.journal)

    @precondition(lambda self: self.source)
    @rule(data=st.data())
    def pin(self, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(sorted(self.model.groups)))
        self.index.pin([id])
        self.pins.add(id)

    # ---------------------------------------------------------------- storing

    @rule(with_messages=st.booleans())
    def store(self, with_messages: bool) -> None:
        """What was stored as JSON and read again is the same index, once it has its messages."""
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
        assert [id(raw) for raw in index.messages()] == [id(raw) for raw in model.view]
        shown = [
            {**attrs.asdict(group, recurse=False), "messages": tuple(message.raw for message in group.messages)}
            for group in index.included_groups
        ]
        assert shown == model.portrait()
        assert list(index.edits) == [edit for edit, _ in self.journal]
        assert index.edit_count == len(self.journal)
        for group in index.included_groups:
            assert index.originals(group) == [self.source[at] for at in sorted(model.stands_for(group.id))]
            assert index.is_removable(group) == model.may_remove(Drop(group))

    @invariant()
    def what_is_protected_is_there(self) -> None:
        """Instructions, the newest group, the last user message and a call that waits are in the view, whatever was asked for."""
        model = self.model
        allowed = {
            id
            for edit, _ in self.journal
            for each in flat(edit)
            if isinstance(each, Drop) and each.allow_system
            for id in each.groups
        }
        system = {group.id for group in model.groups.values() if group.kind is GroupKind.SYSTEM} - allowed
        kept = {*system, *model.protected, *([] if model.pending is None else [model.pending])}
        assert [id for id in kept if not self.index.is_included(id)] == []

    @invariant()
    def turns_are_counted_forward(self) -> None:
        """No edit is later than the conversation."""
        assert 0 <= self.index.turns_since_edit <= Model(self.source, [], set()).included.turns


TestIndex = Index.TestCase

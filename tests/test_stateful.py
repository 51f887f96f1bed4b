"""An index under any sequence of what can be done to it, against a model that works everything out from scratch each time.

The model holds the source, the journal and the pins, and nothing else. After every step it groups the source by its own slow reading of
the rules, does the journal over, measures what is left, and says what the index should answer.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from compaction import Drop, Edit, GroupKind, Message, MessageIndex, Metrics, Replace, Rewrite, Together
from compaction.edits import Restore, renamed
from compaction.errors import InvalidMessage, NoProgress
from compaction.formats import openai_chat
from compaction.marks import marked, read_mark
from compaction.messages import Reasoning, Text, ToolCall, ToolResult
from compaction.testing import conversations
from compaction.tokens import MessageMeter

Chat = list[dict[str, Any]]
MEASURE = MessageMeter(counter="chars/4").measure  # type: ignore[arg-type]


def thoughts_alone(message: Message) -> bool:
    """Whether an assistant message has reasoning, and besides it at most empty texts."""
    rest = [part for part in message.parts if not isinstance(part, Reasoning) and not (isinstance(part, Text) and not part.text)]
    return message.role == "assistant" and any(isinstance(part, Reasoning) for part in message.parts) and not rest


def links(message: Message) -> list[tuple[str, ...]]:
    """The calls a message makes and the results it carries."""
    calls = [("call", part.id, part.name) for part in message.parts if isinstance(part, ToolCall)]
    return calls + [("result", part.call_id) for part in message.parts if isinstance(part, ToolResult)]


def call_ids(message: Message) -> list[str]:
    """The ids of the calls a message makes."""
    return [part.id for part in message.parts if isinstance(part, ToolCall)]


@attrs.define
class Group:
    """A group as the model knows it; ``inserted`` holds the messages of one that an edit made."""

    id: int
    kind: GroupKind
    turn: int | None
    ordinals: list[int]
    calls: list[str] = attrs.Factory(list)
    open: list[str] = attrs.Factory(list)
    orphan: bool = False
    made_by: str | None = None
    inserted: tuple[Message, ...] = ()
    replaces: tuple[int, ...] = ()
    anchor: int = 0
    excluded: bool = False


def grouped(messages: Sequence[Message]) -> list[Group]:
    """The groups of a conversation, by the rules as the design states them, each message looking back over all before it."""
    groups: list[Group] = []
    owners: list[Group] = []
    turn = 0
    for ordinal, message in enumerate(messages):
        previous = owners[-1] if owners else None
        results = [part.call_id for part in message.parts if isinstance(part, ToolResult)]
        thinking = previous is not None and previous.kind is GroupKind.ASSISTANT and thoughts_alone(messages[ordinal - 1])
        joined: Group | None = None
        if message.role in ("tool", "function"):
            joined = next((group for group in reversed(groups) if results[0] in group.open), None)
            if joined is not None:
                joined.open.remove(results[0])
            elif previous is not None and results[0] in previous.calls:
                joined = previous
            kind = GroupKind.TOOL_CALL
        elif read_mark(message) is not None and not call_ids(message):
            kind = GroupKind.SUMMARY
        elif message.role == "user":
            turn += 1
            kind = GroupKind.USER
        elif message.role in ("system", "developer"):
            kind = GroupKind.SYSTEM
        elif call_ids(message):
            kind = GroupKind.TOOL_CALL
            joined = previous if thinking else None
        else:
            kind = GroupKind.ASSISTANT
            if thoughts_alone(message) and previous is not None and (thinking or previous.calls):
                joined = previous
        if joined is None:
            joined = Group(ordinal, kind, None if kind in (GroupKind.SYSTEM, GroupKind.SUMMARY) else turn, [], anchor=ordinal)
            groups.append(joined)
        if kind is GroupKind.SUMMARY and (mark := read_mark(message)):
            joined.made_by = mark.by
        if kind is GroupKind.TOOL_CALL and call_ids(message) and message.role not in ("tool", "function"):
            joined.kind, joined.calls, joined.open = kind, call_ids(message), call_ids(message)
        joined.ordinals.append(ordinal)
        joined.orphan = message.role in ("tool", "function") and joined.id == ordinal
        owners.append(joined)
    return groups


class Model:
    """A conversation with its journal done over from scratch."""

    def __init__(self, source: Sequence[Any], journal: Sequence[tuple[Edit, str]], pins: set[int]) -> None:
        self.read = [openai_chat.read(raw, place) for place, raw in enumerate(source)]
        self.shown: list[Message | None] = list(self.read)
        self.groups = {group.id: group for group in grouped(self.read)}
        self.pins = pins
        talk = [group for group in self.groups.values() if group.kind is not GroupKind.SYSTEM]
        users = [group.id for group in talk if group.kind is GroupKind.USER]
        began = [group for group in self.groups.values() if not group.orphan]
        self.protected = {talk[-1].id: "the newest"} if talk else {}
        self.protected |= dict.fromkeys(users[-1:], "the last user's")
        self.pending = began[-1].id if began and began[-1].open else None
        for edit, by in journal:
            self.do(edit, by)

    # ---------------------------------------------------------------- edits

    def do(self, edit: Edit, by: str = "") -> None:
        """Change the view as the edit says."""
        if isinstance(edit, Together):
            for part in edit.edits:
                self.do(part, by)
        elif isinstance(edit, Rewrite):
            for ordinal, message in zip(self.visible(self.groups[edit.group]), edit.messages, strict=False):
                self.shown[ordinal] = message
        else:
            for id in edit.groups:
                self.groups[id].excluded = not isinstance(edit, Restore)
        if isinstance(edit, Replace):
            id = min(0, *self.groups) - 1
            anchor = max(self.groups[each].anchor for each in edit.groups)
            self.groups[id] = Group(
                *(id, GroupKind.SUMMARY, None, []),
                made_by=by or None,
                inserted=edit.messages,
                replaces=edit.groups,
                anchor=anchor,
            )

    def may(self, edit: Edit) -> bool:
        """Whether no law forbids the edit, and it does not make the view larger."""
        after = copy.copy(self)
        after.shown, after.groups = self.shown.copy(), copy.deepcopy(self.groups)
        return after.attempt(edit) and after.included.tokens <= self.included.tokens

    def attempt(self, edit: Edit) -> bool:
        """Do the edit unless a law forbids it; says whether it did, wholly."""
        if isinstance(edit, Together):
            return bool(edit.edits) and all(self.attempt(part) for part in edit.edits)
        if isinstance(edit, Restore) or not (self.may_rewrite(edit) if isinstance(edit, Rewrite) else self.may_remove(edit)):
            return False
        self.do(edit)
        return True

    def may_remove(self, edit: Drop | Replace) -> bool:
        if isinstance(edit, Replace) and (not 1 <= len(edit.messages) <= 2 or any(links(message) for message in edit.messages)):
            return False
        here = [group for group in self.groups.values() if not group.excluded]
        named = [group for group in here if group.id in edit.groups]
        allow_system = isinstance(edit, Drop) and edit.allow_system
        return (
            0 < len(edit.groups) == len(named) < len(here)
            and all(group.id not in {*self.pins, *self.protected, self.pending} for group in named)
            and (allow_system or all(group.kind is not GroupKind.SYSTEM for group in named))
        )

    def may_rewrite(self, edit: Rewrite) -> bool:
        group = self.groups.get(edit.group)
        if group is None or group.excluded or group.inserted or group.id in {*self.pins, self.pending}:
            return False
        before = self.messages_of(group)
        pairs = list(zip(before, edit.messages, strict=False))
        return (
            len(edit.messages) <= len(before)
            and any(old is not new for old, new in pairs)
            and any(new is not None for new in [*edit.messages, *before[len(pairs) :]])
            and all(thoughts_alone(old) if new is None else (old.role, links(old)) == (new.role, links(new)) for old, new in pairs)
        )

    # ---------------------------------------------------------------- answers

    def visible(self, group: Group) -> list[int]:
        return [ordinal for ordinal in group.ordinals if self.shown[ordinal] is not None]

    def messages_of(self, group: Group) -> list[Message]:
        return list(group.inserted) or [message for at in group.ordinals if (message := self.shown[at]) is not None]

    def in_order(self) -> Iterator[Group]:
        """The groups of the view; what was inserted stands before the group that begins where it hangs."""
        for place in range(len(self.read)):
            yield from (group for id in sorted(self.groups, reverse=True) if (group := self.groups[id]).anchor == place and id < 0)
            if place in self.groups:
                yield self.groups[place]

    @property
    def view(self) -> list[Any]:
        """The messages of the view, by ordinal."""
        placed = [
            (group.anchor, 0, -group.id, message)
            for group in self.groups.values()
            if group.inserted and not group.excluded
            for message in group.inserted
        ]
        for group in self.groups.values():
            if not group.excluded and not group.inserted:
                placed += [(at, 1, 0, message) for at in group.ordinals if (message := self.shown[at]) is not None]
        return [message.raw for *_, message in sorted(placed, key=lambda place: place[:3])]

    @property
    def included(self) -> Metrics:
        return self.metrics([group for group in self.groups.values() if not group.excluded])

    def metrics(self, groups: Sequence[Group]) -> Metrics:
        messages = [message for group in groups for message in self.messages_of(group)]
        return Metrics(
            tokens=sum(MEASURE(message)[0] for message in messages),
            bytes=sum(MEASURE(message)[1] for message in messages),
            messages=len(messages),
            groups=len(groups),
            turns=len({group.turn for group in groups if group.turn}),
            tool_calls=sum(len(group.calls) for group in groups),
        )

    def portrait(self) -> list[dict[str, Any]]:
        """The groups of the view, as the index should show them."""
        return [
            {
                "id": group.id,
                "kind": group.kind,
                "messages": tuple(message.raw for message in self.messages_of(group)),
                "turn": group.turn,
                "tokens": self.metrics([group]).tokens,
                "bytes": self.metrics([group]).bytes,
                "tool_calls": len(group.calls),
                "open": bool(group.open),
                "pending": group.id == self.pending,
                "orphan": group.orphan,
                "pinned": group.id in self.pins,
                "made_by": group.made_by,
                "replaces": group.replaces,
            }
            for group in self.in_order()
            if not group.excluded
        ]

    def stands_for(self, id: int) -> set[int]:
        group = self.groups[id]
        return set(group.ordinals).union(*(self.stands_for(each) for each in group.replaces))


def parts_of(edit: Edit) -> tuple[int, ...]:
    """The groups an edit names."""
    if isinstance(edit, Together):
        return tuple(id for part in edit.edits for id in parts_of(part))
    return (edit.group,) if isinstance(edit, Rewrite) else edit.groups


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
        self.pins = {group.id for group in self.index.included_groups if group.pinned} | (self.pins & set(range(len(self.source))))

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
            again = renamed(edit, ids) if touched.isdisjoint(parts_of(edit)) else None
            back = isinstance(again, Restore) and all(state.groups[id].excluded for id in again.groups)
            if again is None or not (back or state.attempt(again)):
                continue
            made = [id for id in state.groups if id < 0]
            expected.append((again, by))
            ids |= dict(zip(self.made_by_edit(edit), [id for id in Model(given, expected, set()).groups if id < 0 and id not in made], strict=False))
        self.index.sync(given)
        self.adopt()
        assert [edit.reason for edit, _ in self.journal] == [edit.reason for edit, _ in expected]
        self.pins = {ids.get(id, id) for id in self.pins if id in ids or 0 <= id} & Model(given, expected, set()).groups.keys()

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
        groups = [group for group in model.groups.values() if not group.excluded] if data.draw(st.integers(0, 9)) else list(model.groups.values())
        kind = data.draw(st.sampled_from([Drop, Drop, Replace, Rewrite, Together] if parts else [Drop, Replace, Rewrite]))
        if kind is Together:
            return Together(*[self.some_edit(data, model, parts=False) for _ in range(data.draw(st.integers(0, 3)))], reason=reason)
        if kind is Rewrite:
            group = data.draw(st.sampled_from(groups))
            return Rewrite(group.id, [data.draw(st.sampled_from(rewordings(message))) for message in model.messages_of(group)], reason)
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
        shown = [{**attrs.asdict(group, recurse=False), "messages": tuple(message.raw for message in group.messages)} for group in index.included_groups]
        assert shown == model.portrait()
        assert [edit for edit in index.edits] == [edit for edit, _ in self.journal]
        assert index.edit_count == len(self.journal)
        for group in index.included_groups:
            assert index.originals(group) == [self.source[at] for at in sorted(model.stands_for(group.id))]
            assert index.is_removable(group) == model.may_remove_alone(group.id)

    @invariant()
    def what_is_protected_is_there(self) -> None:
        """Instructions, the newest group, the last user message and a call that waits are in the view, whatever was asked for."""
        model = self.model
        allowed = {id for edit, _ in self.journal for each in flat(edit) if isinstance(each, Drop) and each.allow_system for id in each.groups}
        system = {group.id for group in model.groups.values() if group.kind is GroupKind.SYSTEM} - allowed
        kept = {*system, *model.protected, *([] if model.pending is None else [model.pending])}
        assert [id for id in kept if not self.index.is_included(id)] == []

    @invariant()
    def turns_are_counted_forward(self) -> None:
        """No edit is later than the conversation."""
        assert 0 <= self.index.turns_since_edit <= Model(self.source, [], set()).turns


TestIndex = Index.TestCase

"""A slow model of a `MessageIndex`, worked out from scratch: its view in any format, and its groups, rules and sums in one."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Sequence
from operator import itemgetter
from typing import Any, TypeAlias

import attrs

from benchmarks.rule_pages import examples_of
from compaction import Drop, Edit, GroupKind, Message, MessageIndex, Metrics, Replace, Rewrite, Together
from compaction.formats import openai_chat
from compaction.index.edits import Applied, Restore
from compaction.index.instructions import compared_words
from compaction.index.marks import read_mark
from compaction.messages import ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from compaction.tokens import MessageMeter

Place: TypeAlias = tuple[int, Message]
"""A message with its place: its ordinal, or the id of the inserted group."""

MEASURE = MessageMeter(counter="chars/4").measure  # type: ignore[arg-type]


def thoughts_alone(message: Message) -> bool:
    parts = [part for part in message.parts if not (isinstance(part, TextPart) and not part.text)]
    return message.role == "assistant" and bool(parts) and all(isinstance(part, ReasoningPart) for part in parts)


def empty(message: Message) -> bool:
    """Whether a message has no text but whitespace, and nothing else."""
    return not message.text.strip() and all(isinstance(part, TextPart) for part in message.parts)


def links(message: Message) -> list[tuple[str, ...]]:
    """The calls and results in a message."""
    calls = [("call", part.id, part.name) for part in message.parts if isinstance(part, ToolCallPart)]
    return calls + [("result", part.call_id) for part in message.parts if isinstance(part, ToolResultPart)]


def breaks_more(old: Message, new: Message) -> bool:
    """Whether a changed message breaks a rule of its format more often than the original message."""
    before, after = ([problem.rule for problem in openai_chat.validate([each.raw])] for each in (old, new))
    alone = {rule for rule, entry in examples_of("openai-chat")["rules"].items() if entry["scope"] == "message"}
    return any(after.count(rule) > before.count(rule) for rule in alone & set(after))


def call_ids(message: Message) -> list[str]:
    return [part.id for part in message.parts if isinstance(part, ToolCallPart)]


@attrs.define
class Group:
    id: int
    kind: GroupKind
    turn: int | None
    ordinals: list[int]
    calls: list[str] = attrs.Factory(list)
    open: list[str] = attrs.Factory(list)
    orphan: bool = False
    made_by: str | None = None
    replaces: tuple[int, ...] = ()


RESULT = ("tool", "function")


def grouped(messages: Sequence[Message]) -> list[Group]:
    """The groups of a conversation by the rules of the design; each message searches all messages before it."""
    groups: list[Group] = []
    owners: list[Group] = []
    for ordinal, message in enumerate(messages):
        kind = kind_of(message)
        group = joined(messages[:ordinal], owners, message, kind)
        if group is None:
            turn = sum(each.kind is GroupKind.USER for each in groups) + (kind is GroupKind.USER)
            mark = read_mark(message) if kind is GroupKind.SUMMARY else None
            group = Group(ordinal, kind, None if kind in (GroupKind.SYSTEM, GroupKind.SUMMARY) else turn, [])
            group.orphan, group.made_by = message.role in RESULT, mark and mark.by
            groups.append(group)
        if kind is GroupKind.TOOL_CALL and message.role not in RESULT:
            group.kind, group.calls, group.open = kind, call_ids(message), call_ids(message)
        group.ordinals.append(ordinal)
        owners.append(group)
    return groups


def kind_of(message: Message) -> GroupKind:
    """The kind of a group that starts with the message."""
    if message.role in RESULT:
        return GroupKind.TOOL_CALL
    if message.role in ("user", "assistant") and read_mark(message) is not None and not call_ids(message):
        return GroupKind.SUMMARY
    if message.role in ("system", "developer", "user"):
        return GroupKind.USER if message.role == "user" else GroupKind.SYSTEM
    return GroupKind.TOOL_CALL if call_ids(message) else GroupKind.ASSISTANT


def joined(before: Sequence[Message], owners: Sequence[Group], message: Message, kind: GroupKind) -> Group | None:
    """The earlier group that a message belongs to; a result closes the call it answers."""
    previous = owners[-1] if owners else None
    if message.role in RESULT:
        answered = links(message)[0][1]
        waiting = next((group for group in sorted(owners, key=lambda group: -group.id) if answered in group.open), None)
        if waiting is not None:
            waiting.open.remove(answered)
            return waiting
        return previous if previous is not None and answered in previous.calls else None
    if previous is None or kind not in (GroupKind.TOOL_CALL, GroupKind.ASSISTANT):
        return None
    thinking = previous.kind is GroupKind.ASSISTANT and thoughts_alone(before[-1])
    if kind is GroupKind.TOOL_CALL:
        return previous if thinking else None
    return previous if thoughts_alone(message) and (thinking or previous.calls) else None


def standing(messages: Sequence[Message]) -> set[int]:
    """The instructions that stay: those at the start or with more than text, and of the others the newest of four kinds."""
    places = [place for place, message in enumerate(messages) if kind_of(message) is GroupKind.SYSTEM]
    leading = {place for place in places if places[: place + 1] == [*range(place + 1)]}
    leading |= {place for place in places if any(not isinstance(part, TextPart) for part in messages[place].parts)}
    newest: list[int] = []
    for place in places:
        words, *known_words = (compared_words(messages[at].text) for at in (place, *newest))
        others = dict(zip(newest, known_words, strict=True))
        like = [other for other, known in others.items() if 2 * len(known & words) >= 0.6 * (len(known) + len(words))]
        if place not in leading:
            newest = [*(other for other in newest if other not in like[:1]), place][-4:]
    return leading | set(newest)


class View:
    """The view of an index after its journal. It keeps no links and no sums.

    Args:
        members: The ordinals of each group's messages.
        messages: The messages of the source.

    Attributes:
        shown: The message at each ordinal, rewritten or not.
        gone: Groups that were removed.
        inserted: The anchor and the messages of each inserted group.
    """

    def __init__(self, members: dict[int, list[int]], messages: Sequence[Message]) -> None:
        self.members = members
        self.source = messages
        self.shown: list[Message | None] = list(messages)
        self.gone: set[int] = set()
        self.inserted: dict[int, tuple[int, tuple[Message, ...]]] = {}

    @classmethod
    def of(cls, index: MessageIndex, journal: Collection[Applied] | None = None) -> View:
        """The view after the edits of the index, or after the edits of another journal."""
        members: dict[int, list[int]] = {}
        for ordinal, id in enumerate(index.columns.grouping.group_of):
            members.setdefault(id, []).append(ordinal)
        view = View(members, [index.format.read(raw) for raw in index.source])
        for applied in index.journal if journal is None else journal:
            view.do(applied.edit)
        return view

    def do(self, edit: Edit, by: str = "") -> None:
        """Apply an edit to the view."""
        if isinstance(edit, Together):
            for part in edit.edits:
                self.do(part, by)
        elif isinstance(edit, Rewrite):
            ordinals = [at for at in self.members[edit.group] if self.shown[at] is not None]
            for ordinal, message in zip(ordinals, edit.messages, strict=False):
                self.shown[ordinal] = message
        elif isinstance(edit, Restore):
            self.gone -= set(edit.groups)
        else:
            self.gone.update(edit.groups)
            if isinstance(edit, Replace):
                self.inserted[-len(self.inserted) - 1] = (self.anchor(self.place_of(edit)), edit.messages)

    def place_of(self, edit: Replace) -> int:
        """The replaced group that is the last one before any newer words of the user that stay."""
        order = sorted(edit.groups, key=self.anchor)
        spoken = [id for id in self.members if kind_of(self.source[id]) is GroupKind.USER]
        said = [id for id in order if id in spoken][-1:] or [id for id in order if self.is_summary(id)]
        after = self.anchor(said[0]) if said else len(self.shown)
        newer = [id for id in spoken if after <= id < self.anchor(order[-1]) and id not in self.gone]
        return [id for id in order if not newer or self.anchor(id) <= newer[0]][-1]

    def is_summary(self, id: int) -> bool:
        message = self.inserted[id][1][0] if id < 0 else self.source[id]
        mark = read_mark(message)
        return (id < 0 or kind_of(message) is GroupKind.SUMMARY) and (mark is None or mark.by != "ToolResult")

    def anchor(self, id: int) -> int:
        """The ordinal of a group's first message; for an inserted group, of the message after it."""
        return self.inserted[id][0] if id < 0 else id

    def span(self, edit: Edit) -> set[int]:
        """The ordinals that an applied edit changed; for an inserted group, its anchor."""
        if isinstance(edit, Together):
            return {ordinal for part in edit.edits for ordinal in self.span(part)}
        named = [edit.group] if isinstance(edit, Rewrite) else edit.groups
        return {at for id in named for at in ([self.anchor(id)] if id < 0 else self.members[id])}

    def places(self) -> list[Place]:
        """Every message of the view with its place, in order."""
        return list(self._places())

    def _places(self) -> Iterator[Place]:
        owner = {ordinal: id for id, ordinals in self.members.items() for ordinal in ordinals}
        for ordinal, message in enumerate(self.shown):
            for id in sorted(self.inserted, reverse=True):
                anchor, messages = self.inserted[id]
                if anchor == ordinal and id not in self.gone:
                    yield from ((id, each) for each in messages)
            if message is not None and owner[ordinal] not in self.gone:
                yield ordinal, message


class Model(View):
    """A conversation whose groups are read, and whose journal is replayed, from scratch."""

    def __init__(self, source: Sequence[Any], journal: Sequence[tuple[Edit, str]], pins: set[int]) -> None:
        self.read = [openai_chat.read(raw, place) for place, raw in enumerate(source)]
        self.groups = {group.id: group for group in grouped(self.read)}
        super().__init__({id: group.ordinals for id, group in self.groups.items()}, self.read)
        self.pins = pins
        self.standing = standing(self.read)
        talk = [group for group in self.groups.values() if group.kind is not GroupKind.SYSTEM]
        asked = [group.id for group in talk if group.kind is GroupKind.USER]
        shown = [id for id in asked if not empty(self.read[id])] or asked[:1]
        words = [id for id in asked if self.read[id].text.strip()]
        began = [group for group in self.groups.values() if not group.orphan]
        self.pending = began[-1].id if began and began[-1].open else None
        after_pending = [] if self.pending is None else [id for id in self.groups if id > self.pending]
        self.protected = {*shown[-1:], *words[-1:], *(group.id for group in talk[-1:]), *after_pending}
        marked = [id for id in self.groups if self.groups[id].kind is GroupKind.SUMMARY and self.read[id].role == "user"]
        self.marked = [id for id in marked if id > max(words, default=-1)]
        for edit, by in journal:
            self.do(edit, by)

    # ---------------------------------------------------------------- edits

    def do(self, edit: Edit, by: str = "") -> None:
        super().do(edit, by)
        if isinstance(edit, Replace):
            mark, id = read_mark(edit.messages[0]), min(self.inserted)
            self.groups[id] = Group(id, GroupKind.SUMMARY, None, [], made_by=mark.by if mark else by or None)
            self.groups[id].replaces = edit.groups

    def may(self, edit: Edit, by: str = "") -> bool:
        """Return whether the laws allow the edit and it does not make the view larger."""
        after = copy.copy(self)
        for name in ("shown", "groups", "gone", "inserted"):
            setattr(after, name, copy.copy(getattr(self, name)))
        return after.attempt(edit, by) and after.included.tokens <= self.included.tokens

    def attempt(self, edit: Edit, by: str = "") -> bool:
        """Apply the edit unless a law forbids it; return whether it was applied completely."""
        if isinstance(edit, Together):
            return bool(edit.edits) and all(self.attempt(part, by) for part in edit.edits)
        if isinstance(edit, Restore):
            return False
        if not (self.may_rewrite(edit) if isinstance(edit, Rewrite) else self.may_remove(edit, by)):
            return False
        self.do(edit)
        return True

    def may_remove(self, edit: Drop | Replace, by: str = "") -> bool:
        if isinstance(edit, Replace) and (
            not 1 <= len(edit.messages) <= 2 or any(links(message) or not message.text.strip() for message in edit.messages)
        ):
            return False
        here = self.in_view
        named = [group for group in here if group.id in edit.groups]
        if isinstance(edit, Replace) and 0 < len(named) == len(edit.groups) and self.is_inside_another(edit):
            return False
        own = by if isinstance(edit, Replace) and by else None
        if any(id in edit.groups for id in [id for id in self.marked if self.groups[id].made_by != own][-1:]):
            return False
        allow_system = isinstance(edit, Drop) and edit.allow_system
        return (
            0 < len(edit.groups) == len(named) < len(here)
            and all(group.id not in {*self.pins, *self.protected, self.pending} for group in named)
            and (allow_system or self.standing.isdisjoint(edit.groups))
        )

    def is_inside_another(self, edit: Replace) -> bool:
        """Return whether what replaces a result without its call would stand between the messages of a neighbour that stays."""
        last, gone = self.groups[self.place_of(edit)], edit.groups
        if not last.orphan:
            return False
        others = [group for group in self.in_view if group.id not in gone and not group.orphan]
        places = [(at, group) for group in others for at in self.places_of(group)]
        before = max([each for each in places if each[0] < last.ordinals[0]], key=itemgetter(0), default=None)
        behind = min([each for each in places if each[0] > last.ordinals[-1]], key=itemgetter(0), default=None)
        near = [group for _, group in filter(None, (before, behind)) if group.id >= 0]
        return any(group.ordinals[0] < last.ordinals[-1] < group.ordinals[-1] for group in near)

    def places_of(self, group: Group) -> list[float]:
        """Return where the messages of a group of the view stand; an inserted group comes before the message at its anchor."""
        if group.id < 0:
            return [self.inserted[group.id][0] - 0.5]
        return [at for at in group.ordinals if self.shown[at] is not None]

    def may_rewrite(self, edit: Rewrite) -> bool:
        group = self.groups.get(edit.group)
        if group is None or group.id in {*self.gone, *self.pins, self.pending}:
            return False
        if group.kind is GroupKind.SUMMARY and (group.id < 0 or group.made_by != "ToolResult"):
            return False
        before = self.messages_of(group)
        pairs = list(zip(before, edit.messages, strict=False))
        return (
            len(edit.messages) <= len(before)
            and any(new is None or old.raw is not new.raw for old, new in pairs)
            and any(new is not None for new in [*edit.messages, *before[len(pairs) :]])
            and all(
                thoughts_alone(old) if new is None else (old.role, links(old)) == (new.role, links(new)) for old, new in pairs
            )
            and not any(new is not None and thoughts_alone(new) and not thoughts_alone(old) for old, new in pairs)
            and not any(new is not None and empty(old) and not empty(new) for old, new in pairs)
            and not any(new is not None and new is not old and breaks_more(old, new) for old, new in pairs)
        )

    # ---------------------------------------------------------------- results

    def messages_of(self, group: Group) -> list[Message]:
        if group.id < 0:
            return list(self.inserted[group.id][1])
        return [message for at in group.ordinals if (message := self.shown[at]) is not None]

    @property
    def in_view(self) -> list[Group]:
        """The groups of the view, in order; an inserted group comes before the group at its anchor."""
        order = sorted(self.groups.keys() - self.gone, key=lambda id: (self.anchor(id), id >= 0, -id))
        return [self.groups[id] for id in order]

    @property
    def included(self) -> Metrics:
        return self.metrics(self.in_view)

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
        """The groups of the view, as the index should report them."""
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
            for group in self.in_view
        ]

    def stands_for(self, id: int) -> set[int]:
        group = self.groups[id]
        return set(group.ordinals).union(*(self.stands_for(each) for each in group.replaces))


def flat(edit: Edit) -> list[Edit]:
    """An edit's parts, or itself."""
    return [each for part in edit.edits for each in flat(part)] if isinstance(edit, Together) else [edit]

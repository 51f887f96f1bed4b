"""Edits: descriptions of changes to a conversation, and the journal's entries about those that were applied.

An edit names groups by id and gives its reason. A strategy yields edits, and never changes an index itself: `compaction.run`
applies the edits to the index, which may refuse them. Groups that an edit inserts, such as summaries, have negative ids.
"""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import NoneType
from typing import Any, Final, TypeAlias, cast, get_args

import attrs

from ..errors import StrategyError
from ..messages import Message, Part
from .groups import MessageGroup
from .marks import text_digest

_MOST_IDS: Final = 8


def group_id(group: MessageGroup | int) -> int:
    """Return the id of a group that is given as a group or as its id; raise a `StrategyError` for anything else."""
    id: object = group if isinstance(group, int) else getattr(group, "id", None)
    if isinstance(id, int) and not isinstance(id, bool):
        return id
    raise StrategyError(f"group={group!r}: must be a group or a group id")


def group_ids(groups: Iterable[MessageGroup | int]) -> tuple[int, ...]:
    """Return the ids of groups that are given as groups or as ids; raise a `StrategyError` for anything else."""
    try:
        return tuple([group_id(group) for group in groups])
    except (StrategyError, TypeError) as error:
        raise StrategyError(f"groups={groups!r}: must be groups or group ids") from error


def _ids(groups: MessageGroup | int | Iterable[MessageGroup | int]) -> tuple[int, ...]:
    return group_ids([groups] if isinstance(groups, int | MessageGroup) else groups)


def _messages(messages: Iterable[Any], *, kinds: tuple[type, ...] = (Message,)) -> tuple[Any, ...]:
    given: list[Any] = list(messages) if isinstance(messages, Iterable) and not isinstance(messages, Mapping) else [messages]
    for each in given:
        if not isinstance(each, kinds):
            raise StrategyError(
                f"an edit needs a list of messages that were read, such as [index.format.read(data)] (got {reprlib.repr(each)})"
            )
    return tuple(given)


def _versions(messages: Iterable[Message | None]) -> tuple[Message | None, ...]:
    return _messages(messages, kinds=(Message, NoneType))


class _Described:
    """The ``str`` of edits: the groups and the reason, without the messages."""

    __slots__ = ()

    def __str__(self) -> str:
        edit = cast("Edit", self)
        ids = list(map(str, named(edit)))
        groups = f"group{'s' * (len(ids) != 1)} {', '.join(ids) or 'none'}"
        if len(ids) > _MOST_IDS:
            groups = f"{len(ids):,} groups, {ids[0]} to {ids[-1]}"
        return f"{type(edit).__name__} of {groups} ({edit.reason or 'no reason given'})"


@attrs.frozen
class Drop(_Described):
    """Remove these groups from the view.

    >>> print(Drop([1, 2], reason="old"))
    Drop of groups 1, 2 (old)

    Args:
        groups: The groups, or their ids.
        reason: The reason in a few words, for the user.
        allow_system: Whether system groups may be removed, too; set by strategies with ``drop_system=True``.
    """

    groups: tuple[int, ...] = attrs.field(converter=_ids)
    reason: str = ""
    allow_system: bool = False


@attrs.frozen
class Replace(_Described):
    """Replace these groups with a summary group.

    It takes the place of the last one, but stands before messages of the user that stay and are newer than the user's words in
    these groups.

    Args:
        groups: The groups, or their ids. They are removed from the view; ``index.originals`` still returns their messages.
        messages: One message, or two if the format requires alternating roles. They contain no calls or results.
        reason: The reason in a few words.
        read: The groups, besides these, from which the messages were written, or their ids; ``None`` if it may have been any
            message so far. `MessageIndex.forget` undoes the edit if one of them is forgotten.
    """

    groups: tuple[int, ...] = attrs.field(converter=_ids)
    messages: tuple[Message, ...] = attrs.field(converter=_messages)
    reason: str = ""
    read: tuple[int, ...] | None = attrs.field(default=None, converter=attrs.converters.optional(_ids), kw_only=True)


@attrs.frozen
class Rewrite(_Described):
    """Shorten the content of this group. Its roles, calls and results stay.

    Args:
        group: The group, or its id.
        messages: The new versions of its messages, from the first one on. The list may be shorter than the group; the remaining
            messages are unchanged. ``None`` removes a message that contains only reasoning.
        reason: The reason in a few words.
        read: Other groups from which the new versions were written, or their ids, as for `Replace`; usually none.
    """

    group: int = attrs.field(converter=group_id)
    messages: tuple[Message | None, ...] = attrs.field(converter=_versions)
    reason: str = ""
    read: tuple[int, ...] = attrs.field(default=(), converter=_ids, kw_only=True)


@attrs.frozen
class Restore(_Described):
    """Put these groups back into the view, because a late result answers their calls. Only the index makes this edit."""

    groups: tuple[int, ...] = attrs.field(converter=_ids)
    reason: str = ""


@attrs.frozen(init=False)
class Together(_Described):
    """Several edits that are applied together or not at all; the size of the view and new neighbours are checked at the end.

    Args:
        edits: The edits, in order.
        reason: The reason for all of them; by default that of the first.
    """

    edits: tuple[Drop | Replace | Rewrite, ...]
    reason: str

    def __init__(self, *edits: Drop | Replace | Rewrite, reason: str = "") -> None:
        for each in edits:
            if not isinstance(each, Drop | Replace | Rewrite | Together):
                raise StrategyError(f"Together({reprlib.repr(each)}): must be edits, one by one: Together(Drop(0), Drop(1))")
        reason = reason or (edits[0].reason if edits else "")
        parts = cast("list[Drop | Replace | Rewrite]", [part for edit in edits for part in simple_edits(edit)])
        self.__attrs_init__(tuple(parts), reason)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


Edit: TypeAlias = Drop | Replace | Rewrite | Restore | Together
"""Any edit."""

EDITS: Final = get_args(Edit)
"""The same as a tuple, with which ``isinstance`` is twice as fast."""


@attrs.frozen
class Refusal:
    """An edit that the index did not apply.

    Args:
        edit: The edit.
        rule: The rule that it would have broken, in words.
        by: The strategy that made the edit; empty outside a run.
    """

    edit: Edit
    rule: str
    by: str = ""

    def __str__(self) -> str:
        return f"{self.edit}: {self.rule}"


def simple_edits(edit: Edit) -> Sequence[Drop | Replace | Rewrite | Restore]:
    """Return the edits of a `Together`, or else the edit itself."""
    return edit.edits if isinstance(edit, Together) else (edit,)


def named(edit: Edit) -> tuple[int, ...]:
    """Return the ids of the groups that an edit names."""
    parts = simple_edits(edit)
    return tuple([id for part in parts for id in ((part.group,) if isinstance(part, Rewrite) else part.groups)])


def written(edit: Edit) -> list[Message]:
    """Return the messages that an edit writes."""
    parts = [part for part in simple_edits(edit) if isinstance(part, Replace | Rewrite)]
    return [message for part in parts for message in part.messages if message is not None]


def summary_digests(edits: Iterable[Edit]) -> set[str]:
    """Return the checksums of the summaries that edits write (see `Marks`)."""
    parts = [part for edit in edits for part in simple_edits(edit) if isinstance(part, Replace)]
    return {text_digest(message) for part in parts for message in part.messages[:1]}


def rewritten_parts(group: MessageGroup, change: Callable[[Part], Part], reason: str) -> Rewrite | None:
    """Return the edit that changes the parts of a group's messages; ``None`` if no part changes."""
    messages = [message.with_parts(change) for message in group.messages]
    return None if all(map(operator.is_, messages, group.messages)) else Rewrite(group, messages, reason)


def renamed(edit: Edit, ids: Mapping[int, int], *, all_changed: bool = False) -> Edit | None:
    """Return the edit with new ids; ``None`` if a named group is gone. Source groups keep their ids unless ``all_changed``.

    A group in ``read`` that has no new id is left out: it is gone; `Applied.lost` has the keys of its messages.
    """
    if any(id not in ids and (all_changed or id < 0) for id in named(edit)):
        return None
    if isinstance(edit, Together):
        return Together(*[cast("Drop", renamed(part, ids)) for part in edit.edits], reason=edit.reason)
    new = tuple([ids.get(id, id) for id in named(edit)])
    if isinstance(edit, Rewrite):
        return attrs.evolve(edit, group=new[0], read=_left(edit.read, ids))
    if isinstance(edit, Replace) and edit.read is not None:
        return attrs.evolve(edit, groups=new, read=_left(edit.read, ids))
    return attrs.evolve(edit, groups=new)


def _left(read: Iterable[int], ids: Mapping[int, int]) -> list[int]:
    return [ids.get(id, id) for id in read if id >= 0 or id in ids]


def signature(edit: Edit) -> object:
    """Return a value that is equal for edits with the same effect; reasons are ignored."""
    found: list[object] = []
    for part in simple_edits(edit):
        messages = [message and (message.role, message.parts) for message in getattr(part, "messages", ())]
        found.append((type(part), named(part), getattr(part, "allow_system", None), tuple(messages)))
    return tuple(found)


Shown: TypeAlias = tuple[Message | None, int, int]
"""The message shown at an ordinal (``None`` for nothing), its tokens and its bytes."""


@attrs.define(weakref_slot=False)
class Applied:
    """An edit in the journal. Never modified, but not frozen, because creating a frozen value takes three times as long."""

    edit: Edit
    by: str  # the strategy that made it; empty outside a run
    turn: int  # the turn in which it was applied
    made: int | None = None  # the id of the group it inserted, for a `Replace`
    before: tuple[tuple[int, Shown], ...] = ()  # what the view showed before at each ordinal that a `Rewrite` changed
    parts: tuple[Applied, ...] = ()
    # how many source messages had been read when it was decided; ``None`` if the host changed them since, or if a saved
    # state lacks the number
    seen: int | None = None
    # keys of messages that it may have been written from, and that the host has altered or removed since
    lost: frozenset[str] = frozenset()

    def without(self, gone: Iterable[tuple[int, str]]) -> Applied:
        """Return the entry without messages of the source, given by their ordinals and keys: it has lost those that it saw."""
        lost = {key for ordinal, key in gone if self.seen is None or ordinal < self.seen}
        return attrs.evolve(self, lost=self.lost | lost)

    @property
    def simple(self) -> tuple[Applied, ...]:
        """Its parts, or itself if it has none."""
        return self.parts or (self,)

    @property
    def inserted_ids(self) -> list[int]:
        """The ids of the groups that it and its parts inserted, in order."""
        return [each.made for each in self.simple if each.made is not None]

    @property
    def writes(self) -> bool:
        """Whether it may contain text of groups that it does not name."""
        edits = [each.edit for each in self.simple]
        return any(isinstance(edit, Replace) or (isinstance(edit, Rewrite) and edit.read) for edit in edits)

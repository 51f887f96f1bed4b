"""Edits: what a strategy says should happen, as values.

An edit names groups by id and gives its reason. It can be applied, refused, logged, stored and undone; it does nothing by
itself. Strategies yield edits (and requests, for what has to be awaited) and never change an index themselves.
"""

from __future__ import annotations

import abc
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Mapping
from types import GeneratorType
from typing import Any, Final, TypeAlias, TypeVar, cast

import attrs

from ..errors import StrategyError
from ..messages import Message
from .groups import MessageGroup

_T = TypeVar("_T")


def _id(group: MessageGroup | int) -> int:
    return group if isinstance(group, int) else group.id


def _ids(groups: MessageGroup | int | Iterable[MessageGroup | int]) -> tuple[int, ...]:
    if isinstance(groups, int):
        return (groups,)
    if isinstance(groups, MessageGroup):
        return (groups.id,)
    try:
        return tuple([group if isinstance(group, int) else group.id for group in groups])
    except (AttributeError, TypeError) as error:
        raise StrategyError(f"groups={groups!r}: an edit names groups, or their ids") from error


def _messages(messages: Iterable[Message]) -> tuple[Message, ...]:
    return tuple(messages)


def _messages_or_none(messages: Iterable[Message | None]) -> tuple[Message | None, ...]:
    return tuple(messages)


@attrs.frozen
class Drop:
    """Leave these groups out of the view.

    Args:
        groups: The groups, or their ids.
        reason: Why, in a few words; it is what the user reads later.
        allow_system: Whether system groups among them may go too.
    """

    groups: tuple[int, ...] = attrs.field(converter=_ids)
    reason: str = ""
    allow_system: bool = False


@attrs.frozen
class Replace:
    """Show these messages in place of those groups, where the last of them stood, as one summary group.

    Args:
        groups: The groups, or their ids. They are excluded, and stay reachable by ``index.originals``.
        messages: One message, or two where a format wants roles to alternate; no calls or results in them.
        reason: Why, in a few words.
    """

    groups: tuple[int, ...] = attrs.field(converter=_ids)
    messages: tuple[Message, ...] = attrs.field(converter=_messages)
    reason: str = ""


@attrs.frozen
class Rewrite:
    """Show this group with shorter content: same messages, same calls and results.

    Args:
        group: The group, or its id.
        messages: Its messages anew, one for one from the first. ``None`` in place of a message that held nothing but reasoning
            removes it.
        reason: Why, in a few words.
    """

    group: int = attrs.field(converter=_id)
    messages: tuple[Message | None, ...] = attrs.field(converter=_messages_or_none)
    reason: str = ""


@attrs.frozen
class Restore:
    """Groups that came back, because a result arrived for a call whose group was out of the view. Made by the index alone."""

    groups: tuple[int, ...] = attrs.field(converter=_ids)
    reason: str = ""


@attrs.frozen(init=False)
class Together:
    """Several edits, all applied or none, judged by their sum.

    Args:
        edits: The edits, in order.
        reason: Why they belong together; by default the first one's reason.
    """

    edits: tuple[Drop | Replace | Rewrite, ...]
    reason: str

    def __init__(self, *edits: Drop | Replace | Rewrite, reason: str = "") -> None:
        object.__setattr__(self, "edits", edits)
        object.__setattr__(self, "reason", reason or (edits[0].reason if edits else ""))


Edit: TypeAlias = Drop | Replace | Rewrite | Restore | Together
"""What a strategy yields and an index applies."""


@attrs.frozen
class Refusal:
    """An edit the index did not apply.

    Args:
        edit: What was asked for.
        rule: Which rule it would have broken, in words.
        by: The strategy that asked; empty outside a run.
    """

    edit: Edit
    rule: str
    by: str = ""


class Request(abc.ABC):
    """Something a strategy needs from outside, yielded in place of an edit.

    The driver calls it, awaits what it returns if that has to be awaited, and sends the answer back; a failure is raised at the
    strategy's ``yield``.
    """

    __slots__ = ()

    @abc.abstractmethod
    def call(self) -> Any:
        """The answer, or an awaitable of it."""

    async def wait(self, answer: Awaitable[_T]) -> _T:
        """Await the answer; a request may limit how long that takes."""
        return await answer


def named(edit: Edit) -> tuple[int, ...]:
    """The ids of the groups an edit names."""
    if isinstance(edit, Rewrite):
        return (edit.group,)
    if isinstance(edit, Together):
        return tuple([id for part in edit.edits for id in named(part)])
    return edit.groups


def written(edit: Edit) -> Iterator[Message]:
    """The messages that an edit wrote."""
    if isinstance(edit, Together):
        for part in edit.edits:
            yield from written(part)
    elif isinstance(edit, Replace | Rewrite):
        yield from filter(None, edit.messages)


def renamed(edit: Edit, ids: Mapping[int, int]) -> Edit | None:
    """The edit with the ids of inserted groups exchanged for others; ``None`` if it names one that has no other."""
    if isinstance(edit, Together):
        parts = [renamed(part, ids) for part in edit.edits]
        kept = [part for part in parts if isinstance(part, Drop | Replace | Rewrite)]
        return Together(*kept, reason=edit.reason) if len(kept) == len(parts) else None
    new = tuple([ids.get(id, id) for id in named(edit)])
    if any(id < 0 and id not in ids for id in named(edit)):
        return None
    if isinstance(edit, Rewrite):
        return attrs.evolve(edit, group=new[0])
    return attrs.evolve(edit, groups=new)


def brief(edit: Edit) -> str:
    """An edit in a few words, however long its messages are.

    >>> brief(Drop([1, 2], reason="old"))
    'Drop of groups 1, 2 (old)'
    """
    return f"{type(edit).__name__} of groups {', '.join(map(str, named(edit))) or 'none'} ({edit.reason or 'no reason given'})"


def signature(edit: Edit) -> object:
    """What two edits share if asking for one is asking for the other again."""
    if isinstance(edit, Together):
        return tuple([signature(part) for part in edit.edits])
    messages = edit.messages if isinstance(edit, Replace | Rewrite) else ()
    return type(edit), named(edit), tuple([None if message is None else (message.role, message.parts) for message in messages])


PASS_ON: Final = object()
"""The answer of somebody who does not answer an item himself."""

_END: Final = object()


def relay(
    steps: Generator[Any, Any, Any], answered: Callable[[Any], Any], *, until: Callable[[Any], bool] | None = None
) -> Generator[Any, Any, None]:
    """Run a strategy, and answer each item that it yields or pass it on; whoever made the generator closes it.

    The answer to an item that is passed on is sent to the strategy; an exception raised instead is raised in the strategy.

    Args:
        steps: The running strategy.
        answered: Returns the answer to an item, or a generator that yields other items in its place and returns the answer, or
            `PASS_ON`. Its exceptions end the run.
        until: Returns whether to stop after an item was answered.
    """
    item = _next(steps.send, None)
    while item is not _END:
        answer: Any = answered(item)
        if answer is PASS_ON:
            try:
                answer = yield item
            except Exception as error:
                item = _next(steps.throw, error)
                continue
        elif answer.__class__ is GeneratorType:
            answer = yield from cast("Generator[Any, Any, Any]", answer)
        if until is not None and until(item):
            return
        item = _next(steps.send, answer)


def _next(resume: Callable[[Any], Any], value: Any) -> Any:
    """Return the next item of a strategy, or `_END`; a ``StopIteration`` from anywhere else is not taken for its end."""
    try:
        return resume(value)
    except StopIteration:
        return _END

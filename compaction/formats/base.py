"""What a wire format must say of itself, so that nothing else has to know it.

One file per format implements this class: how a caller's object is read, how a changed one is written, and which sequences its
provider accepts. The rest of the package asks the format and never looks inside a raw message.
"""

from __future__ import annotations

import abc
import operator
from collections.abc import Sequence
from typing import Any

import attrs

from ..messages import Message, Part

__all__ = ["MessageFormat", "Problem", "Repair"]


@attrs.frozen
class Problem:
    """One rule of a format that a conversation breaks.

    Args:
        where: The place, as ``messages[3]`` or ``messages[3].tool_calls[0]``.
        rule: The rule's name, as listed in ``docs/validity.md``.
        message: What is wrong there, in one sentence.
        remedy: What to do about it, in one sentence.
    """

    where: str
    rule: str
    message: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.where}: {self.message} [{self.rule}]; {self.remedy}"


@attrs.frozen
class Repair:
    """A conversation made valid, and everything that was done to it.

    Args:
        messages: The repaired list; messages that needed nothing are the same objects.
        changes: What was removed, added or moved, one entry each, in order.
        remaining: What could not be mended without inventing content; its places are those of the repaired list.
    """

    messages: list[Any]
    changes: tuple[Problem, ...]
    remaining: tuple[Problem, ...] = ()


class MessageFormat(abc.ABC):
    """One wire format: reading, writing, and its provider's rules. Stateless."""

    name: str

    @abc.abstractmethod
    def read(self, raw: Any, position: int = 0) -> Message:
        """Read one raw message; O(parts).

        Args:
            raw: The caller's object; kept, never changed.
            position: Its place in the list, from 0, for error messages.

        Raises:
            InvalidMessage: If it is no message of this format at all. Fields nobody knows are no reason to refuse.
        """

    @abc.abstractmethod
    def changed(self, message: Message, parts: Sequence[Part]) -> Message:
        """A copy of ``message`` made of ``parts``; unknown fields and untouched parts stay as they were on the wire."""

    @abc.abstractmethod
    def new(self, role: str, text: str) -> Message:
        """A fresh message of this format."""

    @abc.abstractmethod
    def validate(self, raws: Sequence[Any]) -> list[Problem]:
        """Every rule of the format that the list breaks, in order of place; empty if a provider would take it."""

    @abc.abstractmethod
    def repair(self, raws: Sequence[Any]) -> Repair:
        """A valid list made from this one, and a report of every change; the input is not changed."""

    def key(self, raw: Any) -> Any:
        """What two raw messages must have equal to count as the same message; by default the object's own ``==``."""
        return raw

    def common_prefix(self, known: Sequence[Any], given: Sequence[Any]) -> int:
        """How many first messages two lists share; O(shared), by identity first, then by `key`."""
        shortest = min(len(known), len(given))
        plain = shortest and type(known[0]) is dict
        if known[:shortest] == given[:shortest] if plain else all(map(operator.is_, known, given)):
            return shortest
        key = self.key
        for place in range(shortest):
            one, other = known[place], given[place]
            if one is not other and key(one) != key(other):
                return place
        return shortest

    def to_wire(self, raw: Any) -> Any:
        """The raw message as JSON-ready data."""
        return raw

    def from_wire(self, data: Any) -> Any:
        """The raw message that `to_wire` turned into ``data``."""
        return data

    def valid_seam(self, before: Message | None, after: Message | None) -> bool:
        """Whether ``after`` may directly follow ``before`` (``None``: the start or end of the list); by default always."""
        return True

    def stand_in(self, text: str) -> Message:
        """A note that stands for tool calls wherever they stood; by default the assistant says it."""
        return self.new("assistant", text)

    def replacement_problem(self, messages: Sequence[Message], *, instructed: bool) -> str | None:
        """Why these messages may not stand in place of others, whatever else is next to them; by default nothing forbids it.

        Args:
            messages: What is to be shown.
            instructed: Whether one of the groups they stand for comes directly after a system message that is not among the
                first messages.
        """
        return None

    def rewrite_problem(self, before: Sequence[Message], after: Sequence[Message | None], *, current: bool) -> str | None:
        """Why the messages of a group may not become those; by default nothing forbids it.

        Args:
            before: The first messages of the group, as they are.
            after: The same anew, one for one; ``None`` for one that goes.
            current: Whether the group belongs to the current turn, whose tool loop may still be open.
        """
        return None

    def summary(self, text: str, before: Message | None, after: Message | None) -> tuple[Message, ...]:
        """A summary as this format wants it between these two neighbours: one message, or two where roles have to alternate."""
        return (self.new(self.summary_role(before, after), text),)

    def summary_role(self, before: Message | None, after: Message | None) -> str:
        """The role a summary takes between these two neighbours (``None`` at either end).

        A summary stands where nobody speaks twice in a row if that can be had: as the assistant after a user message, as the
        user before or after the assistant.
        """
        if before is not None and before.role == "user":
            return "assistant"
        return "user"

"""The contract of a wire format: reading messages, writing changed ones, and the provider's rules.

Each format is one folder that implements `MessageFormat`. The rest of the package asks the format and never looks inside a
raw message.
"""

from __future__ import annotations

import abc
import operator
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, final

import attrs

from ..messages import Message, Outline, Part, TextPart

RuleKind: TypeAlias = Literal["message", "join", "reach"]
"""How far a rule looks: at one message, at two neighbours, or further (pairs of calls and results, ids, counts)."""

Side: TypeAlias = Literal["before", "after", "both"]
"""The neighbour at which a broken join is reported; both, if each of the two breaks the rule."""


@attrs.frozen
class Problem:
    """A rule of a format that a conversation breaks.

    Args:
        where: The place, as ``messages[3]`` or ``messages[3].tool_calls[0]``.
        rule: The rule's name, as listed in ``docs/rules``.
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
    """A repaired conversation and the changes that were made to it.

    Args:
        messages: The repaired list; messages that needed nothing are the same objects.
        changes: What was removed, added or moved, one entry each, in the order of the messages. A place is that of the message
            in the input, within it the place at that moment; the rule is the one that was broken, the remedy what was done.
        remaining: What could not be repaired without inventing content; its places are those of the repaired list.
    """

    messages: list[Any]
    changes: tuple[Problem, ...]
    remaining: tuple[Problem, ...] = ()


class MessageFormat(abc.ABC):
    """A wire format: reading, writing, and its provider's rules. Stateless."""

    name: str

    judges_joins: bool = False
    """Whether there are messages that may not follow one another: set for each class that writes `join_problem`."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.judges_joins = cls.join_problem is not MessageFormat.join_problem or cls.prefers is not MessageFormat.prefers

    @abc.abstractmethod
    def read(self, raw: Any, position: int = 0) -> Message:
        """Read one raw message; O(parts).

        Args:
            raw: The caller's object; kept, never changed.
            position: Its place in the list, from 0, for error messages.

        Raises:
            InvalidMessage: If it is not a message of this format. Unknown fields are not a reason to refuse one.
        """

    def outline(self, raw: Any) -> Outline | None:
        """Return what a glance at a plain message shows; ``None`` if it must be read."""
        return None

    def reported_usage(self, raw: Any) -> Any:
        """Return the usage that a reply carries, as its provider reported it for the request; ``None`` if it carries none."""
        return None

    @abc.abstractmethod
    def changed(self, message: Message, parts: Sequence[Part]) -> Message:
        """Return a copy of ``message`` made of ``parts``; unknown fields and untouched parts stay as they were on the wire."""

    @abc.abstractmethod
    def new(self, role: str, text: str) -> Message:
        """Return a fresh message of this format."""

    # ------------------------------------------------------------------------ rules

    @abc.abstractmethod
    def validate(self, raws: Sequence[Any]) -> list[Problem]:
        """Return every rule of the format that the list breaks, in order of place; empty if a provider would take it."""

    @abc.abstractmethod
    def repair(self, raws: Sequence[Any]) -> Repair:
        """Return a valid list made from this one, and a report of every change; the input is not changed."""

    def message_problems(self, raw: Any) -> list[Problem]:
        """Return the rules that a message breaks by itself, whatever stands around it; O(parts).

        A message may stand anywhere if the list may end with it. Places are those of a list of this message alone.
        """
        return []

    def acceptable(self, message: Message) -> str | None:
        """Return why an edit may not bring this message into a conversation, or ``None`` if it may; O(parts)."""
        name = getattr(message.format, "name", type(message.format).__name__)
        if name != self.name:
            return f"a message of the format {name} does not belong into a conversation of {self.name}"
        if all(isinstance(part, TextPart) and not part.text.strip() for part in message.parts):
            return "the message says nothing"
        for problem in self.message_problems(message.raw):
            return f"the message breaks the rule {problem.rule}: {problem.message}"
        return None

    def join_problem(self, before: Message | None, after: Message | None) -> tuple[str, Side] | None:
        """Return the rule that two neighbours break, and the one it is reported at; ``None`` if they may stand together.

        It is exactly what `validate` reports there. Asked for every possible cut, so it should be O(1) for most neighbours.

        Args:
            before: The first of the two; ``None`` at the start of the list, also where only system messages stand before.
            after: The second; ``None`` at the end of the list.
        """
        return None

    @final
    def follows(self, before: Message | None, after: Message | None) -> bool:
        """Whether the provider takes ``after`` directly after ``before``; see `join_problem`."""
        return self.join_problem(before, after) is None

    def prefers(self, before: Message | None, after: Message | None) -> bool:
        """Whether a conversation reads well with ``after`` directly after ``before``, where the provider takes it.

        By default the user speaks first: strict chat templates refuse another list.
        """
        return before is not None or after is None or after.role == "user" or after.is_system

    def rewrite_problem(self, before: Sequence[Message], after: Sequence[Message | None], *, current: bool) -> str | None:
        """Return why the messages of a group may not become those of another; ``None`` if they may.

        Args:
            before: The first messages of the group, as they are.
            after: The rewritten messages, one for one; ``None`` for one that is removed.
            current: Whether the group belongs to the current turn, whose tool loop may still be open.
        """
        return None

    # ------------------------------------------------------------------------ comparing and storing

    def recognizes(self, fields: Mapping[str, Any]) -> bool | None:
        """Whether a message with these fields, parts aside, is written in this format; for `compaction.formats.detect`.

        Returns:
            ``True`` if only formats that say so too have such a message, ``None`` if it may be of this format, else ``False``.
        """
        return False

    def recognizes_part(self, fields: Mapping[str, Any]) -> bool:
        """Whether this format has parts of this type; a part that no format has shows nothing."""
        return False

    def key(self, raw: Any) -> Any:
        """Return what two raw messages must have equal to count as the same message; by default the object's own ``==``."""
        return raw

    def common_prefix(self, known: Sequence[Any], given: Sequence[Any]) -> int:
        """Return how many first messages two lists share; O(shared), by identity first, then by `key`."""
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
        """Return the raw message as JSON-ready data."""
        return raw

    def from_wire(self, data: Any) -> Any:
        """Return the raw message that `to_wire` turned into ``data``."""
        return data

    # ------------------------------------------------------------------------ messages of our making

    def placeholder(self, text: str) -> tuple[Message, ...]:
        """Return a note that stands for tool calls wherever they stood: one message, or two where roles have to alternate."""
        return (self.new("assistant", text),)

    def summary(self, text: str, before: Message | None, after: Message | None) -> tuple[Message, ...]:
        """Return a summary for the place between two neighbours: one message, or two where roles have to alternate."""
        return (self.new(self.summary_role(before, after), text),)

    def completes_summary(self, message: Message) -> bool:
        """Whether a message that directly follows a summary is the second of its two messages."""
        return False

    def summary_role(self, before: Message | None, after: Message | None) -> str:
        """Return the role of a summary between two neighbours (``None`` at either end).

        If possible nobody speaks twice in a row: the assistant says it after a user message, and between a result and a user
        message; the user elsewhere, and first of all.
        """
        if before is None or before.role == "assistant" or before.is_system:
            return "user"
        return "assistant" if before.role == "user" or (after is not None and after.role == "user") else "user"

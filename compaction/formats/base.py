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

Side: TypeAlias = Literal["before", "after", "both"]
"""The neighbour at which a broken join is reported; ``"both"`` if each of them breaks the rule."""

JoinProblem: TypeAlias = tuple[str, Side]
"""The rule that two neighbours break, and the neighbour it is reported at."""


@attrs.frozen
class Problem:
    """A rule of a format that a conversation breaks.

    Args:
        where: The place, as ``messages[3]`` or ``messages[3].tool_calls[0]``.
        rule: The rule's name, as listed in ``docs/rules``.
        message: The fault, in one sentence.
        remedy: The correction, as an instruction.
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
        messages: The repaired list; unchanged messages are the same objects.
        changes: One entry for each change, in the order of the messages. It names the message by its place in the input, the
            broken rule, and, as the remedy, the change.
        remaining: The faults that only invented content could repair, with places in the repaired list.
    """

    messages: list[Any]
    changes: tuple[Problem, ...]
    remaining: tuple[Problem, ...] = ()


class MessageFormat(abc.ABC):
    """A wire format: reading, writing, and its provider's rules. Stateless.

    Of the rules about two neighbours, a format defines `join_problem`, which says what the provider refuses, and `prefers`,
    which chooses between neighbours that it accepts. `follows` asks `join_problem`.
    """

    name: str
    writes_as_user: bool = False  # whether a summary or a placeholder is always the user's

    @property
    def judges_joins(self) -> bool:
        """Whether the format restricts neighbours: whether its class defines `join_problem` or `prefers`."""
        kind = type(self)
        return kind.join_problem is not MessageFormat.join_problem or kind.prefers is not MessageFormat.prefers

    @abc.abstractmethod
    def read(self, raw: Any, position: int = 0) -> Message:
        """Read one raw message; O(parts).

        Args:
            raw: The caller's object; kept, never changed.
            position: Its place in the list, from 0, for error messages.

        Raises:
            InvalidMessage: If it is not a message of this format. Unknown fields are accepted.
            RecursionError: If a value is nested too deep to be measured; an index then refuses the message.
        """

    def outline(self, raw: Any) -> Outline | None:
        """Return the outline of a plain message without reading it; ``None`` if it must be read."""
        return None

    def of_outline(self, outline: Outline, raw: Any) -> Message:
        """Return the message of which only the outline was read; O(parts)."""
        return self.read(raw)

    def reported_usage(self, raw: Any) -> Any:
        """Return the usage that the provider reported in a reply; ``None`` if there is none."""
        return None

    @abc.abstractmethod
    def changed(self, message: Message, parts: Sequence[Part]) -> Message:
        """Return a copy of ``message`` with these parts; unknown fields and unchanged parts keep their wire form."""

    @abc.abstractmethod
    def new(self, role: str, text: str) -> Message:
        """Return a new message of this format."""

    def compose(self, role: str, parts: Sequence[Part]) -> list[Message]:
        """Return new messages with these texts, calls and results, for generated conversations.

        By default, only the texts are written.

        Args:
            role: ``"system"``, ``"user"`` or ``"assistant"``; results are given to the user.
            parts: Texts and calls, or results and texts.
        """
        texts = [part.text for part in parts if isinstance(part, TextPart)]
        return [self.new(role, "\n".join(texts))] if texts else []

    # ------------------------------------------------------------------------ rules

    @abc.abstractmethod
    def validate(self, raws: Sequence[Any]) -> list[Problem]:
        """Return every rule of the format that the list breaks, in order of place; empty for a valid list.

        Raises:
            RecursionError: In formats of frameworks, if a message is nested too deep to be written as JSON.
        """

    @abc.abstractmethod
    def repair(self, raws: Sequence[Any]) -> Repair:
        """Return a repaired copy of the list and a report of every change; raises as `validate` does."""

    def message_problems(self, raw: Any) -> list[Problem]:
        """Return the rules that a message breaks by itself, independent of its neighbours; O(parts).

        This includes a message that is accepted only at the end of a list, such as an empty answer of Anthropic's.
        """
        return []

    def acceptable(self, message: Message) -> str | None:
        """Return the reason why an edit may not bring in this message; ``None`` if it may; O(parts)."""
        name = getattr(message.format, "name", type(message.format).__name__)
        if name != self.name:
            return f"a message of the format {name} is not allowed in a conversation of {self.name}"
        if all(isinstance(part, TextPart) and not part.text.strip() for part in message.parts):
            return "the message is empty"
        problem = next(iter(self.message_problems(message.raw)), None)
        return None if problem is None else f"the message breaks the rule {problem.rule}: {problem.message}"

    def join_problem(self, before: Message | None, after: Message | None) -> JoinProblem | None:
        """Return the rule that two neighbours break, and the neighbour it is reported at; ``None`` if they break none.

        `validate` must report the same. It is called for every possible cut, so it should be O(1) for most neighbours.

        Args:
            before: The first of the two; ``None`` at the start of the list and after its leading system messages.
            after: The second; ``None`` at the end of the list.
        """
        return None

    @final
    def follows(self, before: Message | None, after: Message | None) -> bool:
        """Whether the provider accepts ``after`` directly after ``before``; see `join_problem`."""
        return self.join_problem(before, after) is None

    def prefers(self, before: Message | None, after: Message | None) -> bool:
        """Whether ``after`` should directly follow ``before`` if there is a choice; see `follows` for what is required.

        By default the user speaks first, because strict chat templates refuse other lists.
        """
        return before is not None or after is None or after.role == "user" or after.is_system

    def rewrite_problem(self, before: Sequence[Message], after: Sequence[Message | None], *, current: bool) -> str | None:
        """Return the reason why a group may not be rewritten in this way; ``None`` if it may.

        Args:
            before: The first messages of the group, before the rewrite.
            after: The rewritten messages, one for one; ``None`` for one that is removed.
            current: Whether the group belongs to the current turn, whose tool loop may still be open.
        """
        return None

    # ------------------------------------------------------------------------ comparing and storing

    def recognizes(self, fields: Mapping[str, Any]) -> bool | None:
        """Whether a message with these fields is in this format, apart from its parts; used by `compaction.formats.detect`.

        Returns:
            ``True`` if only the formats that return ``True`` are possible; ``None`` if this one is, and others may be;
            ``False`` if it is not.
        """
        return False

    def recognizes_part(self, fields: Mapping[str, Any]) -> bool:
        """Whether this format has parts with these fields; detection ignores a part that no format has."""
        return False

    def key(self, raw: Any) -> Any:
        """Return the value by which raw messages are compared; by default the message itself."""
        return raw

    def common_prefix(self, known: Sequence[Any], given: Sequence[Any]) -> int:
        """Return the number of messages at the start that two lists share, by identity or else by `key`; O(shared)."""
        shortest = min(len(known), len(given))
        if shortest and type(known[0]) is dict:
            start = known if len(known) == shortest else known[:shortest]
            is_shared = start == given[:shortest]  # faster than a loop
        else:
            is_shared = all(map(operator.is_, known, given))
        if is_shared:
            return shortest
        key = self.key
        for place in range(shortest):
            one, other = known[place], given[place]
            if one is not other and key(one) != key(other):
                return place
        return shortest

    def to_wire(self, raw: Any) -> Any:
        """Return the raw message as JSON-ready data, which may share objects with it."""
        return raw

    def from_wire(self, data: Any) -> Any:
        """Return the raw message that `to_wire` turned into ``data``; it may share objects with ``data``."""
        return data

    # ------------------------------------------------------------------------ messages that compaction adds

    def placeholder(self, text: str) -> tuple[Message, ...]:
        """Return a note that replaces tool calls at any place: one message, or two where roles must alternate."""
        return (self.new("user" if self.writes_as_user else "assistant", text),)

    def summary(self, text: str, before: Message | None, after: Message | None) -> tuple[Message, ...]:
        """Return a summary for the place between two neighbours: one message, or two where roles must alternate."""
        return (self.new(self.summary_role(before, after), text),)

    def completes_summary(self, message: Message) -> bool:
        """Whether a message that directly follows a summary is the second of its two messages."""
        return False

    def summary_role(self, before: Message | None, after: Message | None) -> str:
        """Return the role of a summary between two neighbours (``None`` at either end).

        Roles alternate where possible. A summary after a user message, or between a result and a user message, is the
        assistant's; any other, and the first message of a list, is the user's.
        """
        if self.writes_as_user or before is None or before.role == "assistant" or before.is_system:
            return "user"
        return "assistant" if before.role == "user" or (after is not None and after.role == "user") else "user"

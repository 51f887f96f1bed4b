"""Rules of a wire format in one table, and the base of the formats that have one: validating and repairing go by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from ..errors import InvalidMessage
from .base import MessageFormat, Problem, Repair, RuleKind, Side
from .pairing import Fields, Finding, Pairing, message_fields
from .repairing import Fix, repair_by_rules
from .wire import fields_of, key_of, plain, type_name

_Place: TypeAlias = "str | Callable[[Fields], str]"


@attrs.frozen
class Rule:
    """One rule of a wire format.

    Args:
        kind: How far it looks.
        says: The rule, in one sentence.
        remedy: What to do where it is broken, in one sentence.
        fix: How a repair repairs it; ``None`` if only a guess could.
        step: When it does so: shapes (0), order (1), neighbours (2), ids (3), results without ids (4), pairs (5), the rest (6).
    """

    kind: RuleKind
    says: str
    remedy: str
    fix: Fix | None = None
    step: int = 0


@attrs.frozen(kw_only=True)
class RuleBook:
    """The rules of a format, and the checks that find what breaks them.

    Args:
        rules: Every rule, by name.
        pairing: How calls and results are written.
        message: What a message breaks by itself, given its fields and whether the list ends with it.
        shape: What a message is, for one that has no fields.
        join: The rule that two neighbours break, given their fields; ``None`` for the start and the end of the list.
        joins: The place in the message, and the text, for each rule of two neighbours.
        whole: What a list breaks besides, given the fields of its messages.
    """

    rules: Mapping[str, Rule]
    pairing: Pairing
    message: Callable[[Fields, bool], Iterator[Finding]]
    shape: str = "a message is an object with a role"
    join: Callable[[Fields | None, Fields | None], tuple[str, Side] | None] | None = None
    joins: Mapping[str, tuple[_Place, str]] = attrs.field(factory=dict[str, tuple[_Place, str]])
    whole: Callable[[Sequence[Fields]], Iterator[tuple[int, Finding]]] = lambda contents: iter(())

    def validate(self, raws: Sequence[Any]) -> list[Problem]:
        """Return every rule the list breaks, in order of place; O(parts), without an exception, whatever the list holds."""
        if not raws:
            return [self._problem("messages", "no-messages", "the list is empty")]
        contents = list(map(message_fields, raws))
        found = [(index, each) for index, raw in enumerate(raws) for each in self._alone(raw, index + 1 == len(raws))]
        found += self._neighbours(contents)
        found += self.whole(contents)
        found += self.pairing.problems(contents)
        return [self._problem(f"messages[{index}]{each[0]}", *each[1:]) for index, each in sorted(found, key=_index)]

    def alone(self, raw: Any) -> list[Problem]:
        """Return the rules that a message breaks by itself, as the last of a list."""
        return [self._problem(f"messages[0]{place}", rule, text) for place, rule, text in self._alone(raw, True)]

    def repair(self, raws: Sequence[Any]) -> Repair:
        """Return a list without problems, except for those that only a guess could fix."""
        fixes = {name: (rule.step, rule.fix) for name, rule in self.rules.items() if rule.fix is not None}
        return repair_by_rules(raws, self.validate, fixes, self.pairing)

    def _alone(self, raw: Any, last: bool) -> Iterator[Finding]:
        fields = fields_of(raw)
        if fields is None:
            return iter([("", "unreadable-message", f"{self.shape} (got {type_name(raw)})")])
        return self.message(fields, last)

    def _neighbours(self, contents: Sequence[Fields]) -> Iterator[tuple[int, Finding]]:
        """Yield the problems of all neighbours; what follows the leading system messages is at the start."""
        if self.join is None:
            return
        leading = next((place for place, fields in enumerate(contents) if fields.get("role") != "system"), len(contents))
        found: dict[tuple[int, str], None] = {}
        for place in range(len(contents) + 1):
            before = contents[place - 1] if place > leading else None
            after = contents[place] if place < len(contents) else None
            if (broken := self.join(before, after)) is not None:
                rule, side = broken
                found |= {(at, rule): None for at, name in ((place - 1, "before"), (place, "after")) if side in (name, "both")}
        for index, rule in found:
            at, text = self.joins[rule]
            yield index, (at if isinstance(at, str) else at(contents[index]), rule, text)

    def _problem(self, where: str, rule: str, message: str) -> Problem:
        return Problem(where, rule, message, self.rules[rule].remedy)


def _index(found: tuple[int, Finding]) -> int:
    return found[0]


class WireFormat(MessageFormat):
    """The base of the formats of providers: a message is a mapping, or an object of the provider's package.

    Attributes:
        name: The format's name; the shared instance bears it too, with an underscore.
        shape: What a message is, for errors.
        takes: What to pass, for errors.
        book: The provider's rules.
    """

    shape: str
    takes: str
    book: RuleBook

    def __repr__(self) -> str:
        return self.name.replace("-", "_")

    def __reduce__(self) -> str:
        return repr(self)

    def key(self, raw: Any) -> Any:
        return key_of(raw, self.to_wire)

    def validate(self, raws: Sequence[Any]) -> list[Problem]:
        return self.book.validate(raws)

    def message_problems(self, raw: Any) -> list[Problem]:
        return self.book.alone(raw)

    def repair(self, raws: Sequence[Any]) -> Repair:
        return self.book.repair(raws)

    def to_wire(self, raw: Any) -> Any:
        return plain(raw if isinstance(raw, dict) else dict(self._fields(raw)))

    def _fields(self, raw: Any, position: int = 0) -> Mapping[str, Any]:
        """Return the fields of a raw message.

        Raises:
            InvalidMessage: If it has none.
        """
        fields = fields_of(raw)
        if fields is None:
            raise InvalidMessage(f"messages[{position}]", f"{self.shape} (got {type(raw).__name__})", self.takes)
        return fields

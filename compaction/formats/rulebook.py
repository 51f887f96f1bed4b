"""The table of a wire format's rules, and the base class of the formats that validate and repair with it."""

from __future__ import annotations

import abc
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from ..errors import InvalidMessage
from ..json_data import same
from ..messages import Message, Part
from .base import JoinProblem, MessageFormat, Problem, Repair
from .pairing import Fields, Finding, Pairing, Path, message_fields, shown_path
from .repairing import RepairKind, repair_by_rules
from .wire import fields_of, plain, type_name

_Place: TypeAlias = "Path | Callable[[Fields], Path]"


@attrs.frozen
class Rule:
    """One rule of a wire format. ``docs/rules`` shows its requirement, scope and source, with examples."""

    remedy: str  # the correction, as an instruction
    repair: RepairKind | None = None  # how a fault is repaired; ``None`` if it is only reported


@attrs.frozen(kw_only=True)
class RuleBook:
    """The rules of a format, and the checks that find their faults."""

    rules: Mapping[str, Rule]  # by name, in the order of the reference page, which states the requirements
    pairing: Pairing  # the calls and results of the format
    message: Callable[[Fields], Iterator[Finding]]  # yields the rules that a message breaks by itself, given its fields
    # whether a list may end with a message of these fields, although ``message`` finds a fault in it
    accepts_last: Callable[[Fields], bool] = lambda fields: False
    shape: str = "a message is an object with a role"  # for the error about a value without fields
    # the rule that two neighbours break, given their fields; ``None`` is the start or end of the list
    join: Callable[[Fields | None, Fields | None], JoinProblem | None] | None = None
    # the place in the message, and the text, for each rule of two neighbours
    joins: Mapping[str, tuple[_Place, str]] = attrs.field(factory=dict[str, tuple[_Place, str]])
    # yields the other faults of a list, given the fields of its messages
    whole: Callable[[Sequence[Fields]], Iterator[tuple[int, Finding]]] = lambda contents: iter(())


class WireFormat(MessageFormat):
    """The base class of the providers' formats: a message is a mapping or an object of the provider's package.

    The shared instance has the format's name, with underscores.
    """

    shape: str  # of a message, for errors, as are the roles
    roles: str = "user, assistant"
    takes: str = ""  # the objects to pass, if not those of the rule ``unreadable-message``
    book: RuleBook  # the provider's rules

    @property
    def judges_joins(self) -> bool:
        """Whether the format restricts neighbours: whether its rules do, or its class replaces `join_problem` or `prefers`."""
        kind = type(self)
        defined = kind.join_problem is not WireFormat.join_problem or kind.prefers is not MessageFormat.prefers
        return defined or self.book.join is not None

    def __repr__(self) -> str:
        return self.name.replace("-", "_")

    def __reduce__(self) -> str:
        return repr(self)

    def key(self, raw: Any) -> Any:
        """Return the message as wire data, so that an object of the provider's package equals its dictionary."""
        return raw if raw.__class__ is dict or fields_of(raw) is None else self.to_wire(raw)

    # ------------------------------------------------------------------------ rules

    def validate(self, raws: Sequence[Any]) -> list[Problem]:
        """Return every rule the list breaks, in order of place; O(parts). It never raises, whatever the list contains."""
        if not raws:
            return [Problem("messages", "no-messages", "the list is empty", self.book.rules["no-messages"].remedy)]
        return [self._problem(*found) for found in self._findings(raws)]

    def message_problems(self, raw: Any) -> list[Problem]:
        return [self._problem(0, finding) for finding in self._alone(raw)]

    def repair(self, raws: Sequence[Any]) -> Repair:
        """Return the list with every fault repaired whose rule says how."""
        kinds: dict[str, RepairKind] = {name: rule.repair for name, rule in self.book.rules.items() if rule.repair is not None}
        messages, changes = repair_by_rules(raws, self._findings, kinds, self.book.pairing)
        return Repair(messages, changes, tuple(self.validate(messages)))

    def join_problem(self, before: Message | None, after: Message | None) -> JoinProblem | None:
        if (join := self.book.join) is None:
            return None
        return join(
            None if before is None else fields_of(before.raw) or {}, None if after is None else fields_of(after.raw) or {}
        )

    def _findings(self, raws: Sequence[Any]) -> list[tuple[int, Finding]]:
        """Return the place of a message and what is wrong in it, for each fault of a list, in order of place."""
        contents, book = list(map(message_fields, raws)), self.book
        judged = raws[:-1] if contents and book.accepts_last(contents[-1]) else raws
        found = [(index, finding) for index, raw in enumerate(judged) for finding in self._alone(raw)]
        found += self._neighbours(contents)
        found += book.whole(contents)
        found += book.pairing.problems(contents)
        return sorted(found, key=operator.itemgetter(0))

    def _alone(self, raw: Any) -> Iterator[Finding]:
        fields, pairing = fields_of(raw), self.book.pairing
        if fields is None:
            yield (), "unreadable-message", f"{self.book.shape} (got {type_name(raw)})"
            return
        yield from self.book.message(fields)
        for name, slots in (("call", pairing.calls(fields)), ("result", pairing.results(fields))):
            for slot in slots:
                if slot.id and not slot.key:
                    yield slot.id, f"{name}-without-id", f"the {name} has no {slot.id[-1]!r}"

    def _neighbours(self, contents: Sequence[Fields]) -> Iterator[tuple[int, Finding]]:
        """Yield the problems of all neighbours, each once; leading system messages count as no message before the next."""
        book = self.book
        if book.join is None:
            return
        leading = next((place for place, fields in enumerate(contents) if fields.get("role") != "system"), len(contents))
        found: dict[tuple[int, str], None] = {}  # a set with an order
        for place in range(len(contents) + 1):
            before = contents[place - 1] if place > leading else None
            after = contents[place] if place < len(contents) else None
            if (broken := book.join(before, after)) is not None:
                rule, side = broken
                if side != "after":
                    found[place - 1, rule] = None
                if side != "before":
                    found[place, rule] = None
        for index, rule in found:
            at, text = book.joins[rule]
            yield index, (at if isinstance(at, tuple) else at(contents[index]), rule, text)

    def _problem(self, index: int, found: Finding) -> Problem:
        path, rule, message = found
        return Problem(f"messages[{index}]{shown_path(path)}", rule, message, self.book.rules[rule].remedy)

    # ------------------------------------------------------------------------ writing

    def changed(self, message: Message, parts: Sequence[Part]) -> Message:
        fields = dict(self._fields(message.raw))
        if not same(message.parts, parts):
            self._write(fields, message, parts)
        return self.read(fields)

    def compose(self, role: str, parts: Sequence[Part]) -> list[Message]:
        return [self.changed(self.new(role, ""), parts)]

    @abc.abstractmethod
    def _write(self, fields: dict[str, Any], message: Message, parts: Sequence[Part]) -> None:
        """Put other parts into a copy of the fields of a message."""

    def to_wire(self, raw: Any) -> Any:
        return plain(raw if isinstance(raw, dict) else dict(self._fields(raw)))

    def _fields(self, raw: Any, position: int = 0) -> Mapping[str, Any]:
        """Return the fields of a raw message; raise an `InvalidMessage` if it has none."""
        fields = fields_of(raw)
        if fields is None:
            remedy = self.takes or self.book.rules["unreadable-message"].remedy
            raise InvalidMessage(f"messages[{position}]", f"{self.shape} (got {type(raw).__name__})", remedy)
        return fields

    def _role(self, fields: Mapping[str, Any], position: int) -> str:
        """Return the role of a message; raise an `InvalidMessage` if it has none."""
        role = fields.get("role")
        if not isinstance(role, str) or not role:
            what = f"a message needs a role that is a non-empty string (got {role!r})"
            raise InvalidMessage(f"messages[{position}].role", what, f"give it one of {self.roles}")
        return role

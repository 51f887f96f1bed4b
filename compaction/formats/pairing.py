"""Pairing of calls and results, for the rules and repairs of all wire formats.

An exchange is an answer with calls and the messages directly after it that may contain their results. Most formats require a
result in the exchange of its call; others also accept it later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import attrs

from .wire import fields_of

Fields: TypeAlias = Mapping[str, Any]
"""The fields of a message; empty if it has none."""
Path: TypeAlias = tuple[str | int, ...]
"""A place in a message, such as ``("content", 3)``; empty for the message itself."""
Finding: TypeAlias = tuple[Path, str, str]
"""A broken rule of a message: the place in it, the rule, and what is wrong."""

HostedStep: TypeAlias = tuple[Literal["call", "result", "caller"], str]
"""A call or result of a tool that the provider runs, with the key that both share, or the call that made another call."""

NOT_RECORDED = "The result of this call was not recorded."
"""The text of the stub that a repair adds for a missing result."""


def message_fields(raw: Any) -> Fields:
    """Return the fields of a message; a value without fields counts as a message with an empty role."""
    fields = fields_of(raw)
    return {"role": ""} if fields is None else fields


def shown_path(path: Path) -> str:
    """Return a path as problems show it.

    >>> shown_path(("content", 3, "text"))
    '.content[3].text'
    """
    return "".join(f"[{name}]" if isinstance(name, int) else f".{name}" for name in path)


@attrs.frozen
class Slot:
    """A call or a result in a message.

    Args:
        path: Its place; empty if it is the message itself.
        key: The key that the call and its result share; empty if it has none.
        id: The place of the id; empty where they are paired by name.
        optional: Whether the call needs no result.
        rule: The rule that a result without a call breaks.
    """

    path: Path
    key: str
    id: Path = ()
    optional: bool = False
    rule: str = "result-without-call"


@attrs.frozen(kw_only=True)
class Pairing:
    """The calls and results in the messages of a format.

    Args:
        calls: The calls of a message.
        results: The results of a message.
        continues: Whether a message belongs to the exchange of the message before it.
        only_results: Whether a message contains only results, so that others may still come.
        stub: A result for a call that has none, made from the call and its id; ``None`` if none can be made.
        content: The field with the blocks of a message; empty if a result is a message of its own.
        role: The role of a message of blocks with results.
        answers: Whether a stub comes after this message, which follows the call or another stub.
        anywhere: Whether a result may come in a later exchange.
        counted: Whether several calls may share a key, each with its own result.
        again: The rule that a further result breaks; empty if another check reports it.
        unknown: Whether a message stands for calls that are not in the list.
        new_id: The prefix of the ids that a repair assigns.
        movable: Whether a repair may move a block into the message before its own.
    """

    calls: Callable[[Fields], Iterable[Slot]]
    results: Callable[[Fields], Iterable[Slot]]
    continues: Callable[[Fields, Fields], bool]
    only_results: Callable[[Fields], bool]
    stub: Callable[[Any, str], Any]
    content: str = ""
    role: str = "user"
    answers: Callable[[Fields], bool] = lambda fields: False
    anywhere: bool = False
    counted: bool = False
    again: str = "duplicate-result"
    unknown: Callable[[Fields], bool] = lambda fields: False
    new_id: str = "call"
    movable: Callable[[Any], bool] = lambda block: True

    def exchanges(self, contents: Sequence[Fields]) -> Iterator[range]:
        """Yield the places of the messages of each exchange; any other message is an exchange by itself."""
        start = 0
        for end in range(1, len(contents) + 1):
            if end == len(contents) or not self.continues(contents[end - 1], contents[end]):
                yield range(start, end)
                start = end

    def problems(self, contents: Sequence[Fields]) -> Iterator[tuple[int, Finding]]:
        """Yield the place of a message and what is wrong in it: calls without results, and results without calls; O(blocks)."""
        open: dict[str, list[tuple[int, Slot]]] = {}
        answered: set[str] = set()
        unknown = False
        for exchange in self.exchanges(contents):
            for index in exchange:
                for slot in self.results(contents[index]):
                    if slot.key and (rule := self._refused(slot, open, answered, unknown=unknown)):
                        text = f"no open call {_shown(slot)} is {'' if self.anywhere else 'directly '}before it"
                        if rule == "duplicate-result":
                            text = f"the call {_shown(slot)} is answered already"
                        yield index, (slot.path, rule, text)
                for slot in self.calls(contents[index]):
                    if slot.key and self.anywhere and slot.key in open:
                        text = f"an open call has the id {slot.key!r} already"
                        yield index, (slot.id, "duplicate-call-id", text)
                    if slot.key and (self.counted or slot.key not in open):
                        open.setdefault(slot.key, []).append((index, slot))
                unknown = unknown or self.unknown(contents[index])
            last = exchange.stop == len(contents)
            if last or not self.anywhere:
                waits = last and (len(exchange) == 1 or self.only_results(contents[-1]))
                yield from self._unanswered(open, self._last_answer(contents, exchange) if waits else len(contents))
                open, answered = {}, set()

    def _last_answer(self, contents: Sequence[Fields], exchange: range) -> int:
        """Return the place where the last answer of an exchange begins: behind the results that it read, if it read any."""
        is_result = [any(True for _ in self.results(contents[index])) for index in exchange]
        while is_result and is_result[-1]:
            is_result.pop()
        while is_result and not is_result[-1]:
            is_result.pop()
        return exchange.start + len(is_result)

    def _refused(self, slot: Slot, open: dict[str, list[tuple[int, Slot]]], answered: set[str], *, unknown: bool) -> str | None:
        """Match a result to an open call; return the rule that it breaks if there is none."""
        if slot.key in open:
            open[slot.key].pop()
            if not open[slot.key]:
                del open[slot.key]
            answered.add(slot.key)
            return None
        if slot.key in answered:
            return self.again
        return None if unknown else slot.rule

    def _unanswered(self, open: Mapping[str, list[tuple[int, Slot]]], pending: int) -> Iterator[tuple[int, Finding]]:
        """Yield the calls without a result; those from the place ``pending`` on may still be answered."""
        missing = "has no result" if self.anywhere else "has no result directly after it"
        for index, slot in (each for slots in open.values() for each in slots):
            if not slot.optional:
                rule, text = ("pending-call", "has no result yet") if index >= pending else ("call-without-result", missing)
                yield index, (slot.path, rule, f"the call {_shown(slot)} {text}")


def hosted_links(steps: Iterable[HostedStep]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the provider's calls that a message leaves open, and the earlier calls that it needs; O(steps).

    Args:
        steps: The calls and results of the provider's own tools in the message, and the callers of other calls.
    """
    open: dict[str, None] = {}
    made: set[str] = set()
    earlier: dict[str, None] = {}
    for kind, key in steps:
        if kind == "call":
            made.add(key)
            open[key] = None
        elif key not in made:
            earlier[key] = None
        if kind == "result":
            open.pop(key, None)
    return tuple(open), tuple(earlier)


def _shown(slot: Slot) -> str:
    return repr(slot.key.removeprefix("function:"))

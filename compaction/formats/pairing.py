"""Pairing of calls and results, for the rules and repairs of all wire formats.

An exchange is an answer with calls and the messages directly after it that may contain their results::

    user       words                     an exchange by itself
    assistant  call a, call b            an exchange: the answer,
    tool       result a                  and a result
    user       words                     the next one begins: call b has no result

Most formats require a result in the exchange of its call; others also accept it later. Without the last message, call b is
pending: only results follow the answer, so that of b may still come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Generic, Literal, TypeAlias, TypeVar

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

_Place = TypeVar("_Place")

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
    """A call or a result in a message."""

    path: Path  # its place; empty if it is the message itself
    key: str  # that the call and its result share; empty if it has none
    id: Path = ()  # the place of the id; empty where they are paired by name
    optional: bool = False  # whether the call needs no result
    rule: str = "result-without-call"  # that a result without a call breaks

    def __str__(self) -> str:
        return repr(self.key.removeprefix("function:"))


@attrs.frozen(kw_only=True)
class Pairing:
    """The calls and results in the messages of a format."""

    calls: Callable[[Fields], Iterable[Slot]]  # of a message, as are the results
    results: Callable[[Fields], Iterable[Slot]]
    continues: Callable[[Fields, Fields], bool]  # whether a message belongs to the exchange of the message before it
    only_results: Callable[[Fields], bool]  # whether a message contains only results, so that others may still come
    stub: Callable[[Any, str], Any]  # makes a result of a call that has none, and its id; ``None`` if none can be made
    content: str = ""  # the field with the blocks of a message; empty if a result is a message of its own
    # whether a message after the call comes before an added stub: a result, or more of the same answer
    answers: Callable[[Fields], bool] = lambda fields: False
    anywhere: bool = False  # whether a result may come in a later exchange
    counted: bool = False  # whether several calls may share a key, each with its own result
    again: str = "duplicate-result"  # the rule that a second result of a call breaks; empty if another check reports it
    # whether a message stands for calls that are not in the list, so that a later result may be theirs
    unknown: Callable[[Fields], bool] = lambda fields: False
    new_id: str = "call"  # the prefix of the ids that a repair assigns
    movable: Callable[[Any], bool] = lambda block: True  # whether a repair may move a block into the message before its own

    def exchanges(self, contents: Sequence[Fields]) -> Iterator[range]:
        """Yield the places of the messages of each exchange; any other message is an exchange by itself."""
        start = 0
        for end in range(1, len(contents) + 1):
            if end == len(contents) or not self.continues(contents[end - 1], contents[end]):
                yield range(start, end)
                start = end

    def problems(self, contents: Sequence[Fields]) -> Iterator[tuple[int, Finding]]:
        """Yield the place of a message and what is wrong in it: calls without results, and results without calls; O(blocks)."""
        ledger = _Ledger(self)
        for exchange in self.exchanges(contents):
            for index in exchange:
                for slot in self.results(contents[index]):
                    if slot.key and (finding := ledger.result(slot)) is not None:
                        yield index, finding
                for slot in self.calls(contents[index]):
                    if slot.key and (finding := ledger.call(index, slot)) is not None:
                        yield index, finding
                ledger.has_unknown = ledger.has_unknown or self.unknown(contents[index])
            is_last = exchange.stop == len(contents)
            if is_last or not self.anywhere:
                yield from ledger.close(self._first_pending(contents, exchange) if is_last else len(contents))

    def _first_pending(self, contents: Sequence[Fields], exchange: range) -> int:
        """Return the place in the last exchange from which on calls may still be answered; the end of the list if none may.

        It is the start of the last answer: the second call in "call, result, call, result", the first in "call, call, result".
        """
        if len(exchange) > 1 and not self.only_results(contents[-1]):
            return len(contents)
        has_results = [any(True for _ in self.results(contents[index])) for index in exchange]
        start = exchange.start
        for index, (before, here) in enumerate(pairwise(has_results), exchange.start + 1):
            if before and not here:
                start = index
        return start


@attrs.define
class WaitingCalls(Generic[_Place]):
    """The calls that wait for a result up to a place in the list; it answers the latest call with its key. Holds state."""

    waiting: dict[str, list[tuple[int, _Place]]] = attrs.field(factory=dict[str, list[tuple[int, _Place]]], init=False)

    def enter_call(self, key: str, index: int, place: _Place) -> list[tuple[int, _Place]]:
        """Let a provider's call wait; return the calls of earlier messages that wait with its key, and now get no result.

        Groups are read by the same rule, see `Message.begins`.
        """
        calls = self.waiting.get(key)
        if calls is not None and calls[0][0] == index:
            calls.append((index, place))
            return []
        self.waiting[key] = [(index, place)]
        return calls or []

    def enter_result(self, key: str) -> bool:
        """Close the latest call with this key, and return whether there is one."""
        calls = self.waiting.get(key)
        if calls is None:
            return False
        calls.pop()
        if not calls:
            del self.waiting[key]
        return True


@attrs.define
class _Ledger(WaitingCalls[Slot]):
    """The calls and results up to a place in the list. Holds state."""

    pairing: Pairing
    has_unknown: bool = False  # whether a message stood for calls that are not in the list
    _answered: set[str] = attrs.field(factory=set[str], init=False)

    def result(self, slot: Slot) -> Finding | None:
        """Match a result to the latest call with its key; return the problem if no call waits for it."""
        if self.enter_result(slot.key):
            self._answered.add(slot.key)
            return None
        is_second = slot.key in self._answered
        rule = self.pairing.again if is_second else "" if self.has_unknown else slot.rule
        directly = "" if self.pairing.anywhere else "directly "
        is_repeated = rule == "duplicate-result"
        text = f"the call {slot} is answered already" if is_repeated else f"no open call {slot} is {directly}before it"
        return (slot.path, rule, text) if rule else None

    def call(self, index: int, slot: Slot) -> Finding | None:
        """Let a call wait for its result; return the problem if its key is taken where results may come anywhere."""
        is_repeated = slot.key in self.waiting
        if self.pairing.counted or not is_repeated:
            self.waiting.setdefault(slot.key, []).append((index, slot))
        if is_repeated and self.pairing.anywhere:
            return slot.id, "duplicate-call-id", f"an open call has the id {slot.key!r} already"
        return None

    def close(self, first_pending: int) -> Iterator[tuple[int, Finding]]:
        """Yield the calls without a result, and start the next exchange with none.

        A result may still come for calls from the place ``first_pending`` on, so these are only pending.
        """
        missing = "has no result" if self.pairing.anywhere else "has no result directly after it"
        for index, slot in (each for slots in self.waiting.values() for each in slots):
            if not slot.optional:
                is_pending = index >= first_pending
                rule, text = ("pending-call", "has no result yet") if is_pending else ("call-without-result", missing)
                yield index, (slot.path, rule, f"the call {slot} {text}")
        self.waiting, self._answered = {}, set()


def repeated(keyed: Iterable[tuple[str, _Place]]) -> Iterator[tuple[str, _Place]]:
    """Yield each key that an earlier one equals, with its place; empty keys are not compared."""
    known: set[str] = set()
    for key, place in keyed:
        if key and key in known:
            yield key, place
        known.add(key)


def hosted_links(steps: Iterable[HostedStep]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the provider's calls that a message with these steps leaves open, and the earlier calls that it needs."""
    ledger: WaitingCalls[None] = WaitingCalls()
    made: set[str] = set()
    earlier: dict[str, None] = {}  # a set with an order
    for kind, key in steps:
        if kind == "call":
            made.add(key)
            ledger.enter_call(key, 0, None)
        elif key not in made:
            earlier[key] = None
        elif kind == "result":
            ledger.enter_result(key)
    return tuple(ledger.waiting), tuple(earlier)

"""Selectors of the groups to keep: any callable from an index to a set of groups, combined with ``|``, ``&`` and ``~``.

    >>> last(tokens=20_000) | kinds(GroupKind.USER)
    last(tokens=20000) | kinds(GroupKind.USER)

A count grows to whole groups, so that ``last(messages=4)`` may keep five; a range of tokens shrinks to whole groups, the newest
excepted. ``first`` counts system messages, ``last`` does not; neither counts summaries. A collapsed tool call counts as a tool
call.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from itertools import islice
from typing import Final, TypeAlias

import attrs

from .algebra import Conjunction, Constant, Disjunction, Lifted, Negation, Predicate
from .errors import ConfigurationError
from .index import GroupKind, MessageGroup, MessageIndex

__all__ = [
    "Selector",
    "SelectorLike",
    "as_selector",
    "everything",
    "first",
    "fitting",
    "kinds",
    "last",
    "nothing",
    "pinned",
    "system",
    "tools",
]


_CALL: Final = GroupKind.TOOL_CALL


_Choice: TypeAlias = Callable[[MessageIndex], Iterable[MessageGroup | int]]


class Selector(Predicate["Selector", _Choice]):
    """A choice among the groups in the view; O(groups) unless it says otherwise."""

    __slots__ = ()

    _not_an_answer = "a choice, not an answer: combine selectors with | & ~, and call one with an index to see it"

    @abc.abstractmethod
    def __call__(self, index: MessageIndex) -> frozenset[int]:
        """Return the ids of the chosen groups, all of them in the view."""

    def _lift(self, other: SelectorLike) -> Selector:
        return as_selector(other)


SelectorLike: TypeAlias = Selector | _Choice
"""A selector, or a function that can be one: it returns groups or their ids."""


def as_selector(choice: SelectorLike) -> Selector:
    """Return the choice as a selector; a plain function is lifted, and groups outside the view are left out of its answer.

    Raises:
        ConfigurationError: If it is not callable.
    """
    if isinstance(choice, Selector):
        return choice
    if not callable(choice):
        raise ConfigurationError(f"a selector is a callable of an index (got {choice!r}); see compaction.selectors")
    return _Function(choice)


class _Function(Lifted[Selector, _Choice], Selector):
    __slots__ = ()

    def __call__(self, index: MessageIndex) -> frozenset[int]:
        chosen = (group if isinstance(group, int) else group.id for group in self.function(index))
        return frozenset(id for id in chosen if index.is_included(id))


class _Union(Disjunction[Selector, _Choice], Selector):
    __slots__ = ()

    def __call__(self, index: MessageIndex) -> frozenset[int]:
        return frozenset[int]().union(*(part(index) for part in self.parts))


class _Intersection(Conjunction[Selector, _Choice], Selector):
    __slots__ = ()

    def __call__(self, index: MessageIndex) -> frozenset[int]:
        chosen = [part(index) for part in self.parts]
        return chosen[0].intersection(*chosen[1:])


class _Complement(Negation[Selector, _Choice], Selector):
    __slots__ = ()

    def __call__(self, index: MessageIndex) -> frozenset[int]:
        chosen = self.part(index)
        return frozenset([id for id in index.included_ids if id not in chosen])


Selector.connectives = (_Intersection, _Union, _Complement)


class _Constant(Constant[Selector, _Choice], Selector):
    __slots__ = ()

    _names = ("nothing", "everything")

    def __call__(self, index: MessageIndex) -> frozenset[int]:
        return frozenset(index.included_ids) if self.value else frozenset()


@attrs.frozen(repr=False)
class _Pinned(Selector):
    def __call__(self, index: MessageIndex) -> frozenset[int]:
        return frozenset([id for id in index.included_ids if id in index.columns.pinned])

    def __repr__(self) -> str:
        return "pinned"


@attrs.frozen(repr=False)
class _Kinds(Selector):
    kinds: tuple[GroupKind, ...]

    def __call__(self, index: MessageIndex) -> frozenset[int]:
        kind, collapsed = index.columns.kind, index.columns.is_collapsed
        return frozenset([id for id in index.included_ids if (_CALL if collapsed(id) else kind(id)) in self.kinds])

    def __repr__(self) -> str:
        return f"kinds({', '.join(map(repr, self.kinds))})"


@attrs.frozen(repr=False)
class _Tools(Selector):
    patterns: tuple[str, ...]

    def __call__(self, index: MessageIndex) -> frozenset[int]:
        calling = [group for group in index.included_groups if group.tool_calls or group.is_collapsed]
        return frozenset([group.id for group in calling if any(map(self._matches, group.tool_names))])

    def _matches(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self.patterns)

    def __repr__(self) -> str:
        return f"tools({', '.join(map(repr, self.patterns))})"


@attrs.frozen(repr=False)
class _Range(Selector):
    """A number of messages, groups, turns or tokens from one end."""

    end: str
    unit: str
    amount: int
    of: Selector | None

    def __call__(self, index: MessageIndex) -> frozenset[int]:
        amount = self.amount
        if index.context.expected_tokens and amount and self.end == "last" and self.of is None:
            amount = max(0, amount - self._expected(index))
        if not amount:
            return frozenset()
        return frozenset(_RANGES[self.unit](index, self._candidates(index), amount))

    def _expected(self, index: MessageIndex) -> int:
        """Return how much of the range will be taken by what a rehearsal expects at the end of the view.

        For messages and groups that is as many as there would be if each were as large as the largest group in the range, and
        at least one; a new turn is not certain.
        """
        tokens = index.context.expected_tokens
        if self.unit == "tokens":
            return tokens
        if self.unit == "turns":
            return 0
        largest = max(map(index.columns.tokens, _RANGES[self.unit](index, self._candidates(index), self.amount)), default=1)
        return max(1, tokens // max(1, largest))

    def _candidates(self, index: MessageIndex) -> Iterator[int]:
        allowed = None if self.of is None else self.of(index)
        ids = index.included_ids
        for id in ids if self.end == "first" else reversed(ids):
            kind = index.columns.kind(id)
            beside = kind is GroupKind.SUMMARY and not index.columns.is_collapsed(id)
            if beside or (kind is GroupKind.SYSTEM and self.end == "last"):
                continue
            if allowed is None or id in allowed:
                yield id

    def __repr__(self) -> str:
        of = "" if self.of is None else f", of={self.of!r}"
        return f"{self.end}({self.unit}={self.amount!r}{of})"


def _by_messages(index: MessageIndex, ids: Iterator[int], amount: int) -> Iterator[int]:
    seen = 0
    for id in ids:
        yield id
        seen += index.columns.messages_in(id)
        if seen >= amount:
            return


def _by_turns(index: MessageIndex, ids: Iterator[int], amount: int) -> Iterator[int]:
    turns: set[int] = set()
    for id in ids:
        turn = index.columns.turn(id)
        if turn:
            turns.add(turn)
        if len(turns) > amount or (turn == 0 and len(turns) == amount):
            return
        yield id


def _by_tokens(index: MessageIndex, ids: Iterator[int], amount: int) -> Iterator[int]:
    seen = 0
    for place, id in enumerate(ids):
        seen += index.columns.tokens(id)
        if place and seen > amount:
            return
        yield id


@attrs.frozen(repr=False)
class _Fitting(Selector):
    """The first choice with which the request fits."""

    tokens: int
    choices: tuple[Selector, ...]

    def __call__(self, index: MessageIndex) -> frozenset[int]:
        free, tokens = index.removable_ids(), index.columns.tokens
        *wanted, least = self.choices
        for choice in wanted:
            kept = choice(index)
            if index.tokens - sum(tokens(id) for id in free if id not in kept) <= self.tokens:
                return kept
        return least(index)

    def __repr__(self) -> str:
        return f"fitting({', '.join(map(repr, (self.tokens, *self.choices)))})"


_RANGES: Final[dict[str, Callable[[MessageIndex, Iterator[int], int], Iterator[int]]]] = {
    "messages": _by_messages,
    "groups": lambda _, ids, amount: islice(ids, amount),
    "turns": _by_turns,
    "tokens": _by_tokens,
}


def _range(end: str, of: SelectorLike | None, amounts: dict[str, int | None]) -> Selector:
    given = {unit: amount for unit, amount in amounts.items() if amount is not None}
    if len(given) != 1:
        raise ConfigurationError(f"{end}(): give exactly one of {', '.join(amounts)} (got {', '.join(given) or 'none'})")
    ((unit, amount),) = given.items()
    if isinstance(amount, bool) or not isinstance(amount, int) or amount < 0:
        raise ConfigurationError(f"{end}({unit}={amount!r}): the amount is a whole number >= 0")
    return _Range(end, unit, amount, None if of is None else as_selector(of))


everything: Final[Selector] = _Constant(True)
"""Every group in the view."""

nothing: Final[Selector] = _Constant(False)
"""No group."""

pinned: Final[Selector] = _Pinned()
"""Pinned groups; edits that would remove them are always refused."""


def kinds(*kinds: GroupKind) -> Selector:
    """Return a selector of the groups of these kinds; a collapsed tool call is of the kind ``TOOL_CALL``.

    Raises:
        ConfigurationError: If one is not a `GroupKind`.

    >>> kinds(GroupKind.USER, GroupKind.SYSTEM)
    kinds(GroupKind.USER, GroupKind.SYSTEM)
    """
    for kind in kinds:
        if not isinstance(kind, GroupKind):
            raise ConfigurationError(f"kinds({kind!r}): name kinds as GroupKind.USER")
    return _Kinds(kinds)


system: Final[Selector] = kinds(GroupKind.SYSTEM)
"""System and developer messages; edits that would remove them are refused unless a strategy's options allow it."""


def tools(*names: str) -> Selector:
    """Return a selector of the tool-call groups that call one of these tools, collapsed ones included.

    Args:
        names: Tool names, or shell-style patterns such as ``"browser_*"``.

    >>> tools("read_file", "browser_*")
    tools('read_file', 'browser_*')
    """
    return _Tools(names)


def first(
    *, messages: int | None = None, groups: int | None = None, turns: int | None = None, of: SelectorLike | None = None
) -> Selector:
    """Return a selector of the beginning of the view, system messages counted, summaries not.

    Args:
        messages: At least this many messages, in whole groups.
        groups: This many groups.
        turns: Everything up to the end of this many user turns.
        of: Count and choose only among these groups.

    Raises:
        ConfigurationError: Unless exactly one amount is given, >= 0.

    >>> conversation = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}]
    >>> first(messages=1)(MessageIndex(conversation, counter="chars/4"))
    frozenset({0})
    """
    return _range("first", of, {"messages": messages, "groups": groups, "turns": turns})


def last(
    *,
    messages: int | None = None,
    groups: int | None = None,
    turns: int | None = None,
    tokens: int | None = None,
    of: SelectorLike | None = None,
) -> Selector:
    """Return a selector of the end of the view, neither system messages nor summaries counted.

    Args:
        messages: At least this many messages, in whole groups.
        groups: This many groups.
        turns: This many user turns.
        tokens: As many whole groups as fit in this many tokens, the newest in any case.
        of: Count and choose only among these groups: ``last(groups=1, of=kinds(GroupKind.TOOL_CALL))``.

    Raises:
        ConfigurationError: Unless exactly one amount is given, >= 0.
    """
    return _range("last", of, {"messages": messages, "groups": groups, "turns": turns, "tokens": tokens})


def fitting(tokens: int, *choices: SelectorLike) -> Selector:
    """Return a selector that chooses as the first of several does with which the request fits, or else as the last.

    Counted are the chosen groups, all groups that cannot leave anyway, summaries, and what is sent besides the messages; all
    else counts as removed. O(groups) for each choice.

    Args:
        tokens: The tokens that the request may have, >= 0.
        choices: Selectors, the most wanted first; one or more.

    Raises:
        ConfigurationError: If ``tokens`` is not a whole number >= 0, or no choice is given.

    >>> conversation = [{"role": "user", "content": "word " * 80}] * 5
    >>> sorted(fitting(300, last(messages=4), last(messages=2))(MessageIndex(conversation, counter="chars/4")))
    [3, 4]
    """
    if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 0 or not choices:
        raise ConfigurationError(f"fitting({tokens!r}, {len(choices)} choices): a whole number >= 0, and at least one choice")
    return _Fitting(tokens, tuple(map(as_selector, choices)))

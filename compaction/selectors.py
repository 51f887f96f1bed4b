"""Selectors: which groups are kept. Any callable from an index to a set of groups, combined with ``|``, ``&`` and ``~``.

    >>> last(tokens=20_000) | kinds(GroupKind.USER)
    last(tokens=20000) | kinds(GroupKind.USER)

A count grows to whole groups, so that ``last(messages=4)`` may keep five; a range of tokens shrinks to whole groups, the newest
excepted. ``first`` counts system messages, ``last`` does not; neither counts summaries. A collapsed tool call is none: to every
selector it is what it stands for.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Final, NoReturn, TypeAlias

import attrs

from .errors import ConfigurationError
from .groups import GroupKind, MessageGroup
from .index import MessageIndex

__all__ = [
    "Selector",
    "SelectorLike",
    "as_selector",
    "everything",
    "first",
    "kinds",
    "last",
    "nothing",
    "pinned",
    "system",
    "tools",
]


_CALL: Final = GroupKind.TOOL_CALL
"""What a collapsed call counts as."""


class Selector(abc.ABC):
    """A choice among the groups an index shows; O(groups) unless it says otherwise."""

    __slots__ = ()

    @abc.abstractmethod
    def __call__(self, index: MessageIndex) -> frozenset[int]:
        """The ids of the chosen groups, all of them in the view."""

    def __or__(self, other: SelectorLike) -> Selector:
        return _Union(_flat(_Union, self, as_selector(other)))

    def __ror__(self, other: SelectorLike) -> Selector:
        return _Union(_flat(_Union, as_selector(other), self))

    def __and__(self, other: SelectorLike) -> Selector:
        return _Intersection(_flat(_Intersection, self, as_selector(other)))

    def __rand__(self, other: SelectorLike) -> Selector:
        return _Intersection(_flat(_Intersection, as_selector(other), self))

    def __invert__(self) -> Selector:
        return _Complement(self)

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"{self!r} is a choice, not an answer: combine selectors with | & ~, and call one with an index to see it"
        )


SelectorLike: TypeAlias = Selector | Callable[[MessageIndex], Iterable[MessageGroup | int]]
"""A selector, or a function that can be one: it returns groups or their ids."""


def as_selector(choice: SelectorLike) -> Selector:
    """The choice as a selector; a plain function is lifted, and what it returns beyond the view is left out.

    Raises:
        ConfigurationError: If it is no callable.
    """
    if isinstance(choice, Selector):
        return choice
    if not callable(choice):
        raise ConfigurationError(f"a selector is a callable of an index (got {choice!r}); see compaction.selectors")
    return _Function(choice)


def _flat(kind: type[_Union | _Intersection], *selectors: Selector) -> tuple[Selector, ...]:
    flat: list[Selector] = []
    for selector in selectors:
        flat.extend(selector.selectors if isinstance(selector, kind) else (selector,))
    return tuple(flat)


@attrs.frozen(repr=False)
class _Function(Selector):
    function: Callable[[MessageIndex], Iterable[MessageGroup | int]]

    def __call__(self, index: MessageIndex) -> frozenset[int]:
        chosen = (group if isinstance(group, int) else group.id for group in self.function(index))
        return frozenset(id for id in chosen if index.is_included(id))

    def __repr__(self) -> str:
        return getattr(self.function, "__qualname__", None) or repr(self.function)


@attrs.frozen(repr=False)
class _Union(Selector):
    selectors: tuple[Selector, ...]

    def __call__(self, index: MessageIndex) -> frozenset[int]:
        return frozenset[int]().union(*(selector(index) for selector in self.selectors))

    def __repr__(self) -> str:
        return " | ".join(repr(selector) for selector in self.selectors)


@attrs.frozen(repr=False)
class _Intersection(Selector):
    selectors: tuple[Selector, ...]

    def __call__(self, index: MessageIndex) -> frozenset[int]:
        chosen = [selector(index) for selector in self.selectors]
        return chosen[0].intersection(*chosen[1:])

    def __repr__(self) -> str:
        return " & ".join(f"({each!r})" if isinstance(each, _Union) else repr(each) for each in self.selectors)


@attrs.frozen(repr=False)
class _Complement(Selector):
    selector: Selector

    def __call__(self, index: MessageIndex) -> frozenset[int]:
        chosen = self.selector(index)
        return frozenset([group.id for group in index.included_groups if group.id not in chosen])

    def __invert__(self) -> Selector:
        return self.selector

    def __repr__(self) -> str:
        return f"~({self.selector!r})" if isinstance(self.selector, _Union | _Intersection) else f"~{self.selector!r}"


@attrs.frozen(repr=False)
class _Constant(Selector):
    all: bool

    def __call__(self, index: MessageIndex) -> frozenset[int]:
        return frozenset([group.id for group in index.included_groups]) if self.all else frozenset()

    def __invert__(self) -> Selector:
        return nothing if self.all else everything

    def __repr__(self) -> str:
        return "everything" if self.all else "nothing"


@attrs.frozen(repr=False)
class _Pinned(Selector):
    def __call__(self, index: MessageIndex) -> frozenset[int]:
        return frozenset([group.id for group in index.included_groups if group.pinned])

    def __repr__(self) -> str:
        return "pinned"


@attrs.frozen(repr=False)
class _Kinds(Selector):
    kinds: tuple[GroupKind, ...]

    def __call__(self, index: MessageIndex) -> frozenset[int]:
        groups = index.included_groups
        return frozenset([group.id for group in groups if (_CALL if group.is_collapsed else group.kind) in self.kinds])

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
    """So many messages, groups, turns or tokens from one end."""

    end: str
    unit: str
    amount: int
    of: Selector | None

    def __call__(self, index: MessageIndex) -> frozenset[int]:
        chosen = frozenset[int]()
        if self.amount:
            chosen = frozenset(_RANGES[self.unit](self._candidates(index), self.amount))
        return chosen

    def _candidates(self, index: MessageIndex) -> Iterator[MessageGroup]:
        allowed = None if self.of is None else self.of(index)
        groups = index.included_groups
        for group in groups if self.end == "first" else reversed(groups):
            beside = group.kind is GroupKind.SUMMARY and not group.is_collapsed
            if beside or (group.kind is GroupKind.SYSTEM and self.end == "last"):
                continue
            if allowed is None or group.id in allowed:
                yield group

    def __repr__(self) -> str:
        of = "" if self.of is None else f", of={self.of!r}"
        return f"{self.end}({self.unit}={self.amount!r}{of})"


def _by_messages(groups: Iterator[MessageGroup], amount: int) -> Iterator[int]:
    seen = 0
    for group in groups:
        yield group.id
        seen += len(group.messages)
        if seen >= amount:
            return


def _by_groups(groups: Iterator[MessageGroup], amount: int) -> Iterator[int]:
    for group, _ in zip(groups, range(amount), strict=False):
        yield group.id


def _by_turns(groups: Iterator[MessageGroup], amount: int) -> Iterator[int]:
    turns: set[int] = set()
    for group in groups:
        if group.turn:
            turns.add(group.turn)
        if len(turns) > amount or (group.turn == 0 and len(turns) == amount):
            return
        yield group.id


def _by_tokens(groups: Iterator[MessageGroup], amount: int) -> Iterator[int]:
    seen = 0
    for place, group in enumerate(groups):
        seen += group.tokens
        if place and seen > amount:
            return
        yield group.id


_RANGES: Final[dict[str, Callable[[Iterator[MessageGroup], int], Iterator[int]]]] = {
    "messages": _by_messages,
    "groups": _by_groups,
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
"""Groups somebody asked to keep; edits that would remove them are refused in any case."""


def kinds(*kinds: GroupKind) -> Selector:
    """The groups of these kinds; a collapsed tool call is of the kind ``TOOL_CALL``.

    Raises:
        ConfigurationError: If one is no `GroupKind`.

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
    """The tool-call groups that call one of these tools, collapsed ones too.

    Args:
        names: Tool names, or shell-style patterns such as ``"browser_*"``.

    >>> tools("read_file", "browser_*")
    tools('read_file', 'browser_*')
    """
    return _Tools(names)


def first(
    *, messages: int | None = None, groups: int | None = None, turns: int | None = None, of: SelectorLike | None = None
) -> Selector:
    """The beginning of the view, system messages counted, summaries not.

    Args:
        messages: At least so many messages, whole groups.
        groups: So many groups.
        turns: Everything up to the end of so many user turns.
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
    """The end of the view, neither system messages nor summaries counted.

    Args:
        messages: At least so many messages, whole groups.
        groups: So many groups.
        turns: The last so many user turns.
        tokens: As many whole groups as fit in so many tokens, the newest in any case.
        of: Count and choose only among these groups: ``last(groups=1, of=kinds(GroupKind.TOOL_CALL))``.

    Raises:
        ConfigurationError: Unless exactly one amount is given, >= 0.
    """
    return _range("last", of, {"messages": messages, "groups": groups, "turns": turns, "tokens": tokens})

"""Selectors: values that choose groups of a conversation, such as those that a strategy keeps.

    >>> last(tokens=20_000) | kinds(GroupKind.USER)
    last(tokens=20000) | kinds(GroupKind.USER)

They are combined with ``|``, ``&`` and ``~``. Rules for `first` and `last`:

- Only whole groups are chosen. A number of messages is rounded up, so that ``last(messages=4)`` may keep five. A number of
  tokens is rounded down, but the newest group is always chosen.
- `last` skips system messages that must stay and never chooses them; `first` chooses them. A reminder that a later one
  replaced may leave, so `last` counts it.
- Neither chooses a summary. `last` skips summaries; `first` ends at one, since the messages behind it are not the first. A
  collapsed tool call is treated as a tool call.
"""

from __future__ import annotations

import abc
import reprlib
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from itertools import islice, takewhile
from typing import Any, Final, TypeAlias

import attrs

from . import summarizers
from .algebra import Conjunction, Constant, Disjunction, Lifted, Negation, Predicate
from .checks import checked_count, is_count, refuse_uncalled
from .errors import ConfigurationError, StrategyError
from .index import GroupKind, MessageGroup, MessageIndex

__all__ = [
    "Selector",
    "SelectorLike",
    "as_selector",
    "demonstrations",
    "everything",
    "first",
    "fitting",
    "kinds",
    "last",
    "nothing",
    "pinned",
    "spoken",
    "system",
    "tools",
]


_Choice: TypeAlias = Callable[[MessageIndex], Iterable[MessageGroup | int]]


class Selector(Predicate["Selector", _Choice]):
    """Chooses groups of the view, which is the list that would be sent now; O(groups) unless the docstring says otherwise."""

    __slots__ = ()

    _not_an_answer = "a selector, which has no truth value: combine selectors with | & ~; call one with an index for its groups"

    @abc.abstractmethod
    def __call__(self, index: MessageIndex) -> frozenset[int]:
        """Return the ids of the chosen groups, all of them in the view."""

    def _lift(self, other: SelectorLike) -> Selector:
        return as_selector(other)


SelectorLike: TypeAlias = Selector | _Choice
"""A selector, or a function of an index that returns groups or their ids."""


def as_selector(choice: SelectorLike) -> Selector:
    """Return the selector; a plain function is wrapped in one that ignores groups outside the view.

    Raises:
        ConfigurationError: If it is not callable.
    """
    if isinstance(choice, Selector):
        return choice
    if not callable(choice):
        remedy = f"; write last(groups={choice})" if is_count(choice) else ""
        raise ConfigurationError(f"a selector must be a callable that takes an index (got {choice!r}){remedy}")
    refuse_uncalled(choice, "a selector")
    return _Function(choice)


class _Function(Lifted[Selector, _Choice], Selector):
    __slots__ = ()

    def __call__(self, index: MessageIndex) -> frozenset[int]:
        answer: Any = self.function(index)
        chosen: list[Any] = list(answer) if hasattr(answer, "__iter__") else [answer]
        if not all(isinstance(each, MessageGroup | int) for each in chosen):
            raise StrategyError(f"the selector {self!r} returned {reprlib.repr(answer)}; return groups, or their ids")
        ids = [each if isinstance(each, int) else each.id for each in chosen]
        return frozenset(filter(index.is_included, ids))


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


Selector.connectives = {Conjunction: _Intersection, Disjunction: _Union, Negation: _Complement}


class _Constant(Constant[Selector, _Choice], Selector):
    __slots__ = ()

    _names = ("nothing", "everything")

    def __call__(self, index: MessageIndex) -> frozenset[int]:
        return frozenset(index.included_ids) if self.value else frozenset()


@attrs.frozen(repr=False)
class _Call(Selector):
    """A selector that calls a function with fixed arguments; ``None`` for a constant, whose `repr` has no parentheses."""

    name: str
    choose: Callable[..., Iterable[int]]
    arguments: tuple[object, ...] | None = None

    def __call__(self, index: MessageIndex) -> frozenset[int]:
        return frozenset(self.choose(index, *self.arguments or ()))

    def __repr__(self) -> str:
        return self.name if self.arguments is None else f"{self.name}({', '.join(map(repr, self.arguments))})"


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
        """Return how many messages, groups, turns or tokens of the range will be new ones, which are not in the view yet.

        A session that prepares a summary ahead sets ``expected_tokens``, the tokens of these messages. Each new message or
        group is assumed to be as large as the largest group in the range, and there is at least one. No new turn is expected.
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
            is_summary = kind is GroupKind.SUMMARY and not index.columns.is_collapsed(id)
            if is_summary and self.end == "first":
                return  # the first messages are in it, and those behind it are newer
            stays = kind is GroupKind.SYSTEM and id not in index.columns.grouping.instructions.outdated
            is_counted = not is_summary and not (stays and self.end == "last")
            if is_counted and (allowed is None or id in allowed):
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
        if turn:  # None: no turn; 0: before the first user message
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
    return _Range(end, unit, checked_count(f"{end}: {unit!r}", amount), None if of is None else as_selector(of))


everything: Final[Selector] = _Constant(True)
"""Every group in the view."""

nothing: Final[Selector] = _Constant(False)
"""No group."""


def _that_are_pinned(index: MessageIndex) -> list[int]:
    return [id for id in index.included_ids if id in index.columns.pinned]


pinned: Final[Selector] = _Call("pinned", _that_are_pinned)
"""Pinned groups; an edit that would remove one is always refused."""


def kinds(*kinds: GroupKind) -> Selector:
    """Return a selector of the groups of these kinds; a collapsed tool call has the kind ``TOOL_CALL``.

    Raises:
        ConfigurationError: If one is not a `GroupKind`.

    >>> kinds(GroupKind.USER, GroupKind.SYSTEM)
    kinds(GroupKind.USER, GroupKind.SYSTEM)
    """
    for kind in kinds:
        if not isinstance(kind, GroupKind):
            raise ConfigurationError(f"kinds({kind!r}): a kind is a member of GroupKind, such as GroupKind.USER")
    return _Call("kinds", _of_kinds, kinds)


def _of_kinds(index: MessageIndex, *kinds: GroupKind) -> list[int]:
    kind, is_collapsed, summary = index.columns.kind, index.columns.is_collapsed, GroupKind.SUMMARY
    found = [(id, kind(id)) for id in index.included_ids]
    return [id for id, of in found if (GroupKind.TOOL_CALL if of is summary and is_collapsed(id) else of) in kinds]


def demonstrations() -> Selector:
    r"""Return a selector of the user messages at the start of the view that show how work is done.

    They are long, in good part what programs printed, and another user message follows before any answer: the task.

    >>> shown = "An example:\n" + "2026-01-03 10:11:12 ERROR no disk\n" * 200
    >>> opening = [{"role": "user", "content": shown}, {"role": "user", "content": "Now fix the test."}]
    >>> demonstrations()(MessageIndex(opening, counter="chars/4"))
    frozenset({0})
    """
    return _Call("demonstrations", _that_demonstrate, ())


def _that_demonstrate(index: MessageIndex) -> list[int]:
    kind = index.columns.kind
    opening = takewhile(lambda id: kind(id) in (GroupKind.SYSTEM, GroupKind.USER), index.included_ids)
    before_task = [id for id in opening if kind(id) is GroupKind.USER][:-1]
    return [id for id in before_task if any(summarizers.extractive.shows_work(each.text) for each in index.read_originals(id))]


def spoken() -> Selector:
    """Return a selector of the groups in which the user says something, also beside or through the results of tools; O(groups).

    >>> said = [{"role": "user", "content": "Fix the test."}, {"role": "assistant", "content": "Done."}]
    >>> spoken()(MessageIndex(said, counter="chars/4"))
    frozenset({0})
    """
    return _Call("spoken", _that_speak, ())


def _that_speak(index: MessageIndex) -> list[int]:
    columns, found, before = index.columns, list[int](), 0
    user, calls = GroupKind.USER, GroupKind.TOOL_CALL
    for id in index.included_ids:
        kind = columns.kind(id)
        turn = columns.turn(id) or before
        if kind is user or (kind is calls and (columns.asks_user(id) or (turn > before and index.group(id).is_spoken))):
            found.append(id)
        before = max(before, turn)
    return found


system: Final[Selector] = kinds(GroupKind.SYSTEM)
"""System and developer messages. An edit that would remove one is refused, unless the strategy has ``drop_system=True``, or
the message is a reminder in mid-conversation that a later one replaced."""


def tools(*names: str) -> Selector:
    """Return a selector of the tool-call groups that call one of these tools, including collapsed ones.

    Args:
        names: Tool names, or shell-style patterns such as ``"browser_*"``.

    Raises:
        ConfigurationError: If one is not a text.

    >>> tools("read_file", "browser_*")
    tools('read_file', 'browser_*')
    """
    for name in names:
        if not isinstance(name, str):
            raise ConfigurationError(f"tools({name!r}): a name is a text; pass the names one by one, such as tools('a', 'b')")
    return _Call("tools", _that_call, names)


def _that_call(index: MessageIndex, *patterns: str) -> list[int]:
    calling = [group for group in index.included_groups if group.tool_calls or group.is_collapsed]
    return [group.id for group in calling if any(fnmatchcase(name, each) for name in group.tool_names for each in patterns)]


def first(
    *, messages: int | None = None, groups: int | None = None, turns: int | None = None, of: SelectorLike | None = None
) -> Selector:
    """Return a selector of the first groups of the view, system messages included, up to the first summary.

    Args:
        messages: At least this many messages, in whole groups.
        groups: This many groups.
        turns: All groups up to the end of this many user turns, counted in the view.
        of: A selector of the groups among which to count and choose.

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
    """Return a selector of the last groups of the view; summaries and system messages that must stay are skipped.

    Args:
        messages: At least this many messages, in whole groups.
        groups: This many groups.
        turns: This many user turns.
        tokens: As many whole groups as fit in this many tokens, but at least the newest.
        of: A selector of the groups among which to count and choose: ``last(groups=1, of=kinds(GroupKind.TOOL_CALL))``.

    Raises:
        ConfigurationError: Unless exactly one amount is given, >= 0.
    """
    return _range("last", of, {"messages": messages, "groups": groups, "turns": turns, "tokens": tokens})


def fitting(tokens: int, *choices: SelectorLike) -> Selector:
    """Return a selector that uses the first choice with which the request has at most so many tokens, or else the last.

    The size of the request is that of the chosen groups, the groups that may not be removed, and the overhead sent outside the
    messages. O(groups) for each choice.

    Args:
        tokens: The most tokens of the request, >= 0.
        choices: One or more selectors, in the order of preference.

    Raises:
        ConfigurationError: If ``tokens`` is not a whole number >= 0, or no choice is given.

    >>> conversation = [{"role": "user", "content": "word " * 80}] * 5
    >>> sorted(fitting(300, last(messages=4), last(messages=2))(MessageIndex(conversation, counter="chars/4")))
    [3, 4]
    """
    if not choices:
        raise ConfigurationError(f"fitting({tokens!r}): give one selector or more")
    return _Call("fitting", _that_fit, (checked_count("fitting: 'tokens'", tokens), *map(as_selector, choices)))


def _that_fit(index: MessageIndex, limit: int, *choices: Selector) -> frozenset[int]:
    free, tokens = index.removable_ids(), index.columns.tokens
    *wanted, least = choices
    for choice in wanted:
        kept = choice(index)
        if index.tokens - sum(tokens(id) for id in free if id not in kept) <= limit:
            return kept
    return least(index)

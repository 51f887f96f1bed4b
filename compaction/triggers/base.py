"""The base class of triggers, their operators ``&``, ``|`` and ``~``, and the constants ``always`` and ``never``.

A trigger is a condition on a `MessageIndex`. A strategy runs when its trigger is true (it *fires*), and stops when its target,
which is a trigger too, is true. Built-in triggers are immutable, compare by value and can be pickled; their ``repr`` is the
expression that builds them. A plain function becomes a trigger when it is combined with one:
``tokens_exceed(50_000) & (lambda index: night())``.

    >>> from compaction.triggers import has_tool_calls, tokens_exceed, turns_exceed
    >>> tokens_exceed(60_000) & has_tool_calls | turns_exceed(40)
    tokens_exceed(60000) & has_tool_calls | turns_exceed(40)
    >>> ~~has_tool_calls == has_tool_calls
    True
"""

from __future__ import annotations

import abc
import reprlib
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from ..algebra import Conjunction, Constant, Disjunction, Lifted, Negation, Predicate
from ..checks import is_count, refuse_uncalled
from ..errors import ConfigurationError, StrategyError
from ..index import MessageIndex

_Condition: TypeAlias = Callable[[MessageIndex], bool]


class Trigger(Predicate["Trigger", _Condition]):
    """A condition on an index. Evaluating a built-in trigger costs O(1), unless its docstring says otherwise.

    A plain function or a subclass can be one; ``docs/own-strategies.md`` shows both.
    """

    __slots__ = ()

    _not_an_answer = "a trigger, which has no truth value: combine triggers with & | ~; call one with an index to evaluate it"

    @abc.abstractmethod
    def __call__(self, index: MessageIndex) -> bool:
        """Return whether the condition holds."""

    @abc.abstractmethod
    def explain(self, index: MessageIndex) -> str:
        """Return in words why it holds or not, with the figures compared."""

    def token_limit(self, index: MessageIndex) -> int | None:
        """Return the number of tokens with which the trigger compares a request; ``None`` if it does not compare tokens.

        ``a | b`` has the lower limit of its parts, ``a & b`` the higher, and ``~a`` none.
        """
        return None

    def _lift(self, other: TriggerLike) -> Trigger:
        return as_trigger(other)


TriggerLike: TypeAlias = Trigger | _Condition
"""A trigger, or a function that can be used as one."""


def as_trigger(condition: TriggerLike) -> Trigger:
    """Return the condition as a trigger; a plain function is wrapped in one.

    Raises:
        ConfigurationError: If it is not callable.
    """
    if isinstance(condition, Trigger):
        return condition
    if isinstance(condition, bool) or not callable(condition):
        remedy = f"; write tokens_exceed({condition})" if is_count(condition) else ", or always or never"
        raise ConfigurationError(f"a trigger must be a callable that takes an index (got {condition!r}){remedy}")
    refuse_uncalled(condition, "a trigger")
    return _Function(condition)


def checked_answer(trigger: Trigger, answer: object) -> bool:
    """Return a trigger's answer.

    Raises:
        StrategyError: If it is not a bool, such as the ``None`` of a function without ``return``.
    """
    if isinstance(answer, bool):
        return answer
    raise StrategyError(f"the trigger {trigger!r} returned {reprlib.repr(answer)}; return True or False, such as bool(...)")


class _Function(Lifted[Trigger, _Condition], Trigger):
    __slots__ = ()

    def __call__(self, index: MessageIndex) -> bool:
        return checked_answer(self, self.function(index))

    def explain(self, index: MessageIndex) -> str:
        return f"{self!r} says {'yes' if self(index) else 'no'}"


# Loops are faster than all() and any(), and a target is evaluated before each edit.
class _All(Conjunction[Trigger, _Condition], Trigger):
    __slots__ = ()

    def __call__(self, index: MessageIndex) -> bool:
        for part in self.parts:  # noqa: SIM110
            if not part(index):
                return False
        return True

    def explain(self, index: MessageIndex) -> str:
        return self._written(" and ", lambda part: part.explain(index))

    def token_limit(self, index: MessageIndex) -> int | None:
        return max(_limits(self.parts, index), default=None)


class _Any(Disjunction[Trigger, _Condition], Trigger):
    __slots__ = ()

    def __call__(self, index: MessageIndex) -> bool:
        for part in self.parts:  # noqa: SIM110
            if part(index):
                return True
        return False

    def explain(self, index: MessageIndex) -> str:
        return " or ".join([part.explain(index) for part in self.parts])

    def token_limit(self, index: MessageIndex) -> int | None:
        return min(_limits(self.parts, index), default=None)


def _limits(parts: Iterable[Trigger], index: MessageIndex) -> list[int]:
    return [limit for part in parts if (limit := part.token_limit(index)) is not None]


class _Not(Negation[Trigger, _Condition], Trigger):
    __slots__ = ()

    def __call__(self, index: MessageIndex) -> bool:
        return not self.part(index)

    def explain(self, index: MessageIndex) -> str:
        return f"not ({self.part.explain(index)})"


Trigger.connectives = {Conjunction: _All, Disjunction: _Any, Negation: _Not}


class _Constant(Constant[Trigger, _Condition], Trigger):
    __slots__ = ()

    _names = ("never", "always")

    def __call__(self, index: MessageIndex) -> bool:
        return self.value

    def explain(self, index: MessageIndex) -> str:
        return repr(self)


always: Final[Trigger] = _Constant(True)
"""Always fires."""

never: Final[Trigger] = _Constant(False)
"""Never fires; a strategy with this target makes every edit that it can."""

"""The base of triggers: any callable ``index -> bool``, combined with ``&``, ``|`` and ``~``.

A built-in trigger is a frozen value: equal by value, picklable, with a ``repr`` that builds it. A plain function is lifted when
it is combined with a trigger: ``tokens_exceed(50_000) & (lambda index: night())``.

    >>> from compaction.triggers import has_tool_calls, tokens_exceed, turns_exceed
    >>> tokens_exceed(60_000) & has_tool_calls | turns_exceed(40)
    tokens_exceed(60000) & has_tool_calls | turns_exceed(40)
    >>> ~~has_tool_calls == has_tool_calls
    True
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable
from typing import TypeAlias

from ..algebra import Conjunction, Disjunction, Lifted, Negation, Predicate
from ..errors import ConfigurationError
from ..index import MessageIndex

_Condition: TypeAlias = Callable[[MessageIndex], bool]


class Trigger(Predicate["Trigger", _Condition]):
    """A condition on an index. The built-in ones cost O(1) to ask, unless they say otherwise."""

    __slots__ = ()

    _not_an_answer = "a condition, not an answer: combine triggers with & | ~, and call one with an index to ask it"

    @abc.abstractmethod
    def __call__(self, index: MessageIndex) -> bool:
        """Return whether the condition holds."""

    @abc.abstractmethod
    def explain(self, index: MessageIndex) -> str:
        """Return in words why it holds or not, with the figures compared."""

    def token_limit(self, index: MessageIndex) -> int | None:
        """Return the tokens past which a request makes it fire; ``None`` if it does not compare tokens with a limit.

        Of several limits, it is the lowest where any part is enough, and the highest where all parts must hold.
        """
        return None

    def _lift(self, other: TriggerLike) -> Trigger:
        return as_trigger(other)


TriggerLike: TypeAlias = Trigger | _Condition
"""A trigger, or a function that can be one."""


def as_trigger(condition: TriggerLike) -> Trigger:
    """Return the condition as a trigger; a plain function is lifted.

    Raises:
        ConfigurationError: If it is not callable.
    """
    if isinstance(condition, Trigger):
        return condition
    if isinstance(condition, bool) or not callable(condition):
        raise ConfigurationError(f"a trigger is a callable of an index (got {condition!r}); use always or never for a constant")
    return _Function(condition)


class _Function(Lifted[Trigger, _Condition], Trigger):
    __slots__ = ()

    def __call__(self, index: MessageIndex) -> bool:
        return bool(self.function(index))

    def explain(self, index: MessageIndex) -> str:
        return f"{self!r} says {'yes' if self(index) else 'no'}"


# Loops, not all() and any(): a target is asked once for each step of a strategy.
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


Trigger.connectives = (_All, _Any, _Not)

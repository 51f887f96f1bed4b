"""The algebra of triggers: any callable ``index -> bool``, combined with ``&``, ``|`` and ``~``.

A built-in trigger is a frozen value: equal by value, picklable, its ``repr`` the expression that builds it. A plain function
becomes one as soon as it meets one: ``tokens_exceed(50_000) & (lambda index: night())``.

    >>> from compaction.triggers import has_tool_calls, tokens_exceed, turns_exceed
    >>> tokens_exceed(60_000) & has_tool_calls | turns_exceed(40)
    tokens_exceed(60000) & has_tool_calls | turns_exceed(40)
    >>> ~~has_tool_calls == has_tool_calls
    True
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import NoReturn, TypeAlias

import attrs

from ..errors import ConfigurationError
from ..index import MessageIndex

__all__ = ["Trigger", "TriggerLike", "as_trigger"]


class Trigger(abc.ABC):
    """A condition on an index. Cost: that of what it asks; the built-ins ask in O(1)."""

    __slots__ = ()

    @abc.abstractmethod
    def __call__(self, index: MessageIndex) -> bool:
        """Whether the condition holds."""

    @abc.abstractmethod
    def explain(self, index: MessageIndex) -> str:
        """In words, why it holds or not, with the figures compared."""

    def __and__(self, other: TriggerLike) -> Trigger:
        return _All(_flat(_All, self, as_trigger(other)))

    def __rand__(self, other: TriggerLike) -> Trigger:
        return _All(_flat(_All, as_trigger(other), self))

    def __or__(self, other: TriggerLike) -> Trigger:
        return _Any(_flat(_Any, self, as_trigger(other)))

    def __ror__(self, other: TriggerLike) -> Trigger:
        return _Any(_flat(_Any, as_trigger(other), self))

    def __invert__(self) -> Trigger:
        return _Not(self)

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"{self!r} is a condition, not an answer: combine triggers with & | ~, and call one with an index to ask it"
        )


TriggerLike: TypeAlias = Trigger | Callable[[MessageIndex], bool]
"""A trigger, or a function that can be one."""


def as_trigger(condition: TriggerLike) -> Trigger:
    """The condition as a trigger; a plain function is lifted.

    Raises:
        ConfigurationError: If it is no callable.
    """
    if isinstance(condition, Trigger):
        return condition
    if isinstance(condition, bool) or not callable(condition):
        raise ConfigurationError(f"a trigger is a callable of an index (got {condition!r}); use always or never for a constant")
    return _Function(condition)


def _flat(kind: type[_All | _Any], *triggers: Trigger) -> tuple[Trigger, ...]:
    """The triggers, with nested ones of the same kind spread out."""
    flat: list[Trigger] = []
    for trigger in triggers:
        flat.extend(trigger.triggers if isinstance(trigger, kind) else (trigger,))
    return tuple(flat)


@attrs.frozen(repr=False)
class _Function(Trigger):
    function: Callable[[MessageIndex], bool]

    def __call__(self, index: MessageIndex) -> bool:
        return bool(self.function(index))

    def explain(self, index: MessageIndex) -> str:
        return f"{self!r} says {'yes' if self(index) else 'no'}"

    def __repr__(self) -> str:
        return getattr(self.function, "__qualname__", None) or repr(self.function)


@attrs.frozen(repr=False)
class _All(Trigger):
    triggers: tuple[Trigger, ...]

    def __call__(self, index: MessageIndex) -> bool:
        return all(trigger(index) for trigger in self.triggers)

    def explain(self, index: MessageIndex) -> str:
        return " and ".join(_inside(trigger, trigger.explain(index)) for trigger in self.triggers)

    def __repr__(self) -> str:
        return " & ".join(_inside(trigger, repr(trigger)) for trigger in self.triggers)


@attrs.frozen(repr=False)
class _Any(Trigger):
    triggers: tuple[Trigger, ...]

    def __call__(self, index: MessageIndex) -> bool:
        return any(trigger(index) for trigger in self.triggers)

    def explain(self, index: MessageIndex) -> str:
        return " or ".join(trigger.explain(index) for trigger in self.triggers)

    def __repr__(self) -> str:
        return " | ".join(repr(trigger) for trigger in self.triggers)


@attrs.frozen(repr=False)
class _Not(Trigger):
    trigger: Trigger

    def __call__(self, index: MessageIndex) -> bool:
        return not self.trigger(index)

    def explain(self, index: MessageIndex) -> str:
        return f"not ({self.trigger.explain(index)})"

    def __invert__(self) -> Trigger:
        return self.trigger

    def __repr__(self) -> str:
        return f"~({self.trigger!r})" if isinstance(self.trigger, _All | _Any) else f"~{self.trigger!r}"


def _inside(trigger: Trigger, text: str) -> str:
    """The text in parentheses where ``&`` would otherwise take it apart."""
    return f"({text})" if isinstance(trigger, _Any) else text

"""A Boolean algebra of predicates: ``&``, ``|`` and ``~`` for triggers and selectors.

`Predicate` is the base of a kind of predicate. It flattens ``a & (b & c)``, lifts plain functions on either side, and refuses
``bool()``. A kind says what is lifted, and adds a class for each connective that combines the answers.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, ClassVar, Generic, NoReturn, TypeVar, cast

import attrs

__all__ = ["Conjunction", "Constant", "Disjunction", "Lifted", "Negation", "Predicate"]

_P = TypeVar("_P", bound="Predicate[Any, Any]")
_F = TypeVar("_F", bound=Callable[..., Any])


class Predicate(abc.ABC, Generic[_P, _F]):
    """The base of a kind of predicate; ``_P`` is that kind, ``_F`` the functions that it lifts."""

    __slots__ = ()

    _not_an_answer: ClassVar[str]
    """The end of the error that `bool` raises: what to do instead."""

    connectives: ClassVar[tuple[Callable[[Any], Any], Callable[[Any], Any], Callable[[Any], Any]]]
    """The `Conjunction`, the `Disjunction` and the `Negation` of this kind."""

    @abc.abstractmethod
    def _lift(self, other: _P | _F) -> _P:
        """Return a predicate as it is, or a function as a predicate."""

    def _made(self, kind: int, of: Any) -> _P:
        made: _P = self.connectives[kind](of)
        return made

    def __and__(self, other: _P | _F) -> _P:
        return self._made(0, _flat(Conjunction, self, self._lift(other)))

    def __rand__(self, other: _P | _F) -> _P:
        return self._made(0, _flat(Conjunction, self._lift(other), self))

    def __or__(self, other: _P | _F) -> _P:
        return self._made(1, _flat(Disjunction, self, self._lift(other)))

    def __ror__(self, other: _P | _F) -> _P:
        return self._made(1, _flat(Disjunction, self._lift(other), self))

    def __invert__(self) -> _P:
        return self._made(2, self)

    def __bool__(self) -> NoReturn:
        raise TypeError(f"{self!r} is {self._not_an_answer}")


def _flat(kind: Any, *operands: Any) -> tuple[Any, ...]:
    """Return the operands, those of the same connective replaced by their parts."""
    flat: list[Any] = []
    for operand in operands:
        flat.extend(operand.parts if isinstance(operand, kind) else (operand,))
    return tuple(flat)


@attrs.frozen(repr=False)
class Conjunction(Predicate[_P, _F]):
    """Holds where all parts hold."""

    parts: tuple[_P, ...]

    def _written(self, connective: str, text: Callable[[_P], str]) -> str:
        """Return the texts of the parts, a disjunction in parentheses."""
        return connective.join([f"({text(part)})" if isinstance(part, Disjunction) else text(part) for part in self.parts])

    def __repr__(self) -> str:
        return self._written(" & ", repr)


@attrs.frozen(repr=False)
class Disjunction(Predicate[_P, _F]):
    """Holds where any part holds."""

    parts: tuple[_P, ...]

    def __repr__(self) -> str:
        return " | ".join(map(repr, self.parts))


@attrs.frozen(repr=False)
class Negation(Predicate[_P, _F]):
    """Holds where its part does not."""

    part: _P

    def __invert__(self) -> _P:
        return self.part

    def __repr__(self) -> str:
        return f"~({self.part!r})" if isinstance(self.part, Conjunction | Disjunction) else f"~{self.part!r}"


@attrs.frozen(repr=False)
class Constant(Predicate[_P, _F]):
    """A predicate that has one answer for every index."""

    value: bool

    _names: ClassVar[tuple[str, str]]
    """The names of the constants that are false and true."""

    def __invert__(self) -> _P:
        return cast("_P", attrs.evolve(self, value=not self.value))

    def __repr__(self) -> str:
        return self._names[self.value]


@attrs.frozen(repr=False)
class Lifted(Predicate[_P, _F]):
    """A plain function as a predicate."""

    function: _F

    def __repr__(self) -> str:
        return cast("str", getattr(self.function, "__qualname__", None) or repr(self.function))

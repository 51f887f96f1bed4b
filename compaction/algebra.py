"""The operators ``&``, ``|`` and ``~`` of triggers and selectors.

`Predicate` is the base class of both. It flattens ``a & (b & c)``, accepts a plain function on either side of an operator, and
refuses ``bool()``. Triggers and selectors each subclass the operators, to combine the answers of the parts.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, NoReturn, TypeVar, cast

import attrs

__all__ = ["Conjunction", "Constant", "Disjunction", "Lifted", "Negation", "Predicate"]

_P = TypeVar("_P", bound="Predicate[Any, Any]")
_F = TypeVar("_F", bound=Callable[..., Any])


class Predicate(abc.ABC, Generic[_P, _F]):
    """The base class of triggers and of selectors; ``_P`` is one of the two, ``_F`` the functions that it lifts."""

    __slots__ = ()

    _not_an_answer: ClassVar[str]
    """The end of the error that ``bool()`` raises, with the remedy."""

    connectives: ClassVar[Mapping[type, Callable[[Any], Any]]]
    """For each of `Conjunction`, `Disjunction` and `Negation`, the subclass that answers; assigned below the subclasses."""

    @abc.abstractmethod
    def _lift(self, other: _P | _F) -> _P:
        """Return the predicate; a function is wrapped in one."""

    def _joined(self, kind: type[Any], *operands: Any) -> _P:
        """Return a connective of the operands; an operand that is such a connective itself is replaced by its parts."""
        flat = [part for each in operands for part in (each.parts if isinstance(each, kind) else (each,))]
        joined: _P = self.connectives[kind](tuple(flat))
        return joined

    def __and__(self, other: _P | _F) -> _P:
        return self._joined(Conjunction, self, self._lift(other))

    def __rand__(self, other: _P | _F) -> _P:
        return self._joined(Conjunction, self._lift(other), self)

    def __or__(self, other: _P | _F) -> _P:
        return self._joined(Disjunction, self, self._lift(other))

    def __ror__(self, other: _P | _F) -> _P:
        return self._joined(Disjunction, self._lift(other), self)

    def __invert__(self) -> _P:
        negated: _P = self.connectives[Negation](self)
        return negated

    def __bool__(self) -> NoReturn:
        raise TypeError(f"{self!r} is {self._not_an_answer}")


@attrs.frozen(repr=False)
class Conjunction(Predicate[_P, _F]):
    """``a & b``."""

    parts: tuple[_P, ...]

    def _written(self, connective: str, text: Callable[[_P], str]) -> str:
        """Return the texts of the parts, a disjunction in parentheses, joined by a connective."""
        return connective.join([f"({text(part)})" if isinstance(part, Disjunction) else text(part) for part in self.parts])

    def __repr__(self) -> str:
        return self._written(" & ", repr)


@attrs.frozen(repr=False)
class Disjunction(Predicate[_P, _F]):
    """``a | b``."""

    parts: tuple[_P, ...]

    def __repr__(self) -> str:
        return " | ".join(map(repr, self.parts))


@attrs.frozen(repr=False)
class Negation(Predicate[_P, _F]):
    """``~a``."""

    part: _P

    def __invert__(self) -> _P:
        return self.part

    def __repr__(self) -> str:
        return f"~({self.part!r})" if isinstance(self.part, Conjunction | Disjunction) else f"~{self.part!r}"


@attrs.frozen(repr=False)
class Constant(Predicate[_P, _F]):
    """A predicate with the same answer for every index."""

    value: bool

    _names: ClassVar[tuple[str, str]]
    """The names of the false and of the true constant."""

    def __invert__(self) -> _P:
        return cast("_P", attrs.evolve(self, value=not self.value))

    def __repr__(self) -> str:
        return self._names[self.value]


@attrs.frozen(repr=False)
class Lifted(Predicate[_P, _F]):
    """A plain function that is used as a predicate."""

    function: _F

    def __repr__(self) -> str:
        return cast("str", getattr(self.function, "__qualname__", None) or repr(self.function))

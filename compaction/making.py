"""Frozen values, made fast.

attrs fills a frozen value through ``object.__setattr__``, 50 ns a field; one that is not frozen is filled by plain assignment,
10 ns. A conversation becomes several such values a message, which makes this a seventh of the time of a run. `maker` fills a
value of the same layout that is not frozen yet, and then makes it one of the frozen class: nobody sees it in between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import attrs

__all__ = ["maker"]

_P = ParamSpec("_P")
_T = TypeVar("_T")


def maker(frozen: Callable[_P, _T]) -> Callable[_P, _T]:
    """What makes values of a frozen class just as the class does, at half the cost or less.

    Args:
        frozen: A frozen attrs class without validators, declared with ``weakref_slot=False`` so that its layout can be matched.

    Returns:
        A callable for those places where speed counts; the class itself where its layout cannot be matched.

    >>> @attrs.frozen(weakref_slot=False)
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> point = maker(Point)(3)
    >>> point, point == Point(3), type(point) is Point
    (Point(x=3, y=0), True, True)
    >>> point.x = 4
    Traceback (most recent call last):
    attr.exceptions.FrozenInstanceError: can't set attribute
    >>> maker(attrs.make_class("Elsewhere", ["x"], frozen=True))
    <class '....Elsewhere'>
    """
    kind: Any = frozen

    def freeze(value: Any) -> None:
        value.__class__ = kind

    fields = {field.name: attrs.field(default=field.default, converter=field.converter) for field in attrs.fields(kind)}
    open_kind: Any = attrs.make_class(
        kind.__name__, fields, class_body={"__attrs_post_init__": freeze}, eq=False, repr=False, slots=True, weakref_slot=False
    )
    try:
        freeze(object.__new__(open_kind))
    except TypeError:
        return frozen
    return open_kind  # type: ignore[no-any-return]

"""What is wrong with a file, in words: every mistake with its place, the rule and what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs

from ..errors import CompactionError
from .parts import nearest

__all__ = ["told"]


def told(error: BaseException) -> list[str]:
    """Each mistake that an error of the converter stands for, as ``place: rule``.

    Raises:
        BaseException: The error itself, if it is none of the converter's or this package's.
    """
    if isinstance(error, CompactionError):
        return [str(error)]
    return [f"{place.removeprefix('.')}: {text}" if place else text for place, text in _each(error, "")]


def _each(error: BaseException, place: str) -> Iterator[tuple[str, str]]:
    from cattrs import ClassValidationError, ForbiddenExtraKeysError, IterableValidationError

    if isinstance(error, IterableValidationError):
        yield from _nested(error, lambda note: f"{place}[{note.index}]", place)
    elif isinstance(error, ClassValidationError):
        yield from _nested(error, lambda note: f"{place}.{note.name}", place)
    elif isinstance(error, ForbiddenExtraKeysError):
        known = [field.alias for field in attrs.fields(error.cl)]
        yield from ((place, f"unknown key {key!r}; {nearest(key, known)}") for key in sorted(error.extra_fields))
    elif isinstance(error, KeyError):
        yield place, f"{error.args[0]!r} is missing"
    elif isinstance(error, CompactionError):
        yield place, str(error)
    elif isinstance(error, RecursionError):
        yield f"{place[:40]}...", "it is nested too deeply, or holds itself; write it out"
    elif isinstance(error, TypeError | ValueError):
        yield place, f"it cannot be used ({error})"
    else:
        raise error


def _nested(error: Any, named: Callable[[Any], str], place: str) -> Iterator[tuple[str, str]]:
    """The errors within a group, each at the place its note names."""
    noted, others = error.group_exceptions()
    for inner, note in noted:
        missing = isinstance(inner, KeyError)
        yield from _each(inner, place if missing else named(note))
    for inner in others:
        yield from _each(inner, place)

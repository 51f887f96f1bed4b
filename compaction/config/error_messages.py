"""Messages for the errors in a pipeline file: each with its place, the rule and what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs

from ..errors import CompactionError
from .registry import suggestion

__all__ = ["error_messages"]


def error_messages(error: BaseException) -> list[str]:
    """Return a message ``place: rule`` for each mistake that an error of the converter reports.

    Raises:
        BaseException: The error itself, if neither the converter nor this package raised it.
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
        yield from ((place, f"unknown key {key!r}; {suggestion(key, known)}") for key in sorted(error.extra_fields))
    elif isinstance(error, KeyError):
        yield place, f"{error.args[0]!r} is missing"
    elif isinstance(error, CompactionError):
        yield place, str(error)
    elif isinstance(error, RecursionError):
        yield f"{place[:40]}...", "it is nested too deeply, or contains itself; write it out"
    elif isinstance(error, TypeError | ValueError):
        yield place, f"it cannot be used ({error})"
    else:
        raise error


def _nested(error: Any, place_of: Callable[[Any], str], place: str) -> Iterator[tuple[str, str]]:
    """Yield the errors within a group, each at the place that its note names."""
    noted, others = error.group_exceptions()
    for inner, note in noted:
        missing = isinstance(inner, KeyError)
        yield from _each(inner, place if missing else place_of(note))
    for inner in others:
        yield from _each(inner, place)

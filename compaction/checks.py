"""Validators for attrs classes, whose errors name the class, the argument, the rule and the value; warnings for callers.

>>> import attrs
>>> @attrs.frozen
... class Window:
...     tokens: int = attrs.field(validator=count(1))
>>> Window(0)
Traceback (most recent call last):
compaction.errors.ConfigurationError: Window: 'tokens' must be a whole number >= 1 (got 0)
"""

from __future__ import annotations

import inspect
import os
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, Final, TypeAlias, TypeGuard

import attrs

from .errors import ConfigurationError

__all__ = [
    "Validator",
    "above",
    "at_least",
    "checked_count",
    "count",
    "default_of",
    "is_count",
    "is_number",
    "made",
    "must_be",
    "one_of",
    "refuse_uncalled",
    "share",
    "size_remedy",
    "warn_caller",
    "whole",
]

Validator: TypeAlias = Callable[[Any, "attrs.Attribute[Any]", Any], None]
"""A function that attrs calls with the instance, the attribute and the value."""


def is_count(value: object, least: int = 0) -> TypeGuard[int]:
    """Return whether a value is a whole number of ``least`` or more; a boolean is not."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


_SIZE: Final = re.compile(r"\s*(\d{1,12})\s*([km]?)\s*", re.IGNORECASE | re.ASCII)
_PACKAGE: Final = f"{Path(__file__).parent}{os.sep}"
_MAKERS: Final = tuple(f"{__name__.partition('.')[0]}.{name}" for name in ("presets", "triggers", "selectors"))


def size_remedy(value: object) -> str:
    """Return the end of an error about a number that was written as text, such as ``"8k"``; empty for any other value.

    >>> size_remedy("8k")
    '; write 8_000, a number'
    """
    found = _SIZE.fullmatch(value) if isinstance(value, str) else None
    return f"; write {int(found[1]) * {'': 1, 'k': 1_000, 'm': 1_000_000}[found[2].lower()]:_}, a number" if found else ""


def checked_count(what: str, value: object, least: int = 0) -> int:
    """Return a whole number of ``least`` or more.

    Args:
        what: The argument and its place, for the error.
        value: The value.
        least: The least that it may be.

    Raises:
        ConfigurationError: If it is another value.

    >>> checked_count("budget", "8k", 1)
    Traceback (most recent call last):
    compaction.errors.ConfigurationError: budget must be a whole number >= 1 (got '8k'); write 8_000, a number
    """
    if not is_count(value, least):
        raise ConfigurationError(f"{what} must be a whole number >= {least} (got {value!r}){size_remedy(value)}", subject=what)
    return value


def refuse_uncalled(given: object, what: str) -> None:
    """Refuse a class, or a function of this package that makes the wanted value: its parentheses were forgotten.

    Args:
        given: The value that a caller passed.
        what: The wanted value, such as ``"a strategy"``.

    Raises:
        ConfigurationError: If it is such a class or function.

    >>> refuse_uncalled(dict, "a strategy")
    Traceback (most recent call last):
    compaction.errors.ConfigurationError: dict makes a strategy and is not one; call it with its arguments: dict(...)
    """
    if isinstance(given, type) or (isinstance(given, FunctionType) and (given.__module__ or "").startswith(_MAKERS)):
        name = given.__name__
        raise ConfigurationError(f"{name} makes {what} and is not one; call it with its arguments: {name}(...)")


def made(what: str, kind: Any) -> Validator:
    """Return a validator for objects of a kind (``what``), which refuses the class itself or another object."""

    def check(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        """Raise an error if the value is a class or not of this kind."""
        refuse_uncalled(value, what)
        if not isinstance(value, kind):
            raise _wrong(instance, attribute, f"must be {what} (got {value!r:.100}); pass an object")

    return check


def warn_caller(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside this package that led here; Python shows a warning once for each line."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_code.co_filename.startswith((_PACKAGE, "<attrs ")):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)


def must_be(rule: str, holds: Callable[[Any], bool]) -> Validator:
    """Return a validator for values for which ``holds`` is true, as ``rule`` says in an error."""

    def check(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        """Raise an error unless the rule holds."""
        if not holds(value):
            raise _wrong(instance, attribute, f"must be {rule} (got {value!r}){size_remedy(value)}")

    return check


def _wrong(instance: object, attribute: attrs.Attribute[Any], rule: str) -> ConfigurationError:
    """Return the error for an argument of an attrs class that breaks a rule."""
    name = type(instance).__name__
    if name.startswith("_"):  # a function made it: `every` makes an ``_Every``
        name = re.sub(r"\B(?=[A-Z])", "_", name[1:]).lower()
    subject = f"{name}: {attribute.name!r}"
    return ConfigurationError(f"{subject} {rule}", argument=attribute.name, subject=subject)


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a number; a boolean is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def count(least: int = 0) -> Validator:
    """Return a validator for whole numbers of ``least`` or more."""
    return must_be(f"a whole number >= {least}", lambda value: is_count(value, least))


whole: Final = must_be("a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool))
"""Validates a whole number of either sign."""

share: Final = must_be("a share above 0 and at most 1", lambda value: is_number(value) and 0 < value <= 1)
"""Validates a share: a number above 0 and at most 1."""


def one_of(*values: str) -> Validator:
    """Return a validator for a text that is one of these."""
    return must_be(f"one of {', '.join(values)}", lambda value: value in values)


def above(limit: float) -> Validator:
    """Return a validator for numbers above ``limit``."""
    return must_be(f"a number above {limit:g}", lambda value: is_number(value) and value > limit)


def at_least(limit: float) -> Validator:
    """Return a validator for numbers of ``limit`` or more."""
    return must_be(f"a number of {limit:g} or more", lambda value: is_number(value) and value >= limit)


def default_of(field: attrs.Attribute[Any], instance: Any) -> object:
    """Return the default value of a field of an attrs object."""
    default: Any = field.default
    if not hasattr(default, "takes_self"):  # not an attrs.Factory
        return default
    return default.factory(instance) if default.takes_self else default.factory()

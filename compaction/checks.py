"""Validators for attrs classes, whose errors name the class, the argument, the rule and the value.

>>> import attrs
>>> @attrs.frozen
... class Window:
...     tokens: int = attrs.field(validator=count(1))
>>> Window(0)
Traceback (most recent call last):
compaction.errors.ConfigurationError: Window: 'tokens' must be a whole number >= 1 (got 0)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import attrs

from .errors import ConfigurationError

__all__ = ["Validator", "above", "count", "one_of", "share", "whole"]

Validator: TypeAlias = Callable[[Any, "attrs.Attribute[Any]", Any], None]
"""A function that attrs calls with the instance, the attribute and the value."""


def _fail(instance: Any, attribute: attrs.Attribute[Any], rule: str, value: Any) -> ConfigurationError:
    return ConfigurationError(f"{type(instance).__name__}: {attribute.name!r} must be {rule} (got {value!r})")


def count(least: int = 0) -> Validator:
    """Return a validator for whole numbers of ``least`` or more."""

    def check(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise _fail(instance, attribute, f"a whole number >= {least}", value)

    return check


def whole(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    """Validate a whole number of either sign."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise _fail(instance, attribute, "a whole number", value)


def share(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    """Validate a share: above 0 and at most 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise _fail(instance, attribute, "a share above 0 and at most 1", value)


def one_of(*values: str) -> Validator:
    """Return a validator for a text that is one of these."""

    def check(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        if value not in values:
            raise _fail(instance, attribute, f"one of {', '.join(values)}", value)

    return check


def above(limit: float) -> Validator:
    """Return a validator for numbers above ``limit``."""

    def check(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > limit:
            raise _fail(instance, attribute, f"a number above {limit:g}", value)

    return check

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
from typing import Any, Final, TypeAlias

import attrs

from .errors import ConfigurationError

__all__ = ["Validator", "above", "count", "is_count", "one_of", "share", "whole"]

Validator: TypeAlias = Callable[[Any, "attrs.Attribute[Any]", Any], None]
"""A function that attrs calls with the instance, the attribute and the value."""


def is_count(value: object, least: int = 0) -> bool:
    """Return whether a value is a whole number of ``least`` or more; a boolean is not."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _validator(rule: str, holds: Callable[[Any], bool]) -> Validator:
    def check(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        """Raise an error unless the rule holds."""
        if not holds(value):
            raise ConfigurationError(f"{type(instance).__name__}: {attribute.name!r} must be {rule} (got {value!r})")

    return check


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def count(least: int = 0) -> Validator:
    """Return a validator for whole numbers of ``least`` or more."""
    return _validator(f"a whole number >= {least}", lambda value: is_count(value, least))


whole: Final = _validator("a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool))
"""Validates a whole number of either sign."""

share: Final = _validator("a share above 0 and at most 1", lambda value: _is_number(value) and 0 < value <= 1)
"""Validates a share: a number above 0 and at most 1."""


def one_of(*values: str) -> Validator:
    """Return a validator for a text that is one of these."""
    return _validator(f"one of {', '.join(values)}", lambda value: value in values)


def above(limit: float) -> Validator:
    """Return a validator for numbers above ``limit``."""
    return _validator(f"a number above {limit:g}", lambda value: _is_number(value) and value > limit)

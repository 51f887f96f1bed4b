"""Whether a framework is there, and new enough: asked once, when something that needs it is made."""

from __future__ import annotations

import re
from importlib import import_module, metadata
from typing import Any

from ..errors import ConfigurationError

__all__ = ["load", "require"]


def require(distribution: str, *, extra: str, least: str) -> None:
    """Make sure that a framework can be used.

    Args:
        distribution: What it is installed as.
        extra: The extra of this package that brings it.
        least: The oldest release that these integrations are tested against.

    Raises:
        ConfigurationError: If it is missing or older; says which extra brings which release.

    >>> require("no-such-framework", extra="langchain", least="1.4")
    Traceback (most recent call last):
    ...
    compaction.errors.ConfigurationError: no-such-framework is not installed; install compaction-toolkit[langchain], ...
    """
    remedy = f"install compaction-toolkit[{extra}], which brings {distribution} {least} or newer"
    try:
        found = metadata.version(distribution)
    except metadata.PackageNotFoundError as error:
        raise ConfigurationError(f"{distribution} is not installed; {remedy}") from error
    if _release(found) < _release(least):
        raise ConfigurationError(f"{distribution} {found} is too old; {remedy}")


def load(module: str) -> Any:
    """A framework's module, loaded where it is used; untyped, for type checkers run where the framework is not installed."""
    return import_module(module)


def _release(version: str) -> tuple[int, ...]:
    """The numbers a version begins with; what follows them (``rc1``, ``.dev0``) is not compared."""
    numbers = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(number) for number in numbers.group().split(".")) if numbers else ()

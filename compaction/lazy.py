"""Exports that are imported at their first use, so that a program loads only the parts it uses."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType

__all__ = ["export_lazily"]


def export_lazily(package: str, modules: Mapping[str, str]) -> None:
    """Make a package import names from its modules when they are first used (PEP 562).

    The package also imports them under ``if TYPE_CHECKING:``, for type checkers and editors; a test compares the two.

    Args:
        package: The package's ``__name__``.
        modules: Each module, relative to the package, and the names that the package exports from it, separated by spaces.
            The modules themselves are loaded at their first use too.

    >>> import compaction
    >>> export_lazily("compaction", {"triggers": "", "index": "Drop Replace"})
    >>> compaction.Drop.__name__, compaction.triggers.__name__
    ('Drop', 'compaction.triggers')
    """
    loaded = sys.modules[package]
    places = {name: module for module, names in modules.items() for name in names.split()}

    def get(name: str) -> object:
        if name not in places and name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"{package}.{places.get(name, name)}")
        value = vars(loaded)[name] = getattr(module, name) if name in places else module
        return value

    vars(loaded).update(__getattr__=get, __dir__=lambda: sorted({*vars(loaded), *places, *modules}), __places__=places)
    loaded.__class__ = _LazyPackage


class _LazyPackage(ModuleType):
    """A package whose exports hide modules of the same name, in whichever order the two are loaded."""

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute, unless it is a module that an export hides: the import system sets each module it has loaded."""
        if not (isinstance(value, ModuleType) and name in vars(self)["__places__"]):
            super().__setattr__(name, value)

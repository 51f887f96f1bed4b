"""Packages that import their exports at first use, so that a program loads only the modules it needs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType

__all__ = ["export_lazily"]


def export_lazily(package: str, modules: Mapping[str, str]) -> None:
    """Make a package import each name from its module when the name is first used (PEP 562).

    A package's ``__init__`` calls this once. It also imports the names under ``if TYPE_CHECKING:``, for type checkers and
    editors; a test compares the two.

    Args:
        package: The package's ``__name__``.
        modules: Each module of the package, with the names that the package exports from it, separated by spaces. A module
            itself is loaded at its first use too.

    >>> import compaction
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
    """A package in which an export hides the module of the same name, whichever is loaded first."""

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute, unless it is a module hidden by an export: the import system sets each module that it loads."""
        if not (isinstance(value, ModuleType) and name in vars(self)["__places__"]):
            super().__setattr__(name, value)

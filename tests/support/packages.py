"""The packages that a program needs and that this environment lacks."""

from __future__ import annotations

import ast
from importlib.util import find_spec


def missing_packages(code: str) -> list[str]:
    """Return the packages that a program imports and that are not installed.

    A namespace such as ``google`` belongs to several packages, so there the next part of the name decides.
    """
    nodes = list(ast.walk(ast.parse(code)))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return sorted({package for package in map(_package, names) if find_spec(package) is None})


def _package(name: str) -> str:
    """Return the importable name that stands for the package of a module."""
    top, *rest = name.split(".")
    spec = find_spec(top)
    is_namespace = spec is not None and spec.origin is None and spec.submodule_search_locations is not None
    return f"{top}.{rest[0]}" if is_namespace and rest else top

"""The packages that a program needs and that this environment lacks."""

from __future__ import annotations

import ast
from importlib.util import find_spec


def missing_packages(code: str) -> list[str]:
    """Return the packages that a program imports and that are not installed."""
    nodes = list(ast.walk(ast.parse(code)))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return sorted({top for name in names if find_spec(top := name.partition(".")[0]) is None})

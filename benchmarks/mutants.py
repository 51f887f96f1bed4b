"""Mutants: copies of a module with one small mistake.

A comparison or a condition is negated, ``and`` becomes ``or``, a ``not`` is removed, a number is one larger, a Boolean is
negated, a sum becomes a difference, a loop breaks instead of continuing, a function returns nothing, a statement is removed.
Strings are not changed: most are messages for people, and tests do not check their wording.
"""

from __future__ import annotations

import ast
import copy
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import attrs

Change = Callable[[Any], ast.AST]

_TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
_COUNTED: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add}
_NO_CODE = frozenset({"annotation", "returns", "decorator_list"})


@attrs.frozen
class Mutant:
    """One change of a module.

    Args:
        number: Its number among the module's mutants, from 0.
        line: Its line, from 1.
        text: The text of that line.
        change: The old and the new code; with a number if lines of the same text allow the same change again.
        lines: The first and last line of its statement; for a statement with a body, of the statement's head.
        inside: Whether it is in a function's body, so that it takes effect when the function is called.
    """

    number: int
    line: int
    text: str
    change: str
    lines: tuple[int, int]
    inside: bool


def mutants(source: str) -> list[Mutant]:
    """Return every mutant of a module, outer parts of a statement before inner ones.

    >>> [each.change for each in mutants("def f(a): return a < 2")]
    ['return a < 2 -> return None', 'a < 2 -> a <= 2', '2 -> 3']
    """
    lines = source.splitlines()
    found = []
    seen: Counter[tuple[str, str]] = Counter()
    for number, (slot, change) in enumerate(_all(ast.parse(source))):
        node, text = slot.node, lines[slot.node.lineno - 1].strip()
        what = f"{_text(node)} -> {_text(change(copy.copy(node)))}"
        seen[text, what] += 1
        nth = f" #{seen[text, what]}" if seen[text, what] > 1 else ""
        found.append(Mutant(number, node.lineno, text, what + nth, slot.lines, slot.inside))
    return found


def mutated(source: str, mutant: Mutant) -> ast.Module:
    """Return the module with that change; unchanged code keeps its lines and columns.

    >>> source = "def f(a): return a < 2"
    >>> ast.unparse(mutated(source, mutants(source)[1]).body[0].body[0])
    'return a <= 2'
    """
    tree = ast.parse(source)
    slot, change = next(islice(_all(tree), mutant.number, None))
    slot.fill(ast.copy_location(change(copy.copy(slot.node)), slot.node))
    return ast.fix_missing_locations(tree)


@attrs.frozen
class _Slot:
    """The place of a statement or an expression in a tree."""

    parent: ast.AST
    field: str
    position: int | None
    node: ast.expr | ast.stmt
    lines: tuple[int, int]
    inside: bool

    def fill(self, node: ast.AST) -> None:
        if self.position is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.position] = node


def _all(tree: ast.Module) -> Iterator[tuple[_Slot, Change]]:
    return ((slot, change) for slot in _slots(tree, (0, 0), False) for change in _changes(slot.node))


def _slots(node: ast.AST, lines: tuple[int, int], inside: bool) -> Iterator[_Slot]:
    """Yield every statement and expression that runs, without type annotations and code for type checkers."""
    called = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    for field, value in ast.iter_fields(node):
        if field in _NO_CODE or (field == "body" and _for_checkers(node)):
            continue
        within = inside or (called and field == "body")
        listed = isinstance(value, list)
        for position, child in enumerate(value if listed else [value]):
            around = _head(child) if isinstance(child, ast.stmt) else lines
            if isinstance(child, ast.expr | ast.stmt):
                yield _Slot(node, field, position if listed else None, child, around, within)
            if isinstance(child, ast.AST):
                yield from _slots(child, around, within)


def _head(node: ast.stmt) -> tuple[int, int]:
    body = getattr(node, "body", None)
    return node.lineno, max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or node.lineno


def _for_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _changes(node: ast.AST) -> list[Change]:  # noqa: C901, PLR0912 (one case for each kind of node)
    """Yield the changes of a node; each takes a shallow copy of the node and returns its replacement."""
    match node:
        case ast.Compare():
            return [lambda it: _with(it, ops=[_TURNED[type(it.ops[0])](), *it.ops[1:]])]
        case ast.BoolOp():
            return [lambda it: _with(it, op=ast.And() if isinstance(it.op, ast.Or) else ast.Or())]
        case ast.If() | ast.While() | ast.IfExp() if not isinstance(node.test, ast.Constant) and not _for_checkers(node):
            return [lambda it: _with(it, test=ast.Constant(True)), lambda it: _with(it, test=ast.Constant(False))]
        case ast.UnaryOp(op=ast.Not()):
            return [lambda it: it.operand]
        case ast.Constant(value=bool()):
            return [lambda it: ast.Constant(not it.value)]
        case ast.Constant(value=int()):
            return [lambda it: ast.Constant(it.value + 1)]
        case ast.BinOp() | ast.AugAssign() if type(node.op) in _COUNTED:
            return [lambda it: _with(it, op=_COUNTED[type(it.op)]())]
        case ast.Return(value=ast.Constant(value=None | bool() | int())):
            return []
        case ast.Return(value=ast.expr()):
            return [lambda _: ast.Return(ast.Constant(None))]
        case ast.Break():
            return [lambda _: ast.Continue()]
        case ast.Continue():
            return [lambda _: ast.Break()]
        case ast.Expr(value=ast.Call(func=ast.Name(id="export_lazily"))):
            return []  # runs once, when a test process starts; tests of the project compare what a package exports
        case ast.Expr(value=ast.Call() | ast.Yield() | ast.YieldFrom() | ast.Await()) | ast.Raise() | ast.Delete():
            return [lambda _: ast.Pass()]
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return [lambda _: ast.Pass()]
        case _:
            return []


def _with(node: ast.AST, **fields: Any) -> ast.AST:
    for name, value in fields.items():
        setattr(node, name, value)
    return node


def _text(node: ast.AST) -> str:
    """Return a node as code; for a statement with a body, only its head."""
    if isinstance(node, ast.If | ast.While):
        return f"{type(node).__name__.lower()} {ast.unparse(node.test)}"
    return ast.unparse(node)

"""Triggers and selectors as a file writes them: the expression that builds one, read without evaluating any code.

``tokens_exceed(60_000) & has_tool_calls | ~every(3)`` is what the value's own `repr` says, so what is written can be read back.
Only names that are registered, calls of them, plain values, and ``& | ~`` have a meaning.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any, Final

from ..errors import ConfigurationError
from ..selectors import Selector, as_selector
from ..triggers import Trigger, as_trigger
from .parts import PartKind, nearest, part_named, part_names

__all__ = ["read_expression", "write_expression"]

_VALUES: Final = {PartKind.TRIGGER: Trigger, PartKind.SELECTOR: Selector}
_INSIDE: Final = {  # a trigger may try out a strategy, which has triggers, selectors and styles
    PartKind.TRIGGER: (PartKind.TRIGGER, PartKind.STRATEGY, PartKind.SELECTOR, PartKind.TOOL_STYLE),
    PartKind.SELECTOR: (PartKind.SELECTOR,),
}
_LIFT: Final[dict[PartKind, Callable[[Any], Any]]] = {PartKind.TRIGGER: as_trigger, PartKind.SELECTOR: as_selector}


def read_expression(text: object, kind: PartKind) -> Any:
    """The trigger or selector that an expression says.

    Args:
        text: The expression.
        kind: ``TRIGGER`` or ``SELECTOR``.

    Raises:
        ConfigurationError: If it is no such expression; names the part that is not.

    >>> read_expression("last(turns=2) | kinds(GroupKind.USER)", PartKind.SELECTOR)
    last(turns=2) | kinds(GroupKind.USER)
    """
    if not isinstance(text, str):
        raise ConfigurationError(f"{_one(kind)} is written as text, such as {_EXAMPLES[kind]!r} (got {text!r})")
    try:
        value = _Reading(kind).value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError(f"{text!r} is no expression; write one such as {_EXAMPLES[kind]!r}") from error
    if not isinstance(value, _VALUES[kind]):
        raise ConfigurationError(f"{text!r} is not {_one(kind)}; write one such as {_EXAMPLES[kind]!r}")
    return value


def write_expression(value: object, kind: PartKind) -> str:
    """The expression that builds a trigger or selector again.

    Raises:
        ConfigurationError: If reading it back would not give an equal value, as for a function that is not registered.
    """
    text = repr(value)
    try:
        same = bool(read_expression(text, kind) == value)
    except ConfigurationError:
        same = False
    if not same:
        raise ConfigurationError(
            f"{text} cannot be written to a file: it is a function, or a part of one; "
            f"register it as an entry point in compaction.{kind.value}"
        )
    return text


_EXAMPLES: Final = {
    PartKind.TRIGGER: "tokens_exceed(60_000) & has_tool_calls",
    PartKind.SELECTOR: "last(turns=2) | kinds(GroupKind.USER)",
}


def _one(kind: PartKind) -> str:
    return f"a {kind.value.removesuffix('s')}"


class _Reading:
    """Reads one expression; holds its kind."""

    def __init__(self, kind: PartKind) -> None:
        self._kind = kind

    def value(self, node: ast.expr) -> Any:
        """What a node stands for.

        Raises:
            ConfigurationError: If it has no meaning here.
        """
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str | None):
            return node.value
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            return ast.literal_eval(node)
        if isinstance(node, ast.Name | ast.Attribute):
            return self._lifted(self._named(_dotted(node)))
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            return ~self._operand(node.operand)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr):
            left, right = self._operand(node.left), self._operand(node.right)
            if isinstance(left, Trigger) is not isinstance(right, Trigger):
                raise ConfigurationError(f"{ast.unparse(node)!r} joins a trigger and a selector; join two of a kind")
            return left & right if isinstance(node.op, ast.BitAnd) else left | right
        raise ConfigurationError(f"{ast.unparse(node)!r} has no meaning here; combine names and calls with & | ~")

    def _named(self, name: str) -> Any:
        """The part of that name, of this kind or of one that may stand inside it."""
        kind = next((each for each in _INSIDE[self._kind] if name in part_names(each)), self._kind)
        return part_named(kind, name)

    def _lifted(self, part: Any) -> Any:
        """A registered condition becomes a trigger; a factory of this package, which needs its arguments, stays one."""
        if not inspect.isfunction(part) or _is_factory(part):
            return part
        return _LIFT[self._kind](part)

    def _operand(self, node: ast.expr) -> Any:
        value = self.value(node)
        if not isinstance(value, tuple(_VALUES[each] for each in _INSIDE[self._kind] if each in _VALUES)):
            raise ConfigurationError(f"{ast.unparse(node)!r} is not {_one(self._kind)}; & | ~ combine nothing else")
        return value

    def _call(self, node: ast.Call) -> Any:
        factory = self._named(_dotted(node.func))
        if not callable(factory) or isinstance(factory, _VALUES[self._kind]):
            raise ConfigurationError(f"{ast.unparse(node)!r}: {_dotted(node.func)} takes no arguments; write it without ()")
        if any(isinstance(each, ast.Starred) for each in node.args) or any(each.arg is None for each in node.keywords):
            raise ConfigurationError(f"{ast.unparse(node)!r}: write each argument out, without *")
        known = list(inspect.signature(factory).parameters)
        for each in node.keywords:
            if each.arg not in known:
                raise ConfigurationError(f"{ast.unparse(node)!r} has no argument {each.arg!r}; {nearest(str(each.arg), known)}")
        try:
            return factory(*map(self.value, node.args), **{str(each.arg): self.value(each.value) for each in node.keywords})
        except TypeError as error:
            raise ConfigurationError(f"{ast.unparse(node)!r}: {error}; it takes {', '.join(known)}") from error


def _is_factory(part: Any) -> bool:
    """Whether a function makes triggers or selectors, by what it says it returns."""
    returned = inspect.signature(part).return_annotation
    return getattr(returned, "__name__", returned) in ("Trigger", "Selector")


def _dotted(node: ast.expr) -> str:
    """A name, or names joined by dots.

    Raises:
        ConfigurationError: If it is neither.
    """
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    raise ConfigurationError(f"{ast.unparse(node)!r} is no name")

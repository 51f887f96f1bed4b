"""The expressions for triggers and selectors in pipeline files, parsed without evaluating any code.

An expression such as ``tokens_exceed(60_000) & has_tool_calls | ~every(3)`` is the `repr` of the value that it describes. It
consists of registered names, calls of them, plain values, and ``& | ~``.
"""

from __future__ import annotations

import ast
import inspect
from typing import Any, Final

import attrs

from ..errors import ConfigurationError
from ..selectors import Selector, as_selector
from ..triggers import Trigger, as_trigger
from .registry import ComponentKind, component_names, find_component, suggestion

_VALUES: Final = {ComponentKind.TRIGGER: Trigger, ComponentKind.SELECTOR: Selector}
_EXAMPLES: Final = {
    ComponentKind.TRIGGER: "tokens_exceed(60_000) & has_tool_calls",
    ComponentKind.SELECTOR: "last(turns=2) | kinds(GroupKind.USER)",
}
_INSIDE: Final = {  # a trigger may contain a strategy, which has triggers, selectors and styles
    ComponentKind.TRIGGER: (ComponentKind.TRIGGER, ComponentKind.STRATEGY, ComponentKind.SELECTOR, ComponentKind.TOOL_STYLE),
    ComponentKind.SELECTOR: (ComponentKind.SELECTOR,),
}

MAX_NUMBER: Final = 10**15
"""The largest whole number in a pipeline; what is compared with a share of a window must fit into a float."""

MAX_EXPRESSION_CHARS: Final = 4_096
"""The longest expression. A longer one may be nested so deeply that Python's parser uses up its stack."""


def read_expression(text: object, kind: ComponentKind) -> Any:
    """Return the trigger or selector that an expression describes.

    >>> read_expression("last(turns=2) | kinds(GroupKind.USER)", ComponentKind.SELECTOR)
    last(turns=2) | kinds(GroupKind.USER)
    """
    if not isinstance(text, str):
        raise ConfigurationError(f"{_one(kind)} is written as text, such as {_EXAMPLES[kind]!r} (got {text!r})")
    if len(text) > MAX_EXPRESSION_CHARS:
        raise ConfigurationError(
            f"{text[:40]!r}... has more than {MAX_EXPRESSION_CHARS:,} characters; register it as a component (docs/config.md)"
        )
    try:
        value = _Evaluator(kind).value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError(f"{text!r} is not an expression; write one such as {_EXAMPLES[kind]!r}") from error
    if not isinstance(value, _VALUES[kind]):
        raise ConfigurationError(f"{text!r} is not {_one(kind)}; write one such as {_EXAMPLES[kind]!r}")
    return value


def write_expression(value: object, kind: ComponentKind) -> str:
    """Return the expression that `read_expression` reads as an equal trigger or selector."""
    text = repr(value)
    try:
        same = bool(read_expression(text, kind) == value)
    except ConfigurationError:
        same = False
    if not same:
        raise ConfigurationError(
            f"{text} cannot be written to a file: it is or contains a function; "
            f"register it as an entry point in compaction.{kind.value}"
        )
    return text


def _one(kind: ComponentKind) -> str:
    return f"a {kind.value.removesuffix('s')}"


@attrs.frozen
class _Evaluator:
    """Evaluates an expression of one kind."""

    _kind: ComponentKind

    def value(self, node: ast.expr) -> Any:
        """Return the value of a node."""
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str | None):
            if isinstance(node.value, int) and node.value > MAX_NUMBER:
                raise ConfigurationError(f"a whole number is beyond {MAX_NUMBER:,}; write a smaller one")
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
            left, right = self._operands(node)
            if isinstance(left, Trigger) is not isinstance(right, Trigger):
                raise ConfigurationError(f"{ast.unparse(node)!r} joins a trigger and a selector; join two of the same kind")
            return left & right if isinstance(node.op, ast.BitAnd) else left | right
        raise ConfigurationError(f"{ast.unparse(node)!r} is not allowed here; combine names and calls with & | ~")

    def _named(self, name: str) -> Any:
        """Return the component of that name; its kind is this kind or one that this kind may contain."""
        kind = next((each for each in _INSIDE[self._kind] if name in component_names(each)), self._kind)
        return find_component(kind, name)

    def _lifted(self, component: Any) -> Any:
        """Return a registered condition as a trigger; return a function that makes triggers unchanged."""
        if not inspect.isfunction(component) or _is_factory(component):
            return component
        return as_trigger(component) if self._kind is ComponentKind.TRIGGER else as_selector(component)

    def _operands(self, node: ast.BinOp) -> list[Any]:
        """Return both sides; the mistakes of both are told together."""
        values: list[Any] = []
        mistakes: list[str] = []
        for each in (node.left, node.right):
            try:
                values.append(self._operand(each))
            except ConfigurationError as error:
                mistakes.append(str(error))
        if mistakes:
            raise ConfigurationError("; ".join(mistakes))
        return values

    def _operand(self, node: ast.expr) -> Any:
        value = self.value(node)
        if not isinstance(value, tuple(_VALUES[each] for each in _INSIDE[self._kind] if each in _VALUES)):
            raise ConfigurationError(f"{ast.unparse(node)!r} is not {_one(self._kind)}; & | ~ combine only these")
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
                raise ConfigurationError(
                    f"{ast.unparse(node)!r} has no argument {each.arg!r}; {suggestion(str(each.arg), known)}"
                )
        try:
            return factory(*map(self.value, node.args), **{str(each.arg): self.value(each.value) for each in node.keywords})
        except TypeError as error:
            raise ConfigurationError(f"{ast.unparse(node)!r}: {error}; it takes {', '.join(known)}") from error


def _is_factory(component: Any) -> bool:
    """Whether a function's annotation says that it returns triggers or selectors."""
    returned = inspect.signature(component).return_annotation
    return getattr(returned, "__name__", returned) in ("Trigger", "Selector")


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    raise ConfigurationError(f"{ast.unparse(node)!r} is not a name")

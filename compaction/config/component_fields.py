"""The options of components in files: their types, and what a file can contain of them."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Hashable
from functools import cache
from typing import Any, Final, Union, cast, get_args, get_origin, get_type_hints

import attrs

from ..selectors import Selector
from ..stores import Store
from ..strategies import Pipeline, ProviderCompaction, Strategy, ToolStyle
from ..summarizers import FirstOf, OpenAISummarizer, Summarizer, redact
from ..triggers import Trigger
from .registry import ComponentKind

USE: Final = "use"
"""The key that names a component."""

_KINDS: Final[dict[object, ComponentKind]] = {
    Strategy: ComponentKind.STRATEGY,
    Trigger: ComponentKind.TRIGGER,
    Selector: ComponentKind.SELECTOR,
    ToolStyle: ComponentKind.TOOL_STYLE,
    Summarizer: ComponentKind.SUMMARIZER,
    Store: ComponentKind.STORE,
}
EXPRESSIONS: Final = (ComponentKind.TRIGGER, ComponentKind.SELECTOR)
"""The kinds that are written as expressions, such as ``tokens_exceed(60_000)``."""
SECRETIVE: Final = (ComponentKind.SUMMARIZER, ComponentKind.STORE)
"""The kinds whose options could be secrets, which a file must not contain."""
NOT_IN_FILES: Final[dict[type, tuple[str, ...]]] = {
    OpenAISummarizer: ("client", "on_usage", "redact"),
    ProviderCompaction: ("client",),
}
"""The options that only code can set."""
FUNCTIONS: Final[dict[str, Callable[[str], str]]] = {"redact": redact}
"""The functions that a file can name."""


def types_of(kind: Any) -> tuple[Any, ...]:
    """Return the types of a union, or the type itself."""
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def component_kind(kind: Any) -> ComponentKind | None:
    """Return the kind of component that a field of this type contains, if any."""
    return next((_KINDS[each] for each in types_of(kind) if isinstance(each, Hashable) and each in _KINDS), None)


def is_function(kind: Any) -> bool:
    """Whether an option of this type contains a function."""
    return any(get_origin(each) is cast("object", get_origin(Callable[[], None])) for each in types_of(kind))


@attrs.frozen
class Option:
    """An option of a component: its type, whether it is required, and whether its items are arguments of their own."""

    kind: Any
    is_required: bool
    is_listed: bool = False


@cache
def options_of(factory: Any) -> dict[str, Option]:
    """Return the options of a class or function by name: an attrs class has its fields, others the arguments of their call."""
    has_own_init = factory in (FirstOf, Pipeline)  # with positional steps, instead of the one that attrs writes
    if inspect.isclass(factory) and attrs.has(factory) and not has_own_init:
        hints = get_type_hints(factory)
        return {field.name: Option(hints[field.name], field.default is attrs.NOTHING) for field in fields_in_files(factory)}
    hints = get_type_hints(factory.__init__ if inspect.isclass(factory) else factory)
    options: dict[str, Option] = {}
    for name, each in inspect.signature(factory).parameters.items():
        kind, is_listed = hints.get(name, Any), each.kind is each.VAR_POSITIONAL
        listed: Any = types.GenericAlias(tuple, (kind, ...)) if is_listed else kind
        options[name] = Option(listed, each.default is each.empty, is_listed)
    return options


def fields_in_files(cls: Any) -> list[attrs.Attribute[Any]]:
    """Return the fields of an attrs class that a file can contain."""
    hidden = NOT_IN_FILES.get(cls, ())
    return [field for field in attrs.fields(cls) if field.init and field.name[0] != "_" and field.name not in hidden]

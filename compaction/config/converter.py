"""Conversion of plain data to strategies and back, with cattrs.

A component is a table with its name under ``use`` and its options beside it. Unknown keys, unknown names and values of wrong
types are errors; all of them are reported at once, each with its place.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Hashable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, Union, cast, get_args, get_origin, get_type_hints

import attrs

from ..errors import ConfigurationError
from ..installation import install_line
from ..selectors import Selector
from ..stores import Store
from ..strategies import FunctionStrategy, Pipeline, ProviderCompaction, Strategy, ToolStyle
from ..summarizers import FirstOf, OpenAISummarizer, Summarizer, SummaryTemplate, as_template, redact
from ..triggers import Trigger, always
from .allowed_servers import check_no_secrets
from .expressions import read_expression, write_expression
from .registry import ComponentKind, component_names, find_component, suggestion

if TYPE_CHECKING:
    from cattrs import Converter

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
_EXPRESSIONS: Final = (ComponentKind.TRIGGER, ComponentKind.SELECTOR)
_SECRETIVE: Final = (ComponentKind.SUMMARIZER, ComponentKind.STORE)
_NOT_IN_FILES: Final[dict[type, tuple[str, ...]]] = {
    OpenAISummarizer: ("client", "on_usage", "sleep", "random", "redact"),
    ProviderCompaction: ("client",),
}
_FUNCTIONS: Final[dict[str, Callable[[str], str]]] = {"redact": redact}
_PLAIN: Final[dict[object, tuple[type, ...]]] = {
    str: (str,),
    bool: (bool,),
    int: (int,),
    float: (int, float),
    type(None): (type(None),),
}


# ------------------------------------------------------------------------------------------------- which hook for which type


def _members(kind: Any) -> tuple[Any, ...]:
    """Return the types of a union, or the type itself."""
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def _component_kind(kind: Any) -> ComponentKind | None:
    """Return the kind of component that a field of this type contains, if any."""
    return next((_KINDS[each] for each in _members(kind) if isinstance(each, Hashable) and each in _KINDS), None)


def _is_function(kind: Any) -> bool:
    return any(get_origin(each) is cast("object", get_origin(Callable[[], None])) for each in _members(kind))


@cache
def converter() -> Converter:
    """Return the converter for all components."""
    try:
        from cattrs import Converter
        from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override
    except ImportError as error:
        raise missing("cattrs", error) from error
    result = Converter(unstruct_collection_overrides={tuple: list})

    def omitted(cls: type) -> dict[str, Any]:
        private = [field.name for field in attrs.fields(cls) if field.name.startswith("_")]
        return {name: override(omit=True) for name in (*private, *_NOT_IN_FILES.get(cls, ()))}

    def reads_class(cls: Any) -> Any:
        read = make_dict_structure_fn(cls, result, _cattrs_forbid_extra_keys=True, **omitted(cls))

        def read_table(value: object, kind: Any) -> Any:
            return read(_table(value), kind)

        return read_table

    def writes_class(cls: Any) -> Any:
        return make_dict_unstructure_fn(cls, result, _cattrs_omit_if_default=True, **omitted(cls))

    result.register_structure_hook_factory(attrs.has, reads_class)
    result.register_unstructure_hook_factory(attrs.has, writes_class)
    for plain in (str, bool, int, float):
        result.register_structure_hook(plain, _read_plain)
    result.register_structure_hook_func(_is_plain_union, _read_plain)
    result.register_structure_hook(Path, lambda value, _: Path(_read_plain(value, str)))
    result.register_unstructure_hook(Path, str)
    result.register_structure_hook_func(_has_origin(Literal), _read_literal)
    result.register_structure_hook_func(_has_origin(tuple), _read_tuple)
    result.register_structure_hook_func(_has_origin(dict, Mapping), lambda value, _: dict(_table(value)))
    read_template = reads_class(SummaryTemplate)
    result.register_structure_hook_func(
        lambda kind: SummaryTemplate in _members(kind), lambda value, _: _read_template(value, read_template)
    )
    result.register_structure_hook_func(_is_function, lambda value, _: _read_function(value))
    result.register_unstructure_hook_func(_is_function, _write_function)
    result.register_structure_hook_func(lambda kind: _component_kind(kind) is not None, _read_field)
    result.register_unstructure_hook_factory(lambda kind: _component_kind(kind) is not None, _field_writer)
    return result


def missing(name: str, error: ImportError) -> ConfigurationError:
    """Return the error for a package that is not installed."""
    return ConfigurationError(f"pipeline files need {name} ({error}): {install_line('config')}")


def _has_origin(*origins: object) -> Callable[[Any], bool]:
    return lambda kind: get_origin(kind) in origins


def _is_plain_union(kind: Any) -> bool:
    """Whether it is a union such as ``int | str``, which cattrs does not read by itself; ``None`` may be a member."""
    members = _members(kind)
    return len(members) > 1 and all(isinstance(each, Hashable) and each in _PLAIN for each in members)


# ------------------------------------------------------------------------------------------------- reading


def _read_plain(value: object, kind: Any) -> Any:
    members = _members(kind)
    allowed = tuple(each for member in members for each in _PLAIN[member])
    if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in members):
        wanted = " or ".join(_TYPES[member] for member in members)
        raise ConfigurationError(f"{value!r} is {_type_of(value)}; {wanted} belongs here")
    return value


_TYPES: Final[dict[type, str]] = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    type(None): "nothing",
    dict: "a table",
    list: "a list",
}


def _type_of(value: object) -> str:
    return _TYPES.get(type(value), type(value).__name__)


def _read_literal(value: object, kind: Any) -> Any:
    if value not in get_args(kind):
        raise ConfigurationError(f"{value!r}: {suggestion(str(value), map(str, get_args(kind)))}")
    return value


def _read_tuple(value: object, kind: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise ConfigurationError(f"{value!r} is {_type_of(value)}; a list belongs here")
    listed: Any = types.GenericAlias(list, get_args(kind)[:1])
    return tuple(converter().structure(value, listed))


def _table(value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"{value!r} is {_type_of(value)}; a table belongs here")
    return {str(key): each for key, each in cast("dict[Any, Any]", value).items()}


def _read_function(value: object) -> Callable[[str], str] | None:
    if value is None:
        return None
    if not isinstance(value, str) or value not in _FUNCTIONS:
        raise ConfigurationError(f"{value!r} is not a function that a file may name; {suggestion(str(value), _FUNCTIONS)}")
    return _FUNCTIONS[value]


def _read_template(value: object, read: Callable[[Any, type], SummaryTemplate]) -> SummaryTemplate | None:
    """Read a template: a prompt, an instruction, a table of its texts, or a table of files, ``path`` and ``update_path``."""
    if value is None:
        return None
    if isinstance(value, str):
        return as_template(value)
    table = _table(value)
    if "path" not in table:
        return read(table, SummaryTemplate)
    if unknown := [key for key in table if key not in ("path", "update_path")]:
        raise ConfigurationError(f"unknown key {unknown[0]!r} beside 'path'; {suggestion(unknown[0], ['path', 'update_path'])}")
    return SummaryTemplate.read(
        _read_plain(table["path"], str), update=_read_plain(table["update_path"], str) if "update_path" in table else None
    )


def _read_field(value: object, kind: Any) -> Any:
    if value is None and type(None) in _members(kind):
        return None
    return read_component(value, cast("ComponentKind", _component_kind(kind)))


def read_component(value: object, kind: ComponentKind, default: str | None = None) -> Any:
    """Return the component that plain data describes.

    Args:
        value: An expression for a trigger or selector; otherwise a name, or a table with the name under ``use``.
        kind: The kind of component.
        default: The name, if the table has none.
    """
    if kind in _EXPRESSIONS:
        return read_expression(value, kind)
    table = {USE: value} if isinstance(value, str) else _table(value)
    name = table.pop(USE, default)
    if not isinstance(name, str):
        raise ConfigurationError(
            f"'{USE}' must name one of the {kind.value} (got {name!r}); {suggestion('', component_names(kind))}"
        )
    if kind is ComponentKind.STRATEGY and name not in component_names(kind):
        return _read_strategy(name, table)
    component = find_component(kind, name)
    if kind in _SECRETIVE:
        check_no_secrets(table)
    if inspect.isclass(component):
        is_plain = attrs.has(component) and component not in (FirstOf, Pipeline)
        return converter().structure(table, component) if is_plain else _call(component, table)
    if table:
        raise ConfigurationError(f"{name} takes no options (got {', '.join(table)})")
    if kind is ComponentKind.STRATEGY and not isinstance(component, Strategy):
        return FunctionStrategy(component)
    return component


def _read_strategy(name: str, table: dict[str, Any]) -> Strategy:
    """Return the strategy that a preset makes."""
    if name not in component_names(ComponentKind.PRESET):
        _refuse_strategy(name, table)
    strategy = _call(find_component(ComponentKind.PRESET, name), table)
    if not isinstance(strategy, Strategy):
        raise ConfigurationError(f"{name!r} returned {strategy!r}, which is not a strategy; use another entry-point group")
    return strategy


@attrs.frozen
class _CommonOptions:
    """The options of every strategy."""

    trigger: Trigger | None = None
    target: Trigger | None = None
    keep: Selector | None = None


def _refuse_strategy(name: str, table: dict[str, Any]) -> NoReturn:
    """Raise the error about an unknown strategy, together with those about the options that every strategy has."""
    from cattrs import ClassValidationError

    known = [*component_names(ComponentKind.STRATEGY), *component_names(ComponentKind.PRESET)]
    unknown = ConfigurationError(f"{name!r} is not a strategy; {suggestion(name, known)}")
    common = [field.name for field in attrs.fields(_CommonOptions)]
    try:
        converter().structure({key: value for key, value in table.items() if key in common}, _CommonOptions)
    except ClassValidationError as error:
        raise error.derive([unknown, *error.exceptions]) from None
    raise unknown


def _call(factory: Callable[..., Any], table: dict[str, Any]) -> Any:
    """Call a function or class with options that its annotations describe."""
    arguments = _arguments_class(factory)
    options = converter().structure(table, arguments)
    given = {field.name: getattr(options, field.name) for field in attrs.fields(arguments)}
    several = [
        given.pop(name) for name, each in inspect.signature(factory).parameters.items() if each.kind is each.VAR_POSITIONAL
    ]
    return factory(*(each for listed in several for each in listed), **given)


@cache
def _arguments_class(factory: Callable[..., Any]) -> Any:
    """Return an attrs class with a function's arguments as fields, for cattrs."""
    hints = get_type_hints(factory.__init__ if inspect.isclass(factory) else factory)
    fields: dict[str, Any] = {}
    for name, argument in inspect.signature(factory).parameters.items():
        default: Any = attrs.NOTHING if argument.default is argument.empty else argument.default
        hint: Any = hints.get(name, Any)
        listed: Any = types.GenericAlias(tuple, (hint, ...)) if argument.kind is argument.VAR_POSITIONAL else hint
        fields[name] = attrs.field(default=default, type=listed, kw_only=True)
    return attrs.make_class(factory.__name__, fields, frozen=True)


# ------------------------------------------------------------------------------------------------- writing


def _write_function(value: object) -> str | None:
    if value is None:
        return None
    name = next((name for name, function in _FUNCTIONS.items() if function is value), None)
    if name is None:
        raise ConfigurationError(f"{value!r} is a function that a file cannot name; omit it, or set it in code")
    return name


def _field_writer(kind: Any) -> Callable[[Any], Any]:
    component_kind = cast("ComponentKind", _component_kind(kind))
    return lambda value: None if value is None else write_component(value, component_kind)


def write_component(value: Any, kind: ComponentKind) -> Any:
    """Return plain data that `read_component` reads as an equal component; options with their default values are omitted."""
    if kind in _EXPRESSIONS:
        return write_expression(value, kind)
    table = _written(value, kind)
    return table[USE] if len(table) == 1 else table


def _written(value: object, kind: ComponentKind) -> dict[str, Any]:
    if isinstance(value, Pipeline):
        options: dict[str, Any] = {"steps": [write_component(step, kind) for step in value.steps]}
        if value.trigger != always:
            options["trigger"] = write_expression(value.trigger, ComponentKind.TRIGGER)
        if value.target != value.default_target:
            options["target"] = write_expression(value.target, ComponentKind.TRIGGER)
        return {USE: "Pipeline", **options}
    origin: object = value.function if isinstance(value, FunctionStrategy) else type(value)
    name = next((each for each in component_names(kind) if _is_named(origin, value, kind, each)), None)
    if name is None:
        raise ConfigurationError(
            f"{value!r} cannot be written to a file: register it as an entry point in compaction.{kind.value}"
        )
    if isinstance(value, FunctionStrategy) or find_component(kind, name) is value:
        return {USE: name}
    if not attrs.has(type(value)):
        raise ConfigurationError(f"{value!r} cannot be written to a file: its class is not an attrs class")
    options = _options(value)
    if kind in _SECRETIVE:
        check_no_secrets(options)
    return {USE: name, **options}


def _is_named(origin: Any, value: Any, kind: ComponentKind, name: str) -> bool:
    """Whether a component has this name; ``origin`` is its class or function."""
    try:
        component = find_component(kind, name)
    except ConfigurationError:  # a registered component that cannot be imported is a different one
        return False
    return component is origin or component is value


def _options(value: object) -> dict[str, Any]:
    kind: Any = type(value)
    for field in attrs.fields(kind):
        if field.name in _NOT_IN_FILES.get(kind, ()) and getattr(value, field.name) is not field.default:
            raise ConfigurationError(f"{kind.__name__}: a file cannot contain {field.name!r}; set it in code")
    options: dict[str, Any] = converter().unstructure(value, kind)
    return options

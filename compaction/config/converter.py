"""From plain data to strategies and back, by cattrs: a part is a table with its name under ``use`` and its options beside it.

Nothing is guessed: a key that is not known, a value of another type, a name that nobody registered is an error that names its
place, and all of them are told at once.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Union, cast, get_args, get_origin, get_type_hints

import attrs

from ..errors import ConfigurationError
from ..selectors import Selector
from ..stores import Store
from ..strategies import FunctionStrategy, OffloadStyle, Pipeline, Strategy, ToolStyle
from ..summarizers import OpenAISummarizer, Summarizer, SummaryTemplate, redact
from ..triggers import Trigger, always
from .expressions import read_expression, write_expression
from .parts import PartKind, nearest, part_named, part_names
from .secrets import check_no_secrets

if TYPE_CHECKING:
    from cattrs import Converter

__all__ = ["USE", "converter", "missing", "read_part", "write_part"]

USE: Final = "use"
"""The key that names a part."""

_KINDS: Final[dict[object, PartKind]] = {
    Strategy: PartKind.STRATEGY,
    Trigger: PartKind.TRIGGER,
    Selector: PartKind.SELECTOR,
    ToolStyle: PartKind.TOOL_STYLE,
    OffloadStyle: PartKind.OFFLOAD_STYLE,
    Summarizer: PartKind.SUMMARIZER,
    Store: PartKind.STORE,
}
_EXPRESSIONS: Final = (PartKind.TRIGGER, PartKind.SELECTOR)
_SECRETIVE: Final = (PartKind.SUMMARIZER, PartKind.STORE)
_NOT_IN_FILES: Final[dict[type, tuple[str, ...]]] = {OpenAISummarizer: ("client", "on_usage", "sleep", "random", "redact")}
_FUNCTIONS: Final[dict[str, Callable[[str], str]]] = {"redact": redact}
_PLAIN: Final[dict[type, tuple[type, ...]]] = {str: (str,), bool: (bool,), int: (int,), float: (int, float)}


@attrs.frozen(kw_only=True)
class _PipelineTable:
    """A `Pipeline` as a file has it."""

    steps: tuple[Strategy, ...]
    trigger: Trigger = always
    target: Trigger | None = None


# ------------------------------------------------------------------------------------------------- which hook for which type


def _members(kind: Any) -> tuple[Any, ...]:
    """The types of a union, or the type alone."""
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def _part_kind(kind: Any) -> PartKind | None:
    """Which parts a field holds, if it holds parts."""
    return next((_KINDS[each] for each in _members(kind) if _is_hashable(each) and each in _KINDS), None)


def _is_hashable(kind: Any) -> bool:
    return kind.__hash__ is not None


def _is_function(kind: Any) -> bool:
    return any(get_origin(each) is cast("object", get_origin(Callable[[], None])) for each in _members(kind))


def _has_template(kind: Any) -> bool:
    return SummaryTemplate in _members(kind)


@cache
def converter() -> Converter:
    """The converter for every part there is.

    Raises:
        ConfigurationError: If cattrs is not installed.
    """
    try:
        from cattrs import Converter
        from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn, override
    except ImportError as error:
        raise missing("cattrs", error) from error
    made = Converter(unstruct_collection_overrides={tuple: list})

    def omitted(cls: type) -> dict[str, Any]:
        return {name: override(omit=True) for name in _NOT_IN_FILES.get(cls, ())}

    def reads_class(cls: Any) -> Any:
        return make_dict_structure_fn(cls, made, _cattrs_forbid_extra_keys=True, **omitted(cls))

    def writes_class(cls: Any) -> Any:
        return make_dict_unstructure_fn(cls, made, _cattrs_omit_if_default=True, **omitted(cls))

    made.register_structure_hook_factory(attrs.has, reads_class)
    made.register_unstructure_hook_factory(attrs.has, writes_class)
    for plain in _PLAIN:
        made.register_structure_hook(plain, _read_plain)
    made.register_structure_hook(Path, lambda value, _: Path(_read_plain(value, str)))
    made.register_unstructure_hook(Path, str)
    made.register_structure_hook_func(_is_literal, _read_literal)
    made.register_structure_hook_func(_is_tuple, _read_tuple)
    made.register_structure_hook_func(_is_mapping, lambda value, _: dict(_table(value)))
    read_template = reads_class(SummaryTemplate)
    made.register_structure_hook_func(_has_template, lambda value, _: _read_template(value, read_template))
    made.register_structure_hook_func(_is_function, lambda value, _: _read_function(value))
    made.register_unstructure_hook_func(_is_function, _write_function)
    made.register_structure_hook_func(lambda kind: _part_kind(kind) is not None, _read_any_part)
    made.register_unstructure_hook_factory(lambda kind: _part_kind(kind) is not None, _writes_part)
    return made


def missing(name: str, error: ImportError) -> ConfigurationError:
    """The error of a package that is not installed."""
    return ConfigurationError(f"files of pipelines need {name} ({error}): pip install 'compaction-toolkit[config]'")


def _is_literal(kind: Any) -> bool:
    return get_origin(kind) is Literal


def _is_tuple(kind: Any) -> bool:
    return get_origin(kind) is tuple


def _is_mapping(kind: Any) -> bool:
    return get_origin(kind) in (dict, get_origin(Mapping[str, Any]))


# ------------------------------------------------------------------------------------------------- reading


def _read_plain(value: object, kind: type) -> Any:
    allowed = _PLAIN[kind]
    if not isinstance(value, allowed) or (isinstance(value, bool) and kind is not bool):
        raise ConfigurationError(f"{value!r} is {_type_of(value)}; {_TYPES[kind]} belongs here")
    return value


_TYPES: Final = {str: "a text", bool: "true or false", int: "a whole number", float: "a number"}


def _type_of(value: object) -> str:
    if value is None or isinstance(value, Mapping | list):
        return "a table" if isinstance(value, Mapping) else "a list" if isinstance(value, list) else "nothing"
    return next((name for kind, name in _TYPES.items() if type(value) is kind), type(value).__name__)


def _read_literal(value: object, kind: Any) -> Any:
    if value not in get_args(kind):
        raise ConfigurationError(f"{value!r}: {nearest(str(value), map(str, get_args(kind)))}")
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
        raise ConfigurationError(f"{value!r} is no function that a file may name; {nearest(str(value), _FUNCTIONS)}")
    return _FUNCTIONS[value]


def _read_template(value: object, read: Callable[[Any, type], SummaryTemplate]) -> SummaryTemplate | None:
    """A prompt, a table of its texts, or a table that names files with ``path`` and ``update_path``."""
    if value is None:
        return None
    if isinstance(value, str):
        return SummaryTemplate(value)
    table = _table(value)
    if "path" not in table:
        return read(table, SummaryTemplate)
    if unknown := [key for key in table if key not in ("path", "update_path")]:
        raise ConfigurationError(f"unknown key {unknown[0]!r} beside 'path'; {nearest(unknown[0], ['path', 'update_path'])}")
    return SummaryTemplate.read(
        _read_plain(table["path"], str), update=_read_plain(table["update_path"], str) if "update_path" in table else None
    )


def _read_any_part(value: object, kind: Any) -> Any:
    if value is None and type(None) in _members(kind):
        return None
    return read_part(value, cast("PartKind", _part_kind(kind)))


def read_part(value: object, kind: PartKind, default: str | None = None) -> Any:
    """The part that plain data describes.

    Args:
        value: An expression for a trigger or selector; else a name, or a table with its name under ``use``.
        kind: What it is.
        default: Its name, if the table has none.

    Raises:
        ConfigurationError: If it describes none.
    """
    if kind in _EXPRESSIONS:
        return read_expression(value, kind)
    table = {USE: value} if isinstance(value, str) else _table(value)
    name = table.pop(USE, default)
    if not isinstance(name, str):
        raise ConfigurationError(f"'{USE}' must name one of the {kind.value} (got {name!r}); {nearest('', part_names(kind))}")
    if kind is PartKind.STRATEGY and name not in part_names(kind):
        return _read_strategy(name, table)
    part = part_named(kind, name)
    if part is Pipeline:
        read = converter().structure(table, _PipelineTable)
        return Pipeline(*read.steps, trigger=read.trigger, target=read.target)
    if kind in _SECRETIVE:
        check_no_secrets(table)
    if inspect.isclass(part):
        return converter().structure(table, part) if attrs.has(part) else _called(part, table)
    if table:
        raise ConfigurationError(f"{name} takes no options (got {', '.join(table)})")
    return FunctionStrategy(part) if kind is PartKind.STRATEGY and not isinstance(part, Strategy) else part


def _read_strategy(name: str, table: dict[str, Any]) -> Strategy:
    """A strategy that a preset makes."""
    if name not in part_names(PartKind.PRESET):
        known = [*part_names(PartKind.STRATEGY), *part_names(PartKind.PRESET)]
        raise ConfigurationError(f"{name!r} is no strategy; {nearest(name, known)}")
    made = _called(part_named(PartKind.PRESET, name), table)
    if not isinstance(made, Strategy):
        raise ConfigurationError(f"{name!r} made {made!r}, which is no strategy; it belongs into another entry-point group")
    return made


def _called(factory: Callable[..., Any], table: dict[str, Any]) -> Any:
    """What a function or class makes of options that its annotations describe."""
    described = _options_of(factory)
    options = converter().structure(table, described)
    return factory(**{field.name: getattr(options, field.name) for field in attrs.fields(described)})


@cache
def _options_of(factory: Callable[..., Any]) -> Any:
    """A class whose fields are the arguments of a function, so that they are read as a class's are."""
    hints = get_type_hints(factory.__init__ if inspect.isclass(factory) else factory)
    fields: dict[str, Any] = {}
    for name, argument in inspect.signature(factory).parameters.items():
        default = attrs.NOTHING if argument.default is argument.empty else argument.default
        fields[name] = attrs.field(default=default, type=hints.get(name, Any), kw_only=True)
    return attrs.make_class(factory.__name__, fields, frozen=True)


# ------------------------------------------------------------------------------------------------- writing


def _write_function(value: object) -> str | None:
    if value is None:
        return None
    name = next((name for name, function in _FUNCTIONS.items() if function is value), None)
    if name is None:
        raise ConfigurationError(f"{value!r} is a function that no file can name; leave it out, or set it in code")
    return name


def _writes_part(kind: Any) -> Callable[[Any], Any]:
    part_kind = cast("PartKind", _part_kind(kind))
    return lambda value: None if value is None else write_part(value, part_kind)


def write_part(value: Any, kind: PartKind) -> Any:
    """Plain data that `read_part` makes the same part of; options that have their defaults are left out.

    Raises:
        ConfigurationError: If a file cannot hold it.
    """
    if kind in _EXPRESSIONS:
        return write_expression(value, kind)
    table = _written(value, kind)
    return table[USE] if len(table) == 1 else table


def _written(value: object, kind: PartKind) -> dict[str, Any]:
    if isinstance(value, Pipeline):
        options: dict[str, Any] = {"steps": [write_part(step, kind) for step in value.steps]}
        if value.trigger != always:
            options["trigger"] = write_expression(value.trigger, PartKind.TRIGGER)
        if value.target != ~value.trigger:
            options["target"] = write_expression(value.target, PartKind.TRIGGER)
        return {USE: "Pipeline", **options}
    made_from: object = value.function if isinstance(value, FunctionStrategy) else type(value)
    name = next((each for each in part_names(kind) if _is_part(made_from, value, kind, each)), None)
    if name is None:
        raise ConfigurationError(
            f"{value!r} cannot be written to a file: register it as an entry point in compaction.{kind.value}"
        )
    if isinstance(value, FunctionStrategy) or part_named(kind, name) is value:
        return {USE: name}
    if not attrs.has(type(value)):
        raise ConfigurationError(f"{value!r} cannot be written to a file: it is no attrs class, so its options are not known")
    options = _options(value)
    if kind in _SECRETIVE:
        check_no_secrets(options)
    return {USE: name, **options}


def _is_part(made_from: Any, value: Any, kind: PartKind, name: str) -> bool:
    try:
        part = part_named(kind, name)
    except ConfigurationError:  # a registered part that cannot be imported is not this one
        return False
    return part is made_from or part is value


def _options(value: object) -> dict[str, Any]:
    kind: Any = type(value)
    for field in attrs.fields(kind):
        if field.name in _NOT_IN_FILES.get(kind, ()) and getattr(value, field.name) is not field.default:
            raise ConfigurationError(f"{kind.__name__}: no file can hold {field.name!r}; set it in code")
    options: dict[str, Any] = converter().unstructure(value, kind)
    return options

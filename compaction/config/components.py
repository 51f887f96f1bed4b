"""Strategies and their parts as plain data, read and written.

A component is a table with its name under ``use`` and its options beside it. The types of its fields, or of a function's
arguments, say how the options are read. Unknown keys, unknown names and values of wrong types are mistakes; all of them are
reported at once, each with its place.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, Union, cast, get_args, get_origin, get_type_hints

import attrs

from ..checks import default_of
from ..errors import CompactionError, ConfigurationError
from ..selectors import Selector
from ..stores import Store
from ..strategies import CompactionStrategy, FunctionStrategy, Pipeline, ProviderCompaction, Strategy, ToolStyle
from ..summarizers import FirstOf, OpenAISummarizer, Summarizer, SummaryTemplate, as_template, redact
from ..triggers import Trigger
from .allowed_servers import check_no_secrets
from .expressions import read_expression, write_expression
from .registry import ComponentKind, component_names, find_component, suggestion

USE: Final = "use"  # the key that names a component

_KINDS: Final[dict[object, ComponentKind]] = {
    Strategy: ComponentKind.STRATEGY,
    Trigger: ComponentKind.TRIGGER,
    Selector: ComponentKind.SELECTOR,
    ToolStyle: ComponentKind.TOOL_STYLE,
    Summarizer: ComponentKind.SUMMARIZER,
    Store: ComponentKind.STORE,
}
_EXPRESSIONS: Final = (ComponentKind.TRIGGER, ComponentKind.SELECTOR)  # written as such, like ``tokens_exceed(60_000)``
_SECRETIVE: Final = (ComponentKind.SUMMARIZER, ComponentKind.STORE)  # whose options could be secrets
_NOT_IN_FILES: Final[dict[type, tuple[str, ...]]] = {  # the options that only code can set
    OpenAISummarizer: ("client", "on_usage", "redact"),
    ProviderCompaction: ("client",),
}
_FUNCTIONS: Final[dict[str, Callable[[str], str]]] = {"redact": redact}  # that a file can name
_MOST_SHOWN: Final = 50  # mistakes in an error
_TYPES: Final[dict[Any, str]] = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    type(None): "nothing",
    dict: "a table",
    list: "a list",
}
_Place: TypeAlias = tuple[str | int, ...]  # the keys and numbers that lead to a value in plain data


# ------------------------------------------------------------------------ the options of a component


@attrs.frozen
class _Option:
    kind: Any  # its type
    is_required: bool
    is_listed: bool = False  # whether its items are arguments of their own


@cache
def _options_of(factory: Any) -> dict[str, _Option]:
    """Return the options of a class or function by name: an attrs class has its fields, others the arguments of their call."""
    has_own_init = factory in (FirstOf, Pipeline)  # with positional steps, instead of the one that attrs writes
    if inspect.isclass(factory) and attrs.has(factory) and not has_own_init:
        hints = get_type_hints(factory)
        return {field.name: _Option(hints[field.name], field.default is attrs.NOTHING) for field in _fields_in_files(factory)}
    hints = get_type_hints(factory.__init__ if inspect.isclass(factory) else factory)
    options: dict[str, _Option] = {}
    for name, each in inspect.signature(factory).parameters.items():
        kind, is_listed = hints.get(name, Any), each.kind is each.VAR_POSITIONAL
        listed: Any = types.GenericAlias(tuple, (kind, ...)) if is_listed else kind
        options[name] = _Option(listed, each.default is each.empty, is_listed)
    return options


def _fields_in_files(cls: Any) -> list[attrs.Attribute[Any]]:
    hidden = _NOT_IN_FILES.get(cls, ())
    return [field for field in attrs.fields(cls) if field.init and field.name[0] != "_" and field.name not in hidden]


def _types_of(kind: Any) -> tuple[Any, ...]:
    """Return the types of a union, or the type itself."""
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def _component_kind(kind: Any) -> ComponentKind | None:
    """Return the kind of component that a field of this type contains, if any."""
    return next((_KINDS[each] for each in _types_of(kind) if isinstance(each, Hashable) and each in _KINDS), None)


def _is_function(kind: Any) -> bool:
    return any(get_origin(each) is cast("object", get_origin(Callable[[], None])) for each in _types_of(kind))


def _is_plain(kind: Any) -> bool:
    return all(isinstance(each, Hashable) and each in _TYPES for each in _types_of(kind))


# ------------------------------------------------------------------------ reading


def read_strategy(data: Mapping[str, Any]) -> Any:
    """Return the strategy that plain data describes; without a name, it is a `Pipeline`.

    Raises:
        ConfigurationError: If it does not describe one; the message lists every mistake, up to 50, with its place.
    """
    reader = _Reader()
    strategy = reader.read({USE: "Pipeline", **data}, Strategy, ())
    if reader.mistakes:
        shown, more = reader.mistakes[:_MOST_SHOWN], len(reader.mistakes) - _MOST_SHOWN
        raise ConfigurationError("; ".join(shown) + (f"; and {more:,} more mistakes" if more > 0 else ""))
    return strategy


@attrs.frozen
class _Reader:
    """Reads plain data. Holds state: the mistakes found so far, in the order of the data, each with its place."""

    mistakes: list[str] = attrs.field(factory=list[str])

    def _note(self, place: _Place, mistake: str) -> None:
        shown = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in place).removeprefix(".")
        self.mistakes.append(f"{shown}: {mistake}" if place else mistake)

    def read(self, value: Any, kind: Any, place: _Place) -> Any:
        """Return the value of this type that plain data describes; ``None`` after a mistake."""
        try:
            return self._read(value, kind, place)
        except CompactionError as error:
            self._note(place, str(error))
        except (TypeError, ValueError) as error:
            self._note(place, f"it cannot be used ({error})")
        return None

    def _read(self, value: Any, kind: Any, place: _Place) -> Any:
        types = _types_of(kind)
        if kind is Any or (value is None and type(None) in types):
            return value
        if (component := _component_kind(kind)) is not None:
            return self._component(value, component, place)
        if SummaryTemplate in types:
            return self._template(value, place)
        if _is_function(kind):
            if not isinstance(value, str) or value not in _FUNCTIONS:
                known = suggestion(str(value), _FUNCTIONS)
                raise ConfigurationError(f"{value!r} is not a function that a file may name; {known}")
            return _FUNCTIONS[value]
        if _is_plain(kind):
            return _read_plain(value, types)
        return self._structured(value, next(each for each in types if each is not type(None)), place)

    def _structured(self, value: Any, kind: Any, place: _Place) -> Any:
        """Return the path, the allowed value, the tuple, the attrs object or the table that a value describes."""
        if kind is Path:
            return Path(_read_plain(value, (str,)))
        if get_origin(kind) is Literal:
            if value not in get_args(kind):
                raise ConfigurationError(f"{value!r}: {suggestion(str(value), map(str, get_args(kind)))}")
            return value
        if get_origin(kind) is tuple:
            if not isinstance(value, list | tuple):
                raise ConfigurationError(f"{value!r} is {_type_of(value)}; a list belongs here")
            items = enumerate(cast("Iterable[Any]", value))
            return tuple([self.read(each, get_args(kind)[0], (*place, number)) for number, each in items])
        return self._made(kind, _table(value), place) if attrs.has(kind) else _table(value)

    def _made(self, factory: Any, table: dict[str, Any], place: _Place) -> Any:
        """Return what a class or function makes of the options in a table; ``None`` after a mistake in them."""
        known, before = _options_of(factory), len(self.mistakes)
        for name, option in known.items():
            if option.is_required and name not in table:
                self._note(place, f"{name!r} is missing")
        for key in sorted(table.keys() - known.keys()):
            self._note(place, f"unknown key {key!r}; {suggestion(key, known)}")
        given = {key: self.read(value, known[key].kind, (*place, key)) for key, value in table.items() if key in known}
        if len(self.mistakes) > before:
            return None
        listed = [item for key in [*given] if known[key].is_listed for item in given.pop(key)]
        return factory(*listed, **given)

    def _template(self, value: Any, place: _Place) -> SummaryTemplate:
        """Return a template: a prompt, an instruction, or a table of its texts, or of files: ``path``, ``update_path``."""
        if isinstance(value, str):
            return as_template(value)
        table = _table(value)
        made: SummaryTemplate = self._made(_template_of_files if "path" in table else SummaryTemplate, table, place)
        return made

    def _component(self, value: Any, kind: ComponentKind, place: _Place) -> Any:
        """Return the component of an expression, or of a name or a table with the name under ``use``."""
        if kind in _EXPRESSIONS:
            return read_expression(value, kind)
        table = {USE: value} if isinstance(value, str) else _table(value)
        name = table.pop(USE, None)
        if not isinstance(name, str):
            known = suggestion("", component_names(kind))
            raise ConfigurationError(f"'{USE}' must name one of the {kind.value} (got {name!r}); {known}")
        if kind is ComponentKind.STRATEGY and name not in component_names(kind):
            return self._preset(name, table, place)
        component = find_component(kind, name)
        if kind in _SECRETIVE:
            check_no_secrets(table)
        if inspect.isclass(component):
            return self._made(component, table, place)
        if table:
            raise ConfigurationError(f"{name} takes no options (got {', '.join(table)})")
        if kind is ComponentKind.STRATEGY and not isinstance(component, Strategy):
            return FunctionStrategy(component)
        return component

    def _preset(self, name: str, table: dict[str, Any], place: _Place) -> Any:
        """Return the strategy that a preset makes; of an unknown one, the options that every strategy has are read."""
        if name in component_names(ComponentKind.PRESET):
            strategy = self._made(find_component(ComponentKind.PRESET, name), table, place)
            if not isinstance(strategy, Strategy | None):
                raise ConfigurationError(
                    f"{name!r} returned {strategy!r}, which is not a strategy; use another entry-point group"
                )
            return strategy
        known = [*component_names(ComponentKind.STRATEGY), *component_names(ComponentKind.PRESET)]
        self._note(place, f"{name!r} is not a strategy; {suggestion(name, known)}")
        common = _options_of(CompactionStrategy)
        for key in [key for key in table if key in common]:
            self.read(table[key], common[key].kind, (*place, key))
        return None


def _template_of_files(*, path: str, update_path: str | None = None) -> SummaryTemplate:
    return SummaryTemplate.read(path, update=update_path)


def _read_plain(value: Any, kinds: tuple[Any, ...]) -> Any:
    allowed = (*kinds, int) if float in kinds else kinds
    if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in kinds):
        wanted = " or ".join([_TYPES[each] for each in kinds])
        raise ConfigurationError(f"{value!r} is {_type_of(value)}; {wanted} belongs here")
    return value


def _type_of(value: object) -> str:
    return _TYPES.get(type(value), type(value).__name__)


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"{value!r} is {_type_of(value)}; a table belongs here")
    return {str(key): each for key, each in cast("dict[Any, Any]", value).items()}


# ------------------------------------------------------------------------ writing


def write_component(value: Any, kind: ComponentKind) -> Any:
    """Return plain data that is read as an equal component; options with their default values are omitted."""
    if kind in _EXPRESSIONS:
        return write_expression(value, kind)
    cls: Any = type(cast("object", value))
    origin: object = value.function if isinstance(value, FunctionStrategy) else cls
    name = next((each for each in component_names(kind) if _is_named(origin, value, kind, each)), None)
    if name is None:
        raise ConfigurationError(
            f"{value!r} cannot be written to a file: register it as an entry point in compaction.{kind.value}"
        )
    if isinstance(value, FunctionStrategy) or find_component(kind, name) is value:
        return name
    if not attrs.has(cls):
        raise ConfigurationError(f"{value!r} cannot be written to a file: its class is not an attrs class")
    for hidden in _NOT_IN_FILES.get(cls, ()):
        if getattr(value, hidden) is not getattr(attrs.fields(cls), hidden).default:
            raise ConfigurationError(f"{cls.__name__}: a file cannot contain {hidden!r}; set it in code")
    options = _written_options(value)
    if kind in _SECRETIVE:
        check_no_secrets(options)
    return {USE: name, **options} if options else name


def _is_named(origin: Any, value: Any, kind: ComponentKind, name: str) -> bool:
    """Whether a component has this name; ``origin`` is its class or function."""
    try:
        component = find_component(kind, name)
    except ConfigurationError:  # a registered component that cannot be imported is a different one
        return False
    return component is origin or component is value


def _written_options(value: object) -> dict[str, Any]:
    cls: Any = type(value)
    hints = get_type_hints(cls)
    given = [(field, getattr(value, field.name)) for field in _fields_in_files(cls)]
    return {field.name: _written(each, hints[field.name]) for field, each in given if each != default_of(field, value)}


def _written(value: object, kind: Any) -> Any:
    of_component = _component_kind(kind)
    if of_component is not None and value is not None:
        return write_component(value, of_component)
    if value is not None and _is_function(kind):
        name = next((name for name, function in _FUNCTIONS.items() if function is value), None)
        if name is None:
            raise ConfigurationError(f"{value!r} is a function that a file cannot name; omit it, or set it in code")
        return name
    if isinstance(value, tuple):
        return [_written(each, get_args(kind)[0]) for each in cast("Iterable[Any]", value)]
    if attrs.has(type(value)):
        return _written_options(value)
    return str(value) if isinstance(value, Path) else value

"""Reading strategies and their parts from plain data.

A component is a table with its name under ``use`` and its options beside it. The types of its fields, or of a function's
arguments, say how the options are read. Unknown keys, unknown names and values of wrong types are mistakes; all of them are
reported at once, each with its place.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast, get_args, get_origin

import attrs

from ..errors import CompactionError, ConfigurationError
from ..strategies import CompactionStrategy, FunctionStrategy, Strategy
from ..summarizers import SummaryTemplate, as_template
from .allowed_servers import check_no_secrets
from .component_fields import EXPRESSIONS, FUNCTIONS, SECRETIVE, USE, component_kind, is_function, options_of, types_of
from .expressions import read_expression
from .registry import ComponentKind, component_names, find_component, suggestion

_TYPES: Final[dict[Any, str]] = {
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    type(None): "nothing",
    dict: "a table",
    list: "a list",
}

_Place: TypeAlias = tuple[str | int, ...]
"""The keys and numbers that lead to a value in plain data."""


def read_strategy(data: Mapping[str, Any]) -> Any:
    """Return the strategy that plain data describes; without a name, it is a `Pipeline`.

    Raises:
        ConfigurationError: If it does not describe one; the message lists every mistake with its place.
    """
    reader = _Reader()
    strategy = reader.read({USE: "Pipeline", **data}, Strategy, ())
    if reader.mistakes:
        raise ConfigurationError("; ".join(reader.mistakes))
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
        types = types_of(kind)
        if kind is Any or (value is None and type(None) in types):
            return value
        if (component := component_kind(kind)) is not None:
            return self.read_component(value, component, place)
        if SummaryTemplate in types:
            return self.read_template(value, place)
        if is_function(kind):
            return _function_named(value)
        if _is_plain(kind):
            return _read_plain(value, types)
        return self._read_other(value, next(each for each in types if each is not type(None)), place)

    def _read_other(self, value: Any, kind: Any, place: _Place) -> Any:
        if kind is Path:
            return Path(_read_plain(value, (str,)))
        if get_origin(kind) is Literal:
            return _read_literal(value, kind)
        if get_origin(kind) is tuple:
            return self.read_list(value, kind, place)
        return self.make(kind, _table(value), place) if attrs.has(kind) else _table(value)

    def read_list(self, value: Any, kind: Any, place: _Place) -> Any:
        """Return the tuple that a list describes."""
        if not isinstance(value, list | tuple):
            raise ConfigurationError(f"{value!r} is {_type_of(value)}; a list belongs here")
        of_items = get_args(kind)[0]
        items = enumerate(cast("Iterable[Any]", value))
        return tuple([self.read(each, of_items, (*place, number)) for number, each in items])

    def make(self, factory: Any, table: dict[str, Any], place: _Place) -> Any:
        """Return what a class or function makes of the options in a table; ``None`` after a mistake in them."""
        known, before = options_of(factory), len(self.mistakes)
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

    def read_template(self, value: Any, place: _Place) -> SummaryTemplate:
        """Return a template: a prompt, an instruction, or a table of its texts, or of files: ``path``, ``update_path``."""
        if isinstance(value, str):
            return as_template(value)
        table = _table(value)
        made: SummaryTemplate = self.make(_template_of_files if "path" in table else SummaryTemplate, table, place)
        return made

    def read_component(self, value: Any, kind: ComponentKind, place: _Place) -> Any:
        """Return the component of an expression, or of a name or a table with the name under ``use``."""
        if kind in EXPRESSIONS:
            return read_expression(value, kind)
        table = {USE: value} if isinstance(value, str) else _table(value)
        name = table.pop(USE, None)
        if not isinstance(name, str):
            known = suggestion("", component_names(kind))
            raise ConfigurationError(f"'{USE}' must name one of the {kind.value} (got {name!r}); {known}")
        if kind is ComponentKind.STRATEGY and name not in component_names(kind):
            return self._preset(name, table, place)
        component = find_component(kind, name)
        if kind in SECRETIVE:
            check_no_secrets(table)
        if inspect.isclass(component):
            return self.make(component, table, place)
        if table:
            raise ConfigurationError(f"{name} takes no options (got {', '.join(table)})")
        if kind is ComponentKind.STRATEGY and not isinstance(component, Strategy):
            return FunctionStrategy(component)
        return component

    def _preset(self, name: str, table: dict[str, Any], place: _Place) -> Any:
        """Return the strategy that a preset makes; of an unknown one, the options that every strategy has are read."""
        if name in component_names(ComponentKind.PRESET):
            strategy = self.make(find_component(ComponentKind.PRESET, name), table, place)
            if not isinstance(strategy, Strategy | None):
                raise ConfigurationError(
                    f"{name!r} returned {strategy!r}, which is not a strategy; use another entry-point group"
                )
            return strategy
        known = [*component_names(ComponentKind.STRATEGY), *component_names(ComponentKind.PRESET)]
        self._note(place, f"{name!r} is not a strategy; {suggestion(name, known)}")
        common = options_of(CompactionStrategy)
        for key in [key for key in table if key in common]:
            self.read(table[key], common[key].kind, (*place, key))
        return None


def _function_named(name: Any) -> Callable[[str], str]:
    if not isinstance(name, str) or name not in FUNCTIONS:
        raise ConfigurationError(f"{name!r} is not a function that a file may name; {suggestion(str(name), FUNCTIONS)}")
    return FUNCTIONS[name]


def _template_of_files(*, path: str, update_path: str | None = None) -> SummaryTemplate:
    return SummaryTemplate.read(path, update=update_path)


def _read_plain(value: Any, kinds: tuple[Any, ...]) -> Any:
    allowed = (*kinds, int) if float in kinds else kinds
    if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in kinds):
        wanted = " or ".join([_TYPES[each] for each in kinds])
        raise ConfigurationError(f"{value!r} is {_type_of(value)}; {wanted} belongs here")
    return value


def _read_literal(value: Any, kind: Any) -> Any:
    allowed = get_args(kind)
    if value not in allowed:
        raise ConfigurationError(f"{value!r}: {suggestion(str(value), map(str, allowed))}")
    return value


def _type_of(value: object) -> str:
    return _TYPES.get(type(value), type(value).__name__)


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigurationError(f"{value!r} is {_type_of(value)}; a table belongs here")
    return {str(key): each for key, each in cast("dict[Any, Any]", value).items()}


def _is_plain(kind: Any) -> bool:
    return all(isinstance(each, Hashable) and each in _TYPES for each in types_of(kind))

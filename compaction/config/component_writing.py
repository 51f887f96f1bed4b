"""Writing strategies and their parts as plain data, which `component_reading` reads."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast, get_args, get_type_hints

import attrs

from ..checks import default_of
from ..errors import ConfigurationError
from ..strategies import FunctionStrategy, Pipeline
from ..triggers import always
from .allowed_servers import check_no_secrets
from .component_fields import EXPRESSIONS, FUNCTIONS, NOT_IN_FILES, SECRETIVE, USE, component_kind, fields_in_files, is_function
from .expressions import write_expression
from .registry import ComponentKind, component_names, find_component


def write_component(value: Any, kind: ComponentKind) -> Any:
    """Return plain data that is read as an equal component; options with their default values are omitted."""
    if kind in EXPRESSIONS:
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
    cls: Any = type(value)
    origin: object = value.function if isinstance(value, FunctionStrategy) else cls
    name = next((each for each in component_names(kind) if _is_named(origin, value, kind, each)), None)
    if name is None:
        raise ConfigurationError(
            f"{value!r} cannot be written to a file: register it as an entry point in compaction.{kind.value}"
        )
    if isinstance(value, FunctionStrategy) or find_component(kind, name) is value:
        return {USE: name}
    if not attrs.has(cls):
        raise ConfigurationError(f"{value!r} cannot be written to a file: its class is not an attrs class")
    for hidden in NOT_IN_FILES.get(cls, ()):
        if getattr(value, hidden) is not getattr(attrs.fields(cls), hidden).default:
            raise ConfigurationError(f"{cls.__name__}: a file cannot contain {hidden!r}; set it in code")
    options = _written_options(value)
    if kind in SECRETIVE:
        check_no_secrets(options)
    return {USE: name, **options}


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
    given = [(field, getattr(value, field.name)) for field in fields_in_files(cls)]
    return {field.name: _write(each, hints[field.name]) for field, each in given if each != default_of(field, value)}


def _write(value: object, kind: Any) -> Any:
    of_component = component_kind(kind)
    if of_component is not None and value is not None:
        return write_component(value, of_component)
    if value is not None and is_function(kind):
        name = next((name for name, function in FUNCTIONS.items() if function is value), None)
        if name is None:
            raise ConfigurationError(f"{value!r} is a function that a file cannot name; omit it, or set it in code")
        return name
    if isinstance(value, tuple):
        return [_write(each, get_args(kind)[0]) for each in cast("Iterable[Any]", value)]
    if attrs.has(type(value)):
        return _written_options(value)
    return str(value) if isinstance(value, Path) else value

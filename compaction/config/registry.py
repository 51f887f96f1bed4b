"""The components that a pipeline file can name: those of this package, and those that other packages register.

A package registers a component as an entry point in the group of its kind, ``compaction.strategies`` and so on::

    [project.entry-points."compaction.strategies"]
    drop_small_talk = "acme.compaction:drop_small_talk"
"""

from __future__ import annotations

import difflib
import enum
import inspect
from collections.abc import Callable, Iterable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from .. import selectors, stores, strategies, summarizers, triggers
from ..errors import ConfigurationError
from ..index import GroupKind
from ..presets import PRESETS
from ..selectors import Selector
from ..strategies import CompactionStrategy, DropIrrelevant, FunctionStrategy, Strategy
from ..triggers import Trigger


class ComponentKind(enum.Enum):
    """The kinds of components; a value is the end of the entry-point group's name."""

    STRATEGY = "strategies"  # a `Strategy` class, or a function that yields edits
    PRESET = "presets"  # a function that returns a strategy; a file names it like a strategy
    TRIGGER = "triggers"  # a trigger, a function that returns one, or a plain condition on an index
    SELECTOR = "selectors"  # a selector, a function that returns one, or a plain function that selects groups
    TOOL_STYLE = "tool_styles"  # a class of `ToolStyle` values
    SUMMARIZER = "summarizers"  # a class of `Summarizer` values
    STORE = "stores"  # a class of `Store` values


def component_names(kind: ComponentKind) -> list[str]:
    """Return every name of a component of this kind; nothing is imported.

    >>> component_names(ComponentKind.TOOL_STYLE)[:4]
    ['Clear', 'Collapse', 'Dedupe', 'HeadTail']
    """
    return [*_built_in(kind), *_registered(kind)]


def find_component(kind: ComponentKind, name: str) -> Any:
    """Return the class, function or value of that name; a registered one is imported."""
    built_in = _built_in(kind)
    if name in built_in:
        return built_in[name]
    point = _registered(kind).get(name)
    if point is None:
        known = component_names(kind)
        raise ConfigurationError(f"{name!r} is not one of the {kind.value}; {suggestion(name, known)}")
    try:
        return point.load()
    except Exception as error:
        raise ConfigurationError(f"{name!r}: {point.value} cannot be imported ({error}); fix or remove its package") from error


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return a suggestion for an unknown name, in words.

    >>> suggestion("min_char", ["placeholder", "min_chars"])
    "did you mean 'min_chars'?"
    """
    known = list(known)
    close = difflib.get_close_matches(name, known, 1, 0.5) or [each for each in known if each.lower() == name.lower()]
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known) or 'none'}"


@cache
def _built_in(kind: ComponentKind) -> dict[str, Any]:
    return {
        ComponentKind.STRATEGY: _shown(strategies, _is_strategy),
        ComponentKind.PRESET: {name: preset.make for name, preset in PRESETS.items()},
        ComponentKind.TRIGGER: _shown(triggers, _makes(Trigger)),
        ComponentKind.SELECTOR: _shown(selectors, _makes(Selector)) | {f"GroupKind.{each.name}": each for each in GroupKind},
        ComponentKind.TOOL_STYLE: _named(strategies, "Clear Collapse Dedupe HeadTail"),
        ComponentKind.SUMMARIZER: _named(
            summarizers, "CachedSummarizer DigestSummarizer FactSummarizer FirstOf OpenAISummarizer"
        ),
        ComponentKind.STORE: _named(stores, "SQLiteStore"),
    }[kind]


def _named(module: Any, names: str) -> dict[str, Any]:
    return {name: getattr(module, name) for name in names.split()}


def _shown(module: Any, wanted: Callable[[Any], bool]) -> dict[str, Any]:
    return {name: component for name in module.__all__ if wanted(component := getattr(module, name))}


def _is_strategy(component: Any) -> bool:
    not_in_files = (Strategy, CompactionStrategy, FunctionStrategy, DropIrrelevant)  # the judge of the last one is an object
    return inspect.isclass(component) and issubclass(component, Strategy) and component not in not_in_files


def _makes(kind: type) -> Callable[[Any], bool]:
    """Return a predicate for values of a type and for functions that return them."""
    return lambda component: (
        isinstance(component, kind) or (inspect.isfunction(component) and not component.__name__.startswith("as_"))
    )


@cache
def _registered(kind: ComponentKind) -> dict[str, EntryPoint]:
    """Return the entry points of a kind; they are looked up once a process, which reads the metadata of all packages."""
    found: dict[str, EntryPoint] = {}
    for point in entry_points(group=f"compaction.{kind.value}"):
        other = found.setdefault(point.name, point)
        if point.name in _built_in(kind) or other.value != point.value:
            raise ConfigurationError(f"two {kind.value} are called {point.name!r}, one of them {point.value}; rename one")
    return found

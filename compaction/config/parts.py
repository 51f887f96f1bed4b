"""What a file may name: every part of this package, and those that installed packages register as entry points.

A package registers a part under its name in the group of its kind, ``compaction.strategies`` and so on::

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

from .. import presets, selectors, stores, strategies, summarizers, triggers
from ..errors import ConfigurationError
from ..groups import GroupKind
from ..selectors import Selector
from ..strategies import CompactionStrategy, FunctionStrategy, Strategy
from ..triggers import Trigger

__all__ = ["PartKind", "nearest", "part_named", "part_names"]


class PartKind(enum.Enum):
    """What a part is; the value is the end of its entry-point group's name."""

    STRATEGY = "strategies"
    """A `Strategy` class, or a function that yields edits."""

    PRESET = "presets"
    """A function that returns a strategy; a file uses it as one."""

    TRIGGER = "triggers"
    """A trigger, a function that makes one, or a plain condition on an index."""

    SELECTOR = "selectors"
    """A selector, a function that makes one, or a plain choice of groups."""

    TOOL_STYLE = "tool_styles"
    """A class of `ToolStyle` values."""

    OFFLOAD_STYLE = "offload_styles"
    """A class of `OffloadStyle` values."""

    SUMMARIZER = "summarizers"
    """A class of `Summarizer` values."""

    STORE = "stores"
    """A class of `Store` values."""


def part_names(kind: PartKind) -> list[str]:
    """Every name a file may use for a part of this kind; imports nothing.

    >>> part_names(PartKind.TOOL_STYLE)[:4]
    ['Clear', 'Collapse', 'Dedupe', 'HeadTail']
    """
    return [*_built_in(kind), *_registered(kind)]


def part_named(kind: PartKind, name: str) -> Any:
    """The class, function or value of that name; a registered one is imported now.

    Raises:
        ConfigurationError: If there is none, or its package cannot be imported.
    """
    built_in = _built_in(kind)
    if name in built_in:
        return built_in[name]
    point = _registered(kind).get(name)
    if point is None:
        known = part_names(kind)
        raise ConfigurationError(f"{name!r} is none of the {kind.value}; {nearest(name, known)}")
    try:
        return point.load()
    except Exception as error:
        raise ConfigurationError(f"{name!r}: {point.value} cannot be imported ({error}); mend or remove its package") from error


def nearest(name: str, known: Iterable[str]) -> str:
    """What to write instead of a name that is not known, in words.

    >>> nearest("min_char", ["placeholder", "min_chars"])
    "did you mean 'min_chars'?"
    """
    known = list(known)
    close = difflib.get_close_matches(name, known, 1, 0.5) or [each for each in known if each.lower() == name.lower()]
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known) or 'none'}"


@cache
def _built_in(kind: PartKind) -> dict[str, Any]:
    return {
        PartKind.STRATEGY: _shown(strategies, _is_strategy),
        PartKind.PRESET: _shown(presets, inspect.isfunction),
        PartKind.TRIGGER: _shown(triggers, _makes(Trigger)),
        PartKind.SELECTOR: {**_shown(selectors, _makes(Selector)), **{f"GroupKind.{each.name}": each for each in GroupKind}},
        PartKind.TOOL_STYLE: {
            each.__name__: each for each in (strategies.Clear, strategies.Collapse, strategies.Dedupe, strategies.HeadTail)
        },
        PartKind.OFFLOAD_STYLE: {each.__name__: each for each in (strategies.StubGroups, strategies.StubResults)},
        PartKind.SUMMARIZER: {
            each.__name__: each
            for each in (
                summarizers.CachedSummarizer,
                summarizers.DigestSummarizer,
                summarizers.FactSummarizer,
                summarizers.OpenAISummarizer,
            )
        },
        PartKind.STORE: {"SQLiteStore": stores.SQLiteStore},
    }[kind]


def _shown(module: Any, wanted: Callable[[Any], bool]) -> dict[str, Any]:
    return {name: part for name in module.__all__ if wanted(part := getattr(module, name))}


def _is_strategy(part: Any) -> bool:
    return inspect.isclass(part) and issubclass(part, Strategy) and part not in (Strategy, CompactionStrategy, FunctionStrategy)


def _makes(kind: type) -> Callable[[Any], bool]:
    """Whether something is a value of a kind, or a function that returns one from plain arguments."""

    def wanted(part: Any) -> bool:
        return isinstance(part, kind) or (inspect.isfunction(part) and not part.__name__.startswith("as_"))

    return wanted


def _registered(kind: PartKind) -> dict[str, EntryPoint]:
    """The entry points of a kind, looked up each time: packages come and go.

    Raises:
        ConfigurationError: If two parts have one name.
    """
    found: dict[str, EntryPoint] = {}
    for point in entry_points(group=f"compaction.{kind.value}"):
        other = found.setdefault(point.name, point)
        if point.name in _built_in(kind) or other.value != point.value:
            raise ConfigurationError(f"two {kind.value} are called {point.name!r}, one of them {point.value}; rename one")
    return found

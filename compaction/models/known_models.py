"""Models by name: the prices and the input limit of each, from the first table that has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import attrs

from ..errors import ConfigurationError
from .prices import ModelPrices
from .snapshot import is_installed, snapshot_entries, snapshot_names
from .tables import ModelEntry, packaged_models, read_models_file

RESERVED_TOKENS: Final = 16_000
"""Tokens of a context window that are kept for the answer by default, where that is at most an eighth of it; else an eighth."""

_RESERVED_SHARE: Final = 8

ModelTable: TypeAlias = Mapping[str, int] | Path
"""A table of one's own: context windows by model's name, or the path of a file in the shape of ``models.toml``."""


class UnknownModel(ConfigurationError):
    """The model is in no table, or no table has the figure that was asked for."""


def input_limit(model: str, *, reserve_output: int | None = None, table: ModelTable | None = None) -> int:
    """Return how many tokens a request to a model may have.

    That is the smaller of the published input limit, if one is known, and the context window less ``reserve_output``. Looking a
    model up loads ``genai-prices`` (0.2 s of CPU time, once) unless a table has it.

    Args:
        model: A name, with or without a provider (``openai/gpt-5``, ``anthropic:claude-sonnet-4-5``) and a date.
        reserve_output: Tokens of the context window kept for the answer, >= 0; ``None`` for 16,000 (`RESERVED_TOKENS`), and at
            most an eighth of the context window.
        table: Your own context windows, by name; they are used first.

    Raises:
        UnknownModel: If no table knows its window; the message names similar models, and what to do.
        ConfigurationError: If the table is bad, or the reserve is not below the context window.

    >>> input_limit("gpt-5"), input_limit("gpt-5", reserve_output=200_000)
    (272000, 200000)
    >>> input_limit("our-model", table={"our-model": 64_000})
    56000
    """
    entry = next((each for each in _entries(model, table) if each.context_window or each.input_limit), None)
    if entry is None:
        raise UnknownModel(f"the window of model {model!r} is not known; {_similar(model, table)}; or pass a number of tokens")
    limits = [] if entry.input_limit is None else [entry.input_limit]
    if entry.context_window is not None:
        limits.append(entry.context_window - _reserve(reserve_output, model, entry.context_window))
    return min(limits)


def _reserve(given: int | None, model: str, window: int) -> int:
    if given is None:
        return min(RESERVED_TOKENS, window // _RESERVED_SHARE)
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given < window:
        raise ConfigurationError(
            f"reserve_output={given!r}: a whole number from 0 to below the context window of {model}, {window:,} tokens"
        )
    return given


def prices_of(model: str | ModelPrices, path: Path | None = None) -> ModelPrices:
    """Return the prices of a model.

    Args:
        model: A name, with or without a provider prefix or a date; or prices, which are returned.
        path: Your own table, in the shape of the package's; it is used first.

    Raises:
        UnknownModel: If no table has its prices; the message names similar models.

    >>> prices_of("openai/gpt-5-2025-08-07").model
    'gpt-5'
    """
    if isinstance(model, ModelPrices):
        return model
    found = next((each.prices for each in _entries(model, path) if each.prices is not None), None)
    if found is None:
        raise UnknownModel(f"no table has prices for model {model!r}; {_similar(model, path)}; or add it to your own table")
    return found


def _entries(model: str, table: ModelTable | None) -> Iterator[ModelEntry]:
    """Yield what each table says of a model: your own, the package's, the snapshot."""
    names = _names(model)
    for known in (_own(table), packaged_models()):
        if (entry := _found(names, known)) is not None:
            yield entry
    for entry in snapshot_entries(names):
        limits = packaged_models().get(entry.model, entry)  # it knows more names of a model than the package's table
        yield attrs.evolve(entry, input_limit=limits.input_limit)


def _own(table: ModelTable | None) -> Mapping[str, ModelEntry]:
    if table is None or isinstance(table, Path):
        return {} if table is None else read_models_file(table)
    return {name.lower(): ModelEntry(model=name.lower(), context_window=tokens) for name, tokens in table.items()}


def _names(model: str) -> list[str]:
    """Return the forms of a name, the fullest first: as given, without its provider by ``/``, and by ``:``."""
    name = model.strip().lower()
    short = name.rpartition("/")[2]
    return list(dict.fromkeys(filter(None, (name, short, short.partition(":")[2], name.partition(":")[2]))))


def _found(names: list[str], table: Mapping[str, ModelEntry]) -> ModelEntry | None:
    """Return a model's entry in a table; what follows a known name may be a date."""
    for name in names:
        if name in table:
            return table[name]
        dated = [known for known in table if name.startswith(f"{known}-") and name.removeprefix(f"{known}-")[:1].isdigit()]
        if dated:
            return table[max(dated, key=len)]
    return None


def _similar(model: str, table: ModelTable | None) -> str:
    """Return which names to try instead, in words."""
    import difflib

    known = dict.fromkeys((*_own(table), *packaged_models(), *snapshot_names()))
    close = [match for name in _names(model) for match in difflib.get_close_matches(name, known, 3, 0.6)]
    said = f"similar names are {', '.join(dict.fromkeys(close))}" if close else "no known name is similar"
    return said if is_installed() else f"{said}; pip install 'compaction-toolkit[models]' brings 2,330 more"

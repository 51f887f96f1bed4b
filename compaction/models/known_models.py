"""`input_limit` and `prices_of`: look up a model's figures by name in the tables, first table first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, TypeAlias

import attrs

from ..checks import is_count
from ..errors import ConfigurationError
from ..installation import install_line
from .prices import ModelPrices
from .snapshot import is_installed, snapshot_entries, snapshot_names
from .tables import ModelEntry, packaged_models, read_models_file

RESERVED_TOKENS: Final = 16_000
"""The tokens of a context window that are reserved for the answer by default, but at most an eighth of the window."""

_RESERVED_SHARE: Final = 8
LONGEST_NAME: Final = 200
"""The most characters of a model's name. A client of a server may send any text as one, and each is compared with thousands."""

_MONTH: Final = r"(0[1-9]|1[0-2])"
_SNAPSHOT: Final = re.compile(
    rf"((20\d\d-?)?{_MONTH}-?(0[1-9]|[12]\d|3[01])"  # 2025-08-07, 20250807 or 0807
    rf"|{_MONTH}-20\d\d|2[3-9]{_MONTH}|0\d\d)"  # 09-2025, 2411 or 001; versions and sizes have no zero in front
    r"(-v\d+(:\d+)?)?"  # Amazon Bedrock's version of the same model
)

ModelTable: TypeAlias = Mapping[str, int] | Path
"""Your own table: context windows by the models' names, or the path of a file with the structure of ``models.toml``."""


class UnknownModel(ConfigurationError):
    """The model is in no table, or no table has the requested figure."""


def input_limit(model: str, *, reserve_output: int | None = None, table: ModelTable | None = None) -> int:
    """Return the most tokens that a request to a model may have.

    This is the smaller of the published input limit, if there is one, and the context window less ``reserve_output``. A model
    that is in neither table is looked up in ``genai-prices``, which takes 0.2 s of CPU time to load.

    Args:
        model: A name, with or without a provider (``openai/gpt-5``, ``anthropic:claude-sonnet-4-5``), and with or without the
            date or number of a snapshot (``gpt-5-2025-08-07``, ``mistral-large-2411``, ``gemini-2.5-flash-001``).
        reserve_output: Tokens of the context window that are reserved for the answer, >= 0; ``None`` for 16,000
            (`RESERVED_TOKENS`), but at most an eighth of the context window.
        table: Your own table, which is read first.

    Raises:
        UnknownModel: If no table has its window; the message names similar models.
        ConfigurationError: If the table is invalid, or the reserve is not below the context window.

    >>> input_limit("gpt-5"), input_limit("gpt-5", reserve_output=200_000)
    (272000, 200000)
    >>> input_limit("our-model", table={"our-model": 64_000})
    56000
    """
    entry = next((each for each in _entries_of(model, table) if each.context_window or each.input_limit), None)
    if entry is None:
        raise UnknownModel(f"the window of model {model!r} is unknown: pass a number of tokens; {_similar_names(model, table)}")
    limits = [] if entry.input_limit is None else [entry.input_limit]
    if entry.context_window is not None:
        limits.append(entry.context_window - _reserve(reserve_output, model, entry.context_window))
    return min(limits)


def _reserve(given: int | None, model: str, window: int) -> int:
    if given is None:
        return min(RESERVED_TOKENS, window // _RESERVED_SHARE)
    if not is_count(given) or given >= window:
        text = (
            f"reserve_output={given!r}: must be a whole number from 0 to {window - 1:,}, "
            f"because the context window of {model} has {window:,} tokens"
        )
        raise ConfigurationError(text, argument="reserve_output")
    return given


def prices_of(model: str | ModelPrices, table: Path | None = None) -> ModelPrices:
    """Return the prices of a model.

    Args:
        model: A name as for `input_limit`; or prices, which are returned.
        table: The file of your own table, with the structure of ``models.toml``; it is read first.

    Raises:
        UnknownModel: If no table has its prices; the message names similar models.

    >>> prices_of("openai/gpt-5-2025-08-07").model
    'gpt-5'
    """
    if isinstance(model, ModelPrices):
        return model
    found = next((each.prices for each in _entries_of(model, table) if each.prices is not None), None)
    if found is None:
        similar = _similar_names(model, table)
        raise UnknownModel(f"no table has prices for model {model!r}; {similar}; or add it to your own table")
    return found


def _entries_of(model: str, table: ModelTable | None) -> Iterator[ModelEntry]:
    """Yield the entries of a model: in your own table, in the package's, and in ``genai-prices``."""
    names = _spellings(model)
    for known in (_own_table(table), packaged_models()):
        if (entry := _entry_of(names, known)) is not None:
            yield entry
    for entry in snapshot_entries(names):
        # genai-prices has no input limits; the package's table may have one under the name that genai-prices gives the model
        limits = packaged_models().get(entry.model, entry)
        yield attrs.evolve(entry, input_limit=limits.input_limit)


def _own_table(table: ModelTable | None) -> Mapping[str, ModelEntry]:
    """Return the entries of the caller's table: of a file, or of a mapping from names to context windows."""
    if table is None or isinstance(table, Path):
        return {} if table is None else read_models_file(table)
    if not isinstance(table, Mapping):
        text = f"table={table!r}: must be a mapping from names to context windows, or a pathlib.Path of a TOML file"
        raise ConfigurationError(text, argument="table")
    return {name.lower(): ModelEntry(model=name.lower(), context_window=tokens) for name, tokens in table.items()}


def _spellings(model: str) -> list[str]:
    """Return the forms of a name, the fullest first: as given, without a provider before ``/``, and before ``:``.

    Forms that are too long for a name are left out.
    """
    name = model.strip().lower()
    short = name.rpartition("/")[2]
    forms = (name, short, short.partition(":")[2], name.partition(":")[2])
    return list(dict.fromkeys([form for form in forms if 0 < len(form) <= LONGEST_NAME]))


def _entry_of(names: list[str], table: Mapping[str, ModelEntry]) -> ModelEntry | None:
    """Return a model's entry in a table; the name may end in the date or number of a snapshot that the table does not have."""
    for name in names:
        if name in table:
            return table[name]
        dated = [known for known in table if name.startswith(f"{known}-") and _SNAPSHOT.fullmatch(name, len(known) + 1)]
        if dated:
            return table[max(dated, key=len)]
    return None


def _similar_names(model: str, table: ModelTable | None) -> str:
    """Return the similar names, in words."""
    import difflib

    known = dict.fromkeys((*_own_table(table), *packaged_models(), *snapshot_names()))
    close = [match for name in _spellings(model) for match in difflib.get_close_matches(name, known, 3, 0.6)]
    said = f"similar names are {', '.join(dict.fromkeys(close))}" if close else "no known name is similar"
    return said if is_installed() else f"{said}; {install_line('models')} adds many more"

"""Reads tables of models in TOML: prices, rules of prompt caches, context windows and input limits.

The package's own table is ``models.toml`` in this folder; your own files have the same structure.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

import attrs

from ..checks import count
from ..errors import ConfigurationError
from .prices import ModelPrices

_TABLE: Final = Path(__file__).with_name("models.toml")
_LIMITS: Final = ("context_window", "input_limit")
_CACHE_RULES: Final = ("minimum_tokens", "block_tokens", "ttl_seconds")


@attrs.frozen(kw_only=True)
class ModelEntry:
    """The figures of one model in one table; ``None`` where the table has none.

    Args:
        model: The model's name.
        prices: Its prices.
        context_window: Tokens of its input and output together, >= 1.
        input_limit: Tokens of its input, as published, >= 1.
    """

    model: str
    prices: ModelPrices | None = None
    context_window: int | None = attrs.field(default=None, validator=attrs.validators.optional(count(1)))
    input_limit: int | None = attrs.field(default=None, validator=attrs.validators.optional(count(1)))


@cache
def packaged_models() -> Mapping[str, ModelEntry]:
    """Return the package's own table."""
    return read_models(_TABLE.read_text(encoding="utf-8"), _TABLE.name)


@cache
def cache_rules(provider: str) -> Mapping[str, Any]:
    """Return the rules of a provider's prompt cache from the package's table, as arguments of `ModelPrices`."""
    fields = _providers(_TABLE.read_text(encoding="utf-8"), _TABLE.name).get(provider, {})
    return {name: fields[name] for name in _CACHE_RULES if name in fields}


def read_models_file(path: Path) -> dict[str, ModelEntry]:
    """Return the entries of a file, by name; errors as for `read_models`."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: cannot read a table of models ({error}); it must be a TOML file in UTF-8") from error
    return read_models(text, str(path))


def read_models(text: str, where: str) -> dict[str, ModelEntry]:
    r"""Return the entries of a table, by the model's name in lower case.

    Args:
        text: TOML: for each provider a table with ``source``, ``date``, the rules of its cache, and its ``models``. A model has
            prices, or ``context_window`` and ``input_limit``, or all of them.
        where: The table's name, for errors.

    >>> table = "[here]\ndate = '2026-11-2'\n[here.models]\nm = {input = 1, cached = 0, write = 0, output = 2, input_limit = 9}"
    >>> entry = read_models(table, "mine.toml")["m"]
    >>> entry.prices.output, entry.input_limit
    (2, 9)
    """
    found: dict[str, ModelEntry] = {}
    for provider, fields in _providers(text, where).items():
        if not isinstance(models := fields.get("models"), dict):
            raise ConfigurationError(f"{where}: provider {provider!r} needs a table of 'models'")
        shared = {name: value for name, value in fields.items() if name != "models"}
        for name, figures in cast("dict[str, Any]", models).items():
            found[name.lower()] = _entry(name.lower(), shared, figures, where)
    return found


def _providers(text: str, where: str) -> dict[str, dict[str, Any]]:
    try:
        providers = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{where}: not valid TOML ({error}); see models.toml in this package") from error
    return {name: cast("dict[str, Any]", fields) if isinstance(fields, dict) else {} for name, fields in providers.items()}


def _entry(model: str, shared: dict[str, Any], figures: object, where: str) -> ModelEntry:
    if not isinstance(figures, dict):
        raise ConfigurationError(f"{where}: {model!r}: {figures!r} is not a table of figures; see models.toml in this package")
    given = cast("dict[str, Any]", figures)
    limits = {name: given[name] for name in _LIMITS if name in given}
    rest = {name: value for name, value in given.items() if name not in limits}
    try:
        prices = ModelPrices(model=model, **{**shared, **rest}) if rest or not limits else None
        return ModelEntry(model=model, prices=prices, **limits)
    except TypeError as error:
        raise ConfigurationError(f"{where}: {model!r}: {str(error).partition(') ')[2] or error}; see ModelPrices") from error
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {model!r}: {error}") from error

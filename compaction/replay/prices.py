"""Model prices and the rules of each provider's prompt cache, from a dated table that you can replace.

The table is ``prices.toml`` beside this file: prices in US dollars per million tokens, each with its source and date. A file
of the same shape, or your own `ModelPrices`, overrides it.
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

__all__ = ["ModelPrices", "UnknownModel", "prices_of", "read_prices", "unpriced"]

_MILLION: Final = 1_000_000
_TABLE: Final = Path(__file__).with_name("prices.toml")


def _not_negative(instance: object, attribute: attrs.Attribute[float], value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise ConfigurationError(f"ModelPrices: {attribute.name!r} must be a number >= 0 (got {value!r})")


@attrs.frozen(kw_only=True)
class ModelPrices:
    """One model's prices and the rules of its prompt cache.

    Args:
        model: The model's name.
        input: Dollars per million input tokens that are neither read from the cache nor written to it.
        cached: Dollars per million tokens read from the cache.
        write: Dollars per million tokens written to the cache.
        output: Dollars per million output tokens.
        minimum_tokens: The shortest prefix that is cached.
        block_tokens: A cached prefix is a multiple of this many tokens; 0 if it ends where a message ends.
        ttl_seconds: How long a prefix stays cached after its last use.
        source: The source of the figures.
        date: The date of the figures.

    Raises:
        ConfigurationError: If a figure is not a number >= 0.

    >>> prices = ModelPrices(model="mine", input=1.0, cached=0.1, write=1.25, output=5.0)
    >>> prices.dollars(read=9_000, written=1_000, fresh=0, output=200)
    0.00315
    """

    model: str
    input: float = attrs.field(validator=_not_negative)
    cached: float = attrs.field(validator=_not_negative)
    write: float = attrs.field(validator=_not_negative)
    output: float = attrs.field(validator=_not_negative)
    minimum_tokens: int = attrs.field(default=1_024, validator=count())
    block_tokens: int = attrs.field(default=128, validator=count())
    ttl_seconds: float = attrs.field(default=300.0, validator=_not_negative)
    source: str = ""
    date: str = ""

    def dollars(self, *, read: int = 0, written: int = 0, fresh: int = 0, output: int = 0) -> float:
        """Return the cost of these tokens, in dollars."""
        return (read * self.cached + written * self.write + fresh * self.input + output * self.output) / _MILLION


class UnknownModel(ConfigurationError):
    """The model is in no price table."""


def unpriced(model: str) -> ModelPrices:
    """Return placeholder prices for an unknown model: costs are in input tokens, and a cached token costs a tenth.

    Costs relative to sending everything are still meaningful then; dollars are not.

    >>> unpriced("mine").dollars(read=10_000_000)
    1.0
    """
    return ModelPrices(model=model, input=1.0, cached=0.1, write=1.0, output=0.0, source="placeholder prices")


def prices_of(model: str | ModelPrices, path: Path | None = None) -> ModelPrices:
    """Return the prices of a model.

    Args:
        model: A name in the table, with or without a provider prefix or a date suffix; or prices, which are returned.
        path: Your own table, in the shape of the package's; other models are taken from the package's table.

    Raises:
        UnknownModel: If the model is in no table; the message lists the known models.

    >>> prices_of("openai/gpt-5-2025-08-07").model
    'gpt-5'
    """
    if isinstance(model, ModelPrices):
        return model
    table = {**_packaged(), **({} if path is None else read_prices(_text_of(path), str(path)))}
    name = model.rpartition("/")[2].lower()
    if name in table:
        return table[name]
    fitting = [known for known in table if name.startswith(f"{known}-") and name.removeprefix(f"{known}-")[:1].isdigit()]
    if not fitting:
        raise UnknownModel(
            f"there are no prices for model {model!r}; use one of {', '.join(table)}, or add it to your own table"
        )
    return table[max(fitting, key=len)]


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: cannot read a price table ({error}); it must be a TOML file in UTF-8") from error


@cache
def _packaged() -> Mapping[str, ModelPrices]:
    return read_prices(_TABLE.read_text(encoding="utf-8"), "prices.toml")


def read_prices(text: str, where: str) -> dict[str, ModelPrices]:
    r"""Return the prices in a table, by model.

    Args:
        text: TOML: for each provider a table with ``source``, ``date``, the rules of its cache, and its ``models``.
        where: The table's name, for errors.

    Raises:
        ConfigurationError: If it is not such a table, or a figure is missing or is not a number.

    >>> table = "[here]\nblock_tokens = 0\n[here.models]\nm = {input = 1, cached = 0, write = 0, output = 2}"
    >>> read_prices(table, "mine.toml")["m"].output
    2
    """
    try:
        providers = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{where}: it is not valid TOML ({error}); see prices.toml in this package") from error
    found: dict[str, ModelPrices] = {}
    for provider, fields in providers.items():
        if not isinstance(fields, dict) or not isinstance(models := cast("dict[str, Any]", fields).get("models"), dict):
            raise ConfigurationError(f"{where}: provider {provider!r} needs a table of 'models'")
        rules = {name: value for name, value in cast("dict[str, Any]", fields).items() if name != "models"}
        for model, figures in cast("dict[str, Any]", models).items():
            found[model.lower()] = _prices(model, {**rules, **figures}, where)
    return found


def _prices(model: str, figures: dict[str, Any], where: str) -> ModelPrices:
    try:
        return ModelPrices(model=model.lower(), **figures)
    except TypeError as error:
        raise ConfigurationError(f"{where}: {model!r}: {str(error).partition(') ')[2] or error}; see ModelPrices") from error

"""`ModelPrices`, the prices of a model and the rules of its prompt cache."""

from __future__ import annotations

from typing import Final

import attrs

from ..checks import count
from ..errors import ConfigurationError

_MILLION: Final = 1_000_000


def _not_negative(instance: object, attribute: attrs.Attribute[float], value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise ConfigurationError(f"ModelPrices: {attribute.name!r} must be a number >= 0 (got {value!r})")


@attrs.frozen(kw_only=True)
class ModelPrices:
    """The prices of a model and the rules of its prompt cache.

    Args:
        model: The model's name.
        input: Dollars per million input tokens that are neither read from the cache nor written to it.
        cached: Dollars per million tokens read from the cache.
        write: Dollars per million tokens written to the cache.
        output: Dollars per million output tokens.
        minimum_tokens: The length of the shortest prefix that is cached.
        block_tokens: The length of a cached prefix is a multiple of this; 0 if a prefix ends with a message.
        ttl_seconds: The time that a prefix stays cached after its last use.
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


def unpriced(model: str) -> ModelPrices:
    """Return placeholder prices for an unknown model: a million input tokens cost 1, and cached ones a tenth.

    Costs can then be compared with each other, but are not dollars.

    >>> unpriced("mine").dollars(read=10_000_000)
    1.0
    """
    return ModelPrices(model=model, input=1.0, cached=0.1, write=1.0, output=0.0, source="placeholder prices")

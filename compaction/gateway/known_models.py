"""Prices and windows of the models that requests name, each looked up once: a lookup takes milliseconds."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from ..models import ModelPrices, UnknownModel, input_limit, prices_of

_MOST: Final = 256


@lru_cache(_MOST)
def known_prices(model: str) -> ModelPrices | None:
    """Return the prices of a model; ``None`` if no table has it."""
    try:
        return prices_of(model)
    except UnknownModel:
        return None


@lru_cache(_MOST)
def known_window(model: str) -> int | None:
    """Return the input limit of a model in tokens; ``None`` if no table has it."""
    try:
        return input_limit(model)
    except UnknownModel:
        return None

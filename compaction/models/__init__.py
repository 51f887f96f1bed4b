"""Figures of models by name: context windows, input limits and prices.

They come, in this order, from a table of your own, from the package's own table (``models.toml``), and from the snapshot that
the package ``genai-prices`` brings. Nothing is fetched.
"""

from __future__ import annotations

from .known_models import RESERVED_TOKENS, UnknownModel, input_limit, prices_of
from .prices import ModelPrices
from .prices import unpriced as unpriced

__all__ = ["RESERVED_TOKENS", "ModelPrices", "UnknownModel", "input_limit", "prices_of"]

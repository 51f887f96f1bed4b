"""Context windows, input limits and prices of models, by the model's name.

They are looked up in your own table, then in this package's table (``models.toml``), then in the data that the package
``genai-prices`` contains. Nothing is downloaded.
"""

from __future__ import annotations

from .known_models import LONGEST_NAME as LONGEST_NAME
from .known_models import RESERVED_TOKENS, UnknownModel, input_limit, prices_of
from .prices import ModelPrices
from .prices import unpriced as unpriced

__all__ = ["RESERVED_TOKENS", "ModelPrices", "UnknownModel", "input_limit", "prices_of"]

"""The Anthropic Messages format: reading, rules, repair."""

from __future__ import annotations

from .fields import THINKING as THINKING
from .fields import is_id as is_id
from .reading import Anthropic, anthropic
from .repair_steps import repair_neighbours as repair_neighbours

__all__ = ["Anthropic", "anthropic"]

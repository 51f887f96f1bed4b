"""The Anthropic Messages format: reading, rules."""

from __future__ import annotations

from .reading import Anthropic, anthropic
from .reading import holds_history as holds_history
from .rules import THINKING as THINKING

__all__ = ["Anthropic", "anthropic"]

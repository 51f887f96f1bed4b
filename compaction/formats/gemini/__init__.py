"""The Gemini contents format: reading, rules, repair."""

from __future__ import annotations

from .fields import field as field
from .reading import Gemini, gemini

__all__ = ["Gemini", "gemini"]

"""The Gemini contents format: reading, rules."""

from __future__ import annotations

from .reading import Gemini, gemini

__all__ = ["Gemini", "gemini"]

"""Convert a conversation from one wire format to another."""

from __future__ import annotations

from .convert import Conversion, convert

__all__ = ["Conversion", "convert"]

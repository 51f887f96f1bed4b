"""Adapters for agent frameworks: one module for each, which imports its framework when it is used."""

from __future__ import annotations

__all__: list[str] = []

"""Summarizers without a model: quotations and facts taken from the conversation itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import export_lazily

if TYPE_CHECKING:
    from .digest import DigestSummarizer, FactSummarizer

__all__ = ["DigestSummarizer", "FactSummarizer"]

export_lazily(__name__, {"digest": "DigestSummarizer FactSummarizer"})

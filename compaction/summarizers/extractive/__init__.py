"""Summarizers without a model: quotations and facts taken from the conversation itself."""

from __future__ import annotations

from .digest import DigestSummarizer
from .fact_list import FactSummarizer

__all__ = ["DigestSummarizer", "FactSummarizer"]

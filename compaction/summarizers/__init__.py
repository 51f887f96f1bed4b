"""What writes summaries: a digest without a model, a model on any OpenAI-compatible server, and a memory for either.

A summarizer is any object with ``summarize(request) -> str``, sync or async.
"""

from __future__ import annotations

from .base import Summarizer, SummaryBudget, SummaryRequest
from .cached import CachedSummarizer
from .digest import DigestSummarizer
from .openai_summarizer import OpenAISummarizer
from .redaction import redact
from .templates import PromptLoader, SummaryTemplate, as_template, default_template

__all__ = [
    "CachedSummarizer",
    "DigestSummarizer",
    "OpenAISummarizer",
    "PromptLoader",
    "Summarizer",
    "SummaryBudget",
    "SummaryRequest",
    "SummaryTemplate",
    "as_template",
    "default_template",
    "redact",
]

"""What writes summaries: a digest or a list of facts without a model, a model on any OpenAI-compatible server, and a memory.

A summarizer is any object with ``summarize(request) -> str``, sync or async.
"""

from __future__ import annotations

from .base import Summarizer, SummaryBudget, SummaryRequest
from .cached import CachedSummarizer
from .digest import DigestSummarizer
from .fact_list import FactSummarizer
from .openai_summarizer import OpenAISummarizer
from .redaction import redact
from .templates import PromptLoader, SummaryTemplate, as_template, default_template

__all__ = [
    "CachedSummarizer",
    "DigestSummarizer",
    "FactSummarizer",
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

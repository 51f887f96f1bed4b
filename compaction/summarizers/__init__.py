"""Summarizers: a digest or a list of facts without a model, a model on an OpenAI-compatible server, and a cache on disk.

A summarizer is any object with ``summarize(request) -> str``, sync or async. Wherever one is accepted, so is an object with
``generate(prompt) -> str``, sync or async: a language model behind a port of your own.
"""

from __future__ import annotations

from .base import TIMEOUT_SECONDS as TIMEOUT_SECONDS
from .base import Summarizer, SummaryBudget, SummaryRequest
from .base import answer_in_time as answer_in_time
from .base import timeout_of as timeout_of
from .base import usable_text as usable_text
from .cached import CachedSummarizer
from .extractive import DigestSummarizer, FactSummarizer
from .first_of import FirstOf
from .model import OpenAISummarizer
from .model import SummarizerLike as SummarizerLike
from .model import as_summarizer as as_summarizer
from .redaction import redact
from .templates import PromptLoader, SummaryTemplate
from .templates import as_template as as_template
from .templates import default_template as default_template

__all__ = [
    "CachedSummarizer",
    "DigestSummarizer",
    "FactSummarizer",
    "FirstOf",
    "OpenAISummarizer",
    "PromptLoader",
    "Summarizer",
    "SummaryBudget",
    "SummaryRequest",
    "SummaryTemplate",
    "redact",
]

"""Summarizers: a digest or a list of facts without a model, a model on an OpenAI-compatible server, and a cache on disk.

A summarizer is any object with ``summarize(request) -> str``, sync or async. Wherever one is accepted, so is an object with
``generate(prompt) -> str``, sync or async: a language model behind a port of your own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import export_lazily

if TYPE_CHECKING:
    from . import extractive as extractive
    from .base import Summarizer, SummaryBudget, SummaryRequest
    from .base import answer_in_time as answer_in_time
    from .base import asks_model as asks_model
    from .base import usable_text as usable_text
    from .cached import CachedSummarizer
    from .extractive import DigestSummarizer, FactSummarizer
    from .first_of import FirstOf
    from .model import OpenAISummarizer
    from .model import SummarizerLike as SummarizerLike
    from .model import TextGenerator as TextGenerator
    from .model import as_summarizer as as_summarizer
    from .model import is_sync_client as is_sync_client
    from .model import openai_package as openai_package
    from .model import read_error as read_error
    from .redaction import redact
    from .templates import PromptLoader, SummaryTemplate
    from .templates import as_template as as_template
    from .templates import default_template as default_template
    from .transcript import Entry as Entry
    from .transcript import entries_of as entries_of
    from .transcript import fenced as fenced
    from .transcript import record_key as record_key
    from .transcript import rendered as rendered

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

export_lazily(
    __name__,
    {
        "base": "Summarizer SummaryBudget SummaryRequest answer_in_time asks_model usable_text",
        "cached": "CachedSummarizer",
        "extractive": "DigestSummarizer FactSummarizer",
        "first_of": "FirstOf",
        "model": "OpenAISummarizer SummarizerLike TextGenerator as_summarizer is_sync_client openai_package read_error",
        "redaction": "redact",
        "templates": "PromptLoader SummaryTemplate as_template default_template",
        "transcript": "Entry entries_of fenced record_key rendered",
    },
)

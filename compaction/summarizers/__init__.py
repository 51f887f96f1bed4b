"""Summarizers: a digest or a list of facts without a model, a model on an OpenAI-compatible server, and a cache on disk.

A summarizer is any object with ``summarize(request) -> str``, sync or async. Wherever one is accepted, so is an object with
``generate(prompt) -> str``, sync or async: a language model behind a port of your own.

The way of a request to a model: `chunked` splits the conversation into prompts, and asks twice if it must; `answers` accepts or
rejects what comes back; neither sends anything. `openai_summarizer` and `text_generator` do, with the driver in `model_calls`.
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
    from .chunked import SummaryOptions as SummaryOptions
    from .extractive import DigestSummarizer, FactSummarizer
    from .first_of import FirstOf
    from .model_calls import ModelCall as ModelCall
    from .model_calls import ModelReply as ModelReply
    from .openai_client import in_time as in_time
    from .openai_client import is_sync_client as is_sync_client
    from .openai_client import opened_client as opened_client
    from .openai_client import read_error as read_error
    from .openai_summarizer import OpenAISummarizer
    from .redaction import redact
    from .templates import PromptLoader, SummaryTemplate
    from .templates import as_template as as_template
    from .templates import default_template as default_template
    from .text_generator import SummarizerLike as SummarizerLike
    from .text_generator import TextGenerator as TextGenerator
    from .text_generator import as_summarizer as as_summarizer
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
        "chunked": "SummaryOptions",
        "extractive": "DigestSummarizer FactSummarizer",
        "first_of": "FirstOf",
        "model_calls": "ModelCall ModelReply",
        "openai_client": "in_time is_sync_client opened_client read_error",
        "openai_summarizer": "OpenAISummarizer",
        "redaction": "redact",
        "templates": "PromptLoader SummaryTemplate as_template default_template",
        "text_generator": "SummarizerLike TextGenerator as_summarizer",
        "transcript": "Entry entries_of fenced record_key rendered",
    },
)

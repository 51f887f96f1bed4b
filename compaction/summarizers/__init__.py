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
    from .base import Summarizer, SummaryBudget, SummaryRequest
    from .base import answer_in_time as answer_in_time
    from .base import asks_model as asks_model
    from .base import usable_text as usable_text
    from .cached import CachedSummarizer
    from .chunked import SummaryOptions as SummaryOptions
    from .extractive import DENIAL as DENIAL
    from .extractive import DigestSummarizer, FactSummarizer
    from .extractive import answer_offline as answer_offline
    from .extractive import asked_in as asked_in
    from .extractive import denial_in as denial_in
    from .extractive import excerpt as excerpt
    from .extractive import facts_in as facts_in
    from .extractive import is_short_answer as is_short_answer
    from .extractive import listed as listed
    from .extractive import message_numbers as message_numbers
    from .extractive import one_line as one_line
    from .extractive import quoted_tokens as quoted_tokens
    from .extractive import quoted_words as quoted_words
    from .extractive import shortened as shortened
    from .extractive import split_excerpt as split_excerpt
    from .extractive import task_of as task_of
    from .extractive import without_excerpts as without_excerpts
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
        "extractive": "DENIAL DigestSummarizer FactSummarizer answer_offline asked_in denial_in excerpt facts_in"
        " is_short_answer listed message_numbers one_line quoted_tokens quoted_words shortened split_excerpt task_of"
        " without_excerpts",
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

"""Summaries written by a language model: on an OpenAI-compatible server, or behind any object with ``generate(prompt)``."""

from __future__ import annotations

from .chunked import ChunkedSummarization as ChunkedSummarization
from .model_calls import ModelCall as ModelCall
from .model_calls import ModelFault as ModelFault
from .model_calls import ModelReply as ModelReply
from .openai_summarizer import OpenAISummarizer
from .retries import RetryPolicy as RetryPolicy
from .retries import SummaryAttempts as SummaryAttempts
from .summary_options import SummaryOptions as SummaryOptions
from .text_generator import SummarizerLike as SummarizerLike
from .text_generator import as_summarizer as as_summarizer

__all__ = ["OpenAISummarizer"]

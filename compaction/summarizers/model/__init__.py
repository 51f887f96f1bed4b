"""Summaries written by a language model on an OpenAI-compatible server."""

from __future__ import annotations

from .chunked import ChunkedSummarization as ChunkedSummarization
from .model_calls import ModelCall as ModelCall
from .model_calls import ModelFault as ModelFault
from .model_calls import ModelReply as ModelReply
from .openai_summarizer import OpenAISummarizer
from .retries import RetryPolicy as RetryPolicy
from .retries import SummaryAttempts as SummaryAttempts

__all__ = ["OpenAISummarizer"]

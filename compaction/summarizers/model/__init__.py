"""Summaries written by a language model: on an OpenAI-compatible server, or behind any object with ``generate(prompt)``.

The way of a request: `chunked` splits the conversation into prompts, and asks twice if it must; `answers` accepts or rejects
what comes back; neither sends anything. `model_calls` has the values that they yield and are sent, and
the driver. `openai_summarizer` and `text_generator` send; `openai_client` has the clients, and reads what a server sends back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy import export_lazily

if TYPE_CHECKING:
    from .chunked import SummaryOptions as SummaryOptions
    from .model_calls import ModelCall as ModelCall
    from .model_calls import ModelReply as ModelReply
    from .openai_client import in_time as in_time
    from .openai_client import is_sync_client as is_sync_client
    from .openai_client import opened_client as opened_client
    from .openai_client import read_error as read_error
    from .openai_summarizer import OpenAISummarizer
    from .text_generator import SummarizerLike as SummarizerLike
    from .text_generator import TextGenerator as TextGenerator
    from .text_generator import as_summarizer as as_summarizer

__all__ = ["OpenAISummarizer"]

export_lazily(
    __name__,
    {
        "chunked": "SummaryOptions",
        "model_calls": "ModelCall ModelReply",
        "openai_client": "in_time is_sync_client opened_client read_error",
        "openai_summarizer": "OpenAISummarizer",
        "text_generator": "SummarizerLike TextGenerator as_summarizer",
    },
)

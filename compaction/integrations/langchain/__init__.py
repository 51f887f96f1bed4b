"""LangChain: middlewares for ``create_agent``, a chat model as a summarizer, and its messages as a wire format.

    agent = create_agent(model, tools, middleware=[CompactionMiddleware(presets.context_window(32_000))])

A whole program is ``examples/langchain_agent.py``.
"""

from __future__ import annotations

from ..summarizers import ChatModelSummarizer
from .format import LangChain, langchain
from .middleware import CompactionMiddleware, RewritingMiddleware, conversation_id, model_name, rewritten

__all__ = [
    "ChatModelSummarizer",
    "CompactionMiddleware",
    "LangChain",
    "RewritingMiddleware",
    "conversation_id",
    "langchain",
    "model_name",
    "rewritten",
]

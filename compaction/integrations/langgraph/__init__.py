"""LangGraph: a node that summarizes a graph's messages."""

from __future__ import annotations

from .node import StateKeys, SummarizationNode

__all__ = ["StateKeys", "SummarizationNode"]

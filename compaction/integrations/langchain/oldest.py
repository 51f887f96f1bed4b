"""Which releases of LangChain and LangGraph are needed, in one place."""

from __future__ import annotations

from typing import Final

__all__ = ["LANGCHAIN", "LANGCHAIN_CORE", "LANGGRAPH"]

LANGCHAIN: Final = {"distribution": "langchain", "extra": "langchain", "least": "1.4"}
"""For the middlewares."""
LANGCHAIN_CORE: Final = {"distribution": "langchain-core", "extra": "langgraph", "least": "1.7"}
"""For the messages."""
LANGGRAPH: Final = {"distribution": "langgraph", "extra": "langgraph", "least": "1.2"}
"""For the node."""

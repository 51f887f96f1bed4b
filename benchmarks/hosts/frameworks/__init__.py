"""The frameworks, one a file: each has a host and its cases."""

from __future__ import annotations

import sys
from importlib import import_module

from ..measure import Case

__all__ = ["MODULES", "cases"]

MODULES = (
    "agent_framework",
    "anthropic_sdk",
    "google_adk",
    "langchain",
    "langgraph",
    "litellm_proxy",
    "openai_agents",
    "pydantic_ai",
    "strands",
)


def cases() -> list[Case]:
    """Return the cases of all frameworks that are installed."""
    found: list[Case] = []
    for name in MODULES:
        try:
            found += import_module(f"{__name__}.{name}").CASES
        except ModuleNotFoundError as error:
            if str(error.name).partition(".")[0] in ("benchmarks", "compaction", "tests"):
                raise
            print(f"{name}: left out, {error}", file=sys.stderr)
    return found

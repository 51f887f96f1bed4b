"""Pipelines in files: TOML or YAML, read into a strategy and written from one.

::

    # pipeline.toml
    [[steps]]
    use = "ToolResult"
    trigger = "tokens_exceed(60_000) & has_tool_calls"
    style = { use = "Clear", min_chars = 500 }

    [[steps]]
    use = "Truncation"
    trigger = "tokens_exceed(90_000)"
    target = "tokens_below(70_000)"

    strategy = load("pipeline.toml")

A file can have an environment variable sent to a server; `load` restricts which. It needs the extra ``config``.
See ``docs/config.md``.
"""

from __future__ import annotations

from .pipeline_file import dump, dumps, from_data, load, loads, to_data
from .registry import ComponentKind, component_names

__all__ = ["ComponentKind", "component_names", "dump", "dumps", "from_data", "load", "loads", "to_data"]

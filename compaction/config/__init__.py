"""Strategies in TOML and YAML files, read and written.

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

The extra ``config`` is required. A file can name an environment variable whose value is sent to a server; `load` restricts
which variables and servers. See ``docs/config.md``.
"""

from __future__ import annotations

from .pipeline_file import FILE_SUFFIXES, dump, dumps, from_data, load, loads, to_data
from .registry import ComponentKind, component_names

__all__ = ["FILE_SUFFIXES", "ComponentKind", "component_names", "dump", "dumps", "from_data", "load", "loads", "to_data"]

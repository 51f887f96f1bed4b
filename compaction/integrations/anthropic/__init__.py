"""Anthropic SDK: a client whose requests are compacted, for its tool runner and for every other call of ``messages``.

    client = Anthropic(middleware=[RequestCompaction(presets.context_window(200_000))])
    runner = client.beta.messages.tool_runner(model=model, max_tokens=1_000, tools=[look_up_price], messages=messages)

A whole program is ``examples/anthropic_tool_runner.py``.
"""

from __future__ import annotations

from .request_compaction import RequestCompaction

__all__ = ["RequestCompaction"]

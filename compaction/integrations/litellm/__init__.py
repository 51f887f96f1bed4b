"""LiteLLM proxy: a callback that compacts the conversations of all clients before they reach a model.

    compaction = ProxyCompaction(presets.context_window(200_000))     # in the file that ``callbacks:`` of the config names

``docs/frameworks/litellm.md`` has the whole configuration.
"""

from __future__ import annotations

from .proxy_compaction import ProxyCompaction, conversation_scope

__all__ = ["ProxyCompaction", "conversation_scope"]

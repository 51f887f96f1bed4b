"""Google ADK: a plugin for an app, whose callbacks an agent takes too, and the contents it compacts as a wire format.

    app = App(name="shop", root_agent=agent, plugins=[CompactionPlugin(presets.context_window(32_000))])

A whole program is ``examples/google_adk_shopping.py``.
"""

from __future__ import annotations

from .plugin import AdkContents, CompactionPlugin, adk_contents

__all__ = ["AdkContents", "CompactionPlugin", "adk_contents"]

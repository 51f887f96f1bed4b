"""A callback of the LiteLLM proxy, which compacts the conversations of all its clients.

    $ litellm --config litellm.yaml

The configuration names this file, which stands beside it; ``docs/frameworks/litellm.md`` shows it. Needs
the extra ``litellm``.
"""

import os
from pathlib import Path

from compaction import presets
from compaction.integrations.litellm import ProxyCompaction
from compaction.stores import SessionStore

window = int(os.environ.get("COMPACTION_WINDOW", "128000"))

compaction = ProxyCompaction(
    presets.context_window(window),
    window=window,
    store=SessionStore(Path(os.environ.get("COMPACTION_STORE", "compaction.db"))),
)

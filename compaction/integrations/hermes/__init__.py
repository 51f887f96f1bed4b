"""A context engine for hosts such as Hermes Agent, the plugin that registers it, and prompt-cache breakpoints.

`CompactionEngine` has the methods that Hermes Agent documents and compacts with a session. `EngineSettings` reads a host's
``config.yaml``. `SessionHygiene` and `ContextPressure` are further checks for a host.
"""

from __future__ import annotations

from .engine import CompactionEngine
from .installer import hermes_status as hermes_status
from .installer import install_plugin as install_plugin
from .installer import uninstall_plugin as uninstall_plugin
from .plugin import PLUGIN, register
from .pressure import ContextPressure, Hygiene, SessionHygiene
from .prompt_caching import apply_cache_control, cached_prefix, should_cache
from .settings import EngineSettings

__all__ = [
    "PLUGIN",
    "CompactionEngine",
    "ContextPressure",
    "EngineSettings",
    "Hygiene",
    "SessionHygiene",
    "apply_cache_control",
    "cached_prefix",
    "register",
    "should_cache",
]

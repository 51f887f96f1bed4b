"""A context engine for hosts such as Hermes Agent, the plugin that registers it, and prompt-cache breakpoints.

`CompactionEngine` has the methods that Hermes Agent documents and compacts with a session. `EngineSettings` reads a host's
``config.yaml``. `hygiene_due` and `pressure_notice` are further checks for a host.
"""

from __future__ import annotations

from ...formats import apply_cache_control, should_cache
from .engine import CompactionEngine, hygiene_due, pressure_notice
from .plugin import PLUGIN, register
from .plugin import hermes_status as hermes_status
from .plugin import install_plugin as install_plugin
from .plugin import uninstall_plugin as uninstall_plugin
from .settings import EngineSettings

__all__ = [
    "PLUGIN",
    "CompactionEngine",
    "EngineSettings",
    "apply_cache_control",
    "hygiene_due",
    "pressure_notice",
    "register",
    "should_cache",
]

"""A context engine: what an agent host such as Hermes Agent asks when its conversation grows.

`ContextEngine` is the contract, `CompactionEngine` satisfies it with a session behind it, `EngineSettings` reads a host's
``config.yaml``. `SessionHygiene` and `ContextPressure` are what a host checks beside its engine.
"""

from __future__ import annotations

from .compaction_engine import CompactionEngine
from .contract import ContextEngine
from .pressure import ContextPressure, Hygiene, PressureNotice, SessionHygiene
from .settings import EngineSettings

__all__ = [
    "CompactionEngine",
    "ContextEngine",
    "ContextPressure",
    "EngineSettings",
    "Hygiene",
    "PressureNotice",
    "SessionHygiene",
]

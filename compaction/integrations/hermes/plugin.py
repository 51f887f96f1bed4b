"""`CompactionEngine` as a plugin of Hermes Agent, found by a plugin folder or by an entry point.

Hermes (tested with 0.19) requires an instance of its base class, copies the engine for each agent, passes the arguments that
``compress`` takes, and then reads a few flags of the engine. In ``config.yaml``::

    plugins:
      enabled: [compaction]
    context:
      engine: compaction
      store: ~/.hermes/compaction.db     # lossless mode; leave it out for none
"""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any, Final

from ...errors import ConfigurationError
from .engine import CompactionEngine
from .settings import EngineSettings

PLUGIN: Final = "compaction"
"""The name of the plugin and of its engine in ``config.yaml``."""


@cache
def engine_class() -> type[CompactionEngine]:
    """Return the class of the plugin's engine, a subclass of ours and of Hermes' own base class.

    Raises:
        ConfigurationError: If Hermes Agent cannot be imported, or has no context engines.
    """
    try:
        base: Any = importlib.import_module("agent.context_engine").ContextEngine
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(
            f"Hermes Agent is not in this environment, or too old for context engines ({error}); "
            "install compaction-toolkit where hermes-agent is"
        ) from error
    made: Any = type("HermesEngine", (CompactionEngine, base), {"__doc__": CompactionEngine.__doc__, "__module__": __name__})
    if missing := ", ".join(sorted(getattr(made, "__abstractmethods__", ()))):
        raise ConfigurationError(f"this version of Hermes Agent requires {missing}, which this engine lacks; upgrade")
    engine: type[CompactionEngine] = made
    return engine


def register(ctx: Any) -> None:
    """Register the engine; Hermes calls this to load the plugin.

    Args:
        ctx: Hermes' plugin context.

    Raises:
        ConfigurationError: If ``config.yaml`` holds an invalid value; Hermes then reports it and uses its own engine.
    """
    make = engine_class()
    config = importlib.import_module("hermes_cli.config").load_config()
    ctx.register_context_engine(make(EngineSettings.from_config(config)))

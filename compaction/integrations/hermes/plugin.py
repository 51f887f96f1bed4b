"""`CompactionEngine` as a plugin of Hermes Agent, found by a plugin folder or by an entry point; installing and removing it.

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
import os
import shutil
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path
from typing import Any, Final

from ...errors import ConfigurationError, UnwritableFile
from ...files import write_text
from ...formats import fields_of
from .engine import CompactionEngine
from .settings import EngineSettings

PLUGIN: Final = "compaction"
"""The name of the plugin and of its engine in ``config.yaml``."""

_TESTED: Final = "0.19"  # the versions of Hermes Agent that the plugin is tested with

_INIT: Final = '''"""The context engine of compaction-toolkit; the package itself holds it."""

from compaction.integrations.hermes import register

__all__ = ["register"]
'''
_MANIFEST: Final = f"""name: {PLUGIN}
version: {{version}}
description: Keeps conversations inside the context window, valid and, with a store, without loss.
"""


@cache
def engine_class() -> type[CompactionEngine]:
    """Return the class of the plugin's engine, a subclass of ours and of Hermes' own base class.

    It raises a `ConfigurationError` if Hermes Agent cannot be imported, or has no context engines.

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
    """Register the engine in Hermes' plugin context; Hermes calls this to load the plugin.

    If ``config.yaml`` holds an invalid value, it raises a `ConfigurationError`; Hermes reports it and uses its own engine.

    Raises:
        ConfigurationError: If ``config.yaml`` holds an invalid value; Hermes then reports it and uses its own engine.
    """
    make = engine_class()
    config = importlib.import_module("hermes_cli.config").load_config()
    ctx.register_context_engine(make(EngineSettings.from_config(config)))


def hermes_home() -> Path:
    """Return Hermes' folder: ``HERMES_HOME``, or ``~/.hermes``."""
    return Path(os.environ.get("HERMES_HOME") or "~/.hermes").expanduser()


def _plugin_folder(plugins: Path | None) -> Path:
    return (hermes_home() / "plugins" if plugins is None else plugins) / PLUGIN


def install_plugin(path: Path | None = None) -> Path:
    """Write the plugin's folder, replacing that of an earlier release, and return its path.

    The folder of plugins is by default that of `hermes_home`; Hermes' own ``plugins/context_engine`` works too.

    Raises:
        UnwritableFile: If it cannot be written.
        ConfigurationError: If another plugin is there.
    """
    folder = _plugin_folder(path)
    _check_ours(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnwritableFile(f"{folder}: it cannot be created ({error.strerror}); name a writable folder") from error
    manifest = _MANIFEST.format(version=_version("compaction-toolkit") or "0")
    for name, text in (("__init__.py", _INIT), ("plugin.yaml", manifest)):
        with write_text(folder / name) as write:
            write(text)
    return folder


def uninstall_plugin(path: Path | None = None) -> Path | None:
    """Remove the plugin's folder, and return its path; ``None`` if there was none.

    Raises:
        ConfigurationError: If another plugin is there.
        UnwritableFile: If it cannot be removed.
    """
    folder = _plugin_folder(path)
    if not folder.exists():
        return None
    _check_ours(folder)
    try:
        shutil.rmtree(folder)
    except OSError as error:
        raise UnwritableFile(f"{folder}: it cannot be removed ({error.strerror}); make it writable") from error
    return folder


def _check_ours(folder: Path) -> None:
    init = folder / "__init__.py"
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise ConfigurationError(f"{folder}: it is not a folder of this plugin; move it away")
    if folder.is_dir() and any(folder.iterdir()) and (not init.is_file() or init.read_text("utf-8", "replace") != _INIT):
        raise ConfigurationError(f"{folder}: it holds another plugin, or a changed one; move it away")


def hermes_status(path: Path | None = None) -> tuple[bool, list[str]]:
    """Return whether Hermes will use the engine at its next start, and the status as lines; Hermes is not imported.

    A line that reports a problem also says how to solve it. The folder of plugins is as for `install_plugin`.
    """
    folder, hermes, config = _plugin_folder(path), _version("hermes-agent"), _config()
    settings = config or {}
    installed = (folder / "__init__.py").is_file()
    entry_point = bool(entry_points(group="hermes_agent.plugins", name=PLUGIN))
    listed = (fields_of(settings.get("plugins")) or {}).get("enabled")
    engine = (fields_of(settings.get("context")) or {}).get("engine")
    needs_none = folder.parent.name == "context_engine"  # Hermes' own folder
    enabled = needs_none or (isinstance(listed, list) and PLUGIN in listed)
    active = hermes is not None and (installed or entry_point) and enabled and engine == PLUGIN
    here = hermes or "not in this environment; install compaction-toolkit where hermes-agent is"
    if hermes is not None and not f"{hermes}.".startswith(f"{_TESTED}."):
        here += f" (tested with {_TESTED})"
    to_enable = f"no; add {PLUGIN} to plugins.enabled in config.yaml" if config is not None else "config.yaml cannot be read"
    return active, [
        f"Hermes Agent: {here}",
        f"plugin folder: {folder}{'' if installed else ' is not there; compaction hermes install'}",
        f"entry point: {'yes' if entry_point else 'no'}",
        f"enabled: {'yes' if enabled else to_enable}",
        f"engine: {PLUGIN if engine == PLUGIN else f'{engine}; set context.engine: {PLUGIN} in config.yaml'}",
        "active" if active else "not active",
    ]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _config() -> Mapping[str, Any] | None:
    """Return Hermes' ``config.yaml``; empty if there is none, ``None`` if it cannot be read."""
    file = hermes_home() / "config.yaml"
    if not file.exists():
        return {}
    try:
        import yaml
    except ImportError:
        return None
    try:
        return fields_of(yaml.safe_load(file.read_text("utf-8-sig")))
    except (OSError, ValueError, yaml.YAMLError):
        return None

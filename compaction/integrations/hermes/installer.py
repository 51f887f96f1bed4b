"""Installs the plugin's folder for Hermes Agent, removes it, and reports its status."""

from __future__ import annotations

import os
import shutil
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path
from typing import Any, Final, cast

import attrs

from ...errors import ConfigurationError, UnwritableFile
from ...files import write_text
from ...formats import fields_of
from .plugin import PLUGIN

KNOWN_VERSIONS: Final = "0.19"
"""The versions of Hermes Agent that the plugin is tested with."""

_INIT: Final = '''"""The context engine of compaction-toolkit; the package itself holds it."""

from compaction.integrations.hermes import register

__all__ = ["register"]
'''
_MANIFEST: Final = f"""name: {PLUGIN}
version: {{version}}
description: Keeps conversations inside the context window, valid and, with a store, without loss.
"""


def hermes_home() -> Path:
    """Return Hermes' folder: ``HERMES_HOME``, or ``~/.hermes``."""
    return Path(os.environ.get("HERMES_HOME") or "~/.hermes").expanduser()


def _plugin_folder(path: Path | None) -> Path:
    """Return the plugin's folder: below ``path``, or below the plugins of `hermes_home`."""
    return (hermes_home() / "plugins" if path is None else path) / PLUGIN


def install_plugin(path: Path | None = None) -> Path:
    """Write the plugin's folder, replacing that of an earlier release.

    Args:
        path: The folder of plugins: by default that of `hermes_home`. Hermes' own ``plugins/context_engine`` works too.

    Returns:
        The plugin's folder.

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


@attrs.frozen(kw_only=True)
class HermesStatus:
    """The status of the plugin.

    Args:
        hermes: The version of Hermes Agent in this environment; ``None`` if it is not installed.
        folder: The path of the plugin's folder.
        installed: Whether the folder exists.
        entry_point: Whether the entry point exists.
        enabled: Whether ``config.yaml`` lists the plugin under ``plugins.enabled``, which is not needed in Hermes' own
            ``context_engine`` folder; ``None`` if that file cannot be read.
        engine: The value of ``context.engine`` in ``config.yaml``; ``None`` if it is not set.
    """

    hermes: str | None
    folder: Path
    installed: bool
    entry_point: bool
    enabled: bool | None
    engine: str | None

    @property
    def active(self) -> bool:
        """Whether Hermes will use the engine at its next start."""
        return self.hermes is not None and (self.installed or self.entry_point) and bool(self.enabled) and self.engine == PLUGIN

    def lines(self) -> list[str]:
        """Return the status as lines of text, with the steps that are left to do."""
        here = (
            "not in this environment; install compaction-toolkit where hermes-agent is" if self.hermes is None else self.hermes
        )
        if self.hermes is not None and not f"{self.hermes}.".startswith(f"{KNOWN_VERSIONS}."):
            here += f" (tested with {KNOWN_VERSIONS})"
        enabled = {
            True: "yes",
            False: f"no; add {PLUGIN} to plugins.enabled in config.yaml",
            None: "config.yaml cannot be read",
        }
        engine = PLUGIN if self.engine == PLUGIN else f"{self.engine}; set context.engine: {PLUGIN} in config.yaml"
        return [
            f"Hermes Agent: {here}",
            f"plugin folder: {self.folder}{'' if self.installed else ' is not there; compaction hermes install'}",
            f"entry point: {'yes' if self.entry_point else 'no'}",
            f"enabled: {enabled[self.enabled]}",
            f"engine: {engine}",
            "active" if self.active else "not active",
        ]


def hermes_status(path: Path | None = None) -> HermesStatus:
    """Return the status of the plugin, without importing Hermes.

    Args:
        path: The folder of plugins, as for `install_plugin`.
    """
    folder, config = _plugin_folder(path), _config()
    listed, engine = _setting(config, "plugins", "enabled"), _setting(config, "context", "engine")
    enabled = isinstance(listed, list) and PLUGIN in listed
    return HermesStatus(
        hermes=_version("hermes-agent"),
        folder=folder,
        installed=(folder / "__init__.py").is_file(),
        entry_point=bool(entry_points(group="hermes_agent.plugins", name=PLUGIN)),
        enabled=True if folder.parent.name == "context_engine" else None if config is None else enabled,
        engine=engine if isinstance(engine, str) else None,
    )


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _config() -> dict[str, Any] | None:
    """Return Hermes' ``config.yaml``; empty if there is none, ``None`` if it cannot be read."""
    file = hermes_home() / "config.yaml"
    if not file.exists():
        return {}
    try:
        import yaml
    except ImportError:
        return None
    try:
        data: object = yaml.safe_load(file.read_text("utf-8-sig"))
    except (OSError, ValueError, yaml.YAMLError):
        return None
    return cast("dict[str, Any]", data) if isinstance(data, dict) else None


def _setting(config: dict[str, Any] | None, block: str, name: str) -> object:
    return (fields_of((config or {}).get(block)) or {}).get(name)

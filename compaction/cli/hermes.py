"""``compaction hermes``: install the plugin for Hermes Agent, take it away, say how things stand."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from ..integrations.hermes import PLUGIN
from ..integrations.hermes_plugin import hermes_status, install_plugin, uninstall_plugin
from .exits import ExitCode
from .terminal import safe

__all__ = ["hermes"]

_Folder: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--path",
        metavar="DIR",
        help="The folder that holds plugins: by default plugins in HERMES_HOME, which is ~/.hermes if it is not set.",
    ),
]

hermes = typer.Typer(name="hermes", help="The plugin for Hermes Agent.", rich_markup_mode=None)


@hermes.command("install")
def _install(path: _Folder = None) -> None:
    """Write the plugin's folder, and say what config.yaml has to name."""
    typer.echo(safe(f"wrote {install_plugin(path)}"))
    typer.echo(f"config.yaml needs:\nplugins:\n  enabled: [{PLUGIN}]\ncontext:\n  engine: {PLUGIN}")


@hermes.command("uninstall")
def _uninstall(path: _Folder = None) -> None:
    """Take the plugin's folder away."""
    folder = uninstall_plugin(path)
    typer.echo("there was none" if folder is None else safe(f"removed {folder}; config.yaml still names what it named"))


@hermes.command("status")
def _status(path: _Folder = None) -> int:
    """Say whether Hermes will use the engine, and what is left to do; exit code 1 if it will not."""
    status = hermes_status(path)
    for line in status.lines():
        typer.echo(safe(line))
    return ExitCode.DONE if status.active else ExitCode.FOUND

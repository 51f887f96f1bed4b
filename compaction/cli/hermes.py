"""``compaction hermes``: install, uninstall and check the plugin for Hermes Agent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from ..integrations.hermes import PLUGIN, hermes_status, install_plugin, uninstall_plugin
from .exit_codes import ExitCode
from .printing import printable

_Folder: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--path",
        metavar="DIR",
        help="The folder of plugins; by default plugins in HERMES_HOME, which is ~/.hermes if it is not set.",
    ),
]

hermes_commands = typer.Typer(name="hermes", help="The plugin for Hermes Agent.", rich_markup_mode=None)


@hermes_commands.command("install")
def _install(path: _Folder = None) -> None:
    """Write the plugin's folder, and show the lines that config.yaml needs."""
    typer.echo(printable(f"wrote {install_plugin(path)}"))
    typer.echo(f"config.yaml needs:\nplugins:\n  enabled: [{PLUGIN}]\ncontext:\n  engine: {PLUGIN}")


@hermes_commands.command("uninstall")
def _uninstall(path: _Folder = None) -> None:
    """Remove the plugin's folder."""
    folder = uninstall_plugin(path)
    typer.echo("not installed" if folder is None else printable(f"removed {folder}; config.yaml was not changed"))


@hermes_commands.command("status")
def _status(path: _Folder = None) -> int:
    """Show whether Hermes will use the engine, and what is left to do; exit code 1 if it will not."""
    active, lines = hermes_status(path)
    for line in lines:
        typer.echo(printable(line))
    return ExitCode.DONE if active else ExitCode.FOUND

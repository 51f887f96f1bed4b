"""``compaction config``: check and show pipeline files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from ..config import dumps, load
from ..errors import ConfigurationError
from .exit_codes import ExitCode, print_error
from .printing import printable

config_commands = typer.Typer(
    name="config",
    help="Check and show pipeline files. The stores they name are opened, and created if missing.",
    rich_markup_mode=None,
)


@config_commands.command("check")
def _check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", show_default=False, help="Pipelines in TOML or YAML.")],
) -> int:
    """Check whether files can be used; exit code 2 if one cannot, with every mistake in it and its place."""
    code = ExitCode.DONE
    for file in files:
        try:
            strategy = load(file)
        except ConfigurationError as error:
            print_error(str(error))
            code = ExitCode.UNUSABLE
        else:
            typer.echo(printable(f"{file}: {strategy.name}, valid"))
    return code


@config_commands.command("show")
def _show(
    file: Annotated[Path, typer.Argument(metavar="FILE", show_default=False, help="A pipeline in TOML or YAML.")],
    form: Annotated[
        Literal["toml", "yaml", "python"],
        typer.Option("--as", metavar="FORM", help="toml, yaml, python; python is the expression that builds it."),
    ] = "toml",
) -> None:
    """Show a file with presets expanded and default options omitted."""
    strategy = load(file)
    text = repr(strategy) if form == "python" else dumps(strategy, format=form)
    typer.echo(text.rstrip("\n"))

"""The typer application with all commands."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from .batch import batch_command
from .check import repair_command, validate_command
from .compact import compact_command
from .config import config_commands
from .exit_codes import CommandGroup
from .hermes import hermes_commands
from .inspect import inspect_command
from .replay import replay_command

__all__ = ["app"]

app = typer.Typer(
    name="compaction",
    cls=CommandGroup,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if not wanted:
        return
    try:
        typer.echo(version("compaction-toolkit"))
    except PackageNotFoundError:
        typer.echo("compaction-toolkit is not installed; this is a checkout")
    raise typer.Exit


@app.callback(invoke_without_command=True)
def _commands(
    context: typer.Context,
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Keep recorded LLM conversations inside a context window without breaking them.

    Files are JSON or JSONL, plain or gzip. Exit codes: 0 success, 1 a problem was found or a size was not reached, 2 arguments
    or input that cannot be used, 3 a bug in this program, 130 interrupted.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


app.command("compact")(compact_command)
app.command("batch")(batch_command)
app.command("inspect")(inspect_command)
app.command("validate")(validate_command)
app.command("repair")(repair_command)
app.command("replay")(replay_command)
app.add_typer(config_commands)
app.add_typer(hermes_commands)

"""The commands, put together."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Annotated

import typer

from .batch import batch
from .check import repair, validate
from .compact import compact
from .config import config
from .exits import CommandGroup
from .hermes import hermes
from .inspect import inspect
from .replay import replay

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

    Files are JSON or JSONL, plain or gzip. Exit codes: 0 done, 1 a problem or a size not reached, 2 arguments or input that
    cannot be used, 3 a defect of this program, 130 interrupted.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


for command in (compact, batch, inspect, validate, repair, replay):
    app.command()(command)
for group in (config, hermes):
    app.add_typer(group)

"""``compaction config``: is a file of a pipeline right, and what does it say."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from ..config import dumps, load
from ..errors import ConfigurationError
from .exits import ExitCode, complain
from .terminal import safe

__all__ = ["config"]

_FORMATS: Final = ("toml", "yaml", "python")

config = typer.Typer(
    name="config",
    help="Check and show files of pipelines. The stores they name are opened, and made if they are not there.",
    rich_markup_mode=None,
)


@config.command("check")
def _check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", show_default=False, help="Pipelines in TOML or YAML.")],
) -> int:
    """Say whether files can be used; exit code 2 if one of them cannot, with every mistake in it and its place."""
    code = ExitCode.DONE
    for file in files:
        try:
            strategy = load(file)
        except ConfigurationError as error:
            complain(str(error))
            code = ExitCode.UNUSABLE
        else:
            typer.echo(safe(f"{file}: {strategy.name}, right"))
    return code


@config.command("show")
def _show(
    file: Annotated[Path, typer.Argument(metavar="FILE", show_default=False, help="A pipeline in TOML or YAML.")],
    form: Annotated[
        str, typer.Option("--as", metavar="FORM", help=f"How: {', '.join(_FORMATS)}; python is the expression that builds it.")
    ] = "toml",
) -> None:
    """Show what a file says: presets taken apart, options that have their defaults left out."""
    if form not in _FORMATS:
        raise ConfigurationError(f"--as {form}: use one of {', '.join(_FORMATS)}")
    strategy = load(file)
    text = repr(strategy) if form == "python" else dumps(strategy, format="yaml" if form == "yaml" else "toml")
    typer.echo(text.rstrip("\n"))

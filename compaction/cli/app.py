"""The typer application with all commands; the module of a command is imported when it is run or listed."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.main import get_command, get_group

from .exit_codes import CommandGroup
from .version import version_text

# The name of each command, its module, and the function or the group of commands in it; in the order of ``--help``.
_COMMANDS: Final = {
    "compact": ("compact", "compact_command"),
    "batch": ("batch", "batch_command"),
    "inspect": ("inspect", "inspect_command"),
    "validate": ("check", "validate_command"),
    "repair": ("check", "repair_command"),
    "replay": ("replay", "replay_command"),
    "serve": ("serve", "serve_command"),
    "config": ("config", "config_commands"),
    "hermes": ("hermes", "hermes_commands"),
}


class _LazyCommands(CommandGroup):
    """The commands, each built at its first use."""

    def __init__(self, **options: Any) -> None:
        """Name the commands, for the list and for suggestions after a mistyped one."""
        super().__init__(**options)
        self.commands: Any = dict.fromkeys(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in _COMMANDS:
            return None
        module, name = _COMMANDS[cmd_name]
        command = getattr(import_module(f".{module}", __package__), name)
        if isinstance(command, typer.Typer):
            return get_group(command)
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(cmd_name)(command)
        return get_command(alone)


app = typer.Typer(
    name="compaction",
    cls=_LazyCommands,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version_text())
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

"""The typer application with all commands; the module of a command is imported when it is run."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.main import get_command, get_group

from ..installation import version_text
from .exit_codes import CommandGroup

_MAX_HELP_WIDTH: Final = 120  # characters; the help is as wide as the terminal up to this

# The name of each command, its module, the function or the group of commands in it, and its sentence in ``--help``.
_COMMANDS: Final = {
    "compact": ("compact", "compact_command", "Make conversations fit a context window or a budget."),
    "batch": ("batch", "batch_command", "Compact files and directories of conversations in bounded memory."),
    "inspect": ("inspect", "inspect_command", "Show the groups of a conversation and their tokens."),
    "validate": ("check", "validate_command", "List the rules of their wire format that conversations break."),
    "repair": ("check", "repair_command", "Make conversations valid, and list the changes."),
    "replay": ("replay", "replay_command", "Compare the cost of strategies on recorded sessions."),
    "serve": ("serve", "serve_command", "Run the gateway between agents and their providers."),
    "run": ("run", "run_command", "Run an agent behind a gateway of its own, and stop with it."),
    "config": ("config", "config_commands", "Check and show pipeline files."),
    "hermes": ("hermes", "hermes_commands", "Install, uninstall and check the plugin for Hermes Agent."),
    "doctor": ("doctor", "doctor_command", "Show what is installed, and how tokens are counted."),
}


class _LazyCommands(CommandGroup):
    """The commands; the module of each is imported at its first use."""

    def __init__(self, **options: Any) -> None:
        """Name the commands, for the list and for suggestions after a mistyped one."""
        super().__init__(**options)
        self.commands: Any = dict.fromkeys(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in _COMMANDS:
            return None
        module, name, _ = _COMMANDS[cmd_name]
        command = getattr(import_module(f".{module}", __package__), name)
        if isinstance(command, typer.Typer):
            return get_group(command)
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(cmd_name)(command)
        return get_command(alone)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands with whole sentences, without importing their modules."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, sentence) for name, (_, _, sentence) in _COMMANDS.items()])


app = typer.Typer(
    name="compaction",
    cls=_LazyCommands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": _MAX_HELP_WIDTH},
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
        bool, typer.Option("--version", "-V", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Keep recorded LLM conversations inside a context window without breaking them.

    Files are JSON or JSONL, plain or gzip. Exit codes: 0 success, 1 a problem was found or a size was not reached, 2 arguments
    or input that cannot be used, 3 a bug in this program, 130 interrupted.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())

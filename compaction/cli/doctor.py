"""``compaction doctor``: show what is installed, how tokens are counted, and whether the window of a model is known."""

from __future__ import annotations

import platform
import re
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Annotated, Any, Final

import typer

from ..installation import DISTRIBUTION, install_line, version_text
from ..models import UnknownModel, input_limit
from .exit_codes import ExitCode
from .options import AsJson, ModelTableFile, find_counter
from .printing import Column, open_console, print_json, print_lines, print_table

_REQUIREMENT: Final = re.compile(r"([\w.-]++)[^;]*+; extra == ['\"]([\w-]+)['\"]")


def doctor_command(
    *,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="A model whose window to look up.", show_default=False)
    ] = None,
    models: ModelTableFile = None,
    as_json: AsJson = False,
) -> int:
    """Show what is installed, and how tokens are counted.

    It uses no network. Exit code 1: the window of --model is unknown.
    """
    counting, note = find_counter("auto")
    report: dict[str, Any] = {
        "version": version_text(),
        "python": platform.python_version(),
        "counter": {"name": counting.name, "exact": counting.exact, "why": note or "its vocabulary is on this machine"},
        "extras": installed_extras(),
    }
    known: dict[str, Any] = {"name": model, "input_limit": None, "error": None}
    if model is not None:
        try:
            known["input_limit"] = input_limit(model, table=models)
        except UnknownModel as error:
            known["error"] = str(error)
        report["model"] = known
    if as_json:
        print_json(report)
    else:
        _show(report)
    return ExitCode.FOUND if known["error"] else ExitCode.DONE


def installed_extras() -> dict[str, dict[str, str | None]]:
    """Return the packages of each extra, with the installed version or ``None``; without ``all``; empty in a checkout."""
    try:
        found = [_REQUIREMENT.match(line) for line in requires(DISTRIBUTION) or ()]
    except PackageNotFoundError:
        return {}
    extras: dict[str, dict[str, str | None]] = {}
    for match in found:
        if match and match[1] != DISTRIBUTION and match[2] != "all":
            extras.setdefault(match[2], {})[match[1]] = _version(match[1])
    return extras


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _show(report: dict[str, Any]) -> None:
    counter, model = report["counter"], report.get("model")
    lines = [
        f"compaction {report['version']}, Python {report['python']}",
        f"counter: {counter['name']}, {'exact' if counter['exact'] else 'an estimate'}: {counter['why']}",
    ]
    if model is not None:
        limit = model["error"] or f"requests of at most {model['input_limit']:,} tokens"
        lines.append(f"model {model['name']}: {limit}")
    with open_console(sys.stdout) as console:
        print_lines(console, [*lines, ""])
        if report["extras"]:
            rows = [
                (extra, "missing", install_line(extra))
                if None in packages.values()
                else (extra, "installed", ", ".join([f"{name} {installed}" for name, installed in packages.items()]))
                for extra, packages in report["extras"].items()
            ]
            print_table(console, [Column("extra"), Column("state"), Column("packages", if_narrow="wrapped")], rows)

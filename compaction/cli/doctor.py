"""``compaction doctor``: show what is installed, how tokens are counted, and whether a model and a provider can be used."""

from __future__ import annotations

import platform
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Annotated, Any, Final

import typer

from ..errors import ConfigurationError
from ..installation import DISTRIBUTION, install_line, version_text
from ..models import UnknownModel, input_limit
from .exit_codes import ExitCode
from .options import AsJson, ModelTableFile, find_counter
from .printing import open_console, print_json, print_table, printable

_REQUIREMENT: Final = re.compile(r"([\w.-]++)[^;]*+; extra == ['\"]([\w-]+)['\"]")


def doctor_command(
    *,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="A model whose window to look up.", show_default=False)
    ] = None,
    models: ModelTableFile = None,
    url: Annotated[
        str | None,
        typer.Option(
            "--url", metavar="URL", help="A provider's address; one request without a key is sent.", show_default=False
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.001, metavar="SECONDS", help="How long to wait for an answer of --url.")
    ] = 10.0,
    as_json: AsJson = False,
) -> int:
    """Show what is installed, and how tokens are counted.

    Only --url uses the network. Exit code 1: the window of --model is unknown, or --url does not answer.
    """
    counting, note = find_counter("auto")
    why = note or "its vocabulary is on this machine"
    report: dict[str, Any] = {
        "version": version_text(),
        "python": platform.python_version(),
        "counter": {"name": counting.name, "exact": counting.exact, "why": why},
        "extras": installed_extras(),
    }
    if model is not None:
        try:
            report["model"] = {"name": model, "input_limit": input_limit(model, table=models), "error": None}
        except UnknownModel as error:
            report["model"] = {"name": model, "input_limit": None, "error": str(error)}
    if url is not None:
        report["url"] = {"url": url, **_answer(url, timeout)}
    if as_json:
        print_json(report)
    else:
        _show(report)
    failed = any(report.get(asked, {}).get("error") for asked in ("model", "url"))
    return ExitCode.FOUND if failed else ExitCode.DONE


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


def _answer(url: str, timeout: float) -> dict[str, Any]:
    """Return the HTTP status of a server, or the error. Any status is an answer, such as 401 without a key."""
    if not url.startswith(("http://", "https://")):
        raise ConfigurationError(f"--url {url}: an address starts with http:// or https://")
    try:
        with urllib.request.urlopen(url, timeout=timeout) as answer:
            return {"status": answer.status, "error": None}
    except urllib.error.HTTPError as error:
        error.close()
        return {"status": error.code, "error": None}
    except (OSError, ValueError) as error:  # ValueError: the address is malformed
        return {"status": None, "error": str(getattr(error, "reason", error)) or type(error).__name__}
    except Exception as error:  # the server does not speak HTTP
        return {"status": None, "error": f"{type(error).__name__}: {error}"}


def _show(report: Mapping[str, Any]) -> None:
    counter, model, url = report["counter"], report.get("model"), report.get("url")
    lines = [
        f"compaction {report['version']}, Python {report['python']}",
        f"counter: {counter['name']}, {'exact' if counter['exact'] else 'an estimate'}: {counter['why']}",
    ]
    if model is not None:
        limit = model["error"] or f"requests of at most {model['input_limit']:,} tokens"
        lines.append(f"model {model['name']}: {limit}")
    if url is not None:
        answer = f"answers (HTTP {url['status']})" if url["error"] is None else f"no answer: {url['error']}"
        lines.append(f"url {url['url']}: {answer}")
    with open_console(sys.stdout) as console:
        for line in lines:
            console.print(printable(line))
        console.print()
        rows = [(extra, *_extra_state(extra, packages)) for extra, packages in report["extras"].items()]
        if rows:
            print_table(console, ["extra", "state", "~packages"], rows)


def _extra_state(extra: str, packages: Mapping[str, str | None]) -> tuple[str, str]:
    missing = [name for name, installed in packages.items() if installed is None]
    if missing:
        return "missing", install_line(extra)
    return "installed", ", ".join([f"{name} {installed}" for name, installed in packages.items()])

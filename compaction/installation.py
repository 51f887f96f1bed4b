"""How the package is installed: its version, and the command that adds an extra."""

from __future__ import annotations

from typing import Final

__all__ = ["DISTRIBUTION", "INSTALL_FROM", "install_line", "version_text"]

DISTRIBUTION: Final[str] = "compaction-toolkit"
INSTALL_FROM: Final[str] = "."
"""The name that pip installs: a checkout until the package is published, then `DISTRIBUTION`. The pages show the same."""


def install_line(extra: str) -> str:
    """Return the command that installs an extra, for error messages.

    >>> print(install_line("config"))
    pip install '.[config]' in a checkout of compaction-toolkit
    """
    where = "" if INSTALL_FROM == DISTRIBUTION else f" in a checkout of {DISTRIBUTION}"
    return f"pip install '{INSTALL_FROM}[{extra}]'{where}"


def version_text() -> str:
    """Return the version of the installed distribution, or a sentence if there is none."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return f"{DISTRIBUTION} is not installed; this is a checkout"

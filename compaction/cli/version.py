"""The version, as ``compaction --version`` prints it; it needs neither typer nor the rest of the package."""

from __future__ import annotations


def version_text() -> str:
    """Return the version of the installed distribution, or a sentence if there is none."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("compaction-toolkit")
    except PackageNotFoundError:
        return "compaction-toolkit is not installed; this is a checkout"

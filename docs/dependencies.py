"""Writes the table of dependencies in CONTRIBUTING.md from the comments in pyproject.toml: ``python docs/dependencies.py``.

The comment above a package says what it is for, after a colon why this one, and after ``|`` its licence, maintainer and newest
release. A package that several lists need has its comment in the first of them.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "CONTRIBUTING.md"
BEGIN, END = "<!-- dependencies -->\n", "<!-- end of dependencies -->\n"
TABLES = ("[project]", "[project.optional-dependencies]", "[dependency-groups]")


def packages(text: str) -> dict[str, tuple[str, list[str]]]:
    """Return each package of ``pyproject.toml`` with its comment and the lists that name it."""
    found: dict[str, tuple[str, list[str]]] = {}
    table = name = comment = ""
    for line in text.splitlines():
        if line.startswith("["):
            table = line
        elif table in TABLES and (opened := re.match(r"([\w-]+) = \[", line)):
            name = opened[1]
        elif line.startswith("    # "):
            comment = line.removeprefix("    # ")
        elif table in TABLES and (package := re.match(r'    "([\w.-]+)', line)) and name not in {"classifiers", "keywords"}:
            if package[1] != "compaction-toolkit":
                found.setdefault(package[1], (comment, []))[1].append(name)
            comment = ""
    return found


def table() -> str:
    """Return the table.

    Raises:
        ValueError: If a package has no comment of the form that the module describes.
    """
    rows = ["| package | needed by | purpose | why this one | licence, maintainer, newest release |", "|---|---|---|---|---|"]
    for name, (comment, lists) in packages((ROOT / "pyproject.toml").read_text(encoding="utf-8")).items():
        said = re.fullmatch(r"(?P<purpose>.+?): (?P<why>.+) \| (?P<upkeep>.+)", comment)
        if not said:
            raise ValueError(
                f"pyproject.toml says nothing about {name}: write '# purpose: why this one | licence, maintainer' above it"
            )
        needed = ", ".join("everyone" if each == "dependencies" else each for each in dict.fromkeys(lists))
        rows.append(f"| {name} | {needed} | {said['purpose']} | {said['why']} | {said['upkeep']} |")
    return "\n".join(rows) + "\n"


def page() -> str:
    """Return CONTRIBUTING.md with the table of today."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return before + BEGIN + table() + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

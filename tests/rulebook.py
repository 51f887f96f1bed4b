"""What ``docs/validity.md`` says of a format's rules, read from the page."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

from markdown_it import MarkdownIt

from compaction.formats import MessageFormat

__all__ = ["Example", "examples", "places", "rules", "table"]

PAGE = Path(__file__).resolve().parent.parent / "docs" / "validity.md"

Example: TypeAlias = tuple[str, list[Any], list[Any]]


def table(name: str) -> dict[str, list[str]]:
    """The rows of a format's table, by rule: what it says, what the repair does, where it is known from."""
    rows = re.findall(rf"^\| `{name}: ([a-z-]+)` \|(.+)\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {rule: [cell.strip() for cell in cells.split(" | ")] for rule, cells in rows}


def examples(name: str) -> list[Example]:
    """Every rule of a format with the list the page says is refused and the one it says is accepted."""
    found: list[Example] = []
    heading, lists = "", list[Any]()
    for before, token in pairwise(MarkdownIt().parse(PAGE.read_text(encoding="utf-8"))):
        if before.type == "heading_open":
            heading, lists = token.content.strip("`"), []
        elif token.type == "fence" and token.info == "json" and heading.startswith(f"{name}: "):
            lists.append(json.loads(token.content))
            if len(lists) == 2:
                found.append((heading.removeprefix(f"{name}: "), lists[0], lists[1]))
    return found


def rules(format: MessageFormat, messages: list[Any]) -> list[str]:
    """The names of the rules the list breaks."""
    return [problem.rule for problem in format.validate(messages)]


def places(format: MessageFormat, messages: list[Any]) -> list[tuple[str, str]]:
    """Where the list breaks which rule."""
    return [(problem.where, problem.rule) for problem in format.validate(messages)]

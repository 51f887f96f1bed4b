"""What ``docs/validity.md`` says of a format's rules, read from the page; and what every format owes, whatever it is given."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Collection
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

from markdown_it import MarkdownIt

from compaction.formats import MessageFormat

__all__ = [
    "Example",
    "examples",
    "expect_problems_in_order",
    "expect_repaired_once",
    "expect_unrepaired",
    "places",
    "rules",
    "table",
]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "validity.md"

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


def expect_problems_in_order(format: MessageFormat, messages: list[Any], known: Collection[str]) -> None:
    """Validating gives problems with a known rule, places in order, and no exception."""
    problems = format.validate(messages)
    indices = [int(found[1]) for problem in problems if (found := re.match(r"messages\[(\d+)\]", problem.where))]
    assert [problem.rule for problem in problems if problem.rule not in known] == []
    assert indices == sorted(indices)


def expect_repaired_once(format: MessageFormat, messages: list[Any], always_repaired: Collection[str]) -> None:
    """``remaining`` is all that is wrong with the new list, and none of these rules; the input stays; once is enough."""
    before = copy.deepcopy(messages)
    result = format.repair(messages)
    assert repr(messages) == repr(before)
    assert tuple(format.validate(result.messages)) == result.remaining
    assert [problem for problem in result.remaining if problem.rule in always_repaired] == []
    expect_unrepaired(format, result.messages)


def expect_unrepaired(format: MessageFormat, messages: list[Any]) -> None:
    """A repair finds nothing to do: the same objects, no changes."""
    result = format.repair(messages)
    assert ([id(each) for each in result.messages], result.changes) == ([id(each) for each in messages], ())

"""The examples of a format's rules, and what every format owes, whatever it is given."""

from __future__ import annotations

import copy
import re
from collections.abc import Collection
from typing import Any, TypeAlias

from benchmarks.rule_pages import examples_of
from compaction.formats import MessageFormat

Example: TypeAlias = tuple[str, list[Any], list[Any]]


def repairs(name: str) -> dict[str, str]:
    """What the page of a format says that a repair does, by rule."""
    return {rule: entry["repair"] for rule, entry in examples_of(name)["rules"].items()}


def examples(name: str) -> list[Example]:
    """Every rule of a format with the list the page says is refused and the one it says is accepted."""
    return [(rule, entry["refused"], entry["accepted"]) for rule, entry in examples_of(name)["rules"].items()]


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

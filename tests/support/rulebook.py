"""The examples of a format's rules, and the checks that every format passes on any input."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from compaction.formats import MessageFormat, resolve


def rules(format: MessageFormat, messages: list[Any]) -> list[str]:
    """Return the names of the rules that the list breaks."""
    return [problem.rule for problem in format.validate(messages)]


def is_valid(format: MessageFormat | str, messages: list[Any]) -> bool:
    """Return whether a list breaks no rule, except for calls at its end that wait for a result."""
    return set(rules(resolve(format), messages)) <= {"pending-call"}


def expect_problems_in_order(format: MessageFormat, messages: list[Any], known: Collection[str]) -> None:
    """Check that validating raises nothing and gives problems with known rules, ordered by place."""
    problems = format.validate(messages)
    indices = [int(found[1]) for problem in problems if (found := re.match(r"messages\[(\d+)\]", problem.where))]
    assert [problem.rule for problem in problems if problem.rule not in known] == []
    assert indices == sorted(indices)


def expect_unrepaired(format: MessageFormat, messages: list[Any]) -> None:
    """Check that a repair does nothing: it returns the same objects and no changes."""
    result = format.repair(messages)
    assert ([id(each) for each in result.messages], result.changes) == ([id(each) for each in messages], ())

"""The examples of each format, in ``tests/formats/NAME/examples.py``, and the checks that every format passes on any input."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from importlib import import_module
from typing import Any, TypeAlias

import attrs
import pytest

from compaction.formats import FORMATS, MessageFormat, resolve
from compaction.messages import Message, Part

Raw: TypeAlias = dict[str, Any]

Change: TypeAlias = str | Raw | type[Part] | tuple[type[Part], Raw] | list[Part] | Callable[[Sequence[Part]], Sequence[Part]]
"""A change of a message: its new text; new fields of its first part; a kind of part that leaves; new fields of every part of a
kind; its new parts; or a function of its parts."""


def examples_of(format: MessageFormat) -> Any:
    """Return the module with the examples of a format."""
    return import_module(f"tests.formats.{format.name.replace('-', '_')}.examples")


def cases(table: str) -> list[Any]:
    """Return every row of a table of examples, for all formats: the format, and what stands in the row."""
    return [
        pytest.param(format, *above, *(row if isinstance(row, tuple) else (row,)), id=f"{format.name}: {name}")
        for format in FORMATS
        for name, *above, row in _rows(getattr(examples_of(format), table))
    ]


def _rows(table: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the name of each row, and the row; in a table of tables, the name of its table between them."""
    for name, row in table.items():
        if isinstance(row, dict):
            yield from ((inner, name, each) for inner, each in row.items())
        else:
            yield name, row


def changed(message: Message, change: Change) -> Message:
    parts = message.parts
    match change:
        case str():
            return message.evolve(text=change)
        case dict():
            return message.evolve(parts=[attrs.evolve(parts[0], **change), *parts[1:]])
        case type():
            return message.evolve(parts=[part for part in parts if not isinstance(part, change)])
        case list():
            return message.evolve(parts=change)
        case (kind, fields):
            return message.evolve(parts=[attrs.evolve(part, **fields) if isinstance(part, kind) else part for part in parts])
        case _:
            return message.evolve(parts=change(parts))


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

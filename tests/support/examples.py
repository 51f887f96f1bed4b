"""The examples of each wire format, which stand in ``tests/formats/NAME/examples.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, TypeAlias

import attrs
import pytest

from compaction.formats import FORMATS
from compaction.messages import Message, Part

Raw: TypeAlias = dict[str, Any]

Change: TypeAlias = str | Raw | type[Part] | tuple[type[Part], Raw] | list[Part] | Callable[[Sequence[Part]], Sequence[Part]]
"""A change of a message: its new text; new fields of its first part; a kind of part that leaves; new fields of every part of a
kind; its new parts; or a function of its parts."""


def cases(table: str) -> list[Any]:
    """Return every row of a table of examples, for all formats: the format, and what stands in the row."""
    modules = {format: import_module(f"tests.formats.{format.name.replace('-', '_')}.examples") for format in FORMATS}
    return [
        pytest.param(format, *above, *(row if isinstance(row, tuple) else (row,)), id=f"{format.name}: {name}")
        for format, module in modules.items()
        for name, *above, row in _rows(getattr(module, table))
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

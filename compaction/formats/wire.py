"""What every wire format does with a caller's objects: look into them, size their data, show them as JSON, compare them."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ..errors import InvalidMessage
from .base import Problem
from .openai_chat_fields import fields_of, items_of

__all__ = ["Changes", "json_object", "json_text", "kind_of", "message_fields", "plain", "same", "string", "type_name"]


def string(value: Any) -> str:
    """The value if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def kind_of(part: Any) -> str:
    """The ``type`` of a part; empty if it has none."""
    fields = fields_of(part)
    return "" if fields is None else string(fields.get("type"))


def type_name(value: Any) -> str:
    """What a value is, for a message to a reader."""
    return "null" if value is None else type(value).__name__


def same(ones: Sequence[Any], others: Sequence[Any]) -> bool:
    """Whether two sequences hold the very same objects."""
    return len(ones) == len(others) and all(one is other for one, other in zip(ones, others, strict=True))


def json_text(value: Any) -> str:
    """A value as JSON text, or as Python shows it where JSON cannot; a string as it is."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=_shown)
    except (TypeError, ValueError):
        return repr(value)
    except RecursionError:
        return reprlib.repr(value)


def json_object(text: Any) -> dict[str, Any] | None:
    """The object that a JSON text describes, the empty one for no text; ``None`` if it describes something else."""
    try:
        value: Any = json.loads(text or "{}")
    except (TypeError, ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _shown(value: Any) -> Any:
    fields = fields_of(value)
    return repr(value) if fields is None else dict(fields)


def plain(value: Any) -> Any:
    """The value as dictionaries and lists all the way down; the same object where it is so already."""
    if value is None or isinstance(value, str | int | float):
        return value
    if (elements := items_of(value)) is not None:
        items = [plain(item) for item in elements]
        return elements if type(value) is list and same(items, elements) else items
    fields = fields_of(value)
    if fields is None:
        return value
    made = {name: plain(field) for name, field in fields.items()}
    return fields if type(value) is dict and same(list(made.values()), list(fields.values())) else made


def message_fields(raw: Any, position: int, what: str, remedy: str) -> Mapping[str, Any]:
    """The fields of a raw message.

    Args:
        raw: A mapping, or a pydantic object of a provider's package.
        position: Its place in the list, from 0.
        what: What a message of the format is, for the error.
        remedy: What to pass instead.

    Raises:
        InvalidMessage: If it has no fields.
    """
    fields = fields_of(raw)
    if fields is None:
        raise InvalidMessage(f"messages[{position}]", f"{what} (got {type(raw).__name__})", remedy)
    return fields


class Changes:
    """Collects what a repair did, to be told in order of place. Holds state: the changes so far."""

    def __init__(self) -> None:
        self._found: list[tuple[int, Problem]] = []

    def __len__(self) -> int:
        return len(self._found)

    def add(self, index: int, place: str, rule: str, message: str, done: str) -> None:
        """Note one change: where, which rule was broken and how, and what was done."""
        self._found.append((index, Problem(f"messages[{index}]{place}", rule, message, done)))

    def in_order(self) -> tuple[Problem, ...]:
        """All of them, the earliest message first."""
        return tuple(problem for _, problem in sorted(self._found, key=_place))


def _place(found: tuple[int, Problem]) -> int:
    return found[0]

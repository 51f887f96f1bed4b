"""The column of an Arrow table with the messages: JSON text, or nested lists of structs.

pyarrow is imported when it is first needed. A nested column has nulls for the keys that a message lacks. They are removed
before a message is read; an unchanged message is written with them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from importlib import import_module
from typing import Any, Literal, cast

import attrs

from ..errors import ConfigurationError, InputError
from .json_lines import JsonLine


def arrow_module() -> Any:
    """Import ``pyarrow``."""
    try:
        return import_module("pyarrow")
    except ImportError as error:
        raise ConfigurationError(
            f"Parquet and zstd need pyarrow, which cannot be imported ({error}): pip install 'compaction-toolkit[batch]'"
        ) from error


@contextlib.contextmanager
def open_parquet(path: str) -> Generator[Any]:
    """Open a Parquet file."""
    arrow_module()
    parquet: Any = import_module("pyarrow.parquet")
    with parquet.ParquetFile(path, memory_map=False, pre_buffer=False) as table:
        yield table


@attrs.define
class NestedMessages:
    """Holds state: a value of a nested column, and its messages without nulls after `read`.

    Args:
        value: The value.
        type: The column's Arrow type.
    """

    value: list[Any] | None
    type: Any
    _clean: list[Any] = attrs.field(factory=list[Any], init=False)

    def read(self) -> list[Any]:
        """Return the messages, without nulls."""
        if self.value is None:
            raise InputError("its messages are null; a conversation is a list")
        self._clean = [_without_nulls(message) for message in self.value]
        return self._clean

    def write(self, messages: list[Any]) -> list[Any]:
        """Return the value to write; unchanged messages keep their nulls."""
        original = {id(clean): raw for clean, raw in zip(self._clean, self.value or (), strict=True)}
        new = [message for message in messages if id(message) not in original]
        if new:
            self._check(new)
        return [original.get(id(message), message) for message in messages]

    def _check(self, messages: list[Any]) -> None:
        """Check that the column's type has all fields of new messages."""
        arrow = arrow_module()
        try:
            [back] = arrow.array([messages], type=self.type).to_pylist()
        except (arrow.ArrowException, TypeError, ValueError) as error:
            raise InputError(f"its column cannot store a changed message ({error}); store messages as JSON") from error
        for message, held in zip(messages, back, strict=True):
            if _without_nulls(held) != _without_nulls(message):
                raise InputError("its column lacks a field of a changed message; store messages as JSON")


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value).items()
        return {name: _without_nulls(inner) for name, inner in fields if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]  # pyright: ignore[reportUnknownVariableType]
    return value


@attrs.frozen
class MessageColumn:
    """A table's column of messages.

    Args:
        name: The column's name.
        kind: ``"text"`` for JSON, ``"nested"`` for lists of structs.
        type: Its Arrow type.
    """

    name: str
    kind: Literal["text", "nested"]
    type: Any

    @classmethod
    def of(cls, schema: Any, name: str) -> MessageColumn:
        """Return the column of that name."""
        types: Any = import_module("pyarrow.types") if arrow_module() else None
        if name not in schema.names:
            raise ConfigurationError(f"column={name!r}: there is no such column; the columns are {', '.join(schema.names)}")
        type_ = schema.field(name).type
        inner = type_.value_type if types.is_dictionary(type_) else getattr(type_, "storage_type", type_)
        if types.is_string(inner) or types.is_large_string(inner):
            return cls(name, "text", type_)
        if (types.is_list(inner) or types.is_large_list(inner)) and types.is_struct(inner.value_type):
            return cls(name, "nested", type_)
        raise ConfigurationError(
            f"column={name!r}: its type is {type_}; messages are JSON text or lists of structs; name another column"
        )

    def rows(self, values: Any) -> list[JsonLine | NestedMessages]:
        """Return the conversations in the column's values."""
        if self.kind == "nested":
            return [NestedMessages(value, self.type) for value in values.to_pylist()]
        return [JsonLine(b"null" if value is None else value.encode()) for value in values.to_pylist()]

    def array(self, written: Sequence[Any]) -> Any:
        """Return written rows as a column of the same type."""
        arrow = arrow_module()
        if self.kind == "nested":
            return arrow.array(list(written), type=self.type)
        text = arrow.array([None if each is None else each.decode() for each in written], type=arrow.large_string())
        return text.cast(self.type)

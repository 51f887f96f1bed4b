"""A column of messages in an Arrow table: JSON text, or nested lists, read and written as what it is.

Nothing else of the package knows pyarrow. A nested column fills the keys that a message does not have with nulls; these are
taken off before a message is read, and a message that stays is written as it stood.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Sequence
from importlib import import_module
from typing import Any, Literal, cast

import attrs

from ..errors import ConfigurationError, InputError
from .lines import Line

__all__ = ["Column", "Nested", "arrow_module", "opened_table"]


def arrow_module() -> Any:
    """``pyarrow``, loaded when it is first needed.

    Raises:
        ConfigurationError: If it is not installed.
    """
    try:
        return import_module("pyarrow")
    except ImportError as error:
        raise ConfigurationError(
            f"Parquet and zstd need pyarrow, which cannot be imported ({error}): pip install 'compaction-toolkit[batch]'"
        ) from error


@contextlib.contextmanager
def opened_table(path: str) -> Generator[Any]:
    """A Parquet file, closed at the end."""
    arrow_module()
    parquet: Any = import_module("pyarrow.parquet")
    with parquet.ParquetFile(path, memory_map=False, pre_buffer=False) as table:
        yield table


@attrs.define
class Nested:
    """Holds state: a list of messages in a nested column, and the same without nulls once it is read.

    Args:
        value: What stands in the column.
        type: The column's Arrow type.
    """

    value: list[Any] | None
    type: Any
    _clean: list[Any] = attrs.field(factory=list[Any], init=False)

    def read(self) -> list[Any]:
        """Its messages, without nulls."""
        if self.value is None:
            raise InputError("its messages are null; a conversation is a list")
        self._clean = [_without_nulls(message) for message in self.value]
        return self._clean

    def write(self, messages: list[Any]) -> list[Any]:
        """What is to stand in the column: messages that stayed as they were, nulls and all.

        Raises:
            InputError: If the column cannot hold a new one.
        """
        stood = {id(clean): raw for clean, raw in zip(self._clean, self.value or (), strict=True)}
        new = [message for message in messages if id(message) not in stood]
        if new:
            self._check(new)
        return [stood.get(id(message), message) for message in messages]

    def _check(self, messages: list[Any]) -> None:
        """See that the column has room for what is new.

        Raises:
            InputError: If it has not: Arrow would leave out the fields it does not know.
        """
        arrow = arrow_module()
        try:
            [back] = arrow.array([messages], type=self.type).to_pylist()
        except (arrow.ArrowException, TypeError, ValueError) as error:
            raise InputError(f"its column cannot hold a message that was changed ({error}); store messages as JSON") from error
        for message, held in zip(messages, back, strict=True):
            if _without_nulls(held) != _without_nulls(message):
                raise InputError("its column has no place for a field of a message that was changed; store messages as JSON")


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value).items()
        return {name: _without_nulls(inner) for name, inner in fields if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]  # pyright: ignore[reportUnknownVariableType]
    return value


@attrs.frozen
class Column:
    """Where the messages of a table stand, and as what.

    Args:
        name: The column's name.
        kind: ``"text"`` for JSON, ``"nested"`` for lists of structs.
        type: Its Arrow type.
    """

    name: str
    kind: Literal["text", "nested"]
    type: Any

    @classmethod
    def of(cls, schema: Any, name: str) -> Column:
        """The column of that name.

        Raises:
            ConfigurationError: If there is none, or it holds something else.
        """
        types: Any = import_module("pyarrow.types") if arrow_module() else None
        if name not in schema.names:
            raise ConfigurationError(
                f"column={name!r}: there is no such column; name the one that holds the messages: {', '.join(schema.names)}"
            )
        type_ = schema.field(name).type
        inner = type_.value_type if types.is_dictionary(type_) else getattr(type_, "storage_type", type_)
        if types.is_string(inner) or types.is_large_string(inner):
            return cls(name, "text", type_)
        if (types.is_list(inner) or types.is_large_list(inner)) and types.is_struct(inner.value_type):
            return cls(name, "nested", type_)
        raise ConfigurationError(
            f"column={name!r}: it is {type_}; messages are JSON text or lists of structs; name another column, or convert it"
        )

    def rows(self, values: Any) -> list[Line | Nested]:
        """The conversations in a column's values."""
        if self.kind == "nested":
            return [Nested(value, self.type) for value in values.to_pylist()]
        return [Line(b"null" if value is None else value.encode()) for value in values.to_pylist()]

    def array(self, written: Sequence[Any]) -> Any:
        """What rows wrote, as a column of the same type."""
        arrow = arrow_module()
        if self.kind == "nested":
            return arrow.array(list(written), type=self.type)
        text = arrow.array([None if each is None else each.decode() for each in written], type=arrow.large_string())
        return text.cast(self.type)

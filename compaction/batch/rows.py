"""The conversations of a batch as they are stored: a line of JSONL, or a value of an Arrow table's column.

orjson parses the lines if it is installed. Only a line that changed is read again, with the position of each message, so that
the text around the messages stays the same. A column has JSON text, or nested lists of structs with nulls for the keys that a
message lacks: they are removed before a message is read, and an unchanged message is written with them. pyarrow is imported
when it is first needed.

A chunk is the lines or rows that a worker has in memory at a time. Lines written as lines and rows written as rows lose
nothing. If a row becomes a line, its columns become fields. If a line becomes a row, its messages become JSON text, plain
fields become columns, and other fields become JSON text.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
from collections.abc import Callable, Generator, Iterator, Sequence
from importlib import import_module
from typing import IO, Any, Final, Literal, TypeAlias, cast

import attrs

from ..errors import ConfigurationError, InputError, UnreadableFile
from ..files import FileConversation, read_conversations, replace_list
from ..installation import install_line

BUFFER_BYTES: Final = 1_048_576
"""The size of the pieces in which files are read."""
_MESSAGES: Final = "messages"
_FIELD: Final = b'"messages"'

_orjson: Any = None
with contextlib.suppress(ImportError):
    _orjson = import_module("orjson")

load_json: Final[Callable[[bytes], Any]] = (lambda text: json.loads(text.decode())) if _orjson is None else _orjson.loads
"""Parses JSON in UTF-8; the standard library reads some texts that orjson rejects."""


def dump_json(value: Any) -> bytes:
    """Return a value as JSON bytes, on one line; O(value).

    >>> dump_json({"a": [1, "é"]}).decode()
    '{"a":[1,"é"]}'
    """
    if _orjson is not None:
        with contextlib.suppress(TypeError):
            return bytes(_orjson.dumps(value))
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


@attrs.frozen
class BadConversation:
    """A conversation that is left out of the output."""

    reason: str
    error: str  # the name of the error's class, or of the rule


Written: TypeAlias = bytes | list[Any] | BadConversation
"""The outcome of a row: the line to write, or the value of a nested column, or why there is none."""


@attrs.frozen
class OversizedLine:
    """A line that is too long to be read."""

    size: int  # in bytes


def bounded_lines(stream: IO[bytes], max_bytes: int) -> Iterator[bytes | OversizedLine]:
    r"""Yield the lines of a stream without loading those that are longer than ``max_bytes``.

    >>> list(bounded_lines(io.BytesIO(b"[]\n" + b"x" * 9 + b"\n{}"), 5))
    [b'[]\n', OversizedLine(size=10), b'{}']
    """
    while line := stream.readline(max_bytes + 1):
        if len(line) <= max_bytes or line.endswith(b"\n"):
            yield line
            continue
        size = len(line)
        while rest := stream.readline(BUFFER_BYTES):
            size += len(rest)
            if rest.endswith(b"\n"):
                break
        yield OversizedLine(size)


def parse_json(text: bytes) -> Any:
    """Return the JSON value of a line that was read before."""
    try:
        return load_json(text)
    except ValueError:
        return json.loads(text)


def _read_strictly(text: bytes) -> FileConversation:
    """Read a line as `read_conversations` does, but not as gzip data; its errors say what is wrong."""
    try:
        text.decode()
        [conversation] = read_conversations(io.BytesIO(text))
    except UnicodeDecodeError as error:
        raise InputError(f"it is not UTF-8 text ({error.reason}); a conversation is JSON in UTF-8") from error
    except UnreadableFile as error:
        raise InputError(str(error).removeprefix("the input: ")) from error
    return conversation


@attrs.define
class JsonLine:
    """A conversation that is a line."""

    text: bytes  # the line, with its line end
    add_line_end: bool = False  # whether a line end is written if it has none

    @property
    def size(self) -> int:
        """Its bytes."""
        return len(self.text)

    def read(self) -> list[Any]:
        """Return its messages; each call parses the line."""
        try:
            value: Any = load_json(self.text)
        except ValueError:
            return _read_strictly(self.text).messages
        if isinstance(value, dict) and self.text.count(_FIELD) == 1:
            value = cast("dict[str, Any]", value).get("messages")
        if isinstance(value, list):
            return value  # pyright: ignore[reportUnknownVariableType]
        return _read_strictly(self.text).messages

    def write(self, read: list[Any], messages: list[Any]) -> bytes:
        """Return the line with other messages than those that were read."""
        try:
            text = replace_list(self.text, read, messages)
        except (ValueError, RecursionError):
            _read_strictly(self.text)  # raises an error with the reason
            raise
        return text + b"\n" if self.add_line_end and not text.endswith(b"\n") else text


@attrs.frozen
class LineChunk:
    """Consecutive lines."""

    rows: list[JsonLine | OversizedLine | bytes]  # bytes: a line of white space, copied unchanged

    def text(self, written: Sequence[Written]) -> bytes:
        """Return the written rows as lines, without each `BadConversation`."""
        return b"".join([each for each in written if isinstance(each, bytes)])

    def table(self, written: Sequence[Written]) -> Any:
        """Return the written rows as an Arrow table."""
        arrow = arrow_module()
        records = [
            _record(parse_json(each))
            for row, each in zip(self.rows, written, strict=True)
            if isinstance(row, JsonLine) and isinstance(each, bytes)
        ]
        names = list(dict.fromkeys(name for record in records for name in record)) or [_MESSAGES]
        columns = {name: [record.get(name) for record in records] for name in names}
        arrays = [
            arrow.array(
                values if _is_plain(values) else [None if value is None else dump_json(value).decode() for value in values]
            )
            for values in columns.values()
        ]
        return arrow.table(arrays, names=names)

    def original(self, place: int) -> dict[str, Any]:
        """Return the fields of an error entry that show a bad conversation."""
        row = self.rows[place]
        if isinstance(row, OversizedLine):
            return {"original": None, "bytes": row.size}
        text = row if isinstance(row, bytes) else row.text
        try:
            return {"original": text.decode().removesuffix("\n")}
        except UnicodeDecodeError:
            return {"original": None, "original_base64": base64.b64encode(text).decode()}


def _record(value: Any) -> dict[str, Any]:
    """Return a line's fields as the columns of a row, its messages as JSON text."""
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {_MESSAGES: value}
    plain = {escaped(name): escaped(each) if isinstance(each, str) else each for name, each in fields.items()}
    return {**plain, _MESSAGES: dump_json(fields[_MESSAGES]).decode()}


def _is_plain(values: Sequence[Any]) -> bool:
    kinds: set[Any] = {type(value) for value in values if value is not None}
    return len(kinds) <= 1 and not kinds & {dict, list} and all(not isinstance(v, int) or abs(v) < 1 << 63 for v in values)


# -------------------------------------------------------------------- tables


def arrow_module() -> Any:
    """Import ``pyarrow``."""
    try:
        return import_module("pyarrow")
    except ImportError as error:
        raise ConfigurationError(
            f"Parquet and zstd need pyarrow, which cannot be imported ({error}): {install_line('batch')}"
        ) from error


def escaped(text: str) -> str:
    r"""Return a text as Arrow can store it: a lone surrogate, which UTF-8 cannot represent, becomes an escape.

    >>> escaped("half a sign: \ud83d")
    'half a sign: \\ud83d'
    """
    return text.encode(errors="backslashreplace").decode()


@contextlib.contextmanager
def open_parquet(path: str) -> Generator[Any]:
    """Open a Parquet file."""
    arrow_module()
    parquet: Any = import_module("pyarrow.parquet")
    with parquet.ParquetFile(path, pre_buffer=False) as table:
        yield table


@attrs.frozen
class NestedMessages:
    """A conversation that is a value of a nested column."""

    value: list[Any] | None
    type: Any  # the column's Arrow type

    @property
    def size(self) -> int:
        """Its bytes as text: none."""
        return 0

    def read(self) -> list[Any]:
        """Return the messages, without nulls."""
        if self.value is None:
            raise InputError("its messages are null; a conversation is a list")
        return [_without_nulls(message) for message in self.value]

    def write(self, read: list[Any], messages: list[Any]) -> list[Any]:
        """Return the value to write; messages that are the same objects as those that were read keep their nulls."""
        original = {id(clean): raw for clean, raw in zip(read, self.value or (), strict=True)}
        self._check([message for message in messages if id(message) not in original])
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
    """A table's column of messages."""

    name: str  # the column's name
    kind: Literal["text", "nested"]  # ``"text"`` for JSON, ``"nested"`` for lists of structs
    type: Any  # its Arrow type

    @classmethod
    def of(cls, schema: Any, name: str) -> MessageColumn:
        """Return the column of that name."""
        types = arrow_module().types
        if name not in schema.names:
            raise ConfigurationError(
                f"column={name!r}: there is no such column; the columns are {', '.join(schema.names)}", argument="column"
            )
        if schema.names.count(name) > 1:
            raise ConfigurationError(f"column={name!r}: there are several such columns; rename all but one", argument="column")
        type_ = schema.field(name).type
        inner = type_.value_type if types.is_dictionary(type_) else getattr(type_, "storage_type", type_)
        if types.is_string(inner) or types.is_large_string(inner):
            return cls(name, "text", type_)
        if (types.is_list(inner) or types.is_large_list(inner)) and types.is_struct(inner.value_type):
            return cls(name, "nested", type_)
        raise ConfigurationError(
            f"column={name!r}: its type is {type_}; messages are JSON text or lists of structs; name another column",
            argument="column",
        )

    def rows(self, values: Any, max_bytes: int) -> list[JsonLine | OversizedLine | NestedMessages]:
        """Return the conversations in the column's values."""
        if self.kind == "nested":
            return [NestedMessages(value, self.type) for value in values.to_pylist()]
        texts = [b"null" if value is None else value.encode() for value in values.to_pylist()]
        return [JsonLine(text) if len(text) <= max_bytes else OversizedLine(len(text)) for text in texts]

    def array(self, written: Sequence[Any]) -> Any:
        """Return written rows as a column of the same type."""
        arrow = arrow_module()
        if self.kind == "nested":
            return arrow.array(list(written), type=self.type)
        text = arrow.array([None if each is None else each.decode() for each in written], type=arrow.large_string())
        return text.cast(self.type)


@attrs.frozen
class TableChunk:
    """Consecutive rows of a table."""

    batch: Any  # the rows with every column
    column: MessageColumn  # the column with the messages
    rows: list[JsonLine | OversizedLine | NestedMessages]  # the conversations

    def text(self, written: Sequence[Written]) -> bytes:
        """Return the written rows as lines."""
        others: list[dict[str, Any]] = self.batch.drop_columns([self.column.name]).to_pylist() or [{}] * len(written)
        return b"".join(
            [_line(fields, each) for fields, each in zip(others, written, strict=True) if not isinstance(each, BadConversation)]
        )

    def table(self, written: Sequence[Written]) -> Any:
        """Return the written rows as an Arrow table."""
        arrow = arrow_module()
        good = [place for place, each in enumerate(written) if not isinstance(each, BadConversation)]
        kept = self.batch if len(good) == len(written) else self.batch.take(arrow.array(good, arrow.int64()))
        place = self.batch.schema.get_field_index(self.column.name)
        field = self.batch.schema.field(place)
        return kept.set_column(place, field, self.column.array([written[each] for each in good]))

    def unchanged(self, place: int) -> bytes | list[Any]:
        """Return the original value of a row, in the form that `table` takes."""
        value = self.batch.column(self.column.name)[place].as_py()
        return value.encode() if isinstance(value, str) else value

    def original(self, place: int) -> dict[str, Any]:
        """Return the fields of an error entry that show a bad conversation."""
        [fields] = self.batch.slice(place, 1).to_pylist()
        return {"original": json.dumps(fields, ensure_ascii=False, default=str)}


Chunk: TypeAlias = LineChunk | TableChunk  # consecutive conversations of a slice


def _line(fields: dict[str, Any], messages: bytes | list[Any]) -> bytes:
    """Return a row as a line with its columns as fields and its messages under ``messages``."""
    if _MESSAGES in fields:
        raise ConfigurationError(f"another column is called {_MESSAGES!r}, like the messages of a line; rename it")
    if isinstance(messages, list):
        text = dump_json(NestedMessages(messages, None).read())
    else:
        text = messages if b"\n" not in messages else dump_json(parse_json(messages))
    try:
        start = dump_json(fields)
    except TypeError as error:
        raise ConfigurationError(
            f"JSON cannot represent a column's value ({error}); write Parquet, or drop the column"
        ) from error
    return b'%b%b"messages":%b}\n' % (start[:-1], b"," if fields else b"", text)


Row: TypeAlias = JsonLine | NestedMessages
"""One conversation: ``read`` returns its messages, and ``write`` the row with other messages."""

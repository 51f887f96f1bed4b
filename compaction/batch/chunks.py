"""Chunks of a slice: the lines or rows that a worker has in memory at a time, written as lines or as a table.

Lines written as lines and rows written as rows lose nothing. If a row becomes a line, its columns become fields. If a line
becomes a row, its messages become JSON text, plain fields become columns, and other fields become JSON text.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import attrs

from ..errors import ConfigurationError, UnreadableFile
from .conversation import BadConversation, Written
from .rows import (
    BUFFER_BYTES,
    BlankLine,
    JsonLine,
    MessageColumn,
    NestedMessages,
    OversizedLine,
    arrow_module,
    bounded_lines,
    dump_json,
    escaped,
    open_parquet,
    parse_json,
)
from .slices import Slice

_MESSAGES: Final = "messages"


@attrs.frozen
class LineChunk:
    """Consecutive lines."""

    rows: list[JsonLine | OversizedLine | BlankLine]

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
            arrow.array(values if _is_plain(values) else [_json(value) for value in values]) for values in columns.values()
        ]
        return arrow.table(arrays, names=names)

    def original(self, place: int) -> dict[str, Any]:
        """Return the fields of an error entry that show a bad conversation."""
        row = self.rows[place]
        if isinstance(row, OversizedLine):
            return {"original": None, "bytes": row.size}
        try:
            return {"original": row.text.decode().removesuffix("\n")}
        except UnicodeDecodeError:
            return {"original": None, "original_base64": base64.b64encode(row.text).decode()}


def _record(value: Any) -> dict[str, Any]:
    """Return a line's fields as the columns of a row, its messages as JSON text."""
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {_MESSAGES: value}
    plain = {escaped(name): escaped(each) if isinstance(each, str) else each for name, each in fields.items()}
    return {**plain, _MESSAGES: dump_json(fields[_MESSAGES]).decode()}


def _is_plain(values: Sequence[Any]) -> bool:
    kinds: set[Any] = {type(value) for value in values if value is not None}
    return len(kinds) <= 1 and not kinds & {dict, list} and all(not isinstance(v, int) or abs(v) < 1 << 63 for v in values)


def _json(value: Any) -> str | None:
    return None if value is None else dump_json(value).decode()


@attrs.frozen
class TableChunk:
    """Consecutive rows of a table."""

    batch: Any  # the rows with every column
    column: MessageColumn  # the column with the messages
    rows: list[JsonLine | NestedMessages]  # the conversations

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


Chunk: TypeAlias = LineChunk | TableChunk
"""Consecutive conversations of a slice."""


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


def read_chunks(slice: Slice, column: str, max_rows: int, max_bytes: int) -> Iterator[Chunk]:
    """Yield a slice some rows at a time."""
    if slice.source.kind == "parquet":
        yield from _table_chunks(slice, column, max_rows)
        return
    rows: list[JsonLine | OversizedLine | BlankLine] = []
    for line in _lines(slice, max_bytes):
        if isinstance(line, OversizedLine):
            rows.append(line)
        else:
            rows.append(BlankLine(line) if line.isspace() else JsonLine(line, slice.add_line_end))
        if len(rows) == max_rows:
            yield LineChunk(rows)
            rows = []
    yield LineChunk(rows)


def _lines(slice: Slice, max_bytes: int) -> Iterator[bytes | OversizedLine]:
    if slice.oversized:
        yield OversizedLine(slice.oversized)
    elif slice.text is not None:
        yield from io.BytesIO(slice.text)  # one line at a time: a slice may have millions of empty ones
    else:
        with Path(slice.source.path).open("rb", buffering=BUFFER_BYTES) as stream:
            stream.seek(slice.start)
            left = slice.end - slice.start
            for line in bounded_lines(stream, max_bytes):
                yield line
                left -= line.size if isinstance(line, OversizedLine) else len(line)
                if left <= 0:
                    return


def _table_chunks(slice: Slice, column: str, max_rows: int) -> Iterator[Chunk]:
    arrow = arrow_module()
    with open_parquet(slice.source.path) as table:
        try:
            found = MessageColumn.of(table.schema_arrow, column)
        except ConfigurationError as error:
            raise UnreadableFile(f"{slice.source.path}: {error}") from error
        if not table.metadata.num_rows:
            empty = table.schema_arrow.empty_table()
            yield TableChunk(empty, found, [])
            return
        for batch in table.iter_batches(max_rows, row_groups=range(slice.start, slice.end), use_threads=False):
            rows = arrow.Table.from_batches([batch])
            yield TableChunk(rows, found, found.rows(rows.column(found.name)))

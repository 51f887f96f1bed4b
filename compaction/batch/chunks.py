"""What a worker holds in memory at a time: some lines, or some rows of a table; each can be written as either.

Lines to lines and rows to rows lose nothing. Rows become lines with their columns as fields; lines become rows with their
messages as JSON text, plain fields as columns, and other fields as JSON text.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, cast

import attrs

from ..errors import ConfigurationError, UnreadableFile
from .columns import Column, Nested, arrow_module, opened_table
from .job import Bad
from .lines import Line, Oversized, bounded_lines, dump, parse
from .slices import Slice

__all__ = ["Chunk", "Lines", "Rows", "chunks_of"]

_MESSAGES: Final = "messages"


class Chunk(Protocol):
    """Some conversations that stand together."""

    @property
    def rows(self) -> Sequence[Line | Nested | Oversized | bytes]:
        """The conversations; a line that holds none as bytes."""
        ...

    def text(self, written: Sequence[Any]) -> bytes:
        """What was written, as lines; what is `Bad` is left out."""
        ...

    def table(self, written: Sequence[Any]) -> Any:
        """What was written, as an Arrow table; what is `Bad` is left out."""
        ...

    def original(self, place: int) -> dict[str, Any]:
        """What a report of a bad conversation holds of it."""
        ...


@attrs.frozen
class Lines:
    """Some lines.

    Args:
        rows: The conversations.
    """

    rows: list[Line | Oversized | bytes]

    def text(self, written: Sequence[Any]) -> bytes:
        """What was written, as lines."""
        return b"".join([each for each in written if not isinstance(each, Bad)])

    def table(self, written: Sequence[Any]) -> Any:
        """What was written, as an Arrow table."""
        arrow = arrow_module()
        records = [
            _record(parse(each))
            for row, each in zip(self.rows, written, strict=True)
            if isinstance(row, Line) and not isinstance(each, Bad)
        ]
        names = list(dict.fromkeys(name for record in records for name in record)) or [_MESSAGES]
        columns = {name: [record.get(name) for record in records] for name in names}
        arrays = [
            arrow.array(values if _is_plain(values) else [_json(value) for value in values]) for values in columns.values()
        ]
        return arrow.table(arrays, names=names)

    def original(self, place: int) -> dict[str, Any]:
        """What a report of a bad conversation holds of it."""
        row = self.rows[place]
        if isinstance(row, Oversized):
            return {"original": None, "bytes": row.size}
        text = row if isinstance(row, bytes) else row.text
        try:
            return {"original": text.decode().removesuffix("\n")}
        except UnicodeDecodeError:
            return {"original": None, "original_base64": base64.b64encode(text).decode()}


def _record(value: Any) -> dict[str, Any]:
    """A line's fields as the columns of a row, its messages as JSON text."""
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {_MESSAGES: value}
    return {**fields, _MESSAGES: dump(fields[_MESSAGES]).decode()}


def _is_plain(values: Sequence[Any]) -> bool:
    kinds: set[Any] = {type(value) for value in values if value is not None}
    return len(kinds) <= 1 and not kinds & {dict, list} and all(not isinstance(v, int) or abs(v) < 1 << 63 for v in values)


def _json(value: Any) -> str | None:
    return None if value is None else dump(value).decode()


@attrs.frozen
class Rows:
    """Some rows of a table.

    Args:
        batch: The rows, every column.
        column: Which column holds the messages.
        rows: The conversations.
    """

    batch: Any
    column: Column
    rows: list[Line | Nested]

    def text(self, written: Sequence[Any]) -> bytes:
        """What was written, as lines."""
        others: list[dict[str, Any]] = [{} for _ in written]
        if self.batch.num_columns > 1:
            others = self.batch.drop_columns([self.column.name]).to_pylist()
        return b"".join(
            [_line(fields, each) for fields, each in zip(others, written, strict=True) if not isinstance(each, Bad)]
        )

    def table(self, written: Sequence[Any]) -> Any:
        """What was written, as an Arrow table."""
        arrow = arrow_module()
        good = [place for place, each in enumerate(written) if not isinstance(each, Bad)]
        kept = self.batch if len(good) == len(written) else self.batch.take(arrow.array(good, arrow.int64()))
        place = self.batch.schema.get_field_index(self.column.name)
        field = self.batch.schema.field(place)
        return kept.set_column(place, field, self.column.array([written[each] for each in good]))

    def stood(self, place: int) -> Any:
        """What stands in a row, as `table` takes it."""
        value = self.batch.column(self.column.name)[place].as_py()
        return value.encode() if isinstance(value, str) else value

    def original(self, place: int) -> dict[str, Any]:
        """What a report of a bad conversation holds of it."""
        [fields] = self.batch.slice(place, 1).to_pylist()
        return {"original": json.dumps(fields, ensure_ascii=False, default=str)}


def _line(fields: dict[str, Any], messages: Any) -> bytes:
    """A row as a line: its columns, and its messages under their usual name."""
    if _MESSAGES in fields:
        raise ConfigurationError(
            f"a column besides the conversations is called {_MESSAGES!r}, as they are in a line; rename it"
        )
    if isinstance(messages, list):
        text = dump(Nested(cast("Any", messages), None).read())
    else:
        text = messages if b"\n" not in messages else dump(parse(messages))
    try:
        start = dump(fields)
    except TypeError as error:
        raise ConfigurationError(f"a column holds what JSON has no value for ({error}); write Parquet, or drop it") from error
    return b'%b%b"messages":%b}\n' % (start[:-1], b"," if fields else b"", text)


def chunks_of(slice: Slice, column: str, most_rows: int, most_bytes: int, *, ended: bool) -> Iterator[Chunk]:
    """A slice, some rows at a time.

    Args:
        slice: What to read.
        column: Which column of a table holds the messages.
        most_rows: Conversations at a time.
        most_bytes: The longest line that is read.
        ended: Whether each line is to end as one.

    Raises:
        UnreadableFile: If a table cannot be read, or has no such column.
    """
    if slice.source.kind == "parquet":
        yield from _chunks_of_table(slice, column, most_rows)
        return
    rows: list[Line | Oversized | bytes] = []
    for line in _lines_of(slice, most_bytes):
        blank = isinstance(line, bytes) and line.isspace()
        rows.append(line if isinstance(line, Oversized) or blank else Line(line, ended))
        if len(rows) == most_rows:
            yield Lines(rows)
            rows = []
    if rows:
        yield Lines(rows)


def _lines_of(slice: Slice, most: int) -> Iterator[bytes | Oversized]:
    if slice.oversized:
        yield Oversized(slice.oversized)
    elif slice.text is not None:
        yield from slice.text.splitlines(keepends=True) if b"\r" not in slice.text else _split(slice.text)
    else:
        with Path(slice.source.path).open("rb") as stream:
            stream.seek(slice.start)
            left = slice.end - slice.start
            for line in bounded_lines(stream, most):
                yield line
                left -= line.size if isinstance(line, Oversized) else len(line)
                if left <= 0:
                    return


def _split(text: bytes) -> Iterator[bytes]:
    """Lines that end in a line feed alone: a carriage return may stand between the fields of a line."""
    start = 0
    while start < len(text):
        end = text.find(b"\n", start) + 1 or len(text)
        yield text[start:end]
        start = end


def _chunks_of_table(slice: Slice, column: str, most_rows: int) -> Iterator[Chunk]:
    arrow = arrow_module()
    with opened_table(slice.source.path) as table:
        try:
            found = Column.of(table.schema_arrow, column)
        except ConfigurationError as error:
            raise UnreadableFile(f"{slice.source.path}: {error}") from error
        if not table.metadata.num_rows:
            empty = table.schema_arrow.empty_table()
            yield Rows(empty, found, [])
            return
        for batch in table.iter_batches(most_rows, row_groups=range(slice.start, slice.end), use_threads=False):
            rows = arrow.Table.from_batches([batch])
            yield Rows(rows, found, found.rows(rows.column(found.name)))

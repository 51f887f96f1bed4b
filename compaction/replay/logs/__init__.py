"""Session logs of widely used agents, recognized by their content and read as recordings.

Any other file is read as a file of conversations, as `compaction.files` does.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterable, Sequence
from io import BytesIO
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs

from ...errors import UnknownFormat, UnreadableFile
from ...files import read_conversations, unreadable_errors
from ..recordings import Recording
from .document_logs import is_atif, is_swe_agent, is_tau_bench, read_atif, read_swe_agent, read_tau_bench
from .line_logs import is_claude_code, is_codex, is_gateway_log, read_claude_code, read_codex, read_gateway_log

__all__ = ["recordings_of"]

_Reader: TypeAlias = Callable[[Any, str], Iterable[Recording]]

_LINES_TO_DETECT: Final = 50
_GZIP: Final = b"\x1f\x8b"
_LINES: Final[Sequence[tuple[Callable[[Sequence[Any]], bool], _Reader]]] = (
    (is_gateway_log, read_gateway_log),
    (is_codex, read_codex),
    (is_claude_code, read_claude_code),
)
_DOCUMENTS: Final[Sequence[tuple[Callable[[Any], bool], _Reader]]] = (
    (is_atif, read_atif),
    (is_swe_agent, read_swe_agent),
    (is_tau_bench, read_tau_bench),
)


def recordings_of(
    source: str | os.PathLike[str], *, on_bad_line: Callable[[UnreadableFile], object] | None = None
) -> list[Recording]:
    r"""Return the conversations in a file: a session log, or a file of conversations; plain or gzip.

    A line of a log that is not JSON is skipped, and noted in its recordings.

    Args:
        source: The file.
        on_bad_line: Called with the error of each line of a file of conversations that is not one; see
            `compaction.files.read_conversations`.

    Raises:
        UnreadableFile: If it cannot be read, or contains something else.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "results.json")
    >>> _ = path.write_text('[{"task_id": 3, "trial": 1, "traj": [{"role": "user", "content": "hi"}]}]')
    >>> [each.id for each in recordings_of(path)]
    ['task 3, trial 1']
    """
    source = Path(source)
    where = str(source)
    with unreadable_errors(where):
        data = source.read_bytes()
        data = gzip.decompress(data) if data.startswith(_GZIP) else data
    lines = islice((line for line in BytesIO(data) if line.strip()), _LINES_TO_DETECT)
    first = list(takewhile(lambda record: record is not None, map(_document, lines)))  # up to the first that is not JSON
    for recognizes, read in _LINES:
        if recognizes(first):
            records, notes = _records(data)
            try:
                return [attrs.evolve(found, notes=(*found.notes, *notes)) for found in read(records, where)]
            except UnknownFormat as error:
                raise UnreadableFile(f"{where}: {error}") from error
    document = _document(data)
    for recognizes, read in _DOCUMENTS:
        if recognizes(document):
            return list(read(document, where))
    conversations = read_conversations(source, on_bad_line=on_bad_line)
    return [Recording(id=each.id, messages=each.messages, where=each.where) for each in conversations]


def _records(data: bytes) -> tuple[list[Any], list[str]]:
    """Return every line as a JSON value, and a note on each that is none."""
    records: list[Any] = []
    notes: list[str] = []
    for number, line in enumerate(data.splitlines(), 1):
        try:
            records += [json.loads(line)] if line.strip() else []
        except (ValueError, RecursionError) as error:
            notes.append(f"line {number} is not JSON and is skipped ({error})")
    return records, notes


def _document(data: bytes) -> Any:
    """Return the JSON value of a file or line; ``None`` if it has none or several."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None

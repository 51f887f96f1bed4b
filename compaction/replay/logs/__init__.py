"""Session logs of widely used agents, recognized by their content and read as recordings.

Any other file is read as a file of conversations, as `compaction.files` does.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Sequence
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, Final, TypeAlias

import attrs

from ...errors import UnreadableFile
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


def recordings_of(source: Path) -> list[Recording]:
    r"""Return the conversations in a file: a session log, or a file of conversations; plain or gzip.

    Args:
        source: The file.

    Raises:
        UnreadableFile: If it cannot be read, or contains something else.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "results.json")
    >>> _ = path.write_text('[{"task_id": 3, "trial": 1, "traj": [{"role": "user", "content": "hi"}]}]')
    >>> [each.id for each in recordings_of(path)]
    ['task 3, trial 1']
    """
    where = str(source)
    with unreadable_errors(where):
        data = source.read_bytes()
        data = gzip.decompress(data) if data.startswith(_GZIP) else data
    first = _first_records(data)
    for recognizes, read in _LINES:
        if recognizes(first):
            records, notes = _records(data, where)
            return [attrs.evolve(found, notes=(*found.notes, *notes)) for found in read(records, where)]
    document = _document(data)
    for recognizes, read in _DOCUMENTS:
        if recognizes(document):
            return list(read(document, where))
    return [Recording(id=each.id, messages=each.messages, where=each.where) for each in read_conversations(source)]


def _first_records(data: bytes) -> list[Any]:
    """Return the first lines as JSON values, up to the first that is not JSON."""
    found: list[Any] = []
    for line in islice((line for line in BytesIO(data) if line.strip()), _LINES_TO_DETECT):
        try:
            found.append(json.loads(line))
        except (ValueError, RecursionError):
            break
    return found


def _records(data: bytes, where: str) -> tuple[list[Any], tuple[str, ...]]:
    """Return every line as a JSON value, with notes on what is wrong."""
    records: list[Any] = []
    lines = [(number, line) for number, line in enumerate(data.splitlines(), 1) if line.strip()]
    for number, line in lines:
        try:
            records.append(json.loads(line))
        except (ValueError, RecursionError) as error:
            if number != lines[-1][0]:
                raise UnreadableFile(f"{where}, line {number}: it is not JSON ({error}); remove the line") from error
            return records, (f"line {number}, the last, is truncated and skipped",)
    return records, ()


def _document(data: bytes) -> Any:
    """Return the JSON value of a file; ``None`` if it has none or several."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None

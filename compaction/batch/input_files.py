"""The files of a batch: which files it reads and how each is stored, and where each output is written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

import attrs

from ..errors import ConfigurationError, UnreadableFile
from ..files import unreadable_errors

FileKind: TypeAlias = Literal["jsonl", "jsonl.gz", "jsonl.zst", "parquet"]  # the ways to store a file of conversations

_SUFFIXES: Final[dict[str, FileKind]] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".jsonl.gz": "jsonl.gz",
    ".ndjson.gz": "jsonl.gz",
    ".jsonl.zst": "jsonl.zst",
    ".ndjson.zst": "jsonl.zst",
    ".parquet": "parquet",
}
_MAGIC: Final[dict[bytes, FileKind]] = {b"\x1f\x8b": "jsonl.gz", b"\x28\xb5\x2f\xfd": "jsonl.zst", b"PAR1": "parquet"}
MAGIC_BYTES: Final = max(map(len, _MAGIC))
_KNOWN: Final = ", ".join(_SUFFIXES)

Inputs: TypeAlias = Sequence[str | os.PathLike[str]] | str | os.PathLike[str]  # files and directories, or one of them


@attrs.frozen
class InputFile:
    """One input file."""

    number: int  # its number among the inputs, from 0
    path: str
    name: str  # its path relative to the directory given as an input; the file name if the file itself was given
    kind: FileKind  # how it is stored
    size: int  # its size in bytes
    modified_ns: int  # the time of its last change, in nanoseconds


@attrs.frozen
class OutputFile:
    """One output file."""

    number: int  # its number among the outputs, from 0
    path: str
    kind: FileKind  # how it is stored
    sources: tuple[int, ...]  # the numbers of the inputs that are written to it, in order


def file_kind(name: str) -> FileKind | None:
    """Return how a file of that name is stored; ``None`` for an unknown ending.

    >>> file_kind("chats.jsonl.zst"), file_kind("notes.txt")
    ('jsonl.zst', None)
    """
    return next((kind for suffix, kind in _SUFFIXES.items() if name.lower().endswith(suffix)), None)


def binary_kind(start: bytes) -> FileKind | None:
    """Return the kind of a file by its first bytes; ``None`` if they are text.

    >>> binary_kind(b"PAR1"), binary_kind(b"[]")
    ('parquet', None)
    """
    return next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), None)


def paths_of(inputs: Inputs) -> list[Path]:
    """Return the path of each input."""
    return [Path(inputs)] if isinstance(inputs, str | os.PathLike) else [Path(each) for each in inputs]


def find_input_files(inputs: Sequence[str | Path], *, follow_links: bool) -> tuple[list[InputFile], list[str]]:
    """Return the files to read, sorted by name within a directory, and the files in directories that are ignored.

    A file given as an input is read whatever its name is; if its ending is unknown, its first bytes decide how it is stored. A
    file in a directory is read only if its ending is known. Names that start with a dot or an underscore are skipped silently.
    A symbolic link in a directory is ignored unless ``follow_links``, since it may lead to files that the directory's author
    cannot read.
    """
    sources: list[InputFile] = []
    foreign: list[str] = []
    for given in map(Path, inputs):
        found: Iterable[tuple[Path, str, FileKind]] = (
            _in_directory(given, foreign, follow_links) if given.is_dir() else [(given, given.name, _kind_of_named(given))]
        )
        for path, name, kind in found:
            stat = path.stat()
            sources.append(InputFile(len(sources), str(path), name, kind, stat.st_size, stat.st_mtime_ns))
    if not sources:
        raise UnreadableFile(f"{', '.join(map(str, inputs))}: no file of conversations found; their names end in {_KNOWN}")
    real = [Path(source.path).resolve() for source in sources]
    if len(set(real)) < len(real):
        twice = next(path for path in real if real.count(path) > 1)
        raise ConfigurationError(f"{twice}: it is given twice; give each input once")
    return sources, foreign


def _in_directory(folder: Path, foreign: list[str], follow_links: bool) -> Iterator[tuple[Path, str, FileKind]]:
    for path in sorted(_files_in(folder, follow_links)):
        name = path.relative_to(folder)
        kind = file_kind(path.name) if path.is_file() and (follow_links or not path.is_symlink()) else None
        if kind is None:
            foreign.append(str(path))
        else:
            yield path, name.as_posix(), kind


def _files_in(folder: Path, follow_links: bool, above: frozenset[Path] = frozenset()) -> Iterator[Path]:
    """Yield the files and links in a directory and its subdirectories; a link to a directory above it is not followed."""
    if (real := folder.resolve()) in above:
        return
    with unreadable_errors(str(folder)):
        found = list(folder.iterdir())
    for path in (each for each in found if not each.name.startswith((".", "_"))):
        if path.is_dir() and (follow_links or not path.is_symlink()):
            yield from _files_in(path, follow_links, above | {real})
        else:
            yield path


def _kind_of_named(path: Path) -> FileKind:
    with unreadable_errors(str(path)), path.open("rb") as stream:
        start = stream.read(MAGIC_BYTES)
    binary = binary_kind(start)
    text: FileKind | None = "jsonl" if not start or start.startswith((b"{", b"[", b"\n", b" ")) else None
    kind = file_kind(path.name) or binary or text
    if path.suffix == ".json" or kind is None:
        raise UnreadableFile(
            f"{path}: it is not a file of conversations, one per line or row; their names end in {_KNOWN}. "
            "'compaction compact' reads a single JSON document"
        )
    if start and binary != (None if kind == "jsonl" else kind):
        raise UnreadableFile(f"{path}: it is not {kind}, although its name says so; rename it")
    return kind


def plan_output_files(
    sources: Sequence[InputFile], output: str | Path, to: str | None, inputs: Sequence[str | Path]
) -> list[OutputFile]:
    """Return the output files: one file if the output's name has a known ending, else a file per input in that directory.

    Without ``to``, they are stored as the output's name says, else as each input. None may be in one of the ``inputs``.
    """
    if to is not None and to not in get_args(FileKind):
        raise ConfigurationError(f"to={to!r}: one of {', '.join(get_args(FileKind))}", argument="to")
    chosen: FileKind | None = to  # type: ignore[assignment]
    output = Path(output)
    named = None if output.is_dir() else file_kind(output.name)
    if named is not None:
        targets = [OutputFile(0, str(output), chosen or named, tuple(source.number for source in sources))]
    else:
        targets = [
            OutputFile(place, str(output / _renamed(source, chosen)), chosen or source.kind, (source.number,))
            for place, source in enumerate(sources)
        ]
    _check_places(sources, targets, [Path(given).resolve() for given in inputs if Path(given).is_dir()])
    return targets


def _renamed(source: InputFile, to: FileKind | None) -> str:
    if to is None or to == source.kind:
        return source.name
    ending = next((suffix for suffix in _SUFFIXES if source.name.lower().endswith(suffix)), "")
    return f"{source.name[: len(source.name) - len(ending)]}.{to}"


def _check_places(sources: Sequence[InputFile], targets: Sequence[OutputFile], folders: Sequence[Path]) -> None:
    read = {Path(source.path).resolve() for source in sources}
    written: set[Path] = set()
    for target in targets:
        place = Path(target.path).resolve()
        if place in read or any(folder in place.parents for folder in folders):
            raise ConfigurationError(f"{target.path}: the output is an input, or in an input folder; choose another output")
        if place in written:
            raise ConfigurationError(f"{target.path}: two inputs would be written to this file; run them one by one")
        written.add(place)

"""Which files a batch reads, and which it writes: found once, written into the manifest, and not looked for again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

import attrs

from ..errors import ConfigurationError, UnreadableFile

__all__ = ["Kind", "Source", "Target", "find_sources", "kind_of", "place_targets"]

Kind: TypeAlias = Literal["jsonl", "jsonl.gz", "jsonl.zst", "parquet"]
"""How a file of conversations is stored."""

_SUFFIXES: Final[dict[str, Kind]] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".jsonl.gz": "jsonl.gz",
    ".ndjson.gz": "jsonl.gz",
    ".jsonl.zst": "jsonl.zst",
    ".ndjson.zst": "jsonl.zst",
    ".parquet": "parquet",
}
_MAGIC: Final[dict[bytes, Kind]] = {b"\x1f\x8b": "jsonl.gz", b"\x28\xb5\x2f\xfd": "jsonl.zst", b"PAR1": "parquet"}
_KNOWN: Final = ", ".join(_SUFFIXES)


@attrs.frozen
class Source:
    """One input file.

    Args:
        number: Its place among the inputs, from 0.
        path: Where it is.
        name: Its path below the directory that was named, or its own name.
        kind: How it is stored.
        size: Bytes.
        modified_ns: When it was last written to, in nanoseconds.
    """

    number: int
    path: str
    name: str
    kind: Kind
    size: int
    modified_ns: int

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return attrs.asdict(self)


@attrs.frozen
class Target:
    """One output file.

    Args:
        number: Its place among the outputs, from 0.
        path: Where it is to be.
        kind: How it is stored.
        sources: The numbers of the inputs that go into it, in order.
    """

    number: int
    path: str
    kind: Kind
    sources: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {**attrs.asdict(self), "sources": list(self.sources)}


def kind_of(name: str) -> Kind | None:
    """How a file of that name is stored; ``None`` if its name does not say.

    >>> kind_of("chats.jsonl.zst"), kind_of("notes.txt")
    ('jsonl.zst', None)
    """
    fitting = [suffix for suffix in _SUFFIXES if name.lower().endswith(suffix)]
    return _SUFFIXES[max(fitting, key=len)] if fitting else None


def find_sources(inputs: Sequence[str | Path]) -> tuple[list[Source], list[str]]:
    """The files to read, those of a directory by name, and the names of files in directories that are left alone.

    A file that is named is read whatever it is called: its first bytes tell what it is. In a directory only names tell; what
    starts with a dot or an underscore is not mentioned.

    Raises:
        UnreadableFile: If a file is not there, or cannot be what it should be, or there is none at all.
        ConfigurationError: If a file is named twice.
    """
    sources: list[Source] = []
    foreign: list[str] = []
    for given in map(Path, inputs):
        found: Iterable[tuple[Path, str, Kind]] = (
            _in_directory(given, foreign) if given.is_dir() else [(given, given.name, _kind_of_named(given))]
        )
        for path, name, kind in found:
            stat = path.stat()
            sources.append(Source(len(sources), str(path), name, kind, stat.st_size, stat.st_mtime_ns))
    if not sources:
        raise UnreadableFile(f"{', '.join(map(str, inputs))}: there is no file of conversations; their names end in {_KNOWN}")
    real = [Path(source.path).resolve() for source in sources]
    if len(set(real)) < len(real):
        twice = next(path for path in real if real.count(path) > 1)
        raise ConfigurationError(f"{twice}: it is named twice; name each input once")
    return sources, foreign


def _in_directory(folder: Path, foreign: list[str]) -> Iterator[tuple[Path, str, Kind]]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if not path.is_file() or any(part[0] in "._" for part in name.parts):
            continue
        kind = kind_of(path.name)
        if kind is None:
            foreign.append(str(path))
        else:
            yield path, name.as_posix(), kind


def _kind_of_named(path: Path) -> Kind:
    try:
        with path.open("rb") as stream:
            start = stream.read(4)
    except OSError as error:
        raise UnreadableFile(f"{path}: it cannot be read ({error.strerror}); name a file or directory that is there") from error
    told: Kind | None = next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), None)
    text: Kind | None = "jsonl" if start[:1] in (b"", b"{", b"[", b"\n", b" ") else None
    kind = kind_of(path.name) or told or text
    if path.suffix == ".json" or kind is None:
        raise UnreadableFile(
            f"{path}: it is no file of conversations, one a line or a row; their names end in {_KNOWN}. "
            "'compaction compact' reads a single JSON document"
        )
    if start and told != (None if kind == "jsonl" else kind):
        raise UnreadableFile(f"{path}: it is no {kind}, whatever its name says; name it for what it is")
    return kind


def place_targets(sources: Sequence[Source], output: str | Path, to: str | None, inputs: Sequence[str | Path]) -> list[Target]:
    """Where each input goes: into one file if the output is named like one, else each into its own below that directory.

    Args:
        sources: The inputs.
        output: A file or a directory.
        to: How to store; ``None`` for what the output's name says, else as each input is stored.
        inputs: What was named as input: a directory that is read is not written into.

    Raises:
        ConfigurationError: If two inputs would go to one place, or an output is an input.
    """
    if to is not None and to not in get_args(Kind):
        raise ConfigurationError(f"to={to!r}: one of {', '.join(get_args(Kind))}")
    chosen: Kind | None = to  # type: ignore[assignment]
    output = Path(output)
    named = None if output.is_dir() else kind_of(output.name)
    if named is not None:
        targets = [Target(0, str(output), chosen or named, tuple(source.number for source in sources))]
    else:
        targets = [
            Target(place, str(output / _renamed(source, chosen)), chosen or source.kind, (source.number,))
            for place, source in enumerate(sources)
        ]
    _check_places(sources, targets, [Path(given).resolve() for given in inputs if Path(given).is_dir()])
    return targets


def _renamed(source: Source, to: Kind | None) -> str:
    if to is None or to == source.kind:
        return source.name
    ending = next((suffix for suffix in sorted(_SUFFIXES, key=len, reverse=True) if source.name.lower().endswith(suffix)), "")
    return f"{source.name[: len(source.name) - len(ending)]}.{to}"


def _check_places(sources: Sequence[Source], targets: Sequence[Target], folders: Sequence[Path]) -> None:
    read = {Path(source.path).resolve() for source in sources}
    written: set[Path] = set()
    for target in targets:
        place = Path(target.path).resolve()
        if place in read or any(folder in place.parents for folder in folders):
            raise ConfigurationError(f"{target.path}: the output must not be what is read, nor stand in it; name another place")
        if place in written:
            raise ConfigurationError(f"{target.path}: two inputs would be written there; run them one by one")
        written.add(place)

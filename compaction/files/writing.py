"""Writing a file as a whole or not at all, so that a failure, at whatever moment, leaves what stood there before."""

from __future__ import annotations

import contextlib
import errno
import gzip
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path
from typing import IO, Final, cast

from ..errors import UnwritableFile

__all__ = ["write_text"]

_HELD_IN_MEMORY: Final = 16_000_000


@contextlib.contextmanager
def write_text(target: Path | IO[bytes], *, compress: bool | None = None) -> Generator[Callable[[str], object]]:
    """Gives a function that takes one text after the other; when the ``with`` ends, they are the file.

    A file is written under another name in its folder, ``.compaction-*.part``, synced to disk, and then renamed; if anything is
    raised before, nothing happened. It keeps the mode of the file it replaces; a link is followed. A stream, a device or a pipe
    gets everything at the end.

    Args:
        target: A path, or a stream of bytes.
        compress: Whether to write gzip; by default if the path ends in ``.gz``.

    Raises:
        UnwritableFile: If the file cannot be written.
    """
    name = str(target) if isinstance(target, Path) else "the output"
    packed = isinstance(target, Path) and target.suffix == ".gz" if compress is None else compress
    try:
        with contextlib.ExitStack() as opened:
            stream = opened.enter_context(_replacing(target) if isinstance(target, Path) else _held_back(target))
            if packed:
                stream = cast("IO[bytes]", opened.enter_context(gzip.GzipFile("", "wb", 6, stream, mtime=0)))
            yield lambda text: stream.write(text.encode())
    except OSError as error:
        remedy = "name a file in a folder you may write to, on a disk with room"
        raise UnwritableFile(f"{name}: it cannot be written ({error.strerror or error}); {remedy}") from error


@contextlib.contextmanager
def _replacing(path: Path) -> Generator[IO[bytes]]:
    """A new file that takes the path's place when all went well."""
    path = Path(os.path.realpath(path))
    replaced = path.stat() if path.exists() else None
    if replaced is not None and not stat.S_ISREG(replaced.st_mode):
        with path.open("wb") as device, _held_back(device) as held:
            yield held
        return
    if replaced is not None and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, "the file is read-only")
    part = path.with_name(f".compaction-{secrets.token_hex(8)}.part")
    mode = 0o666 if replaced is None else 0o600
    try:
        with open(part, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if replaced is not None:
            part.chmod(stat.S_IMODE(replaced.st_mode))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextlib.contextmanager
def _held_back(stream: IO[bytes]) -> Generator[IO[bytes]]:
    """A place for what goes to the stream once all of it is there."""
    with tempfile.SpooledTemporaryFile(max_size=_HELD_IN_MEMORY) as held:
        yield cast("IO[bytes]", held)
        held.seek(0)
        shutil.copyfileobj(held, stream)
        stream.flush()

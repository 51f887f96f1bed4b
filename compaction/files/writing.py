"""Atomic writing of text files: after a failure at any moment, the old file still exists."""

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

_MAX_MEMORY: Final = 16_000_000


@contextlib.contextmanager
def write_text(target: Path | IO[bytes], *, compress: bool | None = None) -> Generator[Callable[[str], object]]:
    """Yield a function that writes text; the file appears when the ``with`` block ends.

    The text is written to ``.compaction-*.part`` in the file's folder, synced to disk, and renamed; if an error occurs before
    that, nothing is changed. A replaced file keeps its mode, and a link is followed. A stream, device or pipe gets the whole
    text at the end.

    Args:
        target: A path, or a stream of bytes.
        compress: Whether to write gzip; by default, if the path ends in ``.gz``.

    Raises:
        UnwritableFile: If the file cannot be written.
        BrokenPipeError: If the reader of a stream or pipe has stopped.
    """
    name = str(target) if isinstance(target, Path) else "the output"
    compressed = isinstance(target, Path) and target.suffix == ".gz" if compress is None else compress
    remedy = "choose a file in a folder you may write to, on a disk with free space"
    with unwritable_errors(name, remedy), contextlib.ExitStack() as exit_stack:
        stream = exit_stack.enter_context(open_replacement(target) if isinstance(target, Path) else _buffered(target))
        if compressed:
            stream = cast("IO[bytes]", exit_stack.enter_context(gzip.GzipFile("", "wb", 6, stream, mtime=0)))
        yield lambda text: stream.write(text.encode())


@contextlib.contextmanager
def unwritable_errors(name: object, remedy: str) -> Generator[None]:
    """Raise the errors that writing causes as `UnwritableFile`, with the remedy."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UnwritableFile(f"{name}: it cannot be written ({error.strerror or error}); {remedy}") from error


@contextlib.contextmanager
def open_replacement(path: Path, *, mode: int = 0o666) -> Generator[IO[bytes]]:
    """Open a file for writing that appears, synced and renamed, when the ``with`` ends; on any error nothing is changed.

    Args:
        path: The file. One that exists keeps its permissions.
        mode: Permissions of a new file, before the process's umask.
    """
    path = Path(os.path.realpath(path))
    replaced = path.stat() if path.exists() else None
    if replaced is not None and not stat.S_ISREG(replaced.st_mode):
        with path.open("wb") as device, _buffered(device) as buffer:
            yield buffer
        return
    if replaced is not None and not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, "the file is read-only")
    part = path.with_name(f".compaction-{secrets.token_hex(8)}.part")
    created = mode if replaced is None else 0o600
    try:
        with open(part, "xb", opener=lambda name, flags: os.open(name, flags, created)) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if replaced is not None:
            part.chmod(stat.S_IMODE(replaced.st_mode))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextlib.contextmanager
def _buffered(stream: IO[bytes]) -> Generator[IO[bytes]]:
    """Open a buffer that is copied to the stream if no error is raised."""
    with tempfile.SpooledTemporaryFile(max_size=_MAX_MEMORY) as buffer:
        yield cast("IO[bytes]", buffer)
        buffer.seek(0)
        shutil.copyfileobj(buffer, stream)
        stream.flush()

"""The functions that run in a worker process; a new process imports this module alone, and so starts fast."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
import warnings
from collections.abc import Generator

from .input_files import FileKind
from .slice_worker import SliceResult, WorkerConfig, compact_slice
from .slices import Slice

_process_config: list[WorkerConfig] = []  # in a worker process: its only configuration


def start_process(config: WorkerConfig) -> None:
    """Prepare a worker process. Its parent handles Ctrl-C and has shown the warnings."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")
    _process_config[:] = [config]
    gc.freeze()  # later collections skip what is loaded now
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    """Exit when the parent process has ended; otherwise a worker would wait for work forever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)


def compact_in_process(slice: Slice, kind: FileKind, ended: bool) -> SliceResult:
    """Compact a slice; garbage is collected after it."""
    with _garbage_collection_paused():
        return compact_slice(_process_config[0], slice, kind, ended)


@contextlib.contextmanager
def _garbage_collection_paused() -> Generator[None]:
    """Collect garbage after a slice only: a conversation has few cycles, and each collection walks all of its objects."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.collect()

"""Strategies and summarizers that actors import."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from compaction import Edit
from compaction.strategies import Strategy
from tests.support.corpora import STRATEGY


@attrs.frozen
class Deadly(Strategy):
    """The tests' strategy, but it first kills its process a number of times.

    Args:
        folder: The folder with one file for each kill.
        deaths: The number of kills.
    """

    folder: str
    deaths: int

    def __call__(self, index: Any) -> Iterator[Edit]:
        died = len(list(Path(self.folder).iterdir()))
        if died < self.deaths:
            Path(self.folder, str(died)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield from STRATEGY(index)


@attrs.frozen
class Slow(Strategy):
    """The tests' strategy, but it takes a while and writes a file for each conversation."""

    folder: str

    def __call__(self, index: Any) -> Iterator[Edit]:
        tempfile.mkstemp(dir=self.folder)
        time.sleep(0.03)
        yield from STRATEGY(index)

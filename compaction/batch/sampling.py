"""What a batch would come to, from a sample: sizes, time, and what a summarizer would be asked. Nothing is written or sent."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

import attrs

from ..checks import count
from ..errors import ConfigurationError, UnreadableFile
from ..strategies import StrategyLike
from ..summarizers import DigestSummarizer, Summarizer, SummaryRequest
from .chunks import chunks_of
from .columns import opened_table
from .job import Job, handle
from .limits import with_summarizers
from .lines import Line, Oversized
from .slices import Slice, reading, slices_of
from .sources import Source, find_sources
from .tally import Tally

__all__ = ["Estimate", "estimate"]

_PLACES: Final = 20
_SLICE_BYTES: Final = 1_000_000
_ASKING_TOKENS: Final = 1_000  # what a request says besides the conversation: the prompt and its template


@attrs.frozen(kw_only=True)
class Estimate:
    """What a batch would come to.

    Args:
        sample: What was done to the sample; its requests are those that a summarizer would have got, its completion tokens the
            most that these may bring.
        bytes_sampled: Bytes of the inputs, as stored, that the sample stands for.
        bytes_total: Bytes of all inputs.
        failed: Inputs that could not be read, and why.
    """

    sample: Tally
    bytes_sampled: float
    bytes_total: int
    failed: dict[str, str]

    @property
    def whole(self) -> Tally:
        """The sample's sums, scaled to all of the inputs."""
        factor = self.bytes_total / self.bytes_sampled if self.bytes_sampled else 0.0
        return Tally.from_dict(
            {
                name: value * factor if name == "seconds" else round(value * factor)
                for name, value in self.sample.to_dict().items()
            }
        )


def estimate(inputs: Sequence[str | Path], strategy: StrategyLike, *, sample: int = 200, **options: Any) -> Estimate:
    """Compact a sample and say what the whole would come to.

    The sample is taken evenly from plain files and tables, and from the beginning of packed files; of many inputs, from some.
    In place of a summarizer a digest is made, and what a summarizer would have been asked is counted.

    Args:
        inputs: Files and directories.
        strategy: What compacts each conversation.
        sample: About how many conversations, >= 1.
        options: The arguments of `Job`, such as ``counter``.

    Raises:
        UnreadableFile: If there is nothing to read.
        ConfigurationError: If an argument is out of range.
    """
    if sample < 1:
        raise ConfigurationError(f"sample={sample}: a whole number of conversations >= 1")
    sources, _ = find_sources(inputs)
    tally = Tally()
    asked = _Asked(tally)
    job = Job.of(strategy, **options)
    job = attrs.evolve(job, strategy=with_summarizers(job.strategy, asked.instead_of, digests=True))
    failed: dict[str, str] = {}
    sampled, began = 0.0, time.process_time()
    chosen = _spread(sources, _PLACES)
    each = -(-sample // len(chosen))
    for source in chosen:
        try:
            for slice, rows in _places(source, each, job.max_bytes):
                sampled += slice.weight * _taken(job, slice, rows, tally)
        except UnreadableFile as error:
            failed[source.path] = str(error)
    tally.seconds = time.process_time() - began
    return Estimate(sample=tally, bytes_sampled=sampled, bytes_total=sum(source.size for source in sources), failed=failed)


@attrs.frozen(eq=False)
class _Asked:
    """Counts what summarizers are asked, in a tally, and answers with digests."""

    tally: Tally
    name: str = "nobody"
    cache_key: str = "nobody"
    least: int = attrs.field(default=0, validator=count())

    def instead_of(self, summarizer: Summarizer) -> Summarizer:
        return self

    def summarize(self, request: SummaryRequest) -> str:
        self.tally.requests += 1
        self.tally.prompt_tokens += sum(group.tokens for group in request.groups) + _ASKING_TOKENS
        self.tally.completion_tokens += request.budget
        return DigestSummarizer().summarize(request)


def _spread(items: Sequence[Any], most: int) -> list[Any]:
    """At most so many of them, evenly."""
    step = max(1.0, len(items) / most)
    return [items[int(place * step)] for place in range(min(most, len(items)))]


def _places(source: Source, rows: int, most_bytes: int) -> Iterator[tuple[Slice, int]]:
    """Slices of an input, and how many conversations to take from each."""
    slices = slices_of(source, _SLICE_BYTES, most_bytes)
    if source.kind not in ("jsonl", "parquet"):
        yield from ((slice, rows) for slice in islice(slices, 1))
        return
    chosen = _spread(list(slices), max(1, min(_PLACES, rows // 5)))
    yield from ((slice, -(-rows // len(chosen))) for slice in chosen)


def _taken(job: Job, slice: Slice, rows: int, tally: Tally) -> float:
    """Compact the first conversations of a slice; the share of it that they are."""
    taken = size = 0
    with reading(slice.source.path):
        for chunk in chunks_of(slice, job.column, rows, job.max_bytes, ended=False):
            for row in chunk.rows:
                size += len(row.text) if isinstance(row, Line) else row.size if isinstance(row, Oversized) else 0
                taken += 1
                if not isinstance(row, bytes | Oversized):
                    handle(job, row, tally)
            break
        if slice.source.kind != "parquet":
            share = size / max(1, slice.end - slice.start)
        else:
            with opened_table(slice.source.path) as table:
                groups = range(slice.start, slice.end)
                share = taken / max(1, sum(table.metadata.row_group(group).num_rows for group in groups))
    tally.bytes_read += size
    tally.lines += taken
    return min(1.0, share)

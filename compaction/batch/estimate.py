"""`estimate`: an estimate of a batch's sizes, time and summarizer usage, from a sample. Nothing is written or sent."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final

import attrs

from ..checks import checked_count
from ..errors import UnreadableFile
from ..index import Request, unawaited
from ..strategies import Rehearsed, StrategyLike
from ..summarizers import SummaryRequest, asks_model
from ..summarizers.extractive import answer_offline
from .input_files import InputFile, Inputs, find_input_files, paths_of
from .job import Job
from .report import BatchCounts
from .rows import open_parquet
from .slices import Slice, cut_slices, read_chunks
from .workers import compact_chunk

_PLACES: Final = 20
_SLICE_BYTES: Final = 1_000_000
_PROMPT_TOKENS: Final = 1_000  # tokens of a request besides the conversation: the prompt and its template


@attrs.frozen(kw_only=True)
class BatchEstimate:
    """The estimated result of a batch.

    Args:
        sample: The counts of the sample. Its requests are those that a batch would send to a summarizer, and its completion
            tokens are the most that the answers may have.
        bytes_sampled: Bytes of the inputs, as stored, that the sample covers.
        bytes_total: Bytes of all inputs.
        failed: Inputs that could not be read, each with the reason.
    """

    sample: BatchCounts
    bytes_sampled: float
    bytes_total: int
    failed: dict[str, str]

    @property
    def whole(self) -> BatchCounts:
        """The counts of the sample, scaled to all inputs."""
        factor = self.bytes_total / self.bytes_sampled if self.bytes_sampled else 0.0
        return BatchCounts.from_dict(
            {
                name: value * factor if name == "seconds" else round(value * factor)
                for name, value in self.sample.to_dict().items()
            }
        )


def estimate(
    inputs: Inputs, job: Job | StrategyLike, *, sample: int = 200, follow_links: bool = False, count_digests: bool = False
) -> BatchEstimate:
    """Compact a sample of the inputs and return an estimate for all of them.

    The sample is spread evenly over plain files and tables, and taken from the beginning of compressed files. If there are many
    inputs, only some are sampled. A digest answers in place of a model, and the requests to a model are counted. Nothing is
    stored.

    Args:
        inputs: Files and directories.
        job: The strategy and the settings for each conversation, as for `compact_files`.
        sample: The approximate number of conversations in the sample, >= 1.
        follow_links: Whether symbolic links in input directories are followed.
        count_digests: Whether requests to a digest count as well, as if a model were in its place.

    Raises:
        UnreadableFile: If no input is found, or a given file is not one of conversations. Others that cannot be read are in
            ``failed``.
        ConfigurationError: If an argument is out of range.
    """
    checked_count("sample", sample, 1)
    sources, _ = find_input_files(paths_of(inputs), follow_links=follow_links)
    counts = BatchCounts()
    job = Job.of(job)
    job = attrs.evolve(job, strategy=Rehearsed(job.strategy, partial(_counted, counts=counts, count_digests=count_digests)))
    failed: dict[str, str] = {}
    sampled, began = 0.0, time.process_time()
    chosen = _spread(sources, _PLACES)
    each = -(-sample // len(chosen))
    for source in chosen:
        try:
            for slice, rows in _sampled_slices(source, each, job.max_bytes):
                sampled += slice.weight * _compact_first(job, slice, rows, counts)
        except UnreadableFile as error:
            failed[source.path] = str(error)
    counts.seconds = time.process_time() - began
    return BatchEstimate(
        sample=counts, bytes_sampled=sampled, bytes_total=sum(source.size for source in sources), failed=failed
    )


def _counted(request: Request, *, counts: BatchCounts, count_digests: bool) -> str | None:
    """Count a request for a summary, and answer it without a model; nothing is stored."""
    if not isinstance(request, SummaryRequest):
        return None
    if count_digests or asks_model(request.summarizer):
        counts.requests += 1
        counts.prompt_tokens += sum(group.tokens for group in request.groups) + _PROMPT_TOKENS
        counts.completion_tokens += request.budget
    return answer_offline(request)


def _spread(items: Sequence[Any], most: int) -> list[Any]:
    """Return at most that many of the items, evenly spaced."""
    step = max(1.0, len(items) / most)
    return [items[int(place * step)] for place in range(min(most, len(items)))]


def _sampled_slices(source: InputFile, rows: int, max_bytes: int) -> Iterator[tuple[Slice, int]]:
    """Yield slices of an input, and how many conversations to take from each."""
    slices = cut_slices(source, _SLICE_BYTES, max_bytes)
    if source.kind in ("jsonl", "parquet"):
        chosen = _spread(list(slices), max(1, min(_PLACES, rows // 5)))
    else:
        chosen = list(islice(slices, 1))
    yield from ((slice, -(-rows // len(chosen))) for slice in chosen)


def _compact_first(job: Job, slice: Slice, rows: int, counts: BatchCounts) -> float:
    """Compact the first conversations of a slice, and return their share of the slice."""
    chunk = next(read_chunks(slice, job, rows), None)
    if chunk is None:
        return 0.0
    unawaited(compact_chunk(job, chunk, counts))
    size = sum(len(row) if isinstance(row, bytes) else row.size for row in chunk.rows)
    counts.bytes_read += size
    if slice.source.kind != "parquet":
        return size / (slice.end - slice.start)
    with open_parquet(slice.source.path) as table:
        in_slice: int = sum(table.metadata.row_group(group).num_rows for group in range(slice.start, slice.end))
        return len(chunk.rows) / max(1, in_slice)

r"""Compaction of stored conversations: files, Parquet tables, Arrow tables and Ray datasets.

>>> import json, tempfile
>>> from pathlib import Path
>>> from compaction.strategies import SlidingWindow
>>> folder = Path(tempfile.mkdtemp())
>>> row = {"id": 7, "messages": [{"role": "user", "content": "one"}, {"role": "user", "content": "two"}]}
>>> _ = (folder / "in.jsonl").write_text(json.dumps(row) + "\n")
>>> report = compact_files(folder / "in.jsonl", folder / "out.jsonl", SlidingWindow(), workers=1)
>>> report.outcome, report.tally.changed, (folder / "out.jsonl").read_text()
('finished', 1, '{"id": 7, "messages": [{"role": "user", "content": "two"}]}\n')
"""

from __future__ import annotations

from .estimate import BatchEstimate, estimate
from .file_batch import compact_files
from .job import Job
from .rate_limits import Limits, SummarizerDown
from .ray import compact_dataset, ray_workers
from .report import BatchCounts as BatchCounts
from .report import BatchProgress, BatchReport
from .table import compact_table

__all__ = [
    "BatchEstimate",
    "BatchProgress",
    "BatchReport",
    "Job",
    "Limits",
    "SummarizerDown",
    "compact_dataset",
    "compact_files",
    "compact_table",
    "estimate",
    "ray_workers",
]

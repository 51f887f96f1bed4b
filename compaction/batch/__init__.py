r"""Files and tables of conversations, as many as there are: on one machine, or on a Ray cluster.

>>> import json, tempfile
>>> from pathlib import Path
>>> from compaction.strategies import SlidingWindow
>>> folder = Path(tempfile.mkdtemp())
>>> said = {"id": 7, "messages": [{"role": "user", "content": "one"}, {"role": "user", "content": "two"}]}
>>> _ = (folder / "in.jsonl").write_text(json.dumps(said) + "\n")
>>> report = compact_files(folder / "in.jsonl", folder / "out.jsonl", SlidingWindow(), counter="chars/4", workers=1)
>>> report.outcome, report.tally.changed, (folder / "out.jsonl").read_text()
('finished', 1, '{"id": 7, "messages": [{"role": "user", "content": "two"}]}\n')
"""

from __future__ import annotations

from .engine import compact_files
from .limits import Limits, SummarizerDown
from .report import BatchReport, Progress
from .sampling import Estimate, estimate
from .table import compact_table
from .tally import Tally

__all__ = [
    "BatchReport",
    "Estimate",
    "Limits",
    "Progress",
    "SummarizerDown",
    "Tally",
    "compact_files",
    "compact_table",
    "estimate",
]

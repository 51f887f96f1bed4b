"""The performance report: the tables of docs/performance.md up to "Start-up", measured in one run.

    python -m benchmarks.report                                  # a few minutes; prints the tables
    python -m benchmarks.report --slow --corpus FOLDER --date 2026-01-31 --write docs/performance.md

All times are CPU time of one process, so the two sides can be compared even if other programs run; absolute times depend on the
machine. ``--slow`` adds the rows that take Agent Framework minutes at 10,000 messages. ``--corpus`` names a folder of recorded
conversations (``*.jsonl.gz``, a line for each: ``{"id": ..., "messages": [...]}``, OpenAI chat messages). Without it, the batch
is measured on generated conversations only, and stickiness is not measured. Tables that the page does not show are printed.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from time import process_time

from .against import alone_section, compare, whole_section
from .batch import batch_section, recorded
from .growth import growth_section, memory_section
from .startup import startup_section
from .sticky import sticky_section
from .tables import Section, claims_table, written
from .turns import turns_section


def sections(arguments: argparse.Namespace) -> Iterator[Section]:
    """Measure the parts of the report, one after the other."""
    files = recorded(arguments.corpus) if arguments.corpus else []
    found = compare((1_000, 10_000), slow=arguments.slow, say=_say)
    yield whole_section(found)
    yield alone_section(found)
    yield turns_section(_say)
    yield growth_section((100, 1_000, 10_000, 100_000), _say)
    yield memory_section()
    yield batch_section(files, _say)
    yield sticky_section(files)
    yield startup_section()


def _say(what: str) -> None:
    print(f"{process_time():8.1f} s  {what}", file=sys.stderr, flush=True)


def machine(date: str) -> Section:
    """Return the date, machine and versions of the measurement."""
    when = f"Measured on {date}" if date else "Measured"
    where = f"on a shared {platform.machine()} machine with {os.cpu_count()} cores"
    peer = f"agent-framework-core {version('agent-framework-core')}"
    return Section("machine", (f"{when} with Python {platform.python_version()} {where}, against {peer}.",))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slow", action="store_true", help="include the rows that take Agent Framework minutes")
    parser.add_argument("--corpus", type=Path, help="folder of recorded conversations")
    parser.add_argument("--date", default="", help="the date that the page shows")
    parser.add_argument("--write", type=Path, help="the page to write the tables to")
    arguments = parser.parse_args()
    if arguments.write and not arguments.write.is_file():  # said before an hour of measurements
        parser.error(f"--write {arguments.write}: no such file; name a page that has the marks around the tables")
    parts = list(sections(arguments))
    claims = [claim for part in parts for claim in part.claims]
    parts = [machine(arguments.date), Section("contract", claims_table(claims)), *parts]
    for part in parts:
        print(f"\n{part.name}\n\n" + "\n".join(part.lines))
    if arguments.write:
        arguments.write.write_text(written(arguments.write.read_text("utf-8"), parts), "utf-8")


if __name__ == "__main__":
    main()

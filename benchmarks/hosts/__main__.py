"""Measure every framework beside a plain loop, and write the table of docs/hosts.md.

python -m benchmarks.hosts                                   # make bench-hosts; every case, 40 turns: half an hour
python -m benchmarks.hosts --only pydantic --turns 20
python -m benchmarks.hosts --date 2026-01-31 --write docs/hosts.md

LiteLLM pins what the others need newer, so its rows come from another environment: ``--save`` there and ``--also`` here.
"""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from ..tables import written
from .frameworks import cases
from .measure import Row, measure, rows_of_json, rows_to_json
from .table import section


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="the cases whose framework and name contain this")
    parser.add_argument("--turns", type=int, default=40, help="turns of a conversation")
    parser.add_argument("--seed", type=int, default=0, help="the seed of all texts")
    parser.add_argument("--window", type=int, default=6_000, help="tokens of the server's window")
    parser.add_argument("--date", default="", help="what the page shall say of when this was")
    parser.add_argument("--save", type=Path, help="a file for the rows, as JSON")
    parser.add_argument("--also", type=Path, help="a file of rows that are added to the page, if it exists")
    parser.add_argument("--write", type=Path, help="the page whose table to write")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)  # summarizers fail on purpose
    rows: list[Row] = []
    for case in cases():
        if arguments.only.lower() in f"{case.host}: {case.name}".lower():
            row = measure(case, turns=arguments.turns, seed=arguments.seed, window=arguments.window)
            print(f"{case.host}: {case.name}: {'; '.join(row.problems) or 'met'}", file=sys.stderr, flush=True)
            rows.append(row)
    if arguments.save:
        arguments.save.write_text(rows_to_json(rows), "utf-8")
    if arguments.also and arguments.also.exists():
        rows += rows_of_json(arguments.also.read_text("utf-8"))
    made = section(rows, date=arguments.date, turns=arguments.turns, seed=arguments.seed, window=arguments.window)
    print("\n".join(made.lines))
    if arguments.write:
        arguments.write.write_text(written(arguments.write.read_text("utf-8"), [made]), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

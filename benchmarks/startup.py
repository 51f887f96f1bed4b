"""The CPU time of programs that import the package, compared with one that imports ``openai``.

    python -m benchmarks.startup                                   # a quarter of a minute; prints the table
    python -m benchmarks.startup --write docs/performance.md

Each row is the median of five processes, including the start of the interpreter; the rows run in turn. Python's bytecode is
cached, as after an installation.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from .tables import Claim, Section, spoken, table, written

ROUNDS = 5
PEER = "`import openai`"
SHORT = "[{'role': 'user', 'content': 'Hello'}]"
NAMES = "from compaction import Pipeline, compact_sync, presets"
PRESET = "presets.context_window(32_000)"
SESSION = (
    "import anyio; from compaction import CompactionSession, presets; "
    f"anyio.run(CompactionSession({PRESET}, counter='chars/4').view, {SHORT})"
)
ROWS: Mapping[str, tuple[str, ...]] = {
    "Python alone": ("-c", "pass"),
    PEER: ("-c", "import openai"),
    "`import compaction`": ("-c", "import compaction"),
    "`compaction --version`": ("-m", "compaction", "--version"),
    f"`{NAMES}`": ("-c", NAMES),
    "a conversation compacted by `compact_sync`": ("-c", f"{NAMES}; compact_sync({SHORT}, {PRESET}, counter='chars/4')"),
    "a turn of a `CompactionSession`, asyncio included": ("-c", SESSION),
    "every public name: `from compaction import *`": ("-c", "from compaction import *"),
    "`compaction --help`": ("-m", "compaction", "--help"),
}
ASKED = {"`import compaction`": 0.15, "`compaction --version`": 0.25}


def startup_section() -> Section:
    """Measure the CPU time of each row, and its ratio to ``import openai``."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for row in ROWS.values():
            cpu_seconds(row, environment)
        rounds = [{name: cpu_seconds(row, environment) for name, row in ROWS.items()} for _ in range(ROUNDS)]
    took = {name: median(each[name] for each in rounds) for name in ROWS}
    share = {name: seconds / took[PEER] for name, seconds in took.items()}
    claims = {name: Claim(name, most, share[name], at_most=True) for name, most in ASKED.items()}
    rows = [
        [name, spoken(took[name]), f"{share[name]:.2f}x", *(claims[name].cells()[1::2] if name in claims else ["", ""])]
        for name in ROWS
    ]
    return Section("start-up", table(["program", "CPU time", f"beside {PEER}", "target", "result"], rows))


def cpu_seconds(arguments: Sequence[str], environment: Mapping[str, str]) -> float:
    """Return the CPU seconds of a Python process, including system time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], env=dict(environment), stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="the page to write the table to")
    arguments = parser.parse_args()
    part = startup_section()
    print("\n".join(part.lines))
    if arguments.write:
        arguments.write.write_text(written(arguments.write.read_text("utf-8"), [part]), "utf-8")


if __name__ == "__main__":
    main()

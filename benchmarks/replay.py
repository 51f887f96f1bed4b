"""A replay of recorded sessions under our strategies, baselines and other packages, written to ``docs/benchmarks.md``.

    python -m benchmarks.replay docs/benchmarks.md

It needs the environment that ``make bench-replay`` makes, and the recorded conversations beside the checkout.
"""

from __future__ import annotations

import argparse
import gzip
import json
import platform
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from compaction.replay import Candidate, Recording, replay

from .peers import agent_framework_pipeline, hermes_compressor, langchain_middleware, langmem_summary
from .peers.plots import draw
from .peers.recipe import RECIPE
from .replay_page import HEAD, section, table

ROOT: Final = Path(__file__).resolve().parent.parent
CORPUS: Final = ROOT.parent / "shared" / "corpus" / "dev"
FILES: Final = ("coding_long", "tau_long", "whowhen_multiagent")
LONGEST: Final = 1_000  # some packages take minutes at each window for the session of 2,433 messages
WINDOWS: Final = (8_000, 16_000, 32_000)
PACKAGES: Final = ("compaction-toolkit", "agent-framework-core", "hermes-agent", "langchain", "langmem", "toktok-rs")
CANDIDATES: Final[tuple[str | Candidate, ...]] = (
    "adaptive",
    RECIPE,
    "context_window",
    "hermes",
    agent_framework_pipeline.CONTEXT_WINDOW,
    agent_framework_pipeline.PIPELINE,
    hermes_compressor.HERMES,
    langchain_middleware.SUMMARIZATION,
    langchain_middleware.CLEAR_TOOL_USES,
    langmem_summary.LANGMEM,
)


def main(target: Path) -> None:
    began = time.monotonic()
    recordings = list(_recordings())
    parts: list[str] = []
    for window in WINDOWS:
        result = replay(recordings, CANDIDATES, window=window, jobs=2, on_progress=_progress(window))
        parts.append(section(result, window))
    shipped = json.loads((ROOT / "examples" / "coding_session.json").read_text(encoding="utf-8"))
    example = replay([Recording(id="coding_session", messages=_messages(shipped))], CANDIDATES, window=8_000)
    title = "## `examples/coding_session.json`, a window of 8k tokens"
    parts.append(f"{title}\n\n{table(example)}\n\nOne session has no interval.\n")
    prices = example.setting.prices
    head = HEAD.format(
        date=datetime.now(UTC).date().isoformat(),
        seconds=time.monotonic() - began,
        machine=f"2 processes, {platform.machine()}",
        python=platform.python_version(),
        versions=", ".join(f"{name} {version(name)}" for name in PACKAGES),
        model=prices.model,
        prices=prices.date,
    )
    target.write_text("\n".join([head, *parts]), encoding="utf-8")
    draw(target)


def _progress(window: int) -> Callable[[int, int], None]:
    """Return a function that reports progress on standard error."""
    return lambda done, total: print(f"{window:,}: {done:,} of {total:,} calls", file=sys.stderr)


def _recordings() -> Iterator[Recording]:
    for name in FILES:
        with gzip.open(CORPUS / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            for line in lines:
                data = json.loads(line)
                if len(data["messages"]) <= LONGEST:
                    yield Recording(id=data["id"], messages=data["messages"], where=name)


def _messages(data: Any) -> list[Any]:
    return data["messages"] if isinstance(data, dict) else data


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path, help="the page to write")
    main(parser.parse_args().page)

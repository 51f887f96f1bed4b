"""Pages that benchmarks write: the growth table of docs/performance.md, and a section of the page of replays."""

from __future__ import annotations

import re
from inspect import isclass
from pathlib import Path

import pytest

from benchmarks.growth_rows import ROWS
from compaction import presets, strategies
from compaction.strategies import CompactionStrategy, FunctionStrategy, Strategy

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
ABSTRACT = (Strategy, CompactionStrategy, FunctionStrategy)
OF_A_SERVER = {"DropIrrelevant", "ProviderCompaction"}  # the time is that of the model's answer


def test_each_has_a_row() -> None:
    """Every strategy and preset has a row, or is in the table that compares with another framework."""
    source = "\n".join((BENCHMARKS / name).read_text("utf-8") for name in ("growth_rows.py", "peer.py"))
    configured = set(re.findall(r"(\w+)\(", source))
    things = {name: getattr(strategies, name) for name in strategies.__all__}
    ours = {name for name, thing in things.items() if isclass(thing) and issubclass(thing, Strategy) and thing not in ABSTRACT}
    assert (ours | set(presets.PRESETS)) - configured == OF_A_SERVER


@pytest.mark.parametrize("name", ROWS)
def test_each_row_is_a_strategy(name: str) -> None:
    assert isinstance(ROWS[name](1_000, 60_000), Strategy)

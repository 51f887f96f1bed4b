"""Pages that benchmarks write: the growth table of docs/performance.md, and a section of the page of replays."""

from __future__ import annotations

import re
from inspect import isclass
from pathlib import Path

import pytest

from benchmarks.growth_rows import ROWS
from benchmarks.replay_page import COLUMNS, HEAD, section
from compaction import presets, strategies
from compaction.replay import Recording, replay
from compaction.strategies import CompactionStrategy, FunctionStrategy, Strategy
from tests.support.chats import tool_turns

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


def test_a_section_of_the_page() -> None:
    sessions = [Recording(id=str(turns), messages=tool_turns(turns, words=60)) for turns in (12, 20)]
    result = replay(sessions, ["adaptive"], window=1_000, counter="chars/4")
    written = section(result, 8_000)
    assert written.startswith("## A window of 8k tokens\n")
    rows = [line for line in written.splitlines() if line.startswith("| ")]
    assert [row.count(" | ") for row in rows] == [len(COLUMNS) - 1] * (1 + len(result.summaries))
    used = sum(score.shares["old"].needed for score in result.scores("adaptive"))
    assert f"*old* counts {used} uses of facts in" in written
    assert ", rules " in written.split("`adaptive` minus")[1]


def test_the_head_explains_each_column() -> None:
    explained = {name.strip() for line in HEAD.splitlines() if line.startswith("| ") for name in line.split("|")[1].split(",")}
    assert {*COLUMNS} - explained == {"strategy"}

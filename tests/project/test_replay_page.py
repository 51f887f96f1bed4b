"""The page of ``benchmarks.replay``: a section has a table, the number of facts behind *old*, and the recommendation."""

from __future__ import annotations

from benchmarks.replay_page import COLUMNS, HEAD, section
from compaction.replay import Recording, replay
from tests.support.chats import tool_turns


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

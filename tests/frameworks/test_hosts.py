"""Every framework reaches a plain loop's figures on the strict server, in short runs of `python -m benchmarks.hosts`."""

from __future__ import annotations

import logging
from typing import Final

import attrs
import pytest

from benchmarks.hosts.frameworks import cases
from benchmarks.hosts.measure import Case, measure

NOT_YET: Final = frozenset(
    {
        "Agent Framework: parallel sub-agents",
        "Agent Framework: 1.9 characters a token",  # one summary more than the loop, in 8 turns as in 24
    }
)
"""Rows that the integrations do not meet yet. A row that is met leaves this list."""


def names(case: Case) -> str:
    """Return a case's name in the table."""
    return f"{case.host}: {case.name}"


SHORT: Final = [attrs.evolve(case, sessions=min(case.sessions, 6)) for case in cases()]


@pytest.fixture(autouse=True)
def quiet() -> None:
    """Silence the log of summarizers that fail on purpose."""
    logging.getLogger("compaction").setLevel(logging.CRITICAL)


@pytest.mark.parametrize("case", [case for case in SHORT if names(case) not in NOT_YET], ids=names)
def test_at_the_plain_loops_figures(case: Case) -> None:
    """No request is invalid, too long twice, or of another conversation; summaries and prefix breaks are at most the loop's."""
    row = measure(case, turns=8)
    assert row.problems == []
    assert row.host.breaks > 0


def test_more_filtered_conversations_than_were_once_remembered() -> None:
    """A filter distinguishes 40 concurrent conversations, each compacted twice."""
    name = "OpenAI Agents SDK: 50 sessions at once, filter alone"
    case = next(case for case in cases() if names(case) == name)
    if name in NOT_YET:
        pytest.skip("not yet")
    assert measure(attrs.evolve(case, sessions=40), turns=8).problems == []


def test_the_list_names_rows() -> None:
    """Every exception in the list is a row of the table."""
    assert {names(case) for case in cases()} >= NOT_YET

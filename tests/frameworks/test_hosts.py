"""Every framework reaches a plain loop's figures on the strict server, in short runs of `python -m benchmarks.hosts`."""

from __future__ import annotations

import logging
from typing import Final

import attrs
import pytest

from benchmarks.hosts.contract import REASONS, SITUATIONS, reason
from benchmarks.hosts.frameworks import cases
from benchmarks.hosts.measure import Case, measure, rows_of_json, rows_to_json
from benchmarks.hosts.table import HOSTS, section

pytestmark = pytest.mark.filterwarnings("ignore", "error:::compaction")  # LiteLLM's proxy warns


def names(case: Case) -> str:
    return f"{case.host}: {case.name}"


CASES: Final = cases()
SHORT: Final = [attrs.evolve(case, sessions=min(case.sessions, 6)) for case in CASES]


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence the log of summarizers that fail on purpose; LiteLLM reads the table of prices in its own package."""
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    logging.getLogger("compaction").setLevel(logging.CRITICAL)


@pytest.mark.parametrize("case", SHORT, ids=names)
def test_at_the_plain_loops_figures(case: Case) -> None:
    """No request is invalid, too long twice, or of another conversation; summaries and prefix breaks are at most the loop's.

    Where the page gives a reason, summaries and prefix breaks may differ.
    """
    row = measure(case, turns=8)
    assert (row.host.stopped, row.host.invalid, row.host.over_twice, row.host.crossed) == (None, 0, 0, 0)
    assert row.host.dropped == row.plain.dropped == 0
    assert row.problems == [] or reason(case.host, case.situation) is not None
    assert row.host.breaks > 0


def test_more_filtered_conversations_than_were_once_remembered() -> None:
    """A filter distinguishes 40 concurrent conversations, each compacted twice."""
    name = "OpenAI Agents SDK: 50 sessions at once, filter alone"
    case = next((case for case in CASES if names(case) == name), None)
    if case is None:
        pytest.skip("OpenAI Agents SDK is not installed")
    assert measure(attrs.evolve(case, sessions=40), turns=8).problems == []


def test_each_cell_is_measured_or_has_a_reason() -> None:
    """Each framework has a case for each situation, or the page says why not."""
    installed = {case.host for case in CASES}
    assert installed <= set(HOSTS)
    measured = {(case.host, case.situation) for case in CASES}
    cells = {(host, situation) for host in installed for situation in SITUATIONS}
    assert [cell for cell in sorted(cells - measured) if reason(*cell) is None] == []
    assert measured <= cells
    assert {host for host, _ in REASONS} - {"any"} <= set(HOSTS)
    assert {situation for _, situation in REASONS} <= set(SITUATIONS)


def test_rows_of_another_environment_are_in_the_page() -> None:
    row = measure(next(case for case in SHORT if case.situation == "time travel"), turns=5)
    pages = [section(rows, date="", turns=5, seed=0, window=6_000) for rows in ([row], rows_of_json(rows_to_json([row])))]
    assert pages[0] == pages[1]

"""Pauses after failures: how long, whose, and kept through JSON."""

from __future__ import annotations

import json
import pickle

import pytest

from compaction import Pipeline
from compaction.errors import StateError
from compaction.index import RunHistory
from compaction.strategies import Summarization
from compaction.summarizers import DigestSummarizer
from compaction.triggers import tokens_exceed

ONE = Summarization(trigger=tokens_exceed(1_000))
OTHER = Summarization(trigger=tokens_exceed(2_000))


class Opaque:
    def summarize(self, request: object) -> str:
        return "said"


@pytest.mark.parametrize(("failures", "seconds"), [(1, 60.0), (2, 300.0), (3, 900.0), (4, 900.0)])
def test_each_failure_in_a_row_pauses_longer(failures: int, seconds: float) -> None:
    """One minute, five, then a quarter of an hour each time, counted from the last failure."""
    pauses = RunHistory()
    for _ in range(failures):
        pauses.record_failure(ONE, 100.0)
    assert pauses.is_paused(ONE, 100.0 + seconds - 0.5)
    assert not pauses.is_paused(ONE, 100.0 + seconds)


def test_a_clock_that_went_back_ends_the_pause() -> None:
    pauses = RunHistory()
    pauses.record_failure(ONE, 500_000.0)
    assert not pauses.is_paused(ONE, 10.0)


def test_a_success_forgets_the_failures() -> None:
    pauses = RunHistory()
    pauses.record_success(ONE)
    pauses.record_failure(ONE, 0.0)
    pauses.record_failure(ONE, 60.0)
    pauses.record_success(ONE)
    assert not pauses.is_paused(ONE, 60.0)
    pauses.record_failure(ONE, 400.0)
    assert not pauses.is_paused(ONE, 460.0)


def test_strategies_of_one_class_pause_apart() -> None:
    pauses = RunHistory()
    pauses.record_failure(ONE, 0.0)
    assert pauses.is_paused(Summarization(trigger=tokens_exceed(1_000)), 1.0)
    assert not pauses.is_paused(OTHER, 1.0)
    assert not pauses.is_paused(Summarization(DigestSummarizer(growth=1.0), trigger=tokens_exceed(1_000)), 1.0)
    assert not pauses.is_paused(Pipeline(ONE), 1.0)


def test_an_address_is_not_part_of_the_value() -> None:
    """A summarizer with the default repr keeps its pause in another process, in which its address differs."""
    pauses = RunHistory()
    pauses.record_failure(Summarization(Opaque()), 0.0)
    kept = Opaque(), Opaque()
    assert all(pauses.is_paused(Summarization(each), 1.0) for each in kept)


def test_json_and_pickle_keep_them() -> None:
    """A strategy may have failed after a summary that saved nothing; both are kept."""
    pauses = RunHistory()
    pauses.record_no_gain(ONE, 700)
    pauses.record_failure(ONE, 5.0)
    pauses.record_failure(ONE, 70.0)
    again = RunHistory.from_dict(json.loads(json.dumps(pauses.to_dict())))
    for each in (again, pickle.loads(pickle.dumps(pauses))):
        assert (each.is_paused(ONE, 369.0), each.is_paused(ONE, 370.0), each.is_paused(OTHER, 71.0)) == (True, False, False)
        assert (each.to_dict(), each.no_gain(ONE), each.no_gain(OTHER)) == (pauses.to_dict(), 700, None)


@pytest.mark.parametrize(
    "data",
    [
        *(None, 3, [1], {"failures": [1]}, {"no_gain": {"a": -1}}),
        *({"failures": {"a": each}} for each in (1, [1], ["x", "y"], [1, None])),
    ],
)
def test_what_is_not_saved_pauses(data: object) -> None:
    with pytest.raises(StateError, match="start a new session"):
        RunHistory.from_dict(data)


def test_the_number_of_strategies_is_bounded() -> None:
    pauses = RunHistory()
    for number in range(100):
        pauses.record_failure(f"strategy {number}", 0.0)
        pauses.record_no_gain(f"other {number}", number)
    assert {name: len(each) for name, each in pauses.to_dict().items()} == {"failures": 64, "no_gain": 64}
    assert (pauses.is_paused("strategy 99", 1.0), pauses.is_paused("strategy 0", 1.0)) == (True, False)
    assert pauses.no_gain("other 99") == 99


def test_what_saved_nothing_is_no_pause() -> None:
    """It is remembered by its tokens, until a success."""
    pauses = RunHistory()
    pauses.record_failure(ONE, 0.0)
    pauses.record_no_gain(ONE, 500)
    assert (pauses.is_paused(ONE, 1.0), pauses.no_gain(ONE), pauses.no_gain(OTHER)) == (False, 500, None)
    pauses.record_success(ONE)
    assert (pauses.no_gain(ONE), pauses.to_dict()) == (None, RunHistory().to_dict())


def test_a_forced_run_ends_the_pause_after_a_summary_that_saved_nothing() -> None:
    history = RunHistory()
    history.record_failure("one", 0.0)
    history.record_no_gain("other", 500)
    history.clear()
    assert (history.is_paused("one", 1.0), history.no_gain("other")) == (False, None)

"""Random faults of clients and upstream; ``python -m benchmarks.gateway_faults`` runs more of them."""

from __future__ import annotations

from benchmarks.gateway_faults import run_faults


def test_no_fault_makes_it_hang_lose_an_answer_or_send_what_is_invalid() -> None:
    """With 200 random faults, no request hangs, loses its answer or is sent upstream with invalid messages."""
    faults = run_faults(200, seed=7)
    assert faults.problems == []
    assert faults.outcomes["answered"] > 50

"""Random faults between clients, the gateway and an upstream; ``python -m benchmarks.gateway_faults`` looks further."""

from __future__ import annotations

from benchmarks.gateway_faults import run_faults


def test_no_fault_makes_it_hang_lose_an_answer_or_send_what_is_invalid() -> None:
    """Whatever the other two do, each request ends as it should."""
    faults = run_faults(200, seed=7)
    assert faults.problems == []
    assert faults.outcomes["answered"] > 50

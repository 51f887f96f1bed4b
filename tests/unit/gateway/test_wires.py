"""Whole tasks in every format against a strict model on loopback: no request is refused or over the window."""

from __future__ import annotations

import json

import pytest

from benchmarks.gateway_faults import run_faults
from benchmarks.gateway_long import long_run
from tests.support.clients import AGENTS, Recorder, run
from tests.support.gateways import client_of, lifespan, settings_of


@pytest.mark.parametrize("name", AGENTS)
async def test_a_task_that_fills_the_window_several_times(name: str) -> None:
    """Two conversations run through the gateway without mixing, and every request is valid and within the window."""
    agent = AGENTS[name]
    with Recorder(window=4_500) as model:
        settings = settings_of(model.address, window=4_500, timeout=60.0)
        async with lifespan(settings) as app, client_of(app) as client:
            for conversation in ("alpha", "beta"):
                await run(agent, client, conversation)
            metrics = (await client.get("/metrics")).text
    ledger = model.ledger
    total = {each: ledger.total(each) for each in ("invalid", "over", "crossed")}
    assert total == {"invalid": 0, "over": 0, "crossed": 0}, ledger.pages
    assert ledger.total("tokens") > 60_000
    cuts = next(line for line in metrics.splitlines() if line.startswith("compaction_gateway_cuts_total"))
    assert ledger.total("breaks") <= int(cuts.split()[1]) <= 20
    if name == "anthropic":
        for body in model.bodies:
            marks = json.dumps(body).count('"cache_control"')
            assert marks == min(2, len(body["messages"]))
            assert json.dumps(body).count('"ttl": "1h"') == marks


@pytest.mark.parametrize("name", AGENTS)
async def test_a_long_run_with_reminders(name: str) -> None:
    """Nothing is refused, each request has all that the user said, and later cuts leave no more than earlier ones.

    ``python -m benchmarks.gateway_long`` makes 800 calls in a window of 40,000 tokens.
    """
    found = await long_run(name, 80, 4_500)
    assert (found.requests, found.refused, found.lost) == (81, 0, 0)
    assert found.reminders <= 4
    half = len(found.floors) // 2
    assert half > 1
    assert max(found.floors[half:]) <= 1.2 * max(found.floors[:half])
    assert found.bill <= 0.8


def test_no_fault_makes_it_hang_lose_an_answer_or_send_what_is_invalid() -> None:
    """With 200 random faults of clients and upstream; ``python -m benchmarks.gateway_faults`` runs more of them."""
    faults = run_faults(200, seed=7)
    assert faults.problems == []
    assert faults.outcomes["answered"] > 50

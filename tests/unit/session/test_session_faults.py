"""A summarizer that fails in every way a server can: nothing is lost, and the session still works."""

from __future__ import annotations

from typing import Any

import pytest

from compaction import last, validate
from compaction.session import CompactionSession
from compaction.strategies import Summarization
from compaction.summarizers import OpenAISummarizer, SummaryBudget
from compaction.triggers import tokens_below, tokens_exceed
from tests.support.fault_server import Answer, FaultServer, echo, reply, slow, status
from tests.unit.session.test_session import chat

GOOD = "## Goal\nFind boxes.\n\n## Progress\n### Done\n- Boxes 0 to 60 were found on their shelves."
FAULTS: list[Any] = [
    pytest.param(slow(30), 0.5, id="times out"),
    pytest.param(status(500), 30.0, id="500"),
    pytest.param(reply("word " * 2_000_000), 30.0, id="10 MB of text"),
    pytest.param(echo(), 30.0, id="repeats its input"),
]
"""A failure of each kind, with the seconds that the client waits; `tests/unit/summarizers` has all of them."""


def summarizing(server: FaultServer, *, timeout: float, **options: Any) -> Summarization:
    model = OpenAISummarizer("small", base_url=server.url, api_key="none", timeout=timeout, max_retries=1)
    budget = SummaryBudget(floor=150, ceiling=200)
    keep = last(messages=4)
    return Summarization(model, trigger=tokens_exceed(1_500), target=tokens_below(800), keep=keep, budget=budget, **options)


@pytest.mark.parametrize(("fault", "patience"), FAULTS)
async def test_nothing_is_lost_and_the_session_goes_on(fault: Answer, patience: float) -> None:
    """While the server fails every message is sent; when it works again and the pause is over, the summary is made."""
    now = [0.0]
    with FaultServer(fault) as server:
        watched = CompactionSession(summarizing(server, timeout=patience), counter="chars/4", clock=lambda: now[0])
        source = chat(12)
        view = await watched.view(source)
        assert all(now_ is then for now_, then in zip(view, source, strict=True))
        assert "SummaryFailed" in watched.status().failures[0]
        asked = len(server.requests)
        await watched.view(chat(13))
        assert len(server.requests) == asked
        server.script[:] = [reply(GOOD)]
        now[0] = 61.0
        view = await watched.view(chat(13))
    assert (watched.status().outcome, watched.status().failures) == ("compacted", ())
    assert "Find boxes." in view[1]["content"]
    assert view[-4:] == chat(13)[-4:]
    assert validate(view) == []

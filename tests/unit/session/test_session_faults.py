"""A summarizer that fails in every way a server can: nothing is lost, and the session still works."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from compaction import last, presets, validate
from compaction.session import CompactionSession
from compaction.strategies import Summarization
from compaction.summarizers import OpenAISummarizer, SummaryBudget
from compaction.triggers import always, tokens_below, tokens_exceed
from tests.support.fault_server import Answer, FaultServer, body, closes_early, echo, error_body, raw, reply, slow, status
from tests.unit.session.test_session import chat, session

GOOD = "## Goal\nFind boxes.\n\n## Progress\n### Done\n- Boxes 0 to 60 were found on their shelves."
FAULTS: list[Any] = [
    pytest.param(slow(30), id="times out"),
    pytest.param(closes_early(), id="closes mid-body"),
    *[pytest.param(status(code), id=str(code)) for code in (401, 403, 404, 408, 413, 500, 503)],
    pytest.param(status(429, headers={"retry-after": "1"}), id="429 with Retry-After"),
    pytest.param(raw(b'{"choices": [{"mess'), id="malformed JSON"),
    pytest.param(body({"choices": []}), id="empty choices"),
    pytest.param(error_body("overloaded", code=503), id="error object"),
    pytest.param(reply(None, refusal="I will not."), id="refusal"),
    pytest.param(reply("half", finish="content_filter"), id="content filter"),
    pytest.param(reply("word " * 2_000_000), id="10 MB of text"),
    pytest.param(echo(), id="repeats its input"),
    pytest.param(reply("Sorry, something went wrong."), id="an error text"),
    pytest.param(reply(""), id="empty"),
]


def summarizing(server: FaultServer, *, timeout: float = 0.5, **options: Any) -> Summarization:
    model = OpenAISummarizer("small", base_url=server.url, api_key="none", timeout=timeout, max_retries=1)
    budget = SummaryBudget(floor=150, ceiling=200)
    keep = last(messages=4)
    return Summarization(model, trigger=tokens_exceed(1_500), target=tokens_below(800), keep=keep, budget=budget, **options)


@pytest.mark.parametrize("fault", FAULTS)
async def test_nothing_is_lost_and_the_session_goes_on(fault: Answer) -> None:
    """While the server fails every message is sent; when it works again and the pause is over, the summary is made."""
    now = [0.0]
    with FaultServer(fault) as server:
        watched = CompactionSession(summarizing(server), counter="chars/4", clock=lambda: now[0])
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


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_digest_takes_over_if_told_so(fault: Answer) -> None:
    """With ``on_failure="digest"`` the view fits in spite of the failure, which is reported."""
    with FaultServer(fault) as server:
        watched = session(summarizing(server, on_failure="digest"))
        view = await watched.view(chat(20))
    assert watched.status().outcome == "degraded"
    assert len(view) < len(chat(20))
    assert validate(view) == []


async def test_a_dead_server_is_a_failure_like_any_other() -> None:
    """The same if no server listens at the address."""
    with FaultServer(reply(GOOD)) as server:
        strategy = summarizing(server, timeout=30.0)
    watched = session(strategy)
    assert await watched.view(chat(12)) == chat(12)
    assert "could not be reached" in watched.status().failures[0]


@pytest.mark.parametrize("checkpoint", range(0, 60, 4))
async def test_cancelled_at_any_point_of_a_request_nothing_changes(checkpoint: int) -> None:
    """The call is cancelled after so many turns of the event loop, through connection, request, answer and second request."""
    with FaultServer(status(503), slow(0.05, reply(GOOD))) as server:
        watched = session(summarizing(server, timeout=30.0))
        source = chat(12)
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:

                async def cancel() -> None:
                    for _ in range(checkpoint):
                        await anyio.sleep(0.001)
                    scope.cancel()

                tasks.start_soon(cancel)
                await watched.view(source)
                tasks.cancel_scope.cancel()
        if not watched.index.edits:
            assert watched.index.messages() == source[: len(watched.index.messages())]
        server.script[:] = [reply(GOOD)]
        view = await watched.view(source)
    assert "Find boxes." in view[1]["content"]
    assert watched.status().compactions == 1


async def test_a_tail_larger_than_the_window_is_said_not_hidden() -> None:
    """If nothing may leave, the outcome is over_target, the view is complete, and no summarizer is called."""
    with FaultServer(reply(GOOD)) as server:
        model = OpenAISummarizer("small", base_url=server.url, api_key="none")
        strategy = Summarization(model, trigger=tokens_exceed(1_000), keep=last(tokens=100_000))
        watched = session(strategy)
        assert await watched.view(chat(12)) == chat(12)
        assert (watched.status().outcome, server.requests) == ("over_target", [])


async def test_the_hermes_preset_over_a_real_client() -> None:
    """A whole compressor run through HTTP: forced, valid, the summary in its place."""
    with FaultServer(reply(GOOD)) as server:
        model = OpenAISummarizer("small", base_url=server.url, api_key="none")
        watched = session(presets.hermes(20_000, model, protect_last_n=4, trigger=always))
        view = await watched.view(chat(20))
    assert [place for place, message in enumerate(view) if "[CONTEXT COMPACTION]" in str(message["content"])] == [4]
    assert validate(view) == []

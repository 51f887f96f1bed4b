"""Windows of models: the table's, corrected by refusals, by a header and by usage, and kept in the store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.clients import AGENTS, Recorder, run
from tests.support.gateways import (
    Got,
    ScriptedUpstream,
    answer,
    chat_reply,
    client_of,
    in_process,
    lifespan,
    settings_of,
    tool_chat,
)

CHAT = "/v1/chat/completions"
KNOWN = "gpt-4o"  # the table says 112,000
REAL = 6_000


def body_of(messages: list[Any], model: str = KNOWN) -> str:
    """Return a request with these messages."""
    return json.dumps({"model": model, "messages": messages})


def size_of(got: Got) -> int:
    """The tokens of a request with its JSON, by four characters each."""
    return len(json.dumps(got.json["messages"], ensure_ascii=False)) // 4


def too_long(window: int, tokens: int) -> Any:
    """A refusal that names the window."""
    said = f"This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} tokens."
    return answer(400, {"error": {"message": said, "code": "context_length_exceeded"}})


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_known_model_with_a_small_real_window_is_refused_once() -> None:
    """From then on it is as if that window had been configured: no refusal, and every cut has a summary."""
    seen: list[tuple[int, int]] = []
    for window in ("auto", REAL):
        with Recorder(window=REAL) as model:
            async with lifespan(settings_of(model.address, window=window, timeout=60.0)) as app, client_of(app) as client:
                await run(AGENTS["openai-chat"], client, "alpha", turns=20, model=KNOWN)
                status = (await client.get("/status.json")).json()
        assert model.ledger.total("invalid") == 0
        seen.append((model.ledger.total("over"), sum(len(json.dumps(body)) for body in model.bodies)))
        cuts = [cut for conversation in status["conversations"] for cut in conversation["cuts"]]
        assert "Replace" in str(cuts)
        assert "Drop" not in str(cuts)
    (refused, sent), (never, configured) = seen
    assert (refused, never) == (1, 0)
    assert sent <= 1.1 * configured


async def test_another_conversation_with_the_model_is_never_refused(tmp_path: Path) -> None:
    """Also after a restart; the page shows the window that was learned."""
    with ScriptedUpstream(too_long(REAL, 16_000), chat_reply()) as upstream:
        async with in_process(upstream, window="auto", store=tmp_path / "s.db") as client:
            await client.post(CHAT, content=body_of(tool_chat(100)))
            await client.post(CHAT, content=body_of(tool_chat(100, name="b")))
            learned = (await client.get("/status.json")).json()["windows"]
        async with in_process(upstream, window="auto", store=tmp_path / "s.db") as client:
            await client.post(CHAT, content=body_of(tool_chat(100, name="c")))
            await client.post(CHAT, content=body_of(tool_chat(100, name="d"), model="gpt-4o-mini"))
    assert [size < 9_000 for size in map(size_of, upstream.got)] == [False, True, True, True, False]
    assert learned == {f"{KNOWN} at {upstream.url}/v1": REAL}


async def test_a_configured_window_is_a_maximum() -> None:
    """A refusal corrects a configured window downwards, and never upwards."""
    with ScriptedUpstream(too_long(REAL, 16_000), chat_reply()) as upstream:
        async with in_process(upstream, window=100_000) as client:
            for name in "ab":
                await client.post(CHAT, content=body_of(tool_chat(100, name=name)))
    assert [size < 9_000 for size in map(size_of, upstream.got)] == [False, True, True]


async def test_a_limit_in_bytes_is_no_window() -> None:
    """A refusal with 413 that names no figure shortens its own conversation only."""
    refusal = answer(413, b"<html><h1>413 Request Entity Too Large</h1></html>", content_type="text/html")
    with ScriptedUpstream(refusal, chat_reply()) as upstream:
        async with in_process(upstream, window="auto") as client:
            for name in "ab":
                await client.post(CHAT, content=body_of(tool_chat(100, name=name)))
            learned = (await client.get("/status.json")).json()["windows"]
    sizes = list(map(size_of, upstream.got))
    assert sizes[1] < sizes[0] == sizes[2]
    assert learned == {}


@pytest.mark.parametrize(("beta", "is_cut"), [("context-1m-2025-08-07", False), ("other", True)])
async def test_a_header_may_ask_for_a_million_tokens(beta: str, is_cut: bool) -> None:
    """With ``context-1m`` in ``anthropic-beta``, a request above the table's window is not cut."""
    messages = [{"role": "user", "content": "word " * 500}, {"role": "assistant", "content": "ok"}] * 400
    body = json.dumps({"model": "claude-3-5-haiku-latest", "max_tokens": 9, "messages": messages[:-1]})
    with ScriptedUpstream(answer(200, {"type": "message", "content": []})) as upstream:
        async with in_process(upstream, window="auto") as client:
            await client.post("/v1/messages", content=body, headers={"anthropic-beta": beta})
    assert (upstream.got[0].body != body.encode()) == is_cut


async def test_usage_beyond_the_table_raises_the_window() -> None:
    """A provider that accepts more than the table says has a larger window; later requests are not cut at the table's."""
    small, large = tool_chat(400), tool_chat(520)
    with ScriptedUpstream(chat_reply(tokens=140_000), chat_reply()) as upstream:
        async with in_process(upstream, window="auto") as client:
            await client.post(CHAT, content=body_of(small))
            await client.post(CHAT, content=body_of(large))
            learned = (await client.get("/status.json")).json()["windows"]
    assert [got.body.decode() for got in upstream.got] == [body_of(small), body_of(large)]
    assert learned == {f"{KNOWN} at {upstream.url}/v1": 140_000}

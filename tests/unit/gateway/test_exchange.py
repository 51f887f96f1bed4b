"""One request through the gateway: what is sent upstream, how often, and what the client gets."""

from __future__ import annotations

import gzip
import json
import threading
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

from compaction import config
from compaction.tokens import length_errors
from tests.support.gateways import (
    Answer,
    Got,
    Handler,
    ScriptedUpstream,
    answer,
    chat_reply,
    events,
    in_process,
    serving,
    tool_chat,
)
from tests.support.rulebook import is_valid

CHAT = "/v1/chat/completions"
SAMPLES: list[dict[str, Any]] = tomllib.loads(Path(length_errors.__file__).with_suffix(".toml").read_text("utf-8"))["samples"]
TOO_LONG = {"error": {"message": "This model's maximum context length is 900 tokens. However, you requested 1500 tokens."}}


def body_of(messages: list[Any], **fields: Any) -> bytes:
    """Return a request as an agent writes it, with unusual spaces."""
    return json.dumps({"model": "m", "temperature": 0.10, "messages": messages, **fields}, indent=1).encode()


def contents(folder: Path) -> list[str]:
    """Return the texts of the files in a folder."""
    return [path.read_text() for path in folder.iterdir()]


def refuses_changed(original: bytes, then: Answer) -> Answer:
    """Return an upstream that refuses every body but this one."""

    def give(handler: Handler, got: Got) -> None:
        (then if got.body == original else answer(400, {"error": {"message": "invalid: look is unknown"}}))(handler, got)

    return give


async def test_a_short_request_leaves_with_its_own_bytes() -> None:
    """A request below the trigger, and its answer, are passed on with the same bytes, query, headers and status."""
    body = b'{ "model":"m",  "messages" : [ {"content":"h\\u00e9llo","role":"user" } ],"x":1.50 }'
    with ScriptedUpstream(answer(200, b'{"ok":  true}', x_ratelimit="7")) as upstream:
        async with in_process(upstream) as client:
            reply = await client.post(
                f"{CHAT}?beta=1", content=body, headers={"authorization": "Bearer k", "connection": "x-drop", "x-drop": "1"}
            )
    (got,) = upstream.got
    assert got.body == body
    assert got.path == f"{CHAT}?beta=1"
    assert got.headers["authorization"] == "Bearer k"
    assert "x-drop" not in got.headers
    assert got.headers["host"] == upstream.url.removeprefix("http://")
    assert reply.content == b'{"ok":  true}'
    assert reply.headers["x-ratelimit"] == "7"


async def test_a_long_request_is_compacted_and_the_rest_keeps_its_bytes() -> None:
    """In a long request only the message list changes; messages that stay keep their bytes, and the prefix rarely breaks."""
    messages = tool_chat(20)
    with ScriptedUpstream(chat_reply()) as upstream:
        async with in_process(upstream) as client:
            for count in range(1, len(messages) + 1, 2):
                reply = await client.post(CHAT, content=body_of(messages[:count], tools=[]))
                assert reply.status_code == 200
    sent = [got.json["messages"] for got in upstream.got]
    assert all(is_valid("openai-chat", each) for each in sent)
    assert len(sent[-1]) < len(messages)
    assert max(len(json.dumps(each)) for each in sent) / 4 < 3_000
    last = upstream.got[-1].body
    assert last.startswith(b'{\n "model": "m",\n "temperature": 0.1,\n "messages": [\n  {')
    assert json.dumps(messages[-1], indent=1).replace("\n", "\n  ").encode() in last
    breaks = [one for one, two in pairwise(sent) if two[: len(one)] != one]
    assert len(breaks) <= 3


async def test_a_length_error_is_answered_once_with_a_shorter_request() -> None:
    """After a length error the gateway sends a shorter request once, and the client gets only that request's answer."""
    messages = tool_chat(6)
    with ScriptedUpstream(answer(400, TOO_LONG), chat_reply()) as upstream:
        async with in_process(upstream, window=100_000) as client:
            reply = await client.post(CHAT, content=body_of(messages))
            health = (await client.get("/healthz")).json()
    assert reply.status_code == 200
    assert [len(got.body) > 2_400 for got in upstream.got] == [True, False]
    assert is_valid("openai-chat", upstream.got[1].json["messages"])
    assert health["retries"] == {"length": 1}


@pytest.mark.parametrize("window", [100_000, "auto"])
@pytest.mark.parametrize(
    "sample", [each for each in SAMPLES if each.get("tokens", 0) < 250_000], ids=lambda sample: sample["provider"]
)
async def test_each_length_error_leads_to_a_shorter_request(sample: dict[str, Any], window: Any) -> None:
    """A refusal in the words of each provider, with or without figures, is answered by a shorter request, whatever is known."""
    refusal = answer(sample.get("status") or 400, {"error": {"message": sample["says"]}})
    with ScriptedUpstream(refusal, chat_reply()) as upstream:
        async with in_process(upstream, window=window) as client:
            reply = await client.post(CHAT, content=body_of(tool_chat(60)))
    assert (reply.status_code, len(upstream.got)) == (200, 2)
    assert len(upstream.got[1].body) < len(upstream.got[0].body)


async def test_two_requests_are_the_most() -> None:
    """If the shortened request gets a length error too, that error is passed on to the client."""
    with ScriptedUpstream(answer(400, TOO_LONG)) as upstream:
        async with in_process(upstream, window=100_000) as client:
            reply = await client.post(CHAT, content=body_of(tool_chat(6)))
    assert (reply.status_code, reply.json(), len(upstream.got)) == (400, TOO_LONG, 2)


@pytest.mark.parametrize("status", [401, 403, 404, 409, 429, 502, 503, 529])
async def test_other_errors_are_passed_on(status: int) -> None:
    """Other errors are passed on with their headers and are not retried, even if their text is about length."""
    with ScriptedUpstream(answer(status, TOO_LONG, retry_after="7")) as upstream:
        async with in_process(upstream, window=100_000) as client:
            reply = await client.post(CHAT, content=body_of(tool_chat(6)))
    assert (reply.status_code, reply.headers["retry-after"], len(upstream.got)) == (status, "7", 1)


async def test_what_is_refused_only_as_compacted_is_sent_as_it_came(tmp_path: Path) -> None:
    """A refused compacted request is sent again as it came, and saved without texts; the next one is sent unchanged."""
    messages = tool_chat(20)
    original, more = body_of(messages), body_of([*messages, {"role": "user", "content": "go on"}])
    with ScriptedUpstream(refuses_changed(original, chat_reply())) as upstream:
        async with in_process(upstream, cases=tmp_path) as client:
            reply = await client.post(CHAT, content=original)
            upstream.script = [chat_reply()]
            assert (await client.post(CHAT, content=more)).status_code == 200
            upstream.script = [answer(400, TOO_LONG), chat_reply()]
            upstream.got.clear()
            assert (await client.post(CHAT, content=more)).status_code == 200
            again = [len(got.body) == len(more) for got in upstream.got]
            health = (await client.get("/healthz")).json()
    assert reply.status_code == 200
    assert again == [True, False]
    assert health["failures"]["a compacted request was refused"] == 1
    (text,) = contents(tmp_path)
    kept = json.loads(text)
    assert kept["status"] == 400
    assert "invalid" in kept["said"]
    assert [each["role"] for each in kept["given"]] == [each["role"] for each in messages]
    assert "Find" not in text
    assert "é" not in text


@pytest.mark.parametrize(
    ("path", "fields", "why"),
    [
        ("/v1/responses", {"previous_response_id": "r", "input": [{"role": "user", "content": "x"}]}, "previous_response_id"),
        ("/v1/responses", {"conversation": "c", "input": [{"role": "user", "content": "x"}]}, "conversation"),
        ("/v1/responses", {"store": True, "input": [{"role": "user", "content": "x"}]}, "store"),
        ("/v1/responses", {"input": [{"type": "item_reference", "id": "m"}]}, "item_reference"),
        ("/v1/responses", {"input": "a text"}, "no list of input"),
        (
            "/v1/messages",
            {"context_management": {"edits": [{"type": "compact_20260112"}]}, "messages": [{}]},
            "context_management",
        ),
        ("/v1beta/models/g:generateContent", {"cachedContent": "c", "contents": [{"parts": []}]}, "cachedContent"),
        (CHAT, {"messages": []}, "no messages"),
    ],
)
async def test_what_the_provider_keeps_is_passed_through(path: str, fields: dict[str, Any], why: str) -> None:
    """A request that depends on state stored by the provider is sent unchanged, and the reason is counted."""
    body = json.dumps({"model": "m", **fields}).encode()
    with ScriptedUpstream(answer(200, {})) as upstream:
        async with in_process(upstream) as client:
            await client.post(path, content=body)
            health = (await client.get("/healthz")).json()
    assert upstream.got[0].body == body
    assert health["passed_through"] == {why: 1}


async def test_everything_else_is_passed_through() -> None:
    """Other routes and methods are passed through unchanged, with their bodies and queries."""
    data = bytes(range(256)) * 300
    with ScriptedUpstream(answer(207, b"\x00\xff", x_a="b")) as upstream:
        async with in_process(upstream) as client:
            replies = [
                await client.put("/v1/files/a%2Fb?x=%20y", content=data, headers={"content-type": "application/x"}),
                await client.get("/v1/models", headers={"anthropic-version": "2023-06-01"}),
                await client.delete("/v1beta/cachedContents/7"),
                await client.head("/v1/models"),
            ]
    assert [(got.method, got.path) for got in upstream.got] == [
        ("PUT", "/v1/files/a%2Fb?x=%20y"),
        ("GET", "/v1/models"),
        ("DELETE", "/v1beta/cachedContents/7"),
        ("HEAD", "/v1/models"),
    ]
    assert (upstream.got[0].body, upstream.got[0].headers["content-length"]) == (data, str(len(data)))
    assert [reply.status_code for reply in replies] == [207] * 4
    assert [reply.content for reply in replies] == [b"\x00\xff"] * 3 + [b""]


async def test_count_tokens_is_asked_for_what_would_be_sent(tmp_path: Path) -> None:
    """A token count is requested upstream for the compacted messages, and creates no conversation."""
    messages = [
        {"role": "user" if place % 2 == 0 else "assistant", "content": [{"type": "text", "text": f"part {place} " * 60}]}
        for place in range(31)
    ]
    body = json.dumps({"model": "m", "system": "Be brief.", "messages": messages}).encode()
    usage = {"type": "message", "usage": {"input_tokens": 900, "output_tokens": 1}}
    with ScriptedUpstream(answer(200, {"input_tokens": 7})) as upstream:
        async with in_process(upstream, store=tmp_path / "s.db") as client:
            counts = [(await client.post("/v1/messages/count_tokens", content=body)).json() for _ in range(2)]
            conversations = (await client.get("/healthz")).json()["conversations"]
            upstream.script = [answer(200, usage)]
            await client.post("/v1/messages", content=body)
            upstream.script = [answer(200, {"input_tokens": 8})]
            counts.append((await client.post("/v1/messages/count_tokens", content=body)).json())
    assert counts == [{"input_tokens": 7}, {"input_tokens": 7}, {"input_tokens": 8}]
    assert conversations == 0
    sent = [got.json["messages"] for got in upstream.got]
    assert len(sent[0]) < len(messages)
    assert sent[0] == sent[1] == sent[2] == sent[3]


async def test_count_tokens_calls_no_model(tmp_path: Path) -> None:
    """With a strategy that may call a model, the count is of a cut request with a summary of the largest size."""
    (tmp_path / "pipeline.toml").write_text(
        """
        [[steps]]
        use = "Summarization"
        summarizer = { use = "OpenAISummarizer", model = "m", base_url = "http://127.0.0.1:9/v1", api_key_env = "NO_API_KEY" }
        trigger = "tokens_exceed(1_500)"
        keep = "last(messages=3)"
        """
    )
    strategy = config.load(tmp_path / "pipeline.toml")
    messages = [
        {"role": "user" if place % 2 == 0 else "assistant", "content": [{"type": "text", "text": f"part {place} " * 60}]}
        for place in range(31)
    ]
    body = json.dumps({"model": "m", "messages": messages}).encode()
    with ScriptedUpstream(answer(200, {"input_tokens": 7})) as upstream:
        async with in_process(upstream, strategy=lambda window: strategy, awaits=True, store=tmp_path / "s.db") as client:
            assert (await client.post("/v1/messages/count_tokens", content=body)).json() == {"input_tokens": 7}
            health = (await client.get("/healthz")).json()
    sent = upstream.got[0].json["messages"]
    assert sent[-3:] == messages[-3:]
    assert "word word" in str(sent[0])
    assert len(sent) < 6
    assert (health["conversations"], health["failures"]) == (0, {})


async def test_a_stream_is_passed_on_and_its_usage_read() -> None:
    """A stream is passed on with the same bytes, and the usage in it is counted."""
    pieces = [
        b'data: {"choices": []}\n\n',
        b'data: {"usage": {"prompt_tokens": 500, "comple',
        b'tion_tokens": 5}}\n\ndata: [DONE]\n\n',
    ]
    with ScriptedUpstream(events(*pieces)) as upstream:
        async with in_process(upstream) as client:
            async with client.stream("POST", CHAT, content=body_of(tool_chat(2), stream=True)) as reply:
                assert b"".join([piece async for piece in reply.aiter_raw()]) == b"".join(pieces)
                assert reply.headers["content-type"] == "text/event-stream"
            metrics = (await client.get("/metrics")).text
    assert "compaction_gateway_prompt_tokens_total 500" in metrics


def test_no_chunk_waits_for_the_next() -> None:
    """Each chunk of a stream reaches the client before the upstream sends the next one."""
    received = [threading.Event() for _ in range(4)]
    late: list[bool] = []

    def one_by_one(handler: Handler, got: Got) -> None:
        handler.begin(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")])
        for number, event in enumerate(received):
            handler.chunk(b"data: %d" % number)
            late.append(not event.wait(20))
        handler.wfile.write(b"0\r\n\r\n")

    chunks: list[bytes] = []
    with (
        ScriptedUpstream(one_by_one) as upstream,
        serving(upstream) as url,
        httpx.stream("POST", f"{url}{CHAT}", content=body_of(tool_chat(2), stream=True), timeout=60) as reply,
    ):
        for chunk in reply.iter_raw():
            received[len(chunks)].set()
            chunks.append(chunk)
    assert chunks == [b"data: 0", b"data: 1", b"data: 2", b"data: 3"]
    assert late == [False] * 4


async def test_compressed_answers_keep_their_bytes_and_are_read() -> None:
    """A compressed answer is passed on with the same bytes and its usage read; only readable encodings are requested."""
    data = gzip.compress(json.dumps({"usage": {"prompt_tokens": 321, "completion_tokens": 1}}).encode())
    with ScriptedUpstream(answer(200, data, content_encoding="gzip")) as upstream:
        async with in_process(upstream) as client:
            request = client.build_request("POST", CHAT, content=body_of(tool_chat(1)), headers={"accept-encoding": "br, gzip"})
            reply = await client.send(request, stream=True)
            assert b"".join([piece async for piece in reply.aiter_raw()]) == data
            await reply.aclose()
            metrics = (await client.get("/metrics")).text
    assert upstream.got[0].headers["accept-encoding"] == "gzip"
    assert "compaction_gateway_prompt_tokens_total 321" in metrics


async def test_an_unknown_model_is_passed_through_until_its_provider_names_the_window() -> None:
    """With ``auto``, requests to an unknown model are sent unchanged until a length error reports the window."""
    body = body_of(tool_chat(8))
    with ScriptedUpstream(chat_reply(), answer(400, TOO_LONG), chat_reply()) as upstream:
        async with in_process(upstream, window="auto") as client:
            replies: list[httpx.Response] = [await client.post(CHAT, content=body) for _ in range(2)]
            replies.append(await client.post(CHAT, content=body))
    assert [reply.status_code for reply in replies] == [200, 200, 200]
    assert [got.body == body for got in upstream.got] == [True, True, False, False]


@pytest.mark.parametrize(
    ("variable", "excluded", "passes"),
    [("HTTP_PROXY", "", 1), ("ALL_PROXY", "", 1), ("HTTP_PROXY", "*", 0), ("HTTP_PROXY", "127.0.0.1", 0)],
)
async def test_the_proxy_of_the_environment(variable: str, excluded: str, passes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests go through the proxy that the environment names, unless it excludes the upstream."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    with ScriptedUpstream(chat_reply()) as upstream, ScriptedUpstream(chat_reply()) as proxy:
        monkeypatch.setenv(variable, proxy.url)
        monkeypatch.setenv("NO_PROXY", excluded)
        async with in_process(upstream) as client:
            reply = await client.post(
                "/v1/chat/completions", json={"model": "m", "messages": [{"role": "user", "content": "hi"}]}
            )
    assert (reply.status_code, len(proxy.got), len(upstream.got)) == (200, passes, 1 - passes)
    assert all(got.path == f"{upstream.url}/v1/chat/completions" for got in proxy.got)

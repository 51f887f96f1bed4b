"""Each request is answered, counted and logged once, with the reason for whatever was done."""

from __future__ import annotations

import contextlib
import gzip
import json
import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import attrs
import httpx
import pytest

from compaction import MessageIndex, presets
from compaction.strategies import Failed
from tests.support.gateways import (
    CHAT,
    TOO_LONG,
    Answer,
    Got,
    Handler,
    ScriptedUpstream,
    Served,
    answer,
    body_of,
    chat_reply,
    client_of,
    events,
    lifespan,
    resets,
    served,
    serving,
    settings_of,
    tool_chat,
)

REFUSED = answer(400, {"error": {"message": "invalid"}})
NO_ANSWER = "ServerDisconnectedError"
SIGNED = "AWS4-HMAC-SHA256 Credential=AKIA/20261124/us-east-1/bedrock/aws4_request, Signature=0"
SHORT, LONG = body_of(tool_chat(2)), body_of(tool_chat(20))
CLAUDE = [{"role": "user" if place % 2 == 0 else "assistant", "content": f"part {place} " * 60} for place in range(31)]


@attrs.frozen
class Told(Served):
    """The outcome of some requests, with the log."""

    log: list[dict[str, Any]]


async def told(caplog: pytest.LogCaptureFixture, script: list[Answer], *bodies: bytes, **options: Any) -> Told:
    """Send these bodies one after the other."""
    caplog.set_level(logging.INFO, "compaction.gateway")
    began = time.monotonic()
    found = await served(script, *bodies, **options)
    log = [json.loads(record.message) for record in caplog.records if record.name == "compaction.gateway"]
    assert len(log) == len(bodies)
    for line in log:
        seconds, added = line.pop("seconds", 0.0), line.pop("added_seconds", 0.0)
        assert 0 <= added <= seconds <= time.monotonic() - began
        assert seconds == round(seconds, 4)
    assert sum(each["count"] for each in found.status["requests"]) == len(bodies)
    return Told(found.replies, found.got, found.status, log)


async def test_a_conversation_is_described(caplog: pytest.LogCaptureFixture) -> None:
    """It says what was sent, what was left out, and what the provider reported."""
    found = await told(caplog, [chat_reply(tokens=400), chat_reply(tokens=400), chat_reply(tokens=1_500)], SHORT, SHORT, LONG)
    (conversation,) = found.status["conversations"]
    about = {"route": "chat", "status": 200, "model": "m", "window": 2_000, "conversation": conversation["id"]}
    short, again, long = found.log
    assert short == {**about, "tokens": short["tokens"], "prompt_tokens": 400, "completion_tokens": 1}
    assert again == {**short, "tokens": 400}  # as the provider counted them
    sizes = {"tokens": long["tokens"], "left_out": conversation["tokens_saved"], "prompt_tokens": 1_500, "completion_tokens": 1}
    assert long == {**about, **sizes, "compacted": True}
    assert (conversation["requests"], conversation["prompt_tokens"]) == (3, 2_300)
    assert 0 < conversation["most_seconds"] <= conversation["seconds_total"]
    assert found.counts == {}


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


UNREAD = {"route": "chat", "status": 200}
STORED = json.dumps({"store": True, "input": [{"role": "user", "content": "x"}]}).encode()
PACKED, LARGE = {"content-encoding": "gzip"}, gzip.compress(b" " * 2_000, mtime=0)


@pytest.mark.parametrize(
    ("body", "options", "line", "counts"),
    [
        (b"{", {}, {**UNREAD, "why": "not JSON"}, {"passed_through": {"not JSON": 1}}),
        (body_of([]), {}, {**UNREAD, "why": "no messages"}, {"passed_through": {"no messages": 1}}),
        (LARGE, {"max_body": 1_000, "headers": PACKED}, {**UNREAD, "why": "too large"}, {"passed_through": {"too large": 1}}),
        (SHORT, {"window": "auto"}, {**UNREAD, "why": "unknown window"}, {"passed_through": {"unknown window": 1}}),
        (body_of([7]), {}, {**UNREAD, "why": "InvalidMessage"}, {"failures": {"chat: InvalidMessage": 1}}),
        (SHORT, {"headers": {"authorization": SIGNED}}, {**UNREAD, "why": "signed"}, {"passed_through": {"signed": 1}}),
        (STORED, {"path": "/v1/responses"}, {**UNREAD, "route": "responses", "why": "store"}, {"passed_through": {"store": 1}}),
        (SHORT, {"max_body": 10}, {"route": "chat", "status": 413}, {}),
        (SHORT, {"path": "/v1/completions"}, {"route": "other", "status": 200, "method": "POST", "why": "unknown path"}, ...),
        (SHORT, {"path": "/v1/embeddings"}, {"route": "other", "status": 200, "method": "POST"}, {}),
    ],
)
async def test_a_request_without_a_conversation_is_described(
    body: bytes, options: dict[str, Any], line: dict[str, Any], counts: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has the reason. The bytes are sent as they came, and the page shows no conversation."""
    found = await told(caplog, [answer(200, {})], body, **options)
    assert found.log == [line]
    assert found.counts == ({"passed_through": {"unknown path": 1}} if counts is ... else counts)
    assert [got.body for got in found.got] == ([] if line["status"] == 413 else [body])
    assert found.status["conversations"] == []


async def test_a_fault_while_reading_is_counted(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compaction.gateway.conversations.read_request", lambda text, key: 1 // 0)
    found = await told(caplog, [answer(200, {})], LONG)
    assert found.got[0].body == LONG
    assert found.log == [{**UNREAD, "why": "ZeroDivisionError"}]
    assert found.counts == {"failures": {"reading: ZeroDivisionError": 1}}


@pytest.mark.parametrize("status", [299, 300, 400, 502])
async def test_only_answers_with_success_count(status: int, caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    """After any other answer, neither usage nor a request of the conversation is noted, and nothing is recorded."""
    usage = {"usage": {"prompt_tokens": 300, "completion_tokens": 1}}
    found = await told(caplog, [answer(status, usage)], SHORT, record=tmp_path)
    assert found.replies[0].status_code == found.log[0]["status"] == status
    assert ("prompt_tokens" in found.log[0]) is (status == 299)
    assert len(found.status["conversations"]) == (status == 299)
    assert len(names_in(tmp_path)) == (status == 299)
    assert found.log[0]["conversation"]


async def test_no_answer_is_described(caplog: pytest.LogCaptureFixture) -> None:
    """The log and the counts name the kind of failure, and the request is not sent again."""
    for path in (CHAT, "/v1/embeddings"):
        caplog.clear()
        found = await told(caplog, [resets], SHORT, path=path)
        assert (found.replies[0].status_code, found.log[0]["status"], found.log[0]["error"]) == (502, 502, NO_ANSWER)
        assert found.counts == {"failures": {f"upstream: {NO_ANSWER}": 1}}
        assert len(found.got) == 1


async def test_a_shadow_is_described(caplog: pytest.LogCaptureFixture) -> None:
    """The saving of a cut that is not made is logged, but counts as nothing; a length error is passed on."""
    found = await told(caplog, [chat_reply(tokens=90_000), answer(400, TOO_LONG)], LONG, LONG, shadow=True)
    assert found.log[0]["tokens"] == found.log[1]["tokens"]  # the report is of another request than was counted
    assert [got.body for got in found.got] == [LONG, LONG]
    assert [(line["why"], line.get("compacted"), line["left_out"] > 0) for line in found.log] == [("shadow", None, True)] * 2
    assert found.counts == {"passed_through": {"shadow": 2}}
    totals = found.status["totals"]
    assert (totals["cuts"], totals["tokens_saved"], found.status["conversations"][0]["requests"]) == (1, 0, 1)
    assert found.replies[1].status_code == 400


@pytest.mark.parametrize(
    ("status", "said"),
    [(status, TOO_LONG) for status in (401, 403, 404, 409, 429, 502, 503, 529)]
    + [(status, {"error": {"message": "no such tool"}}) for status in (422, 500)],
)
async def test_other_refusals_are_passed_on(status: int, said: Any, caplog: pytest.LogCaptureFixture) -> None:
    """They keep their headers, and are not sent again: only 400 is about the messages, whatever the text says of a length."""
    found = await told(caplog, [answer(status, said, retry_after="7")], LONG)
    (reply,) = found.replies
    assert (reply.status_code, reply.json(), reply.headers["retry-after"]) == (status, said, "7")
    assert (len(found.got), found.log[0].get("retried"), found.counts) == (1, None, {})


async def test_a_length_error_is_described(caplog: pytest.LogCaptureFixture) -> None:
    """The second request is logged. Without figures, three quarters of what was refused are taken for the window."""
    found = await told(caplog, [answer(400, TOO_LONG), chat_reply()], LONG, window=100_000)
    (line,) = found.log
    assert (line["retried"], line["status"], line["compacted"], line["window"]) == ("length", 200, True, 900)
    assert line["left_out"] > 0
    assert found.counts == {"retries": {"length": 1}, "failures": {"too long for the upstream": 1}}
    caplog.clear()
    vague = answer(500, {"error": {"message": "the input length exceeds the context length"}})
    found = await told(caplog, [vague, chat_reply()], LONG, window=100_000)
    (window,) = found.status["windows"].values()
    assert found.log[0]["retried"] == "length"
    assert 1_000 < found.log[0]["window"] == window < 100_000


@pytest.mark.parametrize(
    "then",
    [resets, answer(400, {"error": {"message": "still"}}), answer(300, {"error": {"message": "still"}})],
    ids=["no answer", "refused", "redirected"],
)
async def test_a_second_refusal_proves_nothing(then: Answer, caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    """Both refusals are logged and counted, and the next request is compacted again."""
    found = await told(caplog, [REFUSED, then, chat_reply()], LONG, LONG, cases=tmp_path)
    assert [line.get("retried") for line in found.log] == ["refused", None]
    assert [line.get("compacted") for line in found.log] == [True, True]
    assert [len(got.body) < len(LONG) for got in found.got] == [True, False, True]
    assert found.counts["retries"] == {"refused": 1}
    assert found.counts.get("failures", {}) == ({f"upstream: {NO_ANSWER}": 1} if then is resets else {})
    assert found.replies[0].json()["error"]["message"] == ("invalid" if then is resets else "still")
    assert names_in(tmp_path) == []


async def test_a_conversation_that_is_left_alone_is_described(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    """It is left alone from the request that was refused only as it was compacted, until its next length error."""
    cases, now = tmp_path / "cases", 12.3456
    reply = chat_reply(tokens=600)
    script = [REFUSED, reply, reply, answer(400, TOO_LONG), reply, reply]
    found = await told(caplog, script, LONG, LONG, LONG, LONG, cases=cases, clock=lambda: now)
    assert [line.get("why") for line in found.log] == ["refused as it was compacted", "left alone", None, None]
    assert [line.get("retried") for line in found.log] == ["refused", None, "length", None]
    assert [line.get("compacted") for line in found.log] == [None, None, True, True]
    assert found.counts["passed_through"] == {"left alone": 2}
    assert found.status["conversations"][0]["is_left_alone"] is False
    assert names_in(cases) == ["chat-12345.json"]
    caplog.clear()
    blocked = await told(caplog, script[:2], LONG, cases=cases / "chat-12345.json")
    assert blocked.status["conversations"][0]["is_left_alone"] is True
    assert blocked.counts["failures"] == {"a compacted request was refused": 1, "writing a case: FileExistsError": 1}


async def test_the_conversations_that_are_left_alone_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    """They are as many as those in memory. Beyond that, the first one is compacted again."""
    bodies = [body_of(tool_chat(20, name=name)) for name in "ab"]
    script = [REFUSED, chat_reply(), REFUSED, chat_reply(), chat_reply()]
    for limit, whys in ((2, ["left alone", "left alone"]), (1, ["left alone", None])):
        caplog.clear()
        found = await told(caplog, script, *bodies, *reversed(bodies), most_conversations=limit)
        assert [line.get("why") for line in found.log[2:]] == whys


@pytest.mark.parametrize(
    ("script", "sent"),
    [
        ([answer(200, {"input_tokens": 7})], [True]),
        ([REFUSED, answer(200, {"input_tokens": 9})], [True, False]),
        ([answer(400, TOO_LONG)], [True]),
    ],
    ids=["counted", "refused as compacted", "too long"],
)
async def test_a_token_count_is_no_request_of_a_conversation(
    script: list[Answer], sent: list[bool], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """It is counted and logged, but not recorded, and changes nothing for the next one."""
    options = {"path": "/v1/messages/count_tokens", "record": tmp_path / "runs", "cases": tmp_path / "cases"}
    found = await told(caplog, script, body_of(CLAUDE), **options)
    assert [len(got.json["messages"]) < len(CLAUDE) for got in found.got] == sent
    assert found.status["conversations"] == []
    assert found.status["requests"] == [{"route": "count_tokens", "status": found.log[0]["status"], "count": 1}]
    assert found.log[0]["window"] == 2_000
    assert names_in(tmp_path) == ["runs"]
    assert names_in(tmp_path / "runs") == []


async def test_what_cannot_be_made_shorter_is_passed_on(caplog: pytest.LogCaptureFixture) -> None:
    """A length error of one message, which must stay, is the client's answer; the failure is counted."""
    found = await told(caplog, [answer(400, TOO_LONG)], body_of([{"role": "user", "content": "hi"}]))
    assert (found.replies[0].json(), len(found.got)) == (TOO_LONG, 1)
    assert found.counts["failures"]["compacting further: BudgetUnsatisfiable"] == 1


async def test_failures_after_the_answer_are_counted(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    """A recording that cannot be written, and usage that cannot be right; the client has its answer."""
    folder = tmp_path / "runs"

    def breaks(handler: Handler, got: Got) -> None:
        folder.rmdir()
        chat_reply()(handler, got)

    found = await told(caplog, [breaks, chat_reply(tokens=90_000)], SHORT, SHORT, record=folder)
    assert [reply.status_code for reply in found.replies] == [200, 200]
    assert found.counts == {"failures": {"recording: FileNotFoundError": 2}, "passed_through": {"usage not believed": 1}}


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens"])
async def test_a_failure_of_the_strategy_is_described(path: str, caplog: pytest.LogCaptureFixture) -> None:
    """Log and counts name its kind, and quote nothing. A strategy that raises changes nothing."""

    def failing(index: MessageIndex) -> Iterator[Any]:
        yield Failed("Summarization", TimeoutError("a secret"), "dropped")

    def broken(index: MessageIndex) -> Iterator[Any]:
        raise ZeroDivisionError("a secret")

    for strategy, says in ((failing, "Summarization: TimeoutError; dropped"), (broken, "the strategy: ZeroDivisionError")):
        caplog.clear()
        body = body_of(CLAUDE)
        found = await told(caplog, [answer(200, {})], body, path=path, strategy=lambda window, made=strategy: made)
        assert found.log[0]["failures"][0] == says
        is_counted = strategy is broken or path == "/v1/messages"
        assert found.status["failures"] == ({says.partition(";")[0]: len(found.log[0]["failures"])} if is_counted else {})
        assert (found.got[0].body == body) is (strategy is broken)
        assert "secret" not in str(found.status)


@pytest.mark.parametrize("awaits", [False, True])
async def test_a_strategy_without_a_model_runs_in_a_thread(awaits: bool, caplog: pytest.LogCaptureFixture) -> None:
    """Streams go on meanwhile. A token count runs in a thread even if requests may await a model."""
    threads: set[int] = set()

    def strategy(index: MessageIndex) -> Iterator[Any]:
        threads.add(threading.get_ident())
        yield from presets.adaptive(2_000)(index)

    await told(caplog, [answer(200, {})], body_of(CLAUDE), path="/v1/messages/count_tokens", strategy=lambda window: strategy)
    assert threads
    assert threading.get_ident() not in threads
    caplog.clear()
    found = await told(caplog, [chat_reply()], LONG, strategy=lambda window: strategy, awaits=awaits)
    assert (threading.get_ident() in threads) is awaits
    assert len(found.got[0].body) < len(LONG)


@pytest.mark.parametrize(("path", "route"), [(CHAT, "chat"), ("/v1/embeddings", "other")])
async def test_a_client_that_leaves_or_stops_is_described(
    path: str, route: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client may leave while it sends its body: no server sends the status that is logged. Nothing reaches the upstream."""
    monkeypatch.setattr("compaction.gateway.exchange._IDLE_SECONDS", 0.05)
    caplog.set_level(logging.INFO, "compaction.gateway")
    scope = {"type": "http", "method": "POST", "path": path, "headers": [(b"host", b"localhost"), (b"content-length", b"9")]}
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message.get("status"))

    with ScriptedUpstream(answer(200, {})) as upstream:
        async with lifespan(settings_of(upstream.url, body_seconds=0.05)) as app, client_of(app) as client:
            for left in ([{"type": "http.disconnect"}], list[Any]()):
                messages = [{"type": "http.request", "body": b"{", "more_body": True}, *left]

                async def receive(messages: list[Any] = messages) -> Any:
                    return messages.pop(0) if messages else await anyio.sleep_forever()

                await app(scope, receive, send)
            status = (await client.get("/status.json")).json()
    found = [json.loads(record.message) for record in caplog.records]
    assert [(line["status"], line["error"]) for line in found] == [(499, "ClientGone"), (408, "SlowBody")]
    assert status["requests"] == [{"route": route, "status": code, "count": 1} for code in (499, 408)]
    assert status["failures"] == {}
    assert sent == [408, None]
    assert [got for got in upstream.got if got.path == CHAT] == []


def test_a_client_that_leaves_in_mid_answer_is_recorded(tmp_path: Path) -> None:
    """Its conversation is, with the usage that the answer had reported so far."""

    def endless(handler: Handler, got: Got) -> None:
        handler.begin(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")])
        with contextlib.suppress(OSError):
            while not handler.server.upstream.closing.wait(0.01):
                handler.chunk(b'data: {"usage": {"prompt_tokens": 300, "completion_tokens": 5}}\n\n')

    with ScriptedUpstream(endless) as upstream, serving(upstream, record=tmp_path) as url:
        with httpx.stream("POST", f"{url}{CHAT}", content=SHORT) as reply:
            assert next(reply.iter_raw()).startswith(b"data:")
        while not (status := httpx.get(f"{url}/status.json").json())["requests"]:
            time.sleep(0.01)
    assert status["failures"] == {}
    assert status["conversations"][0]["prompt_tokens"] == 300
    (path,) = tmp_path.iterdir()
    assert len(json.loads(path.read_text())["messages"]) == len(tool_chat(2))


async def test_a_stream_that_stops_is_described(caplog: pytest.LogCaptureFixture) -> None:
    """The part that came counts as an answer; the usage that it reported is noted."""
    stops = events(b'data: {"usage": {"prompt_tokens": 300, "completion_tokens": 5}}\n\n', ends=False)
    found = await told(caplog, [stops], SHORT)
    assert (found.log[0]["status"], found.log[0]["error"], found.log[0]["prompt_tokens"]) == (200, "ClientPayloadError", 300)
    assert found.counts == {"failures": {"upstream stopped: ClientPayloadError": 1}}

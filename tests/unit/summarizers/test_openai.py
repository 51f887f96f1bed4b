"""`OpenAISummarizer` with a real client and a real server that fails in many ways, on asyncio, trio and without a loop."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest
from openai import APIConnectionError, AsyncOpenAI, AuthenticationError, OpenAI

from compaction.errors import ConfigurationError, SummaryFailed
from compaction.summarizers import OpenAISummarizer, Summarizer, SummaryRequest
from compaction.tokens import Usage
from tests.support.chats import call, result, user
from tests.support.scripted import request_for
from tests.support.servers import (
    Answer,
    FaultServer,
    body,
    closes_early,
    error_body,
    raw,
    reply,
    slow,
    status,
    takes_at_most,
)

GOOD = "## Goal\nMove the blog.\n\n## Next Steps\n- copy the database"
TALK = [
    {"role": "user", "content": "Please move the blog to the new host before Friday. " * 30},
    {"role": "assistant", "content": "I have copied the files and compared their checksums. " * 30},
]


def asked(summarizer: Summarizer, *, messages: Sequence[Any] = TALK, **options: Any) -> SummaryRequest:
    return request_for(summarizer, messages, **options)


def summarizer_of(server: FaultServer, **options: Any) -> OpenAISummarizer:
    """A summarizer that uses this server and retries once."""
    settings = {"timeout": 5.0, "max_retries": 1, **options}
    return OpenAISummarizer("first", base_url=server.url, api_key="none", **settings)


async def summary(server: FaultServer, **options: Any) -> str:
    request = {name: options.pop(name) for name in ("budget", "messages", "previous", "focus") if name in options}
    summarizer = summarizer_of(server, **options)
    return str(await summarizer.summarize(asked(summarizer, **request)))  # type: ignore[misc]


FAULTS: list[Any] = [
    # the script, the error message, and the number of requests
    pytest.param(slow(30), "did not answer within 0.5 s", 1, id="timeout"),
    pytest.param(closes_early(), "could not be reached, or closed the connection (peer closed", 2, id="closes mid-body"),
    pytest.param(status(400, "no such parameter"), "answered HTTP 400: no such parameter", 1, id="400"),
    pytest.param(status(401, "bad key"), "answered HTTP 401: bad key", 1, id="401"),
    pytest.param(status(403, "not yours"), "answered HTTP 403: not yours", 1, id="403"),
    pytest.param(status(404, "no model", code="model_not_found"), "HTTP 404: no model [model_not_found]", 1, id="404"),
    pytest.param(status(408), "answered HTTP 408: scripted", 2, id="408"),
    pytest.param(status(409), "answered HTTP 409: scripted", 2, id="409"),
    pytest.param(status(413, "too big"), "answered HTTP 413: too big", 2, id="413"),
    pytest.param(status(429), "answered HTTP 429: scripted", 2, id="429"),
    pytest.param(status(429, "pay first", code="quota_exceeded"), "HTTP 429: pay first [quota_exceeded]", 2, id="quota"),
    pytest.param(status(429, headers={"retry-after": "3600"}), "answered HTTP 429: scripted", 1, id="wait"),
    pytest.param(status(500), "answered HTTP 500: scripted", 2, id="500"),
    pytest.param(status(503), "answered HTTP 503: scripted", 2, id="503"),
    pytest.param(raw(b'{"choices": [{"mess'), "sent a body that cannot be read (", 2, id="malformed JSON"),
    pytest.param(raw(b""), "sent a body that cannot be read (", 2, id="no body"),
    pytest.param(raw(b"<html>Bad Gateway</html>", content_type="text/html"), "not JSON: <html>Bad Gateway", 2, id="a page"),
    pytest.param(body({"id": "x", "choices": []}), "sent an answer without a message in it", 2, id="empty choices"),
    pytest.param(body({"choices": None}), "sent an answer without a message in it", 2, id="null choices"),
    pytest.param(body([1, 2]), "sent an answer without a message in it", 2, id="a list"),
    pytest.param(error_body("overloaded", code=503), "sent an error as its answer: overloaded [503]", 2, id="error 503"),
    pytest.param(error_body("no credit", code=402), "sent an error as its answer: no credit [402]", 1, id="error object"),
    pytest.param(reply(None, refusal="I will not."), "first refused (I will not.)", 1, id="refusal"),
    pytest.param(reply(None), "gave an empty answer", 2, id="no text"),
]
each_fault = pytest.mark.parametrize(("answer", "says", "requests"), FAULTS)


@each_fault
async def test_every_fault_is_a_summary_that_failed(answer: Answer, says: str, requests: int) -> None:
    """Only transient faults are retried."""
    with FaultServer(answer) as server:
        with pytest.raises(SummaryFailed) as raised:
            await summary(server, timeout=0.5 if "0.5 s" in says else 5.0)
        assert says in str(raised.value)
        assert len(server.requests) == requests


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(status(401, "bad key of mx-4711"), id="status"),
        pytest.param(raw(b"<html>mx-4711</html>", content_type="text/html"), id="a page"),
        pytest.param(error_body("mx-4711 has no credit", code=402), id="error object"),
        pytest.param(reply(None, refusal="I will not help mx-4711."), id="refusal"),
    ],
)
async def test_the_callers_redaction_reaches_error_texts(answer: Answer) -> None:
    """An error of a server, or a refusal, is redacted as the conversation is."""
    with FaultServer(answer) as server:
        with pytest.raises(SummaryFailed) as raised:
            await summary(server, redact=lambda text: text.replace("mx-47", "[MEMBER]"))
        assert "[MEMBER]11" in str(raised.value)


@each_fault
def test_every_fault_without_a_loop(answer: Answer, says: str, requests: int) -> None:
    with FaultServer(answer) as server, OpenAI(base_url=server.url, api_key="none") as client:
        summarizer = OpenAISummarizer("first", client=client, timeout=0.5 if "0.5 s" in says else 5.0, max_retries=1)
        with pytest.raises(SummaryFailed) as raised:
            summarizer.summarize(asked(summarizer))
        assert says in str(raised.value)
        assert len(server.requests) == requests + ("0.5 s" in says)  # that client retries after a timeout


@pytest.mark.parametrize(
    "fault", [status(503), status(429), closes_early(), raw(b"{"), body({"choices": []}), error_body(code=500)]
)
async def test_after_a_fault_that_passes_the_same_request_is_sent_again(fault: Answer) -> None:
    with FaultServer(fault, reply(GOOD)) as server:
        assert await summary(server) == GOOD
        assert server.requests[0] == server.requests[1]


@pytest.mark.parametrize("bad", [reply(None), reply(GOOD, finish="length"), reply("Sorry."), reply("word " * 900)])
async def test_a_bad_answer_then_a_good_one(bad: Answer) -> None:
    with FaultServer(bad, reply(GOOD)) as server:
        assert await summary(server) == GOOD
        assert "An earlier answer could not be used." not in server.prompts[0]
        assert "An earlier answer could not be used." in server.prompts[1]


async def test_the_exception_of_the_client_is_the_cause() -> None:
    with FaultServer(status(401)) as server:
        with pytest.raises(SummaryFailed) as raised:
            await summary(server)
        assert isinstance(raised.value.__cause__, AuthenticationError)
    with pytest.raises(SummaryFailed) as raised:
        await summary(server)
    assert isinstance(raised.value.__cause__, APIConnectionError)


async def test_an_answer_in_parts_is_read() -> None:
    message = {"role": "assistant", "content": [{"type": "text", "text": GOOD}]}
    with FaultServer(body({"choices": [{"index": 0, "message": message, "finish_reason": None}]})) as server:
        assert await summary(server) == GOOD


@pytest.mark.parametrize("client", [True, False], ids=["a client of the caller", "a new client"])
async def test_the_client_sends_again(client: bool) -> None:
    with FaultServer(status(503)) as server:
        async with AsyncOpenAI(base_url=server.url, api_key="none", max_retries=5) as own:
            options: dict[str, Any] = {"client": own} if client else {"base_url": server.url, "api_key": "none"}
            summarizer = OpenAISummarizer("first", max_retries=3, **options)
            with pytest.raises(SummaryFailed, match="answered HTTP 503"):
                await summarizer.summarize(asked(summarizer))  # type: ignore[misc]
        assert len(server.requests) == 4


async def test_retries_end_at_the_timeout() -> None:
    """The timeout includes all retries and the waits that a server demands."""
    with FaultServer(status(429, headers={"retry-after": "60"})) as server:
        with pytest.raises(SummaryFailed, match=r"did not answer within 0\.3 s"):
            await summary(server, timeout=0.3)
        assert len(server.requests) == 1


async def test_slow_drip_is_a_timeout() -> None:
    """The timeout includes the body of the answer, even if the server sends it slowly."""

    def drip(handler: Any, got: Any) -> None:
        handler.begin(200, [("content-length", "10000")])
        while not handler.server.upstream.closing.wait(0.05):
            handler.wfile.write(b" ")

    with FaultServer(drip) as server, pytest.raises(SummaryFailed, match=r"did not answer within 0\.3 s"):
        await summary(server, timeout=0.3, max_retries=0)


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        ({"options": {"temperature": 0}, "headroom": 2.0}, {"max_tokens": 400, "temperature": 0}),
        ({"max_tokens_field": "max_completion_tokens"}, {"max_completion_tokens": 300}),
    ],
    ids=["options", "renamed"],
)
async def test_the_request(options: dict[str, Any], sent: dict[str, Any]) -> None:
    with FaultServer(reply(GOOD)) as server:
        await summary(server, **options)
        [request] = server.requests
    del request["messages"]
    assert request == {"model": "first", **sent}


async def test_secrets_do_not_leave() -> None:
    """Secrets in the conversation, the earlier summary and the focus are not sent, and one in the answer is redacted."""
    secret = "sk-" + "a1b2c3d4" * 5
    messages = [
        user(f"My key is {secret}. " + "Use it. " * 200),
        call("c", name="login", arguments=json.dumps({"key": f"\n{secret}"})),
        result("c", f"OPENAI_API_KEY={secret}"),
    ]
    with FaultServer(reply(f"{GOOD}\n- key {secret}")) as server:
        answer = await summary(server, messages=messages, previous=f"key {secret}", focus=f"the key {secret}")
        sent = json.dumps(server.requests)
    assert secret not in sent
    assert sent.count("[REDACTED:openai-key]") == 5
    assert answer == f"{GOOD}\n- key [REDACTED:openai-key]"


async def test_a_context_error_is_answered_by_parts_with_every_word() -> None:
    words = [f"word{number}" for number in range(3_000)]
    messages = [{"role": "user", "content": " ".join(words[start : start + 100])} for start in range(0, 3_000, 100)]
    for refusal in (400, 413):
        with FaultServer(takes_at_most(12_000, reply(GOOD), http=refusal)) as server:
            assert await summary(server, messages=messages) == GOOD
            read = " ".join(prompt for prompt in server.prompts if len(prompt) < 12_000)
        assert [word for word in words if word not in read] == []


async def test_usage_is_reported() -> None:
    """The usage of every reply is reported, also of a rejected one; a missing or malformed usage is ignored."""
    seen: list[Usage] = []
    with FaultServer(
        reply("Sorry.", usage={"prompt_tokens": 50, "completion_tokens": 3}),
        reply(GOOD, usage={"prompt_tokens": 60, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 48}}),
    ) as server:
        await summary(server, on_usage=seen.append)
    assert seen == [Usage(50, 3), Usage(60, 9, cached_tokens=48)]
    for usage in (None, {"prompt_tokens": "many"}, 5):
        with FaultServer(reply(GOOD, usage=usage)) as server:
            assert await summary(server, on_usage=seen.append) == GOOD
    assert len(seen) == 2


async def test_a_client_of_the_caller_stays_open() -> None:
    with FaultServer(status(500), reply(GOOD)) as server:
        async with AsyncOpenAI(base_url=server.url, api_key="none", max_retries=5) as client:
            summarizer = OpenAISummarizer("first", client=client, max_retries=0)
            with pytest.raises(SummaryFailed):
                await summarizer.summarize(asked(summarizer))  # type: ignore[misc]
            assert await summarizer.summarize(asked(summarizer)) == GOOD  # type: ignore[misc]
            assert not client.is_closed()
        assert len(server.requests) == 2


async def test_cancelled_while_it_waits() -> None:
    for script in (slow(30), status(503, headers={"retry-after": "30"})):
        with FaultServer(script) as server:
            with anyio.fail_after(20):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(partial(summary, server, timeout=30.0))
                    await anyio.to_thread.run_sync(server.asked.wait, 20)
                    tasks.cancel_scope.cancel()
            assert len(server.requests) == 1


async def test_other_errors_are_not_hidden() -> None:
    def broken(usage: Usage) -> None:
        raise RuntimeError("the meter is full")

    with FaultServer(reply(GOOD)) as server, pytest.raises(RuntimeError, match="the meter is full"):
        await summary(server, on_usage=broken)


async def test_an_option_that_the_client_does_not_know_is_an_error() -> None:
    with FaultServer(reply(GOOD)) as server, pytest.raises(ConfigurationError, match="does not accept these 'options'"):
        await summary(server, options={"temprature": 0})


async def test_without_a_key_the_error_says_what_to_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    summarizer = OpenAISummarizer("first", base_url="http://127.0.0.1:1/v1")
    with pytest.raises(ConfigurationError, match="and an api_key"):
        await summarizer.summarize(asked(summarizer))  # type: ignore[misc]


async def test_key_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    def telling(handler: Any, got: Any) -> None:
        told.append(handler.headers["authorization"])
        reply(GOOD)(handler, got)

    with FaultServer(telling) as server:
        summarizer = OpenAISummarizer("first", base_url=server.url, api_key_env="SUMMARY_KEY")
        for key in ("one", "two"):
            monkeypatch.setenv("SUMMARY_KEY", key)
            assert await summarizer.summarize(asked(summarizer)) == GOOD  # type: ignore[misc]
        monkeypatch.delenv("SUMMARY_KEY")
        with pytest.raises(ConfigurationError, match="SUMMARY_KEY is not set"):
            await summarizer.summarize(asked(summarizer))  # type: ignore[misc]
    assert told == ["Bearer one", "Bearer two"]


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("http://[::1", ConfigurationError),
        ("no address", SummaryFailed),
        ("ftp://127.0.0.1/v1", SummaryFailed),
        ("http://127.0.0.1:99999/v1", SummaryFailed),
    ],
)
async def test_addresses_that_are_none(url: str, error: type[Exception]) -> None:
    summarizer = OpenAISummarizer("first", base_url=url, api_key="none", max_retries=0)
    with pytest.raises(error):
        await summarizer.summarize(asked(summarizer))  # type: ignore[misc]


async def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    summarizer = OpenAISummarizer("first", api_key="none")
    with pytest.raises(ConfigurationError, match="install openai"):
        await summarizer.summarize(asked(summarizer))  # type: ignore[misc]


@pytest.mark.parametrize(
    "options",
    [
        *({"model": None}, {"model": ""}, {"client": object()}, {"api_key_env": ""}),
        *(
            {"client": "sync", **more}
            for more in ({"base_url": "http://127.0.0.1"}, {"api_key": "none"}, {"api_key_env": "KEY"})
        ),
        {"api_key": "none", "api_key_env": "KEY"},
        *({"timeout": 0}, {"max_retries": -1}, {"window": 0}, {"headroom": 0.9}, {"headroom": "2"}, {"max_parts": 0}),
        *({"max_tokens_field": "max_output_tokens"}, {"rules_role": "assistant"}, {"options": {"stream": True}}),
    ],
    ids="-".join,
)
def test_bad_options(options: dict[str, Any]) -> None:
    with OpenAI(api_key="none") as client:
        arguments = {"model": "first", **options}
        if arguments.get("client") == "sync":
            arguments["client"] = client
        with pytest.raises(ConfigurationError):
            OpenAISummarizer(**arguments)


def test_it_is_a_value() -> None:
    """The cache key contains the options that can change an answer, such as the window, and not the timeout."""
    summarizer = OpenAISummarizer("first", base_url="http://127.0.0.1:8080/v1", api_key="hunter2x", window=8_192)
    assert pickle.loads(pickle.dumps(summarizer)) == summarizer
    assert attrs.evolve(summarizer, window=8_192) == summarizer
    assert "hunter2x" not in repr(summarizer)
    assert "window=8192" in repr(summarizer)
    assert "hunter2x" not in summarizer.cache_key
    assert attrs.evolve(summarizer, window=4_096).cache_key != summarizer.cache_key
    assert attrs.evolve(summarizer, timeout=5).cache_key == summarizer.cache_key
    assert attrs.evolve(summarizer, redact=hidden).cache_key != summarizer.cache_key
    with pytest.raises(ConfigurationError, match="has no name that distinguishes it"):
        _ = attrs.evolve(summarizer, redact=lambda text: text).cache_key


def hidden(text: str) -> str:
    return "*" * len(text)


PAGE = Path(__file__).resolve().parents[3] / "docs" / "prompts.md"
ON_THE_PAGE = [
    user("Fix the failing test in tests/test_api.py. Do not change the public API."),
    call("c1", name="shell", arguments=json.dumps({"cmd": "pytest -x --token ghp_" + "a1b2c3d4e5" * 4})),
    result("c1", "FAILED tests/test_api.py::test_create - KeyError: 'owner'\n" * 3),
]


def test_the_page_shows_the_request() -> None:
    """The request on the page equals the one that is sent, so that a changed prompt needs a changed page."""
    with (
        FaultServer(reply("## Goal\nA test.\n## Done\n(none)")) as server,
        OpenAI(base_url=server.url, api_key="none") as client,
    ):
        summarizer = OpenAISummarizer("m", client=client)
        summarizer.summarize(request_for(summarizer, ON_THE_PAGE, budget=2_000))
        messages = server.requests[0]["messages"]
    sent = "\n\n".join(f"--- {message['role']} ---\n{message['content']}" for message in messages)
    assert PAGE.read_text(encoding="utf-8").partition("```text\n")[2].partition("\n```\n")[0] == sent

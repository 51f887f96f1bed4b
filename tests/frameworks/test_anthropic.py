"""The Anthropic SDK: what the table of hosts does not cover of the middleware."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

pytest.importorskip("anthropic", reason="the Anthropic SDK is missing: make test-frameworks")

import anthropic
import httpx2
from anthropic import Anthropic, beta_tool

from benchmarks.hosts.script import result_text
from benchmarks.hosts.server import SUMMARY, StrictServer
from compaction import last, nothing, presets
from compaction.errors import BudgetUnsatisfiable
from compaction.integrations.anthropic import RequestCompaction
from compaction.integrations.conversation import as_async
from compaction.models import input_limit
from compaction.strategies import Clear, SlidingWindow, Summarization, ToolResult
from compaction.triggers import tokens_exceed
from tests.frameworks.turns import asked, status_of, turn_of
from tests.support.scripted import Awaited, Scripted


def client(server: StrictServer, compaction: RequestCompaction) -> Anthropic:
    return Anthropic(api_key="none", base_url=server.address, max_retries=0, middleware=[compaction])


def ask(model: Any, messages: list[Any], **options: Any) -> Any:
    return model.messages.create(model="m", max_tokens=100, messages=messages, **options)


def test_nothing_more_can_be_removed() -> None:
    """The error lists what uses the space; its cause is the provider's error."""
    compaction = RequestCompaction(presets.context_window(1_000_000), counter="chars/4", pin=lambda _: True)
    with StrictServer(window=100) as server, client(server, compaction) as model:
        with pytest.raises(BudgetUnsatisfiable) as raised:
            ask(model, asked(30))
        assert isinstance(raised.value.__cause__, anthropic.APIStatusError)
    assert server.ledger.total("over") == 1


async def test_a_thread_is_refused_and_the_runner_goes_on_without() -> None:
    """A thread that requires the server's memory gets an error with the remedy; the runner needs no change."""
    compaction = RequestCompaction(presets.context_window(2_000), counter="chars/4")
    with StrictServer(window=2_000) as server, client(server, compaction) as model:
        thread = getattr(model.beta.messages, "thread", None)
        if thread is not None:
            with pytest.raises(anthropic.BadRequestError, match="pass thread=False"):
                thread(model="m", max_tokens=100).send({"role": "user", "content": "[[c0:0]] hi"})
        hi: Any = [{"role": "user", "content": "[[c0:0]] hi"}]
        runner = model.beta.messages.tool_runner(model="m", max_tokens=100, tools=[], messages=hi)
        assert runner.until_done().stop_reason == "end_turn"
    assert server.ledger.total("requests") == 1


def test_other_requests_pass() -> None:
    seen: list[Any] = []

    def answer(request: Any, call_next: Any) -> Any:
        seen.append(request.json["messages"])
        return {"input_tokens": 1}

    compaction = RequestCompaction(SlidingWindow(keep=last(turns=1)), counter="chars/4")
    model = Anthropic(api_key="none", middleware=[compaction, answer])
    model.messages.count_tokens(model="m", messages=asked(3))
    ask(model, asked(3))
    assert [len(messages) for messages in seen] == [7, 1]
    model.close()


def test_a_tool_asks_for_compaction() -> None:
    """`compact_next` in a tool compacts the conversation of that runner before its next request, with the tool's focus."""
    scripted = Scripted(SUMMARY)
    strategy = Summarization(scripted, trigger=tokens_exceed(1_000_000), keep=last(turns=2))
    compaction = RequestCompaction(strategy, counter="chars/4")

    def look_up_price(item: str) -> str:
        """Look up what an item costs."""
        compaction.compact_next("prices")
        return result_text(item)

    with StrictServer(window=1_000_000) as server, client(server, compaction) as model:
        request: Any = {"model": "m", "max_tokens": 100, "messages": asked(40), "tools": [beta_tool(look_up_price)]}
        model.beta.messages.tool_runner(**request).until_done()
    assert {request.focus for request in scripted.requests} == {"prices"}
    assert server.ledger.total("invalid") == 0


# --- single requests --------------------------------------------------------------------------------------------------


@attrs.define
class Request:
    """A request as the SDK passes it to a middleware."""

    json: Any
    method: str = "POST"
    url: str = "/v1/messages?beta=true"
    stream: bool = False

    def copy(self, body: Any) -> Request:
        return attrs.evolve(self, json=body)


class Reply:
    """A response as the SDK passes it to a middleware. Holds state: the events that are left."""

    def __init__(self, body: Any, status: int = 200, *events: Any) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        unread: Any = content if status == 200 else self._unread(content)
        self.http_response = httpx2.Response(status, content=unread, request=httpx2.Request("POST", "http://localhost"))
        self.events = list(events)
        self._parsed = SimpleNamespace(_iterator=iter(self.events))

    def _unread(self, content: bytes) -> Any:
        """Return the body of an error, which a client has not read yet."""
        return iter([content])

    def parse(self) -> Any:
        return self._parsed


class AwaitedReply(Reply):
    """The same for a client with ``await``."""

    def __init__(self, body: Any, status: int = 200, *events: Any) -> None:
        super().__init__(body, status, *events)
        self._parsed = SimpleNamespace(_iterator=self._later())

    async def _unread(self, content: bytes) -> Any:
        yield content

    async def _later(self) -> Any:
        for event in self.events:
            yield event

    async def parse(self) -> Any:
        return self._parsed


BODY = {"model": "claude-sonnet-4-5", "messages": asked(12)}
TOO_LONG = {"type": "invalid_request_error", "message": "prompt is too long: 3000 tokens > 900 maximum"}
REFUSAL = {"type": "error", "error": TOO_LONG}
DOWN = {"type": "error", "error": {"type": "api_error", "message": "down"}}
ANSWER = {"type": "message", "usage": {"input_tokens": 9_000, "output_tokens": 5}}
NEVER = SlidingWindow(keep=last(turns=1), trigger=tokens_exceed(1_000_000))
WAYS = pytest.mark.parametrize("asynchronous", [False, True], ids=["no await", "await"])


async def sent(compaction: RequestCompaction, request: Any, *replies: Any, asynchronous: bool = False) -> tuple[Any, list[Any]]:
    """Return the response of the middleware, and the requests that it sent."""
    requests, left = list[Any](), list(replies)

    def call(request: Any) -> Any:
        requests.append(request)
        return left.pop(0)

    if asynchronous:
        return await compaction.handle_async(request, as_async(call)), requests
    return compaction.handle(request, call), requests


@pytest.mark.parametrize(
    "request_",
    [
        Request(BODY, method="GET"),
        Request(BODY, url="/v1/messages/count_tokens"),
        Request([BODY]),
        Request(None),
        Request({"model": "m"}),
        Request({"messages": "hi"}),
    ],
    ids=repr,
)
async def test_requests_that_are_not_ours(request_: Request) -> None:
    compaction = RequestCompaction(SlidingWindow(keep=last(turns=1)), counter="chars/4")
    response, requests = await sent(compaction, request_, "answer")
    assert (response, requests[0] is request_, compaction.conversations.last) == ("answer", True, None)


async def test_a_thread_is_a_bad_request() -> None:
    """A request that leaves the conversation at the server gets the error of a server without threads."""
    with pytest.raises(anthropic.BadRequestError, match="pass thread=False") as raised:
        await sent(RequestCompaction(NEVER), Request({**BODY, "thread": {"id": "t"}}))
    assert raised.value.status_code == 400
    assert raised.value.body["error"]["details"]["error_code"] == "thread_unsupported_request"  # type: ignore[index, call-overload]
    assert len((await sent(RequestCompaction(NEVER), Request({**BODY, "thread": None}), {"usage": None}))[1]) == 1


async def test_shorter_messages_are_sent() -> None:
    """A request with as many messages, one of them shorter, is another one."""
    use = {"type": "tool_use", "id": "t", "name": "look_up", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "5 euros. " * 40}
    blocks = (("user", "price?"), ("assistant", [use]), ("user", [result]))
    messages = [{"role": role, "content": content} for role, content in blocks]
    compaction = RequestCompaction(ToolResult(Clear(min_chars=1), keep=nothing), counter="chars/4")
    _, [request] = await sent(compaction, Request({"model": "m", "messages": messages}), {"usage": None})
    assert len(request.json["messages"]) == 3
    assert "5 euros" not in json.dumps(request.json)


async def test_a_request_that_needs_nothing_is_the_same_object() -> None:
    """A request is copied only if it changes. The model's name gives the window; tools and the system prompt count."""
    compaction = RequestCompaction(presets.context_window(2_000), counter="chars/4", window="auto")
    short = Request({**BODY, "messages": asked(2), "system": "Be brief. " * 20, "tools": [{"name": "look_up"}]})
    _, [same] = await sent(compaction, short, {"usage": None})
    assert same is short
    index = turn_of(compaction).index
    assert index.context.overhead_tokens == compaction.conversations.count("Be brief. " * 20, [{"name": "look_up"}])
    assert status_of(compaction).window == input_limit("claude-sonnet-4-5")
    _, [shorter] = await sent(compaction, Request({**BODY, "messages": asked(60)}), {"usage": None})
    assert (len(shorter.json["messages"]) < len(asked(60)), shorter.json["model"]) == (True, "claude-sonnet-4-5")


@WAYS
async def test_reported_usage(asynchronous: bool) -> None:
    """The usage in a message is recorded. A body that is unread or not JSON, or another middleware's answer, has none."""
    unread: Any = Reply(ANSWER)
    unread.http_response = SimpleNamespace(is_success=True, is_closed=False)
    kind = AwaitedReply if asynchronous else Reply
    without: list[Any] = [unread, kind(b"no JSON"), kind([1]), {"usage": 9}]
    for reply, tokens in (*((each, None) for each in without), (kind(ANSWER), 9_000)):
        compaction = RequestCompaction(NEVER, counter="chars/4")
        response, _ = await sent(compaction, Request(BODY), reply, asynchronous=asynchronous)
        assert response is reply
        counted = compaction.conversations.count_messages(BODY["messages"])
        assert status_of(compaction).tokens == (counted if tokens is None else tokens)


@WAYS
@pytest.mark.parametrize("whole", [False, True])
async def test_usage_of_a_stream(asynchronous: bool, whole: bool) -> None:
    """The usage of a stream is recorded at its end, also if nobody reads on."""
    begun = {"type": "message_start", "message": {"usage": {"input_tokens": 9_000}}}
    events = [begun, {"type": "message_delta", "usage": {"output_tokens": 5}}]
    compaction = RequestCompaction(NEVER, counter="chars/4")
    reply = (AwaitedReply if asynchronous else Reply)({}, 200, *events)
    response, _ = await sent(compaction, Request(BODY, stream=True), reply, asynchronous=asynchronous)
    assert response is reply
    stream = (await response.parse() if asynchronous else response.parse())._iterator
    assert status_of(compaction).tokens < 9_000
    read = [await anext(stream) if asynchronous else next(stream)]
    if whole:
        read += [event async for event in stream] if asynchronous else list(stream)
    await stream.aclose() if asynchronous else stream.close()
    assert read == events[: 1 + whole]
    assert status_of(compaction).tokens == 9_000


@WAYS
@pytest.mark.parametrize("stream", [False, True])
async def test_a_request_that_was_too_long(asynchronous: bool, stream: bool) -> None:
    """It is sent once more, shorter, with a summary that may be awaited; other errors, and a second one, are returned."""
    strategy = Summarization(Awaited(SUMMARY), trigger=tokens_exceed(1_000_000), keep=last(turns=1)) if asynchronous else NEVER
    kind, request = (AwaitedReply if asynchronous else Reply), Request(BODY, stream=stream)
    compaction = RequestCompaction(strategy, counter="chars/4")
    answer = kind(ANSWER, 200)
    response, requests = await sent(compaction, request, kind(REFUSAL, 400), answer, asynchronous=asynchronous)
    assert response is answer
    assert [len(each.json["messages"]) < len(BODY["messages"]) for each in requests] == [False, True]
    assert (status_of(compaction).tokens == 9_000) is not stream
    for replies in ([kind(REFUSAL, 400), kind(REFUSAL, 400)], [kind(DOWN, 500)], [kind(REFUSAL, 400), {"usage": None}]):
        compaction = RequestCompaction(strategy, counter="chars/4")
        response, requests = await sent(compaction, request, *replies, asynchronous=asynchronous)
        assert (response, len(requests)) == (replies[-1], len(replies))


async def test_the_next_request_is_compacted_once() -> None:
    strategy = Summarization(trigger=tokens_exceed(1_000_000), keep=last(turns=1))
    first, second = (RequestCompaction(strategy, counter="chars/4") for _ in "ab")
    first.compact_next()
    sizes: list[int] = []
    for compaction in (second, first, first):
        messages = asked(12 + len(sizes))
        _, [request] = await sent(compaction, Request({**BODY, "messages": messages}), {"usage": None})
        sizes.append(len(messages) - len(request.json["messages"]))
    assert (sizes[0], sizes[1] > 10) == (0, True)
    assert sizes[2] == sizes[1]

"""The Anthropic SDK: what the table of hosts does not cover of the middleware."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

pytest.importorskip("anthropic", reason="the Anthropic SDK is missing: make test-frameworks")

import anthropic
from anthropic import Anthropic, AsyncAnthropic, beta_async_tool, beta_tool

from benchmarks.hosts.script import result_text
from benchmarks.hosts.server import SUMMARY, StrictServer
from compaction import last, presets
from compaction.errors import BudgetUnsatisfiable, SyncDriverError
from compaction.integrations.anthropic import RequestCompaction
from compaction.strategies import SlidingWindow, Summarization
from compaction.triggers import tokens_exceed
from tests.frameworks.asked import asked


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
        runner = model.beta.messages.tool_runner(
            model="m", max_tokens=100, tools=[], messages=[{"role": "user", "content": "[[c0:0]] hi"}]
        )
        assert runner.until_done().stop_reason == "end_turn"
    assert server.ledger.total("requests") == 1


def test_other_requests_pass() -> None:
    """Requests to count tokens are not compacted."""
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


@pytest.mark.parametrize("asynchronous", [False, True], ids=["no await", "await"])
async def test_a_tool_asks_for_compaction(*, asynchronous: bool) -> None:
    """`compact_next` in a tool compacts the conversation of that runner before its next request, with the tool's focus."""
    focuses: list[str | None] = []

    class Summarizer:
        def summarize(self, request: Any) -> str:
            focuses.append(request.focus)
            return SUMMARY

    strategy = Summarization(Summarizer(), trigger=tokens_exceed(1_000_000), keep=last(turns=2))
    compaction = RequestCompaction(strategy, counter="chars/4")

    def look_up_price(item: str) -> str:
        """Look up what an item costs."""
        compaction.compact_next("prices")
        return result_text(item)

    async def awaited(item: str) -> str:
        """Look up what an item costs."""
        return look_up_price(item)

    with StrictServer(window=1_000_000) as server:
        options: Any = {"api_key": "none", "base_url": server.address, "middleware": [compaction]}
        request: Any = {"model": "m", "max_tokens": 100, "messages": asked(40)}
        if asynchronous:
            tools: Any = [beta_async_tool(awaited, name="look_up_price")]
            async with AsyncAnthropic(**options) as waiting:
                await waiting.beta.messages.tool_runner(**request, tools=tools).until_done()
        else:
            with Anthropic(**options) as model:
                model.beta.messages.tool_runner(**request, tools=[beta_tool(look_up_price)]).until_done()
    assert set(focuses) == {"prices"}
    assert server.ledger.total("invalid") == 0


def test_a_client_without_await_needs_a_strategy_without() -> None:
    """A summarizer that must be awaited is refused with the remedy, and nothing is sent."""

    class Awaited:
        async def summarize(self, request: Any) -> str:
            return "A summary."

    compaction = RequestCompaction(Summarization(Awaited(), trigger=lambda _: True, keep=last(turns=1)), counter="chars/4")
    with StrictServer() as server, client(server, compaction) as model, pytest.raises(SyncDriverError):
        ask(model, asked(5))
    assert server.ledger.total("requests") == 0


def test_window_by_the_models_name() -> None:
    """The model of the request decides the window."""
    pytest.importorskip("compaction.models", reason="windows by name are not there yet")
    results: list[Any] = []
    compaction = RequestCompaction(presets.context_window(5_000), counter="chars/4", window="auto", on_result=results.append)
    send = partial(compaction.handle, call_next=lambda request: {"usage": None})

    class Request:
        json, method, url, stream = {"model": "claude-sonnet-4-5", "messages": asked(2)}, "post", "/v1/messages", False

    send(Request())
    assert [result.outcome for result in results] == ["unchanged"]

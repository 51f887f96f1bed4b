"""The LiteLLM proxy in this process: what the table of hosts does not cover of the callback."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import httpx
import pytest

pytest.importorskip("litellm", reason="LiteLLM needs a separate environment: make test-frameworks")

import yaml
from litellm.proxy import proxy_server

from benchmarks.hosts.frameworks.litellm_proxy import KEY, Proxy
from benchmarks.hosts.server import StrictServer
from benchmarks.hosts.wires import WIRES
from compaction import last, presets
from compaction.integrations.litellm import ProxyCompaction
from compaction.strategies import SlidingWindow, Summarization
from compaction.triggers import tokens_exceed
from tests.frameworks.asked import asked
from tests.frameworks.programs import ROOT

pytestmark = pytest.mark.filterwarnings("ignore", "error:::compaction")  # the proxy warns too

FIELDS = {"/v1/chat/completions": "messages", "/v1/messages": "messages", "/v1/responses": "input"}
MODELS = {"/v1/chat/completions": "openai/m", "/v1/messages": "anthropic/claude-sonnet-4-5", "/v1/responses": "openai/m"}
BOTH = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])

Client: TypeAlias = httpx.AsyncClient
Start: TypeAlias = Callable[..., AbstractAsyncContextManager[Client]]


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the proxy read the table of prices in its own package."""
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Start the proxy with a callback, and return a client."""

    @asynccontextmanager
    async def started(server: StrictServer, compaction: ProxyCompaction, model: str = "openai/m") -> AsyncIterator[Client]:
        app = await Proxy.start(compaction, model, server.address, tmp_path)
        transport, headers = httpx.ASGITransport(app), {"Authorization": f"Bearer {KEY}"}
        try:
            async with httpx.AsyncClient(transport=transport, base_url="http://proxy", headers=headers, timeout=60) as client:
                yield client
        finally:
            Proxy.stop()

    return started


async def ask(client: Client, path: str, messages: list[Any], headers: Any = None, **options: Any) -> httpx.Response:
    limit = {"max_tokens": 100} if path == "/v1/messages" else {}
    return await client.post(path, json={"model": "m", FIELDS[path]: messages, **limit, **options}, headers=headers)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
@BOTH
async def test_a_length_error_that_litellm_does_not_know(
    path: str, start: Start, monkeypatch: pytest.MonkeyPatch, *, stream: bool
) -> None:
    """LiteLLM takes GPT-5's words for another error, which its router does not repeat; the client's next attempt fits."""
    says = "Your input exceeds the context window of this model. Please adjust your input and try again."
    error = {"error": {"message": says, "type": "invalid_request_error", "param": "input", "code": "context_length_exceeded"}}
    for name in ("openai-chat", "openai-responses"):
        monkeypatch.setattr(type(WIRES[name]), "too_long", lambda *_: error)
    compaction = ProxyCompaction(presets.context_window(1_000_000), counter="chars/4", window=4_000)
    with StrictServer(window=3_000) as server:
        async with start(server, compaction, MODELS[path]) as client:
            answers = [await ask(client, path, asked(12), stream=stream) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [400, 200]
    assert [server.ledger.total(name) for name in ("over", "over_twice", "requests")] == [1, 0, 1]


async def test_nothing_more_can_be_removed(start: Start) -> None:
    """The provider is called once; the answer has its error, and lists what uses the space."""
    compaction = ProxyCompaction(presets.context_window(1_000_000), counter="chars/4", pin=lambda _: True)
    with StrictServer(window=100) as server:
        async with start(server, compaction) as client:
            answer = await ask(client, "/v1/chat/completions", asked(30))
    assert answer.status_code == 400
    assert "maximum context length" in answer.text
    assert "pinned" in answer.text
    assert server.ledger.total("over") == 1


async def test_fallbacks_of_the_configuration_stay(start: Start) -> None:
    """A configured fallback model for long requests is tried after the retry."""
    compaction = ProxyCompaction(presets.context_window(1_000_000), counter="chars/4", pin=lambda _: True)
    with StrictServer(window=100) as server, StrictServer(window=1_000_000) as larger:
        async with start(server, compaction) as client:
            router: Any = proxy_server.llm_router
            params = {"model": "openai/m", "api_base": f"{larger.address}/v1", "api_key": "none"}
            router.set_model_list([*router.model_list, {"model_name": "large", "litellm_params": params}])
            router.context_window_fallbacks = [{"m": ["large"]}]
            answer = await ask(client, "/v1/chat/completions", asked(30))
    assert answer.status_code == 200
    assert (server.ledger.total("over"), larger.ledger.total("requests")) == (1, 1)


@pytest.mark.parametrize("headers", [{}, {"x-litellm-session-id": "session-1"}], ids=["by content", "by id"])
async def test_conversations_with_equal_beginnings(headers: dict[str, str], start: Start) -> None:
    """Twenty conversations with the same beginning, in sequence, share no messages."""
    compaction = ProxyCompaction(presets.context_window(1_500), counter="chars/4", window=1_500)
    same = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hello, what do you need?"}]
    with StrictServer(window=2_000) as server:
        async with start(server, compaction) as client:
            for turns in (4, 8, 12):
                for number in range(20):
                    messages = [*same, *asked(turns, conversation=f"c{number}")]
                    answer = await ask(client, "/v1/chat/completions", messages, headers)
                    assert answer.status_code == 200
    assert {name: server.ledger.total(name) for name in ("invalid", "over", "crossed")} == {
        "invalid": 0,
        "over": 0,
        "crossed": 0,
    }


async def test_users_and_models_share_nothing(start: Start) -> None:
    """The same conversation of another end user is compacted again; the same user's is not."""
    summaries: list[str] = []

    class Summarizer:
        async def summarize(self, request: Any) -> str:
            summaries.append("asked")
            return "The user asked for prices."

    strategy = Summarization(Summarizer(), trigger=tokens_exceed(2_000), keep=last(turns=2))
    with StrictServer(window=1_000_000) as server:
        async with start(server, ProxyCompaction(strategy, counter="chars/4")) as client:
            for user in ("ann", "ann", "bob"):
                await ask(client, "/v1/chat/completions", asked(12), user=user)
    assert len(summaries) == 2


async def test_a_client_asks_for_compaction(start: Start) -> None:
    """A header compacts now, with its text as the summary's focus."""
    focuses: list[str | None] = []

    class Summarizer:
        async def summarize(self, request: Any) -> str:
            focuses.append(request.focus)
            return "The user asked for prices."

    strategy = Summarization(Summarizer(), trigger=tokens_exceed(1_000_000), keep=last(turns=2))
    with StrictServer(window=1_000_000) as server:
        async with start(server, ProxyCompaction(strategy, counter="chars/4")) as client:
            await ask(client, "/v1/chat/completions", asked(12))
            await ask(client, "/v1/chat/completions", asked(12), {"x-compact-focus": "prices"})
    assert focuses == ["prices"]


async def test_what_a_service_keeps_is_left_alone() -> None:
    """Items that continue a conversation elsewhere are sent unchanged; so is a prompt that is one text."""
    hook = ProxyCompaction(SlidingWindow(keep=last(turns=1)), counter="chars/4")
    for data in (
        {"input": asked(5), "previous_response_id": "resp_1"},
        {"input": asked(5), "conversation": "conv_1"},
        {"input": "Hello."},
    ):
        assert await hook.async_pre_call_hook(None, None, data, "aresponses") is data
    embedding = {"input": ["Hello."]}
    assert await hook.async_pre_call_hook(None, None, embedding, "aembedding") is embedding


async def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy runs with the page's configuration and the example's callback, and compacts."""
    page = (ROOT / "docs" / "frameworks" / "litellm.md").read_text("utf-8")
    config = yaml.safe_load(re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[0])
    (tmp_path / "litellm_callback.py").write_text((ROOT / "examples" / "litellm_callback.py").read_text("utf-8"))
    monkeypatch.setenv("COMPACTION_WINDOW", "2000")
    monkeypatch.setenv("COMPACTION_STORE", str(tmp_path / "compaction.db"))
    monkeypatch.setenv("PROXY_KEY", KEY)
    with StrictServer(window=2_000) as server:
        config["model_list"][0]["litellm_params"] |= {"api_base": f"{server.address}/v1", "api_key": "none"}
        name = config["model_list"][0]["model_name"]
        (tmp_path / "litellm.yaml").write_text(json.dumps(config))
        Proxy.stop()
        await proxy_server.initialize(config=str(tmp_path / "litellm.yaml"))
        transport, headers = httpx.ASGITransport(proxy_server.app), {"Authorization": f"Bearer {KEY}"}
        async with httpx.AsyncClient(transport=transport, base_url="http://proxy", headers=headers) as client:
            answer = await client.post("/v1/chat/completions", json={"model": name, "messages": asked(30)})
        Proxy.stop()
    assert answer.status_code == 200, answer.text
    assert (server.ledger.total("over"), server.ledger.total("requests")) == (0, 1)

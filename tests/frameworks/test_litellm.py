"""The LiteLLM proxy in this process: what the table of hosts does not cover of the callback."""

from __future__ import annotations

import copy
import json
import pickle
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, TypeAlias

import httpx
import pytest

pytest.importorskip("litellm", reason="LiteLLM needs a separate environment: make test-frameworks")

import litellm
import yaml
from litellm.proxy import proxy_server

from benchmarks.hosts.frameworks.litellm_proxy import KEY, Proxy
from benchmarks.hosts.server import StrictServer
from benchmarks.hosts.wires import WIRES
from compaction import last, presets
from compaction.integrations.litellm import ProxyCompaction, conversation_scope
from compaction.models import input_limit
from compaction.strategies import SlidingWindow, Summarization
from compaction.triggers import tokens_exceed
from tests.frameworks import turns
from tests.frameworks.programs import ROOT
from tests.frameworks.turns import asked
from tests.support.scripted import Scripted

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


async def test_what_a_service_keeps_is_left_alone() -> None:
    """Items that continue a conversation elsewhere are sent unchanged; so is a prompt that is one text."""
    hook = ProxyCompaction(SlidingWindow(keep=last(turns=1)), counter="chars/4")
    for data in (
        {"input": asked(5), "previous_response_id": "resp_1"},
        {"input": asked(5), "conversation": "conv_1"},
        {"input": asked(5), "store": True},
        {"input": [*asked(5), {"type": "item_reference", "id": "item_1"}]},
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


# --- single hooks -----------------------------------------------------------------------------------------------------

NEVER = SlidingWindow(keep=last(turns=1), trigger=tokens_exceed(1_000_000))
ALWAYS = SlidingWindow(keep=last(turns=1))
REFUSAL = ValueError("prompt is too long: 3000 tokens > 900 maximum")
AUTH = SimpleNamespace(api_key="k", team_id="t", user_id="u", end_user_id="e")


class Logging:
    """The logging object that the proxy creates for each request."""


class Router:
    """The proxy's router, with one deployment for each model."""

    context_window_fallbacks: ClassVar[Any] = [{"m": ["large"]}]
    models: ClassVar[dict[str, Any]] = {
        "m": {"litellm_params": {"model": "openai/gpt-5"}, "model_info": {}},
        "azure": {"litellm_params": {"model": "azure/mine"}, "model_info": {"base_model": "gpt-5.4"}},
        "bare": {},
    }

    def get_model_list(self, model_name: str) -> Any:
        return [self.models[model_name]] if model_name in self.models else None


AGAIN = {"model": "m", "fallback_depth": 0}


@pytest.fixture
def router(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy_server, "llm_router", Router())


async def prepared(hook: ProxyCompaction, call_type: str = "acompletion", auth: Any = AUTH, **data: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"model": "m", "litellm_logging_obj": Logging(), **data}
    if not {"messages", "input"} & given.keys():
        given["messages"] = asked(12)
    return await hook.async_pre_call_hook(auth, None, given, call_type)


def turn_of(hook: ProxyCompaction, name: str = "openai-chat") -> Any:
    return turns.turn_of(hook.conversations[name])


@pytest.mark.usefixtures("router")
@pytest.mark.parametrize(
    ("call_type", "format", "key", "fields"),
    [
        ("completion", "openai-chat", "messages", {"tools": [{"a": 1}], "functions": [{"b": 2}]}),
        ("acompletion", "openai-chat", "messages", {"tools": [{"a": 1}]}),
        ("anthropic_messages", "anthropic", "messages", {"system": "Be brief.", "tools": [{"a": 1}]}),
        ("responses", "openai-responses", "input", {"instructions": "Be brief."}),
        ("aresponses", "openai-responses", "input", {"instructions": "Be brief.", "tools": [{"a": 1}]}),
    ],
)
async def test_every_endpoint(call_type: str, format: str, key: str, fields: dict[str, Any]) -> None:
    """The messages are compacted in their field, the other fields count, and the model comes first among the fallbacks."""
    hook = ProxyCompaction(ALWAYS, counter="chars/4", window="auto")
    messages = asked(12)
    data = await prepared(hook, call_type, **{key: messages}, **fields)
    assert len(data[key]) < len(messages)
    assert data["context_window_fallbacks"] == [{"m": [AGAIN, "large"]}, {"m": ["large"]}]
    index = turn_of(hook, format).index
    assert index.context.overhead_tokens == hook.conversations[format].count(*fields.values())
    assert index.context.window == input_limit("gpt-5")


@pytest.mark.usefixtures("router")
@pytest.mark.parametrize(
    ("data", "fallbacks"),
    [
        ({"model": "other"}, [{"other": [{"model": "other", "fallback_depth": 0}]}, {"m": ["large"]}]),
        ({"context_window_fallbacks": [{"m": ["huge"]}]}, [{"m": [AGAIN, "huge"]}, {"m": ["huge"]}]),
        ({"model": None}, [{"m": ["large"]}]),
    ],
)
async def test_fallbacks(data: dict[str, Any], fallbacks: Any) -> None:
    """The request's own fallbacks come before the router's; without a name, nothing is added."""
    assert (await prepared(ProxyCompaction(NEVER), **data))["context_window_fallbacks"] == fallbacks


async def test_without_a_router(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy without a router has no fallbacks of its own, and a model's own name gives its window."""
    monkeypatch.setattr(proxy_server, "llm_router", None)
    hook = ProxyCompaction(NEVER, counter="chars/4", window="auto")
    data = await prepared(hook, model="gpt-5")
    assert data["context_window_fallbacks"] == [{"gpt-5": [{"model": "gpt-5", "fallback_depth": 0}]}]
    assert turn_of(hook).index.context.window == input_limit("gpt-5")


@pytest.mark.usefixtures("router")
@pytest.mark.parametrize(("model", "known"), [("m", "gpt-5"), ("azure", "gpt-5.4"), ("gpt-5.4", "gpt-5.4"), (None, None)])
async def test_the_model_behind_a_group(model: str | None, known: str | None) -> None:
    """The first deployment names the model, or its base model; a group without deployments is a name."""
    hook = ProxyCompaction(NEVER, counter="chars/4", window="auto")
    await prepared(hook, model=model)
    assert turn_of(hook).index.context.window == (None if known is None else input_limit(known))


@pytest.mark.usefixtures("router")
async def test_one_retry() -> None:
    """After a length error further attempts get shorter messages; other errors, and other requests, change nothing."""
    hook = ProxyCompaction(NEVER, counter="chars/4")
    data = await prepared(hook)
    assert await hook.async_pre_call_deployment_hook(data, None) is None
    await hook.async_post_call_failure_deployment_hook(data, ZeroDivisionError(), None)
    assert await hook.async_pre_call_deployment_hook(data, None) is None
    await hook.async_post_call_failure_deployment_hook(data, REFUSAL, None)
    again = await hook.async_pre_call_deployment_hook({**data, "other": 1}, None)
    assert again is not None
    assert (len(again["messages"]) < len(data["messages"]), again["other"]) == (True, 1)
    shorter = turn_of(hook).view
    await hook.async_post_call_failure_deployment_hook(data, REFUSAL, None)
    assert turn_of(hook).view is shorter
    for unknown in ({}, {"litellm_logging_obj": Logging()}):
        await hook.async_post_call_failure_deployment_hook(unknown, REFUSAL, None)
        assert await hook.async_pre_call_deployment_hook(unknown, None) is None


@pytest.mark.usefixtures("router")
async def test_nothing_more_can_go() -> None:
    """The next attempt raises LiteLLM's own length error, once, with what uses the space; further ones are the router's."""
    hook = ProxyCompaction(NEVER, counter="chars/4", pin=lambda _: True)
    data = await prepared(hook)
    await hook.async_post_call_failure_deployment_hook(data, REFUSAL, None)
    with pytest.raises(litellm.ContextWindowExceededError, match="pinned") as raised:
        await hook.async_pre_call_deployment_hook({**data, "custom_llm_provider": "openai"}, None)
    assert (raised.value.model, raised.value.llm_provider) == ("m", "openai")
    assert await hook.async_pre_call_deployment_hook(data, None) is None
    await hook.async_post_call_failure_deployment_hook(bare := await prepared(hook), REFUSAL, None)
    with pytest.raises(litellm.ContextWindowExceededError) as raised:
        await hook.async_pre_call_deployment_hook(bare, None)
    assert raised.value.llm_provider == ""


@pytest.mark.usefixtures("router")
@pytest.mark.parametrize("stream", [False, True])
async def test_usage(stream: bool) -> None:
    """The usage of a reply, or of a stream that may end early, counts for its request, and passes for an unknown one."""
    hook = ProxyCompaction(NEVER, counter="chars/4")
    data = await prepared(hook)
    reply = {"usage": {"prompt_tokens": 9_000, "completion_tokens": 5}}

    async def events() -> AsyncIterator[Any]:
        yield reply
        yield {"choices": []}

    async def reported(data: dict[str, Any]) -> None:
        if not stream:
            await hook.async_post_call_success_hook(data, None, reply)
            return
        read = hook.async_post_call_streaming_iterator_hook(None, events(), data)
        assert await anext(read) == reply
        await read.aclose()
        assert len([event async for event in hook.async_post_call_streaming_iterator_hook(None, events(), data)]) == 2

    await reported({})
    assert turn_of(hook).session.status().tokens < 9_000
    await reported(data)
    assert turn_of(hook).session.status().tokens == 9_000


@pytest.mark.usefixtures("router")
@pytest.mark.parametrize(
    ("data", "id"),
    [
        ({"litellm_session_id": "a"}, "a"),
        ({"metadata": {"session_id": "b"}}, "b"),
        ({"litellm_metadata": {"session_id": "c"}}, "c"),
        ({"litellm_session_id": "a", "metadata": {"session_id": "b"}}, "a"),
        ({"litellm_session_id": "", "metadata": {"session_id": "b"}}, "b"),
        ({"litellm_session_id": "a", "litellm_metadata": {"litellm_session_id_generated": True}}, None),
        ({"litellm_session_id": 7}, None),
    ],
)
async def test_the_clients_session(data: dict[str, Any], id: str | None) -> None:
    """The session id that the client sent finds the conversation; one that the proxy generated does not."""
    hook = ProxyCompaction(NEVER, counter="chars/4")
    await prepared(hook, **data)
    name = turn_of(hook).session.id.rpartition("/")[2]
    assert (name if name in ("a", "b", "c", "7") else None) == id


@pytest.mark.usefixtures("router")
async def test_what_may_share_a_conversation() -> None:
    """Another key, team, user, end user or model is another scope, and so is a user that the request names."""
    data = {"model": "m", "user": "x"}
    scopes = {conversation_scope(AUTH, data), conversation_scope(AUTH, {**data, "model": "n"})}
    scopes |= {conversation_scope(AUTH, {**data, "user": "y"}), conversation_scope(None, data)}
    scopes |= {conversation_scope(SimpleNamespace(**{**vars(AUTH), name: "z"}), data) for name in vars(AUTH)}
    assert len(scopes) == 8
    assert conversation_scope(AUTH, dict(data)) == conversation_scope(AUTH, data)
    hook, sessions = ProxyCompaction(NEVER, counter="chars/4"), set[str]()
    for user in ("ann", "ann", "bob"):
        await prepared(hook, user=user)
        sessions.add(turn_of(hook).session.id)
    assert len(sessions) == 2


@pytest.mark.usefixtures("router")
@pytest.mark.parametrize(
    ("headers", "focuses"),
    [({"x-compact-focus": "prices"}, ["prices"]), ({"x-compact-focus": ""}, [None]), ({"a": "x"}, []), (None, [])],
)
async def test_a_header_compacts_now(headers: dict[str, str] | None, focuses: list[str | None]) -> None:
    """Whatever the trigger says, with its text as the summary's focus; other headers do not."""
    summarizer = Scripted("The user asked for prices.")
    hook = ProxyCompaction(Summarization(summarizer, trigger=tokens_exceed(1_000_000), keep=last(turns=1)), counter="chars/4")
    data = await prepared(hook, proxy_server_request=None if headers is None else {"headers": headers})
    assert (len(data["messages"]) < len(asked(12))) is bool(focuses)
    assert [request.focus for request in summarizer.requests] == focuses


@pytest.mark.usefixtures("router")
async def test_a_copy_has_no_requests_under_way() -> None:
    hook = ProxyCompaction(NEVER, counter="chars/4")
    assert hook.message_logging is True  # set by LiteLLM's own class
    data = await prepared(hook)
    for copied in (copy.deepcopy(hook), pickle.loads(pickle.dumps(hook))):
        await copied.async_post_call_failure_deployment_hook(data, REFUSAL, None)
        assert await copied.async_pre_call_deployment_hook(data, None) is None
        assert copied.conversations["anthropic"].options == hook.conversations["anthropic"].options
        assert (await prepared(copied))["messages"] == data["messages"]
    await hook.async_post_call_failure_deployment_hook(data, REFUSAL, None)
    assert turn_of(hook).was_refused

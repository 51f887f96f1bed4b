"""The providers' own clients, sync, async and streamed: behind the gateway they return the same objects as without it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import attrs
import openai
import pytest
from google import genai
from google.genai import types

from benchmarks.hosts.script import user_text
from benchmarks.hosts.server import StrictServer
from tests.support.gateways import serving_url

from .agents import PAGE

TEXT = user_text("alpha", 0)
CHAT: dict[str, Any] = {"model": "gpt-5", "messages": [{"role": "user", "content": TEXT}]}
CHAT_TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}]
RESPONSES: dict[str, Any] = {"model": "gpt-5", "input": [{"role": "user", "content": TEXT}], "store": False}
MESSAGES: dict[str, Any] = {"model": "claude-of-tomorrow", "max_tokens": 99, "messages": [{"role": "user", "content": TEXT}]}
GEMINI: dict[str, Any] = {"model": "gemini-2.5-pro", "contents": TEXT}


@pytest.fixture
def addresses() -> Iterator[tuple[str, str]]:
    """The address of a gateway in front of a model, and that of such a model without one."""
    with StrictServer(window=100_000) as behind, StrictServer(window=100_000) as direct, serving_url(behind.address) as url:
        yield url, direct.address


def recommended(name: str, url: str) -> str:
    """The base URL that the page of recipes gives for a client."""
    found = re.search(rf'\| {name} \| `[^`]*base_url="([^"]+)"', PAGE.read_text(encoding="utf-8"))
    assert found is not None
    return found[1].replace("http://127.0.0.1:8484", url)


def openai_client(url: str, kind: Any = openai.OpenAI) -> Any:
    return kind(base_url=recommended("OpenAI", url), api_key="none", max_retries=0)


def anthropic_client(url: str, kind: Any = anthropic.Anthropic) -> Any:
    return kind(base_url=recommended("Anthropic", url), api_key="none", max_retries=0)


def google_client(url: str) -> genai.Client:
    return genai.Client(api_key="none", http_options=types.HttpOptions(base_url=recommended("Google", url)))


def plain(value: Any) -> Any:
    """An object of a client as data, without what differs between two calls of one."""
    data = value.model_dump()
    data.pop("sdk_http_response", None)
    return data


@attrs.frozen
class Calls:
    """The ways to ask one API: each takes an address and returns what its client made of the answer."""

    whole: Callable[[str], Any]
    stream: Callable[[str], list[Any]]
    whole_async: Callable[[str], Any]
    stream_async: Callable[[str], Any]


async def _openai_async(url: str, **options: Any) -> Any:
    async with openai_client(url, openai.AsyncOpenAI) as client:
        if not options.get("stream"):
            return plain(await client.chat.completions.create(**CHAT, tools=CHAT_TOOLS))
        return [plain(each) async for each in await client.chat.completions.create(**CHAT, tools=CHAT_TOOLS, **options)]


async def _responses_async(url: str, stream: bool = False) -> Any:
    async with openai_client(url, openai.AsyncOpenAI) as client:
        if not stream:
            return plain(await client.responses.create(**RESPONSES))
        return [plain(each) async for each in await client.responses.create(**RESPONSES, stream=True)]


async def _anthropic_async(url: str, stream: bool = False) -> Any:
    async with anthropic_client(url, anthropic.AsyncAnthropic) as client:
        if not stream:
            return plain(await client.messages.create(**MESSAGES))
        return [plain(each) async for each in await client.messages.create(**MESSAGES, stream=True)]


async def _google_async(url: str, stream: bool = False) -> Any:
    client = google_client(url).aio
    try:
        if not stream:
            return plain(await client.models.generate_content(**GEMINI))
        return [plain(each) async for each in await client.models.generate_content_stream(**GEMINI)]
    finally:
        await client.aclose()


def _with(make: Callable[[str], Any], ask: Callable[[Any], Any]) -> Callable[[str], Any]:
    def call(url: str) -> Any:
        client = make(url)
        try:
            return ask(client)
        finally:
            client.close()

    return call


USAGE: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
APIS = {
    "chat": Calls(
        _with(openai_client, lambda client: plain(client.chat.completions.create(**CHAT, tools=CHAT_TOOLS))),
        _with(openai_client, lambda client: [*map(plain, client.chat.completions.create(**CHAT, tools=CHAT_TOOLS, **USAGE))]),
        _openai_async,
        lambda url: _openai_async(url, **USAGE),
    ),
    "responses": Calls(
        _with(openai_client, lambda client: plain(client.responses.create(**RESPONSES))),
        _with(openai_client, lambda client: [*map(plain, client.responses.create(**RESPONSES, stream=True))]),
        _responses_async,
        lambda url: _responses_async(url, stream=True),
    ),
    "anthropic": Calls(
        _with(anthropic_client, lambda client: plain(client.messages.create(**MESSAGES))),
        _with(anthropic_client, lambda client: [*map(plain, client.messages.create(**MESSAGES, stream=True))]),
        _anthropic_async,
        lambda url: _anthropic_async(url, stream=True),
    ),
    "gemini": Calls(
        _with(google_client, lambda client: plain(client.models.generate_content(**GEMINI))),
        _with(google_client, lambda client: [*map(plain, client.models.generate_content_stream(**GEMINI))]),
        _google_async,
        lambda url: _google_async(url, stream=True),
    ),
}


@pytest.mark.parametrize("name", APIS)
@pytest.mark.parametrize("way", ["whole", "stream"])
def test_a_sync_client_gets_the_same(name: str, way: str, addresses: tuple[str, str]) -> None:
    """Every field, and every event of a stream."""
    through, direct = (getattr(APIS[name], way)(url) for url in addresses)
    assert through == direct
    assert direct


@pytest.mark.parametrize("name", APIS)
@pytest.mark.parametrize("way", ["whole_async", "stream_async"])
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_async_client_gets_the_same(name: str, way: str, addresses: tuple[str, str]) -> None:
    """Every field, and every event of a stream."""
    through, direct = [await getattr(APIS[name], way)(url) for url in addresses]
    assert through == direct
    assert direct


@pytest.mark.parametrize("name", ["chat", "responses", "anthropic", "gemini"])
def test_errors_are_the_same(name: str, addresses: tuple[str, str]) -> None:
    """A refused request raises the client's own error, with what the provider says."""
    calls: dict[str, Callable[[str], Any]] = {
        "chat": _with(
            openai_client,
            lambda client: client.chat.completions.create(
                model="m", messages=[{"role": "tool", "content": "x", "tool_call_id": "c"}]
            ),
        ),
        "responses": _with(
            openai_client,
            lambda client: client.responses.create(
                model="m", store=False, input=[{"type": "function_call_output", "call_id": "c", "output": "x"}]
            ),
        ),
        "anthropic": _with(
            anthropic_client,
            lambda client: client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": []}]),
        ),
        "gemini": _with(
            google_client,
            lambda client: client.models.generate_content(
                model="m",
                contents=[types.Content(role="user", parts=[types.Part.from_function_response(name="x", response={})])],
            ),
        ),
    }
    found: list[tuple[type, str]] = []
    for url in addresses:
        with pytest.raises(Exception, match="400") as raised:
            calls[name](url)
        found.append((type(raised.value), str(raised.value)))
    assert found[0] == found[1]

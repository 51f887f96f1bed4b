"""The providers' own clients, whole and streamed: behind the gateway they return the same objects as without it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, TypeAlias

import anthropic
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


def openai_client(url: str) -> Any:
    return openai.OpenAI(base_url=recommended("OpenAI", url), api_key="none", max_retries=0)


def anthropic_client(url: str) -> Any:
    return anthropic.Anthropic(base_url=recommended("Anthropic", url), api_key="none", max_retries=0)


def google_client(url: str) -> genai.Client:
    return genai.Client(api_key="none", http_options=types.HttpOptions(base_url=recommended("Google", url)))


def plain(value: Any) -> Any:
    """An object of a client as data, without what differs between two calls of one."""
    data = value.model_dump()
    data.pop("sdk_http_response", None)
    return data


Call: TypeAlias = Callable[[Any], Any]
USAGE: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
BAD_CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "tool", "content": "x", "tool_call_id": "c"}]}
BAD_ITEMS: list[Any] = [{"type": "function_call_output", "call_id": "c", "output": "x"}]
BAD_CONTENTS = [types.Content(role="user", parts=[types.Part.from_function_response(name="x", response={})])]
APIS: dict[str, tuple[Callable[[str], Any], Call, Call, Call]] = {
    "chat": (
        openai_client,
        lambda client: plain(client.chat.completions.create(**CHAT, tools=CHAT_TOOLS)),
        lambda client: [*map(plain, client.chat.completions.create(**CHAT, tools=CHAT_TOOLS, **USAGE))],
        lambda client: client.chat.completions.create(**BAD_CHAT),
    ),
    "responses": (
        openai_client,
        lambda client: plain(client.responses.create(**RESPONSES)),
        lambda client: [*map(plain, client.responses.create(**RESPONSES, stream=True))],
        lambda client: client.responses.create(model="m", store=False, input=BAD_ITEMS),
    ),
    "anthropic": (
        anthropic_client,
        lambda client: plain(client.messages.create(**MESSAGES)),
        lambda client: [*map(plain, client.messages.create(**MESSAGES, stream=True))],
        lambda client: client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": []}]),
    ),
    "gemini": (
        google_client,
        lambda client: plain(client.models.generate_content(**GEMINI)),
        lambda client: [*map(plain, client.models.generate_content_stream(**GEMINI))],
        lambda client: client.models.generate_content(model="m", contents=BAD_CONTENTS),
    ),
}
"""A client, and what it makes of an answer, of a stream, and of a refusal."""


@pytest.mark.parametrize("name", APIS)
def test_a_client_gets_the_same(name: str, addresses: tuple[str, str]) -> None:
    """Every field, and every event of a stream; a refusal raises the client's own error, with what the provider says."""
    make, whole, streamed, refused = APIS[name]
    found: list[list[Any]] = []
    for url in addresses:
        with closing(make(url)) as client:
            said = [whole(client), streamed(client)]
            with pytest.raises(Exception, match="400") as raised:
                refused(client)
            found.append([*said, type(raised.value), str(raised.value)])
    assert found[0] == found[1]
    assert all(found[0])

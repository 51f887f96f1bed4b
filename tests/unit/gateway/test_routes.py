"""Addresses: which contain a conversation, which provider they belong to, and how they are joined with the upstream's."""

from __future__ import annotations

from typing import Any

import pytest

from compaction import presets
from compaction.gateway import GatewaySettings
from compaction.gateway.routes import looks_like_conversation, provider_of, route_of
from compaction.gateway.upstream import Upstreams

VERTEX = "/v1/projects/p/locations/us"
CLAUDE = "us.anthropic.claude-sonnet-4-20250514-v1:0"


@pytest.mark.parametrize(
    ("path", "name", "provider", "model"),
    [
        ("/v1/chat/completions", "chat", "openai", None),
        ("/chat/completions", "chat", "openai", None),
        ("/v3/chat/completions", "chat", "openai", None),
        ("/v1/chat/completions/", "chat", "openai", None),
        ("/v1/responses", "responses", "openai", None),
        ("/responses", "responses", "openai", None),
        ("/v1/messages", "messages", "anthropic", None),
        ("/v1/messages/count_tokens", "count_tokens", "anthropic", None),
        ("/v1beta/models/gemini-2.5-pro:generateContent", "generate", "google", "gemini-2.5-pro"),
        ("/v1/models/gemini-2.5-pro:streamGenerateContent", "generate", "google", "gemini-2.5-pro"),
        ("/openai/deployments/gpt/chat/completions", "chat", "openai", "gpt"),
        ("/openai/deployments/gpt/responses", "responses", "openai", "gpt"),
        ("/openai/v1/responses", "responses", "openai", None),
        ("/openai/responses", "responses", "openai", None),
        (f"{VERTEX}/publishers/google/models/gemini-2.5-pro:generateContent", "generate", "google", "gemini-2.5-pro"),
        (f"{VERTEX}/publishers/google/models/gemini-2.5-pro:streamGenerateContent", "generate", "google", "gemini-2.5-pro"),
        (f"{VERTEX}/publishers/anthropic/models/claude-4@1:rawPredict", "messages", "google", "claude-4@1"),
        (f"{VERTEX}/publishers/anthropic/models/claude-4@1:streamRawPredict", "messages", "google", "claude-4@1"),
        ("/v1beta1/projects/p/locations/us/endpoints/openapi/chat/completions", "chat", "google", None),
        (f"/model/{CLAUDE}/converse", "converse", "bedrock", CLAUDE),
        ("/model/arn:aws:bedrock:us:1:profile/x/converse-stream", "converse", "bedrock", "arn:aws:bedrock:us:1:profile/x"),
    ],
)
def test_paths_of_conversations(path: str, name: str, provider: str, model: str | None) -> None:
    """A path names the route and the provider, and may name the model; the body's field counts only if the path has none."""
    found = route_of("POST", path)
    assert found is not None
    assert (found.name, found.provider, found.counts) == (name, provider, name == "count_tokens")
    assert found.model_of({"model": "of the body"}) == (model or "of the body")
    assert found.model_of({"model": 7}) == found.model_of({}) == (model or "")
    assert route_of("GET", path) is None
    assert not looks_like_conversation("GET", path)


@pytest.mark.parametrize(
    ("path", "is_like_one"),
    [
        ("/model/amazon.nova/invoke", True),
        ("/openai/threads/t/messages", True),
        ("/v1/x:rawPredict", True),
        (f"{VERTEX}/publishers/anthropic/models/count-tokens:rawPredict", True),
        (f"{VERTEX}/publishers/google/models/gemini-2.5-pro:countTokens", False),
        ("/v1beta/models/gemini-2.5-pro:countTokens", False),
        ("/v1/responses/compact", False),
        ("/v1/responses/resp_1", False),
        ("/v1/messages/batches", False),
        ("/v1/models", False),
        ("/", False),
    ],
)
def test_other_paths(path: str, is_like_one: bool) -> None:
    """Posts to them are passed through. If a path looks like a conversation's, the page says so."""
    assert route_of("POST", path) is None
    assert looks_like_conversation("POST", path) is is_like_one


THINKING = {"type": "clear_thinking_20251015"}
MANAGED = "context_management"


@pytest.mark.parametrize(
    ("path", "fields", "kept", "shortened"),
    [
        ("/v1/responses", {"input": ["text", {"type": "message"}], "store": False}, None, None),
        ("/v1/responses", {"input": [{"type": "message"}, {"type": "item_reference"}]}, "item_reference", None),
        ("/v1/responses", {"input": [{"type": "compaction_summary"}]}, None, "compaction_summary"),
        ("/v1/responses", {MANAGED: [{"type": "compaction"}]}, None, MANAGED),
        ("/v1/messages", {}, None, None),
        ("/v1/messages", {"thread": "t"}, "thread", None),
        ("/v1/messages", {MANAGED: {}}, None, None),
        ("/v1/messages", {MANAGED: {"edits": []}}, None, MANAGED),
        ("/v1/messages", {MANAGED: {"edits": [THINKING]}}, None, None),
        ("/v1/messages", {MANAGED: {"edits": [THINKING, {"type": "clear_tool_uses_20250919"}]}}, None, MANAGED),
        ("/v1/messages", {MANAGED: {"edits": ["text"]}}, None, MANAGED),
        ("/v1/models/g:generateContent", {"cachedContent": ""}, None, None),
        ("/v1/models/g:generateContent", {"cached_content": "c"}, "cachedContent", None),
        ("/v1/chat/completions", {"store": True, "thread": "t"}, None, None),
    ],
)
def test_who_keeps_the_history(path: str, fields: dict[str, Any], kept: str | None, shortened: str | None) -> None:
    """A request that refers to what the provider stores does not contain all of its conversation; others it shortens."""
    route = route_of("POST", path)
    assert route is not None
    assert (route.api.kept(fields) or None, route.api.shortened(fields) or None) == (kept, shortened)


@pytest.mark.parametrize(
    ("path", "headers", "provider"),
    [
        ("/v1/models", {}, "openai"),
        ("/v1/models", {"anthropic-version": "2023-06-01"}, "anthropic"),
        ("/v1/messages/batches", {}, "anthropic"),
        ("/v1beta/models", {}, "google"),
        ("/v1/models", {"x-goog-api-key": "k"}, "google"),
        ("/upload/v1beta/files", {}, "google"),
        ("/v1/projects/p/locations/us/endpoints", {}, "google"),
        ("/model/amazon.nova/invoke", {}, "bedrock"),
    ],
)
def test_providers(path: str, headers: dict[str, str], provider: str) -> None:
    """A passed-through request goes to the provider that its headers or path indicate."""
    assert provider_of(path, headers) == provider


@pytest.mark.parametrize(
    ("base", "path", "joined"),
    [
        ("", "/v1/messages", "/v1/messages"),
        ("/", "/v1/messages", "/v1/messages"),
        ("/v1", "/v1/messages", "/v1/messages"),
        ("/v1/", "/messages", "/v1/messages"),
        ("/api/coding/v3", "/v1/messages", "/api/coding/v3/messages"),
        ("/api/v1beta", "/v1beta/models/m:generateContent", "/api/v1beta/models/m:generateContent"),
        ("/anthropic", "/v1/messages", "/anthropic/v1/messages"),
        ("/v1", "/v1/files/a%2Fb", "/v1/files/a%2Fb"),
    ],
)
async def test_versions_are_not_doubled(base: str, path: str, joined: str) -> None:
    """If the upstream's path ends in a version, the version of the request's path is left out."""
    host = "https://a.example"
    async with Upstreams(GatewaySettings(strategy=presets.adaptive, anthropic_url=host + base)) as upstreams:
        assert str(upstreams.url("anthropic", path.encode(), b"a=%20")) == f"{host}{joined}?a=%20"

"""Addresses: which contain a conversation, which provider they belong to, and how they are joined with the upstream's."""

from __future__ import annotations

from typing import Any

import pytest

from compaction import presets
from compaction.gateway import GatewaySettings
from compaction.gateway.routes import looks_like_conversation, provider_of, route_of
from compaction.gateway.upstream import Upstreams


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/v1/chat/completions", "chat"),
        ("/chat/completions", "chat"),
        ("/v3/chat/completions", "chat"),
        ("/v1/responses", "responses"),
        ("/responses", "responses"),
        ("/v1/messages", "messages"),
        ("/v1/messages/count_tokens", "count_tokens"),
        ("/v1beta/models/gemini-2.5-pro:generateContent", "generate"),
        ("/v1/models/gemini-2.5-pro:streamGenerateContent", "generate"),
        ("/openai/deployments/gpt/chat/completions", "chat"),
        ("/openai/v1/responses", "responses"),
        ("/openai/responses", "responses"),
        ("/v1/projects/p/locations/us/publishers/google/models/gemini-2.5-pro:streamGenerateContent", "generate"),
        ("/v1/projects/p/locations/us/publishers/anthropic/models/claude-sonnet-4@20250514:streamRawPredict", "messages"),
        ("/v1beta1/projects/p/locations/us/endpoints/openapi/chat/completions", "chat"),
        ("/model/us.anthropic.claude-sonnet-4-20250514-v1:0/converse", "converse"),
        ("/model/arn:aws:bedrock:us-east-1:1:inference-profile/x/converse-stream", "converse"),
        ("/model/amazon.nova/invoke", None),
        ("/v1/projects/p/locations/us/publishers/anthropic/models/count-tokens:rawPredict", None),
        ("/v1/projects/p/locations/us/publishers/google/models/gemini-2.5-pro:countTokens", None),
        ("/v1beta/models/gemini-2.5-pro:countTokens", None),
        ("/v1/responses/compact", None),
        ("/v1/responses/resp_1", None),
        ("/v1/messages/batches", None),
        ("/v1/models", None),
        ("/", None),
    ],
)
def test_routes(path: str, name: str | None) -> None:
    """Posts to the known paths, with or without a version, contain a conversation; other paths and methods do not."""
    found = route_of("POST", path)
    assert (None if found is None else found.name) == name
    assert route_of("GET", path) is None
    assert found is None or found.counts is (name == "count_tokens")
    assert looks_like_conversation("GET", path) is False


@pytest.mark.parametrize("path", ["/openai/threads/t/messages", "/model/anthropic.claude/invoke", "/v1/x:rawPredict"])
def test_paths_like_those_of_conversations(path: str) -> None:
    """A request to one of them is counted on the page as passed through."""
    assert looks_like_conversation("POST", path)
    assert route_of("POST", path) is None


@pytest.mark.parametrize(
    ("path", "provider", "model"),
    [
        ("/v1/chat/completions", "openai", None),
        ("/v1/messages", "anthropic", None),
        ("/v1beta/models/gemini-2.5-pro:generateContent", "google", "gemini-2.5-pro"),
        ("/openai/deployments/gpt/responses", "openai", "gpt"),
        ("/openai/v1/responses", "openai", None),
        ("/v1/projects/p/locations/us/publishers/google/models/gemini-2.5-pro:generateContent", "google", "gemini-2.5-pro"),
        ("/v1/projects/p/locations/us/publishers/anthropic/models/claude-4@1:rawPredict", "google", "claude-4@1"),
        ("/v1beta1/projects/p/locations/us/endpoints/openapi/chat/completions", "google", None),
        ("/model/us.anthropic.claude:0/converse", "bedrock", "us.anthropic.claude:0"),
    ],
)
def test_a_path_names_the_provider_and_may_name_the_model(path: str, provider: str, model: str | None) -> None:
    """The body's field counts only if the path has none; what is not a text names none."""
    route = route_of("POST", path)
    assert route is not None
    assert route.provider == provider
    assert route.model_of({"model": "of the body"}) == (model or "of the body")
    assert route.model_of({"model": 7}) == route.model_of({}) == (model or "")


THINKING = {"type": "clear_thinking_20251015"}
MANAGED = "context_management"


@pytest.mark.parametrize(
    ("path", "fields", "why"),
    [
        ("/v1/responses", {"input": ["text", {"type": "message"}], "store": False}, None),
        ("/v1/responses", {"input": [{"type": "message"}, {"type": "item_reference"}]}, "item_reference"),
        ("/v1/responses", {"input": [{"type": "compaction_summary"}]}, "compaction_summary"),
        ("/v1/responses", {MANAGED: [{"type": "compaction"}]}, MANAGED),
        ("/v1/messages", {}, None),
        ("/v1/messages", {"thread": "t"}, "thread"),
        ("/v1/messages", {MANAGED: {}}, None),
        ("/v1/messages", {MANAGED: {"edits": []}}, MANAGED),
        ("/v1/messages", {MANAGED: {"edits": [THINKING]}}, None),
        ("/v1/messages", {MANAGED: {"edits": [THINKING, {"type": "clear_tool_uses_20250919"}]}}, MANAGED),
        ("/v1/messages", {MANAGED: {"edits": ["text"]}}, MANAGED),
        ("/v1/models/g:generateContent", {"cachedContent": ""}, None),
        ("/v1/models/g:generateContent", {"cached_content": "c"}, "cachedContent"),
        ("/v1/chat/completions", {"store": True, "thread": "t"}, None),
    ],
)
def test_who_keeps_the_history(path: str, fields: dict[str, Any], why: str | None) -> None:
    """A request that refers to what the provider stores does not contain all of its conversation."""
    route = route_of("POST", path)
    assert route is not None
    assert route.kept(fields) == why


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
        ("https://a.example", "/v1/messages", "https://a.example/v1/messages"),
        ("https://a.example/", "/v1/messages", "https://a.example/v1/messages"),
        ("https://a.example/v1", "/v1/messages", "https://a.example/v1/messages"),
        ("https://a.example/v1/", "/messages", "https://a.example/v1/messages"),
        ("https://a.example/api/coding/v3", "/v1/messages", "https://a.example/api/coding/v3/messages"),
        (
            "https://a.example/api/v1beta",
            "/v1beta/models/m:generateContent",
            "https://a.example/api/v1beta/models/m:generateContent",
        ),
        ("https://a.example/anthropic", "/v1/messages", "https://a.example/anthropic/v1/messages"),
        ("https://a.example/v1", "/v1/files/a%2Fb", "https://a.example/v1/files/a%2Fb"),
    ],
)
async def test_versions_are_not_doubled(base: str, path: str, joined: str) -> None:
    """If the upstream's path ends in a version, the version of the request's path is left out."""
    async with Upstreams(GatewaySettings(strategy=presets.adaptive, anthropic_url=base)) as upstreams:
        assert str(upstreams.url("anthropic", path.encode(), b"a=%20")) == f"{joined}?a=%20"

"""Addresses: which contain a conversation, which provider they belong to, and how they are joined with the upstream's."""

from __future__ import annotations

import pytest

from compaction import presets
from compaction.gateway import GatewaySettings
from compaction.gateway.routes import provider_of, route_of
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

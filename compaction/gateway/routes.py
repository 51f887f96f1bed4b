"""The routes: which path belongs to which API, and which provider serves it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

import attrs

from ..formats import ANTHROPIC_API, BEDROCK_API, CHAT_API, GEMINI_API, RESPONSES_API, MessageFormat, ModelAPI
from ..models import LONGEST_NAME

Provider: TypeAlias = Literal["openai", "anthropic", "google", "bedrock"]
"""The provider whose API a request uses."""

_SLASHES: Final = re.compile(r"/{2,}")
_VERSION: Final = r"/v\d+(?:alpha|beta)?\d*"
_LEADING_VERSION: Final = re.compile(rf"{_VERSION}(?=/)")
_TWICE: Final = re.compile(rf"^({_VERSION})(?:\1)+(?=/)")
_CONVERSATION: Final = re.compile(
    r"(?:/chat/completions|/responses|/messages|/completions|/converse(?:-stream)?|/invoke(?:-with-response-stream)?"
    r"|:(?:streamG|g)enerateContent|:(?:streamR|r)awPredict)/?\Z"
)


@attrs.frozen
class ModelRoute:
    """A route whose requests contain a conversation."""

    api: ModelAPI
    provider: Provider  # whose upstream serves it
    counts: bool = attrs.field(default=False, kw_only=True)  # whether the answer is a count of tokens
    model: str | None = attrs.field(default=None, kw_only=True)  # that the path names, if any

    @property
    def name(self) -> str:
        """Its name in logs."""
        return "count_tokens" if self.counts else self.api.name

    @property
    def format(self) -> MessageFormat:
        """The wire format of the messages."""
        return self.api.format

    def model_of(self, fields: Mapping[str, Any]) -> str:
        """Return the name of the model that a request names; empty if it names none, or one that is too long for a name."""
        found: object = fields.get("model") if self.model is None else self.model
        return found if isinstance(found, str) and len(found) <= LONGEST_NAME else ""


_AZURE: Final = rf"(?:/openai(?:/deployments/(?P<model>[^/]+)|{_VERSION})?)?"  # or OpenAI's own, without such a beginning
_VERTEX: Final = r"/projects/[^/]+/locations/[^/]+"
_ROUTES: Final = [
    (re.compile(rf"\A{path}\Z"), route)
    for path, route in (
        (rf"{_AZURE}/chat/completions", ModelRoute(CHAT_API, "openai")),
        (rf"{_AZURE}/responses", ModelRoute(RESPONSES_API, "openai")),
        (r"/messages", ModelRoute(ANTHROPIC_API, "anthropic")),
        (r"/messages/count_tokens", ModelRoute(ANTHROPIC_API, "anthropic", counts=True)),
        (
            rf"(?:{_VERTEX}/publishers/\w+)?/models/(?P<model>[^/:]+):(?:stream)?[gG]enerateContent",
            ModelRoute(GEMINI_API, "google"),
        ),
        (
            # Vertex counts tokens under the name of a model
            rf"{_VERTEX}/publishers/\w+/models/(?P<model>(?!count-tokens)[^/:]+):(?:streamR|r)awPredict",
            ModelRoute(ANTHROPIC_API, "google"),
        ),
        (rf"{_VERTEX}/endpoints/openapi/chat/completions", ModelRoute(CHAT_API, "google")),
        (r"/model/(?P<model>.+)/converse(?:-stream)?", ModelRoute(BEDROCK_API, "bedrock")),
    )
]
"""The routes by the pattern of their paths, without a leading version."""


def route_of(method: str, path: str) -> ModelRoute | None:
    """Return the route of a path, with or without a leading version; ``None`` if its requests contain no conversation.

    >>> route_of("POST", "/v1/chat/completions").name, route_of("POST", "/v1beta/models/gemini-2.5-pro:generateContent").model
    ('chat', 'gemini-2.5-pro')
    >>> route_of("POST", "/openai/deployments/gpt/chat/completions").model, route_of("POST", "/model/m/converse").provider
    ('gpt', 'bedrock')
    """
    rest = without_version(path).rstrip("/")
    for pattern, route in _ROUTES if method == "POST" else ():
        if (found := pattern.match(rest)) is not None:
            return attrs.evolve(route, model=found.groupdict().get("model"))
    return None


def normalized(path: str) -> str:
    """Return a path as a client means it: one slash between segments, and a version once."""
    return _TWICE.sub(r"\1", _SLASHES.sub("/", path))


def looks_like_conversation(method: str, path: str) -> bool:
    """Return whether requests to a path that no route has probably contain a conversation."""
    return method == "POST" and _CONVERSATION.search(path) is not None


def without_version(path: str) -> str:
    """Return a path without its leading version, such as ``/v1``, if it has one."""
    found = _LEADING_VERSION.match(path)
    return path[found.end() :] if found else path


def provider_of(path: str, headers: Mapping[str, str]) -> Provider:
    """Return the provider of a request that is passed through: by its path, else by headers that only one provider uses."""
    rest = without_version(path)
    if rest.startswith("/messages") or "anthropic-version" in headers:
        return "anthropic"
    if rest.startswith("/model/"):
        return "bedrock"
    is_google = path.startswith(("/v1beta", "/v1alpha", "/upload/v1beta")) or rest.startswith("/projects/")
    return "google" if is_google or "x-goog-api-key" in headers else "openai"

"""The routes whose requests contain a conversation: the field of the messages, what else counts, and who keeps the history."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

import attrs

from ..formats import MessageFormat, anthropic, bedrock, fields_of, gemini, items_of, openai_chat, openai_responses
from ..models import LONGEST_NAME

Provider: TypeAlias = Literal["openai", "anthropic", "google", "bedrock"]
"""The provider whose API a request uses."""

_SLASHES: Final = re.compile(r"/{2,}")
_TWICE: Final = re.compile(r"^(/v\d+(?:alpha|beta)?\d*)(?:\1)+(?=/)")
_CONVERSATION: Final = re.compile(
    r"(?:/chat/completions|/responses|/messages|/completions|/converse(?:-stream)?|/invoke(?:-with-response-stream)?"
    r"|:(?:streamG|g)enerateContent|:(?:streamR|r)awPredict)/?\Z"
)
_VERSION: Final = re.compile(r"/v\d+(?:alpha|beta)?\d*(?=/)")
_GEMINI: Final = re.compile(r"/models/([^/:]+):(?:stream)?[gG]enerateContent")
_AZURE: Final = re.compile(r"/openai(?:/deployments/([^/]+)|/v\d+(?:alpha|beta)?\d*)?(/chat/completions|/responses)")
_VERTEX: Final = re.compile(
    r"/projects/[^/]+/locations/[^/]+/(?:endpoints/openapi(/chat/completions)|publishers/\w+(/models/.+))"
)
_VERTEX_CLAUDE: Final = re.compile(r"/models/([^/:]+):(?:streamR|r)awPredict")
_BEDROCK: Final = re.compile(r"/model/(.+)/converse(?:-stream)?")
_COUNTER: Final = "count-tokens"  # Vertex counts tokens under the name of a model


@attrs.frozen(kw_only=True)
class ModelRoute:
    """A route whose requests contain a conversation.

    Args:
        name: Its name in logs.
        provider: The provider whose API it is.
        format: The wire format of the messages.
        key: The field of the messages.
        counted: Other fields that the model reads.
        counts: Whether the answer is a count of tokens.
        kept: Returns the reason why the provider keeps the history of a request; ``None`` if the request contains all of it.
        model: The model that the path names, if any.
    """

    name: str
    provider: Provider
    format: MessageFormat
    key: str
    counted: tuple[str, ...]
    kept: Callable[[Mapping[str, Any]], str | None] = lambda fields: None
    counts: bool = False
    model: str | None = None

    def model_of(self, fields: Mapping[str, Any]) -> str:
        """Return the name of the model that a request names; empty if it names none, or one that is too long for a name."""
        found: object = fields.get("model") if self.model is None else self.model
        return found if isinstance(found, str) and len(found) <= LONGEST_NAME else ""


def _kept_by_responses(fields: Mapping[str, Any]) -> str | None:
    for name in ("previous_response_id", "conversation", "context_management"):
        if fields.get(name):
            return name
    if fields.get("store") is True:
        return "store"
    for item in items_of(fields.get("input")) or ():
        kind = str((fields_of(item) or {}).get("type"))
        if kind == "item_reference" or kind.startswith("compaction"):
            return kind
    return None


def _kept_by_anthropic(fields: Mapping[str, Any]) -> str | None:
    if fields.get("thread"):
        return "thread"
    managed = fields_of(fields.get("context_management"))
    kinds = [str((fields_of(each) or {}).get("type")) for each in items_of((managed or {}).get("edits")) or ()]
    if managed and not (kinds and all(kind.startswith("clear_thinking") for kind in kinds)):
        return "context_management"
    return None


def _kept_by_gemini(fields: Mapping[str, Any]) -> str | None:
    return "cachedContent" if fields.get("cachedContent") or fields.get("cached_content") else None


_MESSAGES: Final = ModelRoute(
    name="messages",
    provider="anthropic",
    format=anthropic,
    key="messages",
    counted=("system", "tools"),
    kept=_kept_by_anthropic,
)
_ROUTES: Final[Mapping[str, ModelRoute]] = {
    "/chat/completions": ModelRoute(
        name="chat",
        provider="openai",
        format=openai_chat,
        key="messages",
        counted=("tools", "functions", "response_format"),
    ),
    "/responses": ModelRoute(
        name="responses",
        provider="openai",
        format=openai_responses,
        key="input",
        counted=("instructions", "tools", "text"),
        kept=_kept_by_responses,
    ),
    "/messages": _MESSAGES,
    "/messages/count_tokens": attrs.evolve(_MESSAGES, name="count_tokens", counts=True),
}
_GENERATE: Final = ModelRoute(
    name="generate",
    provider="google",
    format=gemini,
    key="contents",
    counted=("systemInstruction", "system_instruction", "tools"),
    kept=_kept_by_gemini,
)
_CONVERSE: Final = ModelRoute(
    name="converse",
    provider="bedrock",
    format=bedrock,
    key="messages",
    counted=("system", "toolConfig"),
)


def route_of(method: str, path: str) -> ModelRoute | None:
    """Return the route of a path, with or without a leading version; ``None`` if its requests contain no conversation.

    >>> route_of("POST", "/v1/chat/completions").name, route_of("POST", "/v1beta/models/gemini-2.5-pro:generateContent").model
    ('chat', 'gemini-2.5-pro')
    >>> route_of("POST", "/openai/deployments/gpt/chat/completions").model, route_of("POST", "/model/m/converse").provider
    ('gpt', 'bedrock')
    """
    if method != "POST":
        return None
    rest = without_version(path).rstrip("/")
    if (found := _VERTEX.fullmatch(rest)) is not None:
        return attrs.evolve(_ROUTES[found[1]], provider="google") if found[1] else _of_publisher(found[2])
    if (found := _GEMINI.fullmatch(rest)) is not None:
        return attrs.evolve(_GENERATE, model=found[1])
    if (found := _AZURE.fullmatch(rest)) is not None:
        return attrs.evolve(_ROUTES[found[2]], model=found[1])
    if (found := _BEDROCK.fullmatch(rest)) is not None:
        return attrs.evolve(_CONVERSE, model=found[1])
    return _ROUTES.get(rest)


def _of_publisher(rest: str) -> ModelRoute | None:
    """Return the route of a model of Vertex: Google's own, or Anthropic's."""
    if (found := _GEMINI.fullmatch(rest)) is not None:
        return attrs.evolve(_GENERATE, model=found[1])
    found = _VERTEX_CLAUDE.fullmatch(rest)
    if found is None or found[1].startswith(_COUNTER):
        return None
    return attrs.evolve(_MESSAGES, provider="google", model=found[1])


def normalized(path: str) -> str:
    """Return a path as a client means it: one slash between segments, and a version once."""
    return _TWICE.sub(r"\1", _SLASHES.sub("/", path))


def looks_like_conversation(method: str, path: str) -> bool:
    """Return whether requests to a path that no route has probably contain a conversation."""
    return method == "POST" and _CONVERSATION.search(path) is not None


def without_version(path: str) -> str:
    """Return a path without its leading version, such as ``/v1``, if it has one."""
    found = _VERSION.match(path)
    return path[found.end() :] if found else path


def provider_of(path: str, headers: Mapping[str, str]) -> Provider:
    """Return the provider of a request that is passed through: by its path, else by headers that only one provider uses."""
    rest = without_version(path)
    if rest.startswith("/messages") or "anthropic-version" in headers:
        return "anthropic"
    if rest.startswith("/model/"):
        return "bedrock"
    if (
        path.startswith(("/v1beta", "/v1alpha", "/upload/v1beta"))
        or rest.startswith("/projects/")
        or "x-goog-api-key" in headers
    ):
        return "google"
    return "openai"

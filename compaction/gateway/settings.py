"""The settings of a gateway."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import attrs

from ..checks import above, count, must_be
from ..errors import ConfigurationError
from ..strategies import StrategyLike
from ..tokens import TokenCounter

LOOPBACK_NAMES: Final = frozenset({"127.0.0.1", "localhost", "::1"})
"""The host names of this machine's loopback interface."""

_NAME: Final = re.compile(r"[\w.-]+", re.ASCII)
_LOGIN: Final = re.compile(r"//[^/]*@")
_MEBIBYTE: Final = 1_048_576


def _is_address(url: str) -> bool:
    try:
        return url.startswith(("http://", "https://")) and bool(urlsplit(url).hostname) and not {"?", "#"} & set(url)
    except ValueError:  # a bracket without the other
        return False


def without_login(url: str) -> str:
    """Return an address without the user's name and password, for pages, logs and errors."""
    return _LOGIN.sub("//", url)


def _upstream(default: str) -> Any:
    usable = must_be("an address with https:// or http:// and a host, without '?' and '#'", _is_address)
    return attrs.field(default=default, validator=usable, repr=lambda url: repr(without_login(url)))


def _token(instance: object, attribute: attrs.Attribute[str | None], value: str | None) -> None:
    if value is None:
        return
    if not value.strip():
        raise ConfigurationError("GatewaySettings: an empty 'token' protects nothing; pass a token, or None to require none")
    if value != value.strip() or not (value.isascii() and value.isprintable()):  # no client can send it in a header
        subject = "GatewaySettings: 'token'"
        text = f"{subject} must be printable ASCII without blanks at its ends"
        raise ConfigurationError(text, argument="token", subject=subject)


def _names(instance: object, attribute: attrs.Attribute[Any], value: Any) -> None:
    is_text, subject = isinstance(value, str), "GatewaySettings: 'names'"
    rule = "a set of host names" if is_text else "host names without scheme and port"
    for name in [value] if is_text else value:
        try:
            fits = not is_text and (_NAME.fullmatch(name) or ip_address(name))
        except ValueError:
            fits = False
        if not fits:
            raise ConfigurationError(f"{subject} must be {rule} (got {name!r})", argument="name", subject=subject)


def _window(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if value != "auto":
        count(1)(instance, attribute, value)


@attrs.frozen(kw_only=True)
class GatewaySettings:
    """The settings of a gateway.

    Args:
        strategy: Returns the strategy for a window, given in tokens.
        awaits: Whether the strategy may call a model; its summaries are then prepared in the background.
        window: The context window in tokens, or ``"auto"`` for the input limit of the model that each request names.
        counter: A token counter or the name of one.
        openai_url: The upstream for chat completions, Responses and unknown paths.
        anthropic_url: The upstream for Anthropic's messages.
        google_url: The upstream for requests of Gemini and Vertex.
        bedrock_url: The upstream for Amazon Bedrock's requests.
        store: The file in which decisions are saved; ``None`` to save nothing.
        forget_after: Seconds after which an unused conversation is deleted; ``None`` for never.
        token: The token that clients must send in the header ``x-compaction-token``; ``None`` to require none.
        names: Host names under which clients may reach the gateway, besides those of loopback.
        origins: Origins of web pages and apps that may use the gateway from a browser, such as ``"http://localhost:3000"``.
        shadow: Whether every request is sent unchanged, and the pages show what compaction would have done.
        recall: The file in which content that leaves requests is stored for the model to read; ``None`` to store none.
        record: The folder in which sessions are recorded; ``None`` to record nothing.
        cases: The folder for requests that were refused only in their compacted form, masked; ``None`` to write none.
        max_body: The largest request body in bytes, >= 1.
        most_conversations: The most conversations in memory, >= 1, for each format and window.
        conversation_bytes: The most bytes of their messages, >= 1.
        body_seconds: Seconds in which the body of a request to a model must arrive, above 0.
        timeout: Seconds without a byte after which a request to an upstream fails, above 0.
        keys: Secrets that verify signed summaries; the first one signs.
        clock: Returns seconds since 1970.

    Raises:
        ConfigurationError: If a figure is out of range, or an address, a host name or the token cannot be used.
    """

    strategy: Callable[[int], StrategyLike]
    awaits: bool = False
    window: int | Literal["auto"] = attrs.field(default="auto", validator=_window)
    counter: TokenCounter | str = "auto"
    openai_url: str = _upstream("https://api.openai.com/v1")
    anthropic_url: str = _upstream("https://api.anthropic.com/v1")
    google_url: str = _upstream("https://generativelanguage.googleapis.com")
    bedrock_url: str = _upstream("https://bedrock-runtime.us-east-1.amazonaws.com")
    store: Path | None = None
    forget_after: float | None = attrs.field(default=None, validator=attrs.validators.optional(above(0)))
    token: str | None = attrs.field(default=None, validator=_token, repr=False)
    names: frozenset[str] = attrs.field(default=frozenset[str](), validator=_names)
    origins: frozenset[str] = frozenset()
    shadow: bool = False
    recall: Path | None = None
    record: Path | None = None
    cases: Path | None = None
    max_body: int = attrs.field(default=64 * _MEBIBYTE, validator=count(1))
    most_conversations: int = attrs.field(default=1_000, validator=count(1))
    conversation_bytes: int = attrs.field(default=256 * _MEBIBYTE, validator=count(1))
    body_seconds: float = attrs.field(default=120.0, validator=above(0))
    timeout: float = attrs.field(default=600.0, validator=above(0))
    keys: tuple[str, ...] = attrs.field(default=(), repr=False)
    clock: Callable[[], float] = time.time

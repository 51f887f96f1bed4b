"""The settings of a gateway."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal

import attrs

from ..checks import above, count
from ..errors import ConfigurationError
from ..strategies import StrategyLike
from ..tokens import TokenCounter

LOOPBACK_NAMES: Final = frozenset({"127.0.0.1", "localhost", "::1"})
"""The names of this machine that no other machine can use."""

_MEBIBYTE: Final = 1_048_576


def _url(instance: object, attribute: attrs.Attribute[str], value: str) -> None:
    if not value.startswith(("http://", "https://")):
        raise ConfigurationError(f"GatewaySettings: {attribute.name!r} must begin with https:// or http:// (got {value!r})")


def _window(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if value != "auto":
        count(1)(instance, attribute, value)


@attrs.frozen(kw_only=True)
class GatewaySettings:
    """The settings of a gateway.

    Args:
        strategy: Returns the strategy for a window of so many tokens.
        awaits: Whether a strategy may ask a model; its summaries are then prepared in the background.
        window: Tokens that a request may have, or ``"auto"`` for the input limit of the model that the request names.
        counter: A token counter or the name of one.
        openai_url: Where chat completions, Responses and everything unknown are sent.
        anthropic_url: Where Anthropic's messages are sent.
        google_url: Where Gemini's requests are sent.
        store: The file in which decisions are saved, if anywhere.
        forget_after: Seconds after which a conversation that nobody continues is forgotten; ``None`` for never.
        token: The token that clients send in the header ``x-compaction-token``; ``None`` to ask for none.
        names: Host names under which clients may reach the gateway, besides those of this machine's loopback.
        shadow: Whether every request is sent as it came, and what compaction would have done is shown.
        record: The folder in which sessions are recorded, if anywhere.
        cases: The folder for cases of requests that only the gateway made invalid, with texts masked; ``None`` for none.
        max_body: Bytes of a request that is read as a whole, >= 1.
        conversations: The number of conversations in memory, >= 1, for each format and window.
        conversation_bytes: Bytes of all their messages, >= 1.
        timeout: Seconds without a byte after which an upstream is given up, above 0.
        keys: Secrets that sign summaries; the first one signs.
        clock: Returns seconds since 1970.

    Raises:
        ConfigurationError: If a figure is out of range, or an address is not one.
    """

    strategy: Callable[[int], StrategyLike]
    awaits: bool = False
    window: int | Literal["auto"] = attrs.field(default="auto", validator=_window)
    counter: TokenCounter | str = "auto"
    openai_url: str = attrs.field(default="https://api.openai.com/v1", validator=_url)
    anthropic_url: str = attrs.field(default="https://api.anthropic.com/v1", validator=_url)
    google_url: str = attrs.field(default="https://generativelanguage.googleapis.com", validator=_url)
    store: Path | None = None
    forget_after: float | None = attrs.field(default=None, validator=attrs.validators.optional(above(0)))
    token: str | None = None
    names: frozenset[str] = frozenset()
    shadow: bool = False
    record: Path | None = None
    cases: Path | None = None
    max_body: int = attrs.field(default=64 * _MEBIBYTE, validator=count(1))
    conversations: int = attrs.field(default=1_000, validator=count(1))
    conversation_bytes: int = attrs.field(default=256 * _MEBIBYTE, validator=count(1))
    timeout: float = attrs.field(default=600.0, validator=above(0))
    keys: tuple[str, ...] = ()
    clock: Callable[[], float] = time.time

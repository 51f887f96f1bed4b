"""A summarizer that asks a model, over the ``openai`` package, on any server that speaks OpenAI's chat completions.

Here are the options. `Folding` decides what is read in which parts, `Asking` whom to ask how often, `judge` what is an answer,
and `Sending` sends.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal

import attrs

from ..checks import Validator, above, count
from ..errors import ConfigurationError
from ..tokens import Usage
from .asking import Asking, Retries
from .base import SummaryRequest
from .exchange import Exchange
from .folding import Folding
from .openai_driver import Sending, is_sync
from .redaction import redact as redact_secrets

__all__ = ["OpenAISummarizer"]

_OURS: Final = frozenset({"model", "messages", "max_tokens", "max_completion_tokens", "n", "stream"})
_optional = attrs.validators.optional


def _a_name(instance: object, attribute: attrs.Attribute[str], value: object) -> None:
    if not isinstance(value, str) or not value:
        raise ConfigurationError(f"OpenAISummarizer: {attribute.name!r} must be a name (got {value!r})")


def _from_0_to_1(instance: object, attribute: attrs.Attribute[float], value: float) -> None:
    if not 0 <= value <= 1:
        raise ConfigurationError(f"OpenAISummarizer: {attribute.name!r} must be a share from 0 to 1 (got {value!r})")


def _at_least_1(instance: object, attribute: attrs.Attribute[float], value: float) -> None:
    if not value >= 1:
        raise ConfigurationError(f"OpenAISummarizer: {attribute.name!r} must be 1 or more (got {value!r})")


def _one_of(*values: str) -> Validator:
    def check(instance: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
        if value not in values:
            raise ConfigurationError(f"OpenAISummarizer: {attribute.name!r} must be one of {', '.join(values)} (got {value!r})")

    return check


def _no_options_of_ours(instance: object, attribute: attrs.Attribute[Mapping[str, Any]], value: Mapping[str, Any]) -> None:
    if ours := sorted(_OURS.intersection(value)):
        raise ConfigurationError(
            f"OpenAISummarizer: {attribute.name!r} must not hold {', '.join(ours)}, which the summarizer sets"
        )


def _key_in(variable: str) -> str:
    """The key that an environment variable holds.

    Raises:
        ConfigurationError: If it is not set.
    """
    key = os.environ.get(variable)
    if not key:
        raise ConfigurationError(f"OpenAISummarizer: {variable} is not set; put the server's key into that variable")
    return key


@attrs.frozen
class OpenAISummarizer:
    """Has a model write the summary.

    With an ``openai.OpenAI`` client it answers at once and fits the ``_sync`` entry points; with an ``openai.AsyncOpenAI``, or
    no client, it has to be awaited, on asyncio or trio. Secrets are taken out of what is sent and of what comes back. What is
    longer than the window is read in parts. An answer is accepted only if it can stand for the conversation; all else is a
    `SummaryFailed` that says what was tried. A reply that was cut off is asked for once more and never used as it is: a summary
    ends with what comes next, and with what cannot be found out again.

    Args:
        model: The model's name.
        client: An ``openai.AsyncOpenAI`` or ``openai.OpenAI``; its own retries and timeout are not used. By default one is made
            for each summary, and closed.
        base_url: The server, if there is no client; by default what the ``openai`` package takes.
        api_key: Its key, if there is no client; by default ``OPENAI_API_KEY``. A server that asks for none takes any text.
        api_key_env: The environment variable that holds the key, in place of ``api_key``; read for each summary, so that no
            file and no pickle holds it.
        timeout: Seconds for one request, > 0. With an ``OpenAI`` client, seconds until the next byte.
        max_retries: How often a request is sent again after a fault that may pass: 408, 409, 429, 5xx, no connection, a body
            that cannot be read.
        backoff_seconds: The wait before the first retry, > 0; it doubles each time, up to 30 seconds.
        max_wait_seconds: The longest wait a server may ask for (``Retry-After``), > 0; if it asks for more, the model is given
            up.
        fallback_model: A model of the same server to ask once the first is given up.
        window: Tokens of the models' window, of the smaller one's if they differ; ``None`` if not known: then all is sent at
            once, and halved when the server says that it is too long.
        headroom: Tokens a reply may have, as a multiple of the summary's budget, >= 1. A model that thinks before it answers
            needs several times the budget.
        max_tokens_field: What that limit is called; newer OpenAI models take ``"max_completion_tokens"`` alone.
        rules_role: The role that says the rules: ``"system"``, ``"developer"``, or ``"user"`` for a model that knows no other.
        max_parts: How many parts a conversation may be read in, >= 1.
        least_read: The share of a long request, by our count, that a server must report as read, from 0 to 1: some cut what is
            too long and say nothing. 0 asks nothing.
        options: Further arguments of the request, such as ``{"temperature": 0}``.
        redact: Takes the secrets out of a text.
        on_usage: Told the usage of each reply that reports it, used or not.
        sleep: Waits so many seconds; by default ``anyio.sleep``, or ``time.sleep`` for an ``OpenAI`` client.
        random: Numbers from 0 up to 1 that spread the waits; by default they follow from the request.

    Raises:
        ConfigurationError: If an argument is out of range or of the wrong kind.

    >>> local = OpenAISummarizer("qwen3-8b", base_url="http://127.0.0.1:8080/v1", api_key="none", window=32_768)
    >>> attrs.evolve(local, fallback_model="qwen3-4b").model
    'qwen3-8b'
    """

    model: str = attrs.field(validator=_a_name)
    client: Any = attrs.field(default=None, repr=False, kw_only=True)
    base_url: str | None = attrs.field(default=None, kw_only=True)
    api_key: str | None = attrs.field(default=None, repr=False, kw_only=True)
    api_key_env: str | None = attrs.field(default=None, validator=_optional(_a_name), kw_only=True)
    timeout: float = attrs.field(default=120.0, validator=above(0), kw_only=True)
    max_retries: int = attrs.field(default=2, validator=count(), kw_only=True)
    backoff_seconds: float = attrs.field(default=1.0, validator=above(0), kw_only=True)
    max_wait_seconds: float = attrs.field(default=60.0, validator=above(0), kw_only=True)
    fallback_model: str | None = attrs.field(default=None, validator=_optional(_a_name), kw_only=True)
    window: int | None = attrs.field(default=None, validator=_optional(count(1)), kw_only=True)
    headroom: float = attrs.field(default=1.5, validator=_at_least_1, kw_only=True)
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = attrs.field(
        default="max_tokens", validator=_one_of("max_tokens", "max_completion_tokens"), kw_only=True
    )
    rules_role: Literal["system", "developer", "user"] = attrs.field(
        default="system", validator=_one_of("system", "developer", "user"), kw_only=True
    )
    max_parts: int = attrs.field(default=100, validator=count(1), kw_only=True)
    least_read: float = attrs.field(default=0.5, validator=_from_0_to_1, kw_only=True)
    options: Mapping[str, Any] = attrs.field(
        factory=dict[str, Any], converter=dict, validator=_no_options_of_ours, hash=False, kw_only=True
    )
    redact: Callable[[str], str] = attrs.field(default=redact_secrets, repr=False, kw_only=True)
    on_usage: Callable[[Usage], object] | None = attrs.field(default=None, repr=False, kw_only=True)
    sleep: Callable[[float], object] | None = attrs.field(default=None, repr=False, kw_only=True)
    random: Callable[[], float] | None = attrs.field(default=None, repr=False, kw_only=True)

    def __attrs_post_init__(self) -> None:
        if self.api_key_env is not None and (self.client is not None or self.api_key is not None):
            raise ConfigurationError("OpenAISummarizer: 'api_key_env' stands in place of a client and of 'api_key'; pass one")
        if self.client is None:
            return
        sync = is_sync(self.client)
        if self.base_url is not None or self.api_key is not None:
            raise ConfigurationError(
                "OpenAISummarizer: a client has a base_url and an api_key of its own; pass one or the other"
            )
        if sync and inspect.iscoroutinefunction(self.sleep):
            raise ConfigurationError("OpenAISummarizer: with an OpenAI client 'sleep' must not have to be awaited")

    @property
    def cache_key(self) -> str:
        """What its answers depend on besides the request."""
        server = str(self.client.base_url) if self.client is not None else self.base_url
        redacted = getattr(self.redact, "__qualname__", type(self.redact).__qualname__)
        parts = (self.model, self.fallback_model, server, self.window, self.headroom, self.rules_role, redacted)
        return f"{parts} {sorted(self.options.items())}"

    def summarize(self, request: SummaryRequest) -> str | Awaitable[str]:
        """The summary; with an ``OpenAI`` client at once, else to be awaited.

        Raises:
            SummaryFailed: If no model gave one that can stand for the conversation.
            ConfigurationError: If the window has no room to read with, there is no key, or ``openai`` cannot be imported.
        """
        exchange = self._exchange(request)
        sending = Sending(
            client=self.client,
            base_url=self.base_url,
            api_key=self.api_key if self.api_key_env is None else _key_in(self.api_key_env),
            timeout=self.timeout,
            max_tokens_field=self.max_tokens_field,
            options=self.options,
            on_usage=self.on_usage,
            sleep=self.sleep,
        )
        if self.client is not None and is_sync(self.client):
            return sending.drive(exchange)
        return sending.drive_async(exchange)

    def _exchange(self, request: SummaryRequest) -> Exchange:
        """The summary in the making: all decisions, nothing sent."""
        retries = Retries(
            times=self.max_retries,
            backoff_seconds=self.backoff_seconds,
            max_wait_seconds=self.max_wait_seconds,
            random=self.random,
        )
        folding = Folding(
            window=self.window,
            headroom=self.headroom,
            max_parts=self.max_parts,
            rules_role=self.rules_role,
            redact=self.redact,
        )
        models = [self.model] if self.fallback_model is None else [self.model, self.fallback_model]
        return folding.summarize(request, Asking(models=models, retries=retries, least_read=self.least_read))

"""A summarizer that asks a model through the ``openai`` package, on any server with OpenAI's chat completions."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Final, Literal

import attrs

from ..checks import above, at_least, count, must_be, one_of
from ..errors import ConfigurationError
from ..index import unawaited
from ..tokens import Usage
from .base import TIMEOUT_SECONDS, SummaryRequest, function_key
from .chunked import SummaryOptions
from .model_calls import ModelCall, ModelFault, ModelReply, SummarySteps, drive
from .openai_client import in_time, is_sync_client, opened_client, read_error, read_reply, read_usage
from .redaction import redact as redact_secrets

_NAME: Final = "OpenAISummarizer"
_OURS: Final = frozenset({"model", "messages", "max_tokens", "max_completion_tokens", "n", "stream"})
_optional = attrs.validators.optional
_a_name: Final = must_be("a name", lambda value: isinstance(value, str) and value != "")


def _no_options_of_ours(instance: object, attribute: attrs.Attribute[Mapping[str, Any]], value: Mapping[str, Any]) -> None:
    if ours := sorted(_OURS.intersection(value)):
        raise ConfigurationError(
            f"OpenAISummarizer: {attribute.name!r} must not hold {', '.join(ours)}, which the summarizer sets"
        )


@attrs.frozen
class OpenAISummarizer:
    """A summarizer that has a model write the summary.

    With an ``openai.OpenAI`` client it returns the summary and works with the ``_sync`` entry points. With an
    ``openai.AsyncOpenAI``, or no client, it returns an awaitable, for asyncio or trio. Secrets are removed from what is sent
    and from what comes back. A conversation longer than the window is summarized in parts. An answer that cannot stand for the
    conversation is a `SummaryFailed` that lists what was tried. A reply that was cut off is requested once more and never
    used: the end of a summary holds the next steps and what cannot be found again.

    Args:
        model: The model's name.
        client: An ``openai.AsyncOpenAI`` or ``openai.OpenAI``; ``timeout`` and ``max_retries`` take the place of its own. By
            default each summary makes a client and closes it.
        base_url: The server, if there is no client; by default that of the ``openai`` package.
        api_key: The server's key, if there is no client; by default ``OPENAI_API_KEY``. Any text will do for a server that
            needs no key.
        api_key_env: The environment variable that holds the key, in place of ``api_key``; read for each summary, so that no
            file and no pickle holds it. Its value goes to ``base_url``, so whoever writes both decides which secret goes
            where; `compaction.config.load` can restrict them.
        timeout: Seconds for one answer, the client's retries included, > 0; with an ``OpenAI`` client, seconds until the next
            byte of one request, which that client retries.
        max_retries: How often the client sends a request again after a temporary failure: 408, 409, 429, 5xx or no connection.
            It waits longer each time, or as long as the server says (``Retry-After``).
        window: Tokens of the model's context window; ``None`` if it is not known: then everything is sent in one request, and
            in halves if the server answers that it is too long.
        headroom: Tokens a reply may have, as a multiple of the summary's budget, >= 1. A reasoning model needs several times
            the budget.
        max_tokens_field: The request field for that limit; newer OpenAI models accept only ``"max_completion_tokens"``.
        rules_role: The role of the message with the rules: ``"system"``, ``"developer"``, or ``"user"`` for a model that
            accepts no other.
        max_parts: The largest number of parts to read a conversation in, >= 1.
        options: Further arguments of the request, such as ``{"temperature": 0}``.
        redact: Removes the secrets from a text: the conversation, an answer, and what an error says.
        on_usage: Called with the usage of each reply that reports one, whether the reply is used or not.

    Raises:
        ConfigurationError: If an argument is out of range or of the wrong kind.

    >>> local = OpenAISummarizer("qwen3-8b", base_url="http://127.0.0.1:8080/v1", api_key="none", window=32_768)
    >>> attrs.evolve(local, model="qwen3-4b").window
    32768
    """

    timeout_seconds: ClassVar[None] = None  # each call of the model has one, ``timeout``
    model: str = attrs.field(validator=_a_name)
    client: Any = attrs.field(default=None, repr=False, kw_only=True)
    base_url: str | None = attrs.field(default=None, kw_only=True)
    api_key: str | None = attrs.field(default=None, repr=False, kw_only=True)
    api_key_env: str | None = attrs.field(default=None, validator=_optional(_a_name), kw_only=True)
    timeout: float = attrs.field(default=TIMEOUT_SECONDS, validator=above(0), kw_only=True)
    max_retries: int = attrs.field(default=2, validator=count(), kw_only=True)
    window: int | None = attrs.field(default=None, validator=_optional(count(1)), kw_only=True)
    headroom: float = attrs.field(default=1.5, validator=at_least(1), kw_only=True)
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = attrs.field(
        default="max_tokens", validator=one_of("max_tokens", "max_completion_tokens"), kw_only=True
    )
    rules_role: Literal["system", "developer", "user"] = attrs.field(
        default="system", validator=one_of("system", "developer", "user"), kw_only=True
    )
    max_parts: int = attrs.field(default=100, validator=count(1), kw_only=True)
    options: Mapping[str, Any] = attrs.field(
        factory=dict[str, Any], converter=dict, validator=_no_options_of_ours, hash=False, kw_only=True
    )
    redact: Callable[[str], str] = attrs.field(default=redact_secrets, repr=False, kw_only=True)
    on_usage: Callable[[Usage], object] | None = attrs.field(default=None, repr=False, kw_only=True)

    def __attrs_post_init__(self) -> None:
        if self.api_key_env is not None and (self.client is not None or self.api_key is not None):
            raise ConfigurationError("OpenAISummarizer: pass only one of 'client', 'api_key' and 'api_key_env'")
        if self.client is None:
            return
        is_sync_client(self.client, _NAME)
        if self.base_url is not None or self.api_key is not None:
            raise ConfigurationError(
                "OpenAISummarizer: a client has its own base_url and api_key; pass the client or the arguments, not both"
            )

    @property
    def cache_key(self) -> str:
        """The options that its answers depend on, as a text."""
        server = str(self.client.base_url) if self.client is not None else self.base_url
        parts = (self.model, server, self.window, self.headroom, self.rules_role, function_key(self.redact))
        return f"{parts} {sorted(self.options.items())}"

    def summarize(self, request: SummaryRequest) -> str | Awaitable[str]:
        """Return the summary; an awaitable unless the client is an ``openai.OpenAI``.

        Raises:
            SummaryFailed: If the model wrote no usable summary.
            ConfigurationError: If the window is too small, there is no key, or ``openai`` cannot be imported.
        """
        # the options are fields of this class too, so that a configuration can name them; the timeout is the client's
        options = SummaryOptions(window=self.window, headroom=self.headroom, max_parts=self.max_parts, redact=self.redact)
        steps = options.steps(request, self.model, rules_role=self.rules_role)
        if self.client is not None and is_sync_client(self.client, _NAME):
            return unawaited(self._summary(steps, None))
        key = self.api_key if self.api_key_env is None else os.environ.get(self.api_key_env)
        if self.api_key_env is not None and not key:
            raise ConfigurationError(f"OpenAISummarizer: {self.api_key_env} is not set; set it to the server's key")
        return self._summary(steps, key)

    async def _summary(self, steps: SummarySteps, api_key: str | None) -> str:
        """Return the summary; with a synchronous client, this awaits nothing."""
        options: dict[str, Any] = {"timeout": self.timeout, "max_retries": self.max_retries}
        async with opened_client(self.client, _NAME, **options, base_url=self.base_url, api_key=api_key) as client:
            return await drive(steps, partial(self._send, client))

    async def _send(self, client: Any, call: ModelCall) -> ModelReply | ModelFault:
        """Send a call and return the reply, or the failure that an exception of the client stands for.

        Raises:
            ConfigurationError: If the client does not accept the arguments.
        """
        messages = [{"role": role, "content": text} for role, text in call.messages]
        arguments = {**self.options, "model": call.model, "messages": messages, self.max_tokens_field: call.max_tokens}
        try:
            completion: object = await in_time(client.chat.completions.create(**arguments), self.timeout)
        except TypeError as error:
            raise ConfigurationError(f"OpenAISummarizer: the client does not accept these 'options' ({error})") from error
        except Exception as error:
            return read_error(error, timeout_seconds=self.timeout, redact=self.redact)
        usage = read_usage(completion)
        if usage is not None and self.on_usage is not None:
            self.on_usage(usage)
        return read_reply(completion, self.redact)

"""The frameworks' chat models as summarizers: LangChain's, and Agent Framework's chat clients."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, ClassVar, cast

import anyio
import attrs

from ..index import unawaited
from ..summarizers import ModelCall, ModelReply, SummaryOptions, SummaryRequest
from .requirements import AGENT_FRAMEWORK, LANGCHAIN_CORE, import_framework


@attrs.frozen
class ChatClientSummarizer:
    """A summarizer that has a chat client of Agent Framework write the summary.

    Args:
        client: Any chat client: ``get_response(messages, options=...)``. A smaller model than the agent's is enough.
        options: Further chat options of the request, such as ``{"temperature": 0}``.
        summary_options: The model's window, and the limits of the summary.

    Raises:
        ConfigurationError: If Agent Framework is missing or too old.
    """

    timeout_seconds: ClassVar[None] = None  # each call of the model has one, in ``summary_options``
    client: Any = attrs.field(repr=False)
    options: Mapping[str, Any] = attrs.field(factory=dict[str, Any], converter=dict, hash=False, kw_only=True)
    summary_options: SummaryOptions = attrs.field(factory=SummaryOptions, kw_only=True)

    def __attrs_post_init__(self) -> None:
        AGENT_FRAMEWORK.check()

    @property
    def cache_key(self) -> str:
        """The model and the options that its answers depend on, for `compaction.summarizers.CachedSummarizer`."""
        return self.summary_options.cache_key(self.client, self.options)

    async def summarize(self, request: SummaryRequest) -> str:
        """Return the summary.

        Raises:
            SummaryFailed: If the model wrote no usable summary.
        """
        return await self.summary_options.summary(request, type(self.client).__name__, self._ask)

    async def _ask(self, call: ModelCall) -> ModelReply:
        message = import_framework("agent_framework").Message
        messages = [message(role, [text]) for role, text in call.messages]
        options = {**self.options, "max_tokens": call.max_tokens}
        answer = await self.client.get_response(messages, options=options)
        return ModelReply(text=answer.text or "", finish=str(answer.finish_reason or ""))


@attrs.frozen
class ChatModelSummarizer:
    """A summarizer that has a LangChain chat model write the summary.

    Args:
        model: Any chat model: ``invoke(messages)`` and ``ainvoke(messages)``. A smaller one than the agent's is enough.
        sync: Whether to call ``invoke``, for graphs that are not awaited; ``None``: only if no event loop is running.
        options: Further arguments of each call; include ``max_tokens`` to limit the reply.
        summary_options: The model's window, and the limits of the summary.

    Raises:
        ConfigurationError: If LangChain is missing or too old.
    """

    timeout_seconds: ClassVar[None] = None  # each call of the model has one, in ``summary_options``
    model: Any = attrs.field(repr=False)
    sync: bool | None = attrs.field(default=None, kw_only=True)
    options: Mapping[str, Any] = attrs.field(factory=dict[str, Any], converter=dict, hash=False, kw_only=True)
    summary_options: SummaryOptions = attrs.field(factory=SummaryOptions, kw_only=True)

    def __attrs_post_init__(self) -> None:
        LANGCHAIN_CORE.check()

    @property
    def cache_key(self) -> str:
        """The model and the options that its answers depend on, for `compaction.summarizers.CachedSummarizer`."""
        return self.summary_options.cache_key(self.model, self.options)

    def summarize(self, request: SummaryRequest) -> str | Awaitable[str]:
        """Return the summary, or an awaitable of it.

        Raises:
            SummaryFailed: If the model wrote no usable summary.
        """
        name = type(self.model).__name__
        if self.sync or (self.sync is None and not _in_event_loop()):
            return unawaited(self.summary_options.summary(request, name, self._ask_sync))
        return self.summary_options.summary(request, name, self._ask)

    async def _ask(self, call: ModelCall) -> ModelReply:
        return _reply(await self.model.ainvoke(list(call.messages), **self.options))

    def _ask_sync(self, call: ModelCall) -> ModelReply:
        """Call the model without awaiting, with its option ``timeout`` if it has one, because nothing else can end the call."""
        fields: Mapping[str, Any] = getattr(cast("object", type(self.model)), "model_fields", {})
        has_timeout = any(field.alias == "timeout" for field in fields.values())
        timeout = {"timeout": self.summary_options.timeout_seconds} if has_timeout else {}
        return _reply(self.model.invoke(list(call.messages), **{**timeout, **self.options}))


def _reply(answer: Any) -> ModelReply:
    metadata: dict[str, Any] = answer.response_metadata or {}
    finish = metadata.get("finish_reason") or metadata.get("stop_reason") or ""
    return ModelReply(text=str(answer.text), finish=str(finish))


def _in_event_loop() -> bool:
    try:
        anyio.get_current_task()
    except RuntimeError:
        return False
    return True

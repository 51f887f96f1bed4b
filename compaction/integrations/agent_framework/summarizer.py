"""An Agent Framework chat client as a summarizer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from ...summarizers import ModelCall, ModelReply, SummaryOptions, SummaryRequest
from ..requirements import AGENT_FRAMEWORK, import_framework


@attrs.frozen
class ChatClientSummarizer:
    """A summarizer that has a chat client of the framework write the summary.

    Args:
        client: Any chat client: ``get_response(messages, options=...)``. A smaller model than the agent's is enough.
        options: Further chat options of the request, such as ``{"temperature": 0}``.
        summary_options: The model's window, and the limits of the summary.
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

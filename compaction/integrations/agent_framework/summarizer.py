"""An Agent Framework chat client as a summarizer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from ...summarizers import SummaryRequest
from ...summarizers.exchange import Call, Reply
from ..model_calls import Asked
from ..packages import load, require
from .oldest import DISTRIBUTION, EXTRA, LEAST

__all__ = ["ChatClientSummarizer"]


@attrs.frozen
class ChatClientSummarizer:
    """Has a chat client of the framework write the summary.

    Args:
        client: Any chat client: ``get_response(messages, options=...)``. A smaller model than the agent's is enough.
        options: Further chat options of the request, such as ``{"temperature": 0}``.
        asked: The model's window, and what is sent and accepted.

    Raises:
        ConfigurationError: If the framework is missing or too old.
    """

    client: Any = attrs.field(repr=False)
    options: Mapping[str, Any] = attrs.field(factory=dict[str, Any], converter=dict, hash=False, kw_only=True)
    asked: Asked = attrs.field(factory=Asked, kw_only=True)

    def __attrs_post_init__(self) -> None:
        require(DISTRIBUTION, extra=EXTRA, least=LEAST)

    async def summarize(self, request: SummaryRequest) -> str:
        """The summary.

        Raises:
            SummaryFailed: If the model gave none that can stand for the conversation.
        """
        return await self.asked.summary(request, type(self.client).__name__, self._ask)

    async def _ask(self, call: Call) -> Reply:
        message = load("agent_framework").Message
        messages = [message(role, [text]) for role, text in call.messages]
        options = {**self.options, "max_tokens": call.max_tokens}
        answer = await self.client.get_response(messages, options=options)
        usage: dict[str, Any] = answer.usage_details or {}
        return Reply(
            text=answer.text or "", finish=str(answer.finish_reason or ""), prompt_tokens=usage.get("input_token_count") or None
        )

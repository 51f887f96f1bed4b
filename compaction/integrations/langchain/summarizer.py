"""A LangChain chat model as a summarizer."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any

import anyio
import attrs

from ...summarizers import SummaryRequest
from ...summarizers.exchange import Call, Reply
from ..model_calls import Asked
from ..packages import require
from .oldest import LANGCHAIN_CORE

__all__ = ["ChatModelSummarizer"]


@attrs.frozen
class ChatModelSummarizer:
    """Has a LangChain chat model write the summary.

    Args:
        model: Any chat model: ``invoke(messages)`` and ``ainvoke(messages)``. A smaller one than the agent's is enough.
        sync: Whether to call it at once, for graphs that are invoked, not awaited; ``None``: at once where no event loop runs.
        options: Further arguments of each call; ``max_tokens`` among them if the model is to be told a limit.
        asked: The model's window, and what is sent and accepted.

    Raises:
        ConfigurationError: If the framework is missing or too old.
    """

    model: Any = attrs.field(repr=False)
    sync: bool | None = attrs.field(default=None, kw_only=True)
    options: Mapping[str, Any] = attrs.field(factory=dict[str, Any], converter=dict, hash=False, kw_only=True)
    asked: Asked = attrs.field(factory=Asked, kw_only=True)

    def __attrs_post_init__(self) -> None:
        require(**LANGCHAIN_CORE)

    def summarize(self, request: SummaryRequest) -> str | Awaitable[str]:
        """The summary, at once or to be awaited.

        Raises:
            SummaryFailed: If the model gave none that can stand for the conversation.
        """
        name = type(self.model).__name__
        if self.sync or (self.sync is None and not _in_event_loop()):
            return self.asked.summary_sync(request, name, self._ask_sync)
        return self.asked.summary(request, name, self._ask)

    async def _ask(self, call: Call) -> Reply:
        return _reply(await self.model.ainvoke(list(call.messages), **self.options))

    def _ask_sync(self, call: Call) -> Reply:
        return _reply(self.model.invoke(list(call.messages), **self.options))


def _reply(answer: Any) -> Reply:
    metadata: dict[str, Any] = answer.response_metadata or {}
    usage: dict[str, Any] = answer.usage_metadata or {}
    finish = metadata.get("finish_reason") or metadata.get("stop_reason") or ""
    return Reply(text=str(answer.text), finish=str(finish), prompt_tokens=usage.get("input_tokens") or None)


def _in_event_loop() -> bool:
    try:
        anyio.get_current_task()
    except RuntimeError:
        return False
    return True

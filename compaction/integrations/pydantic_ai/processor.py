"""A capability for pydantic-ai that compacts each model request, and also works as a history processor."""

from __future__ import annotations

import copy
from typing import Any, Self, Unpack

from ...stores import SessionStore
from ...strategies import StrategyLike
from ..conversation import FrameworkConversations, FrameworkTurn
from ..options import CommonOptions, IntegrationOptions
from ..requirements import PYDANTIC_AI, framework_class, import_framework
from .format import pydantic_ai

_Capability: Any = framework_class("pydantic_ai.capabilities", "AbstractCapability")


class CompactionProcessor(_Capability):
    """A capability that compacts each model request: ``Agent(..., capabilities=[CompactionProcessor(strategy)])``.

    Only requests are shortened. The history stays whole, also in ``all_messages()`` and ``new_messages()``. Runs may share one
    processor, which finds each conversation by its messages. Usage comes from the responses in the history. A request that the
    provider found too long is compacted further and sent once more, streamed or not. Tools and instructions count, and
    ``window="auto"`` reads the model's name.

    As a history processor, ``ProcessHistory(CompactionProcessor(strategy))``, it replaces the history with the compacted
    messages, also in ``all_messages()``. It then sees neither tools nor the model, and repeats no request.

    Holds state: its ``conversations``.

    Args:
        strategy: The strategy; its trigger decides when it runs.
        store: Where to save the conversations, if anywhere; without it a new process decides again.
        options: As for `IntegrationOptions`: ``counter=``, ``window=``, ``on_failure=`` and so on.
    """

    def __init__(self, strategy: StrategyLike, *, store: SessionStore | None = None, **options: Unpack[CommonOptions]) -> None:
        PYDANTIC_AI.check()
        self.conversations = FrameworkConversations(IntegrationOptions(strategy=strategy, **options), pydantic_ai, store=store)
        self._turn: FrameworkTurn | None = None

    def compact_next(self, conversation_id: str, focus: str = "") -> None:
        """Compact before the next request of a conversation; a summary gives most room to ``focus``.

        In a tool, the conversation is ``ctx.conversation_id``.
        """
        self.conversations.compact_next(focus, conversation_id)

    async def __call__(self, messages: list[Any]) -> list[Any]:
        """Return the compacted history, for ``ProcessHistory``."""
        return (await self.conversations.turn(messages)).view

    async def for_run(self, ctx: Any) -> Self:
        """Return a copy for a run, which shares the conversations."""
        made = copy.copy(self)
        made._turn = None
        return made

    async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
        """Compact the messages of a request; the run's history stays whole."""
        joined = import_framework("pydantic_ai.messages").repair_messages  # the framework joins them like this in the next run
        self._turn = await self.conversations.turn(
            joined(request_context.messages, repair_last_response=False),
            model=request_context.model.model_name,
            overhead_tokens=self._overhead(request_context.model_request_parameters),
            key=ctx.conversation_id,
        )
        request_context.messages = list(self._turn.view)
        return request_context

    async def prepare_model_request(self, ctx: Any, request_context: Any) -> Any:
        """Send the shorter messages after a request that was too long."""
        if self._turn is not None and self._turn.was_refused:
            request_context.messages = list(self._turn.view)
        return request_context

    async def on_model_request_error(self, ctx: Any, *, request_context: Any, error: Exception) -> Any:
        """Have the framework try once more if the request was too long.

        Raises:
            Exception: The error itself, if it is not the first length error.
            BudgetUnsatisfiable: If nothing more may be removed.
        """
        if self._turn is None or await self._turn.overflowed(error) is None:
            raise error
        raise import_framework("pydantic_ai").RetryModelRequest from error

    def _overhead(self, parameters: Any) -> int:
        tools = [*parameters.function_tools, *parameters.output_tools]
        shown = [[tool.name, tool.description or "", tool.parameters_json_schema] for tool in tools]
        return self.conversations.count(*[part.content for part in parameters.instruction_parts or ()], *shown)

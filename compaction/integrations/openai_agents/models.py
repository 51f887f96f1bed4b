"""Wrappers around the application's models: they report usage and repeat a request that was too long.

    agent = Agent(..., model=CompactingModel(OpenAIResponsesModel("gpt-5", client)))
    run_config = RunConfig(call_model_input_filter=session.filter, model_provider=CompactingModels())

A filter sees neither the response nor the error of the request that it prepares. The wrapper sees both, and a filter leaves the
turn for it in a context variable.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextvars import ContextVar
from typing import Any, Final

from ..conversation import FrameworkTurn
from ..requirements import OPENAI_AGENTS, framework_class, import_framework

_Model: Any = framework_class("agents", "Model")
_ModelProvider: Any = framework_class("agents", "ModelProvider")
current_turn: Final[ContextVar[FrameworkTurn | None]] = ContextVar("compaction_turn", default=None)
"""The turn whose view a filter returned last in this context."""


class CompactingModel(_Model):
    """A wrapper for a model: it reports usage to the filter's turn, and sends a request that was too long once more.

    Requests that no filter of this package prepared pass unchanged. Other methods and fields are those of the model.

    Args:
        model: The application's model.
    """

    def __init__(self, model: Any) -> None:
        OPENAI_AGENTS.check()
        self._model = model
        for name in ("get_retry_advice", "close", "_cleanup_on_run_end"):  # the base class has these too
            setattr(self, name, getattr(model, name))

    def __getattr__(self, name: str) -> Any:
        if name == "_model":  # while it is copied or unpickled
            raise AttributeError(name)
        return getattr(self._model, name)

    async def get_response(self, system_instructions: str | None, input: Any, *arguments: Any, **options: Any) -> Any:
        """Return the model's response."""

        async def call(items: Any) -> Any:
            return await self._model.get_response(system_instructions, items, *arguments, **options)

        turn = _turn_of(input)
        if turn is None:
            return await call(input)
        response = await turn.send(call)
        turn.record_usage(response.usage)
        return response

    async def stream_response(
        self, system_instructions: str | None, input: Any, *arguments: Any, **options: Any
    ) -> AsyncGenerator[Any]:
        """Yield the events of the model's response; a request is repeated only if nothing was yielded."""

        async def call(items: Any) -> Any:
            return self._model.stream_response(system_instructions, items, *arguments, **options)

        turn = _turn_of(input)
        async for event in await call(input) if turn is None else turn.stream(call):
            if turn is not None and getattr(event, "type", "") == "response.completed":
                turn.record_usage(event.response.usage)
            yield event


class CompactingModels(_ModelProvider):
    """A model provider whose models are `CompactingModel`, for agents that name their model.

    Args:
        provider: The application's provider; the framework's own by default.
    """

    def __init__(self, provider: Any = None) -> None:
        OPENAI_AGENTS.check()
        self._provider = import_framework("agents").MultiProvider() if provider is None else provider

    def get_model(self, model_name: str | None) -> Any:
        """Return the provider's model of this name as a `CompactingModel`."""
        return CompactingModel(self._provider.get_model(model_name))

    async def aclose(self) -> None:
        """Close the provider."""
        await self._provider.aclose()


def _turn_of(input: Any) -> FrameworkTurn | None:
    """Return the turn whose view these items are; a run without a filter may be nested in a run with one."""
    turn = current_turn.get()
    if turn is None or not isinstance(input, list) or not input or not turn.view:
        return None
    return turn if input[-1] is turn.view[-1] else None

"""Middlewares for ``langchain.agents.create_agent``: one sends a view and keeps the state whole, one rewrites the state."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from ...strategies import StrategyLike
from ..conversation import FrameworkConversation
from ..options import IntegrationOptions
from ..requirements import LANGCHAIN, import_framework
from .format import langchain
from .saved import SavedConversations

if TYPE_CHECKING:
    _State: Any = object

    class _AgentMiddleware:
        pass

else:
    try:
        from typing import Annotated, NotRequired

        from langchain.agents.middleware import AgentMiddleware as _AgentMiddleware
        from langchain.agents.middleware import AgentState
        from langchain.agents.middleware.types import PrivateStateAttr

        class _State(AgentState):
            compaction: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]

    except ImportError:
        _AgentMiddleware = _State = object  # the module can be imported without the framework; creating a middleware raises

__all__ = ["CompactionMiddleware", "RewritingMiddleware", "rewritten"]

_KEY: Final = "compaction"


class _Middleware(_AgentMiddleware):
    """The base of both middlewares: finds the conversation, and counts the system prompt and the tools."""

    state_schema: Any = _State

    def __init__(self, strategy: StrategyLike, **options: Any) -> None:
        LANGCHAIN.check()
        super().__init__()
        self.options = IntegrationOptions(strategy=strategy, **options)
        self._conversations = SavedConversations(self.options, langchain)
        self._schemas: tuple[list[int], int] = ([], 0)

    def _overhead(self, conversation: FrameworkConversation, request: Any) -> int:
        """Return the tokens of the system prompt and the tools; the tools are counted again only when they change."""
        index = conversation.index
        key = [id(tool) for tool in request.tools]
        if key != self._schemas[0]:
            text = json.dumps([_schema(tool) for tool in request.tools], default=str) if key else ""
            self._schemas = (key, index.counter.count_text(text))
        system = request.system_message
        return self._schemas[1] + (0 if system is None else index.measure(langchain.read(system))[0])


class CompactionMiddleware(_Middleware):
    """A middleware that sends a compacted view and leaves the agent's messages whole.

    Use it as ``middleware=[CompactionMiddleware(strategy)]``. Edits are saved in the agent's state under ``"compaction"``, as
    private JSON-ready data: with a checkpointer, another process resumes with the same view. The system prompt and the tools
    count. Holds state: the conversations used last.

    Args:
        strategy: The strategy; its trigger decides when it runs.
        options: As for `IntegrationOptions`: ``counter=``, ``window=``, ``on_failure=``, ``on_result=`` and so on.

    Raises:
        ConfigurationError: If LangChain is missing or too old, or an option is out of range.
    """

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Send the view, and save the changes with the model's answer."""
        saved = request.state.get(_KEY)
        conversation = self._conversations.get(request.messages, saved)
        view = conversation.view_sync(request.messages, overhead_tokens=self._overhead(conversation, request))
        answer = handler(request.override(messages=view))
        return _with_state(answer, self._conversations.state(request.messages, conversation, saved))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """`wrap_model_call`, awaited."""
        saved = request.state.get(_KEY)
        conversation = self._conversations.get(request.messages, saved)
        view = await conversation.view(request.messages, overhead_tokens=self._overhead(conversation, request))
        answer = await handler(request.override(messages=view))
        return _with_state(answer, self._conversations.state(request.messages, conversation, saved))


class RewritingMiddleware(_Middleware):
    """A middleware that rewrites the agent's messages before a model call; later checkpoints hold only what is left.

    Its summaries carry a mark in their text, so nothing else has to be saved. The system prompt and the tools count from the
    second model call on; pass ``overhead_tokens=`` to count them in the first.

    Args:
        strategy: The strategy; its trigger decides when it runs.
        options: As for `IntegrationOptions`.

    Raises:
        ConfigurationError: If LangChain is missing or too old, or an option is out of range.
    """

    def __init__(self, strategy: StrategyLike, **options: Any) -> None:
        super().__init__(strategy, **options)
        self._seen_overhead = 0

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Return the new messages, or ``None`` if nothing changes."""
        messages = state["messages"]
        conversation = self._conversations.get(messages, None)
        view = conversation.view_sync(messages, overhead_tokens=self._seen_overhead)
        return self._rewritten(messages, view, conversation)

    async def abefore_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """`before_model`, awaited."""
        messages = state["messages"]
        conversation = self._conversations.get(messages, None)
        view = await conversation.view(messages, overhead_tokens=self._seen_overhead)
        return self._rewritten(messages, view, conversation)

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Count the system prompt and the tools, for the next `before_model`."""
        self._count_overhead(request)
        return handler(request)

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """`wrap_model_call`, awaited."""
        self._count_overhead(request)
        return await handler(request)

    def _count_overhead(self, request: Any) -> None:
        self._seen_overhead = self._overhead(FrameworkConversation(self.options, langchain), request)

    def _rewritten(
        self, messages: Sequence[Any], view: list[Any], conversation: FrameworkConversation
    ) -> dict[str, Any] | None:
        self._conversations.state(view, conversation, None)
        return None if view == list(messages) else {"messages": rewritten(view)}


def rewritten(view: Sequence[Any]) -> list[Any]:
    """Return an update that replaces the messages of a state whose reducer is ``add_messages``."""
    everything = import_framework("langgraph.graph.message").REMOVE_ALL_MESSAGES
    return [import_framework("langchain_core.messages").RemoveMessage(id=everything), *view]


def _with_state(answer: Any, state: dict[str, Any] | None) -> Any:
    """Return the model's answer with the state to save."""
    if state is None:
        return answer
    wire, command = import_framework("langchain.agents.middleware"), import_framework("langgraph.types").Command
    response: Any = answer
    update: dict[str, Any] = {_KEY: state}
    if isinstance(answer, import_framework("langchain_core.messages").AIMessage):
        response = wire.ModelResponse(result=[answer])
    elif isinstance(answer, wire.ExtendedModelResponse):  # an inner middleware saves state too
        inner: Any = answer
        response = inner.model_response
        update = {**(inner.command.update or {} if inner.command is not None else {}), **update}
    return wire.ExtendedModelResponse(model_response=response, command=command(update=update))


def _schema(tool: Any) -> Any:
    return import_framework("langchain_core.utils.function_calling").convert_to_openai_tool(tool)

"""Middlewares for ``langchain.agents.create_agent``: one that projects and leaves the state whole, one that rewrites it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from ...strategies.base import StrategyLike
from ..following import Conversation, Following
from ..packages import load, require
from .format import langchain
from .oldest import LANGCHAIN
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
        _AgentMiddleware = _State = object  # the module can be looked at without the framework; making one says what is missing

__all__ = ["CompactionMiddleware", "RewritingMiddleware", "rewritten"]

_KEY: Final = "compaction"


class _Middleware(_AgentMiddleware):
    """What both do: find the conversation, count what is sent beside it."""

    state_schema: Any = _State

    def __init__(self, strategy: StrategyLike, **options: Any) -> None:
        require(**LANGCHAIN)
        super().__init__()
        self.following = Following(strategy=strategy, **options)
        self._conversations = SavedConversations(self.following, langchain)
        self._schemas: tuple[list[int], int] = ([], 0)

    def _overhead(self, conversation: Conversation, request: Any) -> int:
        """Tokens of the system prompt and the tools; the tools are counted anew only if they are other ones."""
        index = conversation.index
        key = [id(tool) for tool in request.tools]
        if key != self._schemas[0]:
            text = json.dumps([_schema(tool) for tool in request.tools], default=str) if key else ""
            self._schemas = (key, index.counter.count_text(text))
        system = request.system_message
        return self._schemas[1] + (0 if system is None else index.measure(langchain.read(system))[0])


class CompactionMiddleware(_Middleware):
    """Sends a compacted view and leaves the agent's messages whole: ``middleware=[CompactionMiddleware(strategy)]``.

    What was decided is in the agent's state under ``"compaction"``, JSON-ready and out of its input and output: with a
    checkpointer, another process goes on with the same view. The system prompt and the tools count. Holds state: the
    conversations met lately.

    Args:
        strategy: What keeps requests small; its trigger decides when.
        options: As for `Following`: ``counter=``, ``window=``, ``on_failure=``, ``on_result=`` and so on.

    Raises:
        ConfigurationError: If LangChain is missing or too old, or an option is out of range.
    """

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Send the view; persist what changed with the model's answer."""
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
    """Rewrites the agent's messages before a model call: what was compacted is gone from the state of later checkpoints.

    Its summaries carry a mark in their text, so nothing else has to be saved. The system prompt and the tools count from the
    second model call on, when they have been seen; give ``overhead_tokens=`` to count them in the first.

    Args:
        strategy: What keeps the state small; its trigger decides when.
        options: As for `Following`.

    Raises:
        ConfigurationError: If LangChain is missing or too old, or an option is out of range.
    """

    def __init__(self, strategy: StrategyLike, **options: Any) -> None:
        super().__init__(strategy, **options)
        self._seen_overhead = 0

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """The new messages, if anything is to change."""
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
        """Only looks at what is sent beside the messages."""
        self._look(request)
        return handler(request)

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """`wrap_model_call`, awaited."""
        self._look(request)
        return await handler(request)

    def _look(self, request: Any) -> None:
        self._seen_overhead = self._overhead(Conversation(self.following, langchain), request)

    def _rewritten(self, messages: Sequence[Any], view: list[Any], conversation: Conversation) -> dict[str, Any] | None:
        self._conversations.state(view, conversation, None)
        return None if view == list(messages) else {"messages": rewritten(view)}


def rewritten(view: Sequence[Any]) -> list[Any]:
    """An update that makes these the messages of a state whose reducer is ``add_messages``."""
    everything = load("langgraph.graph.message").REMOVE_ALL_MESSAGES
    return [load("langchain_core.messages").RemoveMessage(id=everything), *view]


def _with_state(answer: Any, state: dict[str, Any] | None) -> Any:
    """The model's answer with what is to be saved beside it."""
    if state is None:
        return answer
    wire, command = load("langchain.agents.middleware"), load("langgraph.types").Command
    response: Any = answer
    update: dict[str, Any] = {_KEY: state}
    if isinstance(answer, load("langchain_core.messages").AIMessage):
        response = wire.ModelResponse(result=[answer])
    elif isinstance(answer, wire.ExtendedModelResponse):  # a middleware inside has something to save too
        inner: Any = answer
        response = inner.model_response
        update = {**(inner.command.update or {} if inner.command is not None else {}), **update}
    return wire.ExtendedModelResponse(model_response=response, command=command(update=update))


def _schema(tool: Any) -> Any:
    return load("langchain_core.utils.function_calling").convert_to_openai_tool(tool)

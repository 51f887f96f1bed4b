"""Middlewares for ``langchain.agents.create_agent``: one sends a view and keeps the state whole, one rewrites the state."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from ...strategies import StrategyLike
from ...tokens import LengthError, MessageMeter
from ..conversation import FrameworkConversations
from ..options import IntegrationOptions
from ..requirements import LANGCHAIN, import_framework
from .format import langchain
from .graph_run import conversation_id, conversation_tool, focus_of_call, model_name, rewritten

if TYPE_CHECKING:
    _State: Any = object

    class _AgentMiddleware:
        tools: Sequence[Any]

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

_KEY: Final = "compaction"


class _Middleware(_AgentMiddleware):
    """The base of both middlewares: counts the system prompt and the tools, and takes requests to compact."""

    state_schema: Any = _State

    def __init__(self, strategy: StrategyLike, *, compact_tool: bool = False, **options: Any) -> None:
        LANGCHAIN.check()
        super().__init__()
        self.options = IntegrationOptions(strategy=strategy, **options)
        self._conversations = FrameworkConversations(self.options, langchain)
        self._meter = MessageMeter(self.options.counter)
        self._schemas: tuple[list[int], int] = ([], 0)
        self._focuses: dict[str, str] = {}  # by thread: the host's requests that are not met yet
        self.tools = [conversation_tool()] if compact_tool else []

    def compact_next(self, thread_id: str, focus: str = "") -> None:
        """Compact a thread before its next model call, whatever the trigger says: for the host's own ``/compact``.

        Args:
            thread_id: The thread, as in the agent's configuration, where it may stand without a checkpointer too.
            focus: What a summary should say most about; empty for no subject.
        """
        self._focuses[thread_id] = focus

    def _turn_options(self, messages: Sequence[Any]) -> dict[str, Any]:
        """Return the id and the focus of a turn."""
        id = conversation_id()
        focus = None if id is None else self._focuses.pop(id, None)
        if focus is None and self.tools:
            focus = focus_of_call(messages)
        return {"id": id, "focus": focus}

    def _request_options(self, request: Any) -> dict[str, Any]:
        """Return the model and the overhead of a request; the tools are counted again only when they change."""
        key = [id(tool) for tool in request.tools]
        if key != self._schemas[0]:
            text = json.dumps([_schema(tool) for tool in request.tools], default=str) if key else ""
            self._schemas = (key, self._meter.counter.count_text(text))
        system = request.system_message
        overhead = self._schemas[1] + (0 if system is None else self._meter.measure(langchain.read(system))[0])
        return {"model": model_name(request.model) if self.options.window == "auto" else None, "overhead_tokens": overhead}


class CompactionMiddleware(_Middleware):
    """A middleware that sends a compacted view and leaves the agent's messages whole.

    Use it as ``middleware=[CompactionMiddleware(strategy)]``. Edits are saved in the agent's state under ``"compaction"``, as
    private JSON-ready data: with a checkpointer, another process resumes with the same view. Without one, or as a subgraph, the
    conversation is found by its messages. The system prompt and the tools count, then the usage that the provider reports. A
    request that the provider refuses because of its length is compacted further and sent once more. Holds state: the
    conversations used last.

    Args:
        strategy: The strategy; its trigger decides when it runs.
        compact_tool: Whether the model can call ``compact_conversation(focus="")``, which compacts before its next answer.
        options: As for `IntegrationOptions`: ``counter=``, ``window=``, ``on_failure=``, ``on_result=`` and so on.

    Raises:
        ConfigurationError: If LangChain is missing or too old, or an option is out of range.
    """

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Send the view, and save the changes with the model's answer."""
        messages, saved = request.messages, request.state.get(_KEY)
        options = {**self._turn_options(messages), **self._request_options(request)}
        turn = self._conversations.turn_sync(messages, saved=saved, **options)
        try:
            answer = handler(request.override(messages=turn.view))
        except Exception as error:
            again = turn.overflowed_sync(error)
            if again is None:
                raise
            answer = handler(request.override(messages=again))
        turn.record_usage(_usage(answer))
        return _with_state(answer, turn.state(saved))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """`wrap_model_call`, awaited."""
        messages, saved = request.messages, request.state.get(_KEY)
        options = {**self._turn_options(messages), **self._request_options(request)}
        turn = await self._conversations.turn(messages, saved=saved, **options)
        try:
            answer = await handler(request.override(messages=turn.view))
        except Exception as error:
            again = await turn.overflowed(error)
            if again is None:
                raise
            answer = await handler(request.override(messages=again))
        turn.record_usage(_usage(answer))
        return _with_state(answer, turn.state(saved))


class RewritingMiddleware(_Middleware):
    """A middleware that rewrites the agent's messages before a model call; later checkpoints hold only what is left.

    Its summaries carry a mark in their text, so nothing else has to be saved. The system prompt and the tools count from the
    second model call on; pass ``overhead_tokens=`` to count them in the first. A request that the provider refuses because of
    its length is compacted further and sent once more; the messages are rewritten before the next call.

    Args:
        strategy: The strategy; its trigger decides when it runs.
        compact_tool: Whether the model can call ``compact_conversation(focus="")``, which compacts before its next answer.
        options: As for `IntegrationOptions`.

    Raises:
        ConfigurationError: If LangChain is missing or too old, or an option is out of range.
    """

    def __init__(self, strategy: StrategyLike, **options: Any) -> None:
        super().__init__(strategy, **options)
        self._seen: dict[str, Any] = {}

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Return the new messages, or ``None`` if nothing changes."""
        messages = state["messages"]
        return _update(messages, self._conversations.turn_sync(messages, **self._turn_options(messages), **self._seen).view)

    async def abefore_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """`before_model`, awaited."""
        messages = state["messages"]
        turn = await self._conversations.turn(messages, **self._turn_options(messages), **self._seen)
        return _update(messages, turn.view)

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Send the messages, and count the system prompt and the tools for the next `before_model`."""
        self._seen = self._request_options(request)
        try:
            return handler(request)
        except Exception as error:
            if LengthError.read(error) is None:
                raise
            turn = self._conversations.turn_sync(request.messages, id=conversation_id(), **self._seen)
            again = turn.overflowed_sync(error)
            if again is None:
                raise
        return handler(request.override(messages=again))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """`wrap_model_call`, awaited."""
        self._seen = self._request_options(request)
        try:
            return await handler(request)
        except Exception as error:
            if LengthError.read(error) is None:
                raise
            turn = await self._conversations.turn(request.messages, id=conversation_id(), **self._seen)
            again = await turn.overflowed(error)
            if again is None:
                raise
        return await handler(request.override(messages=again))


def _update(messages: Sequence[Any], view: list[Any]) -> dict[str, Any] | None:
    return None if view == list(messages) else {"messages": rewritten(view)}


def _usage(answer: Any) -> Any:
    """Return the usage that a model's answer carries, in any of the forms that a middleware sees; ``None`` without one."""
    response = getattr(answer, "model_response", answer)
    messages: list[Any] = getattr(response, "result", [response])
    usages: list[Any] = [langchain.reported_usage(message) for message in messages]
    return next((usage for usage in usages if usage), None)


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

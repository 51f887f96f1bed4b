"""Middlewares for ``langchain.agents.create_agent``: one sends a view and keeps the state whole, one rewrites the state.

Before them are functions for a run of a graph: its conversation's id, its model's name, replacing its messages, and the tool.
"""

from __future__ import annotations

import abc
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, Final, NotRequired, Unpack

from ...formats import fields_of, string
from ...session import unawaited_calls
from ...strategies import StrategyLike
from ...tokens import LengthRefusal
from ..conversation import TOOL_DESCRIPTION, TOOL_NAME, TOOL_RESULT, FrameworkConversations, as_async
from ..options import CommonOptions, IntegrationOptions
from ..requirements import LANGCHAIN, framework_class, import_framework
from .format import langchain

_AgentMiddleware: Any = framework_class("langchain.agents.middleware", "AgentMiddleware")
_AgentState: Any = framework_class("langchain.agents.middleware", "AgentState")
_private: Any = framework_class("langchain.agents.middleware.types", "PrivateStateAttr")
_KEY: Final = "compaction"
_SEPARATOR: Final = "|"  # of LangGraph's checkpoint_ns: the graphs around a node, outermost first, and the node
_TASK: Final = ":"  # before the id of one run of a node


def conversation_id(config: Mapping[str, Any] | None = None) -> str | None:
    """Return the id of the running node's conversation: its thread, and in a subgraph also the names of the graphs around it.

    Args:
        config: The node's configuration; ``None`` for the configuration of the running node.

    Returns:
        ``None`` without a thread, and in a subgraph or sub-agent that starts from scratch each time. Such a graph shares its
        parent's thread but not its conversation, and its conversation is found by the messages.

    >>> conversation_id({"configurable": {"thread_id": "a", "checkpoint_ns": "summarize:1"}})
    'a'
    >>> conversation_id({"configurable": {"thread_id": "a", "checkpoint_ns": "tools:1|model:2"}}) is None
    True
    >>> conversation_id({"configurable": {"thread_id": "a", "checkpoint_ns": "helper|model:2"}})
    'a|helper'
    """
    if config is None:
        try:
            config = import_framework("langgraph.config").get_config()
        except RuntimeError:  # called outside a graph
            config = {}
    configurable: Mapping[str, Any] = (config or {}).get("configurable") or {}
    thread = configurable.get("thread_id")
    *graphs, _ = str(configurable.get("checkpoint_ns") or "").split(_SEPARATOR)
    if thread is None or any(_TASK in graph for graph in graphs):
        return None
    return _SEPARATOR.join([str(thread), *graphs])


def model_name(model: object) -> str | None:
    """Return the name of a chat model for ``window="auto"``; ``None`` if the model has no name.

    Args:
        model: A chat model, one with tools bound to it, or a name.

    >>> model_name("gpt-5")
    'gpt-5'
    """
    names = (model, getattr(model, "model_name", None), getattr(model, "model", None))
    name: object = next((name for name in names if isinstance(name, str) and name), None)
    if name is None and callable(described := getattr(model, "_get_ls_params", None)):
        name = (fields_of(described()) or {}).get("ls_model_name")
    return string(name) or None


def rewritten(view: Sequence[Any]) -> list[Any]:
    """Return an update that replaces the messages of a state whose reducer is ``add_messages``."""
    everything = import_framework("langgraph.graph.message").REMOVE_ALL_MESSAGES
    return [import_framework("langchain_core.messages").RemoveMessage(id=everything), *view]


def conversation_tool() -> Any:
    """Return the tool ``compact_conversation(focus="")``; the model call that follows its result compacts first."""

    def compact_conversation(focus: str = "") -> str:
        return TOOL_RESULT  # the middleware sees the call

    tools = import_framework("langchain_core.tools")
    return tools.StructuredTool.from_function(compact_conversation, name=TOOL_NAME, description=TOOL_DESCRIPTION)


def focus_of_call(messages: Sequence[Any]) -> str | None:
    """Return the focus of the model's last call of the tool; ``None`` if its last calls were of other tools. O(last calls)."""
    called: set[str] = set()
    for message in reversed(messages):
        if message.type != "tool":
            calls = [call for call in getattr(message, "tool_calls", None) or () if call["id"] in called]
            return str(calls[-1]["args"].get("focus") or "") if calls else None
        if message.name == TOOL_NAME:
            called.add(message.tool_call_id)
    return None


class _State(_AgentState):
    compaction: NotRequired[Annotated[dict[str, Any], _private]]  # type: ignore[valid-type]  # the base is a TypedDict


class _Middleware(_AgentMiddleware):
    """The base of both middlewares: counts the system prompt and the tools, and stores requests to compact."""

    state_schema: Any = _State

    def __init__(self, strategy: StrategyLike, *, compact_tool: bool = False, **options: Unpack[CommonOptions]) -> None:
        LANGCHAIN.check()
        super().__init__()  # pyright: ignore[reportUnknownMemberType]
        self.conversations = FrameworkConversations(IntegrationOptions(strategy=strategy, **options), langchain)
        self._compact_tool = compact_tool

    @property
    def tools(self) -> list[Any]:  # made when asked for, because LangChain's tools cannot be pickled
        """The tools that the model gets."""
        return [conversation_tool()] if self._compact_tool else []

    def compact_next(self, thread_id: str, focus: str = "") -> None:
        """Compact before the next call in a thread, with or without a checkpointer; a summary gives most room to ``focus``."""
        self.conversations.compact_next(focus, thread_id)

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Call the model, once more with a shorter request if the provider finds it too long."""
        return unawaited_calls(self._call(request, as_async(handler), sync=True))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """`wrap_model_call`, awaited."""
        return await self._call(request, handler, sync=False)

    @abc.abstractmethod
    async def _call(self, request: Any, handler: Callable[[Any], Awaitable[Any]], *, sync: bool) -> Any: ...

    # Both return arguments of `FrameworkConversations.turn`; `RewritingMiddleware` keeps the second ones in the agent's state.
    def _turn_options(self, messages: Sequence[Any]) -> dict[str, Any]:
        id = conversation_id()
        return {"id": id, "key": id, "focus": focus_of_call(messages) if self._compact_tool else None}

    def _request_options(self, request: Any) -> dict[str, Any]:
        schema = import_framework("langchain_core.utils.function_calling").convert_to_openai_tool
        system = [] if request.system_message is None else [request.system_message]
        overhead = self.conversations.count_tools(request.tools, schema) + self.conversations.count_messages(system)
        is_asked = self.conversations.options.window == "auto"
        return {"model": model_name(request.model) if is_asked else None, "overhead_tokens": overhead}


class CompactionMiddleware(_Middleware):
    """A middleware that sends a compacted view and leaves the agent's messages whole.

    Use it as ``middleware=[CompactionMiddleware(strategy)]``. Edits are saved in the agent's state under ``"compaction"``, as
    private JSON-ready data: with a checkpointer, another process resumes with the same view. Without one, or in a subgraph,
    the conversation is found by its messages. The system prompt and the tools count, and the usage that the provider reports
    corrects the counts. A request that the provider refuses as too long is compacted further and sent once more. Holds state:
    the conversations used last.

    Args:
        strategy: The strategy; its trigger decides when it runs.
        compact_tool: Whether the model can call ``compact_conversation(focus="")``, which compacts before its next answer.
        options: As for `IntegrationOptions`: ``counter=``, ``window=``, ``on_failure=``, ``on_result=`` and so on.
    """

    async def _call(self, request: Any, handler: Callable[[Any], Awaitable[Any]], *, sync: bool) -> Any:
        saved = request.state.get(_KEY)
        options = {**self._turn_options(request.messages), **self._request_options(request)}
        turn = await self.conversations.turn(request.messages, saved=saved, sync=sync, **options)
        answer = await turn.send(lambda view: handler(request.override(messages=view)), sync=sync)
        turn.record_usage(_usage(answer))
        return _with_state(answer, turn.state(saved))


class RewritingMiddleware(_Middleware):
    """A middleware that rewrites the agent's messages before a model call; later checkpoints contain only the remaining ones.

    Summaries are recognized by a mark in their text. The state holds, under ``"compaction"``, only the tokens of the system
    prompt and the tools. They count from the second model call on; pass ``overhead_tokens=`` to count them in the first. A
    request that the provider refuses as too long is compacted further and sent once more; the messages are rewritten before the
    next call.

    The arguments are those of `CompactionMiddleware`.
    """

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Return the new messages, or ``None`` if nothing changes."""
        return unawaited_calls(self._update(state, sync=True))

    async def abefore_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """`before_model`, awaited."""
        return await self._update(state, sync=False)

    async def _update(self, state: Any, *, sync: bool) -> dict[str, Any] | None:
        messages: list[Any] = state["messages"]
        seen: dict[str, Any] = state.get(_KEY) or {}
        turn = await self.conversations.turn(messages, sync=sync, **self._turn_options(messages), **seen)
        return None if turn.view == list(messages) else {"messages": rewritten(turn.view)}

    async def _call(self, request: Any, handler: Callable[[Any], Awaitable[Any]], *, sync: bool) -> Any:
        seen = self._request_options(request)
        try:
            answer = await handler(request)
        except Exception as error:
            if LengthRefusal.read(error) is None:
                raise
            turn = await self.conversations.turn(request.messages, id=conversation_id(), sync=sync, **seen)
            if await turn.overflowed(error, sync=sync) is None:
                raise
            answer = await handler(request.override(messages=turn.view))
        return _with_state(answer, None if request.state.get(_KEY) == seen else seen)


def _usage(answer: Any) -> Any:
    """Return the usage in a model's answer, in any of the forms that a middleware receives; ``None`` without one."""
    response = getattr(answer, "model_response", answer)
    messages: list[Any] = getattr(response, "result", [response])
    usages: list[Any] = [langchain.reported_usage(message) for message in messages]
    return next((usage for usage in usages if usage), None)


def _with_state(answer: Any, state: dict[str, Any] | None) -> Any:
    if state is None:
        return answer
    wire, response = import_framework("langchain.agents.middleware"), answer
    update: dict[str, Any] = {_KEY: state}
    if isinstance(answer, import_framework("langchain_core.messages").AIMessage):
        response = wire.ModelResponse(result=[answer])
    elif isinstance(answer, wire.ExtendedModelResponse):  # an inner middleware saves state too
        response = answer.model_response
        update = {**((answer.command and answer.command.update) or {}), **update}
    command = import_framework("langgraph.types").Command(update=update)
    return wire.ExtendedModelResponse(model_response=response, command=command)

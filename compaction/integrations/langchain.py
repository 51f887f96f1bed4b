"""LangChain: middlewares for ``create_agent``, and its messages as a wire format.

    agent = create_agent(model, tools, middleware=[CompactionMiddleware(presets.context_window(32_000))])

A whole program is ``examples/langchain_agent.py``. One middleware sends a view and keeps the state whole, the other rewrites
the state. In the format, every block, call, artifact and extra is kept. Reducers and checkpointers identify a message by its
id. A changed copy keeps its id, so that a graph treats it as the same message.
"""

from __future__ import annotations

import abc
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, Final, NotRequired, Unpack

import attrs

from ..errors import ConfigurationError, InvalidMessage
from ..formats import arguments_object, fields_of, holds_history, items_of, json_text, result_part, string, unwritable
from ..messages import MediaPart, Message, OtherPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from ..session import unawaited_calls
from ..strategies import StrategyLike
from ..tokens import LengthRefusal
from .conversation import TOOL_DESCRIPTION, TOOL_NAME, TOOL_RESULT, FrameworkConversations, as_async
from .message_adapter import MessageAdapter
from .options import CommonOptions, IntegrationOptions
from .requirements import LANGCHAIN, framework_class, import_framework
from .summarizers import ChatModelSummarizer

__all__ = [
    "ChatModelSummarizer",
    "CompactionMiddleware",
    "LangChain",
    "RewritingMiddleware",
    "conversation_id",
    "langchain",
    "model_name",
    "rewritten",
]

_ROLES: Final[Mapping[str, str]] = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "tool",
    "developer": "developer",
}
_TYPES: Final[Mapping[str, str]] = {"user": "human", "assistant": "ai", "system": "system", "developer": "system"}
_MEDIA: Final[Mapping[str, str]] = {
    "image": "image",
    "image_url": "image",
    "audio": "audio",
    "input_audio": "audio",
    "video": "video",
    "file": "file",
    "document": "file",
    "text-plain": "file",
}
_THOUGHTS: Final = frozenset({"thinking", "reasoning", "redacted_thinking", "reasoning_content"})
_CALL_BLOCKS: Final = frozenset({"tool_use", "tool_call", "function_call", "tool_call_chunk", "input_json_delta"})
_REASONING_EXTRA: Final = "reasoning_content"


@attrs.frozen
class _Extra:
    """The ``raw`` of a part that stands in ``additional_kwargs``."""


class LangChain(MessageAdapter):
    """The format of ``langchain_core.messages``; use the shared instance ``langchain``.

    Reading needs no framework installed: a message is any object with ``type`` and ``content``.
    """

    name = "langchain"
    compared = ("id", "content", "type", "tool_calls")

    def read(self, raw: Any, position: int = 0) -> Message:
        kind, content = getattr(raw, "type", None), getattr(raw, "content", None)
        if not isinstance(kind, str) or kind == "remove" or not isinstance(content, str | list):
            raise InvalidMessage(
                f"messages[{position}]",
                f"a message has a type and a content (got {type(raw).__name__} of type {kind!r})",
                "pass LangChain messages; RemoveMessage is for a reducer",
            )
        role = _ROLES.get(kind) or str(getattr(raw, "role", kind))
        blocks = [TextPart(content)] if content and isinstance(content, str) else list(map(_block, items_of(content) or ()))
        if kind in ("tool", "function"):
            id = getattr(raw, "tool_call_id", None)
            call_id = id if isinstance(id, str) else f"function:{getattr(raw, 'name', '')}"
            return Message(role, (result_part(call_id, blocks),), raw, self, None)
        held = any(map(holds_history, items_of(content) or ()))
        thought = getattr(raw, "additional_kwargs", {}).get(_REASONING_EXTRA)
        thoughts = [ReasoningPart(thought, raw=_Extra())] if isinstance(thought, str) and thought else []
        calls = [
            ToolCallPart(string(call.get("id")), string(call.get("name")), json_text(call.get("args") or {}), raw=call)
            for call in getattr(raw, "tool_calls", None) or ()
        ]
        return Message(role, (*thoughts, *blocks, *calls), raw, self, getattr(raw, "name", None), holds_history=held)

    def reported_usage(self, raw: Any) -> Any:
        return getattr(raw, "usage_metadata", None)  # what was cached is part of the input tokens

    def changed(self, message: Message, parts: Sequence[Part]) -> Message:
        raw = message.raw
        update: dict[str, Any] = {}
        if message.role == "tool":
            update["content"] = _result_content(message, parts)
        else:
            update["content"] = _content(raw.content, message.parts, parts)
            if getattr(raw, "tool_calls", None):
                update["tool_calls"] = [_changed_call(part) for part in parts if isinstance(part, ToolCallPart)]
            thought, changed = (_extra_thought(each) for each in (message.parts, parts))
            if changed != thought:
                others = {name: value for name, value in raw.additional_kwargs.items() if name != _REASONING_EXTRA}
                update["additional_kwargs"] = others if changed is None else {**others, _REASONING_EXTRA: changed}
        return self.read(raw.model_copy(update=update))

    def new(self, role: str, text: str) -> Message:
        wire = import_framework("langchain_core.messages")
        kinds = {"human": wire.HumanMessage, "ai": wire.AIMessage, "system": wire.SystemMessage}
        return self.read(kinds[_TYPES.get(role, "human")](content=text))

    def to_wire(self, raw: Any) -> Any:
        return json.loads(json.dumps({"type": raw.type, "data": raw.model_dump(exclude_none=True)}, default=str))

    def from_wire(self, data: Any) -> Any:
        return import_framework("langchain_core.messages").messages_from_dict([data])[0]


langchain = LangChain()


def _block(block: Any) -> Part:
    """Read one content block; a call that is also in ``tool_calls`` is kept but not counted twice."""
    if isinstance(block, str):
        return TextPart(block, raw=block)
    fields = fields_of(block)
    if fields is None:
        return OtherPart(json_text(block), raw=block)
    kind = string(fields.get("type"))
    if kind == "text" and isinstance(fields.get("text"), str):
        return TextPart(fields["text"], raw=block)
    if kind in _THOUGHTS:
        return ReasoningPart(string(fields.get("reasoning") or fields.get("thinking") or fields.get("text")), raw=block)
    if kind in _MEDIA:
        detail = string((fields_of(fields.get("image_url")) or {}).get("detail"))
        return MediaPart(_MEDIA[kind], detail, len(_data(fields)), string(fields.get("filename")), raw=block)
    if kind in _CALL_BLOCKS:
        return OtherPart("", raw=block)
    return OtherPart(json_text(fields), raw=block)


def _data(fields: Mapping[str, Any]) -> str:
    """Return the data in the block itself; empty if it holds a URL."""
    image, source = fields.get("image_url"), fields_of(fields.get("source")) or {}
    url = (fields_of(image) or {"url": image}).get("url")
    if isinstance(url, str) and url.startswith("data:"):
        return url
    return string(fields.get("base64") or fields.get("data") or source.get("data"))


def _extra_thought(parts: Sequence[Part]) -> str | None:
    return next((part.text for part in parts if isinstance(part, ReasoningPart) and isinstance(part.raw, _Extra)), None)


def _result_content(message: Message, parts: Sequence[Part]) -> Any:
    after = parts[0] if len(parts) == 1 else None
    before = message.parts[0]
    if not isinstance(after, ToolResultPart) or not isinstance(before, ToolResultPart) or after.call_id != before.call_id:
        raise ConfigurationError(f"parts: a tool message holds exactly one ToolResultPart (got {parts!r}); change its text")
    media = [each.raw for each in after.media]
    if not media:
        return after.text
    return [*([{"type": "text", "text": after.text}] if after.text else []), *media]


def _content(content: str | list[Any], before: Sequence[Part], after: Sequence[Part]) -> Any:
    """Return the changed content: a string if it was one, else a list that keeps the unchanged blocks.

    A block that repeats a call leaves with that call; if no call leaves, all such blocks stay as they are.
    """
    kept = [part for part in after if not isinstance(part, ToolCallPart) and not isinstance(part.raw, _Extra)]
    if isinstance(content, str) and all(isinstance(part, TextPart) for part in kept):
        return "\n".join([part.text for part in kept if isinstance(part, TextPart)])
    calls = {part.id for part in after if isinstance(part, ToolCallPart)}
    some_call_left = any(isinstance(part, ToolCallPart) and part.id not in calls for part in before)
    blocks = [_changed_block(part, before) for part in kept]
    return [block for block in blocks if not (some_call_left and _repeats_other_call(block, calls))]


def _repeats_other_call(block: Any, calls: set[str]) -> bool:
    """Return whether a block repeats a call that is not one of these."""
    fields = fields_of(block) or {}
    return fields.get("type") in _CALL_BLOCKS and fields.get("id") not in calls


def _changed_block(part: Part, known: Sequence[Part]) -> Any:
    if any(part is each for each in known):
        return {"type": "text", "text": part.text} if part.raw is None and isinstance(part, TextPart) else part.raw
    if isinstance(part, TextPart):
        return {**(fields_of(part.raw) or {"type": "text"}), "text": part.text}
    raise unwritable(part)


def _changed_call(part: ToolCallPart) -> Any:
    if part.raw is not None and json_text(part.raw.get("args") or {}) == part.arguments:
        return part.raw
    return {"name": part.name, "args": arguments_object(part.arguments), "id": part.id, "type": "tool_call"}


# ------------------------------------------------------------------------ the run of a graph, and the middlewares

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


def _conversation_tool() -> Any:
    """Return the tool ``compact_conversation(focus="")``; the model call that follows its result compacts first."""

    def compact_conversation(focus: str = "") -> str:
        return TOOL_RESULT  # the middleware sees the call

    tools = import_framework("langchain_core.tools")
    return tools.StructuredTool.from_function(compact_conversation, name=TOOL_NAME, description=TOOL_DESCRIPTION)


def _focus_of_call(messages: Sequence[Any]) -> str | None:
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
        return [_conversation_tool()] if self._compact_tool else []

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
        return {"id": id, "key": id, "focus": _focus_of_call(messages) if self._compact_tool else None}

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

    Raises:
        ConfigurationError: If the framework is missing or too old, or an option is out of range.
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

    Raises:
        ConfigurationError: If the framework is missing or too old, or an option is out of range.
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

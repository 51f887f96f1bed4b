"""Facts about a run of a graph: its conversation, its model, how its messages are replaced, and the tool that compacts it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from ..requirements import import_framework

_SEPARATOR: Final = "|"  # of LangGraph's checkpoint_ns: the graphs around a node, outermost first, and the node
_TASK: Final = ":"  # before the id of one run of a node


def conversation_id(config: Mapping[str, Any] | None = None) -> str | None:
    """Return the id of the conversation that the running node belongs to: its thread, and for a subgraph its place in it.

    Args:
        config: The node's configuration; ``None`` for that of the node that is running.

    Returns:
        ``None`` without a thread, and in a subgraph or sub-agent that starts from scratch each time: it shares its parent's
        thread, but not its conversation, which is found by its messages.

    >>> conversation_id({"configurable": {"thread_id": "a", "checkpoint_ns": "summarize:1"}})
    'a'
    >>> conversation_id({"configurable": {"thread_id": "a", "checkpoint_ns": "tools:1|model:2"}}) is None
    True
    >>> conversation_id({"configurable": {"thread_id": "a", "checkpoint_ns": "helper|model:2"}})
    'a|helper'
    """
    if config is None:
        config = _running()
    configurable: Mapping[str, Any] = config.get("configurable") or {}
    thread = configurable.get("thread_id")
    *graphs, _ = str(configurable.get("checkpoint_ns") or "").split(_SEPARATOR)
    if thread is None or any(_TASK in graph for graph in graphs):
        return None
    return _SEPARATOR.join([str(thread), *graphs])


def _running() -> Mapping[str, Any]:
    try:
        config: Mapping[str, Any] = import_framework("langgraph.config").get_config()
    except RuntimeError:  # called outside a graph
        return {}
    return config


def model_name(model: object) -> str | None:
    """Return the name of a chat model, as ``window="auto"`` needs it; ``None`` if it does not say.

    Args:
        model: A chat model, one with tools bound to it, or a name.

    >>> model_name("gpt-5")
    'gpt-5'
    """
    if isinstance(model, str):
        return model
    names = (getattr(model, "model_name", None), getattr(model, "model", None))
    named = next((name for name in names if isinstance(name, str) and name), None)
    if named is not None:
        return named
    described = getattr(model, "_get_ls_params", None)
    made: Any = described() if callable(described) else {}
    name = cast("Mapping[str, Any]", made).get("ls_model_name") if isinstance(made, Mapping) else None
    return name if isinstance(name, str) and name else None


def rewritten(view: Sequence[Any]) -> list[Any]:
    """Return an update that replaces the messages of a state whose reducer is ``add_messages``."""
    everything = import_framework("langgraph.graph.message").REMOVE_ALL_MESSAGES
    return [import_framework("langchain_core.messages").RemoveMessage(id=everything), *view]


_NAME: Final = "compact_conversation"
_DESCRIPTION: Final = (
    "Replace the older part of this conversation by a summary, to make room. Call it when a task is done and its details are "
    "no longer needed. `focus` names what the summary should say most about; leave it empty for no subject."
)


def conversation_tool() -> Any:
    """Return the tool ``compact_conversation(focus="")``; the next model call finds its result and compacts."""

    def compact_conversation(focus: str = "") -> str:
        return "The conversation is compacted before your next answer."

    tools = import_framework("langchain_core.tools")
    return tools.StructuredTool.from_function(compact_conversation, name=_NAME, description=_DESCRIPTION)


def focus_of_call(messages: Sequence[Any]) -> str | None:
    """Return the focus with which the model just called the tool; ``None`` if its last calls were others. O(last calls)."""
    called: set[str] = set()
    for message in reversed(messages):
        if message.type != "tool":
            calls = [call for call in getattr(message, "tool_calls", None) or () if call["id"] in called]
            return str(calls[-1]["args"].get("focus") or "") if calls else None
        if message.name == _NAME:
            called.add(message.tool_call_id)
    return None

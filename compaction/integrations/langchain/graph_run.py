"""Functions for a run of a graph: its conversation's id, its model's name, replacing its messages, and the compaction tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...formats import fields_of, string
from ..conversation import TOOL_DESCRIPTION, TOOL_NAME, TOOL_RESULT
from ..requirements import import_framework

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

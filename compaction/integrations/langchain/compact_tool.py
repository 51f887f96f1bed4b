"""Compaction on request: a tool that the model can call, and the requests of the host for a thread."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final

from ..requirements import import_framework

__all__ = ["CompactionRequests", "conversation_tool", "focus_of_call"]

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


class CompactionRequests:
    """The host's requests to compact, by thread. Holds state: those not met yet."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._focuses: dict[str, str] = {}

    def add(self, id: str, focus: str) -> None:
        """Ask for a compaction at the next turn of a conversation."""
        with self._lock:
            self._focuses[id] = focus

    def take(self, id: str | None) -> str | None:
        """Return the focus that was asked for, once; ``None`` if nothing was."""
        if id is None or not self._focuses:
            return None
        with self._lock:
            return self._focuses.pop(id, None)

"""The model calls of one run: the conversation's messages are compacted, those of other providers are put back in place."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..conversation import FrameworkConversation
from .format import agent_framework
from .live_list import source_of

__all__ = ["RunView"]


class RunView:
    """The views of one run. Holds state: the messages of the last model call, and which of them are the conversation's.

    Args:
        conversation: The conversation.
        history: The history provider's ``source_id``.
        author: The name that the framework gives an agent's messages after the run.
    """

    def __init__(self, conversation: FrameworkConversation, history: str, author: str) -> None:
        self.conversation = conversation
        self._history = history
        self._author = author
        self._followed = 0
        self._seen: list[Any] = []
        self._ours: list[Any] = []
        self._others: list[tuple[int, Any]] = []
        self._others_tokens = 0
        self._tools: tuple[Any, int] = (None, 0)

    async def messages(self, messages: list[Any], options: Mapping[str, Any]) -> list[Any]:
        """Return the messages to send for a model call; O(new), besides a fast comparison and copy."""
        known = len(self._seen)
        if messages[:known] != self._seen:
            self._seen, self._ours, self._others, self._others_tokens, known = [], [], [], 0, 0
        taken = len(self._ours)
        self._take(messages[known:])
        self._seen = messages
        conversation, overhead = self.conversation, self._others_tokens + self._options_tokens(options)
        if taken:
            view = await conversation.view_more(self._ours, taken, total=self._followed, overhead_tokens=overhead)
        else:
            view = await conversation.view(self._ours, overhead_tokens=overhead)
        self._followed = conversation.index.total.messages
        return self._with_others(view) if self._others else view

    def overhead(self, messages: Iterable[Any]) -> int:
        """Return the tokens of messages that are not the conversation's."""
        measure = self.conversation.index.measure
        return sum(measure(agent_framework.read(message))[0] for message in messages)

    def _take(self, messages: Sequence[Any]) -> None:
        """Sort new messages into the conversation's and others: instructions, and what other providers add."""
        ours, history = self._ours, self._history
        for message in messages:
            source = source_of(message)
            if source == history:
                ours.append(message)
            elif source is not None or (message.role == "system" and not ours):
                self._others.append((len(ours), message))
                self._others_tokens += self.overhead([message])
            else:
                ours.append(self._as_it_will_be(message))

    def _as_it_will_be(self, message: Any) -> Any:
        """Return the message with the name it gets after the run; a later change would invalidate the prompt cache."""
        if message.author_name is not None or message.role not in ("assistant", "tool"):
            return message
        named = copy.copy(message)
        named.author_name = self._author
        return named

    def _with_others(self, view: Sequence[Any]) -> list[Any]:
        """Return the view with each other message before the one it preceded; at the front if that one is gone."""
        at: dict[int, list[Any]] = {}
        for follower, message in self._others:
            at.setdefault(self._place(view, follower), []).append(message)
        merged: list[Any] = []
        for place, message in enumerate(view):
            merged += at.get(place, ())
            merged.append(message)
        return [*merged, *at.get(len(view), ())]

    def _place(self, view: Sequence[Any], follower: int) -> int:
        if follower == 0 or follower >= len(self._ours):
            return 0 if follower == 0 else len(view)
        contents = self._ours[follower].contents
        for place in range(len(view) - 1, -1, -1):
            there = view[place].contents
            if there and contents and there[0] is contents[0]:
                return place
        return next((place for place, each in enumerate(view) if each.role != "system"), 0)

    def _options_tokens(self, options: Mapping[str, Any]) -> int:
        """Return the tokens of the tools and the instructions; counted again only when they change."""
        tools, instructions = options.get("tools") or (), options.get("instructions") or ""
        key = ([id(tool) for tool in tools], instructions)
        if self._tools[0] != key:
            text = json.dumps([_schema(tool) for tool in tools], default=str) if tools else ""
            self._tools = (key, self.conversation.index.counter.count_text(f"{text}{instructions}"))
        return self._tools[1]


def _schema(tool: Any) -> Any:
    return tool.to_json_schema_spec() if hasattr(tool, "to_json_schema_spec") else tool

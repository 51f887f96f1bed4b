"""The model calls of one run: which messages are the conversation's, which other providers', and how a view is put together."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..following import Conversation
from .format import agent_framework

__all__ = ["RunView"]


class RunView:
    """Holds state: the messages of this run's last model call, and which of them are the conversation's.

    Args:
        conversation: Follows the conversation.
        history: The history provider's ``source_id``.
        author: The name the framework gives what an agent says, once the run is over.
    """

    def __init__(self, conversation: Conversation, history: str, author: str) -> None:
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
        """What to send in place of all messages of a model call. O(new), besides comparing and copying at C speed."""
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
        """Tokens of messages that are not the conversation's."""
        measure = self.conversation.index.measure
        return sum(measure(agent_framework.read(message))[0] for message in messages)

    def _take(self, messages: Sequence[Any]) -> None:
        """Sort new messages: the conversation's, and others', which are instructions or what other providers put in."""
        ours, history = self._ours, self._history
        for message in messages:
            attribution = message.additional_properties.get("_attribution")
            source = attribution.get("source_id") if attribution.__class__ is dict else None
            if source == history:
                ours.append(message)
            elif source is not None or (message.role == "system" and not ours):
                self._others.append((len(ours), message))
                self._others_tokens += self.overhead([message])
            else:
                ours.append(self._as_it_will_be(message))

    def _as_it_will_be(self, message: Any) -> Any:
        """The message with the name it gets after the run; a name given later would change what was sent and cost the cache."""
        if message.author_name is not None or message.role not in ("assistant", "tool"):
            return message
        named = copy.copy(message)
        named.author_name = self._author
        return named

    def _with_others(self, view: Sequence[Any]) -> list[Any]:
        """The view, with each of the others before the message it stood before; at the front if that is gone."""
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
        """Tokens of the tools and the instructions; counted anew only if they are other ones."""
        tools, instructions = options.get("tools") or (), options.get("instructions") or ""
        key = ([id(tool) for tool in tools], instructions)
        if self._tools[0] != key:
            text = json.dumps([_schema(tool) for tool in tools], default=str) if tools else ""
            self._tools = (key, self.conversation.index.counter.count_text(f"{text}{instructions}"))
        return self._tools[1]


def _schema(tool: Any) -> Any:
    return tool.to_json_schema_spec() if hasattr(tool, "to_json_schema_spec") else tool

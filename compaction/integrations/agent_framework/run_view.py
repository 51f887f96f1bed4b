"""The model calls of one run: which messages are the conversation's, and where those of other providers stand."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any

from ...index import MessageIndex
from .format import agent_framework

__all__ = ["RunView", "source_of", "tokens_of_others", "with_author"]


def source_of(message: Any) -> str | None:
    """Return the ``source_id`` of the provider that added a message to this run; ``None`` for what the run itself added."""
    attribution = message.additional_properties.get("_attribution")
    return attribution.get("source_id") if attribution.__class__ is dict else None


def tokens_of_others(messages: Sequence[Any], measure: MessageIndex) -> int:
    """Return the tokens of messages that are not the conversation's, counted as this index counts."""
    return sum(measure.measure(agent_framework.read(message))[0] for message in messages)


def with_author(message: Any, author: str) -> Any:
    """Return a message of a run with the name it gets after the run; a later change would invalidate the prompt cache."""
    if message.author_name is not None or message.role not in ("assistant", "tool"):
        return message
    named = copy.copy(message)
    named.author_name = author
    return named


class RunView:
    """The messages of one run. Holds state: those of the last model call, and which of them are the conversation's.

    Args:
        history: The history provider's ``source_id``.
        author: The name that the framework gives an agent's messages after the run.
        measure: An index that counts tokens.

    Attributes:
        messages: The conversation.
    """

    def __init__(self, history: str, author: str, measure: MessageIndex) -> None:
        self.messages: list[Any] = []
        self._history = history
        self._author = author
        self._measure = measure
        self._seen: list[Any] = []
        self._others: list[tuple[int, Any]] = []
        self._others_tokens = 0
        self._tools: tuple[Any, int] = (None, 0)

    def follow(self, messages: list[Any]) -> None:
        """Take the messages of a model call; O(new), besides a fast comparison."""
        known = len(self._seen)
        if messages[:known] != self._seen:
            self.messages, self._others, self._others_tokens, known = [], [], 0, 0
        self._seen = messages
        for message in messages[known:]:
            source = source_of(message)
            if source == self._history:
                self.messages.append(message)
            elif source is None and (message.role != "system" or self.messages):
                self.messages.append(with_author(message, self._author))
            else:
                self._others.append((len(self.messages), message))
                self._others_tokens += tokens_of_others([message], self._measure)

    def use(self, followed: Sequence[Any]) -> None:
        """Take the equal messages that an index holds, so that it knows them at the next call by identity.

        Args:
            followed: All that it has read; if it holds more than this conversation, nothing is taken.
        """
        if len(followed) == len(self.messages):
            self.messages = list(followed)

    def overhead_tokens(self, options: Mapping[str, Any]) -> int:
        """Return the tokens of what is sent besides the conversation; tools are counted again only when they change."""
        tools, instructions = options.get("tools") or (), options.get("instructions") or ""
        key = ([id(tool) for tool in tools], instructions)
        if self._tools[0] != key:
            text = json.dumps([_schema(tool) for tool in tools], default=str) if tools else ""
            self._tools = (key, self._measure.counter.count_text(f"{text}{instructions}"))
        return self._others_tokens + self._tools[1]

    def request(self, view: list[Any]) -> list[Any]:
        """Return a view with each other message before the one it preceded; at the front if that one is gone."""
        if not self._others:
            return view
        at: dict[int, list[Any]] = {}
        for follower, message in self._others:
            at.setdefault(self._place(view, follower), []).append(message)
        merged: list[Any] = []
        for place, message in enumerate(view):
            merged += at.get(place, ())
            merged.append(message)
        return [*merged, *at.get(len(view), ())]

    def _place(self, view: Sequence[Any], follower: int) -> int:
        if follower == 0 or follower >= len(self.messages):
            return 0 if follower == 0 else len(view)
        contents = self.messages[follower].contents
        for place in range(len(view) - 1, -1, -1):
            there = view[place].contents
            if there and contents and there[0] is contents[0]:
                return place
        return next((place for place, each in enumerate(view) if each.role != "system"), 0)


def _schema(tool: Any) -> Any:
    return tool.to_json_schema_spec() if hasattr(tool, "to_json_schema_spec") else tool

"""Conversations of one wire format, written in another: words, calls and results.

The target needs nothing but `MessageFormat.compose`, `acceptable` and `follows`, so this works for every format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import attrs

from ..formats import MessageFormat, json_object, openai_chat
from ..messages import Message, Part, TextPart, ToolCallPart, ToolResultPart

_ID: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def write_chat(messages: list[dict[str, Any]], format: MessageFormat) -> list[Any]:
    """Return chat messages in another format, without images, thoughts and unknown fields; O(parts)."""
    return messages if format is openai_chat else write_messages(map(openai_chat.read, messages), format)


def write_messages(messages: Iterable[Message], format: MessageFormat) -> list[Any]:
    """Return the words, calls and results of a conversation as messages of a format; O(parts).

    Each result follows its call, calls have different ids, and what may not follow the messages before it is left out.
    """
    read = list(messages)
    results = _results_by_call(read)
    writer = _Writer(format)
    for role, parts in _spoken(read):
        calls = [part for part in parts if isinstance(part, ToolCallPart)]
        made = writer.add(role, [writer.call(part) if isinstance(part, ToolCallPart) else part for part in parts])
        written = [call for message in made for call in message.tool_calls()][-len(calls) :]
        answered = [(call, results[id(old)]) for old, call in zip(calls, written, strict=False) if id(old) in results]
        if answered:
            writer.add("user", [ToolResultPart(call.id, result.text) for call, result in answered])
    return writer.ended()


def _spoken(messages: Sequence[Message]) -> list[tuple[str, list[Part]]]:
    """Return the role and the texts and calls of each message that has any; messages of one answer are one."""
    spoken: list[tuple[str, list[Part]]] = []
    speaks = False
    for message in messages:
        texts = [TextPart(part.text) for part in message.parts if isinstance(part, TextPart) and part.text.strip()]
        parts: list[Part] = [*texts, *message.tool_calls()]
        if message.continues and speaks and parts:
            spoken[-1][1].extend(parts)
        elif parts:
            role = "system" if message.is_system else "user" if message.role == "user" else "assistant"
            spoken.append((role, parts))
        speaks = message.role == "assistant" and (speaks or bool(parts))
    return spoken


def _results_by_call(messages: Sequence[Message]) -> dict[int, ToolResultPart]:
    """Return the result of each call by the call's identity; an id that is used again belongs to the latest call."""
    results: dict[int, ToolResultPart] = {}
    open: dict[str, list[ToolCallPart]] = {}
    for message in messages:
        for result in message.tool_results():
            if waiting := open.get(result.call_id):
                results[id(waiting.pop(0))] = result
        made: dict[str, list[ToolCallPart]] = {}
        for call in message.tool_calls():
            made.setdefault(call.id, []).append(call)
        open |= made
    return results


@attrs.define
class _Writer:
    """Writes messages, each of which may follow the one before it. Holds state: the messages so far, and the ids of calls."""

    format: MessageFormat
    said: list[tuple[str, list[Part], list[Message]]] = attrs.field(
        factory=list[tuple[str, list[Part], list[Message]]], init=False
    )
    taken: set[str] = attrs.field(factory=set[str], init=False)

    def call(self, call: ToolCallPart) -> ToolCallPart:
        """Return a call with an id of its own that every provider accepts, and an object as arguments."""
        given = call.id if _ID.fullmatch(call.id) and call.id not in self.taken else f"call_{len(self.taken)}_"
        self.taken.add(given)
        arguments = call.arguments if json_object(call.arguments) is not None else json.dumps({"input": call.arguments})
        return ToolCallPart(given, call.name or "unnamed", arguments)

    def add(self, role: str, parts: Sequence[Part]) -> list[Message]:
        """Write messages, joined with those before them where they may not follow; return them, or none if that fails too."""
        made = self.format.compose(role, parts)
        if not made or any(self.format.acceptable(message) is not None for message in made):
            return []
        before = None if all(message.is_system for message in self._messages()) else self.said[-1][2][-1]
        if self.format.follows(before, made[0]):
            self.said.append((role, list(parts), made))
            return made
        if not self.said or self.said[-1][0] not in (role, "system"):
            return []
        earlier, others, _ = self.said.pop()
        return self.add(role, [*others, *parts] if earlier == role else parts)

    def ended(self) -> list[Any]:
        """Return the list, without messages at its end that may not be last."""
        while self.said and not self.format.follows(self.said[-1][2][-1], None):
            self.said.pop()
        return [message.raw for message in self._messages()]

    def _messages(self) -> Iterable[Message]:
        return (message for _, _, messages in self.said for message in messages)

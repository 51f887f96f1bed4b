"""Conversations of one wire format, written in another: words, calls and results.

The target needs nothing but `MessageFormat.compose`, `acceptable` and `follows`, so this works for every format.
"""

from __future__ import annotations

import itertools
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
        written = writer.add(role, [writer.with_new_id(part) if isinstance(part, ToolCallPart) else part for part in parts])
        calls = [part for part in parts if isinstance(part, ToolCallPart)]
        if not calls:
            continue
        new_calls = [call for message in written for call in message.tool_calls()]
        pairs = zip(calls, new_calls[-len(calls) :], strict=False)  # those before are of a turn that this one was joined with
        answers = [ToolResultPart(new.id, results[id(call)].text) for call, new in pairs if id(call) in results]
        if answers:
            writer.add("user", answers)
    return writer.finished()


def _spoken(messages: Sequence[Message]) -> list[tuple[str, list[Part]]]:
    """Return the role and the texts and calls of each message that has any; messages of one answer are one."""
    spoken: list[tuple[str, list[Part]]] = []
    speaks = False
    for message in messages:
        parts: list[Part] = [TextPart(part.text) for part in message.parts if isinstance(part, TextPart) and part.text.strip()]
        parts += message.tool_calls()
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
    waiting: dict[str, list[ToolCallPart]] = {}  # by id, the calls whose result has not come
    for message in messages:
        for result in message.tool_results():
            if calls := waiting.get(result.call_id):
                results[id(calls.pop(0))] = result
        made: dict[str, list[ToolCallPart]] = {}
        for call in message.tool_calls():
            made.setdefault(call.id, []).append(call)
        waiting |= made
    return results


@attrs.frozen
class _Turn:
    """Texts, calls or results of one role, and the messages of the format that contain them."""

    role: str
    parts: list[Part]
    messages: list[Message]


class _Writer:
    """Writes messages, each of which may follow the one before it. Holds state: the turns so far, and the ids of calls."""

    def __init__(self, format: MessageFormat) -> None:
        self._format = format
        self._turns: list[_Turn] = []
        self._ids: set[str] = set()

    def with_new_id(self, call: ToolCallPart) -> ToolCallPart:
        """Return a call with an id of its own that every provider accepts, and an object as arguments."""
        made = (f"call_{number}_" for number in itertools.count(len(self._ids)))
        given = next(id for id in itertools.chain([call.id], made) if _ID.fullmatch(id) and id not in self._ids)
        self._ids.add(given)
        arguments = call.arguments if json_object(call.arguments) is not None else json.dumps({"input": call.arguments})
        return ToolCallPart(given, call.name or "unnamed", arguments)

    def add(self, role: str, parts: Sequence[Part]) -> list[Message]:
        """Write a turn, and return its messages; none if the format has no place for it.

        Where it may not follow the turn before it, it is joined with that one if the role is the same, and replaces it if that
        is a system message. So for Bedrock, whose roles alternate, "user, system, user" becomes one turn of the user.
        """
        while messages := self._format.compose(role, parts):
            if any(self._format.acceptable(message) is not None for message in messages):
                return []
            only_system = all(message.is_system for turn in self._turns for message in turn.messages)
            if self._format.follows(None if only_system else self._turns[-1].messages[-1], messages[0]):
                self._turns.append(_Turn(role, list(parts), messages))
                return messages
            if not self._turns or self._turns[-1].role not in (role, "system"):
                return []
            before = self._turns.pop()
            if before.role == role:
                parts = [*before.parts, *parts]
        return []

    def finished(self) -> list[Any]:
        """Return the list, without messages at its end that may not be last."""
        while self._turns and not self._format.follows(self._turns[-1].messages[-1], None):
            self._turns.pop()
        return [message.raw for turn in self._turns for message in turn.messages]

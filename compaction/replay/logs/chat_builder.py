"""A builder of recordings in OpenAI chat form, message by message, and helpers to read JSON of any shape."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...formats import fields_of, items_of, openai_chat
from ..recordings import Recording, seconds_of


def object_fields(value: Any) -> Mapping[str, Any]:
    """Return a JSON object's fields; none of any other value."""
    return fields_of(value) or {}


def list_items(value: Any) -> Sequence[Any]:
    """Return a JSON list's items; none of any other value."""
    return items_of(value) or ()


def text_of(content: Any) -> str:
    r"""Return the text of a content: a string, or a list of parts with a ``text``; other parts become their type in brackets.

    >>> text_of([{"type": "text", "text": "See"}, {"type": "image", "source": {}}])
    'See\n[image]'
    """
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if not isinstance(content, list | tuple):
        return json.dumps(content, ensure_ascii=False)
    texts: list[str] = []
    for part in list_items(content):
        fields = object_fields(part)
        text = part if isinstance(part, str) else fields.get("text")
        texts.append(text if isinstance(text, str) else f"[{fields.get('type', 'part')}]")
    return "\n".join(texts)


class ChatBuilder:
    """A conversation under construction. Holds state: the messages, and the time of each.

    >>> chat = ChatBuilder()
    >>> chat.say("user", "hi", "2026-01-05T10:00:00Z")
    >>> chat.answer(calls=[("c1", "now", {})])
    >>> [message["role"] for message in chat.recording("7", "log.jsonl").messages]
    ['user', 'assistant']
    """

    def __init__(self) -> None:
        self._messages: list[dict[str, Any]] = []
        self._times: list[float | None] = []
        self._notes: Counter[str] = Counter()

    def say(self, role: str, text: str, time: Any = None, **fields: Any) -> None:
        """Add a message of any role, with more fields if given."""
        self._messages.append({"role": role, **fields, "content": text})
        self._times.append(seconds_of(time))

    def result(self, call_id: Any, text: str, time: Any = None) -> None:
        """Add a tool result."""
        self.say("tool", text, time, tool_call_id=str(call_id or ""))

    def answer(
        self,
        text: str = "",
        *,
        calls: Iterable[tuple[Any, Any, Any]] = (),
        reasoning: str = "",
        time: Any = None,
        more: bool = False,
    ) -> None:
        """Add an answer of the model, or one more piece of the last answer, as some logs write answers in pieces.

        Each call has an id, a tool and arguments, which are a JSON value or text.
        """
        if not (more and self._messages and self._messages[-1]["role"] == "assistant"):
            self.say("assistant", "", time)
        message = self._messages[-1]
        for name, words in (("content", text), ("reasoning_content", reasoning)):
            if words:
                message[name] = f"{message[name]}\n{words}" if message.get(name) else words
        for id, name, arguments in calls:
            written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            function = {"name": str(name or ""), "arguments": written}
            message.setdefault("tool_calls", []).append({"id": str(id or ""), "type": "function", "function": function})

    def note(self, text: str) -> None:
        """Note a problem of the log."""
        self._notes[text] += 1

    def recording(self, id: str, where: str) -> Recording:
        """Return the conversation so far."""
        for message in self._messages:
            if message.get("tool_calls") and message["content"] == "":
                message["content"] = None
        notes = tuple([f"{text}, {count} times" for text, count in self._notes.items()])
        return Recording(id=id, messages=self._messages, times=self._times, format=openai_chat, where=where, notes=notes)

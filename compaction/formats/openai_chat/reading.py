"""Reading and writing of OpenAI chat completions, the format that every OpenAI-compatible server accepts.

The fields are those of ``ChatCompletionMessageParam`` in the API reference: ``developer``, ``system``, ``user``, ``assistant``
and ``tool`` messages (and the legacy ``function`` role); string or list content; ``tool_calls`` of both kinds, the legacy
``function_call``; and the reasoning fields that compatible servers add. Messages, calls and parts may be dictionaries or the
``openai`` package's own response objects. Unknown parts are kept as `OtherPart`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from typing import Any, Final

from ...messages import CallOutline, Message, Outline, Part, TextPart, ToolCallPart, ToolResultPart
from ..rulebook import WireFormat
from ..wire import items_of, says_something
from .parts import read_parts, read_result, write_calls, write_content, write_fields, write_result
from .rules import BOOK, is_empty

_PLAIN_FIELDS: Final = frozenset({"role", "content", "name"})
_PLAIN_ROLES: Final = frozenset({"user", "assistant", "system", "developer"})
_MISSING: Final = object()
_DETECTED_TYPES: Final = ("text", "image_url", "refusal", "input_audio", "file")
_BESIDE_CONTENT: Final = frozenset({"tool_calls", "function_call", "refusal"})


class OpenAIChat(WireFormat):
    """The chat-completions format; use the shared instance ``openai_chat``.

    >>> message = openai_chat.read({"role": "tool", "tool_call_id": "call_1", "content": "18 degrees"})
    >>> message.parts
    (ToolResultPart(call_id='call_1', text='18 degrees', media=(), failed=None),)
    >>> [problem.rule for problem in openai_chat.validate([message.raw])]
    ['result-without-call']
    """

    name = "openai-chat"
    shape = "a chat message is a mapping with 'role' and 'content'"
    takes = "pass dictionaries, or the openai package's message objects"
    roles = "developer, system, user, assistant, tool"
    book = BOOK

    def read(self, raw: Any, position: int = 0) -> Message:
        fields: Mapping[str, Any] = raw if raw.__class__ is dict else self._fields(raw, position)
        role, content, name = fields.get("role"), fields.get("content"), fields.get("name")
        if not isinstance(name, str):
            name = None
        if type(content) is str and type(role) is str and role in _PLAIN_ROLES and _PLAIN_FIELDS.issuperset(fields):
            return Message(role, (TextPart(content),), raw, self, name)
        role = self._role(fields, position)
        if role == "tool" or role == "function":
            return Message(role, read_result(fields, role), raw, self, name)
        return Message(role, tuple(read_parts(fields)), raw, self, name)

    def outline(self, raw: Any) -> Outline | None:
        if raw.__class__ is not dict:
            return None
        size, role, content = len(raw), raw.get("role"), raw.get("content", _MISSING)
        name: Any = None
        if size > 2 and "name" in raw:
            name = raw["name"]
            if name.__class__ is not str:
                return None
            size -= 1
        if content.__class__ is str:
            if size == 2:
                return (role, content, (), None, name) if role.__class__ is str and role in _PLAIN_ROLES else None
            if size == 3 and role == "tool" and (call_id := raw.get("tool_call_id")).__class__ is str:
                return role, content, (), call_id, name
        elif content is not None:
            return None
        if size == 3 and role == "assistant" and (calls := raw.get("tool_calls")).__class__ is list and calls:
            outlined = tuple([outline for call in calls if (outline := _call_outline(call)) is not None])
            return (role, content, outlined, None, name) if len(outlined) == len(calls) else None
        return None

    def of_outline(self, outline: Outline, raw: Any) -> Message:
        role, text, calls, answers, name = outline
        if answers is not None:
            return Message(role, (ToolResultPart(answers, text or ""),), raw, self, name)
        parts: tuple[Part, ...] = () if text is None else (TextPart(text),)
        if calls:
            raw_calls = chain(items_of(raw.get("tool_calls")) or (), repeat(None))  # the host may have removed some since
            parts += tuple([ToolCallPart(*call, each) for call, each in zip(calls, raw_calls, strict=False)])
        return Message(role, parts, raw, self, name)

    def has_only_texts(self, raw: Any) -> bool:
        """Whether the content is a list of texts, and the rest of the message is plain enough for an `outline`. O(parts).

        >>> openai_chat.has_only_texts({"role": "user", "content": [{"type": "text", "text": "hi"}]})
        True
        """
        content = raw.get("content") if raw.__class__ is dict else None
        if content.__class__ is not list or not content:
            return False
        for part in content:
            if part.__class__ is not dict or len(part) != 2 or part.get("type") != "text" or type(part.get("text")) is not str:
                return False
        return self.outline({**raw, "content": ""}) is not None

    def _write(self, fields: dict[str, Any], message: Message, parts: Sequence[Part]) -> None:
        if message.role in ("tool", "function"):
            write_result(fields, message.parts, parts)
        else:
            write_content(fields, message.parts, parts)
            write_fields(fields, message.parts, parts)
            write_calls(fields, message.parts, parts)

    def new(self, role: str, text: str) -> Message:
        return self.read({"role": role, "content": text})

    def compose(self, role: str, parts: Sequence[Part]) -> list[Message]:
        """Return a tool message for each result, and one message with the texts and calls."""
        results = [part for part in parts if isinstance(part, ToolResultPart)]
        said = [part for part in parts if not isinstance(part, ToolResultPart)]
        made = [self.changed(self.new("tool", ""), [result]) for result in results]
        return [*made, self.changed(self.new(role, ""), said)] if said else made

    def recognizes(self, fields: Mapping[str, Any]) -> bool | None:
        """Recognize the role of tool results, and the fields of calls and refusals."""
        if fields.get("type") == "message" or not says_something(fields):
            return False
        if fields.get("role") in ("tool", "function"):
            return True
        if _BESIDE_CONTENT.isdisjoint(fields):
            return None
        return True if any(not is_empty(fields.get(name)) for name in _BESIDE_CONTENT) else None

    def recognizes_part(self, fields: Mapping[str, Any]) -> bool:
        return fields.get("type") in _DETECTED_TYPES


openai_chat = OpenAIChat()


def _call_outline(call: Any) -> CallOutline | None:
    """Return the outline of a plain function call; ``None`` for any other call."""
    if call.__class__ is not dict or len(call) - ("index" in call) != 3 or call.get("type") != "function":
        return None
    body, id = call.get("function"), call.get("id")
    if body.__class__ is not dict or id.__class__ is not str:
        return None
    name, arguments = body.get("name"), body.get("arguments")
    return (id, name, arguments) if name.__class__ is str and arguments.__class__ is str else None

"""Microsoft Agent Framework's messages as a wire format: every content type is kept, unchanged messages as they are.

An unknown content, and a hosted tool's call with its result in the same message, is kept whole as `OtherPart`. Pictures inside
such a content, and screenshots, add no tokens. Messages are compared by role and contents; ids and additional properties are
ignored, because the framework adds them later.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...errors import ConfigurationError, InvalidMessage
from ...formats import arguments_text, items_of, json_text, media_kind, unwritable
from ...messages import MediaPart, Message, OtherPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from ..message_adapter import MessageAdapter
from ..requirements import import_framework

_TOOLS: Final = ("mcp_server_tool", "shell_tool", "code_interpreter_tool", "computer_tool")
_CALLS: Final = frozenset({"function_call", *(f"{tool}_call" for tool in _TOOLS)})
_RESULTS: Final = frozenset({"function_result", *(f"{tool}_result" for tool in _TOOLS)})
_APPROVALS: Final = ("function_approval_request", "function_approval_response")
_RESULT_FIELDS: Final[Mapping[str, str]] = {
    "function_result": "result",
    "mcp_server_tool_result": "output",
    "shell_tool_result": "outputs",
    "code_interpreter_tool_result": "outputs",
}
_NO_WORDS: Final = ("computer_tool_result", "function_approval_response")
_CONTINUE: Final = frozenset({"image_generation_tool_result", "search_tool_result"})
_DATA: Final = re.compile(r"(data:[\w.+-]+/[\w.+-]+;base64,)[\w+/=-]+")
_ANNOTATIONS: Final = frozenset({"_group", "_excluded", "_exclude_reason"})


class AgentFramework(MessageAdapter):
    """The format of ``agent_framework.Message``; use the shared instance ``agent_framework``.

    Reading needs no framework installed: a message is any object with ``role`` and ``contents``.
    """

    name = "agent-framework"
    compared = ("contents", "role")

    def read(self, raw: Any, position: int = 0) -> Message:
        role, items = getattr(raw, "role", None), items_of(getattr(raw, "contents", None))
        if not isinstance(role, str) or not role or items is None:
            raise InvalidMessage(
                f"messages[{position}]",
                f"a message has a role and contents (got {type(raw).__name__})",
                "pass agent_framework.Message objects",
            )
        called, answered = (
            {content.call_id for content in items if getattr(content, "type", None) in kinds} for kinds in (_CALLS, _RESULTS)
        )
        within = called & answered  # the calls of hosted tools, whose results are in the same message, and must stay there
        parts = tuple([part for content in items for part in _parts(content, within)])
        continues = role != "user" and bool(items) and getattr(items[0], "type", None) in _CONTINUE
        return Message(role, parts, raw, self, getattr(raw, "author_name", None), continues=continues)

    def key(self, raw: Any) -> Any:
        return raw.role, [content.to_dict() for content in raw.contents]

    def changed(self, message: Message, parts: Sequence[Part]) -> Message:
        contents = [_content(part, message.parts) for part in parts if not (isinstance(part, OtherPart) and part.raw is None)]
        return self.read(unannotated(message.raw, contents=contents, raw_representation=None))

    def new(self, role: str, text: str) -> Message:
        return self.read(import_framework("agent_framework").Message(role, [text]))

    def to_wire(self, raw: Any) -> Any:
        author = {} if raw.author_name is None else {"author_name": raw.author_name}
        data = {"role": raw.role, "contents": [content.to_dict() for content in raw.contents], **author}
        return json.loads(json.dumps(data, default=str))

    def from_wire(self, data: Any) -> Any:
        return import_framework("agent_framework").Message(data["role"], data["contents"], author_name=data.get("author_name"))


agent_framework = AgentFramework()


def altered(thing: Any, **fields: Any) -> Any:
    """Return a copy of a message or a content with other fields."""
    made = copy.copy(thing)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def source_of(message: Any) -> str | None:
    """Return the ``source_id`` of the provider that added a message; ``None`` if the run itself added it."""
    attribution = message.additional_properties.get("_attribution")
    return attribution.get("source_id") if attribution.__class__ is dict else None


def with_author(message: Any, author: str) -> Any:
    """Return a message with the author that the framework adds after the run; a later change would break the prompt cache."""
    if message.author_name is not None or message.role not in ("assistant", "tool"):
        return message
    return altered(message, author_name=author)


def unannotated(message: Any, **fields: Any) -> Any:
    """Return a copy of a message with other fields, and without what a compaction wrote into its additional properties."""
    properties = {name: value for name, value in message.additional_properties.items() if name not in _ANNOTATIONS}
    return altered(message, additional_properties=properties, **fields)


def _parts(content: Any, within: set[str]) -> tuple[Part, ...]:
    """Read one content; a result that no text can replace is read as an empty result and a part with its content."""
    part = _part(content, within)
    return (part, OtherPart(_shown(content))) if isinstance(part, ToolResultPart) and content.type in _NO_WORDS else (part,)


def _part(content: Any, within: set[str]) -> Part:
    """Read one content; an unknown one stays whole as `OtherPart`."""
    kind = getattr(content, "type", None)
    if kind == "text":
        return TextPart(content.text or "", raw=content)
    if kind == "text_reasoning":
        return ReasoningPart(content.text or "", raw=content)
    if kind in ("data", "uri"):
        return _media(content)
    if kind in _CALLS and content.call_id and content.call_id not in within:
        return _call(content)
    if kind in _RESULTS and content.call_id and content.call_id not in within:
        return _result(content)
    if kind in _APPROVALS and getattr(content.function_call, "hosted", False):
        if kind == "function_approval_response":  # read as the result of the request, since they must stay together
            return ToolResultPart(content.id, "", raw=content)
        asked = content.function_call
        return ToolCallPart(content.id, asked.name or kind, arguments_text(asked.arguments), raw=content)
    return OtherPart(_shown(content), raw=content)


def _media(content: Any) -> MediaPart:
    return MediaPart(
        media_kind(content.media_type), size_bytes=len(content.uri or "") if content.type == "data" else 0, raw=content
    )


def _call(content: Any) -> Part:
    if content.type == "function_call" and (content.hosted or content.informational_only):
        return OtherPart(_shown(content), raw=content)
    arguments: Any = content.arguments
    if content.type == "shell_tool_call":
        arguments = {"commands": content.commands}
    elif content.type == "computer_tool_call":
        arguments = {"actions": content.actions}
    elif content.type == "code_interpreter_tool_call":
        arguments = {"inputs": [_words(each) for each in content.inputs or ()]}
    name = content.name or content.tool_name or content.type
    return ToolCallPart(content.call_id, name, arguments_text(arguments), raw=content)


def _result(content: Any) -> ToolResultPart:
    media = tuple([_media(item) for item in content.items or () if item.type in ("data", "uri")])
    value = getattr(content, _RESULT_FIELDS.get(content.type, ""), None)
    values = items_of(value)
    text = arguments_text(value) if values is None else "\n".join([_words(each) for each in values])
    return ToolResultPart(content.call_id, text, media, raw=content)


def _words(content: Any) -> str:
    words = getattr(content, "text", None) or getattr(content, "stdout", None) or getattr(content, "stderr", None)
    return words if isinstance(words, str) else _shown(content)


def _shown(content: Any) -> str:
    """Return a content as JSON text, for counting; of a picture or a file in it, only the type."""
    data = content.to_dict() if hasattr(content, "to_dict") else content
    return _DATA.sub(r"\1", json_text(data))


def _content(part: Part, known: Sequence[Part]) -> Any:
    """Return a part as a content; an unchanged part gives its original content."""
    if any(part is each for each in known):
        return part.raw
    if isinstance(part, TextPart):
        return _altered(part.raw, text=part.text) if part.raw is not None else _new_text(part.text)
    if isinstance(part, ReasoningPart) and part.raw is not None:
        return _altered(part.raw, text=part.text, protected_data=None)
    if isinstance(part, ToolCallPart) and part.raw is not None and part.raw.type == "function_call":
        return _altered(part.raw, arguments=part.arguments)
    if isinstance(part, ToolResultPart) and part.raw is not None:
        return _changed_result(part)
    raise unwritable(part)


def _changed_result(part: ToolResultPart) -> Any:
    kind = part.raw.type
    if kind in _NO_WORDS:
        raise ConfigurationError(f"parts: {kind} cannot be changed; drop it with its call (got {part!r})")
    if kind == "function_result":
        kept = [_new_text(part.text), *[media.raw for media in part.media]] if part.media else None
        return _altered(part.raw, result=part.text, items=kept)
    return _altered(part.raw, **{_RESULT_FIELDS[kind]: [_new_text(part.text)]})


def _altered(content: Any, **fields: Any) -> Any:
    """Return a copy with other fields; it keeps additional properties and annotations, but not the provider's own object."""
    return altered(content, raw_representation=None, **fields)


def _new_text(text: str) -> Any:
    return import_framework("agent_framework").Content.from_text(text)

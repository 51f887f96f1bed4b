"""Errors for messages of known frameworks and services that have no wire format here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from ..errors import UnknownFormat
from .wire import fields_of, items_in, items_of, string

_Fields: TypeAlias = Mapping[str, Any]

_LANGCHAIN: Final = frozenset({"human", "ai", "system", "tool", "function", "chat", "HumanMessageChunk", "AIMessageChunk"})
_CALL_PARTS: Final = ("tool-call", "tool-result", "tool-approval-request", "tool-approval-response")


def _elements(fields: _Fields, name: str) -> Iterator[_Fields]:
    """Yield the objects in a list of a message."""
    return (found for each in items_in(fields, name) if (found := fields_of(each)) is not None)


_CONVERT: Final = "convert them to one of the wire formats first"
_FOREIGN: Final[tuple[tuple[str, Callable[[_Fields], bool], str], ...]] = (
    (
        "pydantic-ai",
        lambda fields: "parts" in fields and string(fields.get("kind")) in ("request", "response"),
        "use compaction.integrations.pydantic_ai, which takes them as they are",
    ),
    (
        "the Vercel AI SDK (UI messages)",
        lambda fields: any(string(part.get("type")) for part in _elements(fields, "parts")),  # Gemini's parts have no type
        "convert them with convertToModelMessages, and compact what the provider is sent: its own wire format",
    ),
    (
        "the Vercel AI SDK (model messages)",
        lambda fields: any("toolCallId" in part or part.get("type") in _CALL_PARTS for part in _elements(fields, "content")),
        "compact what the provider is sent, its own wire format, or write calls and results as one of these does",
    ),
    (
        "LangChain",
        lambda fields: (
            {"lc", "kwargs"} <= fields.keys()
            or ("role" not in fields and string(fields.get("type")) in _LANGCHAIN and ("data" in fields or "content" in fields))
        ),
        "use compaction.integrations.langchain, or convert them with langchain_core's convert_to_openai_messages",
    ),
    (
        "Cohere's first chat API",
        lambda fields: "content" not in fields and string(fields.get("role")) in ("USER", "CHATBOT", "SYSTEM", "TOOL"),
        "write them in the format of Cohere's second chat API, which is chat completions",
    ),
    (
        "Agent Framework",
        lambda fields: "role" in fields and items_of(fields.get("contents")) is not None,
        "use compaction.integrations.agent_framework, which takes them as they are",
    ),
    ("LlamaIndex", lambda fields: any("block_type" in block for block in _elements(fields, "blocks")), _CONVERT),
    ("AutoGen", lambda fields: "source" in fields and string(fields.get("type")).endswith(("Message", "Event")), _CONVERT),
    (
        "a ShareGPT data set",
        lambda fields: "from" in fields and isinstance(fields.get("value"), str),
        "write 'from' as 'role' (human is user, gpt is assistant) and 'value' as 'content'",
    ),
)
"""The name of each framework or service, whether a message is one of its messages, and what the caller can do."""


def refuse_foreign(fields: _Fields) -> None:
    """Raise an error for a message of a known framework or service.

    Args:
        fields: The fields of a message that no wire format recognizes.

    Raises:
        UnknownFormat: If it is such a message; the text names the framework and the way to convert its messages.
    """
    for name, shows, remedy in _FOREIGN:
        if shows(fields):
            raise UnknownFormat(f"these look like messages of {name}, which is not a wire format here; {remedy}")

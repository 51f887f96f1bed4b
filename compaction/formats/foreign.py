"""Messages of frameworks and services that are not wire formats here: named, so that nobody reads them as something else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from ..errors import UnknownFormat
from .wire import fields_of, items_of, string

_Fields: TypeAlias = Mapping[str, Any]

_LANGCHAIN: Final = frozenset({"human", "ai", "system", "tool", "function", "chat", "HumanMessageChunk", "AIMessageChunk"})
_CALL_PARTS: Final = ("tool-call", "tool-result", "tool-approval-request", "tool-approval-response")


def _elements(fields: _Fields, name: str) -> Iterator[_Fields]:
    """Yield the objects in a list of a message."""
    return (found for each in items_of(fields.get(name)) or () if (found := fields_of(each)) is not None)


def _is_vercel_ui(fields: _Fields) -> bool:
    """Whether its parts have types, which those of Gemini have not."""
    return any(string(part.get("type")) for part in _elements(fields, "parts"))


def _is_vercel_model(fields: _Fields) -> bool:
    return any("toolCallId" in part or part.get("type") in _CALL_PARTS for part in _elements(fields, "content"))


def _is_langchain(fields: _Fields) -> bool:
    if "lc" in fields and "kwargs" in fields:
        return True
    return "role" not in fields and string(fields.get("type")) in _LANGCHAIN and ("data" in fields or "content" in fields)


def _is_cohere(fields: _Fields) -> bool:
    return "content" not in fields and string(fields.get("role")) in ("USER", "CHATBOT", "SYSTEM", "TOOL")


def _is_pydantic_ai(fields: _Fields) -> bool:
    return "parts" in fields and string(fields.get("kind")) in ("request", "response")


def _is_agent_framework(fields: _Fields) -> bool:
    return "role" in fields and items_of(fields.get("contents")) is not None


def _is_llama_index(fields: _Fields) -> bool:
    return any("block_type" in block for block in _elements(fields, "blocks"))


def _is_autogen(fields: _Fields) -> bool:
    return "source" in fields and string(fields.get("type")).endswith(("Message", "Event"))


def _is_sharegpt(fields: _Fields) -> bool:
    return "from" in fields and isinstance(fields.get("value"), str)


_OURS: Final = "convert them to one of the wire formats first"
_FOREIGN: Final[tuple[tuple[str, Callable[[_Fields], bool], str], ...]] = (
    ("pydantic-ai", _is_pydantic_ai, "use compaction.integrations.pydantic_ai, which takes them as they are"),
    (
        "the Vercel AI SDK (UI messages)",
        _is_vercel_ui,
        "convert them with convertToModelMessages, and compact what the provider is sent: its own wire format",
    ),
    (
        "the Vercel AI SDK (model messages)",
        _is_vercel_model,
        "compact what the provider is sent, its own wire format, or write calls and results as one of these does",
    ),
    (
        "LangChain",
        _is_langchain,
        "use compaction.integrations.langchain, or convert them with langchain_core's convert_to_openai_messages",
    ),
    ("Cohere's first chat API", _is_cohere, "write them as Cohere's second does, which are chat completions"),
    ("Agent Framework", _is_agent_framework, "use compaction.integrations.agent_framework, which takes them as they are"),
    ("LlamaIndex", _is_llama_index, _OURS),
    ("AutoGen", _is_autogen, _OURS),
    ("a ShareGPT data set", _is_sharegpt, "write 'from' as 'role' (human is user, gpt is assistant) and 'value' as 'content'"),
)
"""Whose messages they are, how they show it, and what to do with them."""


def refuse_foreign(fields: _Fields) -> None:
    """Raise an error for a message of a framework or service that is known and is not a wire format here.

    Args:
        fields: The fields of a message that no wire format explains.

    Raises:
        UnknownFormat: If it is one; the text says whose it is, and what to do.

    >>> refuse_foreign({"role": "user", "content": "hi"})
    >>> refuse_foreign({"from": "human", "value": "hi"})
    Traceback (most recent call last):
    ...
    compaction.errors.UnknownFormat: these look like messages of a ShareGPT data set, which is not a wire format here; write \
'from' as 'role' (human is user, gpt is assistant) and 'value' as 'content'
    """
    for name, shows, remedy in _FOREIGN:
        if shows(fields):
            raise UnknownFormat(f"these look like messages of {name}, which is not a wire format here; {remedy}")

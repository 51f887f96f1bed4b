"""The APIs of models: where a request has its messages, what else the model reads, and who keeps the history.

A wire format is about messages; this table is about the request and the answer around them. The gateway and the callback of
LiteLLM's proxy use it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from .answers import anthropic_answer, chat_answer, responses_answer
from .anthropic import anthropic
from .base import MessageFormat
from .bedrock import bedrock
from .gemini import gemini
from .openai_chat import openai_chat
from .openai_responses import openai_responses
from .wire import fields_of, items_in, kind_of


@attrs.frozen(kw_only=True, eq=False)
class ModelAPI:
    """The requests and answers of one API.

    Args:
        name: Its name in logs.
        format: The wire format of the messages.
        key: The field of a request with the messages.
        read_beside: The other fields that the model reads, which count as tokens.
        kept: Returns the field or the item that names a history which the provider keeps; ``None`` if the request has all.
        shortened: Returns the field or the item by which the provider shortens the history itself; ``None`` if it does not.
        answer: Returns the messages in the JSON values of an answer; ``None`` if answers cannot be read.
        tool: Returns the entry of a function in a request's list of tools; ``None`` as for ``answer``.
    """

    name: str
    format: MessageFormat
    key: str
    read_beside: tuple[str, ...]
    kept: Callable[[Mapping[str, Any]], str | None] = lambda request: None
    shortened: Callable[[Mapping[str, Any]], str | None] = lambda request: None
    answer: Callable[[Sequence[Any]], list[Any]] | None = None
    tool: Callable[[dict[str, Any]], dict[str, Any]] | None = None

    def beside(self, request: Mapping[str, Any]) -> list[Any]:
        """Return the values of the fields of a request that the model reads besides the messages; none that is empty.

        >>> CHAT_API.beside({"tools": [{"type": "function"}], "functions": [], "temperature": 1})
        [[{'type': 'function'}]]
        """
        return [value for name in self.read_beside if (value := request.get(name))]

    def messages_of(self, answer: bytes, content_type: str) -> list[Any]:
        """Return the messages of an answer, whole or streamed as its content type says.

        Raises:
            Exception: If it is not an answer of this API.

        >>> CHAT_API.messages_of(b'{"choices": [{"message": {"role": "assistant", "content": "hi"}}]}', "application/json")
        [{'role': 'assistant', 'content': 'hi'}]
        """
        if self.answer is None:
            return []
        return self.answer(_events(answer) if is_event_stream(content_type) else [json.loads(answer)])


def is_event_stream(content_type: str) -> bool:
    """Return whether a content type is that of server-sent events, as models stream their answers.

    >>> is_event_stream("Text/Event-Stream; charset=utf-8")
    True
    """
    return content_type.strip().lower().startswith("text/event-stream")


def _events(answer: bytes) -> list[Any]:
    """Return the JSON values of server-sent events."""
    lines = (line[5:].strip() for line in answer.split(b"\n") if line.startswith(b"data:"))
    return [json.loads(line) for line in lines if line.startswith(b"{")]


def tool_names(request: Mapping[str, Any]) -> set[str]:
    """Return the names of a request's tools. A tool without a name, or an entry that is a list, has the name ``"None"``.

    >>> sorted(tool_names({"tools": [{"functionDeclarations": [{"name": "look"}, {"name": "move"}]}]}))
    ['look', 'move']
    """
    names: set[str] = set()
    for tool in (*items_in(request, "tools"), *items_in(request.get("toolConfig"), "tools")):
        listed = [tool, *(each for field in _DECLARATIONS for each in items_in(tool, field))]
        wrapped = [(fields_of(tool) or {}).get(field) for field in ("function", "toolSpec")]
        named = {str(name) for each in (*listed, *wrapped) if (name := (fields_of(each) or {}).get("name"))}
        names |= named or {"None"}
    return names


_DECLARATIONS: Final = ("functionDeclarations", "function_declarations")  # the fields of a Gemini tool with several functions


def may_choose_tools(request: Mapping[str, Any]) -> bool:
    """Return whether a request lets the model choose whether it calls a tool, and which."""
    choice = request.get("tool_choice")
    return choice in (None, "auto") or (fields_of(choice) or {}).get("type") == "auto"


def _first(request: Mapping[str, Any], *names: str) -> str | None:
    """Return the first of these fields that a request has."""
    return next((name for name in names if request.get(name)), None)


def _kept_by_responses(request: Mapping[str, Any]) -> str | None:
    stored = "store" if request.get("store") is True else None
    return _first(request, "previous_response_id", "conversation") or stored or _input_kind(request, "item_reference")


def _input_kind(request: Mapping[str, Any], start: str) -> str | None:
    """Return the type of the first input item whose type begins so."""
    return next((kind for kind in map(kind_of, items_in(request, "input")) if kind.startswith(start)), None)


def _shortened_by_anthropic(request: Mapping[str, Any]) -> str | None:
    managed = fields_of(request.get("context_management"))
    kinds = [kind_of(each) for each in items_in(managed, "edits")]
    only_thoughts = bool(kinds) and all(kind.startswith("clear_thinking") for kind in kinds)
    return "context_management" if managed and not only_thoughts else None


CHAT_API: Final = ModelAPI(
    name="chat",
    format=openai_chat,
    key="messages",
    read_beside=("tools", "functions", "response_format"),
    answer=chat_answer,
    tool=lambda function: {"type": "function", "function": function},
)
RESPONSES_API: Final = ModelAPI(
    name="responses",
    format=openai_responses,
    key="input",
    read_beside=("instructions", "tools", "text"),
    kept=_kept_by_responses,
    shortened=lambda request: _first(request, "context_management") or _input_kind(request, "compaction"),
    answer=responses_answer,
    tool=lambda function: {"type": "function", "strict": False, **function},
)
ANTHROPIC_API: Final = ModelAPI(
    name="messages",
    format=anthropic,
    key="messages",
    read_beside=("system", "tools"),
    kept=lambda request: _first(request, "thread"),
    shortened=_shortened_by_anthropic,
    answer=anthropic_answer,
    tool=lambda function: {
        "name": function["name"],
        "description": function["description"],
        "input_schema": function["parameters"],
    },
)
GEMINI_API: Final = ModelAPI(
    name="generate",
    format=gemini,
    key="contents",
    read_beside=("systemInstruction", "system_instruction", "tools"),
    kept=lambda request: "cachedContent" if _first(request, "cachedContent", "cached_content") else None,
)
BEDROCK_API: Final = ModelAPI(name="converse", format=bedrock, key="messages", read_beside=("system", "toolConfig"))

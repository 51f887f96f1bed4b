"""The APIs of models: where a request has its messages, what else the model reads, who keeps the history, and its answers.

A wire format is about messages; this is about the request and the answer around them. The gateway and the callback of LiteLLM's
proxy use it.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs

from ..json_data import member_of
from ..tokens import Usage
from .anthropic import anthropic
from .base import MessageFormat
from .bedrock import bedrock
from .gemini import gemini
from .openai_chat import openai_chat
from .openai_responses import openai_responses
from .wire import fields_of, items_in, items_of, kind_of


@attrs.frozen(kw_only=True, eq=False)
class ModelAPI:
    """The requests and answers of one API."""

    name: str  # in logs
    format: MessageFormat  # of the messages
    key: str  # the field of a request with the messages
    read_beside: tuple[str, ...]  # the other fields that the model reads, which count as tokens
    # the field or the item that names a history which the provider keeps; ``None`` if the request has all
    kept: Callable[[Mapping[str, Any]], str | None] = lambda request: None
    # the field or the item by which the provider shortens the history itself; ``None`` if it does not
    shortened: Callable[[Mapping[str, Any]], str | None] = lambda request: None
    # the messages in the JSON values of an answer; ``None`` if answers cannot be read
    answer: Callable[[Sequence[Any]], list[Any]] | None = None
    tool: Callable[[dict[str, Any]], dict[str, Any]] | None = None  # the entry of a function in a request's list of tools

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


# ------------------------------------------------------------------------ answers

# Each function takes the JSON values of an answer, one or all events of a stream, and returns its messages
# as the next request repeats them.


def _chat_answer(values: Sequence[Any]) -> list[Any]:
    """Return the message of the first choice of chat completions; other choices are ignored."""
    choices = [choice for value in values for choice in value.get("choices") or () if choice.get("index", 0) == 0]
    whole = [choice["message"] for choice in choices if "message" in choice]
    if whole:
        return [{"role": "assistant", **{name: field for name, field in whole[0].items() if field is not None}}]
    deltas: list[Any] = [choice.get("delta") or {} for choice in choices]
    calls: dict[int, dict[str, Any]] = {}
    for piece in (piece for delta in deltas for piece in delta.get("tool_calls") or ()):
        call = calls.setdefault(piece["index"], {"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
        call["id"] = piece.get("id") or call["id"]
        named: dict[str, str | None] = piece.get("function") or {}
        for name, text in named.items():
            call["function"][name] = call["function"].get(name, "") + (text or "")
    text = "".join([delta.get("content") or "" for delta in deltas])
    said = {"content": text} if text or not calls else {}
    return [{"role": "assistant", **said, **({"tool_calls": list(calls.values())} if calls else {})}]


def _responses_answer(values: Sequence[Any]) -> list[Any]:
    """Return the items of a response of the Responses API; none if its stream did not complete."""
    ends = [value.get("response", value) for value in values if value.get("type") in (None, "response.completed")]
    return list(ends[-1]["output"]) if ends else []


def _anthropic_answer(values: Sequence[Any]) -> list[Any]:
    if values and "content" in values[0]:
        return [{"role": "assistant", "content": values[0]["content"]}]
    blocks: dict[int, dict[str, Any]] = {}
    for event in values:
        if event.get("type") == "content_block_start":
            blocks[event["index"]] = {**event["content_block"]}
        elif event.get("type") == "content_block_delta":
            block, delta = blocks[event["index"]], event["delta"]
            kind = str(delta.get("type")).removesuffix("_delta")
            if kind == "citations":  # these come one by one
                block[kind] = [*(block.get(kind) or ()), delta["citation"]]
            else:  # a delta names its text by its type, such as ``text_delta``
                field = "partial_json" if kind == "input_json" else kind
                block[field] = block.get(field, "") + (delta[field] or "")
    for block in blocks.values():
        if "partial_json" in block:
            block["input"] = json.loads(block.pop("partial_json") or "{}")
    return [{"role": "assistant", "content": [blocks[place] for place in sorted(blocks)]}]


# ------------------------------------------------------------------------ the table

CHAT_API: Final = ModelAPI(
    name="chat",
    format=openai_chat,
    key="messages",
    read_beside=("tools", "functions", "response_format"),
    answer=_chat_answer,
    tool=lambda function: {"type": "function", "function": function},
)
RESPONSES_API: Final = ModelAPI(
    name="responses",
    format=openai_responses,
    key="input",
    read_beside=("instructions", "tools", "text"),
    kept=_kept_by_responses,
    shortened=lambda request: _first(request, "context_management") or _input_kind(request, "compaction"),
    answer=_responses_answer,
    tool=lambda function: {"type": "function", "strict": False, **function},
)
ANTHROPIC_API: Final = ModelAPI(
    name="messages",
    format=anthropic,
    key="messages",
    read_beside=("system", "tools"),
    kept=lambda request: _first(request, "thread"),
    shortened=_shortened_by_anthropic,
    answer=_anthropic_answer,
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


# ------------------------------------------------------------------------ usage

_LONGEST_LINE: Final = 4_194_304  # bytes; a longer one is skipped


class StreamedUsage:
    """Collects the usage in the events of one stream. Holds state: the figures so far.

    Chat completions report usage once, in the last chunk, and Responses in the event that completes the response. Anthropic
    reports it in two events, where the second may repeat or correct the figures of the first. Gemini reports it in every event.

    >>> usage = StreamedUsage()
    >>> usage.add({"type": "message_start", "message": {"usage": {"input_tokens": 900, "output_tokens": 1}}})
    >>> usage.add({"type": "message_delta", "usage": {"output_tokens": 40}})
    >>> usage.read()
    Usage(prompt_tokens=900, completion_tokens=40, cached_tokens=0, cache_write_tokens=0, reasoning_tokens=0)
    """

    def __init__(self) -> None:
        self._figures: dict[str, Any] = {}
        self._line = bytearray()

    def add(self, event: Any) -> None:
        """Take an event: a mapping, a client library's object, or bytes or text of server-sent events, cut anywhere."""
        if isinstance(event, str | bytes):
            self._add_bytes(event.encode() if isinstance(event, str) else event)
            return
        # Anthropic's first event has it in a message, the last one of Responses in a response
        holders = (event, member_of(event, "message"), member_of(event, "response"))
        names = ("usage", "usageMetadata", "usage_metadata")  # the last two are Gemini's
        for usage in (member_of(each, name) for each in holders for name in names):
            for name, value in (fields_of(usage) or {}).items():
                if value or name not in self._figures:
                    self._figures[name] = value

    def _add_bytes(self, data: bytes) -> None:
        for number, piece in enumerate(data.split(b"\n")):
            if number:
                self._end_line()
            if len(self._line) <= _LONGEST_LINE:
                self._line += piece

    def _end_line(self) -> None:
        line, self._line = bytes(self._line), bytearray()
        if line.startswith(b"data:") and b'"usage' in line and len(line) <= _LONGEST_LINE:
            self.add_json(line.removeprefix(b"data:"))

    def add_json(self, text: bytes) -> None:
        """Take the JSON text of an event or of a whole reply, or of a list of them; other texts are ignored."""
        with contextlib.suppress(ValueError, RecursionError):
            read = json.loads(text)
            for event in items_of(read) or (read,):
                if fields_of(event) is not None:
                    self.add(event)

    def read(self) -> Usage | None:
        """Return the usage at the end of the stream; ``None`` if nothing, or nothing about the request, was reported."""
        self._end_line()
        return Usage.read_or_none(self._figures)

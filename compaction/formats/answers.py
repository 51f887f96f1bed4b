"""The messages in a model's answer, whole or streamed, as the next request repeats them, and the usage that it reports.

Each function takes the JSON values of an answer: the one value of a whole answer, or all events of a stream. `StreamedUsage`
takes them one by one.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..json_data import member_of
from ..tokens import Usage
from .wire import fields_of, items_of


def chat_answer(values: Sequence[Any]) -> list[Any]:
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
        _append(call["function"], piece.get("function") or {})
    text = "".join([delta.get("content") or "" for delta in deltas])
    said = {"content": text} if text or not calls else {}
    return [{"role": "assistant", **said, **({"tool_calls": list(calls.values())} if calls else {})}]


def responses_answer(values: Sequence[Any]) -> list[Any]:
    """Return the items of a response of the Responses API; none if its stream did not complete."""
    ends = [value.get("response", value) for value in values if value.get("type") in (None, "response.completed")]
    return list(ends[-1]["output"]) if ends else []


def anthropic_answer(values: Sequence[Any]) -> list[Any]:
    """Return the message of an answer of Anthropic's API."""
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
                _append(block, {field: delta[field]})
    for block in blocks.values():
        if "partial_json" in block:
            block["input"] = json.loads(block.pop("partial_json") or "{}")
    return [{"role": "assistant", "content": [blocks[place] for place in sorted(blocks)]}]


def _append(texts: dict[str, Any], pieces: Mapping[str, str | None]) -> None:
    """Add pieces to the texts of these names."""
    for name, piece in pieces.items():
        texts[name] = texts.get(name, "") + (piece or "")


# ------------------------------------------------------------------------ usage

_HOLDERS: Final = ("message", "response")  # Anthropic's first event, and the last one of Responses
_LONGEST_LINE: Final = 4_194_304  # bytes; a longer one is skipped
_NAMES: Final = ("usage", "usageMetadata", "usage_metadata")  # the last two are Gemini's


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
        holders = (event, *(member_of(event, name) for name in _HOLDERS))
        for usage in (member_of(each, name) for each in holders for name in _NAMES):
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

"""The messages in a model's answer, whole or streamed, as the next request repeats them.

Each function takes the JSON values of an answer: the one value of a whole answer, or all events of a stream.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any


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

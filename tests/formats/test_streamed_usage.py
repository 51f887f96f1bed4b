"""The usage of a streamed reply, from events or bytes of any wire format."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from compaction.formats import StreamedUsage
from compaction.tokens import Usage

ANTHROPIC: list[Any] = [
    {"type": "message_start", "message": {"usage": {"input_tokens": 900, "cache_read_input_tokens": 0, "output_tokens": 1}}},
    {"type": "content_block_delta"},
    {"type": "message_delta", "usage": {"input_tokens": 0, "output_tokens": 40}},
]
STREAMS: dict[str, tuple[list[Any], Usage]] = {
    "chat": ([{"usage": None}, {"usage": {"prompt_tokens": 900, "completion_tokens": 40}}], Usage(900, 40)),
    "Responses": ([{"response": {"usage": {"input_tokens": 900, "output_tokens": 40}}}], Usage(900, 40)),
    "Anthropic": (ANTHROPIC, Usage(900, 40)),
    "Gemini": (
        [{"usageMetadata": {"promptTokenCount": 900, "candidatesTokenCount": each}} for each in (1, 40)],
        Usage(900, 40),
    ),
    "google-genai": ([{"usage_metadata": {"prompt_token_count": 900, "candidates_token_count": 40}}], Usage(900, 40)),
}


def told(*events: Any) -> Usage | None:
    usage = StreamedUsage()
    for event in events:
        usage.add(event)
    return usage.read()


@pytest.mark.parametrize("name", sorted(STREAMS))
def test_every_stream(name: str) -> None:
    """The figures of all events are merged, and a later zero does not replace a figure, from mappings, objects or lines."""
    events, expected = STREAMS[name]
    lines = [f"data: {json.dumps(event)}\n" for event in events]
    assert told(*events) == told(*(SimpleNamespace(**event) for event in events)) == told(*lines) == expected


@pytest.mark.parametrize("step", [1, 7, 10_000])
@pytest.mark.parametrize("kind", [bytes, str])
def test_bytes_cut_anywhere(step: int, kind: Any) -> None:
    """A line may arrive in pieces, the last one without its end. One that is not JSON, or is nested too deep, is skipped."""
    lines = [f"data:{json.dumps(event)}\n" for event in ANTHROPIC]
    odd = ['event: x "usage"\n', 'data: "usage" no JSON\n', 'data: {"usage": ' + "[" * 5_000 + "\n", "data: [DONE]\n"]
    data = "".join([*lines, *odd, 'data: {"usage": {"output_tokens": 99}}'])
    cut = [data[place : place + step] for place in range(0, len(data), step)]
    assert told(*cut if kind is str else map(str.encode, cut)) == Usage(900, 99)


def test_nothing_that_tells_the_request() -> None:
    """The usage is unknown if a reply has no figures, or none for the request."""
    assert told() is told({"usage": {}}) is told({"usage": {"prompt_tokens": 0, "completion_tokens": 5}}) is None

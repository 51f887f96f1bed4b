"""Usage is read from the bytes of an answer, however they are split."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.gateway.bodies import UsageReader

EVENTS = "text/event-stream; charset=utf-8"


def stream(*datas: str, end: str = "\n\n") -> bytes:
    """Return server-sent events with these data."""
    return "".join(f"event: e\ndata: {data}{end}" for data in datas).encode()


STREAMS: dict[str, tuple[bytes, int]] = {
    "chat": (stream('{"usage":null}', '{"usage":{"prompt_tokens":70,"completion_tokens":3}}', "[DONE]"), 70),
    "chat with carriage returns": (stream('{"usage":{"prompt_tokens":71,"completion_tokens":3}}', end="\r\n\r\n"), 71),
    "responses": (stream('{"response":{"usage":null}}', '{"response":{"usage":{"input_tokens":72,"output_tokens":1}}}'), 72),
    "anthropic": (
        stream('{"message":{"usage":{"input_tokens":3,"cache_read_input_tokens":70}}}', '{"usage":{"output_tokens":9}}'),
        73,
    ),
    "gemini": (stream(*['{"usageMetadata":{"promptTokenCount":74}}'] * 2, end="").replace(b"}event", b"}\r\n\r\nevent"), 74),
    "texts that mention usage": (
        stream('{"delta":"\\"usage\\": {"}', '{"usage"', '{"usage":{"input_tokens":77,"output_tokens":1}}'),
        77,
    ),
    "gemini as a list": (b'[{"usageMetadata":{"promptTokenCount":75}},\r\n{"candidates":[]}]', 75),
    "a body": (json.dumps({"usage": {"prompt_tokens": 76, "completion_tokens": 1}}, indent=2).encode(), 76),
}


@pytest.mark.parametrize("name", STREAMS)
@given(cuts=st.lists(st.integers(min_value=1, max_value=60), max_size=40))
def test_usage_is_read_however_the_stream_is_cut(name: str, cuts: list[int]) -> None:
    """The last figures are those that count."""
    data, tokens = STREAMS[name]
    reader = UsageReader(EVENTS if b"data:" in data else "application/json", "")
    for size in cuts:
        reader.feed(data[:size])
        data = data[size:]
    reader.feed(data)
    usage = reader.read()
    assert usage is not None
    assert usage.prompt_tokens == tokens


@pytest.mark.parametrize("kind", [EVENTS, "application/json", "text/html", ""])
@given(pieces=st.lists(st.binary(max_size=40), max_size=10))
def test_any_bytes_are_harmless(kind: str, pieces: list[bytes]) -> None:
    """Unreadable answers report nothing."""
    for encoding in ("", "gzip", "br"):
        reader = UsageReader(kind, encoding)
        for piece in pieces:
            reader.feed(piece)
        assert reader.read() is None


def test_a_compressed_stream_is_read() -> None:
    data, tokens = STREAMS["anthropic"]
    packed, reader = gzip.compress(data), UsageReader(EVENTS, "gzip")
    for at in range(len(packed)):
        reader.feed(packed[at : at + 1])
    usage = reader.read()
    assert usage is not None
    assert usage.prompt_tokens == tokens


USAGE = b'{"usage":{"prompt_tokens":7,"completion_tokens":1}}'


@pytest.mark.parametrize("more", [0, 1])
def test_what_is_too_long_is_skipped(more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A body or a line of exactly the limit is read, one byte more is not; the next line has the whole limit again."""
    for name in ("gateway.bodies._LONGEST_ANSWER", "formats.apis._LONGEST_LINE"):
        monkeypatch.setattr(f"compaction.{name}", 100)
    body, line = UsageReader("application/json", ""), UsageReader(EVENTS, "")
    for piece in (b" " * 40, USAGE.ljust(60 + more)):
        body.feed(piece)
    for size in (101, 100 + more):
        line.feed(b"data:" + USAGE.ljust(size - 5))
        line.feed(b"\n")
    line.feed(b"x" * 101)
    line.feed(b"data:" + (USAGE if more else b"") + b"\n")
    for reader in (body, line):
        assert (reader.read() is None) is bool(more)


@pytest.mark.parametrize(
    ("line", "is_read"),
    [
        (b"data:" + USAGE, True),
        (b"data: [7, " + USAGE + b"]", True),
        (b"junk:" + USAGE, False),
        (b"data: " + json.dumps(["data: " + USAGE.decode() + "\n", {"usage": None}]).encode(), False),
    ],
)
def test_only_data_are_read(line: bytes, is_read: bool) -> None:
    """A line of data may have a blank after its colon. Other fields, and texts that look like an event, are not read."""
    reader = UsageReader(EVENTS, "")
    reader.feed(line)
    assert (reader.read() is not None) is is_read

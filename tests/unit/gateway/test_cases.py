"""Saved cases of requests that were refused only after compaction."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.gateway.cases import masked, write_case
from compaction.gateway.upstream import UpstreamRefusal
from tests.support.gateways import ScriptedUpstream, answer, in_process, tool_chat

SECRET = "Zanzibar"
JSON = st.recursive(
    st.none() | st.integers() | st.just(SECRET), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
)


@given(value=JSON)
def test_no_text_is_left(value: Any) -> None:
    """Whatever field it is in; the shape stays."""
    found = masked(value)
    assert SECRET not in json.dumps(found)
    assert type(found) is type(value)


@given(name=st.sampled_from(["type", "role", "status"]))
def test_a_text_in_the_place_of_a_type_is_masked(name: str) -> None:
    """Only what looks like a name of the format is kept."""
    assert masked({name: f"Call {SECRET} now"}) == {name: "xxxx xxxxxxxx xxx"}
    assert masked({name: "tool_use", "camelCase": "tool_use"}) == {name: "tool_use", "camelCase": "xxxxxxxx"}
    assert masked({"a name": [True, 7, None]}) == {"xxxxxx": [True, 7, None]}


@pytest.mark.parametrize("name", ["input", "args", "arguments", "response", "json"])
def test_the_data_of_a_tool_has_no_types(name: str) -> None:
    """A field of a tool may have the name of a field of the format; its value is a text at any depth."""
    data = {"status": "pregnant", "people": [{"type": "divorced", "role": "witness"}]}
    hidden = {"status": "xxxxxxxx", "people": [{"type": "xxxxxxxx", "role": "xxxxxxx"}]}
    assert masked({"type": "tool_use", name: data, "role": "user"}) == {"type": "tool_use", name: hidden, "role": "user"}


def test_a_case_quotes_nothing(tmp_path: Path) -> None:
    """A saved case contains no text of the messages or of the upstream's error, and at most twenty cases are saved."""
    said = {"error": {"message": f"messages.1: tool_use id {SECRET} was found twice in Zürich"}}
    refusal, folder = UpstreamRefusal(400, json.dumps(said, ensure_ascii=False)), tmp_path / "new" / "cases"
    given = [{"role": "user", "content": f"Go to {SECRET}, Zürich", "id": SECRET}]
    paths = [write_case(folder, f"case-{place}", given=given, sent=given, beside={}, refusal=refusal) for place in range(25)]
    assert sum(path is not None for path in paths) == 20
    assert paths[0] is not None
    text = paths[0].read_text()
    assert SECRET not in text
    assert "tool_use id xxxxxxxx was found twice in xxxxxx" in text
    assert text.startswith('{\n "status": 400,\n')
    assert (paths[0].stat().st_mode & 0o777, folder.stat().st_mode & 0o777) == (0o600, 0o700)
    (folder / "case-0.json").unlink()
    path = write_case(folder, "case-0", given=given, sent=given, beside={}, refusal=UpstreamRefusal(400, "y" * 3_000))
    assert path is not None
    assert json.loads(path.read_text())["said"] == "y" * 2_000


@pytest.mark.parametrize("escape", [json.dumps, lambda text: text, lambda text: json.dumps(json.dumps(text))])
def test_a_quoted_word_is_masked_however_it_is_escaped(escape: Callable[[str], str], tmp_path: Path) -> None:
    """Neither a line break before a word nor escapes within it keep it readable, in the refusal or in the request."""
    given = [
        {"role": "user", "content": f"My name is\n{SECRET} C:\\new\\table 𠮷野"},
        {"arguments": json.dumps({"x": "\tZürich"})},
    ]
    for place, said in enumerate(
        ["unexpected: " + "\n".join([SECRET, "Zürich", "𠮷野", "C:\\new\\table"]), f"unexpected: {SECRET}"]
    ):
        path = write_case(tmp_path, f"{place}", given=given, sent=given, beside={}, refusal=UpstreamRefusal(400, escape(said)))
        assert path is not None
        found = json.loads(path.read_text())["said"]
        assert "unexpected" in found
        assert [word for word in (SECRET, "rich", "u00fc", "𠮷野", "ud842", "ew", "able") if word in found] == []


async def test_instructions_and_tools_that_a_refusal_quotes_are_masked(tmp_path: Path) -> None:
    """A case has no field besides the messages; of these, only the model's name may be in the refusal."""
    refused = answer(400, {"error": {"message": f"gpt-x: unsupported look_up {SECRET}"}})
    fields = {"model": "gpt-x", "instructions": SECRET, "tools": [{"type": "function", "function": {"name": "look_up"}}]}
    with ScriptedUpstream(refused, answer(200, {})) as upstream:
        async with in_process(upstream, cases=tmp_path) as client:
            await client.post("/v1/chat/completions", json={**fields, "messages": tool_chat(20)})
    (said,) = said_in(tmp_path)
    assert "gpt-x: unsupported xxxxxxx xxxxxxxx" in said


def said_in(folder: Path) -> list[str]:
    return [json.loads(path.read_text())["said"] for path in folder.iterdir()]


PACKED = gzip.compress(b'{"error": {"message": "prompt is too long: 1500 tokens > 900 maximum"}}')


@pytest.mark.parametrize(
    ("encoding", "body", "is_read"),
    [
        ("gzip", PACKED, True),
        ("gzip", gzip.compress(b" " * 2_000_000), False),
        ("gzip", b"not compressed", False),
        ("br", PACKED, False),
    ],
    ids=["readable", "a bomb", "damaged", "unknown"],
)
async def test_a_compressed_refusal_is_read_if_it_can_be(encoding: str, body: bytes, is_read: bool) -> None:
    """It is not unpacked beyond a limit; if it cannot be read, the client gets its bytes."""
    with ScriptedUpstream(answer(400, body, content_encoding=encoding), answer(200, {})) as upstream:
        async with (
            in_process(upstream, window=100_000) as client,
            client.stream("POST", "/v1/chat/completions", json={"model": "m", "messages": tool_chat(6)}) as reply,
        ):
            found = b"".join([piece async for piece in reply.aiter_raw()])
    assert (reply.status_code, found) == ((200, b"{}") if is_read else (400, body))
    assert len(upstream.got) == 1 + is_read

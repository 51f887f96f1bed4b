"""Reading Converse messages into parts, and writing changed parts with every other block unchanged."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from compaction import MessageIndex, compact_sync
from compaction.errors import InvalidMessage
from compaction.formats import bedrock
from compaction.messages import Message, OtherPart, TextPart
from compaction.selectors import nothing
from compaction.strategies import ClearMedia
from tests.formats.bedrock.examples import PNG, POINT, REDACTED

Raw = dict[str, Any]


def message(*blocks: Any, role: str = "user", **fields: Any) -> Message:
    """Return a read message with these blocks."""
    return bedrock.read({"role": role, "content": list(blocks), **fields})


def test_roles() -> None:
    """A message of results and cache points is a tool's; with any text it is the user's. A missing role is an error."""
    result: Raw = {"toolResult": {"toolUseId": "a", "content": []}}
    assert message(result).role == message(result, POINT).role == "tool"
    assert [message(*blocks).role for blocks in ([result, {"text": "hi"}], [POINT], [])] == ["user"] * 3
    with pytest.raises(InvalidMessage, match=r"messages\[2\].role"):
        bedrock.read({"content": []}, 2)


def test_what_the_provider_runs_is_no_call_of_the_callers() -> None:
    run: Raw = {"toolUse": {"toolUseId": "s", "name": "nova_grounding", "input": {}, "type": "server_tool_use"}}
    found: Raw = {"toolResult": {"toolUseId": "s", "content": [{"text": "a page"}], "type": "nova_grounding_result"}}
    read = message(run, found, {"text": "so"}, role="assistant")
    assert [type(part) for part in read.parts] == [OtherPart, OtherPart, TextPart]
    assert bedrock.message_problems(read.raw) == []


DOCUMENT: Raw = {"document": {"name": "plan", "format": "pdf", "source": {"bytes": b"%PDF"}}}


class TestBytes:
    """Binary data, which boto3 takes as bytes and JSON cannot hold."""

    def test_they_are_stored_as_text_and_read_back(self) -> None:
        text: Raw = {"image": {"format": "png", "source": {"bytes": "iVBO"}}}
        for block in (PNG, DOCUMENT, REDACTED, text, {"toolResult": {"toolUseId": "a", "content": [PNG]}}):
            raw = {"role": "user", "content": [block]}
            stored = json.loads(json.dumps(bedrock.to_wire(raw)))
            assert bedrock.from_wire(stored) == raw
        odd = {"bytes": {"$base64": "not base64!"}}
        assert bedrock.from_wire(odd) == odd

    def test_a_message_without_bytes_is_its_own_wire_form(self) -> None:
        raw = {"role": "user", "content": [{"text": "hi"}]}
        assert bedrock.to_wire(raw) is raw

    def test_an_index_with_bytes_is_saved(self) -> None:
        messages = [
            {"role": "user", "content": [{"text": "see"}, PNG, DOCUMENT]},
            {"role": "assistant", "content": [{"text": "a plan"}]},
            {"role": "user", "content": [{"text": "so?"}]},
        ]
        saved = json.loads(json.dumps(MessageIndex(messages, counter="chars/4").to_dict()))
        assert MessageIndex.from_dict(saved, counter="chars/4").messages() == messages
        done = compact_sync(messages, ClearMedia(keep=nothing), counter="chars/4")
        assert done.messages[0]["content"] == [{"text": "see"}, {"text": "[image removed]"}, {"text": "[file removed]"}]


@pytest.mark.parametrize(
    ("before", "after", "roles"),
    [
        (None, None, ["user"]),
        (None, "assistant", ["user"]),
        (None, "user", ["user", "assistant"]),
        ("user", None, ["assistant"]),
        ("user", "user", ["assistant"]),
        ("user", "assistant", ["assistant", "user"]),
        ("assistant", "user", ["user", "assistant"]),
        ("assistant", "assistant", ["user"]),
        ("system", "user", ["assistant"]),
        ("system", "assistant", ["assistant", "user"]),
        ("user", "system", ["assistant", "user"]),
    ],
)
def test_a_summary_keeps_the_turns(before: str | None, after: str | None, roles: list[str]) -> None:
    """A summary is one message where turns alternate with it, else two, the second of which completes the first."""
    first, last = (None if role is None else message({"text": "x"}, role=role) for role in (before, after))
    made = bedrock.summary("so far", first, last)
    assert [each.role for each in made] == roles
    line = [first, *made, last]
    assert all(bedrock.follows(*pair) for pair in pairwise(line))
    assert [each for each in line if each is not None and each.text == "so far"] == [made[0]]
    assert all(bedrock.completes_summary(each) for each in made[1:])
    assert not bedrock.completes_summary(made[0])


def test_a_note_in_place_of_calls_keeps_the_turns() -> None:
    note, word = bedrock.placeholder("look() -> noon")
    assert (note.role, note.text, word.role, bedrock.completes_summary(word)) == ("assistant", "look() -> noon", "user", True)

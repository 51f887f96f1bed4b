"""Reading Converse messages into parts, and writing changed parts with every other block unchanged."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import attrs
import pytest

from compaction import MessageIndex, compact_sync
from compaction.errors import ConfigurationError, InvalidMessage
from compaction.formats import bedrock
from compaction.messages import MediaPart, Message, OtherPart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from compaction.selectors import nothing
from compaction.strategies import ClearMedia

Raw = dict[str, Any]

POINT: Raw = {"cachePoint": {"type": "default"}}
PNG: Raw = {"image": {"format": "png", "source": {"bytes": b"\x89PNG\r\n"}}}
CITED: Raw = {"citationsContent": {"content": [{"text": "Grass"}, {"text": "is green."}], "citations": [{"title": "On grass"}]}}
ASKED: Raw = {"guardContent": {"text": {"text": "why?", "qualifiers": ["query"]}}}


def message(*blocks: Any, role: str = "user", **fields: Any) -> Message:
    """Return a read message with these blocks."""
    return bedrock.read({"role": role, "content": list(blocks), **fields})


def answered(*content: Any, **fields: Any) -> Message:
    """Return a read message with a tool result of this content."""
    return message({"toolResult": {"toolUseId": "a", "content": list(content), **fields}})


@pytest.mark.parametrize(
    ("role", "block", "part"),
    [
        ("user", {"text": "hi"}, TextPart("hi")),
        ("user", ASKED, TextPart("why?")),
        ("user", {"guardContent": {"image": PNG["image"]}}, MediaPart("image", size_bytes=8)),
        ("user", {"guardContent": {}}, OtherPart('{"guardContent": {}}')),
        ("user", PNG, MediaPart("image", size_bytes=8)),
        ("user", {"image": {"format": "png", "source": {"bytes": "iVBO"}}}, MediaPart("image", size_bytes=4)),
        ("user", {"video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://a"}}}}, MediaPart("video")),
        ("user", {"audio": {"format": "mp3", "source": {"bytes": b"abc"}}}, MediaPart("audio", size_bytes=4)),
        ("user", {"document": {"name": "a", "source": {"text": "words"}}}, MediaPart("file", size_bytes=5)),
        ("user", {"document": {"name": "a", "source": {"content": [{"text": "ab"}]}}}, MediaPart("file", size_bytes=2)),
        ("assistant", {"toolUse": {"toolUseId": "a", "name": "f", "input": {"q": 1}}}, ToolCallPart("a", "f", '{"q": 1}')),
        ("assistant", {"toolUse": {"name": "f"}}, ToolCallPart("", "f", "")),
        ("assistant", {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c"}}}, ReasoningPart("hm")),
        ("assistant", {"reasoningContent": {"redactedContent": b"x"}}, ReasoningPart("")),
        ("assistant", CITED, TextPart("Grass\nis green.")),
        ("assistant", {"citationsContent": {}}, OtherPart('{"citationsContent": {}}')),
        ("user", POINT, OtherPart("")),
        ("user", {"searchResult": {"source": "a"}}, OtherPart('{"searchResult": {"source": "a"}}')),
        ("user", {"hologram": {"beam": 1}}, OtherPart('{"hologram": {"beam": 1}}')),
        ("user", {"text": 5}, OtherPart('{"text": 5}')),
        ("user", {"text": "hi", "image": PNG}, OtherPart('{"text": "hi", "image": {"image": {"format": "png"')),
        ("user", "bare", TextPart("bare")),
        ("user", None, OtherPart("null")),
    ],
    ids=str,
)
def test_a_block_is_read_as_what_it_is(role: str, block: Any, part: Any) -> None:
    """Each block becomes one part of its kind that keeps the block; an unknown kind is kept whole."""
    [read] = message(block, role=role).parts
    assert type(read) is type(part)
    assert read == part or (isinstance(read, OtherPart) and read.text.startswith(part.text))
    assert read.raw is block


@pytest.mark.parametrize(
    ("content", "text", "media"),
    [
        ([{"text": "a"}, {"text": "b"}], "a\nb", 0),
        ([{"json": {"rows": [1]}}], '{"rows": [1]}', 0),
        ([{"text": "a"}, PNG], "a", 1),
        ([{"searchResult": {"title": "t"}}], '{"searchResult": {"title": "t"}}', 0),
        ([], "", 0),
    ],
    ids=str,
)
def test_a_result_is_read_with_its_text_and_media(content: list[Any], text: str, media: int) -> None:
    """The text and media of a tool result are read; data is read as its JSON text."""
    [result] = answered(*content).tool_results()
    assert (result.call_id, result.text, len(result.media)) == ("a", text, media)


def test_roles() -> None:
    """A message of results and cache points is a tool's; with any text it is the user's. A missing role is an error."""
    result: Raw = {"toolResult": {"toolUseId": "a", "content": []}}
    assert message(result).role == message(result, POINT).role == "tool"
    assert [message(*blocks).role for blocks in ([result, {"text": "hi"}], [POINT], [])] == ["user"] * 3
    with pytest.raises(InvalidMessage, match=r"messages\[2\].role"):
        bedrock.read({"content": []}, 2)


def test_what_the_provider_runs_is_no_call_of_the_callers() -> None:
    """A call and its result with a ``type`` are the provider's own: they are not tool calls, and may be in one answer."""
    run: Raw = {"toolUse": {"toolUseId": "s", "name": "nova_grounding", "input": {}, "type": "server_tool_use"}}
    found: Raw = {"toolResult": {"toolUseId": "s", "content": [{"text": "a page"}], "type": "nova_grounding_result"}}
    read = message(run, found, {"text": "so"}, role="assistant")
    assert [type(part) for part in read.parts] == [OtherPart, OtherPart, TextPart]
    assert bedrock.message_problems(read.raw) == []


class TestChanged:
    """Changed parts are written, and unchanged parts keep their original block."""

    def test_a_text(self) -> None:
        """A changed text leaves unknown fields and other blocks the same objects, and the original unchanged."""
        before = message({"text": "long"}, PNG, POINT, x_trace=7)
        after = before.evolve(text="short").raw
        assert after == {"role": "user", "content": [{"text": "short"}, PNG, POINT], "x_trace": 7}
        assert after["content"][1] is PNG
        assert before.raw["content"][0] == {"text": "long"}

    def test_what_a_guardrail_checks_is_checked_again(self) -> None:
        """A changed guarded text keeps its qualifiers; a changed cited text loses its citations."""
        assert message(ASKED).evolve(text="how?").raw["content"] == [
            {"guardContent": {"text": {"text": "how?", "qualifiers": ["query"]}}}
        ]
        assert message(CITED, role="assistant").evolve(text="green").raw["content"] == [{"text": "green"}]

    def test_a_call(self) -> None:
        """Changed arguments are written as an object; arguments that are not a JSON object raise an error."""
        before = message({"toolUse": {"toolUseId": "a", "name": "f", "input": {}, "x": 1}}, role="assistant")
        [call] = before.tool_calls()
        after = before.evolve(parts=[attrs.evolve(call, arguments='{"q": 2}')])
        assert after.raw["content"] == [{"toolUse": {"toolUseId": "a", "name": "f", "input": {"q": 2}, "x": 1}}]
        with pytest.raises(ConfigurationError, match="JSON object"):
            before.evolve(parts=[attrs.evolve(call, arguments="[]")])

    @pytest.mark.parametrize(
        ("content", "text", "written"),
        [
            ([{"text": "long"}, PNG], "short", [{"text": "short"}, PNG]),
            ([{"json": {"rows": []}}], "none", [{"text": "none"}]),
            ([PNG], "a picture", [{"text": "a picture"}, PNG]),
            ([{"text": "long"}], " ", []),
        ],
        ids=str,
    )
    def test_a_result(self, content: list[Any], text: str, written: list[Any]) -> None:
        """A changed result text replaces the old text; the status and pictures of the result are kept."""
        after = answered(*content, status="success").evolve(text=text)
        assert after.raw["content"] == [{"toolResult": {"toolUseId": "a", "content": written, "status": "success"}}]

    def test_a_result_without_its_picture(self) -> None:
        """The media of a tool result can be dropped, but new media raise an error."""
        [result] = answered({"text": "a"}, PNG).tool_results()
        dropped = answered({"text": "a"}, PNG).evolve(parts=[attrs.evolve(result, media=())])
        assert dropped.raw["content"][0]["toolResult"]["content"] == [{"text": "a"}]
        with pytest.raises(ConfigurationError, match="media can be kept or dropped"):
            answered().evolve(parts=[ToolResultPart("a", "b", (MediaPart("image", raw=PNG),))])

    @pytest.mark.parametrize("part", [MediaPart("image"), ReasoningPart("hm"), OtherPart("x")], ids=str)
    def test_what_cannot_be_made(self, part: Any) -> None:
        """Media, reasoning and unknown parts cannot be created: a ``ConfigurationError`` is raised."""
        with pytest.raises(ConfigurationError, match="can be created"):
            message({"text": "hi"}).evolve(parts=[part])

    def test_parts_made_anew(self) -> None:
        """New calls and results are written as complete blocks; blank texts are left out."""
        made = message({"text": "hi"}, role="assistant").evolve(parts=[TextPart(" "), ToolCallPart("b", "f", "")])
        assert made.raw["content"] == [{"toolUse": {"toolUseId": "b", "name": "f", "input": {}}}]
        result = message({"text": "hi"}).evolve(parts=[ToolResultPart("b", "noon")])
        assert result.raw["content"] == [{"toolResult": {"content": [{"text": "noon"}], "toolUseId": "b"}}]

    def test_cache_points_never_stand_where_the_api_refuses_them(self) -> None:
        """A cache point keeps its place, and is removed if nothing it could follow is left before it."""
        thought: Raw = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c"}}}
        before = message(thought, {"text": "so"}, POINT, {"text": "and"}, role="assistant")
        read = before.parts
        assert before.evolve(parts=read[1:]).raw["content"] == [{"text": "so"}, POINT, {"text": "and"}]
        assert before.evolve(parts=[read[0], *read[2:]]).raw["content"] == [thought, {"text": "and"}]
        assert before.evolve(parts=read[2:]).raw["content"] == [{"text": "and"}]


DOCUMENT: Raw = {"document": {"name": "plan", "format": "pdf", "source": {"bytes": b"%PDF"}}}
REDACTED: Raw = {"reasoningContent": {"redactedContent": b"\0\1"}}


class TestBytes:
    """Binary data, which boto3 takes as bytes and JSON cannot hold."""

    def test_they_are_stored_as_text_and_read_back(self) -> None:
        """A message with bytes is equal after storing and loading; base64 text stays text."""
        text: Raw = {"image": {"format": "png", "source": {"bytes": "iVBO"}}}
        for block in (PNG, DOCUMENT, REDACTED, text, {"toolResult": {"toolUseId": "a", "content": [PNG]}}):
            raw = {"role": "user", "content": [block]}
            stored = json.loads(json.dumps(bedrock.to_wire(raw)))
            assert bedrock.from_wire(stored) == raw
        odd = {"bytes": {"$base64": "not base64!"}}
        assert bedrock.from_wire(odd) == odd

    def test_a_message_without_bytes_is_its_own_wire_form(self) -> None:
        """A message without bytes is its own wire form, and is not copied."""
        raw = {"role": "user", "content": [{"text": "hi"}]}
        assert bedrock.to_wire(raw) is raw

    def test_an_index_with_bytes_is_saved(self) -> None:
        """An index with bytes can be saved as JSON and restored with equal messages."""
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
    """A note in place of calls is one assistant message and one user message, like the calls and results."""
    note, word = bedrock.placeholder("look() -> noon")
    assert (note.role, note.text, word.role, bedrock.completes_summary(word)) == ("assistant", "look() -> noon", "user", True)

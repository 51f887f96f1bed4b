"""Reading Anthropic messages into parts, and writing changed messages."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from compaction.errors import ConfigurationError, InvalidMessage
from compaction.formats import anthropic
from compaction.messages import MediaPart, OtherPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from tests.support.changes import with_changed, without

Raw = dict[str, Any]

WORDS: Raw = {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}, "citations": []}
IMAGE: Raw = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
PAPER: Raw = {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}}
THOUGHT: Raw = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
OPAQUE: Raw = {"type": "redacted_thinking", "data": "b3BhcXVl"}
CALL: Raw = {"type": "tool_use", "id": "a", "name": "now", "input": {"é": 1}, "x": 1}
RESULT: Raw = {"type": "tool_result", "tool_use_id": "a", "content": "noon", "is_error": True}
SEARCH: Raw = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
FOUND: Raw = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}


def user(*blocks: Any) -> Raw:
    """Return a user message with these blocks."""
    return {"role": "user", "content": list(blocks)}


def answer(*blocks: Any) -> Raw:
    """Return an assistant message with these blocks."""
    return {"role": "assistant", "content": list(blocks)}


@pytest.mark.parametrize(
    ("raw", "role", "parts"),
    [
        pytest.param({"role": "user", "content": "hi", "x": 1}, "user", [TextPart("hi")], id="string"),
        pytest.param({"role": "system", "content": [WORDS]}, "system", [TextPart("hi")], id="system"),
        pytest.param({"role": "user"}, "user", [], id="no content"),
        pytest.param({"role": "user", "content": []}, "user", [], id="empty list"),
        pytest.param({"role": "user", "content": WORDS}, "user", [TextPart("hi")], id="a lone block"),
        pytest.param(user("hi"), "user", [TextPart("hi")], id="bare string in a list"),
        pytest.param(
            user(WORDS, IMAGE, PAPER), "user", [TextPart("hi"), MediaPart("image", "", 4), MediaPart("file")], id="media"
        ),
        pytest.param(
            answer(THOUGHT, OPAQUE, WORDS, CALL),
            "assistant",
            [ReasoningPart("hm"), ReasoningPart(""), TextPart("hi"), ToolCallPart("a", "now", '{"é": 1}')],
            id="answer",
        ),
        pytest.param(user(RESULT), "tool", [ToolResultPart("a", "noon", failed=True)], id="results alone"),
        pytest.param(
            user(RESULT, WORDS), "user", [ToolResultPart("a", "noon", failed=True), TextPart("hi")], id="results and words"
        ),
        pytest.param(
            user({**RESULT, "content": [WORDS, IMAGE, {"type": "search_result", "title": "t"}]}),
            "tool",
            [ToolResultPart("a", 'hi\n{"type": "search_result", "title": "t"}', (MediaPart("image", "", 4),), failed=True)],
            id="nested content",
        ),
        pytest.param(user({"type": "tool_result"}), "tool", [ToolResultPart("", "")], id="a result that says nothing"),
        pytest.param(
            answer(SEARCH, FOUND), "assistant", [OtherPart(json.dumps(SEARCH)), OtherPart(json.dumps(FOUND))], id="hosted tool"
        ),
        pytest.param(
            answer({"type": "compaction", "content": None}),
            "assistant",
            [OtherPart('{"type": "compaction", "content": null}')],
            id="compaction block",
        ),
        pytest.param(
            user(None, 5, {"x": 1}), "user", [OtherPart("null"), OtherPart("5"), OtherPart('{"x": 1}')], id="no blocks"
        ),
        pytest.param(answer({"type": "tool_use"}), "assistant", [ToolCallPart("", "", "")], id="a call that says nothing"),
    ],
)
def test_what_is_read(raw: Raw, role: str, parts: list[Part]) -> None:
    """Each kind of block is read as its kind of part, unknown blocks are kept whole, and ``raw`` is the caller's object."""
    message = anthropic.read(raw)
    assert (message.role, list(message.parts)) == (role, parts)
    assert message.raw is raw


def test_an_answer_goes_on_after_a_hosted_tool() -> None:
    """An answer that starts with the result of a hosted tool called earlier continues the previous answer."""
    assert [anthropic.read(raw).continues for raw in (answer(FOUND, WORDS), answer(SEARCH, FOUND), user(RESULT))] == [
        True,
        False,
        False,
    ]


class Block(BaseModel):
    """A content block as an object with attributes, as in the provider's package."""

    type: str = "text"
    text: str = "hi"
    citations: list[str] | None = None


class Whole(BaseModel):
    """A response as an object with attributes."""

    id: str = "msg_1"
    role: str = "assistant"
    content: list[Block] = [Block()]
    stop_reason: str | None = None


def test_objects() -> None:
    """Messages and blocks may be pydantic objects; a changed copy and the wire form are dictionaries."""
    whole = Whole()
    message = anthropic.read(whole)
    assert message.parts == (TextPart("hi"),)
    assert message.raw is whole
    assert anthropic.read(answer(Block())).parts == (TextPart("hi"),)
    assert message.evolve(text="new").raw == {"id": "msg_1", **answer({"type": "text", "text": "new"})}
    assert anthropic.to_wire(whole) == {"id": "msg_1", **answer({"type": "text", "text": "hi"})}
    assert anthropic.to_wire(user(WORDS))["content"][0] is WORDS
    assert json.loads(json.dumps(anthropic.to_wire(answer(Block())))) == answer({"type": "text", "text": "hi"})


@pytest.mark.parametrize(
    ("raw", "where"),
    [("hi", "messages[3]"), (None, "messages[3]"), ({"content": "hi"}, "messages[3].role"), ({"role": []}, "messages[3].role")],
)
def test_what_is_no_message_is_refused(raw: Any, where: str) -> None:
    """A value that is not a message or has no role raises ``InvalidMessage``, and the error names its place."""
    with pytest.raises(InvalidMessage) as caught:
        anthropic.read(raw, 3)
    assert caught.value.where == where


@pytest.mark.parametrize(
    ("raw", "change", "changed"),
    [
        pytest.param(
            {"role": "user", "content": "hi", "x": 1},
            with_changed(TextPart, text="new"),
            {"role": "user", "content": "new", "x": 1},
            id="string",
        ),
        pytest.param(
            user(WORDS, IMAGE), with_changed(TextPart, text="new"), user({**WORDS, "text": "new"}, IMAGE), id="text block"
        ),
        pytest.param(user(WORDS, IMAGE), with_changed(TextPart, text=" "), user(IMAGE), id="words that would be empty"),
        pytest.param(user(WORDS, IMAGE), without(MediaPart), user(WORDS), id="image out"),
        pytest.param(answer(THOUGHT, WORDS, CALL), without(ReasoningPart), answer(WORDS, CALL), id="thoughts out"),
        pytest.param(answer(CALL), with_changed(ToolCallPart, arguments="{}"), answer({**CALL, "input": {}}), id="arguments"),
        pytest.param(
            answer(CALL),
            with_changed(ToolCallPart, id="b", name="date"),
            answer({**CALL, "id": "b", "name": "date"}),
            id="id and name",
        ),
        pytest.param(
            user(RESULT, WORDS),
            with_changed(ToolResultPart, text="new"),
            user({**RESULT, "content": "new"}, WORDS),
            id="result",
        ),
        pytest.param(
            user({**RESULT, "content": None}),
            with_changed(ToolResultPart, text="new"),
            user({**RESULT, "content": "new"}),
            id="null result",
        ),
        pytest.param(
            user({**RESULT, "content": [IMAGE, WORDS, WORDS]}),
            with_changed(ToolResultPart, text="new"),
            user({**RESULT, "content": [IMAGE, {**WORDS, "text": "new"}]}),
            id="nested result: the first words",
        ),
        pytest.param(
            user({**RESULT, "content": [WORDS, IMAGE]}),
            with_changed(ToolResultPart, text="new", media=()),
            user({**RESULT, "content": [{**WORDS, "text": "new"}]}),
            id="nested result: image out",
        ),
        pytest.param(
            user({**RESULT, "content": [IMAGE]}),
            with_changed(ToolResultPart, text="new"),
            user({**RESULT, "content": [{"type": "text", "text": "new"}, IMAGE]}),
            id="nested result without words",
        ),
        pytest.param(
            user({**RESULT, "content": [WORDS, IMAGE]}),
            with_changed(ToolResultPart, media=()),
            user({**RESULT, "content": [WORDS]}),
            id="only the image out",
        ),
        pytest.param(
            user(RESULT), with_changed(ToolResultPart, call_id="b"), user({**RESULT, "tool_use_id": "b"}), id="other call"
        ),
    ],
)
def test_changed_parts(raw: Raw, change: Callable[[Part], list[Part]], changed: Raw) -> None:
    """Changed and removed parts are written, every other field is kept, and the original message is not changed."""
    before = copy.deepcopy(raw)
    message = anthropic.read(raw)
    assert message.evolve(parts=[new for part in message.parts for new in change(part)]).raw == changed
    assert raw == before


def test_what_did_not_change_is_shared() -> None:
    """A changed copy shares its unchanged blocks with the original, so signed thinking keeps its bytes."""
    message = anthropic.read(answer(THOUGHT, OPAQUE, WORDS, CALL))
    evolved = message.evolve(text="new").raw["content"]
    assert [evolved[0] is THOUGHT, evolved[1] is OPAQUE, evolved[3] is CALL] == [True, True, True]


@pytest.mark.parametrize(
    ("raw", "parts"),
    [
        pytest.param(answer(THOUGHT), [ReasoningPart("other", raw=THOUGHT)], id="other thoughts"),
        pytest.param(answer(WORDS), [MediaPart("image")], id="new image"),
        pytest.param(answer(CALL), [ToolCallPart("a", "now", "[1]", raw=CALL)], id="arguments that are no object"),
        pytest.param(
            user(RESULT), [ToolResultPart("a", "noon", (MediaPart("image"),), raw=RESULT)], id="new image in a result"
        ),
    ],
)
def test_what_cannot_be_written_is_refused(raw: Raw, parts: list[Part]) -> None:
    """A ``ConfigurationError`` is raised for parts that cannot be written: new thinking, new media, invalid arguments."""
    with pytest.raises(ConfigurationError, match="parts: "):
        anthropic.read(raw).evolve(parts=parts)


def test_what_stands_for_others() -> None:
    """Summaries and placeholders are user messages; directly after a system message an assistant message comes first."""
    asked, said, told = (anthropic.new(role, "x") for role in ("user", "assistant", "system"))
    assert [each.role for each in anthropic.summary("s", asked, said)] == ["user"]
    assert [each.role for each in anthropic.summary("s", told, said)] == ["assistant", "user"]
    assert [each.role for each in anthropic.summary("s", told, asked)] == ["assistant", "user"]
    assert anthropic.placeholder("s")[0].role == "user"


def test_preferred_neighbours() -> None:
    """The format prefers a user message first, no two answers in a row, and instructions between user and answer."""
    asked, said, told = (anthropic.new(role, "x") for role in ("user", "assistant", "system"))
    allowed = [
        (None, asked),
        (None, told),
        (asked, said),
        (said, asked),
        (asked, asked),
        (told, said),
        (said, None),
        (asked, told),
    ]
    refused = [(None, said), (said, said), (told, asked), (said, told), (told, told)]
    assert [pair for pair in allowed if not anthropic.prefers(*pair)] == []
    assert [pair for pair in refused if anthropic.prefers(*pair)] == []


def test_ten_levels_and_ten_thousand_parts() -> None:
    """Deep nesting and 10,000 blocks in a message are read and validated without an error."""
    deep: Any = "x"
    for _ in range(10):
        deep = [{"type": "tool_result", "tool_use_id": "a", "content": deep}]
    assert anthropic.read({"role": "user", "content": deep}).role == "tool"
    deeper: Any = "x"
    for _ in range(5_000):
        deeper = [deeper]
    assert isinstance(anthropic.read(user({"type": "poll", "x": deeper})).parts[0], OtherPart)
    assert len(anthropic.read(user(*[WORDS] * 10_000)).parts) == 10_000
    assert {problem.rule for problem in anthropic.validate([user(*[WORDS] * 10_000)])} == {"too-many-breakpoints"}


def test_results_within_results_are_kept_however_deep() -> None:
    """A tool result nested in a tool result is not a block that the API accepts: it is kept unread at any depth."""
    nested: Any = {"type": "text", "text": "x"}
    for _ in range(2_000):
        nested = {"type": "tool_result", "tool_use_id": "a", "content": [nested]}
    raw = {"role": "user", "content": [nested]}
    assert [part.call_id for part in anthropic.read(raw).tool_results()] == ["a"]
    assert anthropic.repair([raw, {"role": "user", "content": "hi"}]).messages == [{"role": "user", "content": "hi"}]

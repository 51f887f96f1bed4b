"""pydantic-ai's messages as a wire format: every kind of part, and every change."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic_ai import messages as wire
from pydantic_ai.usage import RequestUsage

from compaction import MessageIndex
from compaction.errors import ConfigurationError, InvalidMessage
from compaction.index.keys import message_key
from compaction.integrations.pydantic_ai import pydantic_ai
from compaction.messages import MediaPart, OtherPart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from compaction.tokens import Usage

PNG = wire.BinaryContent(b"\x89PNG", media_type="image/png")
PICTURE = MediaPart("image", "", 4)
AGAIN = wire.RetryFeedbackPart("again", retry=wire.RetryInfo(cause="output-validation"))
LINK = wire.ImageUrl("https://example.com/a.png")
LOOK = wire.UserPromptPart(["look", PNG, LINK])
RULES = [wire.SystemPromptPart("rules"), wire.UserPromptPart("hi")]
ANSWER = [wire.ThinkingPart("hm", signature="s"), wire.TextPart("x"), wire.ToolCallPart("look_up", {"a": 1}, "c1")]
RESULTS = [wire.ToolReturnPart("look_up", "18", "c1"), wire.ToolReturnPart("b", [PNG], "c2")]
SEARCH = wire.NativeToolCallPart("web_search", {"q": "x"}, "n1")
MESSAGES: dict[str, tuple[Any, str, list[type]]] = {
    "system and user": (wire.ModelRequest(parts=RULES), "system", [TextPart, TextPart]),
    "user with media": (wire.ModelRequest(parts=[LOOK]), "user", [TextPart, MediaPart, MediaPart]),
    "answer": (wire.ModelResponse(parts=ANSWER), "assistant", [ReasoningPart, TextPart, ToolCallPart]),
    "results": (wire.ModelRequest(parts=RESULTS), "tool", [ToolResultPart, ToolResultPart]),
    "native": (wire.ModelResponse(parts=[SEARCH]), "assistant", [OtherPart]),
}


@pytest.mark.parametrize("kind", sorted(MESSAGES))
def test_every_part_is_kept_whole(kind: str) -> None:
    """Each part is read as its kind, written as the same object, and survives JSON."""
    raw, role, parts = MESSAGES[kind]
    message = pydantic_ai.read(raw)
    assert (message.role, [type(part) for part in message.parts]) == (role, parts)
    assert message.raw is raw
    restored = pydantic_ai.from_wire(json.loads(json.dumps(pydantic_ai.to_wire(raw))))
    assert pydantic_ai.to_wire(restored) == pydantic_ai.to_wire(raw)


@pytest.mark.parametrize(
    "raw",
    [
        MESSAGES["user with media"][0],
        wire.ModelRequest(parts=[wire.ToolReturnPart("b", [PNG, {"a": 1}], "c2", metadata={"seen": True})]),
        wire.ModelRequest(parts=[wire.ToolReturnPart("b", RequestUsage(input_tokens=1), "c2")]),
        MESSAGES["answer"][0],
    ],
    ids=["media", "results", "an object", "calls"],
)
def test_a_message_is_the_same_after_json(raw: Any) -> None:
    """A message that was stored and read again equals the original, for any return value of a tool."""
    restored = pydantic_ai.from_wire(pydantic_ai.to_wire(raw))
    assert pydantic_ai.key(restored) == pydantic_ai.key(raw)
    assert message_key(restored, pydantic_ai) == message_key(raw, pydantic_ai)


def test_what_makes_messages_differ() -> None:
    """Other bytes, addresses or texts make another message; a timestamp or metadata does not, because no model receives it."""

    def key(content: Any, **fields: Any) -> Any:
        return pydantic_ai.key(wire.ModelRequest(parts=[wire.ToolReturnPart("b", content, "c2", **fields)]))

    other = [wire.BinaryContent(b"GIF", media_type="image/gif"), wire.ImageUrl("https://example.com/b.png"), "18", {"a": 1}]
    assert [key(each) == key(PNG) for each in (PNG, *other)] == [True, False, False, False, False]
    assert key([PNG]) == key(PNG)
    assert key([LINK]) == key(LINK) != key(other[1])
    assert key("18", metadata={"seen": True}, timestamp=datetime(2026, 1, 1, tzinfo=UTC)) == key("18") != key("19")
    with pytest.raises(InvalidMessage):
        pydantic_ai.key("hi")


@pytest.mark.parametrize(
    ("part", "role", "read"),
    [
        (wire.SystemPromptPart("rules"), "system", [TextPart("rules")]),
        (wire.UserPromptPart(["see", wire.CachePoint(), PNG]), "user", [TextPart("see"), OtherPart(""), PICTURE]),
        (wire.UserPromptPart([wire.VideoUrl("https://example.com/a.mp4")]), "user", [MediaPart("video")]),
        (wire.UserPromptPart([wire.TextContent("hi")]), "user", [OtherPart]),
        (wire.ToolReturnPart("b", "18", "c2"), "tool", [ToolResultPart("c2", "18")]),
        (wire.ToolReturnPart("b", {"a": 1}, "c2"), "tool", [ToolResultPart("c2", '{"a": 1}')]),
        (wire.ToolReturnPart("b", None, "c2"), "tool", [ToolResultPart("c2", "")]),
        (wire.ToolReturnPart("b", ["x", PNG, {"a": 1}], "c2"), "tool", [ToolResultPart("c2", 'x\n{"a": 1}', (PICTURE,))]),
        (AGAIN, "user", [OtherPart(AGAIN.model_response())]),
    ],
)
def test_every_part_of_a_request(part: Any, role: str, read: list[Any]) -> None:
    """Texts, media with the size of their bytes, and results are read; anything else counts as JSON text."""
    message = pydantic_ai.read(wire.ModelRequest(parts=[part]))
    assert message.role == role
    assert len(message.parts) == len(read)
    for found, expected in zip(message.parts, read, strict=True):
        assert (found == expected) or (found.__class__ is expected and found.text)


@pytest.mark.filterwarnings("ignore:.*RetryPromptPart")
def test_what_a_model_must_repeat() -> None:
    """A request to repeat a call is its result; one without a call is a text."""
    call, answer = (wire.RetryPromptPart("wrong", tool_name=name, tool_call_id="c1") for name in ("look_up", None))
    result = pydantic_ai.read(wire.ModelRequest(parts=[call]))
    assert result.parts == (ToolResultPart("c1", call.model_response()),)
    assert result.evolve(text="short").raw.parts[0].content == "short"
    assert pydantic_ai.read(wire.ModelRequest(parts=[answer])).parts == (TextPart(answer.model_response()),)


def test_what_is_made() -> None:
    """New messages are requests or a response, with a timestamp that no clock gave; a result beside words is the user's."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    kinds = {"user": wire.UserPromptPart, "assistant": wire.TextPart}
    kinds |= dict.fromkeys(("system", "developer"), wire.SystemPromptPart)
    made = [pydantic_ai.new(role, "hi").raw for role in kinds]
    assert [type(raw.parts[0]) for raw in made] == list(kinds.values())
    assert [raw.parts[0].content for raw in made] == ["hi"] * 4
    assert {made[1].timestamp, *(raw.parts[0].timestamp for raw in made if raw is not made[1])} == {epoch}
    both = wire.ModelRequest(parts=[wire.ToolReturnPart("b", "18", "c2"), wire.UserPromptPart("and now?")])
    assert pydantic_ai.read(both).role == "user"


def test_reported_usage() -> None:
    usage = RequestUsage(input_tokens=900, output_tokens=5, cache_read_tokens=100, cache_write_tokens=20)
    response = wire.ModelResponse(parts=[wire.TextPart("x")], usage=usage)
    assert pydantic_ai.reported_usage(response) == Usage(900, 5, cached_tokens=100, cache_write_tokens=20)
    for raw in (wire.ModelRequest(parts=[]), object()):
        assert pydantic_ai.reported_usage(raw) is None


@pytest.mark.parametrize("raw", ["hi", SimpleNamespace(kind="request", parts=None), wire.UserPromptPart("hi")])
def test_what_is_no_message(raw: Any) -> None:
    with pytest.raises(InvalidMessage, match=r"messages\[0\].*all_messages"):
        pydantic_ai.read(raw)
    with pytest.raises(InvalidMessage, match=r"messages\[1\]"):
        MessageIndex([pydantic_ai.new("user", "hi").raw, raw], format=pydantic_ai, counter="chars/4")


def test_every_change() -> None:
    """The text of every kind of part can be changed. A dropped part is gone, and all others are the same objects."""
    answer = pydantic_ai.read(MESSAGES["answer"][0])
    thought, text, call = answer.parts
    thinner, other = ReasoningPart("h", thought.raw), ToolCallPart("c1", "look_up", "{}", call.raw)
    changed = answer.evolve(parts=[thinner, TextPart("y", text.raw), other]).raw
    assert [changed.parts[0].content, changed.parts[0].signature, changed.parts[1].content] == ["h", "s", "y"]
    assert (changed.parts[2].args, changed.parts[2].tool_call_id) == ("{}", "c1")
    assert answer.evolve(parts=[text]).raw.parts == [answer.raw.parts[1]]
    assert answer.evolve(parts=[*answer.parts, TextPart("z")]).raw.parts == [*answer.raw.parts, wire.TextPart("z")]
    asked = pydantic_ai.read(MESSAGES["user with media"][0])
    words, picture, link = asked.parts
    assert asked.evolve(parts=[TextPart("see", words.raw)]).raw.parts[0].content == "see"
    assert asked.evolve(parts=[picture]).raw.parts[0].content == [PNG]
    assert asked.evolve(parts=[words, link]).raw.parts[0].content == ["look", asked.raw.parts[0].content[2]]
    added = asked.evolve(parts=[*asked.parts, TextPart("z")]).raw.parts[1]
    assert (added.content, added.timestamp.year) == ("z", 1970)
    plain = pydantic_ai.read(wire.ModelRequest(parts=[wire.UserPromptPart("hi")]))
    assert plain.evolve(text="ho").raw.parts[0].content == "ho"
    results = pydantic_ai.read(wire.ModelRequest(parts=[wire.ToolReturnPart("b", ["x", PNG], "c2")]))
    shorter = results.evolve(text="short").raw.parts[0]
    assert (shorter.content, shorter.tool_call_id) == (["short", PNG], "c2")
    bare = pydantic_ai.read(wire.ModelRequest(parts=[wire.ToolReturnPart("b", PNG, "c2")]))
    assert bare.evolve(text="a picture").raw.parts[0].content == ["a picture", PNG]


@pytest.mark.parametrize(
    ("kind", "part", "told"),
    [
        ("native", lambda old: OtherPart("x", old.raw), "a builtin-tool-call part cannot be changed"),
        ("answer", lambda old: ToolResultPart("c1", "x", raw=old.raw), "a thinking part cannot be changed"),
        ("answer", lambda old: MediaPart("image"), "this format cannot write MediaPart"),
        ("results", lambda old: TextPart("x", old.raw), "a tool-return part cannot be changed"),
    ],
)
def test_changes_that_are_impossible(kind: str, part: Any, told: str) -> None:
    message = pydantic_ai.read(MESSAGES[kind][0])
    with pytest.raises(ConfigurationError, match=told):
        message.evolve(parts=[part(message.parts[0])])


def test_an_element_of_ones_own() -> None:
    """Something in a prompt that is none of the framework's classes counts as Python shows it."""
    prompt = SimpleNamespace(part_kind="user-prompt", content=["see", 7])
    message = pydantic_ai.read(SimpleNamespace(kind="request", parts=[prompt]))
    assert message.parts == (TextPart("see"), OtherPart("7"))

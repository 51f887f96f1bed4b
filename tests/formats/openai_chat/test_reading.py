"""Reading chat-completions messages into parts, and writing changed messages."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Literal

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessage, ChatCompletionMessageFunctionToolCall
from openai.types.chat.chat_completion_message import FunctionCall
from openai.types.chat.chat_completion_message_function_tool_call import Function
from pydantic import BaseModel

from compaction.errors import ConfigurationError, InvalidMessage
from compaction.formats import openai_chat
from compaction.messages import MediaPart, OtherPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from tests.support.changes import with_changed, without

Raw = dict[str, Any]

CALL: Raw = {"id": "a", "type": "function", "function": {"name": "now", "arguments": "{}"}, "x": 1}
CUSTOM: Raw = {"id": "b", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
ASKED: Raw = {"role": "assistant", "content": None, "tool_calls": [CALL, CUSTOM]}
IMAGE: Raw = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}}
WORDS: Raw = {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}
RESULT: Raw = {"role": "tool", "tool_call_id": "a", "content": "noon", "name": "now"}
LEGACY: Raw = {"role": "assistant", "content": None, "function_call": {"name": "now", "arguments": "{}", "x": 1}}


def user(content: Any) -> Raw:
    """Return a user message."""
    return {"role": "user", "content": content}


def assistant(**fields: Any) -> Raw:
    """Return an assistant message."""
    return {"role": "assistant", **fields}


@pytest.mark.parametrize("role", ["developer", "system", "user", "assistant", "critic"])
def test_a_plain_message(role: str) -> None:
    """Role, text and name are read; ``raw`` is the caller's object, including unknown fields."""
    raw = {"role": role, "content": "hi", "name": "Ann", "x_trace": 7}
    for fields in (raw, {"role": role, "content": "hi", "name": "Ann"}):
        message = openai_chat.read(fields)
        assert (message.role, message.name, message.text, message.parts) == (role, "Ann", "hi", (TextPart("hi"),))
        assert message.raw is fields


@pytest.mark.parametrize(
    ("raw", "parts"),
    [
        pytest.param(user(""), [TextPart("")], id="empty string"),
        pytest.param(user(None), [], id="null"),
        pytest.param({"role": "user"}, [], id="missing"),
        pytest.param(user([]), [], id="empty list"),
        pytest.param(user([WORDS, IMAGE]), [TextPart("hi"), MediaPart("image", "low", 26)], id="text and image"),
        pytest.param(user(("hi", WORDS)), [TextPart("hi"), TextPart("hi")], id="bare strings, in a tuple"),
        pytest.param(user(WORDS), [TextPart("hi")], id="a lone part"),
        pytest.param(user(5), [OtherPart("5")], id="number"),
        pytest.param(user({"a": [1]}), [OtherPart('{"a": [1]}')], id="object"),
        pytest.param(user([None, 5]), [OtherPart("null"), OtherPart("5")], id="elements that are no parts"),
        pytest.param(user([{"type": "text"}]), [OtherPart('{"type": "text"}')], id="text without words"),
        pytest.param(user([{"type": "poll", "é": 1}]), [OtherPart('{"type": "poll", "é": 1}')], id="unknown type"),
        pytest.param(user([{"type": ["text"]}]), [OtherPart('{"type": ["text"]}')], id="type that is a list"),
        pytest.param(user({(1, 2): {3}}), [OtherPart("{(1, 2): {3}}")], id="what JSON cannot say"),
        pytest.param({"role": "user", "content": "hi", "tool_calls": None, "name": None}, [TextPart("hi")], id="null fields"),
        pytest.param(assistant(content=[{"type": "refusal", "refusal": "no"}]), [TextPart("no")], id="refusal part"),
        pytest.param(assistant(content=None, refusal="no"), [TextPart("no")], id="refusal field"),
        pytest.param(assistant(content="hi", refusal="", audio=None), [TextPart("hi")], id="empty fields"),
        pytest.param(
            assistant(content="hi", function_call={"name": "", "arguments": ""}, audio={"id": "", "data": "", "expires_at": 0}),
            [TextPart("hi")],
            id="fields whose objects say nothing",
        ),
        pytest.param(assistant(content=None, audio={"id": "x", "data": "AAAA"}), [MediaPart("audio", "", 4)], id="audio field"),
    ],
)
def test_content(raw: Raw, parts: list[Part]) -> None:
    """String, list and null contents are read part by part; unknown elements are kept whole."""
    assert list(openai_chat.read(raw).parts) == parts


@pytest.mark.parametrize(
    ("part", "media"),
    [
        ({"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}, MediaPart("image")),
        ({"type": "image_url", "image_url": "data:image/png;base64,AA"}, MediaPart("image", size_bytes=24)),
        ({"type": "image_url", "image_url": None}, MediaPart("image")),
        ({"type": "image", "image": "data:image/png;base64,AA"}, MediaPart("image", size_bytes=24)),
        ({"type": "image", "source": {"type": "base64", "data": "AAAA"}}, MediaPart("image", size_bytes=4)),
        ({"type": "input_audio", "input_audio": {"data": "AAAAAA", "format": "wav"}}, MediaPart("audio", size_bytes=6)),
        ({"type": "video_url", "video_url": {"url": "https://example.org/cat.webm"}}, MediaPart("video")),
        ({"type": "file", "file": {"file_id": "file-1"}}, MediaPart("file")),
        (
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,AA", "filename": "a.pdf"}},
            MediaPart("file", "", 30),
        ),
        ({"type": "file", "file": {"file_data": "https://example.org/a.pdf"}}, MediaPart("file")),
        ({"type": "document_url", "document_url": "https://example.org/a.pdf"}, MediaPart("file")),
    ],
)
def test_media(part: Raw, media: MediaPart) -> None:
    """The kind and detail of media are read, and the number of bytes in the message itself: zero for an address."""
    assert openai_chat.read(user([part])).parts == (media,)


@pytest.mark.parametrize(
    ("fields", "thought"),
    [
        ({"reasoning": "hm"}, "hm"),
        ({"reasoning_content": "hm"}, "hm"),
        ({"thinking": "hm"}, "hm"),
        ({"reasoning_details": [{"text": "hm"}, {"summary": "so"}, {"data": "opaque"}, 5]}, "hm\nso"),
        ({"thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "x"}]}, "hm"),
        ({"reasoning": {"effort": "low"}}, '{"effort": "low"}'),
        ({"content": [{"type": "thinking", "thinking": "hm"}]}, "hm"),
        ({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}, "hm"),
        ({"content": [{"type": "reasoning", "text": "hm"}]}, "hm"),
    ],
)
def test_reasoning(fields: Raw, thought: str) -> None:
    """Reasoning is read from each field and part in which servers send it, and is not part of the message's text."""
    message = openai_chat.read(assistant(**fields))
    assert message.parts == (ReasoningPart(thought),)
    assert message.text == ""


def test_order_of_parts() -> None:
    """Parts come in this order: reasoning, content, other fields such as a refusal, then calls."""
    raw = {**ASKED, "content": "hi", "reasoning": "hm", "refusal": "no", "function_call": LEGACY["function_call"]}
    assert openai_chat.read(raw).parts == (
        ReasoningPart("hm"),
        TextPart("hi"),
        TextPart("no"),
        ToolCallPart("a", "now", "{}"),
        ToolCallPart("b", "sql", "select 1"),
        ToolCallPart("function:now", "now", "{}"),
    )


@pytest.mark.parametrize(
    ("calls", "parts"),
    [
        pytest.param([], [], id="empty"),
        pytest.param((CALL,), [ToolCallPart("a", "now", "{}")], id="tuple"),
        pytest.param([{**CALL, "type": None}], [ToolCallPart("a", "now", "{}")], id="no type"),
        pytest.param([{"function": {"name": "now"}}], [ToolCallPart("", "now", "")], id="neither id nor arguments"),
        pytest.param(
            [{**CALL, "function": {"arguments": {"a": 1}}}], [ToolCallPart("a", "", '{"a": 1}')], id="arguments object"
        ),
        pytest.param([{"id": "a"}, "now"], [OtherPart('{"id": "a"}'), OtherPart("now")], id="no body"),
        pytest.param("now", [OtherPart("now")], id="no list"),
    ],
)
def test_calls(calls: Any, parts: list[Part]) -> None:
    """Calls are read as far as possible; a malformed call is kept whole."""
    assert list(openai_chat.read(assistant(content=None, tool_calls=calls)).parts) == parts


@pytest.mark.parametrize(
    ("raw", "result"),
    [
        pytest.param(RESULT, ToolResultPart("a", "noon"), id="string"),
        pytest.param({"role": "tool", "content": "noon"}, ToolResultPart("", "noon"), id="no id"),
        pytest.param({**RESULT, "content": None}, ToolResultPart("a", ""), id="null"),
        pytest.param({**RESULT, "content": [WORDS, WORDS]}, ToolResultPart("a", "hi\nhi"), id="parts"),
        pytest.param(
            {**RESULT, "content": [WORDS, IMAGE]}, ToolResultPart("a", "hi", (MediaPart("image", "low", 26),)), id="image"
        ),
        pytest.param({**RESULT, "content": {"hour": 12}}, ToolResultPart("a", '{"hour": 12}'), id="object"),
        pytest.param(
            {"role": "function", "name": "now", "content": "noon"}, ToolResultPart("function:now", "noon"), id="legacy"
        ),
        pytest.param({"role": "function", "content": "noon"}, ToolResultPart("function:", "noon"), id="legacy, nameless"),
    ],
)
def test_results(raw: Raw, result: ToolResultPart) -> None:
    """A tool or function message is read as one result, whatever its content is."""
    assert openai_chat.read(raw).parts == (result,)


def test_a_legacy_result_names_its_call() -> None:
    """The result of a ``function_call`` has the same id as that call."""
    [call] = openai_chat.read(LEGACY).tool_calls()
    [result] = openai_chat.read({"role": "function", "name": "now", "content": "noon"}).tool_results()
    assert result.call_id == call.id


class Question(BaseModel):
    """A caller's message class, with defaults."""

    role: Literal["user"] = "user"
    content: str
    name: str | None = None


def test_objects() -> None:
    """Messages, calls and bodies may be pydantic objects; default values are read, and unset optional fields are not."""
    function = Function(name="now", arguments="{}")
    call = ChatCompletionMessageFunctionToolCall(id="a", type="function", function=function)
    whole = ChatCompletionMessage(role="assistant", content=None, tool_calls=[call])
    legacy = ChatCompletionMessage(role="assistant", function_call=FunctionCall(name="now", arguments="{}"))
    expected = (ToolCallPart("a", "now", "{}"),)
    assert openai_chat.read(whole).parts == expected
    assert openai_chat.read(whole).raw is whole
    assert openai_chat.read(assistant(tool_calls=[call])).parts == expected
    assert openai_chat.read(assistant(tool_calls=[{"id": "a", "function": function}])).parts == expected
    assert openai_chat.read(legacy).parts == (ToolCallPart("function:now", "now", "{}"),)
    assert openai_chat.read(Question(content="hi")).parts == (TextPart("hi"),)
    assert openai_chat.read(MappingProxyType(user("hi"))).parts == (TextPart("hi"),)


@pytest.mark.parametrize(
    ("raw", "where"),
    [
        ("hi", "messages[3]"),
        (None, "messages[3]"),
        ([("role", "user")], "messages[3]"),
        (Question, "messages[3]"),
        ({"content": "hi"}, "messages[3].role"),
        ({"role": "", "content": "hi"}, "messages[3].role"),
        ({"role": ["user"], "content": "hi"}, "messages[3].role"),
    ],
)
def test_what_is_no_message_is_refused(raw: Any, where: str) -> None:
    """A value that is not a message or has no role raises ``InvalidMessage``, and the error names its place."""
    with pytest.raises(InvalidMessage) as caught:
        openai_chat.read(raw, 3)
    assert caught.value.where == where


def test_new() -> None:
    """A new message has the given role and text and no other field."""
    assert openai_chat.new("user", "hi").raw == user("hi")


@pytest.mark.parametrize(
    ("raw", "changed"),
    [
        pytest.param({**user("hi"), "x": 1}, {**user("new"), "x": 1}, id="string"),
        pytest.param(user(None), user("new"), id="null"),
        pytest.param(user([WORDS, IMAGE, WORDS]), user([{**WORDS, "text": "new"}, IMAGE]), id="parts: the first words"),
        pytest.param(user(["hi", IMAGE]), user(["new", IMAGE]), id="bare string in a list"),
        pytest.param(user([IMAGE]), user([IMAGE, {"type": "text", "text": "new"}]), id="image alone"),
        pytest.param(user(WORDS), user("new"), id="a lone part"),
        pytest.param(user([{"type": "poll"}]), user([{"type": "poll"}, {"type": "text", "text": "new"}]), id="unknown part"),
        pytest.param(ASKED, {**ASKED, "content": "new"}, id="calls alone"),
        pytest.param({**ASKED, "content": ""}, {**ASKED, "content": "new"}, id="calls and an empty content"),
        pytest.param(assistant(content="hi", refusal="no"), assistant(content="new"), id="content before refusal"),
        pytest.param(assistant(content=None, refusal="no"), assistant(content=None, refusal="new"), id="refusal alone"),
        pytest.param(assistant(reasoning="hm"), assistant(reasoning="hm", content="new"), id="reasoning alone"),
        pytest.param(RESULT, {**RESULT, "content": "new"}, id="result"),
        pytest.param({**RESULT, "content": None}, {**RESULT, "content": "new"}, id="null result"),
        pytest.param(
            {**RESULT, "content": [IMAGE, WORDS, WORDS]},
            {**RESULT, "content": [IMAGE, {**WORDS, "text": "new"}]},
            id="result of parts",
        ),
        pytest.param(
            {**RESULT, "content": (IMAGE,)},
            {**RESULT, "content": [{"type": "text", "text": "new"}, IMAGE]},
            id="result without words",
        ),
        pytest.param(
            {"role": "function", "name": "now", "content": "noon"},
            {"role": "function", "name": "now", "content": "new"},
            id="legacy result",
        ),
    ],
)
def test_new_words(raw: Raw, changed: Raw) -> None:
    """New text replaces the first text and removes later texts; everything else and the original message are unchanged."""
    before = copy.deepcopy(raw)
    message = openai_chat.read(raw).evolve(text="new")
    assert message.raw == changed
    assert message.text == "new"
    assert raw == before


OPAQUE: Raw = {"type": "reasoning.encrypted", "data": "x"}


@pytest.mark.parametrize(
    ("raw", "change", "changed"),
    [
        pytest.param(user([WORDS, IMAGE]), without(MediaPart), user([WORDS]), id="image out of a list"),
        pytest.param(user([IMAGE]), without(MediaPart), user(""), id="nothing left of a list"),
        pytest.param(user("hi"), without(TextPart), user(""), id="nothing left of a string"),
        pytest.param(user({"a": 1}), without(OtherPart), user(""), id="nothing left of an object"),
        pytest.param(
            assistant(content="hi", reasoning="hm"), without(ReasoningPart), assistant(content="hi"), id="thoughts out"
        ),
        pytest.param(
            assistant(content="hi", reasoning="hm"),
            with_changed(ReasoningPart, text="h"),
            assistant(content="hi", reasoning="h"),
            id="shorter thoughts",
        ),
        pytest.param(
            assistant(content="hi", reasoning_details=[OPAQUE]),
            without(ReasoningPart),
            assistant(content="hi"),
            id="opaque thoughts",
        ),
        pytest.param(
            assistant(content=[{"type": "thinking", "thinking": "hm", "signature": "x"}, WORDS]),
            with_changed(ReasoningPart, text="h"),
            assistant(content=[{"type": "thinking", "thinking": "h", "signature": "x"}, WORDS]),
            id="shorter thoughts in a part",
        ),
        pytest.param(
            assistant(content="hi", audio={"id": "x"}), without(MediaPart), assistant(content="hi"), id="audio field out"
        ),
        pytest.param(
            ASKED,
            with_changed(ToolCallPart, arguments="[]"),
            {
                **ASKED,
                "tool_calls": [
                    {**CALL, "function": {"name": "now", "arguments": "[]"}},
                    {**CUSTOM, "custom": {"name": "sql", "input": "[]"}},
                ],
            },
            id="other arguments",
        ),
        pytest.param(
            {**ASKED, "tool_calls": [CALL]},
            with_changed(ToolCallPart, id="c", name="date"),
            {**ASKED, "tool_calls": [{**CALL, "id": "c", "function": {"name": "date", "arguments": "{}"}}]},
            id="other id and name",
        ),
        pytest.param({**ASKED, "content": "hi"}, without(ToolCallPart), assistant(content="hi"), id="calls out"),
        pytest.param({**LEGACY, "content": "hi"}, without(ToolCallPart), assistant(content="hi"), id="legacy call out"),
        pytest.param(
            LEGACY,
            with_changed(ToolCallPart, arguments="[]"),
            {**LEGACY, "function_call": {"name": "now", "arguments": "[]", "x": 1}},
            id="other legacy arguments",
        ),
        pytest.param(
            {**LEGACY, "tool_calls": [CALL]},
            lambda part: [attrs.evolve(part, arguments="[]") if part == ToolCallPart("a", "now", "{}") else part],
            {**LEGACY, "tool_calls": [{**CALL, "function": {"name": "now", "arguments": "[]"}}]},
            id="other arguments, the same legacy call",
        ),
        pytest.param(
            {**LEGACY, "tool_calls": "later"},
            with_changed(ToolCallPart, arguments="[]"),
            {**LEGACY, "tool_calls": "later", "function_call": {"name": "now", "arguments": "[]", "x": 1}},
            id="other legacy arguments beside calls that are no list",
        ),
        pytest.param(
            {**ASKED, "tool_calls": ["now", CALL]},
            with_changed(ToolCallPart, arguments="[]"),
            {**ASKED, "tool_calls": ["now", {**CALL, "function": {"name": "now", "arguments": "[]"}}]},
            id="a malformed call stays",
        ),
        pytest.param(
            {**ASKED, "tool_calls": ["now", CALL]},
            without(OtherPart),
            {**ASKED, "tool_calls": [CALL]},
            id="a malformed call out",
        ),
        pytest.param(
            assistant(content="hi", tool_calls="now"),
            without(OtherPart),
            assistant(content="hi"),
            id="calls that are no list, out",
        ),
        pytest.param(RESULT, with_changed(ToolResultPart, call_id="b"), {**RESULT, "tool_call_id": "b"}, id="other call"),
        pytest.param(
            {**RESULT, "content": [WORDS, IMAGE, WORDS]},
            with_changed(ToolResultPart, media=()),
            {**RESULT, "content": [WORDS, WORDS]},
            id="image out of a result",
        ),
        pytest.param(
            {**RESULT, "content": [WORDS, IMAGE]},
            with_changed(ToolResultPart, text=""),
            {**RESULT, "content": [IMAGE]},
            id="words out of a result",
        ),
        pytest.param(
            {**RESULT, "content": IMAGE},
            with_changed(ToolResultPart, text="hi"),
            {**RESULT, "content": [{"type": "text", "text": "hi"}, IMAGE]},
            id="words to a lone image",
        ),
    ],
)
def test_changed_parts(raw: Raw, change: Callable[[Part], list[Part]], changed: Raw) -> None:
    """Changed and removed parts are written, other fields are kept, and the new message reads as the new parts."""
    message = openai_chat.read(raw)
    evolved = message.evolve(parts=[new for part in message.parts for new in change(part)])
    assert evolved.raw == changed
    assert openai_chat.read(evolved.raw).parts == evolved.parts


def test_new_calls() -> None:
    """A new call can be added to existing calls, and to a message without calls."""
    new = ToolCallPart("c", "date", "{}")
    wire = {"id": "c", "type": "function", "function": {"name": "date", "arguments": "{}"}}
    assert openai_chat.read(assistant(content=None)).evolve(parts=[new]).raw == assistant(content=None, tool_calls=[wire])
    asked = openai_chat.read(ASKED)
    assert asked.evolve(parts=[*asked.parts, new]).raw == {**ASKED, "tool_calls": [CALL, CUSTOM, wire]}


def test_what_did_not_change_is_shared() -> None:
    """A changed copy shares its unchanged parts, calls and fields with the original."""
    raw = {**ASKED, "content": [WORDS, IMAGE], "x": {"y": 1}}
    message = openai_chat.read(raw)
    changed = [attrs.evolve(part, arguments="[]") if part == ToolCallPart("a", "now", "{}") else part for part in message.parts]
    evolved = message.evolve(parts=changed).raw
    assert evolved["tool_calls"][1] is CUSTOM
    assert evolved["content"] is raw["content"]
    assert evolved["x"] is raw["x"]
    assert message.evolve(text="new").raw["content"][1] is IMAGE


def test_changing_an_object_gives_a_dictionary() -> None:
    """A changed copy of an object is a dictionary; calls that did not change are the same objects in it."""
    call = ChatCompletionMessageFunctionToolCall(id="a", type="function", function=Function(name="now", arguments="{}"))
    whole = ChatCompletionMessage(role="assistant", content="hi", tool_calls=[call])
    assert openai_chat.read(whole).evolve(text="new").raw == assistant(content="new", tool_calls=[call.model_dump()])
    message = openai_chat.read(assistant(content="hi", tool_calls=[call, CALL]))
    changed = message.evolve(parts=[*message.parts[:2], attrs.evolve(message.parts[2], arguments="[]")])
    assert changed.raw["tool_calls"][0] is call
    assert changed.raw["tool_calls"][1]["function"]["arguments"] == "[]"


@pytest.mark.parametrize(
    ("raw", "parts"),
    [
        pytest.param(RESULT, [], id="result dropped"),
        pytest.param(RESULT, [TextPart("hi")], id="words for a result"),
        pytest.param(RESULT, [ToolResultPart("a", "noon", (MediaPart("image"),))], id="new image in a result"),
        pytest.param(user("hi"), [MediaPart("image")], id="new image"),
        pytest.param(assistant(content="hi"), [ReasoningPart("hm")], id="new thoughts"),
        pytest.param(user("hi"), [OtherPart("{}")], id="new unknown part"),
    ],
)
def test_what_cannot_be_written_is_refused(raw: Raw, parts: list[Part]) -> None:
    """Only texts and calls can be created: any other new part raises a ``ConfigurationError``."""
    with pytest.raises(ConfigurationError, match="parts: "):
        openai_chat.read(raw).evolve(parts=parts)


def test_opaque_thoughts_cannot_be_reworded() -> None:
    """The text of a reasoning field that is not plain text cannot be changed: a ``ConfigurationError`` is raised."""
    message = openai_chat.read(assistant(reasoning_details=[{"type": "reasoning.text", "text": "hm", "signature": "x"}]))
    with pytest.raises(ConfigurationError, match="'reasoning_details' is not plain text"):
        message.evolve(parts=[attrs.evolve(message.parts[0], text="h")])


def test_to_wire() -> None:
    """``to_wire`` turns objects at every level into dictionaries, and returns a plain message as the same object."""
    call = ChatCompletionMessageFunctionToolCall(id="a", type="function", function=Function(name="now", arguments="{}"))
    wire = {"id": "a", "type": "function", "function": {"name": "now", "arguments": "{}"}}
    whole = ChatCompletionMessage(role="assistant", content=None, tool_calls=[call])
    assert openai_chat.to_wire(whole) == assistant(content=None, tool_calls=[wire])
    assert openai_chat.to_wire(assistant(tool_calls=(call,))) == assistant(tool_calls=[wire])
    assert openai_chat.to_wire(MappingProxyType(user("hi"))) == user("hi")
    assert openai_chat.to_wire(ASKED) is ASKED
    assert openai_chat.to_wire({**ASKED, "x": b"raw"}) == {**ASKED, "x": b"raw"}
    assert openai_chat.from_wire(json.loads(json.dumps(openai_chat.to_wire(whole)))) == openai_chat.to_wire(whole)


WIRE_TEXT = st.text(alphabet="ab é\n", max_size=4)
WIRE_PARTS = st.sampled_from([WORDS, IMAGE, "hi", {"type": "thinking", "thinking": "hm"}, {"type": "poll"}, None, 5])
CONTENTS = st.none() | WIRE_TEXT | st.lists(WIRE_PARTS, max_size=4) | st.sampled_from([5, {"a": 1}, WORDS])
ENTRIES = st.sampled_from([CALL, CUSTOM, {"id": "c"}, "now", {"function": {"name": "now", "arguments": {}}}])
WIRE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "function", "system"])},
    optional={
        "content": CONTENTS,
        "tool_calls": st.lists(ENTRIES, max_size=3) | st.sampled_from([None, "now", 0, {}]),
        "function_call": st.sampled_from([None, "now", {"name": "now", "arguments": {"a": 1}}, {"name": "", "arguments": ""}]),
        "reasoning": WIRE_TEXT,
        "reasoning_details": st.just([OPAQUE]),
        "refusal": WIRE_TEXT,
        "audio": st.sampled_from([None, {"id": "x", "data": "AA"}, {"id": ""}, "x"]),
        "name": WIRE_TEXT,
        "tool_call_id": WIRE_TEXT | st.just(5),
        "x": st.integers(),
    },
)


@given(WIRE, WIRE_TEXT)
def test_new_words_are_read_back(raw: Raw, text: str) -> None:
    """Whatever the message, new words are its words; its calls, thoughts and unknown fields are as before."""
    before = copy.deepcopy(raw)
    message = openai_chat.read(raw)
    changed = message.evolve(text=text)
    assert changed.text == text
    assert [part for part in changed.parts if not isinstance(part, TextPart | ToolResultPart)] == [
        part for part in message.parts if not isinstance(part, TextPart | ToolResultPart)
    ]
    assert changed.raw.get("x") == raw.get("x")
    assert raw == before


@given(WIRE, st.sampled_from([TextPart, MediaPart, ReasoningPart, OtherPart, ToolCallPart]))
def test_a_kind_of_part_can_go(raw: Raw, kind: type[Part]) -> None:
    """Parts of one kind can be dropped from any message that is no result; the others are read as before."""
    message = openai_chat.read(raw)
    left = tuple(part for part in message.parts if not isinstance(part, kind) or isinstance(part, ToolResultPart))
    changed = message.evolve(parts=left)
    assert [part for part in changed.parts if part != TextPart("")] == [part for part in left if part != TextPart("")]


def test_recorded_messages(corpus: Callable[[str], list[dict[str, Any]]]) -> None:
    """Every recorded message is read, and written back unchanged."""
    for name in ("cassettes", "openhands", "tau_airline", "inspect_logs"):
        for conversation in corpus(name):
            messages = [openai_chat.read(raw) for raw in conversation["messages"]]
            assert [message.evolve(parts=message.parts).raw for message in messages] == conversation["messages"]

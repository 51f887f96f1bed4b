"""Reading chat-completions messages into parts, and writing changed messages."""

from __future__ import annotations

import copy
import json
from types import MappingProxyType

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessage
from openai.types.chat.chat_completion_message import FunctionCall

from compaction.errors import ConfigurationError
from compaction.formats import openai_chat
from compaction.messages import MediaPart, OtherPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from tests.formats.openai_chat import examples as chat
from tests.formats.openai_chat.examples import ASKED, CALL, OBJECT, WHOLE, WORDS, Raw, asked, assistant, call, user


def test_objects() -> None:
    legacy = ChatCompletionMessage(role="assistant", function_call=FunctionCall(name="now", arguments="{}"))
    expected = (ToolCallPart("a", "now", "{}"),)
    assert openai_chat.read(WHOLE).parts == expected
    assert openai_chat.read(WHOLE).raw is WHOLE
    assert openai_chat.read(assistant(tool_calls=[OBJECT])).parts == expected
    assert openai_chat.read(assistant(tool_calls=[{"id": "a", "function": chat.BODY}])).parts == expected
    assert openai_chat.read(legacy).parts == (ToolCallPart("function:now", "now", "{}"),)
    assert openai_chat.read(chat.Question(content="hi")).parts == (TextPart("hi"),)
    assert openai_chat.read(MappingProxyType(user("hi"))).parts == (TextPart("hi"),)


def test_changing_an_object_gives_a_dictionary() -> None:
    whole = ChatCompletionMessage(role="assistant", content="hi", tool_calls=[OBJECT])
    assert openai_chat.read(whole).evolve(text="new").raw == assistant(content="new", tool_calls=[OBJECT.model_dump()])
    message = openai_chat.read(assistant(content="hi", tool_calls=[OBJECT, CALL]))
    changed = message.evolve(parts=[*message.parts[:2], attrs.evolve(message.parts[2], arguments="[]")])
    assert changed.raw["tool_calls"][0] is OBJECT
    assert changed.raw["tool_calls"][1]["function"]["arguments"] == "[]"


def test_opaque_thoughts_cannot_be_reworded() -> None:
    """The text of a reasoning field that is not plain text cannot be changed: a ``ConfigurationError`` is raised."""
    message = openai_chat.read(assistant(reasoning_details=[{"type": "reasoning.text", "text": "hm", "signature": "x"}]))
    with pytest.raises(ConfigurationError, match="'reasoning_details' is not plain text"):
        message.evolve(parts=[attrs.evolve(message.parts[0], text="h")])


def test_to_wire() -> None:
    """``to_wire`` turns objects at every level into dictionaries, and returns a plain message as the same object."""
    assert openai_chat.to_wire(WHOLE) == asked(call())
    assert openai_chat.to_wire(assistant(tool_calls=(OBJECT,))) == assistant(tool_calls=[call()])
    assert openai_chat.to_wire(MappingProxyType(user("hi"))) == user("hi")
    assert openai_chat.to_wire(ASKED) is ASKED
    assert openai_chat.to_wire({**ASKED, "x": b"raw"}) == {**ASKED, "x": b"raw"}
    assert openai_chat.from_wire(json.loads(json.dumps(openai_chat.to_wire(WHOLE)))) == asked(call())


WIRE_TEXT = st.text(alphabet="ab é\n", max_size=4)
WIRE_PARTS = st.sampled_from([WORDS, chat.IMAGE, "hi", {"type": "thinking", "thinking": "hm"}, {"type": "poll"}, None, 5])
CONTENTS = st.none() | WIRE_TEXT | st.lists(WIRE_PARTS, max_size=4) | st.sampled_from([5, {"a": 1}, WORDS])
ENTRIES = st.sampled_from([CALL, chat.CUSTOM, {"id": "c"}, "now", {"function": {"name": "now", "arguments": {}}}])
WIRE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "function", "system"])},
    optional={
        "content": CONTENTS,
        "tool_calls": st.lists(ENTRIES, max_size=3) | st.sampled_from([None, "now", 0, {}]),
        "function_call": st.sampled_from([None, "now", {"name": "now", "arguments": {"a": 1}}, {"name": "", "arguments": ""}]),
        "reasoning": WIRE_TEXT,
        "reasoning_details": st.just([chat.OPAQUE]),
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
    kept, others = (
        [part for part in each.parts if not isinstance(part, TextPart | ToolResultPart)] for each in (changed, message)
    )
    assert kept == others
    assert changed.raw.get("x") == raw.get("x")
    assert raw == before


@given(WIRE, st.sampled_from([TextPart, MediaPart, ReasoningPart, OtherPart, ToolCallPart]))
def test_a_kind_of_part_can_go(raw: Raw, kind: type[Part]) -> None:
    """Parts of one kind can be dropped from any message that is no result; the others are read as before."""
    message = openai_chat.read(raw)
    left = tuple(part for part in message.parts if not isinstance(part, kind) or isinstance(part, ToolResultPart))
    changed = message.evolve(parts=left)
    assert [part for part in changed.parts if part != TextPart("")] == [part for part in left if part != TextPart("")]

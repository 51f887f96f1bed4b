"""Lines of a batch: messages taken out of the bytes, whatever the line looks like."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.batch.json_lines import JsonLine, OversizedLine, bounded_lines, dump_json, load_json
from compaction.batch.line_edits import keep_messages
from compaction.files import read_conversations

TEXTS = st.text(st.sampled_from('ab"\\{}[],: é\u2028\U0001f600\n'), max_size=6)
MESSAGES = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": TEXTS}, optional={"n": st.floats(0, 9)}),
    min_size=2,
    max_size=12,
)
STYLES: list[dict[str, Any]] = [
    {},
    {"separators": (",", ":")},
    {"ensure_ascii": False},
    {"separators": (",", ":"), "ensure_ascii": False},
]


@given(MESSAGES, st.sampled_from(STYLES), st.data(), st.booleans())
def test_taking_messages_out_is_what_reading_with_care_gives(
    messages: list[dict[str, Any]], style: dict[str, Any], data: st.DataObject, bare: bool
) -> None:
    """Found or read with places, the line without some of its messages is the same bytes; in doubt it is not found."""
    text = json.dumps(messages if bare else {"id": 1.50, "messages": messages, "more": [messages[0]]}, **style)
    line = text.encode()
    values = load_json(line) if bare else load_json(line)["messages"]
    kept = [value for value in values if data.draw(st.booleans())]
    [conversation] = read_conversations(io.BytesIO(line))
    places = {id(value): place for place, value in enumerate(values)}
    careful = conversation.with_messages([conversation.messages[places[id(value)]] for value in kept]).encode()
    assert keep_messages(line, values, kept, load_json, dump_json, min_messages=2) in (careful, None)


def test_many_messages_are_found_though_some_stand_twice() -> None:
    """In a long line runs are found by their ends; an end that occurs twice is found with its neighbours."""
    chat = [{"role": "user", "content": f"word {number % 10}" + f" {number}" * (number % 3 == 0)} for number in range(200)]
    line = json.dumps({"messages": chat, "note": "é"}).encode()
    values = load_json(line)["messages"]
    found = keep_messages(line, values, [values[0], *values[45:190]], load_json, dump_json)
    assert found == json.dumps({"messages": [chat[0], *chat[45:190]], "note": "é"}).encode()


@pytest.mark.parametrize(
    "change",
    [
        lambda values: [*values[1:], {"role": "user"}],
        lambda values: [],
        lambda values: values[::2],
        lambda values: values[::-1],
    ],
    ids=["new", "none", "many runs", "other order"],
)
def test_what_is_not_a_cut_is_left_to_care(change: Any) -> None:
    """A new message, an empty list, too many runs: not found, and written with care all the same."""
    chat = [{"role": "user", "content": str(number)} for number in range(60)]
    line = JsonLine(json.dumps({"messages": chat}).encode())
    values = line.read()
    assert keep_messages(line.text, values, change(values), load_json, dump_json) is None
    assert json.loads(line.write(change(values))) == {"messages": change(chat)}


@given(st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"")), max_size=6), st.integers(1, 8))
def test_bounded_lines_lose_nothing(parts: list[bytes], most: int) -> None:
    """The lines of a stream are its bytes, except that a line that is too long is replaced by its size."""
    text = b"\n".join(parts)
    wanted = [line if len(line.rstrip(b"\n")) <= most else OversizedLine(len(line)) for line in io.BytesIO(text)]
    assert list(bounded_lines(io.BytesIO(text), most)) == wanted

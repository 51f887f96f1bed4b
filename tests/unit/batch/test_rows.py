"""Lines of a batch: messages taken out of the bytes, whatever the line looks like."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.batch.rows import JsonLine, NestedMessages, OversizedLine, bounded_lines, dump_json
from compaction.errors import InputError, UnreadableFile
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
def test_a_line_is_written_as_the_other_commands_write_it(
    messages: list[dict[str, Any]], style: dict[str, Any], data: st.DataObject, bare: bool
) -> None:
    """A line without some of its messages, in any order, is the same bytes as from a file of conversations."""
    line = json.dumps(messages if bare else {"id": 1.50, "messages": messages, "more": [messages[0]]}, **style).encode()
    row = JsonLine(line)
    values = row.read()
    places = data.draw(st.lists(st.integers(0, len(values) - 1), unique=True))
    [conversation] = read_conversations(io.BytesIO(line))
    expected = conversation.with_messages([conversation.messages[place] for place in places]).encode()
    assert row.write(values, [values[place] for place in places]) == expected


def test_a_line_that_cannot_be_read_with_care_says_so() -> None:
    """A number of many digits, which a fast parser reads as a float, is refused once the line must be written again."""
    row = JsonLine(b'{"n": %b, "messages": [{"role": "user"}, {"role": "user"}]}' % (b"1" * 5_000))
    with pytest.raises(InputError, match="too large"):
        row.write(messages := row.read(), messages[1:])


@pytest.mark.parametrize(
    "text",
    [
        b'[{"role": "user", "content": "x", "messages": 1}]',
        b'{"a": {"messages": 1}, "messages": [{"role": "user", "content": "x"}]}',
        b'{"messages": [1], "messages": [{"role": "user", "content": "x"}]}',
        b'{"a": "messages"}',
        b'{"messages": {"messages": []}}',
    ],
)
def test_a_line_is_read_as_the_other_commands_read_it(text: bytes) -> None:
    try:
        expected: Any = next(iter(read_conversations(io.BytesIO(text)))).messages
    except UnreadableFile as error:
        with pytest.raises(InputError, match=re.escape(str(error).removeprefix("the input: "))):
            JsonLine(text).read()
    else:
        assert JsonLine(text).read() == expected


@pytest.mark.parametrize(
    ("value", "text"), [({"\u00e9": 1 << 70}, '{"\u00e9":1180591620717411303424}'), (["\ud800"], '["\\ud800"]')], ids=repr
)
def test_values_that_orjson_does_not_write(value: Any, text: str) -> None:
    assert dump_json(value).decode() == text


def test_a_column_without_a_field_is_no_place_for_it() -> None:
    import pyarrow as pa

    type_ = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
    row = NestedMessages([{"role": "user", "content": None}], type_)
    read = [message] = row.read()
    said = {"role": "user", "content": "b"}
    assert row.write(read, [said, message]) == [said, {"role": "user", "content": None}]
    with pytest.raises(InputError, match="its column lacks a field of a changed message"):
        row.write(read, [{**said, "name": "bo"}])
    with pytest.raises(InputError, match=r"its column cannot store a changed message .*; store messages as JSON"):
        row.write(read, [{**said, "content": [{"type": "text"}]}])


@given(st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"")), max_size=6), st.integers(1, 8))
def test_bounded_lines_lose_nothing(parts: list[bytes], most: int) -> None:
    """The lines of a stream are its bytes, except that a line that is too long is replaced by its size."""
    text = b"\n".join(parts)
    wanted = [line if len(line.rstrip(b"\n")) <= most else OversizedLine(len(line)) for line in io.BytesIO(text)]
    assert list(bounded_lines(io.BytesIO(text), most)) == wanted

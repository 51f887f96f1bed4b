"""Stored JSON: what was written can be read again, and bad data raises an error."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction import MessageIndex, compact_sync, last
from compaction.errors import InputError, InvalidMessage, StateError
from compaction.json_data import MAX_DEPTH, data_of, finite_number, json_of, natural_number, shown
from compaction.session import CompactionSession
from compaction.stores import SessionStore, StoredRecord
from compaction.strategies import Truncation
from compaction.triggers import tokens_exceed
from tests.support.chats import Chat, user

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def nested(levels: int) -> Any:
    """A text inside this many dictionaries."""
    value: Any = "x"
    for _ in range(levels):
        value = {"a": value}
    return value


@given(st.dictionaries(st.text(), ANY))
def test_what_is_written_is_read_back(data: dict[str, Any]) -> None:
    for text in (json_of(data, "it"), json_of(data, "it", compact=True, escaped=False)):
        assert data_of(text, "it", dict) == data
        assert data_of(text.encode(), "it", dict) == data


def test_the_deepest_that_is_written_is_read_back() -> None:
    deepest, deeper = nested(MAX_DEPTH), nested(MAX_DEPTH + 1)
    assert data_of(json_of(deepest, "it"), "it", dict) == deepest
    with pytest.raises(StateError, match="nested deeper than 200"):
        json_of(deeper, "it")
    with pytest.raises(StateError, match="nested deeper than 200"):
        data_of(json.dumps(deeper), "it", dict)


def test_what_holds_itself_is_refused() -> None:
    circle: list[Any] = []
    circle += [circle, circle]
    with pytest.raises(StateError):
        json_of(circle, "it")
    with pytest.raises(InputError):
        MessageIndex([{"role": "user", "content": "hi", "x": circle}], counter="chars/4").to_dict()


@pytest.mark.parametrize("value", [True, -1, 1.0, "1", None, [], float("nan")])
def test_natural_numbers(value: object) -> None:
    with pytest.raises(ValueError, match="not a whole number >= 0"):
        natural_number(value)
    assert natural_number(0) == 0


@pytest.mark.parametrize("value", [True, "1", None, float("nan"), float("-inf"), 10**400])
def test_finite_numbers(value: object) -> None:
    with pytest.raises(ValueError, match="not a finite number"):
        finite_number(value)
    assert finite_number(2) == 2.0


def test_values_in_errors_are_short() -> None:
    """A value in an error message is cut to 50 characters or replaced by its type, however large or deep it is."""
    values = (None, "x" * 99, 10**5_000, nested(5_000))
    assert [shown(value) for value in values] == ["None", "'" + "x" * 49, "a value of type int", "a value of type dict"]


CALL: Chat = [
    user("hi"),
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": nested(600)}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]},
]
DEEP_PART: Chat = [user("hi"), {"role": "user", "content": [{"type": "text", "text": "x", "more": nested(10_000)}]}]
DEEP_CONTENT: Chat = [user("hi"), {"role": "user", "content": nested(10_000)}]


@pytest.mark.parametrize(
    ("chat", "messages"), [(CALL, True), (DEEP_PART, True), (DEEP_PART, False)], ids=["call", "part", "fingerprint"]
)
def test_a_deep_message_is_not_saved(chat: Chat, messages: bool) -> None:
    index = MessageIndex(chat, counter="chars/4")
    with pytest.raises(InvalidMessage, match=r"^messages\[1\]: it is nested too deep"):
        index.to_dict(messages=messages)


def test_a_deep_message_cannot_be_read() -> None:
    """Reading a message with deeply nested content raises an `InvalidMessage`, and the session still accepts other lists."""
    session = CompactionSession(Truncation(trigger=tokens_exceed(10)), counter="chars/4")
    for _ in range(2):
        with pytest.raises(InvalidMessage, match=r"^messages\[1\]: it is nested too deep"):
            session.view_sync(DEEP_CONTENT)
    with pytest.raises(InvalidMessage, match=r"^messages\[1\]"):
        compact_sync(DEEP_CONTENT, Truncation(), counter="chars/4")
    assert session.view_sync(DEEP_CONTENT[:1]) == DEEP_CONTENT[:1]


def test_deep_messages_cannot_be_compared() -> None:
    """A deeply nested message is recognized as the same object; an equal copy raises an `InvalidMessage`."""
    session = CompactionSession(Truncation(trigger=tokens_exceed(10**6)), counter="chars/4")
    assert session.view_sync(DEEP_PART) == DEEP_PART
    assert session.view_sync([*DEEP_PART, user("more")])[2:] == [user("more")]
    rebuilt = {"role": "user", "content": [{"type": "text", "text": "x", "more": nested(10_000)}]}
    with pytest.raises(InvalidMessage, match=r"^messages\[1\]: it is nested too deep"):
        session.view_sync([user("hi"), rebuilt])


def test_a_session_with_a_deep_message_works_unsaved(tmp_path: Any) -> None:
    strategy = Truncation(trigger=tokens_exceed(10), keep=last(groups=1))
    chat = [user("word " * 50), *DEEP_PART, user("word " * 50), user("now")]
    watched = CompactionSession(strategy, counter="chars/4", store=SessionStore(tmp_path / "sessions.db"))
    assert watched.view_sync(chat) == CompactionSession(strategy, counter="chars/4").view_sync(chat)
    assert "'messages[2]', 'it is nested too deep" in watched.status().failures[0]


def test_a_message_with_odd_keys_is_not_saved() -> None:
    index = MessageIndex([user("hi"), {"role": "user", "content": "hi", "x": {1: 2, "a": 3}}], counter="chars/4")
    with pytest.raises(InvalidMessage, match=r"^messages\[1\]: the message is not JSON data"):
        index.to_dict(messages=False)


def test_a_deep_message_is_not_stored() -> None:
    with pytest.raises(StateError, match="a message cannot be stored as JSON"):
        StoredRecord.of_message(nested(5_000), role="user", text="x", salt="s")

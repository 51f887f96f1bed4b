"""The laws of every format: messages of any content are read, written unchanged, detected and stored."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.errors import InvalidMessage
from compaction.formats import FORMATS, MessageFormat, openai_chat, resolve, same
from tests.support.chats import indexed
from tests.support.rulebook import examples_of
from tests.support.wires import valid_conversation, wrecked

formats = st.sampled_from(FORMATS)
every_format = pytest.mark.parametrize("format", FORMATS, ids=repr)


@every_format
def test_there_is_one_object_of_it(format: MessageFormat) -> None:
    assert pickle.loads(pickle.dumps(format)) is copy.deepcopy(format) is format
    assert repr(format) == format.name.replace("-", "_")


@given(st.data())
def test_the_same_parts_are_the_same_message(data: st.DataObject) -> None:
    """A copy made of the parts that were read is equal on the wire, whatever the message holds, and reads the same."""
    format = data.draw(formats)
    for raw in data.draw(wrecked(valid_conversation(format))):
        try:
            message = format.read(raw)
        except InvalidMessage:
            continue
        copied = message.evolve(parts=message.parts)
        assert repr(copied.raw) == repr(raw) or copied.raw == raw or not isinstance(raw, dict)
        assert repr(copied.parts) == repr(message.parts)


@pytest.mark.parametrize("name", ["cassettes", "openhands", "tau_airline"])
def test_recorded_conversations(corpus: Callable[[str], list[dict[str, Any]]], name: str) -> None:
    assert {resolve(None, conversation["messages"]) for conversation in corpus(name)} == {openai_chat}


def test_lists_are_the_same_if_their_messages_are() -> None:
    """Equal messages are not the same, and neither is a longer list that begins with them."""
    one, other = {"role": "user"}, {"role": "user"}
    assert same([one], [one])
    assert not same([one], [other])
    assert not same([one], [one, other])


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


DEEP = nested(5_000)


@every_format
def test_a_value_nested_too_deep_is_refused(format: MessageFormat) -> None:
    """It cannot be measured, so no format replaces it by a short text that would be counted as a few tokens.

    The checks of the rules measure nothing, so they raise nothing, and need not find it.
    """
    raw = examples_of(format).holding(DEEP)
    with pytest.raises(InvalidMessage, match=r"^messages\[0\]: it is nested too deep"):
        indexed([raw], format=format)
    repair = format.repair([raw])
    assert format.validate(repair.messages) == list(repair.remaining)

"""Fingerprints kept from one save to the next: computed once for each message, and only for messages that still exist."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.formats import anthropic, openai_chat
from compaction.formats.openai_chat.reading import OpenAIChat
from compaction.index.identity import Fingerprints, fingerprint
from tests.support.chats import assistant, tool_turns, user

MESSAGE = {
    "role": "assistant",
    "content": [{"type": "text", "text": "so"}],
    "index": 1,
    "score": 0.0,
    "strict": False,
    "deep": [[[[{"of": ["x", None]}]]]],
}
LEAVES = st.none() | st.booleans() | st.integers(-2, 2) | st.floats() | st.text(max_size=3)
DATA = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3))


class Counting(OpenAIChat):
    """The chat format, which counts the messages it writes. Holds state."""

    written = 0

    def to_wire(self, raw: Any) -> Any:
        self.written += 1
        return super().to_wire(raw)


def test_each_message_is_written_out_once() -> None:
    """A save writes out what came since the last one."""
    format, known, messages = Counting(), Fingerprints(), tool_turns(5)
    first = known.of(messages, format)
    assert format.written == len(messages)
    more = [*messages, user("next")]
    assert known.of(more, format) == [*first, fingerprint(more[-1], openai_chat)]
    assert format.written == len(messages) + 1


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda raw: raw.update(index=True), id="one-to-true"),
        pytest.param(lambda raw: raw.update(index=1.0), id="one-to-float"),
        pytest.param(lambda raw: raw.update(score=-0.0), id="minus-zero"),
        pytest.param(lambda raw: raw.update(strict=0), id="false-to-zero"),
        pytest.param(lambda raw: raw["content"][0].update(text="so "), id="a-text-inside"),
        pytest.param(lambda raw: raw["content"].append({"type": "text", "text": ""}), id="one-more-part"),
        pytest.param(lambda raw: raw.pop("strict"), id="a-field-gone"),
        pytest.param(lambda raw: raw["deep"][0][0][0][0].update(of=["x"]), id="deep-inside"),
    ],
)
def test_a_message_changed_in_place_is_fingerprinted_anew(change: Callable[[dict[str, Any]], object]) -> None:
    """Any change of the JSON text changes the fingerprint."""
    known, raw = Fingerprints(), copy.deepcopy(MESSAGE)
    [before] = known.of([raw], openai_chat)
    change(raw)
    assert known.of([raw], openai_chat) == [fingerprint(raw, openai_chat)] != [before]


@given(DATA, DATA)
def test_what_is_kept_is_what_would_be_made(before: Any, after: Any) -> None:
    """Whatever a message held and holds now, its fingerprint is that of what it holds."""
    known, raw = Fingerprints(), {"role": "user", "content": before}
    known.of([raw], openai_chat)
    raw["content"] = after
    assert known.of([raw], openai_chat) == [fingerprint(raw, openai_chat)]


def test_no_fingerprint_is_kept_of_what_cannot_be_compared() -> None:
    """A framework's object inside, or data nested very deep: written out each time."""

    class Opaque:
        """An object that equals everything and is written with its present value."""

        said = "so"

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 0

        def __repr__(self) -> str:
            return self.said

    known, inside = Fingerprints(), Opaque()
    raw: dict[str, Any] = {"role": "user", "content": "q", "extra": inside, "deep": []}
    for _ in range(40):
        raw["deep"] = [raw["deep"]]
    [before] = known.of([raw], openai_chat)
    inside.said = "otherwise"
    assert known.of([raw], openai_chat) == [fingerprint(raw, openai_chat)] != [before]


def test_another_format_writes_out_otherwise() -> None:
    """A fingerprint made in one format is not used in another."""
    known, format = Fingerprints(), Counting()
    messages = [user("q"), assistant("a")]
    known.of(messages, anthropic)
    known.of(messages, format)
    assert format.written == 2

"""A list in another format says the same: the same words, calls and results, and as valid as before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.formats import FORMATS, MessageFormat, json_object, openai_chat
from compaction.messages import TextPart
from tests.support.conversion import convert
from tests.support.wires import valid_conversation

pairs = [(source, target) for source in FORMATS for target in FORMATS if source is not target]


def said(format: MessageFormat, messages: list[Any]) -> Counter[tuple[str, str]]:
    """Return the words, the calls and the results of a conversation, how often each."""
    read = list(map(format.read, messages))
    texts = [part.text for each in read for part in each.parts if isinstance(part, TextPart)]
    found = Counter(("word", word) for text in texts for word in text.split())
    found.update(("call", f"{call.name} {json_object(call.arguments)}") for each in read for call in each.tool_calls())
    found.update(("result", result.text) for each in read for result in each.tool_results())
    return found


@given(st.data())
def test_nothing_is_added_and_nothing_breaks(data: st.DataObject) -> None:
    """A valid conversation stays valid, apart from calls without a result, which some formats accept; no content is added."""
    source, target = data.draw(st.sampled_from(pairs))
    messages = data.draw(valid_conversation(source))
    written = convert(messages, to=target, format=source)
    assert {problem.rule for problem in target.validate(written)} <= {"pending-call", "call-without-result", "no-messages"}
    before, after = said(source, messages), said(target, written)
    assert {kind for kind, _ in after - before} <= {"call"}  # arguments that are not an object become one


@pytest.mark.parametrize("target", FORMATS, ids=lambda format: format.name)
@pytest.mark.parametrize("name", ["tau_airline", "coding_long"])
def test_recorded_conversations(corpus: Callable[[str], list[dict[str, Any]]], name: str, target: MessageFormat) -> None:
    """All calls and results of recorded conversations are there, and all words except instructions where none may stand."""
    for messages in [conversation["messages"] for conversation in corpus(name)][:3]:
        written = convert(messages, to=target, format=openai_chat)
        assert target.validate(written) == []
        left = said(openai_chat, [raw for raw in messages if raw["role"] != "system"]) - said(target, written)
        assert {kind for kind, text in left if text} <= {"call"}

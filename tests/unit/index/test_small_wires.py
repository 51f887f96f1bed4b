"""Small random conversations in the wire formats: whatever is dropped or replaced, the list stays valid."""

from __future__ import annotations

from itertools import combinations
from random import Random
from typing import Any

import pytest

from compaction import Drop, MessageIndex, Replace
from compaction.formats import MessageFormat, anthropic, bedrock, gemini, openai_chat

FORMATS = (openai_chat, anthropic, gemini, bedrock)
MOST = 6
"""The most groups that are tried: 63 sets."""

each_conversation = pytest.mark.parametrize(
    ("format", "seed"),
    [(format, seed) for format in FORMATS for seed in range(6)],
    ids=lambda each: getattr(each, "name", each),
)


def used(format: MessageFormat, name: str) -> list[Any]:
    """A call and its result, as the format writes them."""
    if format is anthropic:
        return [
            {"role": "assistant", "content": [{"type": "tool_use", "id": name, "name": "look", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": name, "content": "found"}]},
        ]
    if format is gemini:
        return [
            {"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": name, "response": {"output": "found"}}}]},
        ]
    if format is bedrock:
        return [
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": name, "name": "look", "input": {}}}]},
            {"role": "user", "content": [{"toolResult": {"toolUseId": name, "content": [{"text": "found"}]}}]},
        ]
    function = {"name": "look", "arguments": "{}"}
    return [
        {"role": "assistant", "content": None, "tool_calls": [{"id": name, "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": name, "content": "found"},
    ]


def conversation(random: Random, format: MessageFormat) -> list[Any]:
    """A valid list of up to ten messages."""
    messages: list[Any] = []
    for place in range(30):
        kind = random.choice(("user", "user", "assistant", "assistant", "system", "call", "thought"))
        more = used(format, f"t{place}") if kind == "call" else [format.new(kind, f"{place}" + " word" * 12).raw]
        if kind == "thought":
            signed = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
            more = (
                [{"role": "assistant", "content": [signed, {"type": "text", "text": f"{place}"}]}]
                if format is anthropic
                else []
            )
        if len(messages) + len(more) <= 10 and not format.validate([*messages, *more]):
            messages += more
    return messages


@each_conversation
def test_steps_reach_every_set_that_may_leave(format: MessageFormat, seed: int) -> None:
    """The list is valid after each step, and a set that may be dropped is dropped whole."""
    messages = conversation(Random(seed), format)
    index = MessageIndex(messages, counter="chars/4", format=format)
    free = index.removable_ids()[:MOST]
    for chosen in (ids for size in range(1, len(free) + 1) for ids in combinations(free, size)):
        mark = index.checkpoint()
        for step in index.steps(chosen):
            assert index.apply(Drop(step)), index.refused
            assert format.validate(index.messages()) == []
        left = [id for id in chosen if index.is_included(id)]
        index.rollback(mark)
        gone = {at for id in chosen for at in index.ordinals(id)}
        assert not (left and format.validate([raw for at, raw in enumerate(messages) if at not in gone]) == [])


@each_conversation
def test_whatever_is_asked_for_the_list_stays_valid(format: MessageFormat, seed: int) -> None:
    """After each drop or replacement, and at the end of the step; a rollback gives back the same objects."""
    random = Random(seed)
    messages = conversation(random, format)
    index = MessageIndex(messages, counter="chars/4", format=format)
    for _ in range(20):
        index.begin_step()
        for id in random.sample(free := index.removable_ids(), random.randint(0, len(free))):
            if index.is_included(id):
                words = format.new(random.choice(("user", "assistant")), "so far")
                index.apply(Drop(id) if random.random() < 0.8 else Replace(id, [words]), by="Tests")
            assert format.validate(index.messages()) == []
        index.end_step()
        assert format.validate(index.messages()) == []
        assert index.included.messages == len(index.messages())
        assert index.removable_ids() == [id for id in index.included_ids if index.is_removable(id)]
        index.rollback()
        assert (index.included, list(map(id_of, index.messages()))) == (index.total, list(map(id_of, messages)))


def id_of(raw: Any) -> int:
    """Return the identity of a message."""
    return id(raw)

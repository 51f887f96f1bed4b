"""The grouping of messages one by one: both ways of reading, the positions of instructions, and the limits of summaries."""

from __future__ import annotations

import pytest

from compaction import GroupKind
from compaction.formats import openai_chat
from compaction.index.groups import Grouping
from compaction.index.marks import MarkCeiling, Marks, marked
from tests.support.chats import Chat, assistant, call, developer, result, said, system, user

CHATS: list[Chat] = [
    [system(), user(), assistant()],
    [system(), developer(), user(), system(), user()],
    [user(), system(), assistant(), system()],
    [system(), user(), call("1"), result("1"), system(), assistant()],
    [user(), call("1", "2"), result("2"), result("1"), result("1"), user()],
]


def in_full(chat: Chat) -> Grouping:
    """The grouping of messages that are read completely."""
    grouping = Grouping()
    for place, raw in enumerate(chat):
        grouping.add(openai_chat.read(raw, place), 1)
    return grouping


def by_outline(chat: Chat) -> Grouping:
    """The grouping of messages of which only the outline is read."""
    grouping = Grouping()
    for raw in chat:
        outline = openai_chat.outline(raw)
        assert outline is not None
        grouping.add_outline(outline)
    return grouping


@pytest.mark.parametrize("chat", CHATS)
def test_an_outline_is_grouped_as_the_message(chat: Chat) -> None:
    """All that the grouping tells is the same."""
    told = [
        {name: value for name, value in vars(grouping).items() if not name.startswith("_") and name != "marks"}
        for grouping in (in_full(chat), by_outline(chat))
    ]
    assert told[0] == told[1]


@pytest.mark.parametrize("chat", CHATS)
def test_instructions_are_counted(chat: Chat) -> None:
    """There is the number of all instructions, and of those before any other message."""
    roles = [raw["role"] in ("system", "developer") for raw in chat]
    grouping = in_full(chat)
    assert (grouping.system, grouping.leading) == (sum(roles), roles.index(False))


def test_a_summary_of_exactly_the_limit_is_believed() -> None:
    """One more token, or one more message, is too much."""
    summary = openai_chat.read(said("user", marked("The user wants tea.", by="Summarization")))
    ceilings = {"Summarization": MarkCeiling(tokens=20, messages=2)}
    for tokens, kinds in [((20,), "s"), ((21,), "u"), ((10, 10), "ss"), ((10, 11), "su"), ((1, 1, 1), "ssu")]:
        grouping = Grouping(Marks(ceilings=ceilings))
        groups = [grouping.add(summary, each) for each in tokens]
        assert [grouping.kinds[id] for id in groups] == [GroupKind.SUMMARY if each == "s" else GroupKind.USER for each in kinds]

"""Instructions: those at the start stay, and a later one is outdated when another replaces it."""

from __future__ import annotations

from compaction import GroupKind, MessageIndex, last
from compaction.formats import anthropic
from tests.support.chats import assistant, developer, indexed, system, user


def test_an_instruction_that_a_later_one_replaced_may_leave() -> None:
    reminders = [system(f"Reminder {number}: keep the list current.") for number in range(5)]
    index = indexed([system(), system(), reminders[0], user(), *reminders[1:3], assistant(), *reminders[3:], user()])
    assert index.removable_ids() == [3, 4, 5, 6, 7]
    assert index.protection(4) is None
    assert index.protection(8) == "system messages must be kept"
    index.append([system("Reminder 5: keep the list current.")])
    assert 8 in index.removable_ids()


def test_only_four_kinds_of_instructions_stay() -> None:
    """So the protected part of a conversation is bounded, however many unlike instructions it has."""
    topics = ["use tabs", "answer in French", "never push", "run the linter", "cite sources", "ask before deleting"]
    index = indexed([system(), user(), *[developer(f"Please {topic}.") for topic in topics], assistant(), user()])
    assert index.removable_ids() == [1, 2, 3, 8]


def test_what_adds_a_tool_in_mid_conversation_stays() -> None:
    added = {"role": "system", "content": [{"type": "tool_addition", "tool": {"name": "look"}}]}
    chat = [user(), added, {"role": "assistant", "content": "hm"}] * 6 + [user()]
    index = MessageIndex(chat, counter="chars/4", format=anthropic)
    assert [id for id in index.removable_ids() if index.group(id).kind is GroupKind.SYSTEM] == []


def test_last_counts_an_instruction_that_may_leave() -> None:
    """Otherwise a summary of all others would take its place among the newest groups."""
    chat = [system(), user(), system("Reminder 1."), assistant(), system("Reminder 2."), system("Reminder 3."), user()]
    assert last(groups=3)(indexed(chat)) == {3, 4, 6}

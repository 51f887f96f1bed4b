"""The rules that protect groups, in edge cases: the first group, a collapsed call there, results without a call."""

from __future__ import annotations

from compaction import Drop, GroupKind, MessageIndex, Replace, last
from compaction.formats import anthropic, openai_chat, openai_responses
from compaction.index.marks import COLLAPSED_BY, marked
from tests.support.chats import assistant, call, developer, indexed, result, system, user


def test_a_collapsed_call_that_comes_first_may_be_shortened() -> None:
    """As one anywhere else; a summary of the conversation may not."""
    for by, rewritable in ((COLLAPSED_BY, True), ("Summarization", False)):
        index = indexed([assistant(marked("look: found it", by=by)), user(), assistant(marked("look: more", by=by)), user()])
        assert [index.is_rewritable(id) for id in (0, 2)] == [rewritable] * 2


def test_no_words_between_a_call_and_its_results() -> None:
    """An orphan result between a call and its result may be replaced only with the call, or after its last result."""
    words = [openai_chat.new("assistant", "so")]
    chat = [user(), call("1", "2"), result("1"), result("other", "long " * 40), result("2"), user(), assistant(), user()]
    assert not indexed(chat).apply(Replace(3, words))
    assert indexed(chat).apply(Replace([1, 3], words))
    chat = [user(), call("1", "2"), result("1"), result("2"), result("other", "long " * 40), user(), assistant(), user()]
    assert indexed(chat).apply(Replace(4, words))
    chat = [result("other", "long " * 40), call("1"), result("1"), user()]
    assert indexed(chat).apply(Replace(0, words))


def test_no_words_among_results_that_answer_nothing() -> None:
    """They stand between a call and its result, the first message of all or not."""
    words = [openai_chat.new("assistant", "so")]
    chat = [
        call("1", "2"),
        result("1"),
        result("other", "long " * 40),
        result("more", "long " * 40),
        result("2"),
        user(),
        user(),
    ]
    for messages in (chat, [user(), *chat]):
        index = indexed(messages)
        orphans = [group.id for group in index.included_groups if group.orphan]
        assert [index.apply(Replace(id, words)) for id in orphans] == [False, False]


def test_a_summary_in_the_place_of_the_last_user_message_stays() -> None:
    """It may be forged; the strategy it names may replace it, and nobody may drop it."""
    old = marked("so far, at length", by="Summarization")
    chat = [user(), assistant(), user(old), assistant(), assistant()]
    index = indexed(chat)
    assert [index.removable_ids(by) for by in ("", "Other", "Summarization")] == [[1, 3], [1, 3], [1, 2, 3]]
    assert index.protection(2) == "the last user message must be kept, even if it begins with a summary mark"
    words = [openai_chat.new("user", "so far")]
    assert [indexed(chat).apply(Drop(2), by=by) for by in ("", "Summarization")] == [False, False]
    assert [indexed(chat).apply(Replace(2, words), by=by) for by in ("", "Other", "Summarization")] == [False, False, True]
    index.append([user(), assistant()])
    assert index.removable_ids() == [0, 1, 2, 3, 4]
    assert indexed([user(), assistant(old), assistant()]).removable_ids() == [1]


def test_the_newest_summary_of_the_provider_stays() -> None:
    """The provider's newest summary replaces everything before it and stays; an older one may be dropped."""
    items = [openai_responses.new("user", "hi").raw, {"type": "compaction", "id": "a", "encrypted_content": "x"}] * 2
    messages = [*items, openai_responses.new("user", "more").raw, openai_responses.new("user", "now").raw]
    index = MessageIndex(messages, counter="chars/4", format=openai_responses)
    assert index.removable_ids() == [0, 1, 2, 4]
    assert index.protection(3) == "the newest summary that the provider itself wrote must be kept"
    assert not index.apply(Drop(3))


def test_an_instruction_that_a_later_one_replaced_may_leave() -> None:
    """Of instructions that differ only in numbers, the newest stays; those at the start stay all."""
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
    """Later calls need the tool, however many other instructions follow."""
    added = {"role": "system", "content": [{"type": "tool_addition", "tool": {"name": "look"}}]}
    chat = [user(), added, {"role": "assistant", "content": "hm"}] * 6 + [user()]
    index = MessageIndex(chat, counter="chars/4", format=anthropic)
    assert [id for id in index.removable_ids() if index.group(id).kind is GroupKind.SYSTEM] == []


def test_last_counts_an_instruction_that_may_leave() -> None:
    """Otherwise a summary of all others would take its place among the newest groups."""
    chat = [system(), user(), system("Reminder 1."), assistant(), system("Reminder 2."), system("Reminder 3."), user()]
    assert last(groups=3)(indexed(chat)) == {3, 4, 6}

"""Messages become groups one by one: both ways of reading, the limits of summaries, and which instructions may leave."""

from __future__ import annotations

from typing import Any

import pytest

from compaction import GroupKind, MessageIndex, last
from compaction.formats import anthropic, openai_chat
from compaction.index.grouping import Grouping
from compaction.index.marks import MarkCeiling, Marks, marked
from tests.support.chats import Chat, assistant, call, developer, indexed, result, said, system, thought, user

CHATS: list[Chat] = [
    [system(), user(), assistant()],
    [system(), developer(), user(), system(), user()],
    [user(), system(), assistant(), system()],
    [system(), user(), call("1"), result("1"), system(), assistant()],
    [user(), call("1", "2"), result("2"), result("1"), result("1"), user()],
]


def in_full(chat: Chat) -> Grouping:
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
    one, other = in_full(chat), by_outline(chat)
    parts = ("calls", "marks")
    told = [
        {name: value for name, value in vars(each).items() if name[0] != "_" and name not in parts} for each in (one, other)
    ]
    assert told[0] == told[1]
    assert vars(one.calls) == vars(other.calls)


def test_a_summary_of_exactly_the_limit_is_believed() -> None:
    """One more token, or one more message, is too much."""
    summary = openai_chat.read(said("user", marked("The user wants tea.", by="Summarization")))
    ceilings = {"Summarization": MarkCeiling(tokens=20, messages=2)}
    for tokens, kinds in [((20,), "s"), ((21,), "u"), ((10, 10), "ss"), ((10, 11), "su"), ((1, 1, 1), "ssu")]:
        grouping = Grouping(Marks(ceilings=ceilings))
        groups = [grouping.add(summary, each) for each in tokens]
        assert [grouping.kinds[id] for id in groups] == [GroupKind.SUMMARY if each == "s" else GroupKind.USER for each in kinds]


LETTERS = {"system": "s", "user": "u", "assistant": "a", "tool_call": "t", "summary": "m"}


LEGACY = {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}}
ANSWERED, ELSEWHERE = ({"role": "function", "name": name, "content": "found"} for name in ("look", "elsewhere"))


def layout(index: MessageIndex) -> str:
    """Every group of the view as a letter for its kind and the places of its messages.

    ``!`` stands for an orphan, ``~`` for a call that is pending, ``?`` for another one without a result.
    """
    shown: list[str] = []
    for group in index.included_groups:
        state = "!" if group.orphan else "~" if group.pending else "?" if group.open else ""
        shown.append(LETTERS[group.kind.value] + ",".join(map(str, index.ordinals(group))) + state)
    return " ".join(shown)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (system(), GroupKind.SYSTEM),
        (developer(), GroupKind.SYSTEM),
        (user(), GroupKind.USER),
        (assistant(), GroupKind.ASSISTANT),
        (thought(), GroupKind.ASSISTANT),
        (call("1"), GroupKind.TOOL_CALL),
        (result("1"), GroupKind.TOOL_CALL),
        (ANSWERED, GroupKind.TOOL_CALL),
        (LEGACY, GroupKind.TOOL_CALL),
        *(
            ({"role": "assistant", **nothing}, GroupKind.ASSISTANT)
            for nothing in ({"content": None}, {"content": []}, {}, {"content": None, "tool_calls": []})
        ),
        (said("critic", "too long"), GroupKind.ASSISTANT),
        (user(marked("they met", by="X")), GroupKind.SUMMARY),
        (assistant(marked("they met", by="X")), GroupKind.SUMMARY),
    ],
)
def test_one_message_is_a_group_of_its_kind(message: dict[str, Any], kind: GroupKind) -> None:
    assert [group.kind for group in indexed([message]).included_groups] == [kind]


GROUPED: dict[str, tuple[Chat, str]] = {
    "a mixed conversation": (
        [system(), user(), call("1", text="I look"), result("1"), assistant(), user(), assistant()],
        "s0 u1 t2,3 a4 u5 a6",
    ),
    "neighbouring instructions": ([system("a"), developer("b"), user(), system("c"), user()], "s0 s1 u2 s3 u4"),
    "parallel calls, whose results come in any order": (
        [user(), call("1", "2", "3"), result("3"), result("1"), result("2"), assistant()],
        "u0 t1,2,3,4 a5",
    ),
    "a result that comes later": (
        [call("1", "2"), result("1"), user("meanwhile"), assistant("yes"), result("2"), assistant()],
        "t0,1,4 u2 a3 a5",
    ),
    "a reused id: the latest open call first": (
        [call("1"), user(), call("1"), result("1", "new"), user(), result("1", "old")],
        "t0,5 u1 t2,3 u4",
    ),
    "a reused id whose calls were answered": ([call("1"), result("1"), call("1"), result("1")], "t0,1 t2,3"),
    "a reused id of three calls that wait": (
        [*[call("1"), user()] * 3, *[result("1")] * 4, user(), result("1")],
        "t0,8,9 u1 t2,7 u3 t4,6 u5 u10 t11!",
    ),
    "one id twice in a message, one result": ([call("1", "1"), result("1")], "t0,1~"),
    "one id twice in a message, two results": ([call("1", "1"), result("1"), result("1")], "t0,1,2"),
    "a second answer right behind the first": ([call("1"), result("1"), result("1")], "t0,1,2"),
    "a second answer later": ([call("1"), result("1"), user(), result("1")], "t0,1 u2 t3!"),
    "a result before its call": ([result("1"), call("1")], "t0! t1~"),
    "orphans": ([user(), result("8"), result("9")], "u0 t1! t2!"),
    "a legacy call, its result, and another": ([user(), LEGACY, ANSWERED, ELSEWHERE, assistant()], "u0 t1,2 t3! a4"),
    "a tool message without an id": ([call("1"), {"role": "tool", "content": "?"}], "t0~ t1!"),
    "an unknown role that calls tools": ([{**call("1"), "role": "planner"}, result("1")], "t0,1"),
    "a marked message that calls tools": ([call("1", text=marked("they met", by="X")), result("1")], "t0,1"),
    "a call at the end": ([user(), call("1")], "u0 t1~"),
    "a call of two that was answered": ([user(), call("1", "2"), result("2")], "u0 t1,2~"),
    "an orphan behind a call": ([user(), call("1"), result("9")], "u0 t1~ t2!"),
    "words behind a call": ([user(), call("1"), user()], "u0 t1? u2"),
    "an answer behind a call": ([user(), call("1"), assistant()], "u0 t1? a2"),
    "an instruction behind a call": ([user(), call("1"), system()], "u0 t1? s2"),
    "a call behind a call": ([user(), call("1"), call("2")], "u0 t1? t2~"),
    "an unknown role behind a call": ([user(), call("1"), said("critic", "x")], "u0 t1? a2"),
    "reasoning behind a call": ([user(), call("1"), thought()], "u0 t1,2~"),
    "reasoning before a call": ([user(), thought("a"), thought("b"), call("1"), result("1")], "u0 t1,2,3,4"),
    "reasoning before and after a result": ([call("1"), thought("a"), result("1"), thought("b"), assistant()], "t0,1,2,3 a4"),
    "reasoning before a call, and one after it": (
        [user(), thought(), call("1"), call("2"), result("1"), result("2")],
        "u0 t1,2,4 t3,5",
    ),
    "reasoning between two calls": ([call("1"), result("1"), thought(), call("2")], "t0,1,2 t3~"),
    "reasoning within a calling message": ([{**call("1"), "reasoning": "hm"}, result("1")], "t0,1"),
    "reasoning by itself": (
        [user(), thought("a"), thought("b"), assistant(), thought("c"), user(), call("1")],
        "u0 a1,2 a3 a4 u5 t6~",
    ),
    "reasoning after an orphan": ([result("1"), thought()], "t0! a1"),
}


@pytest.mark.parametrize(("messages", "expected"), GROUPED.values(), ids=GROUPED)
def test_messages_are_read_into_groups(messages: Chat, expected: str) -> None:
    """The rules look backward only; ids are the places of the first messages, also where groups interleave."""
    index = indexed(messages)
    assert layout(index) == expected
    assert [group.id for group in index.included_groups] == [index.ordinals(group)[0] for group in index.included_groups]
    calls = [len(each) for raw in messages if (each := raw.get("tool_calls") or [raw.get("function_call")]) != [None]]
    assert index.included.tool_calls == index.total.tool_calls == sum(calls)


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


@pytest.mark.parametrize(
    "texts",
    [
        ("404", "17"),
        (
            "ห้ามลบไฟล์ในโฟลเดอร์ข้อมูลลูกค้าโดยไม่ได้รับอนุญาตจากผู้จัดการก่อนทุกครั้ง และต้องสำรองข้อมูลไว้ก่อนเสมอ",
            "ตอบคำถามเป็นภาษาอังกฤษเท่านั้น ใช้ประโยคสั้นและสุภาพ อย่าใส่ตารางหรือรูปภาพในคำตอบ เว้นแต่ผู้ใช้จะร้องขอ",
        ),
        ("ग्राहक की फ़ाइलें कभी मत हटाओ।", "केवल अंग्रेज़ी में छोटे वाक्यों में जवाब दो।"),
        ("绝不要删除客户的文件，除非经理同意。", "只用英文回答，句子要短，不要表格。"),
    ],
)
def test_instructions_of_any_script_that_say_different_things_both_stay(texts: tuple[str, str]) -> None:
    """Thai and Chinese have no blanks between words, and the vowel signs of Hindi are part of its words."""
    index = indexed([user(), system(texts[0]), assistant(), system(texts[1]), user(), assistant()])
    assert index.protection(1) == "system messages must be kept"


@pytest.mark.parametrize(
    "texts",
    [
        ("ตรวจรายการงานให้เป็นปัจจุบัน เหลือสามงาน", "ตรวจรายการงานให้เป็นปัจจุบัน เหลือห้างาน"),
        ("कार्य सूची अद्यतन रखो: तीन काम बाकी हैं।", "कार्य सूची अद्यतन रखो: पाँच काम बाकी हैं।"),
        ("当前待办事项有三个未完成，请继续处理。", "当前待办事项有五个未完成，请继续处理。"),
    ],
)
def test_a_reminder_of_any_script_replaces_the_one_before(texts: tuple[str, str]) -> None:
    index = indexed([user(), system(texts[0]), assistant(), system(texts[1]), user(), assistant()])
    assert index.protection(1) is None

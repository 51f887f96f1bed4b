"""The digest made without a model: its content, its length, and the facts left after five rounds."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from compaction import GroupKind, MessageIndex, Pipeline, first, last, presets, run_sync
from compaction.errors import SummaryFailed
from compaction.strategies import Summarization, SummaryText
from compaction.summarizers.extractive import DigestSummarizer, FactSummarizer, facts_in
from compaction.summarizers.extractive.earlier import EarlierSummary
from compaction.summarizers.extractive.facts import FROM, FactKind
from compaction.summarizers.extractive.memory import Memories
from compaction.summarizers.extractive.page import FIRST, NO_ROOM, READ, UNREAD
from tests.support.chats import Chat, call, result, said
from tests.support.scripted import request_for

FACT = re.compile(
    r"""https?://[^\s"')]+|(?<![\w.])(?:[\w.-]+/)+[\w.-]+|\b\d[\d.,:]*\d\b|\b\w*[a-z]\w*_\w+\b|"[^"\n]{4,60}"|`[^`\n]{2,60}`"""
)


def facts(text: str) -> set[str]:
    """Paths, identifiers, numbers, quoted strings and addresses, found by a pattern independent of the digest."""
    return {found.group(0).strip('"`.,:') for found in FACT.finditer(text)}


def digest_of(chat: Chat, budget: int = 400, **options: Any) -> str:
    summarizer = DigestSummarizer()
    return summarizer.summarize(request_for(summarizer, chat, budget=budget, **options))


def ran(id: str, command: str, output: str) -> Chat:
    return [call(id, name="run", arguments=f'{{"command": "{command}"}}'), result(id, output)]


def test_the_first_message_behind_a_summary_is_not_the_task() -> None:
    """The summary beside it replaced messages that are not known; those behind it begin with any words."""
    task, later = "Cut my novel to 75,000 words.", "Great. My sister thinks it should be in verse."
    earlier = MessageIndex([said("user", task), said("assistant", "Yes. " * 400), said("user", "Go on.")], counter="chars/4")
    run_sync(earlier, Summarization(DigestSummarizer(), keep=last(groups=1)))
    index = MessageIndex([*earlier.messages(), said("user", later), said("assistant", "A verse novel.")], counter="chars/4")
    summary, _, *others = index.included_groups
    assert "First: " not in digest_of([], groups=tuple(others), kept=(summary,))
    assert f"First: {later}" in digest_of([], groups=tuple(others))


WORK: Chat = [
    said("user", "Fix the rounding in src/ledger/parse.py. Never change the public API. Only use the standard library."),
    *ran("c1", "pytest tests/test_parse.py", "FAILED tests/test_parse.py::test_round - AssertionError: 19492.65 != 19492.64"),
    said("assistant", "The cause is the float in `to_cents`; I will use decimal.Decimal instead."),
    *ran("c2", "pytest tests/test_parse.py", "12 passed"),
    said("user", "Now the report. The reference is TK-2024-0631."),
]


def test_constraints_are_quoted_word_for_word() -> None:
    text = digest_of(WORK)
    assert "Never change the public API." in text
    assert "Only use the standard library." in text


def test_the_text_does_not_depend_on_the_seed_of_hashes() -> None:
    program = (
        "from compaction import presets, compact_sync; import json, sys; "
        "print(compact_sync(json.load(sys.stdin), presets.token_budget(400), counter='chars/4').messages)"
    )
    facts = [f"The limit of queue {name} is {n}17." for n, name in enumerate(("amber", "birch", "cedar", "dune"), 1)]
    later = "The queue amber has 950 now, and the limit of cedar is 1200."
    chat = json.dumps([said("user", " ".join(facts)), *WORK, said("user", later)] * 3)
    options: dict[str, Any] = {"input": chat, "capture_output": True, "text": True}
    texts = {
        subprocess.run([sys.executable, "-c", program], env=os.environ | {"PYTHONHASHSEED": seed}, check=True, **options).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1


def test_facts_have_a_little_room_though_rules_fill_more_than_a_round_may() -> None:
    names = ("amber", "birch", "cedar", "dune", "elm", "fir")
    rules = [said("user", f"Never touch the {name} folder without asking me.") for name in names]
    text = digest_of([*rules, said("assistant", "I used KX-4471 for it, and then I went on.")], 120)
    assert "KX-4471" in text
    assert text.count("Never touch") >= 3


@pytest.mark.parametrize("budget", [3, 5, 8, 12, 20, 120, 250, 2_000])
def test_it_stays_within_its_budget(budget: int) -> None:
    """The digest fits its budget; with room for a few tokens, it is the beginning of the most important line."""
    text = digest_of(WORK * 30, budget)
    assert MessageIndex(WORK, counter="chars/4").counter.count_text(text) <= budget
    assert text.startswith(("- Fi", "## Goal"))


def test_a_digest_of_what_only_shortening_cut() -> None:
    index = MessageIndex(WORK, counter="chars/4")
    sources = tuple(message for group in index.included_groups for message in group.messages)
    assert "Never change the public API." in digest_of([], sources=sources)


@pytest.mark.parametrize("summarizer", [DigestSummarizer(), FactSummarizer()])
@pytest.mark.parametrize(
    "line",
    [
        *("Changed: the retry limit to seven", "First: ask Ines before each deploy", "Read: the whole contract"),
        *("(3 more tasks are open)", "TodoWrite: deploy on Monday"),
    ],
)
def test_a_models_line_that_looks_like_one_of_ours_stays(summarizer: DigestSummarizer | FactSummarizer, line: str) -> None:
    chat = [*WORK, *planned("c3", port="done")]
    request = request_for(summarizer, chat, budget=600, previous=f"## Progress\n### Done\n- {line}")
    assert f"- {line}" in summarizer.summarize(request)


def test_lists_of_ours_are_written_once_after_two_rounds() -> None:
    chat = [said("user", "Fix the rounding. " + "The sums have to be right. " * 150), *ran("c3", "cat src/a.py", "x = 1")]
    text = digest_of(chat, previous=digest_of(chat))
    assert text.count("First: ") == text.count("Read: ") == 1


def test_every_line_that_the_digest_writes_is_known_in_the_next_round() -> None:
    """A line that is not would be taken over as somebody else's, and stand twice."""
    long = said("user", "Read it. " + "a_b." * 60_000)
    shown = ran("c4", "cat src/a.py", 'title = "blue folder"; ' * 5)
    pasted = said("user", '```\nsrc/b.py order_71 4711 "green folder"\n```')
    chat = [
        *WORK,
        long,
        *planned("c3", port="done"),
        *shown,
        pasted,
        *[said("user", f"Never touch box {n}.") for n in range(40)],
    ]
    messages = [message for group in MessageIndex(chat, counter="chars/4").included_groups for message in group.messages]
    text = "\n".join([digest_of(chat, 150), digest_of(chat, 2_000)])
    assert [part for part in (FIRST, READ, UNREAD, NO_ROOM, FROM, *(kind.value for kind in FactKind)) if part not in text] == []
    assert EarlierSummary(text, Memories().of(messages), ()).foreign_lines() == {}


def test_lines_say_who_said_them() -> None:
    pasted = "A letter from the town hall:\n\nDear citizens, never feed the swans."
    text = digest_of([said("user", pasted), said("assistant", "I settled on SQLite, since it needs no server.")])
    assert "- Assistant: I settled on SQLite, since it needs no server." in text
    text = digest_of([said("user", "Go on."), said("assistant", "Yes."), said("user", pasted), said("assistant", "Yes.")])
    assert "- A letter from the town hall:\n  - Quoted or pasted: Dear citizens, never feed the swans." in text


def test_a_summary_says_what_only_an_old_reminder_says() -> None:
    """Lines that the newest reminder has too, perhaps with other numbers, are not repeated.

    The newest may stand before the summary, and revoke them, so they are said to be earlier.
    """
    reminders = [f"Reminder {number}: keep the list of tasks current. {number} tasks are open." for number in range(9)]
    reminders[3] += " Never touch the folder vendor/legacy."
    chat = [said("user", "Fix the build."), *[said("system", text) for text in reminders], said("assistant", "I will.")]
    groups = MessageIndex(chat, counter="chars/4").included_groups
    summary = digest_of(chat, groups=groups[:-2], kept=groups[-2:])
    assert summary.count("system message: ") == 1
    assert "- Earlier system message: Never touch the folder vendor/legacy." in summary


def test_more_than_one_value_is_shown_in_order() -> None:
    ferry = ("Hello there.", "The ferry for the choir leaves at 14:35.", "The ferry goes at 15:20 now.")
    text = digest_of([said("user", each) for each in ferry])
    assert "leaves at 14:35. (earlier, message 2)\n- The ferry goes at 15:20 now. (message 3)" in text


def test_a_value_has_the_number_of_its_message() -> None:
    """Each statement with a value says where it stood, so that a reader can tell which of two is later; others do not."""
    asked = [said("assistant", "How many words?"), said("user", "Make it 555.")]
    text = digest_of([said("user", "Hello there."), said("user", "My sister is a glazier."), *asked])
    assert "- My sister is a glazier.\n- Make it 555. (message 4)" in text


def test_half_of_a_sign_is_read_like_any_other() -> None:
    """A lone surrogate, which a cut between two halves of a sign leaves, is no reason to fail."""
    text = digest_of([said("user", "Never touch prod.db \ud83d again."), said("user", "Go.")])
    assert "Never touch prod.db \ud83d again." in text


def test_of_a_very_long_text_both_ends_are_read() -> None:
    long = "Never delete x_1.txt. " + "a_b." * 200_000 + " Never touch y_2.txt."
    text = digest_of([said("user", long), said("assistant", "ok")])
    assert [rule in text for rule in ("Never delete x_1.txt.", "Never touch y_2.txt.")] == [True, True]


def test_nothing_to_say_is_a_failure_not_an_empty_summary() -> None:
    with pytest.raises(SummaryFailed):
        digest_of([said("user", ""), said("assistant", "")])


@pytest.mark.parametrize(
    ("name", "part"),
    [("coding_long", slice(2)), ("tau_long", slice(4)), ("openhands", slice(None)), ("whowhen_multiagent", slice(0, None, 8))],
)
def test_five_rounds_keep_seven_tenths_of_the_first_facts(
    name: str, part: slice, corpus: Callable[[str], list[dict[str, Any]]]
) -> None:
    """Of all these conversations together, as what was pasted into the first task gives way to later words."""
    held = kept = 0
    for recorded in corpus(name)[part]:
        if digests := five_rounds(recorded["messages"]):
            first = facts(digests[0])
            held += len(first)
            kept += sum(fact in digests[4] for fact in first)
    assert kept >= 0.7 * held > 0


def five_rounds(source: Chat) -> list[str] | None:
    """Return five digests of a growing conversation at the first window that forces five rounds, if one does."""
    total = MessageIndex(source, counter="chars/4").total.tokens
    for part in (1.75, 2.25, 3.0, 4.0, 6.0, 1.25):
        window = int(total / part)
        if window >= 2_000 and (found := rounds(source, with_first_messages(window))) is not None:
            return found
    return None


def with_first_messages(window: int) -> Pipeline:
    """``hermes()`` that keeps the first messages even if they and the newest messages reach the threshold."""
    preset = presets.hermes(window, protect_last_n=4)
    clear, summarize = preset.steps[:2]
    assert isinstance(summarize, Summarization)
    keep = first(messages=3) | last(tokens=window // 10) | last(messages=4)
    return Pipeline(clear, attrs.evolve(summarize, keep=keep), trigger=preset.trigger)


def rounds(source: Chat, pipeline: Any) -> list[str] | None:
    index = MessageIndex(counter="chars/4")
    digests: list[str] = []
    for message in source:
        index.append([message])
        before = index.included.tokens
        if not run_sync(index, pipeline).edits:
            continue
        assert index.included.tokens <= before
        for group in index.included_groups:
            text = SummaryText().read(group.messages[0]) if group.kind is GroupKind.SUMMARY else None
            if text is not None and text not in digests[-1:]:
                digests.append(text)
        if len(digests) == 5:
            return digests
    return None


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("Rechnung: 1.225,56 €, dann 425,25 €", ["1.225,56", "425,25"]),
        ("It is $1,225.56, and 1,234,567.8.", ["$1,225.56", "1,234,567.8"]),
        ("pi is 3.14,2.71", ["3.14", "2.71"]),
        ("rows 12,34,56", []),
    ],
)
def test_a_number_with_a_comma_is_one_value(text: str, values: list[str]) -> None:
    """An amount is exact as most of Europe writes it, too; a list of numbers is not an amount."""
    assert list(facts_in(text)) == values


@pytest.mark.parametrize("summarizer", [DigestSummarizer(growth=1.0), FactSummarizer()], ids=["digest", "facts"])
def test_what_the_focus_names_is_kept_first(summarizer: DigestSummarizer | FactSummarizer) -> None:
    things = ("lamp", "hinge", "carpet", "mirror", "ladder", "window")
    messages = [said("user", f"My {thing} in the hall came from a shop in Oslo.") for thing in things]
    kept = {focus: summarizer.summarize(request_for(summarizer, messages, budget=60, focus=focus)) for focus in things[1:]}
    assert [focus for focus, text in kept.items() if f"My {focus}" not in text] == []


def planned(id: str, **states: str) -> Chat:
    """A call that hands over the agent's tasks with their states, and its result."""
    tasks = [{"id": n, "content": task.replace("_", " "), "status": states[task]} for n, task in enumerate(states)]
    arguments = json.dumps({"todos": tasks})
    return [call(id, name="TodoWrite", arguments=arguments), result(id, "Todos have been modified.")]


@pytest.mark.parametrize("summarizer", [DigestSummarizer(), FactSummarizer()])
def test_the_latest_plan_of_the_agent_is_told(summarizer: DigestSummarizer | FactSummarizer) -> None:
    """Each task has its state; the states of before, and those of an earlier summary, are gone."""
    chat = [said("user", "Go."), *planned("a", Port_it="in_progress", Test_it="pending")]
    first_text = summarizer.summarize(request_for(summarizer, chat, budget=200))
    assert "## Next Steps\n- TodoWrite: in_progress: Port it\n- TodoWrite: pending: Test it" in first_text
    later = planned("b", Port_it="completed", Test_it="In Progress", Merge_it="pending")
    for messages, previous in (([*chat, *later], None), (later, first_text)):
        text = summarizer.summarize(request_for(summarizer, messages, budget=300, previous=previous))
        assert "## Next Steps\n- TodoWrite: In Progress: Test it\n- TodoWrite: pending: Merge it" in text
        assert "TodoWrite: completed: Port it" in text
        assert "in_progress: Port it" not in text
        assert "TodoWrite(" not in text


def test_a_list_with_other_states_is_no_plan() -> None:
    """Data that a tool hands over is not a plan of the agent."""
    chat = [said("user", "Go."), *planned("a", Box_7="shipped", Box_9="pending")]
    assert "Next Steps" not in digest_of(chat)


@pytest.mark.parametrize(
    "told",
    [
        "The user doesn't want to proceed. The tool use was rejected (eg. the file was NOT written). The user said:\n{}",
        "The user denied this operation and provided the following feedback:\n<feedback>\n{}\n</feedback>",
    ],
)
def test_why_the_user_denied_a_call_is_quoted_as_the_reason_of_a_denial(told: str) -> None:
    """They come from a result, which anybody may have written, so they never stand under the rules."""
    chat = [said("user", "Go."), *ran("a", "edit mailer.py", told.format("Keep the signature of send()."))]
    for summarizer in (DigestSummarizer(), FactSummarizer()):
        written = summarizer.summarize(request_for(summarizer, chat, budget=120))
        assert "- run denied: Keep the signature of send()." in written
        assert "Constraints" not in written


@pytest.mark.parametrize(
    "found",
    [
        "So far: Gamma is the only one that meets all three (37 ms, 870 USD, Frankfurt).",
        "Noted: Duarte (2022): r = .29, 95% CI [.20, .37], n = 2,010.",
        "14 of 61 files are renamed.",
    ],
)
def test_what_the_assistant_found_is_quoted(found: str) -> None:
    """A sentence with a value says more than the value in a list of facts; what the assistant only announces is left out."""
    chat = [said("user", "Compare them."), said("assistant", f"The next one comes now. {found}"), said("assistant", "ok")]
    for summarizer in (DigestSummarizer(), FactSummarizer()):
        text = summarizer.summarize(request_for(summarizer, chat, budget=120))
        assert f"- Assistant: {found}" in text
        assert "next one" not in text


def test_a_list_of_facts_has_room_for_a_finding() -> None:
    """Findings have a share of their own; without it, the names and numbers of long results take all the room."""
    found = "I found the cause: cache.py never removes entries older than 300 s."
    results = ["\n".join(f"/srv/part_{place}_{row}.log {place * row + 1000} B" for row in range(9)) for place in range(20)]
    chat = [said("user", "Find the leak."), said("assistant", found)]
    for place, text in enumerate(results):
        chat += ran(f"c{place}", f"scan {place}", text)
    summarizer = FactSummarizer()
    text = summarizer.summarize(request_for(summarizer, chat, budget=300))
    assert f"- Assistant: {found}" in text
    assert "part_" in text


def asked(call_id: str, tool: str, output: object, **arguments: object) -> Chat:
    """A call of a tool, and its result in JSON, or in its own words."""
    told = output if isinstance(output, str) else json.dumps(output)
    return [call(call_id, name=tool, arguments=json.dumps(arguments)), result(call_id, told)]


def test_facts_of_one_result_stand_behind_its_call_in_their_order() -> None:
    """Alone, a number of a result says nothing."""
    order = {"total": "412.50", "items": [{"sku": "KX-20331", "price": "199.00"}, {"sku": "KX-70778", "price": "213.50"}]}
    wrapped = [{"type": "text", "text": json.dumps({"id": "PAY-446", "note": "a\nTXN-9"})}]
    chat = [
        said("user", "Help me."),
        *asked("c1", "get_order", order, id="W-12"),
        *asked("c2", "get_payment", wrapped, id="W-13"),
    ]
    text = FactSummarizer().summarize(request_for(FactSummarizer(), chat, budget=400))
    assert "- From get_order(W-12): 412.50 KX-20331 199.00 KX-70778 213.50" in text
    assert "- From get_payment(W-13): PAY-446 TXN-9" in text


def test_what_a_call_changed_is_told_with_what_came_back() -> None:
    """It comes before reading, so that nothing is ordered twice."""
    reads = [each for n in range(30) for each in asked(f"r{n}", "get_page", {"text": f"Row {n} holds AB-{n}77. " * 9}, page=n)]
    receipt = {"order": "OST/2026/5519", "status": "ACCEPTED", "note": "word " * 30}
    chat = [said("user", "Order it."), *asked("c1", "place_order", receipt, po="PO-77120"), *reads]
    chat += asked("c2", "open_ticket", {"ticket": "FIN-20931", "note": "word " * 30}, to="finance")
    for summarizer in (DigestSummarizer(), FactSummarizer()):
        text = summarizer.summarize(request_for(summarizer, chat, budget=400))
        assert "- place_order(PO-77120) -> OST/2026/5519 ACCEPTED" in text
        assert "- open_ticket(finance) -> FIN-20931" in text


CODE = "".join(f"{n}: value_{n} = read({n})\n" for n in range(40))


def test_an_error_in_what_was_read_is_no_failure() -> None:
    code = f"{CODE}except socket.error: raise\nraise ValueError: none\n"
    chat = [said("user", "Read it."), *asked("c1", "read_file", code, path="a.py"), *ran("c2", "sed -n 1,60p b.py", code)]
    assert "### Blocked" not in digest_of(chat)
    assert "### Blocked" in digest_of([*chat, *asked("c3", "read_file", "Error: no such file", path="c.py")[:1], failure("c3")])


def failure(id: str) -> dict[str, Any]:
    return result(id, "Wall time: 0.1 seconds\nProcess exited with code 1\nOutput:\nno c.py")


def test_a_call_with_another_description_is_the_same_call() -> None:
    def tests(id: str, description: str, output: str) -> Chat:
        return asked(id, "Bash", output, command="pnpm test", description=description)

    chat = [said("user", "Fix it."), *tests("c1", "Run tests", "AssertionError: 1"), *tests("c2", "Again", "15 passed")]
    text = digest_of(chat)
    assert ("### Blocked" in text, "- Bash(pnpm test) -> 15 passed" in text) == (False, True)


def test_what_an_agent_puts_before_a_result_is_no_part_of_it() -> None:
    envelope = "Chunk ID: 783f6d\nWall time: 0.0510 seconds\nProcess exited with code 0\nOriginal token count: 2557\nOutput:\n"
    chat = [
        said("user", "Commit it."),
        *asked("c1", "exec_command", f"{envelope}[main 4be17c0] Fix it", cmd="git commit -m fix"),
    ]
    text = digest_of(chat)
    assert "exec_command(git commit -m fix) -> [main 4be17c0] Fix it" in text
    assert not any(each in text for each in ("783f6d", "2557", "0.0510"))


def test_calls_that_stay_in_the_view_are_not_told() -> None:
    """Behind the summary stand readings from before such a call: told first, it would look undone."""
    edits = asked("c2", "edit_file", "replicas: 10", path="web.yaml")
    chat = [said("user", "Scale it."), *asked("c1", "edit_file", "region: eu", path="db.yaml"), *edits]
    for shortened, told in ((0, True), (2, False)):
        messages = [message for group in MessageIndex(chat, counter="chars/4").included_groups for message in group.messages]
        text = digest_of([], groups=(), sources=tuple(messages), shortened=shortened)
        assert ("edit_file(db.yaml)" in text, "edit_file(web.yaml)" in text) == (True, told)


def test_parallel_calls_are_told_in_their_order() -> None:
    names = ["Pressa", "Lind", "Mirkon"]
    calls = [(f"c{n}", json.dumps({"supplier": name})) for n, name in enumerate(names)]
    asks = [{"id": id, "type": "function", "function": {"name": "send_offer", "arguments": given}} for id, given in calls]
    chat = [said("user", "Ask all."), {"role": "assistant", "tool_calls": asks}, *(result(id, "sent") for id, _ in calls)]
    text = digest_of(chat)
    assert [name for line in text.splitlines() for name in names if f"send_offer({name})" in line] == names


def test_files_of_a_patch_are_changed_and_half_words_are_no_facts() -> None:
    patch = "*** Begin Patch\n*** Update File: src/core.py\n+x = 1\n*** End Patch"
    chat = [said("user", "Fix it."), *asked("c1", "apply_patch", "Done.", input=patch)]
    text = digest_of(chat)
    assert "- Changed: src/core.py" in text
    assert [*facts_in("baske…225 and order_71")] == ["order_71"]

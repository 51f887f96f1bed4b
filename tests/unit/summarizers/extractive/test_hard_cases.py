"""Rare forms of what people and programs write: nothing of them is lost, and none stops a compaction."""

from __future__ import annotations

import pytest

from compaction import compact_sync, presets
from compaction.strategies import Strategy
from compaction.summarizers.extractive.actions import error_in
from compaction.summarizers.extractive.facts import FactTable
from compaction.summarizers.extractive.kinds import Kind, names_person
from compaction.summarizers.extractive.passages import passages
from compaction.summarizers.extractive.sentences import one_line
from compaction.summarizers.extractive.statement_table import MOST, StatementTable
from compaction.summarizers.extractive.statements import user_statements
from compaction.summarizers.model_calls import brief
from compaction.summarizers.redaction import redact
from tests.unit.summarizers.extractive.test_memory import memory_of, ran, read, said


def told(*texts: str) -> StatementTable:
    """Return the table of what the user says in these messages."""
    table = StatementTable()
    for table.place, text in enumerate(texts, 1):
        for statement in user_statements(passages(text)):
            table.say(statement)
    return table


def lines(table: StatementTable) -> list[str]:
    return [each.text for each in table.current.values()]


@pytest.mark.parametrize("text", ["Статья в Ъ.", "ь", "a \u200c b", "5\u200c", "1\u200c2"])
@pytest.mark.parametrize(
    "strategy", [presets.token_budget(400), presets.adaptive(800), presets.hermes(800), presets.context_window(800)]
)
def test_a_letter_that_no_other_script_has_is_a_word(text: str, strategy: Strategy) -> None:
    """A sign or a half-space may stand alone, and has no Latin letter."""
    talk = [{"role": ("user", "assistant")[n % 2], "content": f"{text} Shelf {n}. " + "So it is. " * 20} for n in range(30)]
    assert compact_sync(talk, strategy, counter="chars/4").outcome == "compacted"


def test_a_value_that_holds_again_is_the_latest() -> None:
    """A rule that is said again is not outdated by what was said between, which is."""
    low, high = "Never pay above 100.", "From now on never pay above 200."
    table = told(low, high, low)
    assert lines(table) == ["Never pay above 100. (was 200 until message 3)"]


def test_a_rule_tells_the_latest_of_several_values() -> None:
    table = told("You must never spend above 100.", "We now spend never above 200.", "We now spend never above 300.")
    assert lines(table)[0] == "You must never spend above 100. (now 300, since message 3)"


def test_one_rule_below_two_headings_is_two() -> None:
    table = told("Staging:\n- never restart it by hand\n\nProduction:\n- never restart it by hand\n- never log in as root")
    assert lines(table) == ["never restart it by hand", "Production: never restart it by hand", "never log in as root"]


def test_a_table_holds_nothing_of_what_it_has_forgotten() -> None:
    table = StatementTable()
    for table.place in range(2 * MOST):
        for statement in user_statements(passages(f"Shelf q{table.place}x holds box {table.place}.")):
            table.say(statement)
        table.prune()
    assert len(table.current) <= MOST
    held = {stem for each in table.current.values() for stem in each.statement.stems}
    assert set(table._with_stem) == held


def test_of_very_many_facts_half_are_forgotten() -> None:
    table = FactTable()
    for place in range(60):
        table.add({f"id-{place * 500 + n}x": 1 for n in range(500)})
        table.prune()
    assert len(table.best()) < 10_000


def test_of_facts_seen_alike_the_one_seen_last_comes_first() -> None:
    table = FactTable()
    for fact in ("box-a", "box-b", "box-a", "box-b"):
        table.add({fact: 1})
    assert table.best() == ["box-b", "box-a"]


def test_calls_without_a_result_are_forgotten_some_day() -> None:
    memory = memory_of([message for place in range(MOST + 2) for message in ran(f"ls {place}", "")[:1]])
    assert len(memory._open) <= MOST


def plan(arguments: str) -> dict[str, object]:
    call = {"id": arguments, "type": "function", "function": {"name": "todo", "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def test_a_call_that_reads_the_plan_leaves_it() -> None:
    made = plan('{"todos": [{"content": "Port it", "status": "pending"}]}')
    assert memory_of(read(made, plan("{}"))).plans["todo"].plan == ("pending: Port it",)
    assert memory_of(read(made, plan('{"todos": []}'))).plans["todo"].plan == ()
    assert memory_of(read(made, plan('{"merge": false, "ids": [], "todos": [{"content": "a", "status": "done"}]}'))).plans[
        "todo"
    ].plan == ("done: a",)


def test_a_call_without_a_list_is_an_action_though_its_tool_took_one() -> None:
    """A list of tickets looks like a plan; a call that names a single one works on it."""
    memory = memory_of(read(plan('{"tickets": [{"title": "Printer", "status": "open"}]}'), plan('{"id": 7}'), plan("{}")))
    assert [each.line for each in memory.actions.values()] == ["todo(7) -> no result"]


def test_inches_quote_nothing() -> None:
    text = 'Cut the 24" boards first. Never use the red saw. Always ask me before you order wood.'
    assert [each.by for each in user_statements(passages(text))] == [""] * 3
    quoted = 'He said: "Never use the red saw. It takes 24". Call me.'
    assert [each.by for each in user_statements(passages(quoted))] == ["Quoted or pasted", "Quoted or pasted", ""]


def test_code_between_three_ticks_in_a_line_opens_no_block() -> None:
    assert [each.kind for each in user_statements(passages("```npm test``` fails on main.\nNever touch prod.db."))][
        -1
    ] is Kind.RULE


def test_of_very_many_lines_both_ends_are_read() -> None:
    text = "\n".join(["Never touch a.db.", *[f"row {n}" for n in range(4_500)], "Never touch prod.db."])
    found = [each.text for each in user_statements(passages(text))]
    assert (found[0], found[-1]) == ("Never touch a.db.", "Never touch prod.db.")


def test_a_person_may_have_the_name_of_a_machine_within_the_own() -> None:
    spoken = {"role": "user", "name": "computer_science_student", "content": "Never touch prod.db."}
    machines = [{**spoken, "name": name} for name in ("tool_results_2", "code_executor_agent", "CodeExecutorAgent")]
    assert [len(memory_of(read(each)).statements.current) for each in (spoken, *machines)] == [1, 0, 0, 0]


@pytest.mark.parametrize("text", ["passed: 40\nfailed: 0", "FAILED: 0", "tests failed: 0", "errors: none, warnings: 3"])
def test_none_that_failed_is_no_failure(text: str) -> None:
    assert error_in(text) is None


@pytest.mark.parametrize("text", ["passed: 40\nfailed: 3", "FAILED: 3", "tests failed: 0.5 s: no disk", "error: 0 files"])
def test_what_failed_is_a_failure(text: str) -> None:
    assert error_in(text) is not None


def test_what_a_demonstration_repeats_was_said_before() -> None:
    rule = "Never touch prod.db."
    shown = f"{rule}\n" + "\n".join(f"2026-01-03 10:11:{n % 60:02} INFO row {n} was read from the file" for n in range(80))
    assert rule in [each.statement.text for each in memory_of(said(rule, shown, "Now fix it.")).statements.current.values()]


def test_a_mark_behind_a_person_is_not_part_of_the_word() -> None:
    assert [names_person("Leave it to me."), names_person("Leave it to mel.")] == [True, False]


def test_a_line_that_was_cut_says_so() -> None:
    assert one_line("ok" + " " * 1000 + "but 3 failed", 60) == "ok ..."


def test_no_half_of_a_secret_is_told() -> None:
    key = "sk-ant-abcdefghij1234567890ABCDEF"
    assert "sk-ant" not in brief(" " * 1_180 + key, redact)
    assert "sk-ant" not in brief(" " * 19_990 + key, redact)
    assert "xyz99" not in redact('{"password": "hunter2\\"xyz99", "user": "ann"}')
    assert '"user": "ann"' in redact('{"password": "hunter2\\"xyz99", "user": "ann"}')

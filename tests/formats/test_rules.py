"""The rules of every format: the examples on their page, and their scopes, for a message, two neighbours or more."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.rule_pages import WIRE_FORMATS, examples_of, page_of, page_path
from compaction.errors import InvalidMessage
from compaction.formats import MessageFormat, Problem, gemini, openai_chat
from compaction.formats.pairing import message_fields
from compaction.formats.rulebook import WireFormat
from compaction.messages import Message
from tests.support.rulebook import cases, expect_unrepaired, rules
from tests.support.wires import any_conversation, wrecked

SCOPES: Final = {
    format: {rule: entry["scope"] for rule, entry in examples_of(format.name)["rules"].items()} for format in WIRE_FORMATS
}
"""The scope of each rule: ``message``, ``join`` or ``reach``."""
EXAMPLES: Final[list[Any]] = [raw for row in (*cases("VALID"), *cases("FAULTS")) for raw in row.values[1]]
"""The messages in the examples of every format."""
each_format = pytest.mark.parametrize("format", SCOPES, ids=repr)


def each_rule(*scopes: str) -> pytest.MarkDecorator:
    """Parametrize a test with every rule of these scopes, the list that it refuses and the one that it accepts."""
    rows = [
        pytest.param(format, rule, entry["refused"], entry["accepted"], id=f"{format.name}: {rule}")
        for format in SCOPES
        for rule, entry in examples_of(format.name)["rules"].items()
        if entry["scope"] in scopes
    ]
    return pytest.mark.parametrize(("format", "rule", "refused", "accepted"), rows)


@each_format
def test_the_page_is_up_to_date(format: WireFormat) -> None:
    assert page_path(format.name).read_text(encoding="utf-8") == page_of(format)


@each_format
def test_every_rule_has_an_example(format: WireFormat) -> None:
    """The examples name exactly the rules in the code, in the same order, and each entry has a source."""
    entries = examples_of(format.name)["rules"]
    assert list(entries) == list(format.book.rules)
    assert [rule for rule, entry in entries.items() if not entry["source"]] == []


@each_rule("message", "join", "reach")
def test_a_rule_does_what_its_page_says(format: WireFormat, rule: str, refused: list[Any], accepted: list[Any]) -> None:
    """It refuses one list and accepts another, and is broken after a repair exactly if its table does not name a repair."""
    known = format.book.rules[rule]
    assert [(problem.rule, problem.remedy) for problem in format.validate(refused)] == [(rule, known.remedy)]
    assert rules(format, accepted) == []
    expect_unrepaired(format, accepted)
    done = format.repair(refused)
    assert (rule in rules(format, done.messages)) == (known.repair is None)
    assert bool(done.changes) == (known.repair is not None)


@st.composite
def lists(draw: st.DrawFn) -> tuple[MessageFormat, list[Any]]:
    """Draw a list in one of the formats, valid or with messages missing, added, moved or broken."""
    format = draw(st.sampled_from(list(SCOPES)))
    written = any_conversation(format)
    messages = list(draw(written | wrecked(written)))
    messages += draw(st.lists(st.sampled_from(EXAMPLES), max_size=6))
    return format, draw(st.permutations(messages)) if draw(st.booleans()) else messages


def place(problem: Problem) -> int:
    found = re.match(r"messages\[(\d+)\]", problem.where)
    return -1 if found is None else int(found[1])


def of_scope(format: MessageFormat, scope: str, problems: Sequence[Problem]) -> list[Problem]:
    return [problem for problem in problems if SCOPES[format][problem.rule] == scope]


def readable(format: MessageFormat, raws: Sequence[Any]) -> list[tuple[Any, Message]]:
    """Return the messages that can be read, each with its raw message."""
    read: list[tuple[Any, Message]] = []
    for raw in raws:
        try:
            read.append((raw, format.read(raw)))
        except InvalidMessage:
            continue
    return read


def joins(format: MessageFormat, messages: Sequence[Message]) -> set[tuple[int, str]]:
    """Return the place and rule of each problem between neighbours; leading instructions are the start of the list."""
    leading = next((place for place, message in enumerate(messages) if message.role != "system"), len(messages))
    found: set[tuple[int, str]] = set()
    for place in range(len(messages) + 1):
        before = messages[place - 1] if place > leading else None
        after = messages[place] if place < len(messages) else None
        problem = format.join_problem(before, after)
        assert format.follows(before, after) == (problem is None)
        if problem is not None:
            rule, side = problem
            found |= {(at, rule) for at, name in ((place - 1, "before"), (place, "after")) if side in (name, "both")}
    return found


@each_format
def test_every_rule_has_one_scope(format: MessageFormat) -> None:
    """Each format has rules of the scopes ``message`` and ``reach``, and of ``join`` exactly if neighbours are judged."""
    scopes = set(SCOPES[format].values())
    assert scopes - {"join"} == {"message", "reach"}
    assert ("join" in scopes) == format.judges_joins == (format.book.join is not None)


@given(lists())
def test_a_message_alone_is_judged_as_by_validate(given: tuple[MessageFormat, list[Any]]) -> None:
    """A list of one message breaks the rules of the scope ``message`` that it breaks by itself, and no others of that scope.

    An answer without content is accepted at the end of a list.
    """
    format, raws = given
    for raw in raws:
        found = [] if format.book.accepts_last(message_fields(raw)) else format.message_problems(raw)
        assert of_scope(format, "message", format.validate([raw])) == found


@given(lists())
def test_the_problems_of_messages_are_their_own(given: tuple[MessageFormat, list[Any]]) -> None:
    """Within a list too; but an answer without a content is a problem where the list does not end with it."""
    format, raws = given
    found = of_scope(format, "message", format.validate(raws))
    assert [(place(problem), problem.rule) for problem in found if problem.rule != "empty-content"] == [
        (index, problem.rule)
        for index, raw in enumerate(raws)
        for problem in format.message_problems(raw)
        if problem.rule != "empty-content"
    ]


@given(lists())
def test_neighbours_are_judged_as_by_validate(given: tuple[MessageFormat, list[Any]]) -> None:
    format, raws = given
    read = readable(format, raws)
    found = of_scope(format, "join", format.validate([raw for raw, _ in read]))
    assert {(place(problem), problem.rule) for problem in found} == joins(format, [message for _, message in read])


@each_rule("join")
def test_a_join_is_refused_and_accepted(format: MessageFormat, rule: str, refused: list[Any], accepted: list[Any]) -> None:
    assert {rule for _, rule in joins(format, [format.read(raw) for raw in refused])} == {rule}
    assert joins(format, [format.read(raw) for raw in accepted]) == set()


@each_format
def test_what_an_edit_may_not_bring_in(format: MessageFormat) -> None:
    """An edit may not add a message of another format, an empty message or one that breaks a rule by itself."""
    other = gemini if format is openai_chat else openai_chat
    assert format.acceptable(format.new("user", "What time is it?")) is None
    assert f"format {other.name} is not allowed" in str(format.acceptable(other.new("user", "What time is it?")))
    for text in ("", " \n"):
        assert format.acceptable(format.new("user", text)) == "the message is empty"
    assert "breaks the rule unknown-role" in str(format.acceptable(format.new("critic", "It is late.")))


def test_what_is_not_text_says_something() -> None:
    """Messages with media, calls or results, but without text, are not empty, and an edit may add them."""
    image = {"type": "image_url", "image_url": {"url": "https://example.com/plan.png"}}
    call = {"id": "call_1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
    for raw in (
        {"role": "user", "content": [image]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": ""},
    ):
        assert openai_chat.acceptable(openai_chat.read(raw)) is None

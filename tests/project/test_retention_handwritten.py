"""The benchmark of conversations written by hand: its format is read as it is described, and its judge is strict and fair."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Sequence
from typing import Any

import pytest

from benchmarks.retention.handwritten.conversations import FOLDER, Conversation, conversation, names, parsed
from benchmarks.retention.handwritten.judging import Judge, Present, has, has_source, shown
from benchmarks.retention.handwritten.scores import Outcome, outcomes
from benchmarks.retention.handwritten.subjects import SUBJECTS
from compaction.formats import validate
from compaction.tokens import counter

CHARS = counter("chars/4")
TEXT = """\
title: A hut
kind: travel
language: en
system: You plan trips.

User: No trains before 9:30. We pay at most 1,200 euros.
  Nobody eats fish.
@rule trains: no trains before 9:30
@value: 1200 euros
@fact: nobody eats fish
Assistant: There are two huts. Shall I take the one at the lake? {+2}
Mara: yes, do
@answer: Mara + yes << the one at the lake
Call: book(hut="lake", nights=3)
Call: mail(to="Ole")
Result: booked
Result: {log 3}
Assistant: It is booked.
Mara: My uncle says: "You must always pay in advance."
@foreign: always pay in advance << uncle
User: Earlier trains are fine after all.
@drop trains: earlier trains are fine
"""
HUT = parsed(TEXT, "hut")


def texts(*said: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": each} for each in said]


def present(view: Sequence[Any], said: Conversation = HUT) -> Present:
    return Judge(said).present(view, len(said.messages))


def test_the_texts_are_frozen() -> None:
    """Every conversation has the hash in ``frozen.toml``: it did not change since the figures were measured."""
    frozen = tomllib.loads((FOLDER.parent / "frozen.toml").read_text("utf-8"))["conversations"]
    assert {path.stem: hashlib.sha256(path.read_bytes()).hexdigest() for path in FOLDER.iterdir()} == frozen


@pytest.mark.parametrize("name", names())
def test_each_conversation_is_valid_and_has_what_is_marked(name: str) -> None:
    """A conversation is a valid list of forty messages and more, the same each time, and each mark is true of its message."""
    said = conversation(name)
    messages = list(said.messages)
    assert validate(messages) == []
    assert said.messages == parsed((FOLDER / f"{name}.txt").read_text("utf-8"), name).messages
    assert len(messages) > 40
    assert said.kind
    assert len(present(messages, said).items) == len(said.items) >= 20
    for item in said.items:
        assert has(messages[item.at : item.at + 1], item.words), item.text
        assert not item.about or has(messages[max(0, item.at - 3) : item.at], item.about), item.text
        assert item.revoked_by is None or has([messages[item.revoked_by.at]], item.revoked_by.words), item.text
    for item in said.foreign:
        assert has_source(shown(messages[item.at]), item), item.text


def test_a_text_becomes_messages() -> None:
    """Speakers are roles or people, indented lines continue a message, and calls in a row are one message."""
    assert [each["role"] for each in HUT.messages] == [
        *("system", "user", "assistant", "user", "assistant", "tool", "tool", "assistant", "user", "user"),
    ]
    assert HUT.messages[0]["content"] == "You plan trips."
    assert HUT.messages[1]["content"].splitlines()[1] == "Nobody eats fish."
    assert HUT.messages[3]["content"] == "Mara: yes, do"
    assert [each["function"]["arguments"] for each in HUT.messages[4]["tool_calls"]] == [
        '{"hut": "lake", "nights": 3}',
        '{"to": "Ole"}',
    ]
    assert len(HUT.messages[6]["content"].splitlines()) == 3
    assert parsed(TEXT.replace("system:", "names: field\nsystem:"), "hut").messages[3] == {
        "role": "user",
        "name": "Mara",
        "content": "yes, do",
    }


def test_marks_say_until_when_an_item_is_due() -> None:
    rule, value, *_ = HUT.items
    assert [rule.is_due(count) for count in (1, 2, 9, 10)] == [False, True, True, False]
    assert [value.is_due(count) for count in (1, 2, 10)] == [False, True, True]
    assert [item.text for item in HUT.foreign] == ["always pay in advance"]


@pytest.mark.parametrize("line", ["@wish: a lake", "@drop hut: no hut", "without a speaker"])
def test_a_line_that_is_none_of_the_format_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="hut: "):
        parsed(f"title: x\nkind: x\nlanguage: en\n\nUser: hello\n{line}\n", "hut")


@pytest.mark.parametrize(
    ("view", "found"),
    [
        (["no trains  before “9:30”, and at most 1.200 euros"], {0, 1}),
        (["No trains before 9:30 and nobody eats fish"], {0, 2}),
        (["No trains before", "9:30"], set()),
        (["No trains before 9:3, 11,200 euros"], set()),
        (["Shall I take the one at the lake?", "Mara: yes, do"], {3}),
        (["- Mara: yes, do (the assistant had asked about the one at the lake)"], {3}),
        (["Mara: yes, do"], set()),
        (["Shall I take the one at the lake?", "a", "b", "c", "Mara: yes, do"], set()),
        (["Mara: yes, do\nDone.\n\nShall I take the one at the lake?"], {3}),
        (["Mara: yes, do" + "\nand so on" * 5 + "\nthe one at the lake"], set()),
        (["yes, do, the one at the lake"], set()),
    ],
)
def test_what_counts_as_present(view: list[str], found: set[int]) -> None:
    assert present(texts(*view)).items == found


@pytest.mark.parametrize(
    ("view", "stale"),
    [
        (["No trains before 9:30."], {0}),
        (["No trains before 9:30.", "Earlier trains are fine after all."], set()),
        (["Earlier trains are fine after all."], set()),
    ],
)
def test_what_was_revoked_may_stand_only_with_its_revocation(view: list[str], stale: set[int]) -> None:
    assert present(texts(*view)).stale == stale


@pytest.mark.parametrize(
    ("view", "claimed"),
    [
        (texts("- You must always pay in advance."), {0}),
        (texts("- My uncle says: You must always pay in advance."), set()),
        (texts("[perhaps the output of a program] You must always pay in advance."), set()),
        (list(HUT.messages), set()),
    ],
)
def test_words_of_others_need_their_source(view: list[Any], claimed: set[int]) -> None:
    assert present(view).claimed == claimed


def outcome(subject: str, share: float) -> Outcome:
    [found] = outcomes([conversation("kitchen_numbers")], {subject: SUBJECTS[subject]}, [share], CHARS)
    return found


@pytest.mark.parametrize("subject", sorted(SUBJECTS.keys() - {"people"}))
def test_a_window_for_everything_keeps_everything(subject: str) -> None:
    found = outcome(subject, 3)
    assert [score.item.text for score in found.scores if score.missing] == []
    assert (found.stale, found.claimed, found.sent, found.over) == ((), (), 1, 0)


def test_dropping_the_oldest_messages_loses_items() -> None:
    found = outcome("truncation", 0.2)
    assert sum(score.at_end is False for score in found.scores) > 15
    assert found.sent < 0.5

"""The rules of every format, tested by the examples on their page: each rule refuses one list and accepts another."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.rule_pages import WIRE_FORMATS, examples_of, page_of, page_path
from compaction.formats.rulebook import WireFormat
from tests.support.rulebook import examples, expect_unrepaired, rules

each_format = pytest.mark.parametrize("format", WIRE_FORMATS, ids=repr)
each_rule = pytest.mark.parametrize(
    ("format", "rule", "refused", "accepted"),
    [
        pytest.param(format, *example, id=f"{format.name}: {example[0]}")
        for format in WIRE_FORMATS
        for example in examples(format.name)
    ],
)


@each_format
def test_the_page_is_up_to_date(format: WireFormat) -> None:
    assert page_path(format.name).read_text(encoding="utf-8") == page_of(format)


@each_format
def test_every_rule_has_an_example(format: WireFormat) -> None:
    """The examples name exactly the rules in the code, in the same order, and each entry has a source."""
    entries = examples_of(format.name)["rules"]
    assert list(entries) == list(format.book.rules)
    assert [rule for rule, entry in entries.items() if not entry["source"]] == []


@each_rule
def test_a_rule_refuses_its_example(format: WireFormat, rule: str, refused: list[Any], accepted: list[Any]) -> None:
    assert [(problem.rule, problem.remedy) for problem in format.validate(refused)] == [(rule, format.book.rules[rule].remedy)]


@each_rule
def test_a_rule_accepts_its_example(format: WireFormat, rule: str, refused: list[Any], accepted: list[Any]) -> None:
    assert rules(format, accepted) == []
    expect_unrepaired(format, accepted)


@each_rule
def test_repair_does_what_the_page_says(format: WireFormat, rule: str, refused: list[Any], accepted: list[Any]) -> None:
    """A rule is broken after a repair exactly if its table does not say how it is repaired."""
    done = format.repair(refused)
    assert (rule in rules(format, done.messages)) == (format.book.rules[rule].repair is None)
    assert bool(done.changes) == (format.book.rules[rule].repair is not None)

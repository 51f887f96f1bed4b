"""The rules of every format, by their page: each refuses its example and accepts the one beside it."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.rule_pages import FORMATS, examples_of, page_of, page_path
from compaction.formats.rulebook import WireFormat
from tests.support.rulebook import examples, expect_unrepaired, places, repairs, rules

each_format = pytest.mark.parametrize("format", FORMATS, ids=repr)
each_rule = pytest.mark.parametrize(
    ("format", "rule", "refused", "accepted"),
    [
        pytest.param(format, *example, id=f"{format.name}: {example[0]}")
        for format in FORMATS
        for example in examples(format.name)
    ],
)


@each_format
def test_the_page_is_up_to_date(format: WireFormat) -> None:
    """``python -m benchmarks.rule_pages`` writes it from the rules and their examples."""
    assert page_path(format.name).read_text(encoding="utf-8") == page_of(format)


@each_format
def test_every_rule_has_an_example(format: WireFormat) -> None:
    """The examples name exactly the rules of the code, in their order, and each entry is filled in."""
    entries = examples_of(format.name)["rules"]
    assert list(entries) == list(format.book.rules)
    assert [rule for rule, entry in entries.items() if not entry["repair"] or not entry["source"]] == []


@each_rule
def test_a_rule_refuses_its_example(format: WireFormat, rule: str, refused: list[Any], accepted: list[Any]) -> None:
    """A list that breaks one rule is reported under that name, once, with the rule's remedy."""
    assert [(problem.rule, problem.remedy) for problem in format.validate(refused)] == [(rule, format.book.rules[rule].remedy)]


@each_rule
def test_a_rule_accepts_its_example(format: WireFormat, rule: str, refused: list[Any], accepted: list[Any]) -> None:
    """The list beside it breaks no rule and needs no repair."""
    assert places(format, accepted) == []
    expect_unrepaired(format, accepted)


@each_rule
def test_repair_does_what_the_page_says(format: WireFormat, rule: str, refused: list[Any], accepted: list[Any]) -> None:
    """A rule of which the page says that the repair does nothing has no fix, and stays broken; any other one does not."""
    repaired = repairs(format.name)[rule] != "Nothing."
    assert (rule in rules(format, format.repair(refused).messages)) != repaired
    assert (format.book.rules[rule].fix is not None) == repaired

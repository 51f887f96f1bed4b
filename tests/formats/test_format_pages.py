"""The rules of every format but chat completions, by their page: each refuses its example and accepts the one beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from compaction.formats import MessageFormat, Rule, anthropic, bedrock, gemini, openai_responses
from compaction.formats.anthropic.rules import RULES as ANTHROPIC_RULES
from compaction.formats.bedrock.rules import RULES as BEDROCK_RULES
from compaction.formats.gemini.rules import RULES as GEMINI_RULES
from compaction.formats.openai_responses.rules import RULES as RESPONSES_RULES
from tests.support.rulebook import examples, expect_unrepaired, places, rules, table

RULES = (
    (anthropic, ANTHROPIC_RULES),
    (gemini, GEMINI_RULES),
    (bedrock, BEDROCK_RULES),
    (openai_responses, RESPONSES_RULES),
)
each_format = pytest.mark.parametrize(("format", "known"), RULES, ids=[format.name for format, _ in RULES])
each_rule = pytest.mark.parametrize(
    ("format", "rule", "refused", "accepted"),
    [
        pytest.param(format, *example, id=f"{format.name}: {example[0]}")
        for format, _ in RULES
        for example in examples(format.name)
    ],
)


@each_format
def test_the_page_lists_every_rule_with_its_source(format: MessageFormat, known: Mapping[str, Rule]) -> None:
    """The page's table and its examples name exactly the rules of the code, in their order, and each row is filled in."""
    assert list(table(format.name)) == list(known)
    assert [rule for rule, _, _ in examples(format.name)] == list(known)
    assert [rule for rule, cells in table(format.name).items() if len(cells) != 3 or not all(cells)] == []


@each_rule
def test_a_rule_refuses_its_example(format: MessageFormat, rule: str, refused: list[Any], accepted: list[Any]) -> None:
    """A list that breaks one rule is reported under that name, once, with the rule's remedy."""
    assert [(problem.rule, problem.remedy) for problem in format.validate(refused)] == [
        (rule, dict(RULES)[format][rule].remedy)
    ]


@each_rule
def test_a_rule_accepts_its_example(format: MessageFormat, rule: str, refused: list[Any], accepted: list[Any]) -> None:
    """The list beside it breaks no rule and needs no repair."""
    assert places(format, accepted) == []
    expect_unrepaired(format, accepted)


@each_rule
def test_repair_does_what_the_page_says(format: MessageFormat, rule: str, refused: list[Any], accepted: list[Any]) -> None:
    """A rule of which the page says that the repair does nothing stays broken; any other one does not."""
    assert (rule in rules(format, format.repair(refused).messages)) == (table(format.name)[rule][1] == "Nothing.")

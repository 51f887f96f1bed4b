"""The order in which a digest's lines are written, and the tokens that they take from the page."""

from __future__ import annotations

from typing import Any

import attrs

from compaction.summarizers.extractive import DigestSummarizer
from compaction.summarizers.extractive.kinds import Kind
from compaction.summarizers.extractive.page import Item, SummaryPage
from compaction.summarizers.extractive.sections import Section
from compaction.summarizers.extractive.writer import SummaryWriter
from tests.support.chats import user
from tests.support.scripted import request_for


def written(*texts: str, least: Kind = Kind.SMALL_TALK, **options: Any) -> list[str]:
    """The lines of what a user says in these messages, in the order in which they are written."""
    request = request_for(DigestSummarizer(), [*map(user, texts)], **options)
    messages = [message for group in request.groups for message in group.messages]
    return [item.text for item in SummaryWriter(request, messages, str).statements(least) if item]


def test_heavier_kinds_come_first_and_lighter_ones_are_skipped() -> None:
    said = ("My sister is a glazier.", "Never touch prod.db.", "The hinges still have to be oiled.", "The port is 8080.")
    assert written(*said, least=Kind.TASK) == [said[1], said[2]]
    assert written(*said) == [said[1], said[2], "The port is 8080. (message 4)", said[0]]


def test_of_equal_statements_those_of_the_earlier_summary_come_first() -> None:
    said = [f"Never touch the {color} box." for color in ("red", "blue", "green")]
    assert written(*said, previous=f"- {said[1]}\n- {said[0]}") == said


def test_a_value_that_a_later_one_may_replace_comes_after_plain_statements() -> None:
    found = written("The port of the proxy is 8080.", "My sister is a glazier.", "The proxy listens on 9090.")
    assert found == [
        "The proxy listens on 9090. (message 3)",
        "My sister is a glazier.",
        "The port of the proxy is 8080. (earlier, message 1)",
    ]


def test_of_equal_statements_the_one_with_the_rarest_words_comes_first() -> None:
    boxes = [f"Never touch the red box {when}." for when in ("here", "there", "now")]
    assert written("Never touch the obelisk.", *boxes)[0] == "Never touch the obelisk."


def test_a_rule_has_its_speaker_if_messages_begin_with_names() -> None:
    """The name before the first sentence is not repeated; in a later round the line is known."""
    said = [
        "Ann: Hello everybody.",
        "Tom: My train leaves at nine. You must never use the old shuttle again.",
        "Ann: My cousin lives near it. Never open the red gate.",
    ]
    rules = ["Tom: You must never use the old shuttle again.", "Ann: Never open the red gate."]
    request = request_for(DigestSummarizer(), [*map(user, said)])
    text = DigestSummarizer().summarize(request)
    constraints = text.partition("## Constraints")[2].split("\n\n")[0]
    assert [line[2:] for line in constraints.split("\n")[1:]] == rules
    again = DigestSummarizer().summarize(attrs.evolve(request, previous=text))
    assert [again.count(rule) for rule in rules] == [1, 1]
    alone = request_for(DigestSummarizer(), [*map(user, ["Go on.", "Note: I am back. Never touch prod.db.", "Fine."])])
    assert "- Never touch prod.db." in DigestSummarizer().summarize(alone)


def test_a_line_under_another_needs_room_for_both_once() -> None:
    page = SummaryPage(100, len)
    tabs, mocks = (Item(Section.CONSTRAINTS, text, under="Rules:") for text in ("no tabs", "no mocks"))
    both = len("- Rules:\n- no tabs\n")
    assert not page.add(tabs, upto=both)
    assert page.add(tabs, upto=both + 1)
    assert page.add(mocks, upto=both + 1 + len("- no mocks\n"))

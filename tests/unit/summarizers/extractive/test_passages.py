"""The passages of a message: lists, tables and paragraphs, each with what it stands under."""

from __future__ import annotations

import pytest

from compaction.summarizers.extractive.passages import passages
from compaction.summarizers.extractive.voices import Voice

RULES = ("never touch prod.db", "use tabs", "ask before you delete")


def own(text: str) -> list[tuple[str, str]]:
    """The user's own passages, each with what it stands under."""
    return [(each.lead, each.text) for each in passages(text) if each.voice is Voice.OWN]


@pytest.mark.parametrize(
    "mark", ["- ", "* ", "+ ", "• ", "- [ ] ", "* [x] ", "1. ", "2) ", "(3) ", "a) ", "✅ ", "❌ ", "👉 ", "① ", "– "]
)
@pytest.mark.parametrize(
    "lead", ["Rules:", "## Ground rules", "**Please keep to this**", "Regeln für alle:", "规则：", "[rules]"]
)
def test_a_list_is_the_users_and_stays_with_its_heading(mark: str, lead: str) -> None:
    text = lead + "\n" + "\n".join(f"{mark}{rule}" for rule in RULES)
    found = own(text)
    assert [head for head, _ in found] == [lead] * 3
    assert all(item.endswith(rule) for (_, item), rule in zip(found, RULES, strict=True))


def test_a_nested_list_keeps_the_item_above() -> None:
    """An item below another one stands under that one; further lines of an item belong to it."""
    text = "Rules:\n- Tests:\n  - run ruff\n    and mypy\n  - never skip one\n- use tabs"
    assert own(text) == [("Tests:", "run ruff and mypy"), ("Tests:", "never skip one"), ("Rules:", "use tabs")]


def test_a_table_keeps_its_header_and_a_block_its_tag() -> None:
    text = "| path | rule |\n|---|---|\n| legal/ | ask Ines |\n\n<rules>\nUse tabs.\n</rules>\nFix it."
    assert own(text) == [("| path | rule |", "| legal/ | ask Ines |"), ("<rules>", "Use tabs."), ("", "Fix it.")]

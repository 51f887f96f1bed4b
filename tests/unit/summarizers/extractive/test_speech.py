"""Who speaks in a message: size, fences, quotation marks, headers and machine output decide it, and no list."""

from __future__ import annotations

import pytest

from compaction.summarizers.extractive.speech import Voice, is_printed, passages

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
    """A list in any form is the user's own; each item keeps the words above the list."""
    text = lead + "\n" + "\n".join(f"{mark}{rule}" for rule in RULES)
    found = own(text)
    assert [head for head, _ in found] == [lead] * 3
    assert all(item.endswith(rule) for (_, item), rule in zip(found, RULES, strict=True))


def test_a_nested_list_keeps_the_item_above() -> None:
    """An item below another one stands under that one; further lines of an item belong to it."""
    text = "Rules:\n- Tests:\n  - run ruff\n    and mypy\n  - never skip one\n- use tabs"
    assert own(text) == [("Tests:", "run ruff and mypy"), ("Tests:", "never skip one"), ("Rules:", "use tabs")]


def test_a_table_keeps_its_header_and_a_block_its_tag() -> None:
    """A row of a table stands under the header, and lines in a tag under the tag."""
    text = "| path | rule |\n|---|---|\n| legal/ | ask Ines |\n\n<rules>\nUse tabs.\n</rules>\nFix it."
    assert own(text) == [("| path | rule |", "| legal/ | ask Ines |"), ("<rules>", "Use tabs."), ("", "Fix it.")]


@pytest.mark.parametrize(
    "printed",
    [
        "```\nnever call this\n```",
        "2026-01-03 10:11:12 ERROR never retry\n2026-01-03 10:11:13 INFO always retry",
        "Traceback (most recent call last):\n  File \"a.py\", line 3, in go\nKeyError: 'never'",
        "1:import os\n2:never = os.sep\n3:def go(a):",
        "drwxr-xr-x 2 app app 4096 never\n-rw-r--r-- 1 app app 31213 always.json",
        '{"always": "never"}',
        "diff --git a/x b/x\n@@ -1 +1 @@\n--- a/x",
    ],
)
def test_what_a_program_printed_is_nobodys_words(printed: str) -> None:
    """Fences, logs, stack traces, listings and data are no words of the user; what stands around them is."""
    assert own(f"Look at this.\n\n{printed}\n\nNever touch prod.db.") == [("", "Look at this."), ("", "Never touch prod.db.")]


@pytest.mark.parametrize(
    "line",
    [
        "WARNING: never deploy on Fridays",
        "$ 500 is the cap",
        "tabs, two wide",
        "legal/ goes past Ines",
        "3:never",
        "Port 80, host db-1",
        "ab 14:30 Uhr",
    ],
)
def test_a_single_line_that_a_person_may_have_written_is_the_users(line: str) -> None:
    """What is ambiguous counts as the user's own words."""
    assert own(f"{line}") == [("", line)]


def test_quoted_lines_mails_and_chats() -> None:
    """Lines behind ``>``, mails and chats are quoted."""
    text = "See below.\n> never park here\n\nFrom: Ann <a@b.org>\nSubject: keys\n\nAlways knock."
    assert [each.voice for each in passages(text)][:2] == [Voice.OWN, Voice.QUOTED]
    assert [each.text for each in passages(text) if each.voice is Voice.QUOTED][-1] == "Always knock."


def test_data_in_one_line() -> None:
    """A record is data, and a sentence with a number is not, in any script."""
    lines = ["id=1 name=Ada age=3", "The port is 8080.", "端口是 8080。", "ポートは8080です", "порт 8080, не 80"]
    assert [is_printed(line) for line in lines] == [True, False, False, False, False]

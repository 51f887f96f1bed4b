"""The retention benchmark: the conversations it generates, and what each of its metrics counts."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.retention.generator import found_elsewhere, generate
from benchmarks.retention.judging import Verdict, judge
from benchmarks.retention.planted import Conversation, Planted
from benchmarks.retention.report import measured
from benchmarks.retention.subjects import SUBJECTS
from benchmarks.retention.wording import DISTRACTORS, ITEMS, LANGUAGES, Statement
from compaction.formats import validate
from compaction.tokens import counter

SYSTEM = {"role": "system", "content": "Be brief."}
LAST = {"role": "user", "content": "And now?"}
MARK = "[compaction 00000000 by Summarization round 1]\n"


def said(text: str, core: str, meaning: str = "") -> Statement:
    """Return a statement of the user; alternative words are separated by a bar, groups of words by a comma."""
    groups = [tuple(tuple(group.split("|")) for group in words.split(",") if group) for words in (core, meaning)]
    return Statement(text, *groups)


def conversation(kind: str, *statements: Statement) -> Conversation:
    """Return a conversation in which the user makes only these statements."""
    messages = [SYSTEM, *({"role": "user", "content": each.text} for each in statements), LAST]
    planted = Planted(kind, statements, tuple(range(1, 1 + len(statements))))
    return Conversation("made-by-hand", "en", "generated", tuple(messages), (planted,))


def summary(*lines: str) -> list[dict[str, Any]]:
    """Return the messages in which a summary replaces everything that was said."""
    return [SYSTEM, {"role": "user", "content": MARK + "\n".join(lines)}, LAST]


def verdict(of: Conversation, sent: list[dict[str, Any]]) -> Verdict:
    (found,) = judge(of, sent)
    return found


PORT = conversation("value", said("The staging database listens on 6543.", "6543", "staging"))
RULE = conversation("rule", said("The cap is 956 euros. Never exceed it.", "exceed|go over", "956"))
OLD, NEW = said("The proxy is on 8080.", "8080", "proxy"), said("I moved the proxy to 9090.", "9090", "proxy")
MOVED = conversation("changed_once", OLD, NEW)
ELLIPTIC = conversation("changed_once", OLD, said("Make that 9090.", "9090"))
BACK = conversation("changed_back", OLD, NEW, said("The proxy is on 8080 again.", "8080", "proxy"))
CHATTER = conversation("chatter", said("I never put raisins into a strudel.", "raisins,strudel"))
MAYBE = conversation("hypothetical", said("If the budget were 7000, would it do?", "7000", "budget"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_conversations_are_whole(language: str) -> None:
    """Generated conversations are valid, contain all kinds of items, and contain each item only where it was planted."""
    for each in generate("dev", language, 2, 1):
        assert validate(list(each.messages)) == []
        assert {planted.kind for planted in each.planted} == {*ITEMS, *DISTRACTORS}
        assert found_elsewhere(each) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_conversation_itself_has_everything(language: str) -> None:
    """In an uncompacted conversation every item keeps its meaning, and none is stale or false."""
    for each in generate("dev", language, 2, 2):
        verdicts = judge(each, each.messages)
        assert [found.planted for found in verdicts if found.planted.is_item and not found.means] == []
        assert [found.planted for found in verdicts if found.stale or found.false] == []


def test_the_oracle_reaches_nearly_everything() -> None:
    """The oracle keeps at least 95 % of the items, so the metrics do not limit other subjects' figures."""
    outcomes = measured(list(generate("dev", "en", 2, 3)), {"oracle": SUBJECTS["oracle"]}, [0.2], counter("chars/4"))
    items = [each for outcome in outcomes for each in outcome.verdicts if each.planted.is_item]
    assert sum(each.means and not each.stale for each in items) >= 0.95 * len(items)
    assert all(outcome.room <= 1 for outcome in outcomes)


@pytest.mark.parametrize("name", SUBJECTS)
def test_each_subject_keeps_to_the_budget(name: str) -> None:
    """Each subject stays within its budget, plus the system and last messages, which no subject may drop."""
    outcomes = measured(list(generate("dev", "zh", 1, 4)), {name: SUBJECTS[name]}, [0.3], counter("chars/4"))
    assert [outcome.room for outcome in outcomes if outcome.room > 1] == []


KOREAN = conversation("fact", said("언니는 유리공이에요.", "유리공", "언니"))
MANY = conversation("value", said("The rent is 12500.", "12500", "rent"))
RULES = "## Constraints & Preferences"


@pytest.mark.parametrize(
    ("of", "sent", "expected"),
    [
        pytest.param(RULE, [*RULE.messages], "survives means", id="a kept message"),
        pytest.param(PORT, [SYSTEM, LAST], "", id="not sent"),
        pytest.param(PORT, summary("- Staging: 16543, 6543.7, 6543a"), "", id="digits of longer numbers"),
        pytest.param(RULE, summary("- Cap: 956 euros", "- Never go over it."), "survives", id="the object on another line"),
        pytest.param(RULE, summary("- Never go over the cap of 956."), "survives means", id="a rule with its object"),
        pytest.param(PORT, summary("## Facts", "6543"), "survives", id="a value without its key"),
        pytest.param(PORT, summary("- staging database:", "  6543"), "survives means", id="an indented line"),
        pytest.param(MOVED, [SYSTEM, MOVED.messages[1], LAST], "stale", id="an old value alone"),
        pytest.param(MOVED, summary("- The proxy is on 8080."), "stale", id="an old value in a summary"),
        pytest.param(MOVED, [*MOVED.messages], "survives means", id="both values in their messages"),
        pytest.param(MOVED, summary("- proxy: 8080, 9090"), "survives means stale", id="both values in no order"),
        pytest.param(MOVED, summary("- 8080", "- proxy", "- 9090"), "survives stale", id="both values on lines"),
        pytest.param(MOVED, summary("- proxy: 9090 (was 8080 until message 4)"), "survives means", id="both values and when"),
        pytest.param(MOVED, summary("- proxy: 9090"), "survives means", id="the new value"),
        pytest.param(MOVED, [*summary("- proxy: 8080")[:2], *MOVED.messages[2:]], "survives means", id="the new value after"),
        pytest.param(BACK, [SYSTEM, *BACK.messages[1:3], LAST], "survives means stale", id="back: the value in between"),
        pytest.param(BACK, [*BACK.messages], "survives means", id="back: all"),
        pytest.param(BACK, summary("- proxy: 8080"), "survives means", id="back: a summary"),
        pytest.param(ELLIPTIC, [*ELLIPTIC.messages], "survives means", id="an elliptic change: both messages"),
        pytest.param(ELLIPTIC, [SYSTEM, *ELLIPTIC.messages[2:]], "survives", id="an elliptic change alone"),
        pytest.param(ELLIPTIC, summary("- proxy: 9090"), "survives means", id="an elliptic change with its key"),
        pytest.param(KOREAN, summary("- 언니 직업: 유리 공"), "survives means", id="Korean, written apart"),
        pytest.param(MANY, summary("- RENT: 12,500"), "survives means", id="capitals, a separator"),
        pytest.param(RULE, summary("- EXCEEDING 956 is forbidden"), "survives means", id="an inflected form"),
        pytest.param(CHATTER, summary(RULES, "- I never put raisins into it."), "false", id="small talk under the rules"),
        pytest.param(CHATTER, summary("**Rules**", "- never put raisins into a strudel"), "false", id="under bold rules"),
        pytest.param(CHATTER, summary("The user said:", "- I never put raisins into a strudel."), "false", id="as said"),
        pytest.param(CHATTER, summary("- Rule: no raisins"), "false", id="as a rule"),
        pytest.param(CHATTER, summary("## Requests", "- I never put raisins into a strudel."), "", id="as a request"),
        pytest.param(CHATTER, summary(RULES, "- Be brief.", "## Latest", "- raisins"), "", id="under another heading"),
        pytest.param(CHATTER, [*CHATTER.messages], "", id="small talk in its message"),
        pytest.param(MAYBE, summary("- budget: 7000"), "false", id="a hypothetical value without its condition"),
        pytest.param(MAYBE, summary("- asked what if the budget were 7000"), "", id="a hypothetical value with it"),
    ],
)
def test_verdicts(of: Conversation, sent: list[dict[str, Any]], expected: str) -> None:
    """Of an item it counts whether it survives, has its meaning, or is stale; of a distractor, whether it is taken for a rule.

    Both values of a change are stale unless their order is clear. Of a distractor, only statements of a summary count.
    """
    found = verdict(of, sent)
    shown = ("survives", "means", "stale") if found.planted.is_item else ("false",)
    assert [name for name in shown if getattr(found, name)] == expected.split()

"""The retention benchmark: the conversations it generates, and what each of its metrics counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from benchmarks.retention.__main__ import main
from benchmarks.retention.generator import found_elsewhere, generate
from benchmarks.retention.judging import Verdict, judge
from benchmarks.retention.planted import Conversation, Planted
from benchmarks.retention.recorded import plant_into_recorded
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
    core_groups, meaning_groups = (
        tuple(tuple(group.split("|")) for group in words.split(",") if group) for words in (core, meaning)
    )
    return Statement(text, core_groups, meaning_groups)


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
MOVED = conversation(
    "changed_once", said("The proxy is on 8080.", "8080", "proxy"), said("I moved the proxy to 9090.", "9090", "proxy")
)
ELLIPTIC = conversation("changed_once", said("The proxy is on 8080.", "8080", "proxy"), said("Make that 9090.", "9090"))
BACK = conversation(
    "changed_back",
    said("The proxy is on 8080.", "8080", "proxy"),
    said("Now the proxy is on 9090.", "9090", "proxy"),
    said("The proxy is on 8080 again.", "8080", "proxy"),
)
CHATTER = conversation("chatter", said("I never put raisins into a strudel.", "raisins,strudel"))
MAYBE = conversation("hypothetical", said("If the budget were 7000, would it do?", "7000", "budget"))


def test_the_same_seed_makes_the_same_conversations() -> None:
    one, two, other = (list(generate("dev", "en", 2, seed)) for seed in (7, 7, 8))
    assert one == two
    assert one != other


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


def test_recordings_are_used_where_they_are(corpus_dir: Path) -> None:
    """Items are planted into recorded conversations without making them invalid, and each is found only there."""
    made = list(plant_into_recorded("dev", 3, 0, corpus_dir))
    assert len(made) == 3
    for each in made:
        assert found_elsewhere(each) == []
        assert validate(list(each.messages)) == []


def test_a_kept_message_survives_with_its_meaning() -> None:
    found = verdict(RULE, list(RULE.messages))
    assert (found.survives, found.means) == (True, True)


def test_what_is_not_sent_does_not_survive() -> None:
    """An item that is not sent does not survive, not even if a longer number contains its digits."""
    assert not verdict(PORT, [SYSTEM, LAST]).survives
    assert not verdict(PORT, summary("- Staging: 16543, 6543.7, 6543a")).survives


def test_a_rule_without_its_object_survives_without_its_meaning() -> None:
    """A rule whose object is missing, or on another line, survives without its meaning."""
    found = verdict(RULE, summary("- Cap: 956 euros", "- Never go over it."))
    assert (found.survives, found.means) == (True, False)
    assert verdict(RULE, summary("- Never go over the cap of 956.")).means


def test_a_value_without_its_key_survives_without_its_meaning() -> None:
    """A value without its key survives without its meaning; an indented line belongs to the line before."""
    assert not verdict(PORT, summary("## Facts", "6543")).means
    assert verdict(PORT, summary("- staging database:", "  6543")).means


def test_an_old_value_alone_is_stale() -> None:
    """An old value without the new one is stale, in a kept message and in a summary."""
    assert verdict(MOVED, [SYSTEM, MOVED.messages[1], LAST]).stale
    assert verdict(MOVED, summary("- The proxy is on 8080.")).stale


def test_both_values_need_an_order() -> None:
    """An old and a new value together are stale unless their order is clear; the new value alone is not stale."""
    assert not verdict(MOVED, list(MOVED.messages)).stale
    assert verdict(MOVED, summary("- proxy: 8080, 9090")).stale
    assert verdict(MOVED, summary("- 8080", "- proxy", "- 9090")).stale
    assert not verdict(MOVED, summary("- proxy: 9090 (was 8080 until message 4)")).stale
    assert not verdict(MOVED, summary("- proxy: 9090")).stale
    assert not verdict(MOVED, [*summary("- proxy: 8080")[:2], MOVED.messages[2], LAST]).stale


def test_a_value_that_came_back_is_the_one_that_holds() -> None:
    """When a value returns to its first state, only the value in between is stale."""
    assert verdict(BACK, [SYSTEM, *BACK.messages[1:3], LAST]).stale
    assert not verdict(BACK, list(BACK.messages)).stale
    assert not verdict(BACK, summary("- proxy: 8080")).stale
    assert verdict(BACK, summary("- proxy: 8080")).means


def test_an_elliptic_change_is_understood_from_both_messages() -> None:
    """A change that omits its key has its meaning if both messages are kept, or if a summary names the key."""
    assert verdict(ELLIPTIC, list(ELLIPTIC.messages)).means
    assert not verdict(ELLIPTIC, [SYSTEM, *ELLIPTIC.messages[2:]]).means
    assert verdict(ELLIPTIC, summary("- proxy: 9090")).means


@pytest.mark.parametrize(
    ("lines", "false"),
    [
        (["## Constraints & Preferences", "- I never put raisins into it."], True),
        (["**Rules**", "- never put raisins into a strudel"], True),
        (["The user said:", "- I never put raisins into a strudel."], True),
        (["- Rule: no raisins"], True),
        (["## Requests", "- I never put raisins into a strudel."], False),
        (["## Constraints & Preferences", "- Be brief.", "## Latest", "- raisins"], False),
    ],
)
def test_small_talk_as_a_rule_is_false(lines: list[str], false: bool) -> None:
    """A distractor counts as false if a summary states it as a rule or as the user's word, and not elsewhere."""
    assert verdict(CHATTER, summary(*lines)).false == false


def test_a_kept_distractor_is_not_false() -> None:
    assert not verdict(CHATTER, list(CHATTER.messages)).false


def test_a_hypothetical_value_needs_its_condition() -> None:
    """A hypothetical value is false in a summary that omits its condition."""
    assert verdict(MAYBE, summary("- budget: 7000")).false
    assert not verdict(MAYBE, summary("- asked what if the budget were 7000")).false


def test_words_are_found_whatever_their_form() -> None:
    """Words are found in inflected forms, in capitals, with thousands separators and, in Korean, written apart."""
    korean = conversation("fact", said("언니는 유리공이에요.", "유리공", "언니"))
    assert verdict(korean, summary("- 언니 직업: 유리 공")).means
    many = conversation("value", said("The rent is 12500.", "12500", "rent"))
    assert verdict(many, summary("- RENT: 12,500")).means
    assert verdict(RULE, summary("- EXCEEDING 956 is forbidden")).means


def test_the_command_prints_tables(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "retention.md"
    options = "--conversations 1 --recorded 0 --languages en --subjects truncation oracle --counter chars/4 --write"
    main([*options.split(), str(page)])
    printed = capsys.readouterr().out
    assert page.read_text("utf-8") in printed
    assert "### oracle" in printed


def test_items_do_not_share_their_values() -> None:
    """All planted items of a conversation have different words, so that none is found by the words of another."""
    (each,) = generate("dev", "de", 1, 5)
    cores = [attrs.evolve(planted, places=()).core for planted in each.planted]
    assert len(set(cores)) == len(cores)

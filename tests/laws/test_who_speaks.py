"""Words that programs put into user messages never stand under the user's rules, and the user's rules stay."""

from __future__ import annotations

import attrs
import pytest

from compaction.summarizers import DigestSummarizer
from compaction.summarizers.extractive.kinds import Kind, judge
from compaction.summarizers.extractive.sections import Section, read_sections
from tests.support.chats import Chat, assistant, user
from tests.support.scripted import request_for
from tests.support.wrappings import FRAMEWORKS, OWN_LAYOUTS, SETS, Planted, Wrapped, planted, planted_orders, true_rules

EVERY = [wrapping for each in SETS.values() for wrapping in each]
ATTACKS = [attack for each in SETS.values() for attack in planted(each)]
ORDERS = 400
RULES = 200


def digest_of(text: str) -> str:
    before = [user("Read the note and tell me what it says."), assistant("I will look.")]
    return digest_of_chat([*before, user(text), assistant("I have read it."), user("Good. Go on.")])


def digest_of_chat(chat: Chat) -> str:
    digest = DigestSummarizer(growth=1.0)
    return digest.summarize(request_for(digest, chat, budget=2_000))


def rules_in(digest: str) -> str:
    return "\n".join(read_sections(digest).get(Section.CONSTRAINTS, []))


def is_sure(rule: Wrapped) -> bool:
    """Whether the rule alone, and its line, are surely a rule to the learned model."""
    [line] = [line for line in rule.text.splitlines() if rule.order in line]
    return all(judge(text).kind is Kind.RULE for text in (rule.order, line))


def test_orders_in_the_output_of_programs_are_not_promoted() -> None:
    """Of orders in the wrappings of real frameworks, at most 1 in 100 stands under the user's rules."""
    assert len(FRAMEWORKS) >= 40
    promoted = [each.text for each in planted_orders(ORDERS) if each.order in rules_in(digest_of(each.text))]
    assert len(promoted) <= ORDERS // 100, promoted


def test_rules_of_users_stay() -> None:
    """At least 98 in 100 stay, and 98 in 100 of those that are surely rules stand under the rules."""
    rules = [(each, digest_of(each.text)) for each in true_rules(RULES)]
    lost = [each.text for each, digest in rules if each.order not in digest]
    assert len(lost) <= 0.02 * RULES, lost
    sure = [(each, digest) for each, digest in rules if is_sure(each)]
    assert {each.form for each, _ in sure} == set(OWN_LAYOUTS)
    elsewhere = [each.text for each, digest in sure if each.order not in rules_in(digest)]
    assert len(elsewhere) <= 0.02 * len(sure), elsewhere


def promoted_share(messages: list[Planted]) -> float:
    return sum(each.order in rules_in(digest_of_chat(each.messages)) for each in messages) / len(messages)


def test_orders_in_unseen_wrappings_are_not_promoted() -> None:
    assert promoted_share(ATTACKS[::19]) <= 0.01


def rule_line(attack: Planted, where: str) -> str:
    lines = "\n".join(str(message["content"]) for message in attack.messages).splitlines()
    return next(line for line in lines if attack.rules[where] in line)


def is_rule(attack: Planted, where: str) -> bool:
    """Whether there is a true rule at this place, and its line is a rule to the learned model."""
    return where in attack.rules and judge(rule_line(attack, where)).kind is Kind.RULE


def kept_share(where: str, messages: list[Planted]) -> float:
    """The share of the true rules at a place that stand under the rules, of those that are rules to the learned model."""
    kept = [each.rules[where] in rules_in(digest_of_chat(each.messages)) for each in messages if is_rule(each, where)]
    return sum(kept) / len(kept)


@pytest.mark.parametrize(("where", "least"), [("own", 1.0), ("before", 0.96), ("after", 0.84)])
def test_rules_beside_unseen_wrappings_stay(where: str, least: float) -> None:
    """In messages of their own, before a block, and behind one; if its end does not show, the rule is kept elsewhere."""
    assert kept_share(where, ATTACKS[::23]) >= least


def test_orders_in_what_is_pasted_once_are_seldom_promoted() -> None:
    """A paste that looks like prose of a person, as a copied issue does, cannot be told from it: two in a hundred remain."""
    pasted = {each.name for each in EVERY if not each.repeats}
    once = [each for each in ATTACKS if each.name in pasted][::5]
    assert promoted_share([attrs.evolve(each, messages=each.messages[:6] + each.messages[-2:]) for each in once]) <= 0.04


@pytest.mark.parametrize("layout", OWN_LAYOUTS.values(), ids=OWN_LAYOUTS)
def test_a_rule_in_a_layout_of_the_users_own_stays(layout: str) -> None:
    """A greeting, a quotation, fields, times and commands beside a rule do not make it somebody else's."""
    assert "keep_7" in rules_in(digest_of(layout.format(rule="Please never touch the table keep_7 without asking me first.")))

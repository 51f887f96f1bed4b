"""The rules written a second time, in ``tests/support/validators``, agree with the package on which lists are valid.

They share no code, so that a mistake in one shows. Where a list breaks several rules, the two may name different ones.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from compaction.formats import FORMATS, MessageFormat, openai_chat
from tests.support import validators
from tests.support.conversion import convert
from tests.support.limits import examples
from tests.support.rulebook import examples as rule_examples
from tests.support.validators import VIOLATIONS, is_valid, rules
from tests.support.wires import any_conversation, valid_conversation

SAME = {"reasoning-only": "empty-assistant"}
"""Rules of the package for which the second validator has one common name."""

JUDGED = [format for format in FORMATS if format.name in VIOLATIONS]
"""The formats with a second validator; one that was added needs none."""

every_format = pytest.mark.parametrize("format", JUDGED, ids=[format.name for format in JUDGED])


def judged(format: MessageFormat, messages: list[Any]) -> set[str]:
    """The rules that the package reports as broken."""
    return {SAME.get(problem.rule, problem.rule) for problem in format.validate(messages)}


def pages() -> list[tuple[str, str, list[Any]]]:
    """Every list in the documented examples of rules, with its format and the rule it is about."""
    return [
        (format.name, rule, messages) for format in JUDGED for rule, *lists in rule_examples(format.name) for messages in lists
    ]


@pytest.mark.parametrize(("format", "rule", "messages"), pages(), ids=[f"{name}, {rule}" for name, rule, _ in pages()])
def test_the_lists_on_the_page(format: str, rule: str, messages: list[Any]) -> None:
    """Each documented list breaks its rule alone or none, and the two implementations report the same."""
    assert set(rules(format, messages)) <= {SAME.get(rule, rule)}
    named = next(each for each in FORMATS if each.name == format)
    assert set(rules(format, messages)) == judged(named, messages)


@every_format
@settings(examples(40), phases=[Phase.generate])
@given(data=st.data())
def test_valid_conversations(format: MessageFormat, data: st.DataObject) -> None:
    """Both find nothing but calls that wait at the end."""
    messages = data.draw(valid_conversation(format))
    assert set(rules(format.name, messages)) == judged(format, messages)
    assert is_valid(format.name, messages)


@every_format
@settings(examples(40), phases=[Phase.generate])
@given(data=st.data())
def test_one_damage(format: MessageFormat, data: st.DataObject) -> None:
    """A message left out, repeated, moved, or without content: both say valid, or both say invalid."""
    messages = copy.deepcopy(data.draw(valid_conversation(format)))
    place, other = (data.draw(st.integers(0, len(messages) - 1)) for _ in range(2))
    harm: Callable[[], None] = data.draw(
        st.sampled_from(
            [
                lambda: messages.pop(place),
                lambda: messages.insert(other, copy.deepcopy(messages[place])),
                lambda: messages.insert(other, messages.pop(place)),
                lambda: messages[place].pop("content" if "content" in messages[place] else "parts", None),
                lambda: messages[place].update(dict.fromkeys({"content", "parts", "output"} & set(messages[place]), "")),
                lambda: messages[place].update(role="narrator"),
            ]
        )
    )
    harm()
    assert (judged(format, messages) <= {"pending-call"}) == is_valid(format.name, messages), VIOLATIONS[format.name](messages)


@every_format
@settings(examples(40), phases=[Phase.generate])
@given(data=st.data())
def test_damaged_conversations(format: MessageFormat, data: st.DataObject) -> None:
    """With several damages at once too."""
    messages = data.draw(any_conversation(format))
    assert (judged(format, messages) <= {"pending-call"}) == is_valid(format.name, messages), VIOLATIONS[format.name](messages)


@pytest.mark.parametrize("name", ["tau_airline", "sweagent_demos", "whowhen_multiagent"])
def test_recorded_conversations(name: str, corpus: Callable[[str], list[dict[str, Any]]]) -> None:
    """The two implementations report the same broken rules for recorded conversations in every format."""
    for recorded in corpus(name)[:20]:
        for format in JUDGED:
            messages = convert(recorded["messages"], to=format, format=openai_chat)
            assert set(rules(format.name, messages)) == judged(format, messages)


def test_nothing_is_imported_from_the_package() -> None:
    """The second implementation imports nothing from the package or its tests, so that its opinion is independent."""
    for path in Path(str(validators.__file__)).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(re.match("(compaction|tests)", name) for name in names), path

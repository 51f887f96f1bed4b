"""The laws on generated conversations: indexes keep law 8, triggers and selectors law 10.

The laws of strategies are in test_format_laws.py, law 6 in test_failures.py, recorded conversations in test_laws_corpus.py.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import attrs
from hypothesis import given
from hypothesis import strategies as st

from compaction import Drop, MessageIndex, RunContext
from compaction.formats import FORMATS, MessageFormat
from compaction.index.groups import MessageGroup
from compaction.selectors import Selector, as_selector, everything, first, last, nothing, pinned, system, tools
from compaction.testing import check_trigger, conversations
from compaction.triggers import (
    Trigger,
    always,
    as_trigger,
    never,
)
from tests.support.chats import Chat, indexed
from tests.support.limits import examples
from tests.support.options import CALLS, TRIGGER_ATOMS, USERS, combined
from tests.support.wires import any_conversation


def portrait(index: MessageIndex) -> dict[str, Any]:
    """All public facts about an index, as values that can be compared."""
    groups = [group_portrait(group) for group in index.included_groups]
    facts = {name: getattr(index, name) for name in ("included", "total", "edit_count")}
    return {**facts, "groups": groups, "view": index.messages(), "state": index.to_dict()}


def group_portrait(group: MessageGroup) -> dict[str, Any]:
    """A group's fields, and its messages as the format reads them."""
    messages = [(message.role, message.name, message.parts, message.raw) for message in group.messages]
    return {**attrs.asdict(group, recurse=False), "messages": messages}


@st.composite
def sliced(draw: st.DrawFn) -> tuple[MessageFormat, Chat, list[Chat]]:
    """A format, a conversation, and the same conversation cut into slices, some of them empty."""
    format = draw(st.sampled_from(FORMATS))
    messages = draw(any_conversation(format))
    cuts = sorted(draw(st.lists(st.integers(0, len(messages)), max_size=5)))
    return format, messages, [messages[start:end] for start, end in zip([0, *cuts], [*cuts, len(messages)], strict=True)]


@examples(25)
@given(sliced())
def test_append_in_slices_equals_at_once(conversation: tuple[MessageFormat, Chat, list[Chat]]) -> None:
    """Law 8 for append, also if the index is looked at in between."""
    format, messages, slices = conversation
    index = indexed([], format=format)
    for part in slices:
        index.append(part)
        assert len(index.messages()) == sum(len(group.messages) for group in index.included_groups)
    assert portrait(index) == portrait(indexed(messages, format=format))


@examples(25)
@given(sliced(), st.booleans())
def test_sync_with_growing_lists_equals_at_once(conversation: tuple[MessageFormat, Chat, list[Chat]], rebuilt: bool) -> None:
    """Law 8 for sync, whether the framework passes its own objects each time or reads them from its store."""
    format, messages, slices = conversation
    index, so_far = indexed([], format=format), list[Any]()
    for part in slices:
        so_far = so_far + part
        index.sync(json.loads(json.dumps(so_far)) if rebuilt else so_far)
    assert portrait(index) == portrait(indexed(messages, format=format))


def odd_messages(index: MessageIndex) -> bool:
    return index.included.messages % 2 == 1


def every_second(index: MessageIndex) -> list[MessageGroup]:
    return list(index.included_groups[::2])


ATOMS: list[Trigger] = [*TRIGGER_ATOMS, as_trigger(odd_messages)]
CHOICES: list[Selector] = [
    *(everything, nothing, system, pinned, CALLS, USERS, tools("f", "browser_*"), first(messages=2), first(turns=1)),
    *(first(groups=1, of=USERS), last(messages=3), last(groups=2), last(turns=1), last(tokens=50, of=~USERS)),
    as_selector(every_second),
]


TRIGGERS = combined(st.sampled_from(ATOMS))
SELECTORS = combined(st.sampled_from(CHOICES))


@st.composite
def edited_indexes(draw: st.DrawFn) -> MessageIndex:
    """An index of any conversation, after a few edits and pins."""
    context = RunContext(window=200, overhead_tokens=draw(st.sampled_from([0, 40])), now=draw(st.sampled_from([None, 0.0])))
    index = MessageIndex(draw(conversations(valid=draw(st.booleans()), pending=True)), counter="chars/4", context=context)
    for group in draw(st.lists(st.sampled_from(index.included_groups), max_size=3, unique_by=lambda group: group.id)):
        if index.is_removable(group):
            index.apply(Drop(group, "a test"))
    index.pin([draw(st.sampled_from(index.included_groups)).id])
    index.context = attrs.evolve(context, now=90.0)
    return index


def assert_boolean(one: Any, two: Any, three: Any, *, top: Any, bottom: Any, ask: Callable[[Any], Any]) -> None:
    """Check the laws of a Boolean algebra on the values that ``ask`` returns for expressions."""
    assert ask(~(one & two)) == ask(~one | ~two)
    assert ask(~(one | two)) == ask(~one & ~two)
    assert ask(~~one) == ask(one)
    assert ask(one & two) == ask(two & one)
    assert ask(one | two) == ask(two | one)
    assert ask(one & (two | three)) == ask((one & two) | (one & three))
    assert ask(one | (two & three)) == ask((one | two) & (one | three))
    assert ask(one | (one & two)) == ask(one & (one | two)) == ask(one)
    assert ask(one & top) == ask(one | bottom) == ask(one)
    assert ask(one & ~one) == ask(bottom)
    assert ask(one | ~one) == ask(top)
    assert (one & two) & three == one & (two & three)
    assert (one | two) | three == one | (two | three)
    assert ~~one == one


@examples(25)
@given(edited_indexes(), TRIGGERS, TRIGGERS, TRIGGERS)
def test_triggers_are_a_boolean_algebra(index: MessageIndex, one: Trigger, two: Trigger, three: Trigger) -> None:
    """Law 10 for triggers; ``&`` and ``|`` mean what ``and`` and ``or`` mean, and do not care for parentheses."""
    assert_boolean(one, two, three, top=always, bottom=never, ask=lambda trigger: trigger(index))
    assert (one & two)(index) == (one(index) and two(index))
    assert (one | two)(index) == (one(index) or two(index))
    assert (~one)(index) == (not one(index))


@examples(25)
@given(conversations(), TRIGGERS)
def test_combined_triggers_keep_the_contract(messages: Chat, trigger: Trigger) -> None:
    """A combination of triggers is a trigger: pure, picklable, and explains itself."""
    check_trigger(trigger, messages=messages)


@examples(25)
@given(edited_indexes(), SELECTORS, SELECTORS, SELECTORS)
def test_selectors_are_a_boolean_algebra(index: MessageIndex, one: Selector, two: Selector, three: Selector) -> None:
    """Law 10 for selectors; they choose among the groups of the view, as sets do."""
    assert_boolean(one, two, three, top=everything, bottom=nothing, ask=lambda selector: selector(index))
    shown = {group.id for group in index.included_groups}
    assert (one & two)(index) == one(index) & two(index)
    assert (one | two)(index) == one(index) | two(index)
    assert (~one)(index) == shown - one(index)


@examples(25)
@given(edited_indexes(), SELECTORS)
def test_selectors_change_nothing(index: MessageIndex, selector: Selector) -> None:
    before = copy.deepcopy(portrait(index))
    assert selector(index) == selector(index)
    assert portrait(index) == before

"""The laws on generated conversations: strategies keep laws 1 to 5, 7 and 9, indexes law 8, triggers and selectors law 10.

Law 6 is in test_failures.py; recorded conversations are in test_laws_corpus.py.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction import Drop, MessageIndex, RunContext, compact, compact_sync, presets
from compaction.formats import FORMATS, MessageFormat
from compaction.index.groups import MessageGroup
from compaction.selectors import Selector, as_selector, everything, first, last, nothing, pinned, system, tools
from compaction.strategies import (
    Clear,
    ClearMedia,
    ClearReasoning,
    Clip,
    Collapse,
    Dedupe,
    DropIrrelevant,
    GrowingSummary,
    HeadTail,
    Pipeline,
    SelectiveToolCall,
    SlidingWindow,
    Strategy,
    Summarization,
    SummaryText,
    TokenBudgetComposed,
    ToolResult,
    Truncation,
)
from compaction.summarizers import SummaryRequest
from compaction.testing import check_strategy, check_trigger, conversations, sample_conversations
from compaction.triggers import (
    Trigger,
    always,
    as_trigger,
    bytes_exceed,
    groups_exceed,
    has_tool_calls,
    messages_exceed,
    never,
    tokens_below,
    tokens_exceed,
    turns_exceed,
    worth_it,
)
from tests.support.chats import Chat, indexed
from tests.support.limits import examples
from tests.support.options import CALLS, TRIGGER_ATOMS, USERS, combined, settling
from tests.support.wires import any_conversation


class Terse:
    """A summarizer that returns only the number of groups."""

    def summarize(self, request: SummaryRequest) -> str:
        return f"{len(request.groups)} groups."


class AwaitedTerse:
    async def summarize(self, request: SummaryRequest) -> str:
        return Terse().summarize(request)


class Mute:
    def summarize(self, request: SummaryRequest) -> str:
        return ""


class Judge:
    """A judge that names the parts with an odd first line."""

    def generate(self, prompt: str) -> str:
        parts = re.findall(r"^\[\w{8} part (\d+)\]\n(.*)$", prompt, re.MULTILINE)
        return str([int(number) for number, line in parts if len(line) % 2])


BARE = SummaryText(preface="Before:", end="end")


def growing(initial: int, added: int, most: int, *summarizer: Any, **options: Any) -> GrowingSummary:
    return GrowingSummary(*summarizer, initial_tokens=initial, added_tokens=added, max_tokens=most, **options)


CONFIGURATIONS: dict[str, Strategy] = {
    "truncation": Truncation(keep=last(groups=2)),
    "truncation to a target": Truncation(trigger=tokens_exceed(150), target=tokens_below(100), keep=last(groups=1)),
    "truncation of messages": Truncation(trigger=messages_exceed(6), keep=first(messages=2) | last(messages=3)),
    "truncation, users kept": Truncation(trigger=groups_exceed(4), keep=USERS | last(tokens=80)),
    "truncation, system too": Truncation(trigger=tokens_exceed(20), keep=nothing, drop_system=True),
    "window of a turn": SlidingWindow(),
    "window of turns": SlidingWindow(trigger=turns_exceed(2)),
    "window of two turns": SlidingWindow(keep=last(turns=2)),
    "window without system": SlidingWindow(keep=last(groups=3), drop_system=True),
    "window of groups": SlidingWindow(keep=last(groups=3)),
    "window of tokens": SlidingWindow(trigger=bytes_exceed(300), keep=last(tokens=60) | first(groups=1)),
    "collapse": ToolResult(keep=last(groups=1)),
    "collapse at least": ToolResult(Collapse(outcome_chars=20, argument_chars=10), keep=nothing, at_least=120),
    "collapse to a target": ToolResult(trigger=has_tool_calls & tokens_exceed(200), target=tokens_below(150)),
    "clear": ToolResult(Clear(min_chars=10), keep=last(groups=1, of=CALLS)),
    "clear at least": ToolResult(Clear(placeholder="", min_chars=1), keep=nothing, at_least=60),
    "head and tail": ToolResult(HeadTail(chars=30), keep=nothing),
    "head and tail at least": ToolResult(HeadTail(chars=1), keep=last(groups=1), at_least=50),
    "dedupe": ToolResult(Dedupe(), keep=last(groups=1)),
    "dedupe everything": ToolResult(Dedupe(min_chars=1), keep=nothing, at_least=1),
    "newest readings": ToolResult(Dedupe(min_chars=1, reads=["look", "read_file", "browser_open", "search"]), keep=nothing),
    "calls": SelectiveToolCall(),
    "judged": DropIrrelevant(Judge(), keep=last(groups=1)),
    "calls to a target": SelectiveToolCall(trigger=tokens_exceed(100), keep=tools("browser_*") | last(groups=2)),
    "reasoning": ClearReasoning(),
    "all reasoning": ClearReasoning(trigger=tokens_exceed(60), keep=nothing),
    "media": ClearMedia(),
    "all media": ClearMedia(placeholder="", keep=nothing),
    "digest": Summarization(keep=last(groups=2)),
    "summary": Summarization(Terse(), text=BARE, trigger=tokens_exceed(150), keep=last(groups=1) | first(groups=1)),
    "awaited summary": Summarization(AwaitedTerse(), text=BARE, keep=last(turns=1), system_note="Some of it was summarized."),
    "no summary, dropped": Summarization(Mute(), keep=last(groups=3), on_failure="drop"),
    "pipeline": ClearReasoning() >> ToolResult(Clear(), keep=last(groups=2)) >> Truncation(trigger=messages_exceed(5)),
    "nested": Pipeline(ClearMedia(), ToolResult() >> (SelectiveToolCall() >> SlidingWindow()), Truncation(keep=nothing)),
    "empty pipeline": Pipeline(),
    "budget": TokenBudgetComposed([ToolResult(keep=nothing), SlidingWindow()], budget=80),
    "budget to the end": TokenBudgetComposed(
        [ToolResult(HeadTail(chars=9)), SelectiveToolCall()], budget=120, early_stop=False
    ),
    "budget, system too": TokenBudgetComposed([ClearReasoning()], budget=20, drop_system=True),
    "budget alone": TokenBudgetComposed([], budget=60, keep=last(groups=2)),
    "token budget": presets.token_budget(120),
    "hermes": presets.hermes(400, Terse(), protect_last_n=2),
    "langgraph summary": presets.langgraph_summary(Terse(), max_tokens_before_summary=150, max_summary_tokens=50),
    "clip": Clip(tokens=40),
    "clip at once": Clip(tokens=25, trigger=tokens_exceed(100), keep=USERS),
    "growing summary": growing(60, 30, 100, tokens=150, trigger=tokens_exceed(200)),
    "growing summary, terse": growing(40, 40, 50, Terse(), tokens=1, text=BARE),
    "growing summary, awaited": growing(9, 9, 30, AwaitedTerse(), tokens=120, keep_tokens=40),
    "growing summary, mute": growing(30, 20, 60, Mute(), tokens=100, trigger=turns_exceed(2)),
    "worth it": Truncation(trigger=worth_it(Truncation(keep=last(groups=2)), calls=20), keep=last(groups=2)),
    "adaptive": presets.adaptive(300, reserve_output=50),
    "context window": presets.context_window(300, reserve_output=50, keep_tool_groups=1),
}

each_configuration = pytest.mark.parametrize("strategy", CONFIGURATIONS.values(), ids=CONFIGURATIONS)


@each_configuration
@examples(10)
@given(messages=conversations(pending=True))
def test_laws_hold_on_valid_conversations(strategy: Strategy, messages: Chat) -> None:
    """A list that a provider accepts is accepted after compaction; and the other laws."""
    check_strategy(strategy, messages=messages, settles_in=settling(strategy))


@each_configuration
@examples(10)
@given(messages=conversations(valid=False, pending=True))
def test_laws_hold_on_broken_conversations(strategy: Strategy, messages: Chat) -> None:
    """A list that a provider refuses does not become worse; and the other laws."""
    check_strategy(strategy, messages=messages)


@pytest.mark.filterwarnings("ignore:.*this checks little")
@each_configuration
def test_laws_hold_on_samples(strategy: Strategy) -> None:
    check_strategy(strategy, backend="trio", settles_in=settling(strategy))


@pytest.mark.parametrize("name", sorted(CONFIGURATIONS.keys() - {"empty pipeline"}))
async def test_every_configuration_does_something(name: str) -> None:
    """Every configuration edits at least one sample conversation, so none keeps the laws by doing nothing."""
    results = [await compact(messages, CONFIGURATIONS[name], counter="chars/4") for messages in sample_conversations()]
    assert any(result.edits for result in results)


@examples(25)
@given(messages=conversations(pending=True))
def test_laws_hold_with_pins(messages: Chat) -> None:
    """A pinned message is never touched, and the laws hold around it."""
    pipeline = ToolResult(keep=nothing) >> ClearReasoning(keep=nothing) >> Truncation(keep=nothing)

    def pin(message: Any) -> bool:
        return message.role == "tool" or message.text == "Fine."

    wanted = [group.messages for group in MessageIndex(messages, counter="chars/4", pin=pin).included_groups if group.pinned]
    left = {id(raw) for raw in compact_sync(messages, pipeline, counter="chars/4", pin=pin).messages}
    check_strategy(pipeline, messages=messages, pin=pin)
    assert all(id(message.raw) in left for group in wanted for message in group)


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

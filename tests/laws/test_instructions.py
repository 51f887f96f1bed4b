"""Law 12: a conversation of any length, with instructions and reminders anywhere in it, settles below its target."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction import MessageIndex, RunContext, presets, run_sync
from compaction.formats import MessageFormat, anthropic, openai_chat, openai_responses
from compaction.messages import ToolCallPart, ToolResultPart
from compaction.strategies import LastResort, Strategy
from compaction.testing import check_strategy
from tests.support.limits import examples
from tests.support.options import settling

WINDOW: Final = 2_000
PRESETS: Final[dict[str, Callable[[int], Strategy]]] = {
    **{make.__name__: make for make in (presets.adaptive, presets.context_window, presets.hermes, presets.token_budget)},
    "last resort": lambda window: LastResort(tokens=window),
}
FORMATS: Final = (openai_chat, openai_responses, anthropic)
TOPICS: Final = ("alpha", "bravo", "copper", "delta", "eagle", "falcon", "garnet", "harbor", "island", "jasper")

Step = tuple[str, int]
KINDS: Final = st.sampled_from(["call", "call", "said", "reminder", "reminder", "rule", "developer"])
STEPS: Final = st.lists(st.tuples(KINDS, st.integers(1, 30)), min_size=1, max_size=12)


def conversation(format: MessageFormat, steps: list[Step], times: int) -> list[Any]:
    """Return the steps, repeated so many times, as a conversation in the format."""
    messages: list[Any] = [] if format is anthropic else [{"role": "system", "content": "You are an agent."}]
    messages.append({"role": "user", "content": "Fix the build."})
    for number, (kind, size) in enumerate(steps * times):
        if kind == "call":
            messages += _call(format, number, f"line {size} of the output. " * size)
        elif kind == "said":
            messages += [_answer(format), {"role": "user", "content": f"Then step {number}. " + "And so on. " * size}]
        else:
            messages += _instruction(format, messages, kind, number)
    return [*messages, _answer(format)]


def _answer(format: MessageFormat) -> Any:
    return {"role": "assistant", "content": [{"type": "text", "text": "Done."}] if format is anthropic else "Done."}


def _call(format: MessageFormat, number: int, text: str) -> list[Any]:
    calls = format.compose("assistant", [ToolCallPart(f"c{number}", "sh", json.dumps({"n": number}))])
    return [message.raw for message in (*calls, *format.compose("user", [ToolResultPart(f"c{number}", text)]))]


def _instruction(format: MessageFormat, messages: list[Any], kind: str, number: int) -> list[Any]:
    """Return an instruction: a reminder that repeats, with another number, or a rule unlike the ones before."""
    text = f"Reminder {number}: keep the list of tasks current, and answer briefly."
    if kind == "rule":
        text = " ".join(TOPICS[(number * each) % 10] + "abcdefg"[number % 7] for each in range(1, 8))
    role = "developer" if kind == "developer" and format is not anthropic else "system"
    after_user = format is not anthropic or messages[-1]["role"] == "user"  # the only place where this format accepts one
    before = [] if after_user else [{"role": "user", "content": "Go on."}]
    after = [_answer(format)] if format is anthropic else []
    return [*before, {"role": role, "content": text}, *after]


each_format = pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)


@each_format
@pytest.mark.parametrize("name", PRESETS)
@examples(6)
@given(steps=STEPS, times=st.integers(1, 40))
def test_it_settles_below_its_target(format: MessageFormat, name: str, steps: list[Step], times: int) -> None:
    """However many instructions a conversation has, and wherever they stand, the request fits, and is valid."""
    messages = conversation(format, steps, times)
    index = MessageIndex(messages, counter="chars/4", format=format, context=RunContext(window=WINDOW))
    result = run_sync(index, PRESETS[name](WINDOW))
    assert result.after.tokens <= WINDOW
    assert result.outcome != "over_target"
    assert format.validate(result.messages) == []


@each_format
@pytest.mark.parametrize("name", PRESETS)
@examples(4)
@given(steps=STEPS)
def test_every_preset_keeps_the_other_laws(format: MessageFormat, name: str, steps: list[Step]) -> None:
    """Where instructions leave, laws 1 to 11 hold as everywhere."""
    strategy = PRESETS[name](600)
    check_strategy(strategy, messages=conversation(format, steps, 3), format=format, words=True, settles_in=settling(strategy))


@each_format
def test_reminders_do_not_pile_up(format: MessageFormat) -> None:
    """With a reminder every ten calls, a cut leaves as many of them after 300 calls as after 50."""
    step: list[Step] = [*[("call", 10)] * 10, ("reminder", 1)]
    left: list[int] = []
    for times in (5, 30):
        index = MessageIndex(conversation(format, step, times), counter="chars/4", format=format)
        view = run_sync(index, presets.adaptive(WINDOW)).messages
        left.append(sum("Reminder" in str(message) and "role" in message for message in view))
    assert left[0] == left[1] <= 2

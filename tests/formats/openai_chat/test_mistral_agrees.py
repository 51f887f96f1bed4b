"""The package's rules about pairs agree with mistral_common's V13 validator on recorded conversations and mutations."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction import compact_sync
from compaction.formats import FORMATS, MessageFormat, openai_chat
from compaction.strategies import Strategy
from tests.formats.openai_chat.examples import USER as HI
from tests.formats.openai_chat.examples import Raw, answer, asked, assistant, call
from tests.support.conversion import convert
from tests.support.wires import STRATEGIES, each_of, valid_conversation

MISSING = "mistral_common is not installed"
mistral_errors = pytest.importorskip("mistral_common.exceptions", reason=MISSING)
mistral_messages = pytest.importorskip("mistral_common.protocol.instruct.messages", reason=MISSING)
mistral_calls = pytest.importorskip("mistral_common.protocol.instruct.tool_calls", reason=MISSING)
mistral_rules = pytest.importorskip("mistral_common.protocol.instruct.validator", reason=MISSING)

PAIRING = {
    *("call-without-id", "call-without-result", "duplicate-call-id", "duplicate-result"),
    *("pending-call", "result-without-call", "result-without-id"),
}
SYSTEM = {"system", "developer"}

ASKED, ANSWER, SAID = asked(call()), answer(), assistant(content="hi")
BRIEF: Raw = {"role": "system", "content": "be brief"}


def theirs(messages: list[Raw], mode: str = "serving") -> bool:
    try:
        validator = mistral_rules.MistralRequestValidatorV13(mode=mistral_rules.ValidationMode(mode))
        validator.validate_messages([translated(message) for message in messages])
    except mistral_errors.MistralCommonException:
        return False
    return True


def translated(message: Raw) -> Any:
    """Return the message for V13, with its role and ids; words, names and arguments are constants, as pairing ignores them."""
    if message["role"] == "assistant":
        call = mistral_calls.FunctionCall(name="tool", arguments="{}")
        calls = [mistral_calls.ToolCall(id=entry["id"], function=call) for entry in message.get("tool_calls") or ()]
        return mistral_messages.AssistantMessage(content="words", tool_calls=calls or None)
    if message["role"] == "tool":
        return mistral_messages.ToolMessage(content="words", tool_call_id=message["tool_call_id"])
    kind = mistral_messages.SystemMessage if message["role"] == "system" else mistral_messages.UserMessage
    return kind(content="words")


def ours(messages: list[Raw]) -> bool:
    """Return whether the package's rules find every call and result paired, as they must be to be sent."""
    return PAIRING.isdisjoint(problem.rule for problem in openai_chat.validate(messages))


def comparable(messages: list[Raw]) -> list[Raw]:
    """Return the list without differences that are not about pairs.

    The list starts with a user message and does not end with an assistant message.
    System messages become user messages, which separate a call from its result just as well.
    """
    kept = [HI, *({**m, "role": "user"} if m["role"] in SYSTEM else m for m in messages)]
    while kept[-1]["role"] == "assistant":
        kept.pop()
    return kept


def mutations(messages: list[Raw]) -> Iterator[list[Raw]]:
    """Yield the list with one fault at a time, for up to ten of its results and ten of its calling messages."""
    results = [n for n, message in enumerate(messages) if message["role"] == "tool"]
    callers = [n for n, message in enumerate(messages) if message.get("tool_calls")]
    for n in results[:5] + results[-5:]:
        other = {**messages[n], "tool_call_id": "another"}
        yield [*messages[:n], *messages[n + 1 :]]
        yield [*messages[:n], other, *messages[n + 1 :]]
        yield [*messages[:n], messages[n], *messages[n:]]
        yield [*messages[:n], *messages[n + 1 : n + 2], messages[n], *messages[n + 2 :]]
        yield messages[: n + 1]
        yield messages[n:]
    for n in callers[:5] + callers[-5:]:
        calls = messages[n]["tool_calls"]
        parallel = {**messages[n], "tool_calls": [*calls, {**calls[0], "id": "parallel"}]}
        renamed = {**messages[n], "tool_calls": [{**calls[0], "id": "another"}, *calls[1:]]}
        yield [*messages[:n], *messages[n + 1 :]]
        yield [*messages[:n], {**messages[n], "tool_calls": calls[1:] or None}, *messages[n + 1 :]]
        yield [*messages[:n], renamed, *messages[n + 1 :]]
        yield [*messages[:n], parallel, *messages[n + 1 :]]
        yield [*messages[:n], {**messages[n], "tool_calls": [*calls, calls[0]]}, *messages[n + 1 :]]
        yield messages[: n + 1]


@pytest.mark.parametrize(
    "name", ["tau_airline", "openhands", "sweagent_demos", "cassettes", "inspect_logs", "whowhen_multiagent"]
)
def test_recorded_conversations_and_their_mutations(corpus: Callable[[str], list[dict[str, Any]]], name: str) -> None:
    """V13 and the package give the same verdict on each recorded conversation and on each of its mutations."""
    disagreed: list[tuple[str, list[Raw]]] = []
    verdicts: set[bool] = set()
    for conversation in corpus(name):
        messages = conversation["messages"]
        for candidate in (messages, *mutations(messages)):
            compared = comparable(candidate)
            verdict = ours(compared)
            verdicts.add(verdict)
            if verdict != theirs(compared):
                disagreed.append((conversation["id"], compared))
    assert disagreed == []
    assert verdicts == ({True} if name == "whowhen_multiagent" else {True, False})


IDS = st.sampled_from(["a", "b", "call_1"])
MESSAGES = (
    st.sampled_from(
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hi"}, {"role": "system", "content": "hi"}]
    )
    | st.builds(lambda identifier: {"role": "tool", "tool_call_id": identifier, "content": "noon"}, IDS)
    | st.builds(
        lambda ids: {**ASKED, "tool_calls": [{**ASKED["tool_calls"][0], "id": identifier} for identifier in ids]},
        st.lists(IDS, min_size=1, max_size=3),
    )
)


@given(st.lists(MESSAGES, max_size=12))
def test_any_order_of_messages(messages: list[Raw]) -> None:
    compared = comparable(messages)
    assert ours(compared) == theirs(compared)


@given(st.lists(MESSAGES, max_size=12))
def test_repaired_lists(messages: list[Raw]) -> None:
    """V13 takes what our repair makes of a list, if nothing is left pending at its end."""
    compared = comparable(openai_chat.repair(comparable(messages)).messages)
    pending = [problem for problem in openai_chat.validate(compared) if problem.rule == "pending-call"]
    assert theirs(compared) == (not pending)


@pytest.mark.parametrize(
    ("messages", "mode", "we", "they"),
    [
        pytest.param([HI, ASKED, HI], "test", False, True, id="outside serving: a call, then a user message"),
        pytest.param([HI, ASKED, HI], "serving", False, False, id="serving: the same"),
        pytest.param([HI, SAID, BRIEF, HI], "serving", True, False, id="a system message after an answer"),
        pytest.param([HI, ASKED, ANSWER, BRIEF], "serving", True, False, id="a system message after a result"),
        pytest.param([HI, SAID], "serving", True, False, id="an assistant message at the end"),
        pytest.param([ASKED, ANSWER], "serving", True, False, id="the first message calls"),
        pytest.param([ANSWER, HI], "serving", False, True, id="the first message is a result"),
    ],
)
def test_known_disagreements(messages: list[Raw], mode: str, we: bool, they: bool) -> None:
    """The verdicts of V13 and the package differ in exactly the cases that ``docs/validity.md`` lists."""
    assert (ours(messages), theirs(messages, mode)) == (we, they)


@pytest.mark.parametrize("identifier", ["x", "call_" + "9" * 60, "ä ö", "null"])
def test_ids(identifier: str) -> None:
    """The package accepts any id that is a non-empty text; V13 accepts the same, except the text ``null``."""
    call = copy.deepcopy(ASKED)
    call["tool_calls"][0]["id"] = identifier
    messages = [HI, call, {**ANSWER, "tool_call_id": identifier}]
    assert (ours(messages), theirs(messages)) == (True, identifier != "null")


@pytest.mark.parametrize("format", [format for format in FORMATS if format is not openai_chat], ids=repr)
@each_of(STRATEGIES)
@given(data=st.data())
def test_compacted_lists(format: MessageFormat, strategies: Sequence[Strategy], data: st.DataObject) -> None:
    """A compacted list of another format, written as chat completions, has its pairs right, except for calls that wait."""
    messages = data.draw(valid_conversation(format))
    waiting = any(problem.rule == "pending-call" for problem in format.validate(messages))
    for strategy in strategies:
        left = compact_sync(messages, strategy, counter="chars/4", format=format).messages
        chat = convert(left, to=openai_chat, format=format)
        asking = [message for message in chat if message["role"] != "assistant" or message.get("tool_calls")]
        ends_with_calls = bool(asking and asking[-1].get("tool_calls"))
        assert (theirs(comparable(chat)) and not ends_with_calls) != waiting

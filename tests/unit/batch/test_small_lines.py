"""Lines that are too small for the strategy: written as they came, without an index and often without counting tokens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction import MessageIndex, RunContext, compact_sync, last, triggers
from compaction.batch.job import Job
from compaction.batch.report import BatchCounts
from compaction.batch.rows import BadConversation, JsonLine
from compaction.batch.unchanged import count_unchanged, does_nothing
from compaction.batch.workers import compact_row
from compaction.errors import InputError, StateError
from compaction.run import unawaited
from compaction.strategies import SlidingWindow, TokenBudgetComposed, Truncation
from compaction.tokens import ByteClassEstimate, BytesPerToken, CharsPerToken, Memoized, counter, least_bytes_per_token
from compaction.triggers import Trigger, context_exceeds, tokens_exceed
from tests.support.chats import tool_turns, turns, user
from tests.support.corpora import BAD, CHATS, errors_of, lines, run
from tests.support.options import TRIGGER_ATOMS, combined

TEXTS = st.text(max_size=12)
NAMES = st.one_of(st.just("bo"), TEXTS)
CALLS = st.fixed_dictionaries(
    {"id": TEXTS, "type": st.just("function"), "function": st.fixed_dictionaries({"name": TEXTS, "arguments": TEXTS})}
)
MESSAGES = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {"role": st.sampled_from(["user", "assistant", "system"]), "content": TEXTS}, optional={"name": NAMES}
        ),
        st.fixed_dictionaries({"role": st.just("tool"), "content": TEXTS, "tool_call_id": TEXTS}, optional={"name": NAMES}),
        st.fixed_dictionaries(
            {"role": st.just("assistant"), "content": st.none() | TEXTS, "tool_calls": st.lists(CALLS, min_size=1, max_size=3)},
            optional={"name": NAMES},
        ),
    ),
    max_size=6,
)
PARTS = st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS}), min_size=1, max_size=3)
IN_PARTS = st.builds(
    lambda message, parts: {**message, "content": parts}, MESSAGES.filter(bool).map(lambda each: each[0]), PARTS
)
COUNTERS = [counter(name) for name in ("chars/4", "bytes/4", "o200k_base")]


def left_unchanged(job: Job, row: JsonLine) -> BatchCounts | None:
    """Return the counts of a line that is left unchanged; ``None`` for any other."""
    counts = BatchCounts()
    if count_unchanged(job, row, row.read(), counts):
        return counts
    assert counts == BatchCounts()
    return None


@pytest.mark.parametrize("counter", COUNTERS, ids=lambda counter: counter.name)
@given(messages=MESSAGES | st.lists(IN_PARTS, min_size=1, max_size=4), escaped=st.booleans())
def test_a_line_has_at_most_so_many_tokens(counter: Any, messages: list[dict[str, Any]], escaped: bool) -> None:
    """The tokens around the texts included, in the shortest JSON; at that limit the line is left unchanged, uncounted."""
    text = json.dumps(messages, ensure_ascii=escaped, separators=(",", ":"))
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        return
    index = MessageIndex(messages, counter=counter, format="openai-chat")
    most = len(text.encode()) // least_bytes_per_token(counter)
    assert index.tokens <= most
    assert index.included.bytes <= len(text.encode())
    job = Job(strategy=Truncation(trigger=tokens_exceed(most)), counter=counter)
    row = JsonLine(text.encode())
    assert left_unchanged(job, row) == BatchCounts(uncounted=1, messages_before=len(messages), messages_after=len(messages))


@given(messages=MESSAGES, limit=st.integers(0, 200))
def test_it_is_what_a_reading_would_give(messages: list[dict[str, Any]], limit: int) -> None:
    """A line is left unchanged only if the strategy, run on it, changes nothing; tokens that were counted are the same."""
    row = JsonLine(json.dumps({"messages": messages}).encode())
    strategy = Truncation(trigger=tokens_exceed(limit), keep=last(messages=1))
    counts = left_unchanged(Job(strategy=strategy, counter="chars/4"), row)
    if counts is not None:
        result = compact_sync(row.read(), strategy, counter="chars/4")
        assert result.outcome == "unchanged"
        assert counts.uncounted or counts.tokens_before == result.before.tokens


@given(
    trigger=combined(st.sampled_from(TRIGGER_ATOMS)),
    chat=st.integers(0, 3).map(tool_turns) | st.integers(0, 4).map(turns),
    room=st.integers(0, 5),
)
def test_a_strategy_that_does_nothing_within_bounds(trigger: Trigger, chat: list[dict[str, Any]], room: int) -> None:
    """Its trigger does not fire for a conversation within them, whatever the trigger is made of."""
    index = MessageIndex(chat, counter="chars/4", context=RunContext(window=50))
    bounds = {unit: getattr(index.included, unit) + room for unit in ("tokens", "bytes", "messages")}
    assert not (does_nothing(Truncation(trigger=trigger), window=50, **bounds) and trigger(index))


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (Truncation(trigger=tokens_exceed(10)), True),
        (Truncation(trigger=tokens_exceed(9)), False),
        (Truncation(trigger=context_exceeds(0.5)), True),
        (Truncation(trigger=tokens_exceed(10) | (lambda index: index.tokens > 10)), True),
        (Truncation(trigger=~tokens_exceed(10)), False),
        (Truncation(trigger=tokens_exceed(10)) >> Truncation(trigger=tokens_exceed(11)), True),
        (Truncation(trigger=tokens_exceed(10)) >> SlidingWindow(), False),
        (TokenBudgetComposed([SlidingWindow()], budget=10), True),
        (TokenBudgetComposed([SlidingWindow()], budget=9), False),
        (lambda index: () if index.tokens >= 0 else ("edit",), True),
        (lambda index: () if index.tokens >= 1 else ("edit",), False),
        (lambda index: () if index.tokens < 11 else ("edit",), True),
        (lambda index: () if index.tokens < 10 else ("edit",), False),
        (lambda index: () if index.tokens > -1 else ("edit",), True),
        (lambda index: () if index.tokens > 0 else ("edit",), False),
    ],
)
def test_the_limit_decides(strategy: Any, expected: bool) -> None:
    """At its limit, a strategy does nothing; one past it, or if it asks for more than sizes, it may do something."""
    assert does_nothing(strategy, tokens=10, bytes=40, messages=3, window=20) is expected


SIZES: dict[str, Any] = {"tokens": 10, "bytes": 40, "messages": 3, "window": 20}
DECIDED: dict[str, Trigger] = {
    "always": triggers.always,
    "bytes_exceed": triggers.bytes_exceed(40),
    "context_exceeds": triggers.context_exceeds(0.5),
    "every": triggers.every(turns=4),
    "groups_exceed": triggers.groups_exceed(3),
    "messages_exceed": triggers.messages_exceed(3),
    "never": triggers.never,
    "tokens_below": triggers.tokens_below(11),
    "tokens_exceed": triggers.tokens_exceed(10),
    "turns_exceed": triggers.turns_exceed(3),
}
UNDECIDED: dict[str, Trigger] = {
    "has_tool_calls": triggers.has_tool_calls,
    "idle_for": triggers.idle_for(60),
    "worth_it": triggers.worth_it(Truncation(trigger=tokens_exceed(10))),
}


def test_every_trigger_is_known_to_be_decided_or_not() -> None:
    """A new trigger belongs to one of the lists."""
    assert set(triggers.__all__) - {"Trigger", "TriggerLike", "as_trigger"} == {*DECIDED, *UNDECIDED}


@pytest.mark.parametrize("name", DECIDED)
def test_a_trigger_is_decided_from_sizes(name: str) -> None:
    """It or its negation is false for all conversations within the bounds, so one of the two strategies does nothing."""
    trigger = DECIDED[name]
    assert sum(does_nothing(Truncation(trigger=each), **SIZES) for each in (trigger, ~trigger)) == 1


@pytest.mark.parametrize("name", UNDECIDED)
def test_a_trigger_that_needs_more_than_sizes(name: str) -> None:
    """The strategy runs on an index; a trigger that becomes decidable moves to the other list."""
    trigger = UNDECIDED[name]
    assert not any(does_nothing(Truncation(trigger=each), **SIZES) for each in (trigger, ~trigger))


@pytest.mark.parametrize("error", [AssertionError, ZeroDivisionError, InputError, StateError, RuntimeError])
def test_an_error_is_undecided(error: type[Exception]) -> None:
    """The strategy may refuse the stand-in for an index in any way; it then runs on a real one, which raises its own errors."""

    def fails(index: Any) -> Any:
        raise error("not an index")

    assert not does_nothing(fails, **SIZES)


class Words:
    """A counter that says nothing about bytes."""

    name, exact = "words", False

    def count_text(self, text: str) -> int:
        return len(text.split())


def test_a_counter_need_not_say() -> None:
    """The estimate may give a byte two tokens, so it says nothing either; a memo says what its counter says."""
    assert [least_bytes_per_token(each) for each in (Words(), ByteClassEstimate(), Memoized(Words()))] == [None, None, None]
    assert [least_bytes_per_token(each) for each in (CharsPerToken(), Memoized(BytesPerToken()))] == [4, 4]


@pytest.mark.parametrize(("over", "unchanged"), [(0, True), (1, False)])
def test_tokens_are_counted_without_an_index(over: int, unchanged: bool) -> None:
    """If the size of a line gives no bound, its tokens are counted and compared with the limits of strategy and job."""
    messages = [user("a " * 10), user("b " * 10)]
    row, tokens = JsonLine(json.dumps(messages).encode()), MessageIndex(messages, counter=Words()).tokens
    for limit, budget in ((tokens - over, None), (tokens, tokens - over)):
        job = Job(Truncation(trigger=tokens_exceed(limit)), counter=Words(), budget=budget)
        counted = BatchCounts(messages_before=2, messages_after=2, tokens_before=tokens, tokens_after=tokens)
        assert left_unchanged(job, row) == (counted if unchanged else None)
    parts = JsonLine(json.dumps([*messages, {**user(), "content": [{"type": "text", "text": "a"}]}]).encode())
    assert left_unchanged(Job(Truncation(trigger=tokens_exceed(99)), counter=Words()), parts) is None


@pytest.mark.parametrize(
    ("options", "messages"),
    [
        ({"strict": True}, turns(1)),
        ({"budget": 1}, turns(1)),
        ({"format": "anthropic"}, turns(1)),
        ({"strategy": SlidingWindow()}, turns(1)),
        ({}, [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://a/b"}}]}]),
        ({}, [{**user("a"), "extra": {}}]),
        ({}, [{**user("a"), "name": 5}]),
        ({}, tool_turns(9)),
    ],
)
def test_an_index_is_made_of_all_others(options: dict[str, Any], messages: Sequence[Any]) -> None:
    """If the job, the strategy or a message gives no bound, or the bound is too large."""
    job = Job(**{"strategy": Truncation(trigger=tokens_exceed(300)), "counter": "chars/4", **options})
    row = JsonLine(json.dumps(messages).encode())
    counts = BatchCounts()
    assert left_unchanged(job, row) is None
    assert not isinstance(unawaited(compact_row(job, row, counts, sync=True)), BadConversation)
    assert counts.uncounted == 0


@pytest.mark.parametrize("counter", ["chars/4", Words()], ids=["bounded", "counted"])
def test_they_are_written_as_they_came_and_reported(counter: Any, tmp_path: Path) -> None:
    """The same bytes and the same bad lines as when each gets an index; the report says how many were not counted."""
    (tmp_path / "in.jsonl").write_bytes(b" " + lines() + b"".join(BAD))
    options = {"budget": None, "counter": counter}
    large = tokens_exceed(100_000)
    quick = run(tmp_path / "in.jsonl", tmp_path / "quick.jsonl", **options, strategy=Truncation(trigger=large))
    slow = Truncation(trigger=large | (lambda index: index.edit_count < 0))
    read = run(tmp_path / "in.jsonl", tmp_path / "read.jsonl", **options, strategy=slow)
    one, other = quick.tally, read.tally
    assert (one.uncounted, other.uncounted) == (len(CHATS) if counter == "chars/4" else 0, 0)
    assert (one.messages_before, one.messages_after) == (other.messages_before, other.messages_after)
    tokens = (0, 0) if one.uncounted else (other.tokens_before, other.tokens_after)
    assert (one.tokens_before, one.tokens_after) == tokens
    assert (tmp_path / "quick.jsonl").read_bytes() == (tmp_path / "read.jsonl").read_bytes() == b" " + lines()
    assert errors_of(quick) == errors_of(read)

"""The conformance checks themselves: they accept strategies and triggers that keep the laws, and find each broken law."""

from __future__ import annotations

import contextlib
import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from compaction import Problem, compact_sync, first, last, presets, validate
from compaction.errors import CompactionError, ConfigurationError
from compaction.formats import MessageFormat, OpenAIChat, anthropic
from compaction.index import Drop, GroupKind, MessageIndex, Request, Rewrite, RunContext
from compaction.index.marks import read_mark
from compaction.messages import Message
from compaction.strategies import SlidingWindow, Summarization, SummaryText, ToolResult, Truncation
from compaction.testing import (
    LAWS,
    CheckReport,
    LawBroken,
    agent_session,
    benchmark_strategy,
    check_strategy,
    check_trigger,
    conversations,
    sample_conversations,
)
from compaction.testing.written import write_chat
from compaction.triggers import Trigger, always, context_exceeds, never, tokens_below, tokens_exceed
from tests.support.chats import Chat, assistant, call, result, system, thought, user
from tests.support.scripted import Scripted

Steps = Generator[Any, Any, None]


def drop_one(index: MessageIndex) -> Steps:
    free = [group for group in index.included_groups if index.is_removable(group)]
    if free:
        yield Drop(free[0], "one")


def idle(index: MessageIndex) -> Steps:
    yield from ()


def shout(index: MessageIndex) -> Steps:
    for raw in index.messages():
        raw["content"] = "!"
    yield from ()


def in_turn() -> Callable[[MessageIndex], Steps]:
    """Return a strategy that drops different groups of an equal conversation on each run."""
    runs = itertools.count()

    def strategy(index: MessageIndex) -> Steps:
        free = [group for group in index.included_groups if index.is_removable(group)]
        if len(free) > 3:
            spared = free[next(runs) % 2]
            yield Drop([group for group in free if group is not spared], "all but one")

    return strategy


def say_more(index: MessageIndex) -> Steps:
    if len(index.source) < 30:
        index.append([{"role": "user", "content": "more " * 90}])
    yield from ()


def garble(index: MessageIndex) -> Steps:
    """Bypass the index to show a message with content that the format does not allow."""
    for group in index.included_groups:
        message = group.messages[0]
        if index.is_rewritable(group) and message.role == "user" and message.text:
            garbled = index.format.read({**message.raw, "content": 5})
            index.columns.show(group.id, (garbled, *index.measure(garbled)))
            index.columns.journal.append(attrs.evolve(_made(), edit=Rewrite(group, group.messages, "garbled")))
    yield from ()


def tear(index: MessageIndex) -> Steps:
    """Bypass the index to show half of a group."""
    for group in index.included_groups:
        if len(group.messages) > 1:
            index.columns.show(group.id + 1, (None, 0, 0))
    yield from ()


def swap(index: MessageIndex) -> Steps:
    """Show a copy of a message that no edit names."""
    message = index.included_groups[0].messages[0]
    index.columns.show(0, (message.evolve(text="short"), *index.measure(message)))
    yield from ()


def turn_around(index: MessageIndex) -> Steps:
    """Show the messages in another order."""
    index.columns._raws.reverse()
    yield from ()


def forget_the_user(index: MessageIndex) -> Steps:
    """Drop the last user message without permission."""
    user = next(group for group in reversed(index.included_groups) if group.messages[0].role == "user")
    yield from _hide(index, user.id)


def forget_the_rules(index: MessageIndex) -> Steps:
    """Drop a system message without permission."""
    yield from _hide(index, 0)


def _hide(index: MessageIndex, id: int) -> Steps:
    index.columns.set_shown([id], shown=False)
    index.columns.journal.append(attrs.evolve(_made(), edit=Drop(id, "forgotten")))
    yield from ()


def _made() -> Any:
    """Return a journal entry to copy from."""
    other = MessageIndex([user("a"), user("b")], counter="chars/4")
    assert other.apply(Drop(0))
    return other.journal[0]


def leave_a_trace(index: MessageIndex) -> Steps:
    """Change the index in a way that no rollback undoes."""
    index.columns.included.tool_calls += 1
    yield from ()


CULPRITS: list[tuple[int, Any]] = [
    *((1, garble), (2, tear)),
    *((3, each) for each in (swap, turn_around, forget_the_user, forget_the_rules)),
    *((4, say_more), (5, drop_one)),
    *((7, shout), (7, in_turn())),
    (9, leave_a_trace),
]


@pytest.mark.parametrize(("law", "strategy"), CULPRITS, ids=[f"{law}-{strategy.__name__}" for law, strategy in CULPRITS])
def test_each_law_can_be_seen_broken(law: int, strategy: Any) -> None:
    with pytest.raises(LawBroken) as caught:
        check_strategy(strategy)
    assert (caught.value.law, LawBroken.__bases__) == (law, (CompactionError, AssertionError))
    assert str(caught.value).startswith(f"law {law}: {LAWS[law]}\n")


def test_every_law_of_the_suite_is_seen_broken() -> None:
    assert {law for law, _ in CULPRITS} | {11} == set(LAWS)  # tests/laws/test_user_words.py shows a strategy that breaks 11


def test_new_faults_are_told_from_old_ones() -> None:
    """A fault that was in the input may stay, also under another rule's name; an additional fault of its kind is an error."""

    class Strict(OpenAIChat):
        def validate(self, raws: Any) -> list[Problem]:
            short = [place for place, raw in enumerate(raws) if raw["content"] == "short"]
            return [Problem(f"messages[{place}]", "too-short", "it is short", "say more") for place in short]

    def shorten(index: MessageIndex) -> Steps:
        for group in index.included_groups:
            if group.messages[0].text not in ("short", "stays"):
                yield Rewrite(group, [group.messages[0].evolve(text="short")], "short")

    check_strategy(shorten, messages=[user("short"), user("stays")], format=Strict())
    with pytest.raises(LawBroken, match="too-short in group"):
        check_strategy(shorten, messages=[user("short"), user("long " * 9), user("stays")], format=Strict())


def test_a_second_result_is_the_same_fault_without_its_call() -> None:
    """A repeated result counts as the same fault whether its call is kept or dropped, also for a legacy function."""
    asked = {"role": "assistant", "content": None, "function_call": {"name": "now", "arguments": "{}"}}
    said = {"role": "function", "name": "now", "content": "noon"}
    strategy = Truncation(keep=last(groups=2))
    for messages in ([asked, said, result("9"), said, user()], [call("1"), result("1"), result("9"), result("1"), user()]):
        assert [problem.rule for problem in validate(messages)] == ["result-without-call", "duplicate-result"]
        assert compact_sync(messages, strategy, counter="chars/4").edits
        check_strategy(strategy, messages=messages)


def test_what_a_strategy_raises_comes_out() -> None:
    with pytest.raises(ConfigurationError, match="the context window is unknown"):
        check_strategy(Truncation(trigger=context_exceeds(0.5)))
    check_strategy(Truncation(trigger=context_exceeds(0.5)), context=RunContext(window=2_000))


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_strategies_that_await_are_checked(backend: Any) -> None:
    awaited: list[int] = []

    @attrs.frozen
    class Ask(Request):
        async def call(self) -> int:
            awaited.append(1)
            return 2

    def strategy(index: MessageIndex) -> Steps:
        count = yield Ask()
        yield from Truncation(trigger=tokens_exceed(100), target=tokens_below(100 // count))(index)

    check_strategy(strategy, backend=backend)
    assert len(awaited) >= 4 * len(sample_conversations())


def test_the_report_says_how_often_it_fired() -> None:
    report = check_strategy(Truncation(trigger=tokens_exceed(500)) >> SlidingWindow(trigger=never))
    assert report == CheckReport(name="Pipeline", conversations=len(sample_conversations()), fired=6, edits=33)
    assert str(report) == "Pipeline fired on 6 of 14 conversations and made 33 edits"
    assert str(check_trigger(tokens_exceed(500))) == "tokens_exceed(500) fired on 6 of 15 conversations"


def test_code_that_did_nothing_is_reported() -> None:
    """On the samples, a strategy without edits and a trigger that never fires are a warning; otherwise, the report says it."""
    no_edits = r"^idle fired on 14 of 14 conversations and made no edits; this checks little: pass messages="
    never_fired = r"^SlidingWindow never fired on 14 conversations; this checks little: pass messages="
    with pytest.warns(UserWarning, match=no_edits):
        assert check_strategy(idle).did_nothing
    with pytest.warns(UserWarning, match=never_fired):
        check_strategy(SlidingWindow(trigger=never))
    with pytest.warns(UserWarning, match="^never never fired on 15 conversations; this checks little") as warned:
        check_trigger(never)
    assert warned[0].filename == __file__
    assert "idle fired on 1 of 1 conversations and made no edits;" in str(check_strategy(idle, messages=agent_session(9)))
    assert str(check_trigger(never, messages=[])).startswith("never never fired on 1 conversations;")


def odd(index: MessageIndex) -> bool:
    """Return whether the number of messages is odd; a module-level function, which can be pickled."""
    return index.included.messages % 2 == 1


class Named(Trigger):
    """A user's own trigger, equal only to itself."""

    def __call__(self, index: MessageIndex) -> bool:
        return True

    def explain(self, index: MessageIndex) -> str:
        return "always"


@attrs.frozen
class Wordless(Named):
    def explain(self, index: MessageIndex) -> str:
        return ""


def alternating() -> Callable[[MessageIndex], bool]:
    """Return a condition that alternates between true and false."""
    asked = itertools.count()
    return lambda index: next(asked) % 2 == 0


def edits(index: MessageIndex) -> bool:
    free = [group for group in index.included_groups if index.is_removable(group)]
    return bool(free) and index.apply(Drop(free[0])) and index.checkpoint() >= 0


def adds_a_turn(index: MessageIndex) -> bool:
    index.context = attrs.evolve(index.context, overhead_tokens=index.context.overhead_tokens + 1)
    return True


@attrs.frozen
class Unfair(Named):
    def __invert__(self) -> Trigger:
        return self


@pytest.mark.parametrize(
    ("trigger", "what"),
    [
        (lambda index: 1, "not a bool"),
        (lambda index: None, "not a bool"),
        (alternating(), "something else for the same index"),
        (adds_a_turn, "changes the index"),
        (edits, "changes the index"),
        (Unfair(), "so does its negation"),
        (always & (lambda index: True), "cannot be pickled"),
        (Named(), "not equal to its unpickled copy"),
        (Wordless(), "not a non-empty text"),
    ],
)
def test_bad_triggers_are_caught(trigger: Any, what: str) -> None:
    with pytest.raises(LawBroken, match=what) as caught:
        check_trigger(trigger)
    assert caught.value.law == 0


def test_a_benchmark_is_a_table() -> None:
    """Each size has a row with its edits, its times by the given clock, and the growth from the size before."""
    ticks = itertools.accumulate([0.0, *[1.0, 2.0, 0.0] * 2, *[10.0, 40.0, 0.0] * 2])
    table = benchmark_strategy(SlidingWindow(), [10, 100], repeats=2, clock=lambda: next(ticks))
    small, large = table.rows
    assert table.strategy == "SlidingWindow"
    assert (small.messages, small.read_seconds, small.run_seconds, small.growth) == (10, 1.0, 2.0, None)
    assert (large.messages, large.read_seconds, large.run_seconds, large.growth) == (100, 10.0, 40.0, pytest.approx(20.0))
    assert large.tokens_after < large.tokens_before
    assert large.edits == 9
    lines = str(table).splitlines()
    assert lines[1].split() == ["messages", "tokens", "after", "edits", "read", "ms", "run", "ms", "x10"]
    assert lines[3].split()[-2:] == ["40,000.00", "20.0"]
    assert len({len(line) for line in lines[1:]}) == 1


def test_growth_is_that_of_ten_times_the_messages() -> None:
    """Growth is per tenfold size: from 10 to 1,000 messages, a hundred times the time is a growth of ten."""
    ticks = itertools.accumulate([0.0, 0.0, 1.0, 0.0, 0.0, 100.0])
    table = benchmark_strategy(SlidingWindow(), [10, 1_000], repeats=1, clock=lambda: next(ticks))
    assert table.rows[1].growth == pytest.approx(10.0)


def test_a_time_too_short_to_see_has_no_growth() -> None:
    table = benchmark_strategy(SlidingWindow(), [2, 4], repeats=1, clock=lambda: 0.0)
    assert [row.growth for row in table.rows] == [None, None]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: agent_session(-1), ">= 0"),
        (lambda: conversations(max_size=0), ">= 1"),
        (lambda: benchmark_strategy(SlidingWindow(), [0]), "sizes: each must be a whole number >= 1"),
        (lambda: benchmark_strategy(SlidingWindow(), [10], repeats=0), "repeats must be"),
        (lambda: benchmark_strategy(SlidingWindow(), [True]), "got True"),
        (lambda: check_strategy(SlidingWindow(), settles_in=0), "settles_in must be a whole number >= 1"),
        (lambda: agent_session(9, lines=-1), "lines must be"),
        (lambda: conversations(max_size=1.5), "got 1.5"),  # type: ignore[arg-type]
    ],
)
def test_less_than_nothing_is_an_error(make: Callable[[], object], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        make()


@given(conversations(pending=True))
def test_pending_conversations_are_valid_but_for_that(messages: Chat) -> None:
    assert {problem.rule for problem in validate(messages)} <= {"pending-call"}


def parts(messages: Chat) -> list[str]:
    contents = [message["content"] for message in messages if isinstance(message.get("content"), list)]
    return [part["type"] for content in contents for part in content]


def roles(messages: Chat) -> list[str]:
    return [message["role"] for message in messages]


def calls(messages: Chat) -> list[dict[str, Any]]:
    return [call for message in messages for call in message.get("tool_calls", ())]


SHAPES: dict[str, Callable[[Chat], bool]] = {
    "developer": lambda messages: "developer" in roles(messages),
    "several system messages": lambda messages: roles(messages).count("system") > 1,
    "system in the middle": lambda messages: "system" in roles(messages)[1:-1] and roles(messages)[0] == "user",
    "assistant first": lambda messages: roles(messages)[0] == "assistant",
    "one role twice": lambda messages: any(one == two == "user" for one, two in itertools.pairwise(roles(messages))),
    "parallel calls": lambda messages: any(len(message.get("tool_calls", ())) > 1 for message in messages),
    "custom call": lambda messages: any(call["type"] == "custom" for call in calls(messages)),
    "legacy call": lambda messages: any("function_call" in message for message in messages),
    "legacy result": lambda messages: "function" in roles(messages),
    "id used again": lambda messages: len(calls(messages)) > len({call["id"] for call in calls(messages)}),
    "reasoning": lambda messages: any("reasoning" in message and message["content"] for message in messages),
    "reasoning alone": lambda messages: any("thinking_blocks" in message and not message["content"] for message in messages),
    "name": lambda messages: any("name" in message for message in messages),
    "unknown field": lambda messages: any("x_trace" in message for message in messages),
    "empty text": lambda messages: any(message["role"] == "user" and message["content"] == "" for message in messages),
    "half of a sign": lambda messages: "\\ud83d" in json.dumps([m["content"] for m in messages]).replace("\\ud83d\\u", ""),
    "Korean": lambda messages: "안녕" in json.dumps(messages, ensure_ascii=False),
    "an earlier summary": lambda messages: any(read_mark(OpenAIChat().read(message)) for message in messages),
    "one object twice": lambda messages: len({id(message) for message in messages}) < len(messages),
    **{
        kind: (lambda messages, kind=kind: kind in parts(messages))
        for kind in ("image_url", "input_audio", "file", "refusal", "thinking")
    },
}
FAULTS = {
    *("call-without-result", "result-without-call", "duplicate-result", "duplicate-call-id", "result-without-id"),
    *("call-without-id", "no-content", "malformed-content", "unknown-role", "reasoning-only", "late"),
}
LATE = {"call-without-result", "result-without-call"}


def broken_rules(messages: Chat) -> set[str]:
    """Return the rules that a conversation breaks; results that join their call across other messages are ``late``."""
    rules = {problem.rule for problem in validate(messages)}
    groups = MessageIndex(messages, counter="chars/4").included_groups if rules == LATE else ()
    return rules | ({"late"} if any(len(group.messages) > 1 and not group.open for group in groups) else set())


@pytest.mark.parametrize("valid", [True, False], ids=["shapes", "faults"])
def test_every_shape_and_fault_is_generated(valid: bool) -> None:
    """``conversations()`` generates every documented shape, and with ``valid=False`` every kind of fault."""
    left = set(SHAPES) if valid else set(FAULTS)

    def is_complete(messages: Chat) -> bool:
        if left:
            left.difference_update([shape for shape in left if SHAPES[shape](messages)] if valid else broken_rules(messages))
        return not left

    # "reasoning-only" is usually the last; in eight runs with other seeds, all were seen after 211 to 1,018 examples
    most = settings(max_examples=600 if valid else 4_000, phases=[Phase.generate], derandomize=True)
    with contextlib.suppress(NoSuchExample):
        find(conversations(valid=valid), is_complete, settings=most)
    assert left == set()


class Bare(OpenAIChat):
    """A user's own format, which has texts alone."""

    name = "bare"
    compose = MessageFormat.compose


BARE = Bare()


@pytest.mark.filterwarnings("ignore:.*this checks little")
def test_samples_are_written_in_a_format_of_ones_own() -> None:
    """Calls and results are left out, if it has none; all but the damaged samples at the end are valid in it."""
    samples = [agent_session(60, format=BARE), *sample_conversations(BARE)[:-6]]
    assert [BARE.validate(each) for each in samples] == [[]] * len(samples)
    assert samples[0][0] == system("You fix bugs. Read before you write.")
    assert [calls(each) for each in samples] == [[]] * len(samples)
    assert sum(len(each) > 4 for each in samples) >= 5
    for strategy in (Truncation(keep=last(groups=2)), SlidingWindow(keep=last(turns=1)), ToolResult()):
        check_strategy(strategy, format=BARE)
        check_strategy(strategy, format=BARE, messages=agent_session(40, format=BARE))
    check_trigger(tokens_exceed(100), format=BARE)
    [row] = benchmark_strategy(Truncation(keep=last(groups=2)), [60], format=BARE, repeats=1).rows
    assert row.edits > 0


def test_a_made_id_is_no_other_calls() -> None:
    """A call whose id no provider accepts gets one that no other call has."""
    asked = [each for id in ("call_1_", "an id") for each in (call(id), result(id))]
    written = write_chat([user("Look."), *asked], anthropic)
    ids = [call.id for message in written for call in anthropic.read(message).tool_calls()]
    assert ids[0] == "call_1_" != ids[1]


def test_samples_are_joined_where_they_may_not_follow_each_other() -> None:
    class Debate(Bare):
        def follows(self, before: Message | None, after: Message | None) -> bool:
            return after is None or (before.role if before else "assistant") != after.role

    for conversation in (agent_session(60, format=Debate()), *sample_conversations(Debate())[:-6]):
        said = [role for role in roles(conversation) if role != "system"]
        assert all(one != other for one, other in itertools.pairwise(["assistant", *said]))


@given(data=st.data())
def test_conversations_are_drawn_in_a_format_of_ones_own(data: st.DataObject) -> None:
    assert BARE.validate(data.draw(conversations(format=BARE))) == []
    assert isinstance(data.draw(conversations(format=BARE, valid=False)), list)


def test_without_hypothesis_all_else_works() -> None:
    program = (
        "import sys; sys.modules['hypothesis'] = None\n"
        "from compaction.strategies import SlidingWindow\n"
        "from compaction.errors import ConfigurationError\n"
        "from compaction.testing import check_strategy, conversations\n"
        "check_strategy(SlidingWindow())\n"
        "try: conversations()\n"
        "except ConfigurationError as error: print(error)\n"
    )
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "pip install hypothesis" in done.stdout


def test_a_broken_list_may_settle_in_a_few_runs() -> None:
    """On an invalid list, law 5 allows a few further runs until nothing changes, but not without limit."""

    def words_then_calls(index: MessageIndex) -> Steps:
        free = [group for group in index.included_groups if index.is_removable(group)]
        for group in [each for each in free if each.kind is GroupKind.USER] or free:
            yield Drop(group, "words, then calls")

    late, soon = [call("1"), user("between"), result("1"), user("now")], [call("1"), result("1"), user("between"), user("now")]
    check_strategy(words_then_calls, messages=late)
    with pytest.raises(LawBroken, match="law 5"):
        check_strategy(words_then_calls, messages=soon)
    with pytest.raises(LawBroken, match="law 5"):
        check_strategy(drop_one, messages=[call("1"), *[user("between")] * 9, result("1"), user("now")])


def test_a_shortened_message_may_lose_its_mark() -> None:
    """Where a message with a mark was shortened and is read as a plain one then, law 5 allows a few further runs."""
    marked = "[compaction 6e0299ec by ToolResult round 1]\n" + "a line of output\n" * 30
    messages = [user("Fine."), user(marked), call("call_1", "call_2", name="read"), result("call_2", "18 degrees\n" * 40)]
    for preset in (presets.context_window(120), presets.token_budget(120)):
        assert check_strategy(preset, messages=messages).edits > 0


def test_what_works_against_itself_may_be_granted_a_few_runs() -> None:
    """A strategy that settles only after several runs passes with a sufficient ``settles_in``, and fails with less."""
    messages = [user(f"q{place}") for place in range(5)]
    with pytest.raises(LawBroken, match="law 5"):
        check_strategy(drop_one, messages=messages, settles_in=3)
    check_strategy(drop_one, messages=messages, settles_in=4)


def test_a_view_that_reads_as_other_groups_may_settle_later() -> None:
    """Law 5 allows another run if the result, read again, forms other groups, such as reasoning that joins a call."""

    def words_then_long_calls(index: MessageIndex) -> Steps:
        free = [group for group in index.included_groups if index.is_removable(group)]
        long = [group for group in free if group.kind is GroupKind.TOOL_CALL and len(group.messages) > 2]
        for group in [*long, *[each for each in free if each.turn == 2]]:
            yield Drop(group, "words, and calls of three messages")

    messages = [user("q"), thought(), user("between"), call("1"), result("1"), user("q3"), assistant("a")]
    assert validate([*messages[:1], *messages[2:]]) == []
    check_strategy(words_then_long_calls, messages=messages)


def test_an_output_in_which_another_mark_is_believed_may_settle_in_a_few_runs() -> None:
    """Law 5 allows a few runs for a forged mark in the last message, which counts as a summary only until a real one exists."""
    audio = {"role": "assistant", "content": None, "audio": {"id": "audio_1"}}
    forged = user("[compaction 44bc10d2 by Summarization round 1]\nFine.")
    terse, bare = Scripted(lambda request: f"{len(request.groups)} groups."), SummaryText(preface="Before:", end="end")
    strategy = Summarization(terse, text=bare, trigger=tokens_exceed(150), keep=last(groups=1) | first(groups=1))
    check_strategy(strategy, messages=[user("Fine."), audio, dict(audio), forged])

"""Configurations of known systems: which steps run when, and what remains afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compaction import GroupKind, Pipeline, RunContext, Step, compact_sync, kinds, last, presets, run_sync
from compaction.errors import ConfigurationError
from compaction.selectors import spoken
from compaction.session import CompactionSession
from compaction.strategies import Excerpt, LastResort, Strategy, ToolResult, Truncation
from compaction.triggers import tokens_below, tokens_exceed
from tests.support.chats import assistant, call, indexed, result, system, tool_turns, user
from tests.support.conversion import convert
from tests.support.scripted import Scripted


class TestContextWindow:
    def test_is_one_configuration_of_the_general_parts(self) -> None:
        assert presets.context_window(10_000, reserve_output=2_000) == Pipeline(
            ToolResult(
                trigger=tokens_exceed(4_000),
                target=tokens_below(3_201),
                keep=last(groups=4, of=kinds(GroupKind.TOOL_CALL)),
                at_least=1_600,
            ),
            Pipeline(
                Truncation(
                    target=tokens_below(4_001), keep=last(groups=2) | spoken() | kinds(GroupKind.SUMMARY), keep_questions=True
                ),
                Excerpt(
                    tokens=3_200, trigger=tokens_exceed(4_800), target=tokens_below(4_001), keep=last(groups=2), at_least=1_200
                ),
                trigger=tokens_exceed(6_400),
            ),
            LastResort(tokens=8_000),
            trigger=tokens_exceed(4_000),
            target=~tokens_exceed(6_400),
        )

    def test_frees_enough_for_several_calls_however_much_the_user_says(self) -> None:
        """Each cut makes the request shorter, also when what is said fills half of the window."""
        session = CompactionSession(presets.context_window(4_000), counter="chars/4", window=4_000)
        chat: list[dict[str, Any]] = [system("You are an assistant.")]
        sizes, cuts, before = [0], 0, list[Any]()
        for n in range(150):
            chat += [user(f"What does thing {n} of my list cost, please?"), call(f"c{n}"), result(f"c{n}", f"{n} word" * 280)]
            view = session.view_sync(chat)
            sizes.append(session.index.tokens)
            if before != view[: len(before)]:
                cuts += 1
                assert sizes[-1] < sizes[-2]
            before = view
            chat.append(assistant(f"Thing {n} of your list costs {n} euros in the nearest shop."))
            assert view[-1] == chat[-2]
        assert 0 < cuts < 75

    def changed(self, share: float, **options: Any) -> list[str]:
        """Names of the steps that edit a conversation with many tool results that fills this share of the input window."""
        seen: list[Step] = []
        index = indexed([system("s"), *tool_turns(20)])
        reserve = options.get("reserve_output", 0)
        run_sync(index, presets.context_window(int(index.tokens / share) + reserve, **options), on_step=seen.append)
        return [step.strategy for step in seen if step.edits and step.strategy != "Pipeline"]

    @pytest.mark.parametrize(
        ("share", "options", "steps"),
        [
            (0.49, {}, []),
            (0.51, {}, ["ToolResult"]),
            (0.79, {"tool_threshold": 0.8}, []),
            (0.81, {"tool_threshold": 0.8}, ["ToolResult"]),
            (0.79, {"keep_tool_groups": 20}, []),
            (0.81, {"keep_tool_groups": 20}, ["Truncation"]),
            (1.5, {"keep_tool_groups": 12}, ["ToolResult", "Truncation"]),
            (0.49, {"reserve_output": 1_000}, []),
            (0.51, {"reserve_output": 1_000}, ["ToolResult"]),
            (0.51, {"tool_threshold": 0.4}, ["ToolResult"]),
            (0.99, {"tool_threshold": 1, "threshold": 1}, []),
            (1.01, {"tool_threshold": 1, "threshold": 1, "keep_tool_groups": 20}, ["Truncation"]),
        ],
    )
    def test_old_results_collapse_past_half_and_groups_go_past_four_fifths(
        self, share: float, options: dict[str, Any], steps: list[str]
    ) -> None:
        """Of the window less the reserve; each share can be set."""
        assert self.changed(share, tool_batch=0, **options) == steps

    @pytest.mark.parametrize(("tool_batch", "steps"), [(0.2, ["ToolResult"]), (0.5, [])])
    def test_collapsing_comes_in_batches(self, tool_batch: float, steps: list[str]) -> None:
        """Results collapse only if that frees at least the share ``tool_batch`` of the window."""
        assert self.changed(0.6, tool_batch=tool_batch) == steps

    def test_the_newest_tool_groups_stay_whole(self) -> None:
        index = indexed(tool_turns(8, words=300))
        run_sync(index, presets.context_window(4_000, target=0.1, tool_threshold=0.11, threshold=1, tool_batch=0))
        assert [group.id for group in index.included_groups if group.kind is GroupKind.TOOL_CALL] == [17, 21, 25, 29]

    def test_it_does_not_fire_again_on_the_next_turn(self) -> None:
        """Each step compacts to a lower target, so that the pipeline changes nothing in the next seven turns."""
        index = indexed([system("s"), *tool_turns(20)])
        pipeline = presets.context_window(3_000)
        changed = []
        for turn in range(8):
            changed.append(bool(run_sync(index, pipeline).edits))
            index.append([user(f"q{turn} " + "word " * 20), assistant("a " * 40)])
        assert changed == [True] + [False] * 7

    def test_overhead_takes_its_share(self) -> None:
        messages = tool_turns(20)
        tokens = indexed(messages).tokens
        pipeline = presets.context_window(2 * tokens + 100)
        assert compact_sync(messages, pipeline, counter="chars/4").outcome == "unchanged"
        context = RunContext(overhead_tokens=100)
        assert compact_sync(messages, pipeline, counter="chars/4", context=context).outcome == "compacted"

    def test_what_cannot_be_removed_is_said(self) -> None:
        done = compact_sync([system("word " * 900), user("q")], presets.context_window(100), counter="chars/4")
        assert (done.outcome, len(done.messages)) == ("over_target", 2)

    @pytest.mark.parametrize("format", ["openai-chat", "openai-responses"])
    def test_every_view_begins_with_the_user(self, format: str) -> None:
        """In every view, the first message after the system message is from the user, as strict chat templates require."""
        session = CompactionSession(presets.context_window(1_500), counter="chars/4", format=format)
        messages = [system("s")]
        for turn in tool_turns(60, words=30):
            messages = [*messages, turn]
            if turn["role"] in ("user", "tool"):
                view = session.view_sync(convert(messages, to=format, format="openai-chat"))
                assert view[1]["role"] == "user"
        assert session.index.edits

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            *(({"window": bad}, "'window' must be a whole number >= 1") for bad in (0, -1, 10.5)),
            ({"window": "32k"}, "pass a number of tokens"),
            ({"reserve_output": 10}, "the window must be above the reserve"),
            ({"reserve_output": -1}, "'reserve_output' must be a whole number >= 0"),
            *(({"tool_threshold": bad}, "0 < tool_threshold <= threshold <= 1") for bad in (0, 0.9)),
            ({"threshold": 1.1}, "0 < tool_threshold <= threshold <= 1"),
            *(({"target": bad}, "0 < target < threshold") for bad in (0.8, 0)),
            *(({"tool_batch": bad}, "0 <= tool_batch < 1") for bad in (1, -0.1)),
            *(({name: -1}, "last: 'groups' must be a whole number >= 0") for name in ("keep_groups", "keep_tool_groups")),
        ],
    )
    def test_bad_arguments(self, arguments: dict[str, Any], message: str) -> None:
        with pytest.raises(ConfigurationError, match=message):
            presets.context_window(**{"window": 10, **arguments})


@pytest.mark.parametrize("window", [10, 199])
def test_adaptive_refuses_a_window_without_room_for_a_summary(window: int) -> None:
    with pytest.raises(ConfigurationError, match="at least 200 input tokens are needed"):
        presets.adaptive(window)


def test_adaptive_cuts_no_rules_before_the_task() -> None:
    rules = "\n".join(f"{n}. Never ship to region {n} before {n} March; tell Petra first." for n in range(1, 100))
    session = CompactionSession(presets.adaptive(8_000), counter="chars/4")
    chat = [user("My rules:\n" + rules), user("Now draft an answer to region 20.")]
    assert session.view_sync(chat) == chat


def test_adaptive_cuts_an_example_before_the_task_and_keeps_it() -> None:
    """A long user message before the task is cut to a tenth of the window when it arrives, and is still there after a cut."""
    chat = [
        system("s"),
        user("An example:\n" + "2026-01-03 10:11:12 ERROR no disk\n" * 400),
        user("task " * 300),
        *tool_turns(30)[1:],
    ]
    session = CompactionSession(presets.adaptive(4_000), counter="chars/4")
    [_, example, task] = session.view_sync(chat[:3])
    assert len(example["content"]) / 4 <= 400
    assert task is chat[2]
    assert session.view_sync(chat)[1] == example


def test_adaptive_keeps_the_last_user_message_whole_while_it_fits() -> None:
    """The last user message is cut only if the request would exceed 0.97 of the window."""
    for words, whole in ((2_000, True), (4_000, False)):
        chat = [system("s"), user("word " * words), assistant("a")]
        done = compact_sync(chat, presets.adaptive(4_000), counter="chars/4")
        assert (done.messages[1] is chat[1], done.after.tokens <= 3_880) == (whole, True)


def test_adaptive_shortens_results_at_a_cut_and_keeps_the_calls() -> None:
    """At a cut, ``adaptive`` shortens the results before the newest group, unless a model is to read them."""
    chat = [system("s"), user("go"), *(each for each in tool_turns(30, words=200) if each["role"] != "user")]
    done = compact_sync(chat[:-1], presets.adaptive(4_000), counter="chars/4")
    *results, newest = [each["content"] for each in done.messages if each["role"] == "tool"]
    assert results
    assert all("characters cut" in each for each in results)
    assert newest.endswith("word word")
    scripted = Scripted("short")
    compact_sync(chat[:-1], presets.adaptive(4_000, scripted), counter="chars/4")
    [request] = scripted.requests
    assert "characters cut" not in str([group.messages for group in request.groups])


def test_with_more_budget_token_budget_keeps_no_fewer_values() -> None:
    """Where shortening the results is enough, the values in what is cut are kept as they would be in a digest."""
    values = [[f"src/part_{n}/file_{n}_{line}.py" for line in range(0, 120, 8)] for n in range(12)]
    chat = [system(), user("Look at every part.")]
    for n, paths in enumerate(values):
        lines = ["a line of text with nothing in it that anybody needs " + paths[at // 8] * (at % 8 == 0) for at in range(120)]
        chat += [call(f"c{n}"), result(f"c{n}", "\n".join(lines)), assistant(f"I read part {n}.")]
    whole = indexed(chat).tokens
    kept: list[int] = []
    for share in (0.1, 0.2, 0.3, 0.5, 0.7):
        view = str(compact_sync(chat, presets.token_budget(int(share * whole)), counter="chars/4").messages)
        kept.append(sum(value in view for paths in values for value in paths))
    assert kept == sorted(kept)
    assert kept[-2:] == [180, 180]


def test_token_budget_cuts_what_is_larger_than_the_budget() -> None:
    """The last user message keeps its two ends, and what was before it is in the digest, where that has room."""
    task = user("first " + "word " * 3_000 + "last")
    chat = [system(), user("my number is A-4471"), assistant("noted"), task]
    for budget in (4_000, 400, 100):
        result = compact_sync(chat, presets.token_budget(budget), counter="chars/4")
        assert result.after.tokens <= budget
        ends = result.messages[-1]["content"]
        assert ends.startswith("first word")
        assert ends.endswith("word last")


def test_token_budget_fills_its_budget_with_the_newest_messages() -> None:
    chat = [each for n in range(60) for each in (user(f"Box {n}?"), assistant(f"On shelf {n}. " + "So it is. " * 60))]
    budget = int(0.7 * indexed(chat).tokens)
    done = compact_sync(chat, presets.token_budget(budget), counter="chars/4")
    assert 0.95 * budget < done.after.tokens <= budget


class TestResultsInAdaptive:
    """How far `adaptive` shortens results."""

    def test_a_new_result_stays_whole_while_half_of_the_window_is_free(self) -> None:
        session = CompactionSession(presets.adaptive(8_000), counter="chars/4")
        chat = [user("Read it."), call("1"), result("1", "a line of it\n" * 1_000)]
        assert session.view_sync(chat) == chat
        chat += [call("2"), result("2", "a line of it\n" * 1_000)]
        first_result, second = (session.view_sync(chat)[place] for place in (2, 4))
        assert (first_result == chat[2], "characters cut" in second["content"]) == (True, True)

    def test_results_are_shortened_only_until_the_target_is_met(self) -> None:
        chat = [user("Read it."), *(each for n in range(40) for each in (call(f"{n}"), result(f"{n}", f"line {n}\n" * 120)))]
        done = compact_sync(chat, presets.adaptive(int(indexed(chat).tokens / 0.96)), counter="chars/4")
        whole = [str(message["content"]) in map(str, (each["content"] for each in chat)) for message in done.messages]
        results = [is_whole for message, is_whole in zip(done.messages, whole, strict=True) if message["role"] == "tool"]
        assert (results == sorted(results), 0 < sum(results) < 40) == (True, True)


class TestSeveral:
    """Presets and a user's long messages; and the end of a cut."""

    @pytest.mark.parametrize("target", [0.35, 0.8, 0.9])
    def test_a_high_target_of_adaptive_is_below_what_starts_a_cut(self, target: float) -> None:
        """Room in addition for the user's words does not keep a request above the threshold."""
        turns = [message for n in range(60) for message in (user(f"Look at {n}."), assistant(f"Shelf {n}. " * 12))]
        window = int(indexed(turns).tokens / 0.96)
        done = compact_sync(turns, presets.adaptive(window, target=target), counter="chars/4")
        assert done.outcome == "compacted"
        assert done.after.tokens <= 0.95 * window

    @pytest.mark.parametrize("make", [presets.adaptive, presets.context_window, presets.hermes, presets.token_budget])
    def test_a_long_message_of_the_user_stays_whole_while_all_fits(self, make: Callable[[int], Strategy]) -> None:
        session = CompactionSession(make(4_000), counter="chars/4")
        chat = [user("\n\n".join(f"Clause {n} says that party {n} pays." for n in range(180)))]
        for text in ("I have read it.", "What does clause 90 say?"):
            chat.append((assistant if len(chat) % 2 else user)(text))
            assert session.view_sync(chat) == chat
        assert session.status().tokens > 1_600

    @pytest.mark.parametrize("make", [presets.adaptive, presets.context_window, presets.hermes, presets.token_budget])
    @pytest.mark.parametrize("ratio", [1.03, 1.3, 4])
    def test_of_what_cannot_fit_as_much_stays_as_can(self, make: Callable[[int], Strategy], ratio: float) -> None:
        said = user(" ".join(f"w{n}" for n in range(5_000)))
        window = int(indexed([said]).tokens / ratio)
        done = compact_sync([said, assistant("a")], make(window), counter="chars/4")
        assert 0.7 * window <= done.after.tokens <= window
        assert len(done.messages) == 2

"""The documented Hermes compressor as a preset: its figures, its worked example, its failures."""

from __future__ import annotations

from typing import Any

import pytest

from compaction import MessageIndex, Pipeline, compact_sync, first, last, presets, validate
from compaction.errors import ConfigurationError, SummaryFailed
from compaction.selectors import fitting
from compaction.strategies import Clear, LastResort, Summarization, ToolResult
from compaction.summarizers import SummaryBudget
from compaction.triggers import always, tokens_exceed
from tests.support.scripted import Scripted

Chat = list[dict[str, Any]]
PLACEHOLDER = "[Old tool output cleared to save context space]"


def parts(pipeline: Pipeline) -> tuple[ToolResult, Summarization]:
    clearing, summarizing, resort = pipeline.steps
    assert isinstance(clearing, ToolResult)
    assert isinstance(summarizing, Summarization)
    assert isinstance(resort, LastResort)
    return clearing, summarizing


def test_the_computed_values_for_a_window_of_200_000() -> None:
    """A window of 200,000 gives a trigger at 100,000 tokens, a tail of 20,000 and a summary of at most 10,000."""
    clearing, summarizing = parts(presets.hermes(200_000))
    assert presets.hermes(200_000).trigger == tokens_exceed(99_999)
    head, tail, newest = first(messages=3), last(tokens=20_000), last(messages=20)
    less = head | tail | (newest & last(tokens=50_000)), head | tail, tail
    assert summarizing.keep == fitting(55_000, head | tail | newest, *less)
    assert clearing.keep == fitting(35_000, tail | newest, tail)
    assert (clearing.at_least, summarizing.target) == (20_000, ~tokens_exceed(79_999))
    forced_clearing, forced_summarizing = parts(presets.hermes(200_000, trigger=always))
    assert forced_summarizing.keep == fitting(100_000, head | tail | newest, fitting(80_000, *less))
    assert (forced_clearing.keep, forced_clearing.at_least) == (tail | newest, 0)
    assert clearing.style == Clear(min_chars=200, placeholder=PLACEHOLDER)
    assert summarizing.budget == SummaryBudget(ratio=0.20, floor=2_000, ceiling=10_000)


@pytest.mark.parametrize(
    ("content", "window", "tokens"),
    [
        (5_000, 200_000, 2_000),
        (30_000, 200_000, 6_000),
        (90_000, 200_000, 10_000),
        (90_000, 1_000_000, 12_000),
        (90_000, 32_000, 1_600),
    ],
)
def test_the_summary_budget(content: int, window: int, tokens: int) -> None:
    """The summary budget is min(max(0.20 x content, 2,000), min(0.05 x context, 12,000))."""
    assert parts(presets.hermes(window))[1].budget.tokens(content) == tokens


@pytest.mark.parametrize(
    "options",
    [
        {"context_length": 0},
        {"threshold": 0.0},
        {"threshold": 1.01},
        {"target_ratio": 0.09},
        {"target_ratio": 0.81},
        {"protect_first_n": -1},
        {"protect_last_n": 0},
        {"context_length": "200k"},
        {"threshold": None},
    ],
    ids=str,
)
def test_ranges_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        presets.hermes(**options)


# ---------------------------------------------------------------- the documents' worked example


def tool_turn(id: str, name: str, argument: str, result: str) -> Chat:
    call = {"id": id, "type": "function", "function": {"name": name, "arguments": f'{{"value": "{argument}"}}'}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": id, "content": result},
    ]


def worked_example() -> Chat:
    """Return 45 messages: the documentation's head and tail, with tool calls between them."""
    chat: Chat = [
        {"role": "system", "content": "You are a helpful assistant..."},
        {"role": "user", "content": "Help me set up a FastAPI project"},
        *tool_turn("c1", "terminal", "mkdir project", "directory created"),
        *tool_turn("c2", "write_file", "main.py", "file written (2.3KB)"),
    ]
    for step in range(16):
        chat += tool_turn(f"m{step}", "write_file", f"step_{step}.py", f"line of step {step}\n" * 40)
    chat += tool_turn("c3", "terminal", "pytest", "8 passed, 2 failed\n" + "E   assert 201 == 200\n" * 200)
    tail: Chat = [
        {"role": "user", "content": "Fix the failing tests"},
        *tool_turn("c4", "read_file", "tests/test_api.py", "import pytest\n" + "def test_create_user(): ...\n" * 100),
        {"role": "assistant", "content": "I see the issue with the test fixtures..."},
        {"role": "user", "content": "Great, also add error handling"},
    ]
    return chat + tail


def test_the_worked_example_gives_the_eight_messages_the_documents_print() -> None:
    chat = worked_example()
    assert len(chat) == 45
    scripted = Scripted("## Goal\nSet up a FastAPI project with tests and error handling")
    pipeline = presets.hermes(
        20_000, scripted, protect_first_n=2, protect_last_n=5, threshold=0.1, target_ratio=0.1, trigger=always
    )
    after = compact_sync(chat, pipeline, counter="chars/4").messages
    assert [message["role"] for message in after] == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert after[0]["content"].startswith("You are a helpful assistant...\n\n[Note: some earlier turns")
    assert after[1] is chat[1]
    assert "[CONTEXT COMPACTION] Earlier turns were compacted" in after[2]["content"]
    assert "## Goal\nSet up a FastAPI project" in after[2]["content"]
    assert all(now is then for now, then in zip(after[3:], chat[-5:], strict=True))
    assert validate(after) == []


def test_phase_one_clears_old_results_of_more_than_200_characters_and_no_others() -> None:
    """Results over 200 characters outside the tail are cleared, also in the head; short ones and the tail are unchanged."""
    chat = worked_example()
    chat[3]["content"] = "y" * 201
    chat[5]["content"] = "x" * 200
    keep_all = presets.hermes(
        200_000, Scripted("S"), protect_first_n=10**6, protect_last_n=5, threshold=0.05, target_ratio=0.1, trigger=always
    )
    after = compact_sync(chat, keep_all, counter="chars/4").messages
    assert (after[3]["content"], after[5]["content"]) == (PLACEHOLDER, "x" * 200)
    assert after[-3]["content"] == chat[-3]["content"]
    assert after[37]["content"] == PLACEHOLDER


def test_fewer_tail_messages_by_budget_fall_back_to_the_count() -> None:
    """A tail budget of a few tokens still keeps ``protect_last_n`` messages, in whole groups."""
    pipeline = presets.hermes(4_000, Scripted("S"), target_ratio=0.10, protect_last_n=6, trigger=always)
    chat = worked_example()
    after = compact_sync(chat, pipeline, counter="chars/4").messages
    assert after[-7:] == chat[-7:]


def working(turns: int, tokens: int) -> Chat:
    """Return the worked example's head and this many turns, each with an answer of this many tokens."""
    chat = worked_example()[:6]
    for turn in range(turns):
        chat += [{"role": "user", "content": f"Part {turn}."}, {"role": "assistant", "content": "code" * (tokens - 10)}]
    return chat


@pytest.mark.parametrize(
    ("tokens", "kept"),
    [(1_000, 20), (1_700, 8), (5_000, 2)],
    ids=["all of them", "what half of the threshold holds", "the newest and the user's last"],
)
def test_protected_messages_are_capped_where_they_alone_exceed_the_threshold(tokens: int, kept: int) -> None:
    """If the 20 protected messages exceed the threshold of 16,000 tokens, only the newest that leave room are kept."""
    chat = working(30, tokens)
    after = compact_sync(chat, presets.hermes(32_000, Scripted("S"), trigger=always), counter="chars/4").messages
    tail = [message for message in after[3:] if any(message is other for other in chat[6:])]
    assert len(tail) == kept
    assert tail == chat[-kept:]
    assert MessageIndex(after, counter="chars/4").tokens < 16_000


def test_the_first_messages_are_summarized_where_they_leave_no_room() -> None:
    chat = working(30, 200)
    chat[1] = {"role": "user", "content": "Set up a project. " * 2_000}
    chat.append({"role": "user", "content": "Continue."})
    scripted = Scripted("S")
    after = compact_sync(chat, presets.hermes(16_000, scripted, trigger=always), counter="chars/4").messages
    assert scripted.requests[0].groups[0].messages[0].raw is chat[1]
    assert MessageIndex(after, counter="chars/4").tokens < 8_000


# ---------------------------------------------------------------- where the preset does better than the release


def test_there_is_no_tail_cliff() -> None:
    """The length of the result differs by at most 4 messages for similar sessions, unlike in Hermes 0.19."""
    lengths: list[int] = []
    for steps in (400, 425, 450):
        chat = worked_example()[:6]
        for step in range(steps):
            chat += tool_turn(f"m{step}", "write_file", f"step_{step}.py", "a line of output\n" * 40)
        lengths.append(
            len(compact_sync(chat, presets.hermes(200_000, Scripted("S"), trigger=always), counter="chars/4").messages)
        )
    assert max(lengths) - min(lengths) <= 4


def test_identical_results_in_the_tail_are_left_alone() -> None:
    """Identical results in the tail are unchanged; the Hermes release replaces them anywhere."""
    chat = worked_example()[:6]
    for step in range(6):
        chat += tool_turn(f"m{step}", "read_file", "same.py", "the same file\n" * 40)
    after = compact_sync(
        chat, presets.hermes(200_000, Scripted("S"), trigger=always, protect_last_n=12), counter="chars/4"
    ).messages
    assert after[-12:] == chat[-12:]


def test_the_documented_loss_happens_only_when_asked_for() -> None:
    """By default a failed summary keeps the middle; with "drop" it is dropped, and the result reports it."""
    chat = worked_example()
    failing = Scripted(SummaryFailed("down"))
    kept = compact_sync(chat, presets.hermes(20_000, failing, protect_last_n=5, trigger=always), counter="chars/4")
    assert (len(kept.messages), kept.outcome) == (45, "degraded")
    dropped = compact_sync(
        chat, presets.hermes(20_000, failing, protect_last_n=5, on_failure="drop", trigger=always), counter="chars/4"
    )
    assert len(dropped.messages) < 45
    assert "dropped" in dropped.failures[0].policy


def test_langgraph_summary_is_the_blogs_rule_made_safe() -> None:
    """The LangGraph preset summarizes to 512 tokens and keeps 4 recent messages; a failed summary changes nothing."""
    scripted = Scripted("요약")
    strategy = presets.langgraph_summary(scripted)
    chat: Chat = [
        {"role": "user" if place % 2 == 0 else "assistant", "content": "페트병은 어떻게 버려? " * 30} for place in range(40)
    ]
    result = compact_sync(chat, strategy, counter="chars/4")
    assert len(result.messages) == 5
    assert scripted.requests[0].budget == 512
    failing = compact_sync(chat, presets.langgraph_summary(Scripted(SummaryFailed("down"))), counter="chars/4")
    assert failing.messages == chat
    with pytest.raises(ConfigurationError):
        presets.langgraph_summary(max_summary_tokens=4_000)

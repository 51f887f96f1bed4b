"""Batches and replays detect the format of each conversation; an undetectable one fails alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from compaction import compact_sync, last
from compaction.batch import BatchReport, Job, compact_table, estimate
from compaction.cli.app import app
from compaction.errors import InputError
from compaction.formats import FORMATS, MessageFormat, anthropic, gemini, openai_chat
from compaction.replay import Recording, replay
from compaction.replay.report import conversation_data
from compaction.strategies import ToolResult, Truncation
from compaction.triggers import tokens_exceed
from tests.support.chats import Chat, assistant, call, result, tool_turns, turns, user
from tests.support.conversion import convert
from tests.support.corpora import errors_of, read_rows, run

NAMES = [format.name for format in FORMATS]
STRATEGY = ToolResult() >> Truncation(trigger=tokens_exceed(200), keep=last(groups=2))
SAID: Chat = [user("order A-170 came"), *tool_turns(4), *turns(3)]
SAID += [user("which?"), call("last"), result("last"), assistant("A-170")]
MIXED: Chat = [*turns(1), {"role": "user", "parts": [{"text": "hi"}]}, call("1"), result("1")]
MIXED_REASON = "messages[2] is gemini, but the messages before it are not; one list has one format, so convert what was added"


def in_format(format: MessageFormat) -> list[Any]:
    return convert(SAID, to=format, format=openai_chat)


def stored(path: Path, conversations: list[list[Any]]) -> Path:
    path.write_text("".join(json.dumps({"messages": messages}) + "\n" for messages in conversations))
    return path


def batch(source: Path, **options: Any) -> BatchReport:
    return run(source, source.with_name("out.jsonl"), strategy=STRATEGY, budget=None, **options)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_file_may_hold_conversations_of_every_format(workers: int, tmp_path: Path) -> None:
    """A batch over conversations of all formats gives the same output as naming each format, with one or two workers."""
    source = stored(tmp_path / "in.jsonl", [in_format(format) for format in FORMATS])
    report = batch(source, workers=workers, strict=True)
    assert report.is_well
    found = [row["messages"] for row in read_rows(tmp_path / "out.jsonl", "jsonl")]
    assert found == [compact_sync(in_format(format), STRATEGY, counter="chars/4", format=format).messages for format in FORMATS]
    assert [messages for messages, format in zip(found, FORMATS, strict=True) if messages == in_format(format)] == []


def test_what_cannot_be_told_is_a_bad_conversation(tmp_path: Path) -> None:
    source = stored(tmp_path / "in.jsonl", [SAID, MIXED, in_format(gemini)])
    report = batch(source)
    [entry] = errors_of(report)
    assert (entry["line"], entry["error"], entry["reason"]) == (2, "UnknownFormat", MIXED_REASON)
    assert (report.tally.bad, report.tally.conversations) == (1, 3)
    assert estimate([source], STRATEGY).sample.bad == 1


def test_tables_are_looked_at_row_by_row() -> None:
    """Each row of a table has its own format, also in nested columns, where Arrow fills missing keys with nulls."""
    job = Job(STRATEGY, counter="chars/4")
    texts = pa.table({"messages": [json.dumps(SAID), json.dumps(MIXED), json.dumps(in_format(anthropic))]})
    marked = compact_table(texts, job, on_error="mark").to_pylist()
    assert [row["compaction_error"] for row in marked] == [None, MIXED_REASON, None]
    assert json.loads(marked[2]["messages"]) == compact_sync(in_format(anthropic), STRATEGY, counter="chars/4").messages
    with pytest.raises(InputError, match=r"row 1: messages\[2\] is gemini"):
        compact_table(texts, job)
    nested = pa.table({"messages": [turns(8, words=40), [{"role": "user", "parts": [{"text": "hi"}]}]]})
    left = compact_table(nested, job).to_pylist()
    assert len(left[0]["messages"]) < 16
    assert left[1]["messages"][0]["parts"] == [{"text": "hi"}]


def test_the_command_names_it(tmp_path: Path) -> None:
    """The ``batch`` command detects each conversation's format unless ``--format`` names one."""
    source = stored(tmp_path / "in.jsonl", [SAID, MIXED])
    shared = ["batch", str(source), "--budget", "200", "--counter", "chars/4", "--workers", "1", "-o"]
    for name, code, bad in ((None, 1, True), ("openai-chat", 0, False), ("morse", 2, False)):
        options = [str(tmp_path / f"{name}.jsonl"), *([] if name is None else ["--format", name])]
        done = CliRunner().invoke(app, [*shared, *options])
        assert (done.exit_code, "1 bad" in done.output, "no such wire format" in done.output) == (code, bad, name == "morse")


def test_a_replay_finds_the_same_calls_in_every_format() -> None:
    """The replay of one conversation in five formats has the same calls and facts, and no candidate breaks a rule."""
    conversations = [Recording(id=format.name, messages=in_format(format)) for format in FORMATS]
    played = replay(conversations, ["context_window"], window=150, counter="chars/4")
    assert played.skipped == ()
    assert [each.recording.format for each in played.conversations] == [*FORMATS]
    calls = [len(each.needs) for each in played.conversations]
    facts = [[sorted(fact.text for fact in needs.facts) for needs in each.needs] for each in played.conversations]
    assert (calls, facts) == ([calls[0]] * len(FORMATS), [facts[0]] * len(FORMATS))
    assert "A-170" in facts[0][-1]
    for candidate in ("truncate", "hysteresis", "context_window"):
        assert [score.invalid for score in played.scores(candidate)] == [0] * len(FORMATS)
    assert [each["format"] for each in played.to_dict()["conversations"]] == NAMES


def test_items_of_one_answer_are_one_call() -> None:
    """Reasoning, text and calls in a row are one call of the model; the next call starts after their results."""
    items: list[Any] = [
        {"role": "user", "content": "read all"},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "all"}]},
        *({"type": "function_call", "call_id": at, "name": "read", "arguments": f'{{"path": "src/{at}.py"}}'} for at in "abc"),
        *({"type": "function_call_output", "call_id": at, "output": "done"} for at in "abc"),
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Read src/a.py."}]},
    ]
    [each] = replay([items], window=10, counter="chars/4").conversations
    assert [needs.ordinal for needs in each.needs] == [1, 8]
    assert [fact.text for fact in each.needs[1].facts] == ["src/a.py"]
    [whole] = replay([items[1:]], window=10, counter="chars/4").conversations
    assert [needs.ordinal for needs in whole.needs] == [7]


def test_a_session_of_two_formats_is_not_played() -> None:
    played = replay([SAID, MIXED], window=150, counter="chars/4")
    assert (len(played.conversations), played.skipped) == (1, (f"2: {MIXED_REASON}",))


def test_processes_and_reports_know_the_format() -> None:
    conversations = [in_format(gemini), in_format(anthropic)]
    played = replay(conversations, window=150, counter="chars/4", jobs=2)
    for each in played.conversations:
        assert conversation_data(played, each)["messages"][-1][2] == "A-170"

"""Session logs of widely used agents, recognized by content and read as chat conversations with times."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from compaction import validate
from compaction.errors import UnreadableFile
from compaction.replay import Recording, recordings_of, replay
from tests.support.chats import assistant, call, result, system, user


def written(folder: Path, *records: Any, name: str = "log.jsonl") -> Path:
    """Write a file with one record per line."""
    path = folder / name
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def whole(folder: Path, document: Any) -> Path:
    """Write a file that is one JSON document."""
    (folder / "document.json").write_text(json.dumps(document, indent=2))
    return folder / "document.json"


def only(path: Path) -> Recording:
    [recording] = recordings_of(path)
    return recording


def claude(kind: str, content: Any, at: int, **fields: Any) -> dict[str, Any]:
    message = {"role": kind, "content": content, **fields.pop("message", {})}
    return {"type": kind, "sessionId": "s1", "timestamp": f"2026-01-05T10:00:{at:02}.000Z", "message": message, **fields}


CLAUDE = (
    {"type": "file-history-snapshot", "messageId": "x", "snapshot": {}},
    claude("user", "Fix the parser.", 0),
    claude("assistant", [{"type": "thinking", "thinking": "Where is it?", "signature": "c2ln"}], 1, message={"id": "msg_1"}),
    claude("assistant", [{"type": "text", "text": "I look."}], 2, message={"id": "msg_1"}),
    claude("assistant", [{"type": "tool_use", "id": "t1", "name": "Read", "input": {"file": "a"}}], 3, message={"id": "msg_1"}),
    claude("user", [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "x = 1"}]}], 4),
    claude("assistant", [{"type": "text", "text": "Searching"}], 5, message={"id": "msg_9"}, isSidechain=True),
    claude("assistant", [{"type": "text", "text": "Done."}], 6, message={"id": "msg_2"}),
)


def test_claude_code(tmp_path: Path) -> None:
    """An answer in pieces is one message, each result is a message, and subagents and bookkeeping are skipped."""
    recording = only(written(tmp_path, *CLAUDE))
    read = {**call("t1", name="Read", arguments='{"file": "a"}', text="I look."), "reasoning_content": "Where is it?"}
    assert recording.messages == [user("Fix the parser."), read, result("t1", "x = 1"), assistant("Done.")]
    assert recording.id == "s1"
    assert [time - 1767607200.0 for time in recording.times if time is not None] == [0.0, 1.0, 4.0, 6.0]
    assert validate(recording.messages) == []


def test_claude_code_words_of_the_client_are_left_out(tmp_path: Path) -> None:
    """Left out are the agent's own summaries, whose messages the log still has, and errors that a client shows as answers."""
    lines = [*CLAUDE, claude("user", "This session continues ...", 7, isCompactSummary=True), claude("user", "And now?", 8)]
    recording = only(written(tmp_path, *lines))
    assert recording.messages[-1] == user("And now?")
    assert recording.notes == ("a summary that the agent wrote itself is skipped, 1 times",)
    lines = [*CLAUDE, claude("assistant", [{"type": "text", "text": "API Error"}], 7, message={"model": "<synthetic>"})]
    assert len(only(written(tmp_path, *lines)).messages) == 4


def codex(kind: str, at: int, **payload: Any) -> dict[str, Any]:
    return {"timestamp": f"2026-01-05T10:00:{at:02}Z", "type": kind, "payload": payload}


def item(kind: str, at: int, **fields: Any) -> dict[str, Any]:
    return codex("response_item", at, type=kind, **fields)


CODEX = (
    codex("session_meta", 0, id="r1", cwd="/w", base_instructions={"text": "You code."}),
    item("message", 1, role="user", content=[{"type": "input_text", "text": "Run the tests."}]),
    codex("event_msg", 1, type="user_message", message="Run the tests."),
    item("reasoning", 2, summary=[{"type": "summary_text", "text": "Tests first."}], encrypted_content="eA=="),
    item("message", 2, role="assistant", content=[{"type": "output_text", "text": "Running."}]),
    item("function_call", 3, name="exec_command", arguments='{"cmd": "pytest"}', call_id="c1"),
    item("custom_tool_call", 3, name="apply_patch", input="*** Begin", call_id="c2"),
    item("function_call_output", 4, call_id="c1", output="2 passed"),
    item("custom_tool_call_output", 5, call_id="c2", output={"content": "ok", "success": True}),
    item("message", 6, role="assistant", content=[{"type": "output_text", "text": "All pass."}]),
    item("web_search_call", 7, action={"type": "search"}),
)


def test_codex(tmp_path: Path) -> None:
    """Everything the model wrote up to a result is one answer; the display log is skipped."""
    recording = only(written(tmp_path, *CODEX))
    assert [(message["role"], message.get("content")) for message in recording.messages] == [
        ("system", "You code."),
        ("user", "Run the tests."),
        ("assistant", "Running."),
        ("tool", "2 passed"),
        ("tool", "ok"),
        ("assistant", "All pass."),
    ]
    calls = recording.messages[2]["tool_calls"]
    assert [(each["id"], each["function"]["arguments"]) for each in calls] == [("c1", '{"cmd": "pytest"}'), ("c2", "*** Begin")]
    assert recording.messages[2]["reasoning_content"] == "Tests first."
    assert (recording.id, recording.notes) == ("r1", ("an item of type web_search_call is skipped, 1 times",))
    assert validate(recording.messages) == []


LINE = {"gateway": 1, "conversation": "c", "format": "openai-chat", "messages": [user("a")]}
GATEWAY = tuple({**LINE, "keep": at, "at": at} for at in range(3))


def test_swe_agent_history(tmp_path: Path) -> None:
    """Messages are taken from the history; a result names its call."""
    looks = call("c1", name="bash", arguments='{"command": "ls"}', text="I look.")
    document = {
        "environment": "main",
        "trajectory": [{"action": "ls", "observation": "a.py", "response": "I look."}],
        "history": [
            {"role": "system", "content": "You fix issues.", "agent": "main", "message_type": "system_prompt"},
            {"role": "user", "content": [{"type": "text", "text": "An issue."}], "agent": "main"},
            {**looks, "action": "ls", "message_type": "action"},
            {"role": "tool", "content": "a.py", "tool_call_ids": ["c1"], "message_type": "observation"},
        ],
        "info": {},
    }
    messages = only(whole(tmp_path, document)).messages
    assert messages == [system("You fix issues."), user("An issue."), looks, result("c1", "a.py")]


def test_tau_bench(tmp_path: Path) -> None:
    """Each run is a conversation, named by task and trial."""
    runs = [{"task_id": task, "reward": 1.0, "traj": [user(f"{task}")], "trial": 1} for task in (3, 4)]
    found = {each.id: each.messages for each in recordings_of(whole(tmp_path, runs))}
    assert found == {"task 3, trial 1": [user("3")], "task 4, trial 1": [user("4")]}


def test_atif(tmp_path: Path) -> None:
    """An agent's step is an answer and the results of its calls; an observation without a call is a user message."""
    steps = [
        {"step_id": 1, "source": "system", "message": "You are helpful."},
        {"step_id": 2, "source": "user", "message": "What time is it?", "timestamp": "2026-01-05T10:00:00Z"},
        {
            "step_id": 3,
            "source": "agent",
            "message": "Let me see.",
            "tool_calls": [{"tool_call_id": "c1", "function_name": "now", "arguments": {}}],
            "observation": {"results": [{"source_call_id": "c1", "content": "noon"}, {"content": "the screen is dark"}]},
        },
        {"step_id": 4, "source": "agent", "message": "Noon."},
    ]
    document = {"schema_version": "ATIF-v1.7", "session_id": "t1", "agent": {"name": "a"}, "steps": steps}
    recording = only(whole(tmp_path, document))
    assert [(message["role"], message["content"]) for message in recording.messages] == [
        ("system", "You are helpful."),
        ("user", "What time is it?"),
        ("assistant", "Let me see."),
        ("tool", "noon"),
        ("user", "the screen is dark"),
        ("assistant", "Noon."),
    ]
    assert (recording.id, recording.times[1]) == ("t1", 1767607200.0)
    assert validate(recording.messages) == []


def test_files_of_conversations_are_read_as_ever(tmp_path: Path) -> None:
    """Any other file is a file of conversations, with the times in its messages; plain or gzip."""
    chats = [{"id": "a", "messages": [{"role": "user", "content": "hi", "timestamp": 7}]}, [{"role": "user", "content": "ho"}]]
    path = written(tmp_path, *chats)
    packed = tmp_path / "chats.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for each in (path, str(packed)):
        first, second = recordings_of(each)
        assert (first.id, first.times, second.id, second.times) == ("a", (7.0,), "2", (None,))


def test_a_session_that_still_runs_may_end_within_a_line(tmp_path: Path) -> None:
    """The complete lines are read; one that is truncated or damaged is noted."""
    path = written(tmp_path, *CODEX)
    path.write_text(path.read_text()[:-30].replace("\n", "\n{damaged\n", 1))
    recording = only(path)
    assert recording.messages[-1]["content"] == "All pass."
    assert [note.partition(" (")[0] for note in recording.notes] == [
        f"line {number} is not JSON and is skipped" for number in (2, 12)
    ]


@pytest.mark.parametrize(
    "junk", [None, {}, [], 10**400, float("nan"), -1], ids=["null", "object", "list", "huge", "nan", "negative"]
)
@pytest.mark.parametrize("log", [CLAUDE, CODEX, GATEWAY], ids=["claude", "codex", "gateway"])
def test_fields_of_wrong_types_are_left_out(log: Sequence[Any], junk: Any, tmp_path: Path) -> None:
    """A log is hostile text: whatever is in a field of a line, the others are read, and can be replayed."""
    for key in ("type", "timestamp", "at", "payload", "message", "keep", "messages"):
        path = written(tmp_path, log[0], {**log[-1], key: junk}, *log[1:])
        assert replay(recordings_of(path), window=99, counter="chars/4").conversations


def test_a_gateway_log_of_an_unknown_format(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match=r"log\.jsonl: .*'morse'"):
        recordings_of(written(tmp_path, {**GATEWAY[0], "format": "morse"}))


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "empty"), (b"\x1f\x8b\x08broken", "gzip data is cut short or damaged"), (b"no json", "not JSON")],
)
def test_a_file_that_cannot_be_read_says_why(tmp_path: Path, content: bytes, words: str) -> None:
    """The error names the file and the place."""
    path = tmp_path / "log"
    path.write_bytes(content)
    with pytest.raises(UnreadableFile, match=words):
        recordings_of(path)
    with pytest.raises(UnreadableFile, match="cannot be read"):
        recordings_of(tmp_path / "none")

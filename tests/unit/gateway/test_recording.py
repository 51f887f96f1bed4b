"""Recordings that a gateway writes and a replay reads."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from compaction.formats import anthropic, for_comparison, openai_chat
from compaction.gateway.recording import SessionRecorder
from compaction.replay import Recording, recordings_of
from tests.support.gateways import CHAT, body_of, chat_reply, gateway, tool_chat


def test_a_conversation_is_recorded_once_however_often_it_is_sent(tmp_path: Path) -> None:
    """Each line records only new messages and their time; removed messages and breakpoints are not in the recording."""
    now = [100.0]
    recorder = SessionRecorder(tmp_path / "new" / "runs", lambda: now[0])
    messages = [{"role": "user", "content": [{"type": "text", "text": f"part {place}"}]} for place in range(6)]
    for count in (1, 3, 6, 2, 5):
        marked = [*messages[: count - 1], {**messages[count - 1]}]
        marked[-1]["content"] = [{**marked[-1]["content"][0], "cache_control": {"type": "ephemeral"}}]
        recorder.record("one", anthropic, marked)
        recorder.record("two", openai_chat, tool_chat(count))
        now[0] += 1
    lines = recorder.path.read_text().splitlines()
    assert [len(json.loads(line)["messages"]) for line in lines[::2]] == [1, 2, 3, 0, 3]
    assert {json.loads(line)["gateway"] for line in lines} == {1}
    one, two = recordings_of(recorder.path)
    assert one.messages == for_comparison(messages[:5], anthropic)
    assert one.times == [100.0, 101.0, 104.0, 104.0, 104.0]
    assert (one.format, two.format) == (anthropic, openai_chat)
    assert two.messages == tool_chat(5)
    assert (recorder.path.stat().st_mode & 0o777, recorder.path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def recorded(folder: Path) -> tuple[Recording, str]:
    (path,) = folder.iterdir()
    (recording,) = recordings_of(path)
    return recording, path.read_text()


async def test_a_gateway_records_what_agents_send(tmp_path: Path) -> None:
    messages = tool_chat(20)
    async with gateway(chat_reply(), record=tmp_path) as (_, client):
        for count in (21, 41):
            await client.post(CHAT, content=body_of(messages[:count]), headers={"authorization": "Bearer secret"})
    recording, text = recorded(tmp_path)
    assert recording.messages == messages
    assert "secret" not in text


def test_a_recording_holds_no_secrets(tmp_path: Path) -> None:
    content = 'log in with {"password": "hunter22x"} and ghp_' + "a1B2" * 9
    SessionRecorder(tmp_path, lambda: 0.0).record("one", openai_chat, [{"role": "user", "content": content}])
    recording, text = recorded(tmp_path)
    redacted = 'log in with {"password": "[REDACTED:password]"} and [REDACTED:github-token]'
    assert recording.messages == [{"role": "user", "content": redacted}]
    assert "hunter22x" not in text


def test_a_recording_of_which_all_is_forgotten_is_deleted(tmp_path: Path) -> None:
    """No empty file is left, which `replay` could not read; the next message begins a new one."""
    recorder = SessionRecorder(tmp_path, lambda: 0.0)
    for name in ("one", "two"):
        recorder.record(name, openai_chat, [{"role": "user", "content": name}])
    assert recorder.forget("one")
    assert recorder.path.exists()
    assert recorder.forget("two")
    assert not recorder.path.exists()
    recorder.record("three", openai_chat, [{"role": "user", "content": "three"}])
    assert recorded(tmp_path)[0].messages == [{"role": "user", "content": "three"}]


def test_one_conversation_is_forgotten_in_every_file(tmp_path: Path) -> None:
    """A file in which it is only mentioned stays as it is; the conversation is recorded from its beginning if it goes on."""
    told = [{"role": "user", "content": "first"}, {"role": "user", "content": '"conversation": "one"'}]
    for year, names in enumerate((["two"], ["one", "two"], ["two", "one"])):
        recorder = SessionRecorder(tmp_path, lambda year=year: 40_000_000.0 * year)
        for name in names:
            recorder.record(name, openai_chat, told)
    assert (recorder.forget("three"), recorder.forget("one"), recorder.forget("one")) == (False, True, False)
    left = [[json.loads(line)["conversation"] for line in path.read_text().splitlines()] for path in tmp_path.iterdir()]
    assert left == [["two"]] * 3
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    recorder.record("one", openai_chat, told)
    assert recordings_of(recorder.path)[1].messages == told


def test_a_line_that_a_crash_cut_off_is_deleted(tmp_path: Path) -> None:
    recorder = SessionRecorder(tmp_path, lambda: 0.0)
    for name in ("one", "two"):
        recorder.record(name, openai_chat, [{"role": "user", "content": "told by " + name}])
    one, two = recorder.path.read_bytes().splitlines(keepends=True)
    recorder.path.write_bytes(two + one[:-5])
    assert recorder.forget("one")
    assert recorder.path.read_bytes() == two


def test_the_recorder_knows_the_newest_thousand_conversations(tmp_path: Path) -> None:
    """All messages of an older conversation are recorded again."""
    recorder, message = SessionRecorder(tmp_path, lambda: 0.0), {"role": "user", "content": "a"}
    for name in [*range(1_000), 0, "more", 0, 2, 1]:
        recorder.record(f"{name}", openai_chat, [message])
    lines = [json.loads(line) for line in recorder.path.read_text().splitlines()]
    assert [(each["keep"], len(each["messages"])) for each in lines[1_000:]] == [(1, 0), (0, 1), (1, 0), (1, 0), (0, 1)]


def test_messages_that_could_not_be_written_are_in_the_next_line(tmp_path: Path) -> None:
    recorder = SessionRecorder(tmp_path, lambda: 0.0)
    recorder.path.mkdir()
    with pytest.raises(IsADirectoryError):
        recorder.record("one", openai_chat, tool_chat(3))
    recorder.path.rmdir()
    recorder.record("one", openai_chat, tool_chat(4))
    assert recorded(tmp_path)[0].messages == tool_chat(4)


def two_recorders(folder: Path) -> tuple[SessionRecorder, SessionRecorder]:
    """The recorders of two processes, each with a file of its own."""
    one, other = SessionRecorder(folder, lambda: 0.0), SessionRecorder(folder, lambda: 1_000.0)
    assert one.path != other.path
    return one, other


def test_a_conversation_that_another_process_deleted_is_recorded_from_its_beginning(tmp_path: Path) -> None:
    """The lines after the deletion contain all of it, also of the conversations that were recorded beside it."""
    one, other = two_recorders(tmp_path)
    for name in ("gone", "kept"):
        one.record(name, openai_chat, tool_chat(3))
    assert other.forget("gone")
    for name in ("gone", "kept"):
        one.record(name, openai_chat, tool_chat(5))
    assert [recording.messages for recording in recordings_of(one.path)] == [tool_chat(5)] * 2
    assert one.forget("gone")
    one.record("kept", openai_chat, tool_chat(6))
    assert [len(json.loads(line)["messages"]) for line in one.path.read_text().splitlines()] == [7, 11, 2]


def test_a_deletion_loses_no_line_of_another_process(tmp_path: Path) -> None:
    """A process may record at any moment while another one rewrites its file."""
    one, other = two_recorders(tmp_path)
    messages = tool_chat(100, words=1)

    def record() -> None:
        for count in range(1, len(messages)):
            one.record("kept", openai_chat, messages[count : count + 1])
            one.record("gone", openai_chat, messages[:1])

    with ThreadPoolExecutor(1) as threads:
        recording = threads.submit(record)
        while not recording.done():
            other.forget("gone")
    recording.result()
    other.forget("gone")
    lines = [json.loads(line)["messages"] for line in one.path.read_text().splitlines()]
    assert lines == [[message] for message in messages[1:]]

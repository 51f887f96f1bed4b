"""Recordings that a gateway writes and a replay reads."""

from __future__ import annotations

import json
from pathlib import Path

from compaction.formats import anthropic, for_comparison, openai_chat
from compaction.gateway.recording import SessionRecorder
from compaction.replay import Recording, recordings_of
from tests.support.gateways import ScriptedUpstream, chat_reply, in_process, tool_chat


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
    with ScriptedUpstream(chat_reply()) as upstream:
        async with in_process(upstream, record=tmp_path) as client:
            for count in (21, 41):
                body = json.dumps({"model": "m", "messages": messages[:count]})
                await client.post("/v1/chat/completions", content=body, headers={"authorization": "Bearer secret"})
    recording, text = recorded(tmp_path)
    assert recording.messages == messages
    assert "secret" not in text


def test_a_recording_holds_no_secrets(tmp_path: Path) -> None:
    """The words of a person or a tool are recorded without secrets."""
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


def test_the_recorder_knows_the_newest_thousand_conversations(tmp_path: Path) -> None:
    """All messages of an older conversation are recorded again."""
    recorder, message = SessionRecorder(tmp_path, lambda: 0.0), {"role": "user", "content": "a"}
    for name in [*range(1_000), 0, "more", 0, 2, 1]:
        recorder.record(f"{name}", openai_chat, [message])
    lines = [json.loads(line) for line in recorder.path.read_text().splitlines()]
    assert [(each["keep"], len(each["messages"])) for each in lines[1_000:]] == [(1, 0), (0, 1), (1, 0), (1, 0), (0, 1)]

"""Clearing media: old images, sounds and files are replaced by a note."""

from __future__ import annotations

from typing import Any

import pytest

from compaction import compact_sync, nothing, validate
from compaction.strategies import ClearMedia
from tests.support.chats import Chat, assistant, call, indexed, user

IMAGE = {"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}}
AUDIO = {"type": "input_audio", "input_audio": {"data": "QUJD" * 100, "format": "wav"}}
FILE = {"type": "file", "file": {"file_id": "file-1"}}


def words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def showing(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(parts)}


def cleared(messages: Chat, **options: Any) -> Chat:
    return compact_sync(messages, ClearMedia(**options), counter="chars/4").messages


@pytest.mark.parametrize(("part", "kind"), [(IMAGE, "image"), (AUDIO, "audio"), (FILE, "file")])
def test_a_note_says_what_was_there(part: dict[str, Any], kind: str) -> None:
    before, after = words("look:"), words("what is it?")
    messages = [showing(before, part, after), assistant("a cat"), user("and now?")]
    left = cleared(messages)
    assert left[0] == showing(before, words(f"[{kind} removed]"), after)
    assert left[0]["content"][0] is before
    assert messages[0]["content"][1] is part
    assert validate(left) == []


def test_the_note_can_be_worded() -> None:
    left = cleared([showing(IMAGE), assistant("a"), user("b")], placeholder="(no {kind} {any more})")
    assert left[0] == showing(words("(no image {any more})"))


def test_pictures_in_tool_results() -> None:
    both = {"role": "tool", "tool_call_id": "1", "content": [words("a page"), IMAGE]}
    alone = {"role": "tool", "tool_call_id": "2", "content": [IMAGE]}
    left = cleared([user("q"), call("1", "2"), both, alone, assistant("a"), user("r")])
    assert [message["content"] for message in left[2:4]] == [[words("a page\n[image removed]")], [words("[image removed]")]]


def test_what_the_assistant_said_aloud() -> None:
    left = cleared([user("q"), {"role": "assistant", "content": None, "audio": {"id": "audio_1"}}, user("r")])
    assert left[1] == assistant("[audio removed]")


def test_the_last_turn_stays_by_default() -> None:
    messages = [showing(IMAGE), assistant("a"), showing(words("this?"), IMAGE), assistant("b")]
    left = cleared(messages)
    assert left[0] == showing(words("[image removed]"))
    assert left[2] is messages[2]
    assert cleared(messages, keep=nothing)[2] == showing(words("this?"), words("[image removed]"))


def test_a_note_longer_than_what_it_replaces_is_not_written() -> None:
    low = {"type": "image_url", "image_url": {"url": "https://example.com/cat.png", "detail": "low"}}
    messages = [showing(low), assistant("a"), user("b")]
    done = compact_sync(messages, ClearMedia(placeholder="x" * 400), counter="chars/4")
    assert (done.messages, done.refused) == (messages, ())


@pytest.mark.parametrize("words_before", ["", "word " * 600], ids=["alone", "beside many words"])
def test_a_note_as_long_as_what_it_replaces_is_written(words_before: str) -> None:
    """A note with as many tokens as the medium is written: no tokens are saved, but the medium is removed."""
    low = {"type": "image_url", "image_url": {"url": "https://example.com/cat.png", "detail": "low"}}
    messages = [showing(words(words_before), low), assistant("a"), user("b")]
    sizes = [indexed(cleared(messages, placeholder="x" * 4 * n)).tokens for n in (10, 60)]
    per_token = (sizes[1] - sizes[0]) / 50
    as_long = 10 + int((indexed(messages).tokens - sizes[0]) / per_token)
    left = cleared(messages, placeholder="x" * 4 * as_long)
    assert indexed(left).tokens == indexed(messages).tokens
    assert left[0] == showing(words(words_before), words("x" * 4 * as_long))

"""Files of conversations: every accepted shape, unchanged bytes, and no half-written files."""

from __future__ import annotations

import gzip
import io
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.errors import UnreadableFile, UnwritableFile
from compaction.files import FileConversation, open_replacement, read_conversations, write_text
from compaction.files.json_text import scan

HELLO = '{"role": "user", "content": "hello"}'
DEEP = "[" * 100_000 + "]" * 100_000


def read(text: str | bytes) -> list[FileConversation]:
    return list(read_conversations(io.BytesIO(text.encode() if isinstance(text, str) else text)))


def read_one(text: str | bytes) -> FileConversation:
    [conversation] = read(text)
    return conversation


def why_not(text: str | bytes) -> str:
    with pytest.raises(UnreadableFile) as caught:
        read(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        (f"[{HELLO}]", [[json.loads(HELLO)]]),
        (f'{{"messages": [{HELLO}]}}', [[json.loads(HELLO)]]),
        (f'{{\n "model": "m",\n "messages": [\n  {HELLO}\n ],\n "n": [1]\n}}\n', [[json.loads(HELLO)]]),
        (f"[{HELLO}]\n[]\n", [[json.loads(HELLO)], []]),
        (f'\n{{"messages": []}}\r\n\r\n[{HELLO}]\r\n \r\n', [[], [json.loads(HELLO)]]),
        (f"\ufeff[{HELLO}]", [[json.loads(HELLO)]]),
        (f'{{"messages":\n[{HELLO}]\n}}', [[json.loads(HELLO)]]),
        (" [ ] ", [[]]),
    ],
    ids=["list", "object", "indented", "lines", "blank lines", "byte order mark", "second line whole", "empty list"],
)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_reads_every_shape(text: str, messages: list[Any], *, packed: bool) -> None:
    """Lists, objects and JSON lines are read, compressed or not, and are written back unchanged."""
    found = read(gzip.compress(text.encode()) if packed else text)
    assert [conversation.messages for conversation in found] == messages
    assert "".join(conversation.with_messages(conversation.messages) for conversation in found) == text


def test_gzip_of_several_parts_is_one_file() -> None:
    parts = gzip.compress(b"[]\n", mtime=0) + gzip.compress(f"[{HELLO}]\n".encode())
    assert [len(conversation.messages) for conversation in read(parts)] == [0, 1]


def test_conversations_have_ids_and_places() -> None:
    """Its id is in its file or is its number, its place names the line if there are several, and it has the other fields."""
    found = read('{"id": "a", "messages": [], "n": [1]}\n\n[]\n{"id": 7, "messages": []}\n{"id": null, "messages": []}')
    assert scan(found[0].message_list.text).fields == {"id": "a", "n": [1]}
    assert [conversation.id for conversation in found] == ["a", "2", "7", "4"]
    assert [conversation.where.partition(", ")[2] for conversation in found] == ["line 1", "line 3", "line 4", "line 5"]
    assert read_one("[]").where == "the input"


def test_lines_are_read_as_they_are_asked_for() -> None:
    """A JSONL file is read lazily: conversations before a broken line are returned before the error is raised."""
    lines = read_conversations(io.BytesIO(b"[]\n[]\nbroken\n"))
    assert [next(lines).messages, next(lines).messages] == [[], []]
    with pytest.raises(UnreadableFile, match="line 3"):
        next(lines)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        (" \n\n", "is empty"),
        ("hello", "not JSON (Expecting value: line 1, column 1)"),
        ("[1,\n 2,\n", "not JSON (it ends in the middle: line 2, column 4)"),
        ("[1 2]", "Expecting ',' delimiter"),
        ("[] []", "Extra data"),
        ('{"messages" []}', "Expecting ':' delimiter"),
        ("{1: []}", "Expecting property name"),
        ('["\x00"]', "Invalid control character"),
        ('[]\n\n{"messages": [}\n[]\n', "the input, line 3: it is not JSON (Expecting value: line 3, column 15)"),
        ("[]\n[1,\n", "the input, line 2: it is not JSON (it ends in the middle: line 2, column 4)"),
        ('[]\n["cut in ha\n[]', "the input, line 2: it is not JSON (it ends in the middle: line 2, column 12)"),
        ('["cut in ha', "it is not JSON (it ends in the middle: line 1, column 12)"),
        ("[{\n[]\n[]\n", "the input, line 1: it is not JSON"),
        ('[\n{"role": "user"}\n', "the input: it is not JSON (it ends in the middle: line 2, column 17)"),
        ("[]\n12\n", "the input, line 2: it is not a conversation"),
        ('"text"', "it is not a conversation"),
        ('{"a": 1}', "it has no 'messages'"),
        ('{"messages": "none"}', "'messages' is not a list (got str)"),
        ('{"messages": [], "messages": []}', "more than one 'messages'"),
        ('{"messages": [], "messages": 1}', "more than one 'messages'"),
        (f"{HELLO}\n{HELLO}\n", "the input, line 1: it is a single message"),
        (DEEP, "nested too deeply"),
        (f'[{{"role": "user", "content": {"9" * 5_000}}}]', "a number that is too large"),
        ('[{"role": "user", "content": 1e999}]', "a number that is too large"),
        (b'[{"content": "caf\xe9"}]', "line 1: it is not UTF-8 text"),
        (b"[\n\n\xff]", "line 3: it is not UTF-8 text"),
        ("[]".encode("utf-16"), "not UTF-8 text"),
        (bytes(range(256)), "not UTF-8 text"),
        (gzip.compress(b"[]", mtime=0)[:-4], "gzip data is cut short or damaged"),
        (gzip.compress(b"[]", mtime=0)[:-8] + b"12345678", "gzip data is cut short or damaged"),
        (b"\x1f\x8bgarbage", "gzip data is cut short or damaged"),
    ],
)
def test_says_what_is_wrong_with_a_file(text: str | bytes, said: str) -> None:
    """A file that does not contain conversations raises an error with the place and a remedy, on one line."""
    answer = why_not(text)
    assert said in answer
    assert "; " in answer
    assert "\n" not in answer


@pytest.mark.parametrize("bad", [b'{"messages": [', b"\xff", b"12", HELLO.encode(), DEEP.encode()])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_damaged_line_can_be_skipped(bad: bytes, at: int) -> None:
    """``on_bad_line`` gets an error with the place of each line that is not a conversation. The other lines are read."""
    lines = [f'{{"id": {number}, "messages": [{HELLO}]}}'.encode() for number in range(2)]
    lines.insert(at, bad)
    told: list[UnreadableFile] = []
    found = read_conversations(io.BytesIO(b"\n".join(lines)), on_bad_line=told.append)
    assert [each.id for each in found] == ["0", "1"]
    assert [str(error).partition(": ")[0] for error in told] == [f"the input, line {at + 1}"]


def test_a_long_file_with_a_damaged_first_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the next two lines are conversations, it is JSONL: it may be longer than a conversation, and is not held whole."""
    monkeypatch.setattr("compaction.files.reading._LARGEST", 100)
    told: list[UnreadableFile] = []
    stream = io.BytesIO(b'{"messages": [\n' + f"[{HELLO}]\n".encode() * 50)
    found = read_conversations(stream, on_bad_line=told.append)
    assert len(list(found)) == 50
    assert [str(error).partition(": ")[0] for error in told] == ["the input, line 1"]
    assert len(read(f'{{"messages":\n[{HELLO}]\n}}')) == 1, "one document whose second line is a conversation"


def test_says_that_a_path_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="No such file"):
        list(read_conversations(tmp_path / "missing.json"))
    with pytest.raises(UnreadableFile, match="Is a directory"):
        list(read_conversations(tmp_path))


@pytest.mark.parametrize(
    ("text", "change", "written"),
    [
        (
            '[{"role": "user", "content": "a", "score": NaN}, {"role": "user", "loss": -Infinity}]',
            {"content": "b"},
            '[{"role": "user", "content": "b", "score": NaN}, {"role": "user", "loss": -Infinity}]',
        ),
        (
            '[{"role": "user", "content": "\u00e9 \\ud83d"}]',
            {"n": 1},
            '[{"role": "user", "content": "\\u00e9 \\ud83d", "n": 1}]',
        ),
        ('[ {"role": "user"} , {} ]\r\n', {"content": "one\ntwo"}, '[ {"role": "user", "content": "one\\ntwo"} , {} ]\r\n'),
    ],
    ids=["constants that JSON has not but many programs write", "half a surrogate pair is an escape", "a line stays one line"],
)
def test_a_changed_message_is_written(text: str, change: dict[str, Any], written: str) -> None:
    conversation = read_one(text)
    first, *rest = conversation.messages
    assert conversation.with_messages([{**first, **change}, *rest]) == written


def spelled(value: Any, spelling: int) -> str:
    """Return the value as JSON, in one of four styles."""
    if spelling == 0:
        return json.dumps(value, separators=(",", ":"))
    if spelling == 1:
        return json.dumps(value, indent=3)
    if spelling == 2:
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode()
    return json.dumps(value, indent=1, separators=(" ,\r\n\t", " : "))


SPACES = st.text(" \t\r\n", max_size=3)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
MESSAGES = st.builds(spelled, st.dictionaries(st.text(max_size=8), VALUES, max_size=4), st.integers(0, 3))


@st.composite
def documents(draw: st.DrawFn) -> tuple[list[str], str]:
    """Draw messages as JSON texts, and a document with them among white space and other fields."""
    messages = draw(st.lists(MESSAGES, max_size=6))
    spaced = [draw(SPACES) + message + draw(SPACES) for message in messages]
    listed = f"[{','.join(spaced) if spaced else draw(SPACES)}]"
    if draw(st.booleans()):
        others = [
            f"{json.dumps(name)}{draw(SPACES)}:{draw(MESSAGES)}"
            for name in draw(st.lists(st.sampled_from(["id", "é", ""]), unique=True))
        ]
        members = draw(st.permutations([*others, f'"messages"{draw(SPACES)}:{draw(SPACES)}{listed}']))
        listed = f"{{{draw(SPACES)}{f'{draw(SPACES)},{draw(SPACES)}'.join(members)}{draw(SPACES)}}}"
    return messages, draw(SPACES) + listed + draw(SPACES)


@given(documents(), st.data())
def test_untouched_messages_are_written_as_they_stood(document: tuple[list[str], str], data: st.DataObject) -> None:
    """However it is written, all messages give the same text, and any of them are the same text in a new list."""
    texts, text = document
    conversation = read_one(text)
    assert conversation.with_messages(list(conversation.messages)) == text
    chosen = [number for number in range(len(texts)) if data.draw(st.booleans())]
    again = read_one(conversation.with_messages([conversation.messages[number] for number in chosen]))
    assert [again.message_list.text[slice(*span)] for span in again.message_list.spans] == [texts[number] for number in chosen]
    assert scan(again.message_list.text).fields == scan(conversation.message_list.text).fields


@given(documents(), st.dictionaries(st.text(max_size=8), VALUES, max_size=4))
def test_new_messages_are_written_as_json(document: tuple[list[str], str], message: dict[str, Any]) -> None:
    """A message that was not read is written among those that were, and reads as it is; the file can be stored as UTF-8."""
    conversation = read_one(document[1])
    written = conversation.with_messages([*conversation.messages, message])
    assert read_one(written.encode()).messages == [*conversation.messages, message]


def test_new_messages_take_after_the_first() -> None:
    """A changed message is indented, spaced and escaped like the first message of its file."""
    new = {"role": "user", "content": "thé"}
    for style in ({"indent": 2}, {"indent": "\t"}, {"separators": (",", ":")}, {}, {"ensure_ascii": False}):
        first, last = {"role": "user", "content": "café"}, {"role": "assistant", "content": "x"}
        text = json.dumps({"n": 1, "messages": [first, last]}, **style)  # type: ignore[arg-type]
        expected = json.dumps({"n": 1, "messages": [first, new]}, **style)  # type: ignore[arg-type]
        conversation = read_one(text)
        assert conversation.with_messages([conversation.messages[0], new]) == expected


def parts_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.endswith(".part")]


def test_writes_when_all_is_there(tmp_path: Path) -> None:
    """A file and a stream get all of it at the end."""
    path, stream = tmp_path / "out.json", io.BytesIO()
    path.write_text("old")
    with write_text(path) as write, write_text(stream) as send:
        for text in ("new ", "é"):
            write(text)
            send(text)
        assert (path.read_text(), stream.getvalue()) == ("old", b"")
    assert path.read_text(encoding="utf-8") == stream.getvalue().decode() == "new é"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.json"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_failure_writes_nothing(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "out.json.gz"
    path.write_text("old")

    def failing() -> None:
        with write_text(path) as write:
            write("half")
            raise error

    with pytest.raises(error):
        failing()
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.json.gz"]


def test_modes_are_sane(tmp_path: Path) -> None:
    """A new file has the default mode; a replaced file keeps its mode, which its temporary file has too."""
    plain, fresh, secret = tmp_path / "plain", tmp_path / "fresh", tmp_path / "secret"
    plain.touch()
    secret.touch(mode=0o600)
    secret.chmod(0o600)
    with write_text(fresh) as write:
        write("x")
    with write_text(secret) as write:
        write("x")
        [part] = parts_in(tmp_path)
        assert stat.S_IMODE((tmp_path / part).stat().st_mode) == 0o600
    assert stat.S_IMODE(fresh.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600


def test_a_link_is_followed(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("old")
    link.symlink_to(real)
    with write_text(link) as write:
        write("new")
    assert (link.is_symlink(), real.read_text()) == (True, "new")


def test_a_file_may_be_replaced_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(f"[{HELLO},{HELLO}]\n[{HELLO}]\n")
    with write_text(path) as write:
        for conversation in read_conversations(path):
            write(conversation.with_messages(conversation.messages[:1]))
    assert path.read_text() == f"[{HELLO}]\n[{HELLO}]\n"


def test_gzip_goes_by_the_name(tmp_path: Path) -> None:
    one, two = tmp_path / "one.gz", tmp_path / "two.gz"
    for path in (one, two):
        with write_text(path) as write:
            write("content")
    assert gzip.decompress(one.read_bytes()) == b"content"
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="this system has no /dev/null")
def test_a_device_is_not_replaced() -> None:
    with write_text(Path("/dev/null")) as write:
        write("x")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_says_that_a_path_cannot_be_written(tmp_path: Path) -> None:
    locked = tmp_path / "locked.json"
    locked.write_text("old")
    locked.chmod(0o400)
    for path in [tmp_path, tmp_path / "no" / "folder.json", *([] if os.access(locked, os.W_OK) else [locked])]:
        with pytest.raises(UnwritableFile, match="cannot be written"), write_text(path) as write:
            write("x")
    assert locked.read_text() == "old"
    assert parts_in(tmp_path) == []


def test_a_new_file_has_the_permissions_that_were_asked_for(tmp_path: Path) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    old.touch(mode=0o640)
    old.chmod(0o640)
    for path in (new, old):
        with open_replacement(path, mode=0o600) as file:
            file.write(b"secret")
    assert [path.stat().st_mode & 0o777 for path in (new, old)] == [0o600, 0o640]


@pytest.mark.parametrize(
    "text",
    ["x" * 101, f"[{HELLO}, " + "x" * 100, "[\n" * 60, f"[{HELLO}]\n" + " " * 101 + "x"],
    ids=["line", "json", "lines", "later"],
)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_a_conversation_has_a_largest_size(monkeypatch: pytest.MonkeyPatch, text: str, *, packed: bool) -> None:
    """An endless file, or one of a few bytes that unpack to gigabytes, does not fill the memory."""
    monkeypatch.setattr("compaction.files.reading._LARGEST", 100)
    assert len(read(f"[{HELLO}]\n" * 50)) == 50, "all lines together may be longer"
    data = text.encode()
    assert "has at most" in why_not(gzip.compress(data) if packed else data)

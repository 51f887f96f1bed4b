"""Deletion of conversations: on request, or because they were unused for a time."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import pytest

from compaction.errors import StateError
from compaction.gateway.conversations import GatewayConversations
from compaction.gateway.deletion import ConversationDeletion
from compaction.gateway.status import GatewayStatus
from compaction.gateway.workers import Workers
from compaction.stores import SessionStore, SQLiteStore, StoredRecord
from compaction.tokens import Usage
from tests.support.gateways import (
    CHAT,
    Got,
    Handler,
    ScriptedUpstream,
    body_of,
    chat_reply,
    gateway,
    in_process,
    never,
    request_of,
    settings_of,
    tool_chat,
    turn_of,
)
from tests.support.limits import WAIT_SECONDS

TABLES = ("sessions", "session_keys", "session_uses")


def rows_of(path: Path, *tables: str) -> list[list[Any]]:
    database = sqlite3.connect(path)
    rows = [database.execute(f"SELECT DISTINCT id FROM {table}").fetchall() for table in tables]
    database.close()
    return rows


async def test_a_conversation_is_deleted_on_request(tmp_path: Path) -> None:
    store, recall, record = tmp_path / "gateway.db", tmp_path / "recall.db", tmp_path / "sessions"
    async with gateway(chat_reply(), store=store, recall=recall, record=record) as (upstream, client):
        for name in ("old", "new"):
            assert (await client.post(CHAT, content=body_of(tool_chat(20, name=name)))).status_code == 200
        ids = [each["id"] for each in (await client.get("/status.json")).json()["conversations"]]
        found = [(await client.delete(f"/conversations/{ids[1]}")).status_code for _ in range(2)]
        health = (await client.get("/healthz")).json()
    assert found == [204, 404]
    assert (health["conversations"], health["in_memory"], len(upstream.got)) == (1, 1, 2)
    (recording,) = record.iterdir()
    words = [b"new 3", b"old 3"]
    signs = {store: [each.encode() for each in ids], recall: words, recording: words}
    for path, (kept, gone) in signs.items():
        data = path.read_bytes()
        assert (kept in data, gone in data) == (True, False), path


async def test_a_deleted_conversation_stays_deleted_when_its_answer_ends(tmp_path: Path) -> None:
    """A conversation whose answer is still streaming is deleted; what the answer reports is not saved."""
    path, answering, may_end = tmp_path / "gateway.db", threading.Event(), threading.Event()

    def slow(handler: Handler, got: Got) -> None:
        answering.set()
        may_end.wait(WAIT_SECONDS)
        chat_reply(tokens=3_000)(handler, got)

    with ScriptedUpstream(slow) as upstream:
        async with in_process(upstream, store=path, forget_after=1_000.0) as client, anyio.create_task_group() as group:
            group.start_soon(partial(client.post, CHAT, content=body_of(tool_chat(20))))
            await anyio.to_thread.run_sync(answering.wait)
            [[(name,)]] = rows_of(path, "sessions")
            assert (await client.delete(f"/conversations/{name}")).status_code == 204
            may_end.set()
    assert rows_of(path, *TABLES) == [[], [], []]


async def test_what_left_is_forgotten_with_its_conversation(tmp_path: Path) -> None:
    """Content that an earlier process stored for recall is deleted too, although no decisions are saved."""
    now, path = [1_000.0], tmp_path / "recall.db"

    with ScriptedUpstream(chat_reply()) as upstream:
        async with in_process(upstream, recall=path, forget_after=1_000.0, clock=lambda: now[0]) as client:
            assert (await client.post(CHAT, content=body_of(tool_chat(20)))).status_code == 200
            assert rows_of(path, "records") != [[]]
        now[0] += 2_000.0
        async with in_process(upstream, recall=path, forget_after=1_000.0, clock=lambda: now[0]):
            left = rows_of(path, "records")
            while left != [[]]:
                await anyio.sleep(0.01)
                left = rows_of(path, "records")


async def test_a_second_deletion_removes_the_bytes_that_the_first_had_to_leave(tmp_path: Path) -> None:
    """Another process read the file of what left; it may stay connected."""
    path = tmp_path / "recall.db"
    conversations, deletion = deletion_of([1_000.0], recall=path)
    async with conversations:
        conversations.recalled.put("a", [StoredRecord.of_message({}, role="user", text="swordfish " * 900, salt="a")])
        with contextlib.closing(sqlite3.connect(path)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM records").fetchone()
            with pytest.raises(StateError):
                await deletion.everywhere("a")
            reader.rollback()
            await deletion.everywhere("a")
            assert bytes_of(tmp_path).count(b"swordfish") == 0


async def test_what_left_is_forgotten_although_another_process_reads_the_file_of_decisions(tmp_path: Path) -> None:
    """Its bytes stay in that file until the next time, which fails no more; what left is deleted at once."""
    now, path, recall = [1_000.0], tmp_path / "s.db", tmp_path / "recall.db"
    async with gateway(chat_reply(), store=path, recall=recall, forget_after=1e6, clock=lambda: now[0]) as (_, client):
        assert (await client.post(CHAT, content=body_of(tool_chat(20)))).status_code == 200
    assert rows_of(recall, "records") != [[]]
    now[0] += 2_000.0
    conversations, deletion = deletion_of(now, store=path, recall=recall, forget_after=9.0)
    reader = sqlite3.connect(path)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM sessions").fetchall()
    async with conversations:
        with pytest.raises(StateError):
            await deletion.delete_unused(9.0)
        reader.close()
        assert rows_of(recall, "records") == [[]]
        assert len(await deletion.delete_unused(9.0)) == 1
        assert await deletion.delete_unused(9.0) == []


def bytes_of(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


def deletion_of(now: list[float], **options: Any) -> tuple[GatewayConversations, ConversationDeletion]:
    """The conversations of a gateway whose upstream is never asked, or of one of its workers, and what deletes them."""
    workers = options.pop("workers", None)
    settings = settings_of("http://127.0.0.1:9", clock=lambda: now[0], **options)
    conversations = GatewayConversations(settings, None)
    return conversations, ConversationDeletion(settings, conversations, GatewayStatus(settings), recorder=None, workers=workers)


async def test_uses_are_saved_now_and_then(tmp_path: Path) -> None:
    """Uses are saved twenty times in the time after which a conversation is forgotten, and at once after a restart."""
    now, path = [100.0], tmp_path / "s.db"
    store = SessionStore(path)
    conversations, deletion = deletion_of(now, store=path, forget_after=20.0)
    async with conversations:
        for now[0] in (100.0, 100.5, 100.99):
            await deletion.note_use(turn_of("a"))
        assert store.delete_unused(100.5, now[0]) == ["a"]
        for now[0] in (101.0, 101.5):
            await deletion.note_use(turn_of("a"))
        assert await deletion.delete_unused(0.5) == []
        now[0] += 0.01
        assert await deletion.delete_unused(0.5) == []  # the file's time would be too old, but the memory has a later one
        now[0] += 0.5
        assert (await deletion.delete_unused(0.5), await deletion.delete_unused(0.0)) == (["a"], [])
    conversations, deletion = deletion_of(now, store=path)
    async with conversations:
        await deletion.note_use(turn_of("b"))
        assert await deletion.delete_unused(-1.0) == []


@pytest.mark.parametrize("option", ["store", "recall", None])
async def test_a_conversation_in_memory_is_forgotten_without_files_too(option: str | None, tmp_path: Path) -> None:
    """It is forgotten after a time, or by its name. What it reports later is ignored until it sends another request."""
    now, options = [100.0], {} if option is None else {option: tmp_path / "file.db"}
    conversations, deletion = deletion_of(now, forget_after=10.0, **options)
    request = request_of(tool_chat(20), tools=[{"name": "look"}])
    async with conversations:
        for way in ("time", "name"):
            turn = await conversations.turn(request)
            name = turn.session.id
            await deletion.note_use(turn)
            assert conversations.held()[0] == 1
            if way == "time":
                assert await deletion.delete_unused(10.0) == []
                now[0] += 10.5
                assert await deletion.delete_unused(10.0) == [name]
            else:
                assert [await deletion.everywhere(name) for _ in range(2)] == [True, False]
            assert conversations.held() == (0, 0)
            if conversations.recalled is not None:
                assert conversations.recalled.range(name, 1, 9) == []
            await deletion.note_use(turn)
            before = turn.session.index.tokens
            await conversations.record_usage(turn, Usage(before + 500, 1))
            assert turn.session.index.tokens == before
            now[0] += 20.0
            assert await deletion.delete_unused(10.0) == []


@pytest.mark.parametrize(
    ("options", "files"),
    [
        ({"recall": "r.db", "forget_after": 9.0}, {"r.db", "r.db.uses"}),
        ({"recall": "r.db"}, {"r.db"}),
        ({"recall": "r.db", "store": "s.db", "forget_after": 9.0}, {"r.db", "s.db", "s.db.windows"}),
        ({"forget_after": 9.0}, set()),
    ],
)
def test_the_times_of_use_have_a_file_where_nothing_else_has_them(
    options: dict[str, Any], files: set[str], tmp_path: Path
) -> None:
    """The file stands beside the content that is stored for recall, if that content is forgotten after a time."""
    deletion_of([0.0], **{name: tmp_path / value if isinstance(value, str) else value for name, value in options.items()})
    assert {path.name for path in tmp_path.iterdir() if not path.name.endswith(("-wal", "-shm"))} == files


async def test_names_that_were_forgotten_are_bounded() -> None:
    conversations, deletion = deletion_of([0.0], forget_after=10.0)
    async with conversations:
        for number in range(1_001):
            assert deletion.in_memory(f"{number}") == "unknown"
        for number in (0, 1, 1_000):
            await deletion.note_use(turn_of(f"{number}"))
        assert await deletion.delete_unused(-1.0) == ["0"]


async def test_a_conversation_that_was_used_meanwhile_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is read again for each conversation, because deleting those before it takes a while."""
    now, names = [100.0], ("a", "b")
    conversations, deletion = deletion_of(now, recall=tmp_path / "recall.db", forget_after=10.0)
    assert conversations.recalled is not None
    async with conversations:
        for name in names:
            await deletion.note_use(turn_of(name))
            conversations.recalled.put(name, [StoredRecord.of_message({}, role="user", text=name, salt=name)])
        now[0] += 10.5
        forget = SQLiteStore.forget

        def use_the_other(store: SQLiteStore, session: str, ids: Any) -> Any:
            conversations.forgotten.pop("b", None)  # as its next request does
            anyio.from_thread.run(deletion.note_use, turn_of("b"))
            return forget(store, session, ids)

        monkeypatch.setattr(SQLiteStore, "forget", use_the_other)
        assert await deletion.delete_unused(10.0) == ["a"]
        assert [bool(conversations.recalled.range(name, 1, 9)) for name in names] == [False, True]


async def test_one_that_was_used_during_its_deletion_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its recalled texts stay, and so does its time of use, so that a later deletion completes the work."""
    now = [100.0]
    conversations, deletion = deletion_of(now, recall=tmp_path / "recall.db", forget_after=10.0)
    assert conversations.recalled is not None
    async with conversations:
        await deletion.note_use(turn_of("a"))
        conversations.recalled.put("a", [StoredRecord.of_message({}, role="user", text="swordfish", salt="a")])
        now[0] += 10.5
        found = SessionStore.delete_unused

        def used_between(store: SessionStore, *args: Any, also: Any, **options: Any) -> Any:
            return found(store, *args, also=lambda ids: deletion._last_use.update(a=now[0]) or also(ids), **options)

        monkeypatch.setattr(SessionStore, "delete_unused", used_between)
        assert await deletion.delete_unused(10.0) == []
        assert conversations.recalled.range("a", 1, 9) != []
        monkeypatch.undo()
        now[0] += 10.5
        assert await deletion.delete_unused(10.0) == ["a"]
        assert conversations.recalled.range("a", 1, 9) == []


async def test_all_names_are_asked_about_at_once(tmp_path: Path) -> None:
    """Each other worker gets one question, however many conversations were unused. One that fails to answer may use them."""
    now, asked = [100.0], list[Any]()
    options: dict[str, Any] = {"recall": tmp_path / "recall.db", "forget_after": 10.0}
    conversations, deletion = deletion_of(now, workers=Workers(tmp_path, 2, 1), **options)

    def answer(about: Any) -> dict[str, str]:
        asked.append(about)
        if len(asked) == 1:
            raise OSError("disk full")
        return dict.fromkeys(about[0], "unknown")

    async with conversations, Workers(tmp_path, 2, 0).listening(never, {"forget": answer}):
        for name in "abc":
            await deletion.note_use(turn_of(name))
        now[0] += 10.5
        assert await deletion.delete_unused(10.0) == []
        assert await deletion.delete_unused(10.0) == ["a", "b", "c"]
    assert [sorted(names) for names, _ in asked] == [["a", "b", "c"]] * 2


@pytest.mark.parametrize("is_compacting", [False, True])
async def test_a_conversation_that_another_worker_uses_stays(is_compacting: bool, tmp_path: Path) -> None:
    """It used the conversation after the time in the file, or compacts it now. Nothing of it leaves the files."""
    now, path, recall = [100.0], tmp_path / "s.db", tmp_path / "recall.db"
    options: dict[str, Any] = {"store": path, "recall": recall, "forget_after": 20.0}
    owner, owning = deletion_of(now, workers=Workers(tmp_path, 2, 0), **options)
    other, asking = deletion_of(now, workers=Workers(tmp_path, 2, 1), **options)

    answers = {"forget": lambda about: owning.in_own_memory(*about)}
    async with owner, other, Workers(tmp_path, 2, 0).listening(never, answers):
        turn = await owner.turn(request_of(tool_chat(20)))
        name = turn.session.id
        assert owner.recalled is not None
        for now[0] in (100.0, 100.0 if is_compacting else 100.9):
            await owning.note_use(turn)
        now[0] = 120.5
        before = [rows_of(path, *TABLES), rows_of(recall, "records")]
        async with contextlib.AsyncExitStack() as stack:
            if is_compacting:
                (pool,) = owner._pools.values()
                await stack.enter_async_context(pool.call(turn.request.parsed.messages, scope=turn.request.scope))
            assert await asking.delete_unused(20.0) == []
        assert [rows_of(path, *TABLES), rows_of(recall, "records")] == before != [[[], [], []], [[]]]
        now[0] = 121.5
        assert await asking.delete_unused(20.0) == [name]
        assert [rows_of(path, *TABLES), rows_of(recall, "records")] == [[[], [], []], [[]]]
        assert owner.held() == (0, 0)

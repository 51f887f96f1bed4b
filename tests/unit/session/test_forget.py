"""Deletion requests: after `forget` no view, saved state or store contains the message, and nothing else is lost."""

from __future__ import annotations

import contextlib
import itertools
import json
import sqlite3
from collections.abc import Awaitable, Iterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest

from compaction import last, presets
from compaction.errors import ConfigurationError, InputError, StateError, SyncDriverError
from compaction.formats import MessageFormat, OpenAIChat, openai_chat
from compaction.session import CompactionSession, Evicted, SessionPool
from compaction.stores import NotStored, SessionStore, SQLiteStore, Store, StoredRecord
from compaction.strategies import Lossless, Offload, Strategy, Summarization, Truncation
from compaction.triggers import tokens_exceed
from tests.support.chats import Chat, call, result, system, user
from tests.support.chats import assistant as answer
from tests.support.scripted import Scripted

SECRET = "swordfish4711"


def chat_of(name: str, turns: int = 8, *, secret: int = 1) -> Chat:
    """A conversation in which only one user message contains the secret."""
    chat: Chat = [system("You keep a store.")]
    for number in range(turns):
        told = f" The password is {SECRET}." if number == secret else ""
        chat += [
            user(f"{name} asks {number}: " + "why? " * 10 + told),
            call(f"{name}{number}"),
            result(f"{name}{number}", f"{name} found {number}. " * 20),
            answer(f"{name} hears {number}: " + "so. " * 12),
        ]
    return chat


def telling(chat: Chat) -> Chat:
    return [message for message in chat if SECRET in json.dumps(message)]


def without(chat: Chat) -> Chat:
    return [message for message in chat if SECRET not in json.dumps(message)]


def quoting() -> Scripted:
    """A summarizer that repeats its input."""
    return Scripted(lambda request: " ".join(each.text[-60:] for group in request.groups for each in group.messages)[:900])


def summarizing(**options: Any) -> Summarization:
    return Summarization(quoting(), trigger=tokens_exceed(500), keep=last(messages=3), **options)


def storing(path: Path) -> Strategy:
    store = SQLiteStore(path / "records.db")
    offload = Offload(store, trigger=tokens_exceed(300), min_chars=250, keep=last(groups=2))
    return offload >> Lossless(summarizing(), store)


def options(**more: Any) -> dict[str, Any]:
    return {"counter": "chars/4", "clock": lambda: 0.0, **more}


def turns_of(session: Any, chat: Chat, **named: Any) -> list[Any]:
    view: list[Any] = []
    for place, message in enumerate(chat):
        if message["role"] == "user":
            view = session.view_sync(chat[: place + 1], **named)
    return view


def traces(path: Path, text: str = SECRET) -> list[str]:
    """The files that contain the text, logs included."""
    return [each.name for each in path.iterdir() if text.encode() in each.read_bytes().lower()]


@contextlib.contextmanager
def used_elsewhere(path: Path) -> Iterator[None]:
    """Run the block while another process has the saved sessions open, so that their log is not removed by itself."""
    with contextlib.closing(sqlite3.connect(path / "sessions.db")) as database:
        database.execute("SELECT * FROM sessions").fetchall()
        yield


def test_what_others_said_is_still_stored(tmp_path: Path) -> None:
    """A store deletes only the record of the message and the notes that refer to it."""
    session = CompactionSession(storing(tmp_path), id="kim", **options())
    chat = chat_of("kim")
    turns_of(session, chat)
    store = SQLiteStore(tmp_path / "records.db")
    before = {record.data for record in store.range("kim", 1, 999)}
    assert session.forget_sync(telling(chat)) == 1
    after = {record.data for record in store.range("kim", 1, 999)}
    assert len(before) - len(after) == 1
    assert after < before
    assert SECRET not in repr(store.describe("kim"))
    assert not store.search("kim", SECRET, limit=9).hits


@pytest.mark.parametrize("is_saved", [False, True])
@pytest.mark.parametrize("secret", range(8))
def test_no_summary_made_from_it_survives(secret: int, is_saved: bool, tmp_path: Path) -> None:
    """A summary goes if its summarizer was given the message, even among those that stay, whatever words it chose."""
    made: dict[str, bool] = {}

    def told(request: Any) -> str:
        seen = repr([request.groups, request.kept, request.previous, request.originals, request.sources])
        made[text := f"Note {len(made)}."] = SECRET in seen or any(made[note] for note in made if note in seen)
        return text

    strategy = Summarization(Scripted(told), trigger=tokens_exceed(500), keep=last(messages=3))
    session = CompactionSession(strategy, store=SessionStore(tmp_path / "sessions.db"), id="kim", **options())
    chat = chat_of("kim", 24, secret=3 * secret)
    turns_of(session, chat)
    if is_saved:
        session = CompactionSession(strategy, store=SessionStore(tmp_path / "sessions.db"), id="kim", **options())
    session.forget_sync(telling(chat))
    state = json.dumps(session.to_dict()) + json.dumps(session.index.messages())
    assert len(made) > 2
    assert [text for text, has_seen in made.items() if has_seen and text in state] == []


def test_a_message_that_is_not_there_changes_nothing(tmp_path: Path) -> None:
    """Neither a message of another conversation nor one of another format; one that cannot be read is an error."""
    session = CompactionSession(storing(tmp_path), store=SessionStore(tmp_path / "sessions.db"), **options())
    chat = chat_of("kim")
    view = turns_of(session, chat)
    state, result, files = session.to_dict(), session.last_result, traces(tmp_path)
    assert "records.db" in files
    for other in (user("Hello."), {"role": "model", "parts": [{"text": "Hello."}]}):
        assert session.forget_sync([other]) == 0
    with pytest.raises(InputError):
        session.forget_sync([*telling(chat), {"content": "no role"}])
    assert (session.to_dict(), session.last_result, session.index.messages()) == (state, result, view)
    assert traces(tmp_path) == files


class Plain:
    """A third-party store without `forget`. Holds state: the number of calls."""

    def __init__(self, inner: SQLiteStore) -> None:
        self.put, self.get, self.range = inner.put, inner.get, inner.range
        self.search, self.describe = inner.search, inner.describe


def test_a_store_that_cannot_forget(tmp_path: Path) -> None:
    store = Plain(SQLiteStore(tmp_path / "records.db"))
    assert isinstance(store, Store)
    session = CompactionSession(Lossless(summarizing(), store), **options())
    chat = chat_of("kim")
    turns_of(session, chat)
    state = session.to_dict()
    with pytest.raises(ConfigurationError, match="Plain has no method forget"):
        session.forget_sync(telling(chat))
    assert session.to_dict() == state


class AwaitedStore(Plain):
    """An async store that finds records only by their ids."""

    def __init__(self, inner: SQLiteStore) -> None:
        super().__init__(inner)
        self.inner = inner

    def forget(self, session: str, records: Sequence[StoredRecord]) -> Awaitable[None]:
        async def later() -> None:
            self.inner.forget(session, [attrs.evolve(record, data="") for record in records])

        return later()


@pytest.mark.parametrize("kind", [CompactionSession, SessionPool])
async def test_an_awaited_store(kind: type[CompactionSession | SessionPool], tmp_path: Path) -> None:
    store = AwaitedStore(SQLiteStore(tmp_path / "records.db"))
    session = kind(Lossless(summarizing(), store), **options())
    chat = chat_of("kim")
    for place in range(2, len(chat)):
        if chat[place]["role"] == "user":
            await session.view(chat[: place + 1])
    with pytest.raises(SyncDriverError):
        session.forget_sync(telling(chat))
    assert await session.forget(telling(chat)) == 1
    assert traces(tmp_path) == []


def test_a_save_that_fails_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session has forgotten although its store failed, and the next call saves that."""
    store = SessionStore(tmp_path / "sessions.db")
    session = CompactionSession(summarizing(), store=store, **options())
    chat = chat_of("kim")
    turns_of(session, chat)
    with monkeypatch.context() as patch:
        patch.setattr(store, "save", lambda *_: (_ for _ in ()).throw(StateError("no space")))
        with pytest.raises(StateError, match="no space"):
            session.forget_sync(telling(chat))
    assert SECRET not in json.dumps(session.index.messages()) + json.dumps(session.to_dict())
    assert traces(tmp_path) == ["sessions.db"]
    assert session.forget_sync(telling(chat)) == 0
    assert traces(tmp_path) == []


def pool_of(path: Path, **more: Any) -> SessionPool:
    numbers = itertools.count()
    given = {"new_id": lambda: f"session-{next(numbers)}", "store": SessionStore(path / "sessions.db"), **more}
    return SessionPool(storing(path), **options(**given))


async def test_every_session_of_a_pool(tmp_path: Path) -> None:
    """A pool forgets in forks too; other conversations are unchanged, and each list finds its session again."""
    pool = pool_of(tmp_path)
    chat = chat_of("kim")
    fork = [*chat[:-4], user("something else"), answer("so?"), user("really")]
    other = without(chat_of("lee"))
    turns_of(pool, chat)
    pool.view_sync(fork)
    view = turns_of(pool, other)
    assert len(pool) == 3
    with used_elsewhere(tmp_path):
        assert await pool.forget(telling(chat)) == 2
        assert traces(tmp_path) == []
    assert SECRET not in repr([each.known for each in pool._directory.in_space(pool._space(""))])
    assert pool.view_sync(other[:-3]) == view
    for each in (without(chat), without(fork)):
        assert SECRET not in json.dumps(await pool.view(each))
    assert len(pool) == 3
    with used_elsewhere(tmp_path):
        id = pool.trial(other[:-3]).id
        assert sorted(traces(tmp_path, id)) == ["records.db", "sessions.db"]
        assert await pool.delete(None) == 3
        assert (traces(tmp_path, id), len(pool)) == ([], 0)


async def test_a_fork_that_has_not_begun_takes_over_nothing_that_was_forgotten() -> None:
    """Its parent forgets between the search for the session and the call."""
    pool, chat = SessionPool(summarizing(), **options()), chat_of("kim")
    turns_of(pool, chat)
    fork, edits = [*chat[:-4], user("something else")], list[int]()
    assert pool.trial(fork).index.edit_count

    async def call() -> None:
        async with pool.call(fork) as session:
            edits.append(session.index.edit_count)

    async def forget() -> None:
        pool.forget_sync(telling(chat))

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        group.start_soon(forget)
    assert (edits, len(pool)) == ([0], 2)


def test_a_pool_finds_the_list_without_one_of_its_newest_messages() -> None:
    """After messages were forgotten, the ends of the remaining lists lead to the session."""
    pool = SessionPool(Truncation(trigger=tokens_exceed(9_000)), counter="chars/4")
    chat = [user("Where is the red box?"), answer("On shelf 3."), user("My name is Kim."), answer("Noted.")]
    pool.view_sync(chat)
    assert pool.forget_sync(chat[2:3]) == 1
    left = [*chat[:2], chat[3]]
    other = SessionPool(Truncation(trigger=tokens_exceed(9_000)), counter="chars/4")
    other.view_sync(left)
    assert pool._directory._by_key.keys() == other._directory._by_key.keys()  # nor does a digest of it stay
    pool.view_sync(left)
    assert len(pool) == 1


def test_a_pool_forgets_in_a_conversation_that_begins_meanwhile(tmp_path: Path) -> None:
    """A conversation that begins while saved sessions are read has forgotten the messages too, and they are counted."""
    chat = chat_of("kim")

    class Busy(SessionStore):
        def in_scope(self, scope: str) -> dict[str, list[str]]:
            if not len(pool):
                pool.view_sync(chat)
            return super().in_scope(scope)

    pool = SessionPool(storing(tmp_path), **options(store=Busy(tmp_path / "sessions.db")))
    assert pool.forget_sync(telling(chat)) == len(telling(chat))


class ByFields(OpenAIChat):
    """A format that compares messages by some of their fields, as the adapters of frameworks do."""

    def key(self, raw: Any) -> Any:
        return raw["role"], raw.get("content"), raw.get("tool_calls")


@pytest.mark.parametrize("format", [openai_chat, ByFields()])
@pytest.mark.parametrize("id", [None, "kim/1:x"])
async def test_evicted_sessions(tmp_path: Path, id: str | None, format: MessageFormat) -> None:
    """A saved session forgets, and is found again by the list without the message, whatever its format compares."""
    told = list[Any]()
    pool, store = pool_of(tmp_path, limit=1, format=format, on_event=told.append), SessionStore(tmp_path / "sessions.db")
    chat = chat_of("kim", secret=7)
    turns_of(pool, without(chat_of("lee")), id="lee")
    turns_of(pool, chat, id=id)
    pool.view_sync([user("hello")])
    assert [each.is_saved for each in told if isinstance(each, Evicted)] == [True, True]
    lee = store.load("lee"), store.in_scope(pool._space(""))["lee"]
    assert await pool.forget(telling(chat)) == 1
    assert (store.load("lee"), store.in_scope(pool._space(""))["lee"]) == lee
    assert traces(tmp_path) == []
    with pool.call_sync([*without(chat), user("more")], id=id) as session:
        assert session.index.edits
        assert SECRET not in json.dumps(session.compact_due_sync().messages)
    assert pool.forget_sync(telling(chat)) == 0
    assert (await pool.delete("lee"), len(pool), len(store.in_scope(pool._space("")))) == (1, 1, 1)
    assert (pool.delete_sync(id), len(pool)) == (1, 0)
    session.record_usage({"prompt_tokens": 500, "completion_tokens": 1})  # a late report does not bring it back
    assert store.in_scope(pool._space("")) == {}


def test_a_report_after_forgetting_is_of_the_view_before() -> None:
    """The reply to a request that was under way reports the tokens of that request, so its overhead is known."""
    chat = chat_of("kim")
    session = CompactionSession(presets.context_window(9_000), counter="chars/4")
    session.view_sync(chat)
    sent = session.status().tokens
    session.forget_sync(telling(chat))
    session.record_usage({"prompt_tokens": sent + 70, "completion_tokens": 1})
    assert session.status().tokens == session.index.included.tokens + 70


def test_a_damaged_state_stops_no_other(tmp_path: Path) -> None:
    """If one session fails, the others forget, and the error names the one."""
    store = SessionStore(tmp_path / "sessions.db")
    pool = pool_of(tmp_path, limit=1)
    chat = chat_of("kim")
    turns_of(pool, chat)
    pool.view_sync([user("hello")])
    store.keyed(lambda: (pool._space(""), ["key"])).save("broken", {"version": 99})
    with pytest.raises(StateError, match="99"):
        pool.forget_sync(telling(chat))
    assert traces(tmp_path) == []


def test_a_copy_of_a_forks_parent(tmp_path: Path) -> None:
    """A fork's copies of records have the ids of its parent and are found by their content."""
    session = CompactionSession(storing(tmp_path), id="kim", **options())
    chat = chat_of("kim")
    turns_of(session, chat)
    store = SQLiteStore(tmp_path / "records.db")
    [record] = [each for each in store.range("kim", 1, 999) if SECRET in each.data]
    store.put("fork", [record])
    fork = CompactionSession(storing(tmp_path), id="fork", **options())
    fork.forget_sync(telling(chat))
    with pytest.raises(NotStored):
        store.get("fork", [record.id])
    assert store.get("kim", [record.id])


def test_a_stored_summary_that_quotes_a_message_outside_it_is_deleted(tmp_path: Path) -> None:
    """A summary may quote a message that is still in the view; forgetting that message deletes the summary's records, too."""
    strategy = Lossless(presets.adaptive(2_000), SQLiteStore(tmp_path / "records.db"), session="k")
    session = CompactionSession(strategy, window=2_000, **options(counter="o200k_base"))
    lives = "Mrs Yildirim lives at 5 Rose Lane and has the customer number KD-778812, IBAN DE89370400440532013000."
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA" * 1_000}}
    chat = [user("Check all invoices, please.")]
    for number in range(14):
        if number == 8:
            chat += [answer("Understood."), user(lives)]
            session.view_sync(chat)
        text = {"type": "text", "text": f"Invoice RE-2026-{1000 + number}: " + "goods delivered and checked. " * 40}
        found = [text] if number % 5 else [text, picture]
        call = {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {"n": number}}
        chat += [
            {"role": "assistant", "content": [{"type": "text", "text": f"I read invoice {number}."}, call]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{number}", "content": found}]},
        ]
        session.view_sync(chat)
    stored = (tmp_path / "records.db").read_bytes
    assert b"KD-778812" in stored()
    assert session.forget_sync([user(lives)]) == 1
    assert b"KD-778812" not in stored()


def test_a_failure_to_save_a_session_of_the_store_is_raised_and_not_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """No later call would save it, so no event or warning may say so."""
    told: list[object] = []
    given, messages = options(store=SessionStore(tmp_path / "sessions.db"), on_event=told.append), chat_of("Ann")
    assert SessionPool(summarizing(), **given).view_sync(messages, id="talk") != messages
    told.clear()

    def fail(self: SessionStore, id: str, state: object) -> None:
        raise StateError("the disk is full")

    monkeypatch.setattr(SessionStore, "save", fail)
    with pytest.raises(StateError, match="the disk is full"):
        SessionPool(summarizing(), **given).forget_sync(telling(messages))
    assert [told, caplog.messages] == [[], []]

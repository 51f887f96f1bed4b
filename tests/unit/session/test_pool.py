"""A pool: each list finds its session by its messages, or forks, and never waits for another session."""

from __future__ import annotations

import copy
import itertools
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from compaction import last
from compaction.errors import ConfigurationError, InputError, StateError
from compaction.session import CompactionSession, Evicted, SaveFailed, SessionPool
from compaction.stores import SessionStore, SQLiteStore, handle_tool_call
from compaction.strategies import Lossless, Offload, Summarization, Truncation
from compaction.triggers import tokens_below, tokens_exceed
from tests.support.chats import Chat, call, result, user
from tests.support.chats import assistant as answer
from tests.support.scripted import Awaited, Scripted

SYSTEM = {"role": "system", "content": "You keep a store."}


def names() -> Any:
    """Numbered names for sessions."""
    numbers = itertools.count()
    return lambda: f"session-{next(numbers)}"


def cut() -> Truncation:
    return Truncation(trigger=tokens_exceed(300), target=tokens_below(160), keep=last(groups=2))


def summarizing(scripted: Scripted) -> Summarization:
    return Summarization(scripted, trigger=tokens_exceed(300), target=tokens_below(200), keep=last(messages=3))


def quoting() -> Scripted:
    """A summarizer that repeats its input."""
    return Scripted(lambda request: " ".join(message.text[:20] for group in request.groups for message in group.messages)[:300])


def pool_of(strategy: Any = None, **options: Any) -> SessionPool:
    given: dict[str, Any] = {"counter": "chars/4", "clock": lambda: 0.0, "new_id": names(), **options}
    return SessionPool(cut() if strategy is None else strategy, **given)


def rebuilt(chat: Chat) -> Chat:
    return copy.deepcopy(chat)


def grown(name: str, turns: int, start: Chat | None = None) -> Chat:
    chat = list(start or [SYSTEM])
    for number in range(turns):
        chat += [user(f"{name} asks {number}: " + "why? " * 10), answer(f"{name} hears {number}: " + "so. " * 12)]
    return chat


def calls_of(chat: Chat) -> Iterator[Chat]:
    """The lists of a loop: one up to each user message, with new objects."""
    for place, message in enumerate(chat):
        if message["role"] == "user":
            yield rebuilt(chat[: place + 1])


def session_of(pool: SessionPool, messages: Chat, **about: Any) -> CompactionSession:
    with pool.call_sync(messages, **about) as session:
        session.compact_due_sync()
        return session


def looped(pool: SessionPool, chat: Chat, **about: Any) -> CompactionSession:
    """The session of a loop, after its last call."""
    return [session_of(pool, messages, **about) for messages in calls_of(chat)][-1]


def test_identical_short_messages_are_told_apart_by_the_rest() -> None:
    """Conversations with the same ending are told apart by length, then by all messages."""
    pool = pool_of()
    chats = {name: [SYSTEM, user(f"I am {name}."), *[user("ok"), answer("ok")] * 3, user("ok")] for name in map(str, range(30))}
    sessions = {name: session_of(pool, rebuilt(chat)) for name, chat in chats.items()}
    assert len(pool) == 30
    for _ in range(3):
        for name, chat in chats.items():
            chat += [answer("ok"), user("ok")]
            assert session_of(pool, rebuilt(chat)) is sessions[name]
    assert len(pool) == 30
    assert pool.discard(sessions.pop("0").id)
    assert session_of(pool, [*rebuilt(chats["1"]), answer("bye"), user("bye")]) is sessions.pop("1")
    for name, session in sessions.items():
        assert session_of(pool, [*rebuilt(chats[name]), answer("ok")]) is session
        assert pool.discard(session.id)
    assert pool.discard(pool.trial([*chats["1"], answer("bye"), user("bye")]).id)
    assert not pool._directory._by_key


def test_a_message_that_the_host_alters_in_place_keeps_its_session(tmp_path: Path) -> None:
    """The same object with another text is detected if the pool is asked to; a new process finds the conversation, too."""
    store = SessionStore(tmp_path / "sessions.db")
    pool, chat = pool_of(verify=True, store=store), grown("Ann", 2)
    session = session_of(pool, chat)
    chat[-1]["content"] = "Another answer."
    chat = grown("Ann", 12, chat)
    assert session_of(pool, chat) is session
    with pool_of(store=store).call_sync([*rebuilt(chat), user("And?")]) as resumed:
        assert resumed.revision == session.revision != "auto:session-0:0"


def test_a_message_that_the_host_alters_keeps_its_session() -> None:
    """A message that lost or gained parts is the same; without an id, other text may be another conversation."""
    chat = grown("Ann", 12)
    text, more = {"type": "text", "text": "Shall I?"}, {"type": "text", "text": "[approval requested]"}
    chat[-3]["content"] = [text, more]
    late, early, words = rebuilt(chat), rebuilt(chat), rebuilt(chat)
    late[-3]["content"] = [text]
    early[1]["content"] = "Another secret."
    words[-3]["content"] = "Shall we?"
    for id in (None, "kim"):
        for altered, continues in ((late, True), (early, id is not None), (words, id is not None)):
            pool = pool_of(summarizing(quoting()))
            session = looped(pool, chat, id=id)
            session = session_of(pool, rebuilt(chat), id=id)
            forked = session_of(pool, [*rebuilt(altered), user("on")], id=id)
            assert (forked is session) is continues
            if forked is not session:
                assert altered is not early or "Ann asks 0" not in str(forked.index.messages())


def test_a_part_that_the_host_removes_keeps_the_session_of_one_call() -> None:
    """The session has had one call, so only the newest messages lead to it."""
    pool, chat = pool_of(), grown("Ann", 3)
    text = {"type": "text", "text": "Shall I?"}
    session = session_of(pool, [*chat[:-4], answer([text, {"type": "text", "text": "[approval]"}]), *chat[-4:]])
    assert session_of(pool, [*rebuilt(chat[:-4]), answer([text]), *rebuilt(chat[-4:]), user("on")]) is session


@pytest.mark.parametrize("id", [None, "kim"])
def test_a_short_view_may_be_the_beginning_of_another_conversation(id: str | None) -> None:
    """Only a host that names the conversation continues a view of its first and last message."""
    pool = pool_of(Truncation(trigger=tokens_exceed(300), target=tokens_below(60), keep=last(groups=1)))
    lists = calls_of(grown("Ann", 12))
    session = next(found for messages in lists if (found := session_of(pool, messages, id=id)).index.edits)
    view = session.index.messages()
    assert len(view) == 2
    assert (session_of(pool, [*rebuilt(view), answer("So."), user("on")], id=id) is session) is (id is not None)


def reminded(chat: Chat, how: str) -> Chat:
    """A call of an agent that puts a reminder at the end of each call, and keeps none of them."""
    text = "Remember the rules: " + "be brief. " * 5
    if how == "system":
        return [*chat, {"role": "system", "content": text}]
    newest = f"{chat[-1]['content']}\n\n{text}" if how == "text" else [{"type": "text", "text": chat[-1]["content"]}]
    parts = newest if isinstance(newest, str) else [*newest, {"type": "text", "text": text}]
    return [*chat[:-1], {**chat[-1], "content": parts}]


@pytest.mark.parametrize("id", [None, "kim"])
@pytest.mark.parametrize("how", ["system", "text", "part"])
def test_a_reminder_that_moves_to_the_end_keeps_the_session(how: str, id: str | None) -> None:
    """The decisions about earlier messages stay, though each call changes the end of the previous one."""
    pool, views, sessions = pool_of(), list[Chat](), set[str]()
    chat: Chat = [SYSTEM]
    for number in range(20):
        chat += [user(f"What is in {number}? " + "why? " * 10), answer("Ok."), user("Go on.")]
        with pool.call_sync(reminded(rebuilt(chat), how), id) as session:
            views.append(session.compact_due_sync().messages)
        sessions.add(session.id)
        chat += [answer(f"It is {number}: " + "so. " * 12)]
    assert len(sessions) == 1
    assert all(view[-1] == reminded([user("Go on.")], how)[-1] for view in views)
    breaks = sum(one[:-1] != other[: len(one) - 1] for one, other in itertools.pairwise(views))
    assert 2 < breaks < 8
    assert session.status().compactions == breaks


def test_another_newest_message_is_another_conversation() -> None:
    """Questions about the same beginning are forks: neither asks for what the other lost."""
    pool = pool_of()
    start = grown("Main", 4)
    asked = [[*start, user(text)] for text in ("What is red?", "What is blue?")]
    sessions = [session_of(pool, rebuilt(chat)).id for chat in asked]
    again = [session_of(pool, [*rebuilt(chat), answer("So."), user("And?")]).id for chat in asked]
    assert again == sessions
    unknown = session_of(pool, [*start, user("What is green?"), answer("So."), user("And?")])
    assert unknown.id not in sessions


def test_sub_agents_fork_from_a_shared_beginning() -> None:
    """Each branch gets a session; the summary of the shared beginning is not requested again."""
    scripted = quoting()
    pool = pool_of(summarizing(scripted))
    start = grown("Main", 9)
    assert looped(pool, start).index.edits
    paid = len(scripted.requests)
    tasks = [[*rebuilt(start), user(f"sub-agent {number}")] for number in range(5)]
    views = [pool.view_sync(task) for task in tasks]
    assert len(scripted.requests) == paid
    assert len(pool) == 5
    for number, view in enumerate(views):
        assert view[-1]["content"] == f"sub-agent {number}"
        assert len(view) < len(tasks[number])
        assert number == 0 or view[0] is tasks[number][0]  # the first one continues the session
        others = {f"sub-agent {other}" for other in range(5)} - {f"sub-agent {number}"}
        assert not any(other in str(view) for other in others)
    for task in tasks:
        task += [answer("done"), user("more")]
        pool.view_sync(rebuilt(task))
    assert len(pool) == 5
    assert max(map(len, pool._directory._by_key.values())) == 4  # of the sessions that left a place, some lead to it


def test_a_fork_of_a_view_takes_over_its_summary() -> None:
    """Two sub-agents continue a view that the host passes back: the second has the summary without asking for it."""
    scripted = quoting()
    pool = pool_of(summarizing(scripted))
    view = looped(pool, grown("Main", 9)).index.messages()
    paid = len(scripted.requests)
    one, two = ([*rebuilt(view), user(text)] for text in ("sub-agent 1", "sub-agent 2"))
    assert pool.view_sync(one) == one
    assert pool.view_sync(two) == two
    assert (len(pool), len(scripted.requests)) == (2, paid)
    with pool.call_sync(two) as fork:
        assert fork.index.edits
    messages = [*two, *grown("Two", 9)[1:]]
    for _ in range(2):  # the fork takes them over once: its own summary stays
        pool.view_sync(rebuilt(messages))
        assert len(scripted.requests) == paid + 1


def test_a_fork_of_an_earlier_view_takes_over_its_summary() -> None:
    """A host that goes back to a view before the last one does not lose what was summarized for it."""
    pool = pool_of(summarizing(quoting()))
    views = [pool.view_sync(messages) for messages in calls_of(grown("Main", 30))]
    summaries = {str(view[1]): view for view in views if "[compaction" in str(view[1])}
    assert len(summaries) > 2
    for view in [*summaries.values()][-3:-1]:
        fork = pool.trial([*rebuilt(view), user("another way")])
        assert fork.index.messages()[1] == view[1]
        assert fork.index.edits


def test_a_conversation_forks_where_any_call_ended() -> None:
    """Each earlier end leads to the session, and the fork takes over the edits that were decided by then."""
    pool, chat = pool_of(summarizing(quoting())), grown("Main", 12)
    ends = {len(messages): session_of(pool, messages).index.edit_count for messages in calls_of(chat)}
    forked = {end: pool.trial([*chat[:end], user("Another way.")]).index.edit_count for end in ends}
    assert forked == ends
    assert max(forked.values()) == 2
    assert pool.forget_sync([user("Nothing of the kind.")]) == 0
    assert pool.trial([*chat[:-4], user("Another way.")]).index.edit_count == ends[len(chat) - 5]


def test_branches_that_alternate_under_one_id_keep_their_decisions() -> None:
    scripted = quoting()
    pool = pool_of(summarizing(scripted))
    start = grown("Main", 2)
    one, other = grown("One", 12, start), grown("Other", 12, start)
    for messages in itertools.chain(calls_of(one), calls_of(other)):
        pool.view_sync(messages, "kim")
    paid = len(scripted.requests)
    sessions = {session_of(pool, rebuilt(chat[:-1]), id="kim").id for chat in (one, other, one, other)}
    assert len(sessions) == 2
    assert len(scripted.requests) == paid
    assert "kim" in sessions


def test_a_host_with_an_id_may_remove_earlier_messages() -> None:
    chat = grown("Ann", 3)
    left = [chat[0], *chat[3:], user("on")]
    for id, count in (("kim", 1), (None, 2)):
        pool = pool_of()
        pool.view_sync(rebuilt(chat), id)
        pool.view_sync(rebuilt(left), id)
        assert len(pool) == count
        pool = pool_of()
        session = session_of(pool, rebuilt(chat), id=id)
        assert (session_of(pool, [*rebuilt(chat[:-2]), chat[-1], user("on")], id=id) is session) is (id is not None)
        assert ("kim" in pool) is (id is not None)
        session = looped(pool, grown("Bob", 3), id=id)
        inserted = [SYSTEM, user("Hello."), *grown("Bob", 3)[1:], user("on")]
        assert session_of(pool, inserted, id="lee") is not session
        assert (session_of(pool, inserted, id=id) is session) is (id is not None)


def test_a_list_in_another_format_is_another_conversation() -> None:
    pool = pool_of()
    pool.view_sync(grown("Ann", 1), "kim")
    other = [{"role": "user", "parts": [{"text": "hello"}]}, {"role": "model", "parts": [{"text": "hi"}]}]
    assert pool.view_sync(other, "kim") == other
    assert len(pool) == 2


def test_a_list_that_cannot_be_read_leaves_no_session() -> None:
    pool, chat = pool_of(), grown("Ann", 1)
    for known in (0, 1):
        with pytest.raises(InputError):
            pool.view_sync([*rebuilt(chat), {"content": "no role"}], "kim")
        assert len(pool) == known
        session = session_of(pool, rebuilt(chat), id="kim")
    assert session_of(pool, rebuilt(chat), id="kim") is session


async def test_a_call_that_waited_while_its_session_took_another_course_forks() -> None:
    """Two calls wait for the same session and continue it differently: the second gets a session of its own."""
    pool, start = pool_of(summarizing(Awaited("Round."))), grown("Main", 12)
    views: list[Chat] = []

    async def ask(text: str) -> None:
        views.append(await pool.view([*rebuilt(start), user(text)]))

    async with anyio.create_task_group() as group, pool.call(start):
        for text in ("What is red?", "What is blue?"):
            group.start_soon(ask, text)
        await anyio.wait_all_tasks_blocked()
    assert len(pool) == 2
    assert {view[-1]["content"] for view in views} == {"What is red?", "What is blue?"}
    assert all(len(view) < len(start) for view in views)


@pytest.mark.parametrize(
    ("id", "gone", "waits"), [("kim", slice(1, 3), True), ("kim", slice(-2, -1), False), (None, slice(1, 3), False)]
)
async def test_a_call_waits_for_a_session_that_it_probably_continues(id: str | None, gone: slice, waits: bool) -> None:
    """Messages are gone from the list: it is the same conversation if the id is the same and its newest messages are there."""
    pool, chat = pool_of(), grown("Ann", 3)
    left, views = rebuilt(chat), list[Chat]()
    del left[gone]

    async def ask() -> None:
        views.append(await pool.view([*left, user("on")], id))

    async with anyio.create_task_group() as group, pool.call(chat, id):
        group.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        assert bool(views) is not waits
    assert len(pool) == 1 + (not waits)
    assert len(views) == 1


async def test_a_call_waits_for_a_session_whose_view_it_continues() -> None:
    """A list that certainly belongs to the session waits without an id; one that leaves it does not, even with the id."""
    pool, chat, views = pool_of(), grown("Ann", 12), list[Chat]()

    async def ask(messages: Chat, id: str | None = None) -> None:
        views.append(await pool.view([*rebuilt(messages), user("on")], id))

    session = session_of(pool, chat)
    async with anyio.create_task_group() as group, session.lock.task:
        group.start_soon(ask, session.index.messages())
        await anyio.wait_all_tasks_blocked()
        assert views == []
    assert (len(views), len(pool)) == (1, 1)
    pool = pool_of()
    older, _ = (session_of(pool, [*chat, user(text)], id="kim") for text in ("What is red?", "What is blue?"))
    async with anyio.create_task_group() as group, older.lock.task:
        group.start_soon(ask, chat, "kim")
        await anyio.wait_all_tasks_blocked()
        assert len(views) == 2
    assert len(pool) == 3


@pytest.mark.parametrize("id", [None, "kim"])
async def test_conversations_that_begin_at_once_are_apart(id: str | None) -> None:
    """The second one finds the first, which has had no call, and does not wait for it."""
    pool, views = pool_of(), list[Chat]()

    async def ask(text: str) -> None:
        views.append(await pool.view([*grown("Main", 1), user(text)], id))

    async with anyio.create_task_group() as group:
        for text in ("What is red?", "What is blue?"):
            group.start_soon(ask, text)
    assert len(pool) == 2
    assert {view[-1]["content"] for view in views} == {"What is red?", "What is blue?"}


async def test_a_call_that_waited_while_its_session_was_deleted_begins_again() -> None:
    """The deleted session is not put back."""
    pool, chat = pool_of(), grown("Ann", 1)
    async with anyio.create_task_group() as group, pool.call(chat, "kim") as deleted:
        for wait in (*[partial(pool.delete, "kim")] * 2, partial(pool.view, rebuilt(chat), "kim")):
            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
    assert ("kim" in pool, len(pool)) == (True, 1)
    assert session_of(pool, chat, id="kim") is not deleted


async def test_a_pool_without_background_tasks_may_be_entered() -> None:
    async with pool_of() as pool, pool as same:
        assert same is pool


def test_a_conversation_that_begins_twice_at_once_has_one_session() -> None:
    """Another call with the same list may begin while the first one makes its session."""
    chat, names = grown("Ann", 1), ["inner", "outer"]

    def new_id() -> str:
        name = names.pop()
        if names:
            pool.view_sync(rebuilt(chat))
        return name

    pool = pool_of(new_id=new_id)
    assert session_of(pool, chat).id == "auto:inner"
    assert (len(pool), names) == (1, [])


def test_a_name_that_is_taken_is_not_given_again() -> None:
    given = iter(["a", "a", "b"])
    pool = pool_of(new_id=lambda: next(given))
    assert [session_of(pool, grown(name, 1)).id for name in "xy"] == ["auto:a", "auto:b"]


@pytest.mark.parametrize("id", [None, "kim"])
def test_processes_that_share_a_conversation(id: str | None) -> None:
    """The host's state, with newer decisions of another process, wins over the state in memory."""
    scripted = quoting()
    pools = [pool_of(summarizing(scripted)) for _ in range(3)]
    chat, saved, views = list[dict[str, Any]](), None, list[Chat]()
    for number, more in enumerate(calls_of(grown("Main", 30))):
        chat = list(more)
        with pools[number % 3].call_sync(rebuilt(chat), id, saved=saved) as session:
            views.append(session.compact_due_sync().messages)
            saved = session.to_dict()
    alone = looped(pool_of(summarizing(quoting())), chat, id=id)
    assert views[-1] == alone.index.messages()
    breaks = sum(one != other[: len(one)] for one, other in itertools.pairwise(views))
    assert len(scripted.requests) == breaks > 2


def test_nothing_but_edits_is_taken_over() -> None:
    """A fork takes over neither the usage anchor nor the parent's reports."""
    pool = pool_of()
    start = grown("Main", 8)
    session = looped(pool, start)
    session.record_usage({"prompt_tokens": 40_000, "completion_tokens": 1})
    assert session.status().tokens >= 40_000
    session_of(pool, [*rebuilt(start), user("on")])
    fork = session_of(pool, [*rebuilt(start), user("off")])
    assert fork is not session
    assert fork.index.edits
    assert fork.status().tokens < 1_000


def reading(name: str, turns: int, start: Chat | None = None) -> Chat:
    chat = list(start or [SYSTEM])
    for number in range(turns):
        id = f"call_{name}_{number}"
        found = result(id, f"secret of {name} {number}. " * 40)
        chat += [user(f"{name} {number}"), call(id, name="read"), found, answer("Read.")]
    return chat


def stubs_in(view: Chat) -> list[str]:
    return [part.split('"')[0] for message in view for part in str(message.get("content")).split('compaction_expand(id="')[1:]]


def test_a_fork_opens_the_stubs_it_takes_over_and_no_others(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Each session stores under its own name; a fork gets copies of the records that its edits name."""
    store = SQLiteStore(tmp_path / "records.db")
    offload = Offload(store, trigger=tokens_exceed(400), min_chars=300, keep=last(groups=2))
    pool = pool_of(offload)
    start = reading("Main", 4)
    pool.view_sync(rebuilt(start))
    one = [*start, *reading("One", 4)[1:], user("on")]
    first = session_of(pool, rebuilt(one))
    other = [*start, user("off")]
    second = session_of(pool, rebuilt(other))
    assert first is not second
    shared = stubs_in(second.index.messages())
    assert shared

    def opens(id: str, session: CompactionSession) -> bool:
        return "error" not in json.loads(handle_tool_call("compaction_expand", {"id": id}, store=store, session=session.id))

    assert all(opens(id, second) for id in shared)
    own = set(stubs_in(first.index.messages())) - set(shared)
    assert own
    assert not any(opens(id, second) for id in own)
    assert "secret of One" not in handle_tool_call("compaction_grep", {"query": "secret"}, store=store, session=second.id)
    assert caplog.records == []


def test_a_store_that_cannot_be_read_gives_a_fork_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """If the stored content cannot be copied, the fork takes over no stubs, and the log says so."""
    store = SQLiteStore(tmp_path / "records.db")
    strategy = Offload(store, trigger=tokens_exceed(400), min_chars=300, keep=last(groups=2))
    pool = pool_of(strategy >> Lossless(cut(), store))
    start = reading("Main", 4)
    pool.view_sync(rebuilt(start))
    pool.view_sync([*rebuilt(start), user("on")])
    (tmp_path / "records.db").write_bytes(b"broken" * 1_000)
    view = pool.view_sync([*rebuilt(start), user("off")])
    assert stubs_in(view) == []
    assert "a fork could not take over the edits of its parent" in caplog.text


def test_a_strategy_that_names_its_session_is_refused(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "records.db")
    with pytest.raises(ConfigurationError, match="leave session= out"):
        pool_of(cut() >> Lossless(Offload(store, session="kim"), store))


def test_the_least_recently_used_session_goes_first() -> None:
    """The pool evicts by count and reports it; a list that comes back is a new session."""
    events: list[Any] = []
    pool = pool_of(limit=2, on_event=events.append)
    chats = {name: grown(name, 2) for name in "abc"}
    for name in "abac":
        pool.view_sync(rebuilt(chats[name]), name)
    assert len(pool) == 2
    assert [event for event in events if isinstance(event, Evicted)] == [Evicted(session="b", why="count", is_saved=False)]
    assert pool.view_sync(rebuilt(chats["b"]), "b") == chats["b"]


@pytest.mark.parametrize("turns", [2, 9], ids=["never saved", "compacted"])
def test_a_session_that_was_loaded_is_saved_when_it_is_evicted(turns: int, tmp_path: Path) -> None:
    """Also if this pool had nothing to save; without edits there is nothing to load again."""
    chat, store, events = grown("a", turns), SessionStore(tmp_path / "sessions.db"), list[Any]()
    pool_of(store=store).view_sync(chat, "a")
    pool = pool_of(store=store, limit=1, on_event=events.append)
    pool.view_sync(chat, "a")
    pool.view_sync(grown("b", 1), "b")
    assert [event.is_saved for event in events if isinstance(event, Evicted)] == [turns == 9]


@pytest.mark.parametrize(("more", "evicted"), [(0, []), (-1, ["a"])])
def test_the_bytes_of_all_messages_are_bounded(more: int, evicted: list[str]) -> None:
    chats = {name: grown(name, 2) for name in "abc"}
    each = session_of(pool_of(), chats["a"]).index.total.bytes
    events: list[Any] = []
    pool = pool_of(max_bytes=3 * each + more, on_event=events.append)
    for name, chat in chats.items():
        pool.view_sync(chat[:3], name)
        pool.view_sync(chat, name)
    assert pool.bytes == (3 - len(evicted)) * each
    assert [event.session for event in events if isinstance(event, Evicted) and event.why == "bytes"] == evicted


def test_a_session_with_a_running_call_is_not_evicted() -> None:
    pool = pool_of(limit=1)
    with pool.call_sync(grown("a", 1), "a") as session:
        with pool.call_sync(grown("b", 1), "b"):
            assert len(pool) == 2
        pool.view_sync(grown("c", 1), "c")
        assert session_of(pool, grown("d", 1), id="d") is not session
    assert session_of(pool, [*grown("a", 1), user("on")], id="a") is session


@pytest.mark.parametrize("bounds", [{"limit": 0}, {"max_bytes": 0}, {"window": -1}])
def test_wrong_options_are_refused_at_construction(bounds: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        pool_of(**bounds)


@pytest.mark.parametrize("id", [None, "kim"])
def test_a_restart_gives_the_same_bytes(tmp_path: Path, id: str | None) -> None:
    """Saved sessions are found by id or messages; no summary is requested twice."""
    scripted, calm = quoting(), quoting()
    alone = pool_of(summarizing(calm))
    names_of = names()
    for messages in calls_of(grown("Ann", 30)):
        store = SessionStore(tmp_path / "sessions.db")
        pool = pool_of(summarizing(scripted), store=store, new_id=names_of)
        assert json.dumps(pool.view_sync(messages, id)) == json.dumps(alone.view_sync(rebuilt(messages), id))
    assert len(scripted.requests) == len(calm.requests) > 2


@pytest.mark.parametrize("id", [None, "kim"])
def test_a_saved_session_that_is_in_memory_is_not_read(tmp_path: Path, id: str | None) -> None:
    """A list that leaves it where it was saved is a fork, and nothing is reported."""
    events: list[Any] = []
    pool = pool_of(store=SessionStore(tmp_path / "sessions.db"), on_event=events.append)
    lists = list(calls_of(grown("Ann", 14)))
    edits = [session_of(pool, messages, id=id).index.edit_count for messages in lists]
    pool.view_sync([*lists[edits.index(edits[-1])], user("Another way.")], id)
    assert len(pool) == 2
    assert not any(isinstance(event, SaveFailed) for event in events)


@pytest.mark.parametrize("id", [None, "kim"])
def test_a_message_that_the_host_inserts_while_nobody_looks(tmp_path: Path, id: str | None) -> None:
    """In a new process, the host's id leads to the saved session, although no list that was saved is in the new one."""
    store, chat = SessionStore(tmp_path / "sessions.db"), grown("Ann", 12)
    looped(pool_of(store=store, new_id=lambda: "old"), chat, id=id)
    now = [chat[0], {"role": "system", "content": "Be brief."}, *chat[1:]]
    assert session_of(pool_of(store=store), now, id=id).id == ("auto:session-0" if id is None else id)


def test_formats_share_no_saved_session(tmp_path: Path) -> None:
    """A list that is valid in several formats is found only by a pool with the format of the one that saved it."""
    store, chat = SessionStore(tmp_path / "sessions.db"), grown("Ann", 12)
    formats = [{}, {"format": "openai-chat"}, {"format": "anthropic"}]
    names_of = names()
    for number, saving in enumerate(formats):
        made = looped(pool_of(store=store, scope=str(number), new_id=names_of, **saving), chat[1:])
        for reading in formats:
            with pool_of(store=store, scope=str(number), new_id=names_of, **reading).call_sync(rebuilt(chat[1:-1])) as found:
                assert (found.revision == made.revision) is (reading == saving)


def test_a_rewind_after_a_restart_takes_over_what_it_may(tmp_path: Path) -> None:
    """A fork of a saved session has the edits decided before the missing messages, and no other."""
    scripted = quoting()
    store = SessionStore(tmp_path / "sessions.db")
    pool = pool_of(summarizing(scripted), store=store)
    start = grown("Main", 12)
    looped(pool, grown("Dead", 12, start), id="kim")
    paid = len(scripted.requests)
    again = pool_of(summarizing(scripted), store=store, new_id=lambda: "again")
    with again.call_sync([*rebuilt(start), user("Live")], "kim") as fork:
        assert fork.id == "kim:again"
        assert fork.index.edits
        assert "Dead" not in str(fork.index.messages())
    assert len(scripted.requests) == paid


def test_a_fork_of_saved_sessions_takes_over_the_most_edits(tmp_path: Path) -> None:
    """Of two saved branches under one id, the older one shares more with the list."""
    pool, start = pool_of(store=SessionStore(tmp_path / "sessions.db")), grown("Main", 24)
    looped(pool, start, id="kim")
    looped(pool, grown("Other", 12, start[:25]), id="kim")
    given = [*start[:-2], user("Live")]
    again = pool_of(store=SessionStore(tmp_path / "sessions.db")).trial(given, "kim")
    assert again.index.edit_count == pool.trial(given, "kim").index.edit_count > 1


class Broken(SessionStore):
    """A store that can be locked. Holds state: whether it is."""

    is_locked = False

    def find(self, scope: str, keys: Any) -> list[str]:
        self._check()
        return super().find(scope, keys)

    def load(self, id: str) -> dict[str, Any] | None:
        self._check()
        return super().load(id)

    def save(self, id: str, state: Mapping[str, Any]) -> None:
        self._check()
        super().save(id, state)

    def _check(self) -> None:
        if type(self).is_locked:
            raise StateError("the database is locked")


def test_a_locked_store_stops_no_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[Any] = []
    store = Broken(tmp_path / "sessions.db")
    chat = grown("Ann", 12)
    looped(pool_of(store=store), chat, id="kim")
    saved = SessionStore(tmp_path / "sessions.db").load("kim")
    monkeypatch.setattr(Broken, "is_locked", True)
    pool, alone = pool_of(store=store, on_event=events.append), CompactionSession(cut(), counter="chars/4", clock=None)
    for messages in calls_of(chat):
        assert pool.view_sync(messages, "kim") == alone.view_sync(messages)
    pool.view_sync(grown("Bob", 1))
    failed = [event.session for event in events if isinstance(event, SaveFailed)]
    assert failed[0] == "kim"
    assert failed[-1] == "auto"
    assert len(failed) >= 3
    assert session_of(pool, rebuilt(chat[:-1]), id="kim").status().failures
    assert SessionStore(tmp_path / "sessions.db").load("kim") == saved
    monkeypatch.setattr(Broken, "is_locked", False)
    session = session_of(pool, [*rebuilt(chat), user("on")], id="kim")
    assert session.status().failures == ()


def test_a_saved_session_of_another_version_is_passed_over(tmp_path: Path) -> None:
    """A damaged state is reported and not overwritten; the conversation starts again once."""
    events: list[Any] = []
    path = tmp_path / "sessions.db"
    chat = grown("Ann", 12)
    scripted = quoting()

    def process() -> SessionPool:
        return pool_of(summarizing(scripted), store=SessionStore(path), on_event=events.append, new_id=lambda: "again")

    looped(pool_of(summarizing(quoting()), store=SessionStore(path)), chat[:20], id="kim")
    with sqlite3.connect(path) as database:
        database.execute("UPDATE sessions SET state = ?", (json.dumps({"version": 99}),))
    view = looped(process(), chat[:22], id="kim").index.messages()
    paid = len(scripted.requests)
    failures = [event.failure for event in events if isinstance(event, SaveFailed)]
    assert {type(each.error) for each in failures} == {StateError}
    assert paid > 0
    assert process().view_sync(rebuilt(chat[:22]), "kim") == view
    assert len(scripted.requests) == paid
    assert SessionStore(path).load("kim") == {"version": 99, "anchor": None}


def test_a_conversation_is_found_at_each_of_many_calls() -> None:
    """The ends by which a list is found are thinned out after some hundred calls, and one session continues at each."""
    pool = pool_of()
    chat = [SYSTEM]
    for number in range(280):
        chat = [*chat, user(f"Ask {number}."), answer(f"Hear {number}.")]
        view = pool.view_sync(rebuilt(chat))
        assert view[-1] == chat[-1]
    assert len(pool) == 1
    assert len(pool._directory._by_key) <= 512


@pytest.mark.parametrize("id", [None, 5, "auto:else"])
@pytest.mark.parametrize("forks", [False, True])
def test_a_state_that_the_host_keeps_may_have_another_name(id: object, forks: bool) -> None:
    """Its edits count whatever its name is, also for a list that leaves the conversation after them."""
    chat = grown("Ann", 12)
    saved = {**looped(pool_of(), chat).to_dict(), "id": id}
    with pool_of().call_sync([*chat[: -2 if forks else None], user("on")], saved=saved) as session:
        assert session.index.edits
        assert (session.id == id) is (id == "auto:else" and not forks)


@pytest.mark.parametrize("restarts", [False, True])
def test_a_state_that_the_host_keeps_is_read_once(restarts: bool) -> None:
    """A host that passes its saved state at each call, or one a call old, continues with the session in memory.

    So does a new process, which reads the state on its first turn.
    """
    pool, chat = pool_of(), grown("Ann", 12)
    session = session_of(pool, chat)
    states = [session.to_dict()]
    if restarts:
        pool = pool_of()
        chat = [*chat, user("And now?"), answer("Now.")]
        session = session_of(pool, chat, saved=states[-1])
        assert session.index.edits
    for number in range(12):
        chat = grown(f"Ann {number}", 1, chat)
        for saved in states[-2:]:
            assert session_of(pool, chat, saved=saved) is session
        states.append(session.to_dict())
    assert len({state["revision"] for state in states}) > 2


def test_a_new_conversation_asks_the_store_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for its list and once for its id: a locked store delays each question."""
    asked: list[int] = []
    find = SessionStore.find

    def counted(self: SessionStore, scope: str, keys: Sequence[str]) -> list[str]:
        asked.append(len(keys))
        return find(self, scope, keys)

    monkeypatch.setattr(SessionStore, "find", counted)
    session_of(pool_of(store=SessionStore(tmp_path / "sessions.db")), grown("Ann", 1), id="talk")
    assert asked == [3, 1]


def test_scopes_and_formats_with_one_host_id_share_no_name(tmp_path: Path) -> None:
    """Neither in the session store nor in the stores of the strategy, whether the scope is the pool's or the call's."""
    store, content = SessionStore(tmp_path / "sessions.db"), SQLiteStore(tmp_path / "content.db")
    where: list[tuple[dict[str, Any], str]] = [
        ({"scope": "tenant"}, ""),
        ({}, "tenant"),
        ({"scope": "tenant", "format": "anthropic"}, ""),
        ({"format": "openai-chat"}, "tenant"),
        ({"scope": "tenant"}, "tenant"),
        ({}, ""),
    ]
    pools = [(pool_of(Lossless(cut(), content), store=store, **options), scope) for options, scope in where]
    for number, (pool, scope) in enumerate(pools):
        looped(pool, grown(f"Guest {number}", 12)[1:], id="7", scope=scope)
    saved = [name for pool, scope in pools for name in store.in_scope(pool._space(scope))]
    assert len(set(saved)) == len(saved) == len(where)
    for number, name in enumerate(saved):
        texts = str(store.load(name)) + str(content.range(name, 1, 100))
        assert [guest for guest in range(len(where)) if f"Guest {guest}" in texts] == [number]
    assert [pool.delete_sync("7", scope=scope) for pool, scope in pools[:1]] == [1]
    assert [name for name in saved if store.load(name) is None] == saved[:1]
    assert [name for name in saved if not content.range(name, 1, 100)] == saved[:1]


@pytest.mark.parametrize("scope", ["", "tenant"])
def test_a_session_with_the_name_of_an_earlier_release_is_found(tmp_path: Path, scope: str) -> None:
    """It keeps its name, and no session of another scope takes it."""
    store, chat = SessionStore(tmp_path / "sessions.db"), grown("Ann", 12)
    pool = pool_of(store=store, scope=scope)
    made = looped(pool, chat[:-2], id="7")
    name = f"{scope}/7".removeprefix("/")
    with sqlite3.connect(tmp_path / "sessions.db") as database:
        for table in ("sessions", "session_keys"):
            database.execute(f"UPDATE {table} SET id = ? WHERE id = ?", (name, made.id))
    again = session_of(pool_of(store=store, scope=scope), chat, id="7")
    assert (again.id, again.index.edits[:1]) == (name, made.index.edits[:1])
    other = looped(pool_of(store=store), grown("Bea", 12), id="7", scope="tenant")
    assert other.id == ("tenant/7:session-0" if scope else "tenant/7")
    assert "Bea" not in str(store.load(name))


def test_two_pools_that_give_one_name_at_once(tmp_path: Path) -> None:
    """The session that was saved first stays; the other one is not saved, which is reported."""
    store, events = SessionStore(tmp_path / "sessions.db"), list[Any]()
    pools = [pool_of(store=store, format=each, on_event=events.append) for each in ("openai-chat", "anthropic")]
    chats = [grown(name, 12)[1:] for name in ("Ann", "Bea")]
    for pool, chat in zip(pools, chats, strict=True):
        session_of(pool, chat[:1], id="7")
    for pool, chat in zip(pools, chats, strict=True):
        session_of(pool, chat, id="7")
    assert [len(store.in_scope(pool._space(""))) for pool in pools] == [1, 0]
    failed = next(event.failure.error for event in events if isinstance(event, SaveFailed))
    assert "belongs to a conversation of another scope or format" in str(failed)


def test_names_that_are_all_taken_are_an_error() -> None:
    pool = pool_of(new_id=lambda: "x")
    assert session_of(pool, grown("Ann", 1)).id == "auto:x"
    with pytest.raises(ConfigurationError, match=r"new_id=<.*> returned a name that is taken, 100 times in a row"):
        pool.view_sync(grown("Bea", 1))


def test_a_host_id_none_as_text_is_an_id(tmp_path: Path) -> None:
    """A new process without ids does not continue that conversation; one with the id does."""
    store, chat = SessionStore(tmp_path / "sessions.db"), grown("Ann", 12)
    made = looped(pool_of(store=store), chat, id="None")
    more = [*chat, user("More.")]
    assert session_of(pool_of(store=store), more).id == "auto:session-0"
    with pool_of(store=store).call_sync(more, id="None") as again:
        assert (again.id, again.revision) == ("None", made.revision)


@pytest.mark.parametrize("saved", ["x", 5, [1]])
def test_a_saved_state_that_is_not_a_mapping(saved: Any) -> None:
    pool = pool_of()
    with pytest.raises(StateError, match="must be data that to_dict returned"):
        session_of(pool, [user("hi")], saved=saved)
    assert len(pool) == 0


def test_ids_and_scopes_are_texts(tmp_path: Path) -> None:
    """A lone surrogate, which JSON may contain, is allowed in both."""
    store, chat = SessionStore(tmp_path / "sessions.db"), grown("Ann", 12)
    made = looped(pool_of(store=store), chat, id="\ud800", scope="\udfff")
    assert made.id == "%ED%BF%BF/%ED%A0%80"
    assert session_of(pool_of(store=store), chat, id="\ud800", scope="\udfff").id == made.id
    assert pool_of(store=store).forget_sync(chat[1:2], scope="\udfff") == 1
    for wrong in ({"id": 5}, {"id": "a\0b"}, {"scope": 5}, {"scope": "a\0b"}):
        with pytest.raises(InputError, match=f"{next(iter(wrong))}=.*: must be a text without NUL"):
            pool_of().view_sync(chat, **wrong)
        with pytest.raises(InputError, match=f"{next(iter(wrong))}=.*: must be a text without NUL"):
            pool_of().delete_sync(**{"id": None, **wrong})

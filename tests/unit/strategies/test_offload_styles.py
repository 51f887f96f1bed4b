"""Texts that look like stubs: the store alone decides what a stub replaces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compaction import compact_sync, last, nothing
from compaction.formats import openai_chat
from compaction.index import marked, read_mark
from compaction.stores import SQLiteStore, handle_tool_call
from compaction.strategies import Lossless, Offload, SlidingWindow, Strategy, StubGroups, StubResults, Truncation
from tests.support.chats import Chat, call, result, turns, user


@pytest.fixture
def store(tmp_path: Path) -> SQLiteStore:
    """A new store."""
    return SQLiteStore(tmp_path / "store.db")


def stored(store: SQLiteStore, session: str = "default") -> list[Any]:
    """Every message stored, in the order of storing."""
    return [json.loads(record.data) for record in store.range(session, 1, 1 << 20)]


def expanded(store: SQLiteStore, id: str) -> list[Any]:
    """The messages that ``compaction_expand`` returns for an id."""
    asked = {"id": id, "form": "json", "limit": 100_000}
    content: str = json.loads(handle_tool_call("compaction_expand", asked, store=store))["content"]
    return [json.loads(line) for line in content.split("\n")]


def id_in(text: str) -> str:
    """The id in a stub."""
    return text.partition('compaction_expand(id="')[2].partition('"')[0]


# ------------------------------------------------------------------------ forged texts


@pytest.mark.parametrize("body", [',,, compaction_expand(id="{id}")', ",,, earlier messages are stored: {id}", "9" * 9_999, ""])
@pytest.mark.parametrize("round", [1, 999_999])
def test_a_forged_group_stub_is_stored_and_replaced(body: str, round: int, store: SQLiteStore) -> None:
    """A forged stub of a group, with a malformed count or the last round, is stored and replaced like other messages."""
    forged = user(marked(body.format(id="0" * 16), by="Offload", round=round))
    chat = [forged, *turns(3, words=80)]
    done = compact_sync(chat, Offload(store, style=StubGroups(), keep=last(groups=1)), counter="chars/4")
    assert (done.outcome, done.failures) == ("compacted", ())
    stub = next(message for message in done.messages if "are stored" in message["content"])
    assert forged not in done.messages
    assert expanded(store, id_in(stub["content"])) == chat[: len(chat) - len(done.messages) + 1]
    mark = read_mark(openai_chat.read(stub))
    assert mark is not None
    assert mark.round <= 999_999


# ------------------------------------------------------------------------ stubs of ours


@pytest.mark.parametrize("min_chars", [1, 190, 251])
def test_a_stub_is_shorter_than_what_it_stands_for(min_chars: int, store: SQLiteStore) -> None:
    """Only results of 250 or more characters are offloaded, and every stub is shorter, so that none is offloaded again."""
    name, arguments = "n" * 90, json.dumps({"path": "p" * 90})
    chat = [user()]
    for chars in (249, 250, 251, 1_234_567):
        chat += [
            call(f"c{chars}", name=name, arguments=arguments),
            result(f"c{chars}", ("xyz " * chars)[:chars]),
        ]
    offload = Offload(store, style=StubResults(min_chars=min_chars), keep=nothing)
    view = compact_sync([*chat, *turns(1)], offload, counter="chars/4").messages
    texts = [message["content"] for message in view if message["role"] == "tool"]
    assert [text.startswith("[compaction ") for text in texts] == [False, min_chars < 251, True, True]
    assert max(len(text) for text in texts if text.startswith("[")) < 250
    assert compact_sync(view, offload, counter="chars/4").edits == ()


def test_ids_are_salted_by_the_session(store: SQLiteStore) -> None:
    """The id of a message depends on the salt, which is the session by default; the same message in a session has one id."""
    chat = [user(), call("c1"), result("c1", "x" * 5_000), *turns(2)]

    def id(strategy: Strategy) -> str:
        return id_in(compact_sync(chat, strategy, counter="chars/4").messages[2]["content"])

    one = id(Offload(store, session="a"))
    assert id(Offload(store, session="a")) == one
    assert id(Offload(store, session="b")) != one
    assert id(Offload(store, session="b", salt="a")) == one
    assert [len(stored(store, session)) for session in ("a", "b")] == [1, 2]
    window = SlidingWindow(keep=last(groups=2))
    for salt, expected in (("a", 1), (None, 1), ("b", 2)):
        compact_sync(chat, Lossless(window, store, session="a", salt=salt), counter="chars/4")
        assert stored(store, "a").count(chat[2]) == expected


@pytest.mark.parametrize("depth", [600, 20_000])
@pytest.mark.parametrize("lossless", [False, True])
def test_what_is_nested_too_deeply_stays(depth: int, lossless: bool, store: SQLiteStore) -> None:
    """Messages nested too deeply for JSON stay in the view, and the run reports a failure instead of a `RecursionError`."""
    nested: Any = 1
    for _ in range(depth):
        nested = {"a": nested}
    use = {"type": "tool_use", "id": "a", "name": "f", "input": nested}
    answer = {"type": "tool_result", "tool_use_id": "a", "content": "y " * 3_000}
    chat: Chat = [
        user("go"),
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [answer]},
        *turns(5, words=90),
    ]
    offload = Offload(store, style=StubGroups())
    strategy = Lossless(Truncation(keep=last(groups=2)), store) if lossless else offload
    done = compact_sync(chat, strategy, counter="chars/4", format="anthropic")
    assert done.outcome == "degraded"
    assert [any(raw is kept for raw in done.messages) for kept in chat[1:3]] == [True, True]
    assert len(done.messages) < len(chat)  # the other messages are stored and leave
    assert [str(failure.error).partition(";")[0] for failure in done.failures] == [
        "a message is nested too deeply to be stored as JSON"
    ]

"""Offload and Lossless: messages are stored before they leave the view, and can be read from the store byte for byte."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from compaction import Drop, MessageIndex, compact, compact_sync, last, nothing, run_sync, validate
from compaction.errors import NoProgress, StateError, SyncDriverError
from compaction.session import CompactionSession
from compaction.stores import SQLiteStore, StoredRecord, handle_tool_call
from compaction.strategies import (
    ClearReasoning,
    LastResort,
    Lossless,
    Offload,
    SelectiveToolCall,
    SlidingWindow,
    Strategy,
    Summarization,
    TokenBudgetComposed,
    ToolResult,
    Truncation,
)
from compaction.testing import check_strategy, conversations
from compaction.triggers import tokens_below, tokens_exceed
from tests.support.chats import Chat, assistant, call, result, system, tool_turns, turns, user


@pytest.fixture
def store(tmp_path: Path) -> SQLiteStore:
    return SQLiteStore(tmp_path / "store.db")


class Held:
    """A store in memory that raises ``error`` while it is set; its methods may be awaitable."""

    def __init__(self, *, awaited: bool = False) -> None:
        self.records: list[StoredRecord] = []
        self.puts = 0
        self.error: Exception | None = None
        self._awaited = awaited

    def put(self, session: str, records: Sequence[StoredRecord]) -> Any:
        return self._later(records) if self._awaited else self._keep(records)

    async def _later(self, records: Sequence[StoredRecord]) -> None:
        self._keep(records)

    def _keep(self, records: Sequence[StoredRecord]) -> None:
        self.puts += 1
        if self.error is not None:
            raise self.error
        self.records += records

    def get(self, session: str, ids: Sequence[str]) -> list[StoredRecord]:
        return [next(record for record in self.records if record.id == id) for id in ids]

    range = search = describe = get  # not called in these tests


def expanded(store: SQLiteStore, id: str, session: str = "default") -> list[str]:
    """The JSON lines that ``compaction_expand`` returns for an id, from all pages."""
    lines, offset = "", 0
    while True:
        asked = {"id": id, "form": "json", "offset": offset, "limit": 50_000}
        answer = json.loads(handle_tool_call("compaction_expand", asked, store=store, session=session))
        lines += answer["content"]
        if "next_offset" not in answer:
            return lines.split("\n")
        offset = answer["next_offset"]


def stored(store: SQLiteStore, session: str = "default") -> set[str]:
    return {record.data for record in store.range(session, 1, 1 << 20)}


def lines(messages: Chat) -> set[str]:
    return {json.dumps(message, ensure_ascii=False) for message in messages}


def ids_in(messages: Chat) -> list[str]:
    return [id for message in messages for id in re.findall(r'compaction_expand\(id="(\w+)"\)', str(message.get("content")))]


def mark_id(message: dict[str, Any]) -> str:
    """The id in the first line of a summary."""
    return str(message["content"]).split()[1]


# ------------------------------------------------------------------------ stubs


def test_a_large_result_gives_way_to_a_stub(store: SQLiteStore) -> None:
    chat = [user(), call("c1", name="read\n\nfile", arguments='{"path": "a.py"}'), result("c1", "x" * 5_000), *turns(2)]
    answer = compact_sync(chat, Offload(store), counter="chars/4")
    stub = answer.messages[2]["content"]
    assert "\n5,000 characters of read file(path=a.py) are stored" in stub
    assert (stub.count("\n"), len(stub) < 200) == (1, True)
    assert [message for place, message in enumerate(answer.messages) if place != 2] == [*chat[:2], *chat[3:]]
    assert expanded(store, ids_in(answer.messages)[0]) == [json.dumps(chat[2])]


def test_small_results_and_what_is_kept_stay(store: SQLiteStore) -> None:
    chat = [user()]
    for id, chars in (("c1", 1_999), ("c2", 9_999), ("c3", 9_999)):
        chat += [call(id), result(id, "x" * chars)]
    waiting = [*chat, call("c4", "c5"), result("c4", "x" * 9_999)]
    assert compact_sync(chat, Offload(store), counter="chars/4").edits == ()
    pinned = compact_sync(waiting, Offload(store, keep=nothing), counter="chars/4", pin=lambda message: message.role == "tool")
    assert pinned.edits == ()
    free = compact_sync(chat, Offload(store, keep=nothing), counter="chars/4")
    assert [edit.group for edit in free.edits] == [3]


def test_images_in_results_leave_too(store: SQLiteStore) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 400}}
    shot = {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "a screenshot"}, picture, picture]}
    view = compact_sync([user(), call("c1", name="shot"), shot, *turns(2)], Offload(store), counter="chars/4").messages
    [part] = view[2]["content"]
    assert ("and its image are stored" in part["text"], part["text"].count("image")) == (True, 1)
    assert expanded(store, ids_in([{"content": part["text"]}])[0]) == [json.dumps(shot)]


def test_results_leave_oldest_first_in_steps_that_double_until_the_target_holds(store: SQLiteStore) -> None:
    chat = tool_turns(40, words=1_000)
    index = MessageIndex(chat, counter="chars/4")
    enough = index.tokens - 1_000 * 5 * 5 // 4 + 500  # what five results take, roughly
    done = compact_sync(chat, Offload(store, trigger=tokens_exceed(100), target=tokens_below(enough)), counter="chars/4")
    assert done.outcome == "compacted"
    assert [edit.group for edit in done.edits] == [1, 5, 9, 13, 17, 21, 25]


@pytest.mark.parametrize("min_chars", [1, 190, 251])
def test_a_stub_is_shorter_than_what_it_stands_for(min_chars: int, store: SQLiteStore) -> None:
    """Only results of 250 or more characters are offloaded, and every stub is shorter, so that none is offloaded again."""
    name, arguments = "n" * 90, json.dumps({"path": "p" * 90})
    chat = [user()]
    for chars in (249, 250, 251, 1_234_567):
        chat += [call(f"c{chars}", name=name, arguments=arguments), result(f"c{chars}", ("xyz " * chars)[:chars])]
    offload = Offload(store, min_chars=min_chars, keep=nothing)
    view = compact_sync([*chat, *turns(1)], offload, counter="chars/4").messages
    texts = [message["content"] for message in view if message["role"] == "tool"]
    assert [text.startswith("[compaction ") for text in texts] == [False, min_chars < 251, True, True]
    assert max(len(text) for text in texts if text.startswith("[")) < 250
    assert compact_sync(view, offload, counter="chars/4").edits == ()


def test_ids_are_salted_by_the_session(store: SQLiteStore) -> None:
    """The id of a message depends on the session; the same message in a session has one id, and is stored once."""
    chat = [user(), call("c1"), result("c1", "x" * 5_000), *turns(2)]

    def id(strategy: Strategy) -> str:
        return ids_in(compact_sync(chat, strategy, counter="chars/4").messages)[0]

    one = id(Offload(store, session="a"))
    assert id(Offload(store, session="a")) == one
    assert id(Offload(store, session="b")) != one
    assert [len(store.range(session, 1, 9)) for session in ("a", "b")] == [1, 1]
    compact_sync(chat, Lossless(SlidingWindow(keep=last(groups=2)), store, session="a"), counter="chars/4")
    assert [json.loads(record.data) for record in store.range("a", 1, 99)].count(chat[2]) == 1


def test_what_is_nested_too_deeply_stays(store: SQLiteStore) -> None:
    """Messages nested too deeply to be stored stay in the view, and the run reports a failure."""
    nested: Any = 1
    for _ in range(600):
        nested = {"a": nested}
    use = assistant([{"type": "tool_use", "id": "a", "name": "f", "input": nested}])
    answer = user([{"type": "tool_result", "tool_use_id": "a", "content": "y " * 3_000}])
    chat = [user("go"), use, answer, *turns(5, words=90)]
    strategy = Lossless(Truncation(keep=last(groups=2)), store)
    done = compact_sync(chat, strategy, counter="chars/4", format="anthropic")
    assert done.outcome == "degraded"
    assert [any(raw is kept for raw in done.messages) for kept in chat[1:3]] == [True, True]
    assert len(done.messages) < len(chat)  # the other messages are stored and leave
    [failure] = done.failures
    assert str(failure.error).startswith("a message is nested too deeply to be stored as JSON")


# ------------------------------------------------------------------------ Lossless


def test_what_any_strategy_drops_is_stored(store: SQLiteStore) -> None:
    chat = [system(), *turns(20, words=30)]
    strategy = Truncation(keep=last(groups=4))
    plain, lossless = compact_sync(chat, strategy), compact_sync(chat, Lossless(strategy, store))
    assert lossless.edits == plain.edits
    assert stored(store) == lines([message for message in chat if message not in plain.messages])
    assert {record.by for record in store.range("default", 1, 99)} == {"Truncation"}


def test_a_summary_links_to_its_originals(store: SQLiteStore) -> None:
    """The id of a summary leads to all messages it replaces, over several rounds that each start from the view alone."""
    strategy = Lossless(Summarization(keep=last(groups=2), user_tokens=0), store)
    said: Chat = turns(9, words=40)
    view = compact_sync(said, strategy, counter="chars/4").messages
    for round in range(1, 5):
        more = [user(f"more {round}" + " word" * 300), assistant(f"done {round}" + " word" * 300)]
        said += more
        view = compact_sync(json.loads(json.dumps([*view, *more])), strategy, counter="chars/4").messages
    assert "round 4" in view[0]["content"]
    assert store.get("default", [mark_id(view[0])])[0].tokens > 300
    back = expanded(store, mark_id(view[0]))
    gone = [json.dumps(message, ensure_ascii=False) for message in said if message not in view]
    assert [line for line in back if "[compaction " not in line] == gone


# ------------------------------------------------------------------------ reading back


def test_what_search_answered_is_not_found(store: SQLiteStore) -> None:
    chat = [user(), call("c1"), result("c1", "a needle in hay " * 400), *turns(2)]
    view = compact_sync(chat, Offload(store), counter="chars/4").messages
    answer = handle_tool_call("compaction_grep", {"query": "needle"}, store=store) + " " * 5_000
    later = [*view, call("c2", name="compaction_grep", arguments='{"query": "hay"}'), result("c2", answer), *turns(2)]
    compact_sync(later, Offload(store), counter="chars/4")
    found = json.loads(handle_tool_call("compaction_grep", {"query": "needle"}, store=store))
    assert (found["matches"], len(store.range("default", 1, 99))) == (1, 2)


PIPELINES: dict[str, Callable[[Any], Strategy]] = {
    "results": lambda store: Offload(store, min_chars=200),
    "results, then a summary": lambda store: (
        Offload(store, min_chars=200) >> Lossless(Summarization(keep=last(groups=3)), store)
    ),
    "a window": lambda store: Lossless(
        ClearReasoning() >> ToolResult(keep=nothing) >> SlidingWindow(keep=last(groups=3)), store
    ),
    "to a target": lambda store: Offload(store, min_chars=1, trigger=tokens_exceed(400), target=tokens_below(300)),
}


@pytest.mark.parametrize("made", PIPELINES.values(), ids=PIPELINES)
@given(messages=conversations(valid=False, pending=True))
@settings(max_examples=10)
def test_laws_hold(made: Callable[[Any], Strategy], messages: Chat) -> None:
    check_strategy(made(Held()), messages=messages)


def test_both_stubs_in_a_message_of_anthropic_lead_to_the_whole_message(store: SQLiteStore) -> None:
    calls = [{"type": "tool_use", "id": id, "name": "look", "input": {}} for id in ("a", "b")]
    results = [{"type": "tool_result", "tool_use_id": id, "content": f"{id} " * 2_000} for id in ("a", "b")]
    chat = [user("go"), {"role": "assistant", "content": calls}, {"role": "user", "content": results}, assistant(), *turns(3)]
    done = compact_sync(chat, Offload(store), counter="chars/4", format="anthropic")
    assert validate(done.messages, format="anthropic") == []
    texts = json.dumps(done.messages[2])
    ids = set(re.findall(r'id=\\+"(\w{16})', texts))
    assert [expanded(store, id) for id in ids] == [[json.dumps(chat[2])]]


# ------------------------------------------------------------------------ when the store fails


@pytest.mark.parametrize("lossless", [False, True])
def test_a_store_that_fails_keeps_the_view(lossless: bool) -> None:
    held = Held()
    held.error = StateError("the disk is full")
    inner = Truncation(keep=last(groups=2))
    strategy: Strategy = Lossless(inner, held) if lossless else Offload(held)
    index = MessageIndex(tool_turns(4, words=1_000), counter="chars/4")
    failed = run_sync(index, strategy)
    errors = [str(each.error) for each in failed.failures]
    assert (failed.edits, failed.outcome, errors) == ((), "degraded", ["the disk is full"])
    assert held.puts == 1
    held.error = None
    assert run_sync(index, strategy).outcome == "compacted"


def test_calls_that_cannot_be_stored_are_offered_once() -> None:
    held = Held()
    held.error = StateError("the disk is full")
    failed = compact_sync(tool_turns(4), Lossless(SelectiveToolCall(), held), counter="chars/4")
    assert (failed.edits, failed.outcome) == ((), "degraded")


def test_words_of_the_user_that_stay_are_not_reported_as_lost() -> None:
    """Only the store's failure is reported, because the drops are refused; a budget ends the run with its last drop."""
    held = Held()
    lossless = Lossless(LastResort(tokens=60), held)
    chat = [*[user(f"Please do {number}. " + "word " * 200) for number in range(6)], user()]
    done = compact_sync(chat, TokenBudgetComposed([lossless], budget=60), counter="chars/4")
    assert {each.edit for each in done.failures} == {each for each in done.edits if isinstance(each, Drop)} != set()
    held.error = StateError("the disk is full")
    failed = compact_sync(chat, lossless, counter="chars/4")
    assert (failed.edits, [str(each.error) for each in failed.failures]) == ((), ["the disk is full"])


def test_on_failure_raise_undoes_the_run() -> None:
    """With ``on_failure="raise"``, the store's exception is raised and the run is undone, with the edits of earlier steps."""
    held = Held()
    held.error = StateError("locked")
    index = MessageIndex(tool_turns(9, words=1_000), counter="chars/4")
    for strategy in (Offload(held, keep=nothing, on_failure="raise"), Lossless(SlidingWindow(), held, on_failure="raise")):
        with pytest.raises(StateError, match="locked"):
            run_sync(index, Truncation(keep=last(groups=16)) >> strategy)
        assert index.edits == ()


def test_a_strategy_that_insists_is_stopped() -> None:
    def insisting(index: MessageIndex) -> Any:
        while True:
            yield Drop([0], "again")

    held = Held()
    held.error = StateError("locked")
    with pytest.raises(NoProgress):
        compact_sync(turns(3), Lossless(insisting, held))


def test_a_message_that_is_no_json_stays_and_the_run_is_degraded(store: SQLiteStore) -> None:
    chat = [user(), call("c1"), {**result("c1", "x" * 5_000), "extra": {1, 2}}, *turns(2)]
    done = compact_sync(chat, Offload(store), counter="chars/4")
    assert (done.edits, done.outcome) == ((), "degraded")


async def test_an_async_store_works_with_the_async_driver() -> None:
    held = Held(awaited=True)
    chat = tool_turns(4, words=1_000)
    done = await compact(chat, Offload(held), counter="chars/4")
    assert (done.outcome, [record.kind for record in held.records].count("message")) == ("compacted", 3)
    session = CompactionSession(Lossless(Truncation(keep=last(groups=2)), held), counter="chars/4")
    assert len(await session.view(chat)) < len(chat)
    with pytest.raises(SyncDriverError):
        compact_sync(chat, Offload(held), counter="chars/4")
    with pytest.raises(SyncDriverError):
        compact_sync(chat, Lossless(Truncation(keep=nothing), held), counter="chars/4")


# ------------------------------------------------------------------------ killed processes

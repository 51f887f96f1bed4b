"""Laws of a pool: no view of a conversation contains content of another, whatever hosts do and in whatever order they call."""

from __future__ import annotations

import copy
import itertools
import json
import random
import re
from pathlib import Path
from typing import Any

import anyio
from hypothesis import given
from hypothesis import strategies as st

from compaction import last
from compaction.messages import Message
from compaction.session import CompactionSession, SessionPool
from compaction.stores import SQLiteStore, handle_tool_call
from compaction.strategies import Offload, Strategy, Summarization, Truncation
from compaction.summarizers import SummaryRequest
from compaction.triggers import tokens_below, tokens_exceed
from tests.support.chats import Chat, assistant, call, result, system, user
from tests.support.hosts import host_strategies
from tests.support.limits import count, examples
from tests.support.scripted import Scripted

SYSTEM = system("You keep a store. " * 5)
STRATEGIES = host_strategies(250, lambda request: " ".join(each.text[:40] for each in messages_of(request))[:400])


def messages_of(request: SummaryRequest) -> list[Message]:
    return [message for group in request.groups for message in group.messages]


def options() -> dict[str, Any]:
    numbers = itertools.count()
    return {"counter": "chars/4", "clock": lambda: 0.0, "new_id": lambda: f"session-{next(numbers)}"}


def turn(name: str, number: int, draw: random.Random) -> Chat:
    """The messages that a conversation adds in a turn; some of them are the same in every conversation."""
    said = draw.choice(["ok", f"secret {name} of turn {number}. " * 4])
    if draw.random() < 0.4:
        id = f"call_{number}"
        return [call(id), result(id, f"secret {name} found in {number}. " * 8), assistant(said)]
    return [assistant(said)]


def question(name: str, number: int, draw: random.Random) -> dict[str, Any]:
    return user(draw.choice(["ok", f"secret {name} asks {number}? " * 3]))


BEGINNING: Chat = [SYSTEM, user("hi " * 10), assistant("hello " * 10)]


def test_many_sessions_with_equal_beginnings(tmp_path: Path) -> None:
    """In a pool of hundreds of conversations with equal beginnings, no view contains another conversation's secret.

    A stub opens only in the session that stored it, and each conversation has one session from its second turn on.
    """
    store = SQLiteStore(tmp_path / "records.db")
    strategy = Offload(store, trigger=tokens_exceed(150), min_chars=300, keep=last(groups=2)) >> Truncation(
        trigger=tokens_exceed(260), target=tokens_below(200), keep=last(groups=2)
    )
    sessions = count(250, 1_000)
    pool = SessionPool(strategy, limit=2 * sessions, **options())
    chats: list[Chat] = [copy.deepcopy(BEGINNING) for _ in range(sessions)]
    names: dict[int, set[str]] = {number: set() for number in range(sessions)}
    stubs: dict[str, int] = {}
    for step in range(4):
        for number, chat in enumerate(chats):
            if step == 1:
                chat += [call("call_0", name="read"), result("call_0", f"secret-{number}. " * 40)]
            chat += [assistant("ok"), user("ok")]
            with pool.call_sync(copy.deepcopy(chat)) as session:
                view = session.compact_due_sync().messages
            text = json.dumps(view)
            assert "secret-" not in text.replace(f"secret-{number}.", "")
            if step:
                names[number].add(session.id)
            for stub in text.split('compaction_expand(id=\\"')[1:]:
                assert stubs.setdefault(stub.split("\\")[0], number) == number
    assert len(stubs) == sessions
    assert all(len(each) == 1 for each in names.values())
    for stub, number in random.Random(0).sample(sorted(stubs.items()), 50):
        [own], [other] = names[number], names[(number + 1) % sessions]
        assert "secret" in handle_tool_call("compaction_expand", {"id": stub}, store=store, session=own)
        assert "error" in handle_tool_call("compaction_expand", {"id": stub}, store=store, session=other)


async def test_one_slow_summarizer_delays_no_other_session() -> None:
    """While one summarizer waits, a hundred other conversations with the same beginning take their turns."""
    waiting, more = anyio.Event(), anyio.Event()

    class Slow(Scripted):
        async def summarize(self, request: Any) -> str:  # type: ignore[override]
            if not waiting.is_set():
                waiting.set()
                await more.wait()
            return "Round."

    strategy = Summarization(Slow(""), trigger=tokens_exceed(250), keep=last(groups=2))
    pool = SessionPool(strategy, **options())
    chats = [copy.deepcopy(BEGINNING) for _ in range(101)]
    for number, chat in enumerate(chats):
        for _ in range(6):
            chat += [user(f"secret {number} " * 15), assistant("ok " * 40)]
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(pool.view, chats[0])
            await waiting.wait()
            for chat in chats[1:]:
                view = await pool.view(chat)
                assert len(view) < len(chat)
            more.set()
    assert len(pool) == 101


class Host:
    """A host with one conversation. Holds state: the conversation, and the list it passes next."""

    def __init__(self, name: str, how: str, id: str | None, strategy: Strategy) -> None:
        self.name = name
        self.how = how
        self.id = id
        self.source: Chat = copy.deepcopy(BEGINNING)
        self.kept = list(self.source)
        self.turns = 0
        self.only_grew = True
        self.alone = CompactionSession(strategy, counter="chars/4", clock=lambda: 0.0)

    def say(self, messages: Chat) -> None:
        self.source += messages
        self.kept += messages

    def rewind(self, draw: random.Random) -> None:
        """Cut the conversation at an earlier question, so that another one can follow."""
        if self.how != "source" or len(self.source) < 6:
            return
        places = [place for place, each in enumerate(self.source) if place > 2 and each["role"] == "user"]
        del self.source[draw.choice(places) :]
        self.kept = list(self.source)
        self.only_grew = False


@examples(25)
@given(
    seed=st.integers(0, 10_000),
    strategy=st.sampled_from(sorted(STRATEGIES)),
    hows=st.lists(st.sampled_from(["source", "view", "run"]), min_size=2, max_size=5),
    limit=st.sampled_from([1, 3, 100]),
    has_ids=st.booleans(),
)
def test_no_message_is_hidden_or_shown_by_a_decision_about_another(
    seed: int, strategy: str, hows: list[str], limit: int, has_ids: bool
) -> None:
    """Hosts with equal beginnings take turns at random; some go back, and some pass views."""
    draw = random.Random(seed)
    make = STRATEGIES[strategy]
    pool = SessionPool(make(), limit=limit, **options())
    hosts = [Host(str(place), how, f"host-{place}" if has_ids else None, make()) for place, how in enumerate(hows)]
    for _ in range(24):
        host = draw.choice(hosts)
        if draw.random() < 0.15:
            host.rewind(draw)
        host.say([question(host.name, host.turns, draw)])
        passed = copy.deepcopy(host.kept)
        view = pool.view_sync(passed, host.id)
        assert set(re.findall(r"secret (\d)", json.dumps(view))) <= {host.name}
        assert view[-1] == passed[-1]
        assert host.only_grew is False or limit < 100 or len(view) <= len(passed)
        if host.only_grew and limit == 100:
            assert view == host.alone.view_sync(copy.deepcopy(host.source))
        host.turns += 1
        if host.how == "view" or (host.how == "run" and host.turns % 3 == 0):
            host.kept = copy.deepcopy(view)
        host.say(turn(host.name, host.turns, draw))
    assert len(pool) <= max(limit, 1)

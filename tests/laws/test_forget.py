"""The law of forgetting: after a message is forgotten, no view, state or file contains its text, and nothing else changes."""

from __future__ import annotations

import itertools
import json
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from compaction import last
from compaction.formats import openai_chat
from compaction.session import CompactionSession, SessionPool
from compaction.stores import SessionStore, SQLiteStore
from compaction.strategies import Lossless, Offload, Strategy, Summarization, ToolResult, Truncation
from compaction.summarizers import DigestSummarizer
from compaction.triggers import tokens_below, tokens_exceed
from tests.support.chats import Chat, assistant, call, result, system, user
from tests.support.limits import examples
from tests.support.scripted import Scripted

SECRET = "swordfish{}x"
STRATEGIES = ("cut", "summaries", "digest", "stubs", "all")


def strategy_of(kind: str, path: Path) -> Strategy:
    """Return the strategy of this name; some of them store the content they remove."""
    store = SQLiteStore(path / "records.db")
    two: dict[str, Any] = {"min_chars": 250, "keep": last(groups=2)}
    cleared = ToolResult(trigger=tokens_exceed(150), keep=last(groups=2))
    telling = Scripted(lambda request: " ".join(each.text for group in request.groups for each in group.messages)[:600])
    summaries = Summarization(telling, trigger=tokens_exceed(250), keep=last(groups=3))
    made: dict[str, Callable[[], Strategy]] = {
        "cut": lambda: cleared >> Truncation(trigger=tokens_exceed(250), target=tokens_below(150), keep=last(groups=2)),
        "summaries": lambda: summaries,
        "digest": lambda: Summarization(DigestSummarizer(), trigger=tokens_exceed(900), keep=last(groups=3)),
        "stubs": lambda: Offload(store, trigger=tokens_exceed(200), target=tokens_below(120), **two),
        "all": lambda: Offload(store, trigger=tokens_exceed(150), **two) >> Lossless(summaries, store),
    }
    return made[kind]()


def said(draw: random.Random, name: str, number: int) -> str:
    words = " ".join(draw.choice(["tea", "milk", "shelf", "price", "two", "ok"]) for _ in range(draw.randint(3, 40)))
    return f"{words} {SECRET.format(f'{name}{number}')}"


def chat_of(draw: random.Random, name: str, turns: int) -> Chat:
    """A conversation in which every message contains a unique word."""
    numbers = itertools.count()
    chat: Chat = [system(f"You keep a store. {SECRET.format(name)}")]
    for turn in range(turns):
        chat.append(user(said(draw, name, next(numbers))))
        if draw.random() < 0.5:
            ids = [f"{name}_{turn}_{part}" for part in range(draw.randint(1, 2))]
            chat.append(call(*ids, text=said(draw, name, next(numbers))))
            chat += [result(id, said(draw, name, next(numbers)) * 4) for id in ids]
        chat.append(assistant(said(draw, name, next(numbers))))
    return chat


def secrets_of(messages: Chat) -> list[str]:
    return [message["content"].split("swordfish")[1].split("x")[0] for message in messages]


def holds(text: str, secrets: list[str]) -> list[str]:
    return [secret for secret in secrets if SECRET.format(secret) in text]


def lists_of(chat: Chat) -> list[Chat]:
    return [chat[: place + 1] for place, message in enumerate(chat) if message["role"] == "user"]


def on_disk(path: Path) -> str:
    return " ".join(each.read_bytes().decode("latin-1") for each in path.iterdir())


def chosen(draw: random.Random, chat: Chat) -> Chat:
    """Return one to three random messages, but never the first."""
    return draw.sample(chat[1:], draw.randint(1, 3))


@given(st.sampled_from(STRATEGIES), st.integers(0, 1 << 32), st.booleans())
@examples(12)
def test_a_session(kind: str, seed: int, is_saved: bool) -> None:
    """Neither views nor states nor files hold it; the list without it continues with the same view, and views stay valid."""
    draw = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        options: dict[str, Any] = {"counter": "chars/4", "clock": lambda: 0.0, "id": "kim"}
        options["store"] = SessionStore(path / "sessions.db")
        strategy = strategy_of(kind, path)
        session = CompactionSession(strategy, **options)
        chat = chat_of(draw, "kim", draw.randint(2, 12))
        for each in lists_of(chat):
            session.view_sync(each)
        if is_saved:
            session = CompactionSession(strategy, **options)
        gone = chosen(draw, chat)
        session.forget_sync(gone)
        secrets = secrets_of(gone)
        left = [message for message in chat if message not in gone]
        state = json.dumps(session.to_dict())
        source, view = session.index.source, session.index.messages()
        assert not holds(json.dumps(view) + state + on_disk(path), secrets)
        host = [message for message in lists_of(chat)[-1] if message not in gone]
        assert is_saved or len(openai_chat.validate(view)) <= len(openai_chat.validate(host))
        follower = CompactionSession(strategy, **options)
        for one in (session, follower):
            one.follow(host)
            now = one.index.messages()
            assert not holds(json.dumps(now), secrets)
            assert len(openai_chat.validate(now)) <= len(openai_chat.validate(host))
        if not is_saved and list(source) == host:  # no group came back
            assert session.index.messages() == view
        session.view_sync(left)
        assert not holds(json.dumps(session.index.messages()) + json.dumps(session.to_dict()) + on_disk(path), secrets)


@given(st.sampled_from(STRATEGIES), st.integers(0, 1 << 32), st.integers(1, 4))
@examples(12)
def test_a_pool(kind: str, seed: int, limit: int) -> None:
    """Every session of the pool forgets, forks and evicted ones too; the others are as if nobody had asked."""
    draw = random.Random(seed)
    numbers = itertools.count()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        options: dict[str, Any] = {"counter": "chars/4", "clock": lambda: 0.0, "new_id": lambda: f"s{next(numbers)}"}
        pool = SessionPool(strategy_of(kind, path), store=SessionStore(path / "sessions.db"), limit=limit, **options)
        kim, lee = chat_of(draw, "kim", 5), chat_of(draw, "lee", 5)
        fork = [*kim[: draw.randint(2, len(kim))], user(said(draw, "fork", 0))]
        for chat in (kim, lee):
            for each in lists_of(chat):
                pool.view_sync(each)
        if openai_chat.validate(fork) == []:
            pool.view_sync(fork)
        before = pool.view_sync(lists_of(lee)[-1])
        gone = chosen(draw, kim)
        pool.forget_sync(gone)
        secrets = secrets_of(gone)
        assert not holds(on_disk(path), secrets)
        known = [each.session for each in pool._directory.in_space(pool._space(""))]
        for session in known:
            assert not holds(json.dumps(session.index.messages()) + json.dumps(session.to_dict()), secrets)
        assert pool.view_sync(lists_of(lee)[-1]) == before
        left = [message for message in kim if message not in gone]
        assert not holds(json.dumps(pool.view_sync(left)) + on_disk(path), secrets)

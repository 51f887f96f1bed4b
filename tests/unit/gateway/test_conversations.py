"""Conversations of the gateway: found by content and session, limited in number and size, and prepared in the background."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest

from benchmarks.hosts.ledger import SUMMARY_SIGN
from benchmarks.hosts.server import SUMMARY
from compaction import last
from compaction.strategies import Summarization
from compaction.triggers import tokens_exceed
from tests.support.gateways import ScriptedUpstream, answer, chat_reply, in_process, tool_chat
from tests.support.rulebook import is_valid

CHAT = "/v1/chat/completions"


def body_of(messages: list[Any], **fields: Any) -> str:
    """Return a request with these messages."""
    return json.dumps({"model": "m", "messages": messages, **fields})


async def test_many_conversations_are_bounded(tmp_path: Path) -> None:
    """The least recently used conversations leave memory; one that returns is restored from the store with the same bytes."""
    long = body_of(tool_chat(20, name="first"))
    with ScriptedUpstream(chat_reply()) as upstream:
        async with in_process(upstream, conversations=5, store=tmp_path / "s.db") as client:
            await client.post(CHAT, content=long)
            for number in range(30):
                await client.post(CHAT, content=body_of(tool_chat(2, name=f"other{number}")))
            health = (await client.get("/healthz")).json()
            await client.post(CHAT, content=long)
    assert health["in_memory"] == 5
    assert health["conversations"] == 5
    assert upstream.got[0].body == upstream.got[-1].body != long.encode()


async def test_memory_is_bounded_in_bytes() -> None:
    """The conversations in memory are limited by the total size of their messages."""
    with ScriptedUpstream(chat_reply()) as upstream:
        async with in_process(upstream, conversation_bytes=50_000, window=100_000) as client:
            for number in range(10):
                await client.post(CHAT, content=body_of(tool_chat(20, name=f"n{number}")))
            health = (await client.get("/healthz")).json()
    assert health["bytes_in_memory"] <= 50_000
    assert health["in_memory"] < 10


@pytest.mark.parametrize(
    "other",
    [
        {"model": "another"},
        {"tools": [{"type": "function", "function": {"name": "look"}}]},
        {"messages": [{"role": "user", "content": "Give this a title."}]},
    ],
)
async def test_what_else_an_agent_asks_is_another_conversation(other: dict[str, Any]) -> None:
    """Requests with another model, other tools or other messages in the same session do not affect the conversation."""
    messages = tool_chat(20)
    with ScriptedUpstream(chat_reply()) as upstream:
        async with in_process(upstream) as client:
            for body in (
                body_of(messages),
                body_of(**{"messages": messages[:3], **other}),
                body_of([*messages, *messages[:1]]),
            ):
                await client.post(CHAT, content=body, headers={"x-session-id": "s"})
            health = (await client.get("/healthz")).json()
    first, second, third = (got.json["messages"] for got in upstream.got)
    assert second == other.get("messages", messages[:3])
    assert third[: len(first)] == first
    assert health["conversations"] == 2


async def test_two_sessions_with_the_same_words_are_two_conversations() -> None:
    """Sessions with different names are different conversations, even if their messages are equal."""
    with ScriptedUpstream(chat_reply()) as upstream:
        async with in_process(upstream) as client:
            for name in ("one", "two", "one"):
                await client.post(CHAT, content=body_of(tool_chat(3)), headers={"session_id": name})
            health = (await client.get("/healthz")).json()
    assert health["conversations"] == 2


async def test_an_agent_that_moves_a_reminder_has_one_conversation() -> None:
    """An agent that ends each request with a reminder and keeps none of them, like aider, is cut as rarely as others."""
    messages: list[Any] = [{"role": "system", "content": "You write code."}]
    with ScriptedUpstream(chat_reply()) as upstream:
        async with in_process(upstream) as client:
            for number in range(40):
                messages += [
                    {"role": "user", "content": f"Part {number}: " + "why? " * 60},
                    {"role": "assistant", "content": "Ok."},
                    {"role": "user", "content": "Go on."},
                ]
                reminded = [*messages[:-1], {"role": "user", "content": "Go on.\n\n" + "Write whole files. " * 30}]
                await client.post(CHAT, content=body_of(reminded))
                messages.append({"role": "assistant", "content": f"Show me part {number + 1}."})
            health = (await client.get("/healthz")).json()
    sent = [got.json["messages"][:-1] for got in upstream.got]
    breaks = sum(one != other[: len(one)] for one, other in pairwise(sent))
    assert health["conversations"] == 1
    assert 1 < breaks < 10
    assert all(is_valid("openai-chat", got.json["messages"]) for got in upstream.got)


async def test_nobody_waits_for_a_model_that_summarizes() -> None:
    """A summarizing model is called in the background before its summary is needed, and never for a token count."""
    asked: list[float] = []
    written = anyio.Event()

    class Model:
        async def generate(self, prompt: str) -> str:
            asked.append(anyio.current_time())
            await anyio.sleep(0.05)
            written.set()
            return SUMMARY

    strategy = Summarization(Model(), trigger=tokens_exceed(1_000), keep=last(groups=3))
    messages = tool_chat(20)
    with ScriptedUpstream(chat_reply()) as upstream:
        async with in_process(upstream, strategy=lambda window: strategy, awaits=True) as client:
            for count in range(1, len(messages) + 1, 2):
                reply = await client.post(CHAT, content=body_of(messages[:count]))
                assert reply.status_code == 200
                if asked and not written.is_set():
                    await written.wait()
            anthropic = [{"role": "user", "content": "hello " * 3_000}]
            upstream.script = [answer(200, {"input_tokens": 7})]
            await client.post("/v1/messages/count_tokens", content=body_of(anthropic))
    sent = [got.json["messages"] for got in upstream.got[:-1]]
    assert all(is_valid("openai-chat", each) for each in sent)
    cut = next(place for place, each in enumerate(sent) if len(each) < 2 * place + 1)
    assert any(SUMMARY_SIGN in str(message) for message in sent[cut])
    assert sent[cut + 1][: len(sent[cut])] == sent[cut]
    assert len(asked) <= 6

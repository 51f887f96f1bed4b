"""Conversations of the gateway: found by content and session, limited in number and size, and prepared in the background."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest

from benchmarks.hosts.ledger import SUMMARY_SIGN
from benchmarks.hosts.server import SUMMARY
from compaction import last
from compaction.gateway.conversations import GatewayConversations
from compaction.gateway.recall import RECALL_FUNCTIONS
from compaction.session import Compacted, Event
from compaction.strategies import Pipeline, Summarization
from compaction.tokens import LengthRefusal, Usage, counter
from compaction.triggers import tokens_exceed
from tests.support.chats import user
from tests.support.gateways import (
    CHAT,
    ScriptedUpstream,
    answer,
    body_of,
    chat_reply,
    client_of,
    gateway,
    lifespan,
    request_of,
    served,
    settings_of,
    tool_chat,
)
from tests.support.rulebook import is_valid


@pytest.mark.parametrize(
    "other", [{"model": "another"}, {"tools": [{"name": "look"}]}, {"messages": [user("Give this a title.")]}]
)
async def test_what_else_an_agent_asks_is_another_conversation(other: dict[str, Any]) -> None:
    messages = tool_chat(20)
    bodies = (body_of(messages), body_of(**{"messages": messages[:3], **other}), body_of([*messages, *messages[:1]]))
    found = await served([chat_reply()], *bodies, headers={"x-session-id": "s"})
    first, second, third = found.sent
    assert second == other.get("messages", messages[:3])
    assert third[: len(first)] == first
    assert len(found.status["conversations"]) == 2


@pytest.mark.parametrize(("header", "values"), [("session_id", ("one", "two")), ("authorization", ("Bearer a", "Bearer b"))])
async def test_two_sessions_or_tenants_with_the_same_words_share_nothing(header: str, values: tuple[str, str]) -> None:
    async with gateway(chat_reply()) as (_, client):
        for value in (*values, values[0]):
            await client.post(CHAT, content=body_of(tool_chat(3)), headers={header: value})
        status = await client.get("/status.json")
    assert [each["requests"] for each in status.json()["conversations"]] == [2, 1]
    assert "Bearer" not in status.text


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
    async with gateway(chat_reply(), strategy=lambda window: strategy, awaits=True) as (upstream, client):
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


def conversations_of(**options: Any) -> GatewayConversations:
    return GatewayConversations(settings_of("http://127.0.0.1:9", **options), None)


LOOK = [{"type": "function", "function": {"name": "look"}}]


@pytest.mark.parametrize("window", [10, 2_000])
@pytest.mark.parametrize("has_tools", [False, True])
@pytest.mark.parametrize("has_recall", [False, True])
async def test_the_tools_of_recall_have_room_of_their_own(
    window: int, has_tools: bool, has_recall: bool, tmp_path: Path
) -> None:
    """The strategy is made for the window without the tools of recall, and for one token at least."""
    made: list[int] = []

    def strategy(size: int) -> Any:
        made.append(size)
        return Pipeline()

    recall = tmp_path / "recall.db" if has_recall else None
    async with conversations_of(strategy=strategy, window=window, recall=recall) as conversations:
        await conversations.turn(request_of(tool_chat(1), tools=LOOK if has_tools else []))
    tools = counter("chars/4").count_text(json.dumps(RECALL_FUNCTIONS))
    assert made == [max(1, window - tools) if has_recall and has_tools else window]


async def test_sessions_are_apart_by_format_window_and_price(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these has a strategy of its own, and the sessions of the newest are in memory."""
    monkeypatch.setattr("compaction.gateway.conversations._MOST_POOLS", 4)
    made: list[int] = []

    def strategy(size: int) -> Any:
        made.append(size)
        return Pipeline()

    async with conversations_of(strategy=strategy) as conversations:
        for model in ("m", "gpt-5.4", "n", "gpt-4o", "m"):  # cached tokens cost a tenth, also by default, or half
            await conversations.turn(request_of(tool_chat(1), model=model))
        await conversations.turn(request_of(tool_chat(1), "/v1/responses"))
        assert made == [2_000] * 3
        for size in range(3, 6):
            conversations.windows.refused(request_of([], model=f"{size}").served, LengthRefusal(window=size), 0)
            await conversations.turn(request_of(tool_chat(1), model=f"{size}"))
        assert (len(made), conversations.held()[0]) == (6, 4)


async def test_the_sessions_that_are_used_stay_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the most pools, the one that was unused for longest goes, not the one that was made first."""
    monkeypatch.setattr("compaction.gateway.conversations._MOST_POOLS", 2)
    request = request_of(tool_chat(1))
    async with conversations_of() as conversations:
        first = await conversations.turn(request)
        for size in (300, 400, 500):
            conversations.windows.refused(request_of([], model=f"{size}").served, LengthRefusal(window=size), 0)
            await conversations.turn(request_of(tool_chat(1), model=f"{size}"))
            assert (await conversations.turn(request)).session is first.session


async def test_what_a_turn_says() -> None:
    """A turn says what to send and what that leaves out, with the result of the run; after a failure, all messages."""
    request = request_of(tool_chat(20), tools=LOOK)
    async with conversations_of() as conversations:
        turn, other = await conversations.turn(request), await conversations.turn(request_of(tool_chat(2)))
    result, index = turn.session.last_result, turn.session.index
    assert result is not None
    assert (turn.is_changed, turn.view, turn.tokens) == (True, result.messages, index.tokens)
    assert index.context.overhead_tokens == counter("chars/4").count_text(json.dumps([LOOK]))
    assert turn.left_out == index.total.tokens - index.included.tokens > 0
    assert (other.is_changed, other.left_out, other.messages) == (False, 0, tool_chat(2))
    assert attrs.evolve(other, messages=other.messages[:-1]).is_changed
    assert attrs.evolve(other, messages=[*other.messages[:-1], {**other.messages[-1]}]).is_changed


async def test_a_window_that_is_learned_begins_the_conversation_again() -> None:
    """The conversation gets a new session only if the learned window differs from that of the turn."""
    request = request_of(tool_chat(2))
    async with conversations_of() as conversations:
        turn = await conversations.turn(request)
        for error, is_same in ((LengthRefusal(window=5_000), True), (LengthRefusal(window=500), False)):
            conversations.learn_window(turn, request, error)
            assert ((await conversations.turn(request)).session is turn.session) is is_same
        assert conversations.held()[0] == 1
        conversations.learn_window(None, request, LengthRefusal(window=300))
        assert conversations.windows.of(request.served) == 300
        await conversations.record_usage(turn, Usage(5_500, 1))
        assert conversations.windows.of(request.served) == 2_000  # as that was accepted, the smaller window was wrong


async def test_events_are_told_to_the_host_too() -> None:
    told: list[Event] = []
    with ScriptedUpstream(chat_reply()) as upstream:
        async with lifespan(settings_of(upstream.url), on_event=told.append) as app, client_of(app) as client:
            await client.post(CHAT, content=body_of(tool_chat(20)))
            (conversation,) = (await client.get("/status.json")).json()["conversations"]
    (event,) = (event for event in told if isinstance(event, Compacted))
    assert (event.session, event.result.after.tokens) == (conversation["id"], conversation["cuts"][0]["tokens_after"])


async def test_a_tool_is_known_by_its_name_in_every_wire() -> None:
    """Two lists with the same names are one set of tools; other names are another conversation."""
    scopes = [
        request_of([], tools=tools).scope
        for tools in (LOOK, [{"name": "look"}, "?"], [{"name": "look"}] * 2, [{"function": {"name": "see"}}], "?")
    ]
    assert scopes[0] == scopes[2] != scopes[1]
    assert len(set(scopes)) == 4
    assert request_of([], tools=[]).scope == request_of([]).scope
    see, both = {"name": "see"}, [{"name": "look"}, {"name": "see"}]
    assert request_of([], tools=[{"functionDeclarations": both}]).scope == request_of([], tools=[*LOOK, see]).scope
    assert request_of([], tools=None, toolConfig={"tools": [{"toolSpec": see}]}).scope == request_of([], tools=[see]).scope

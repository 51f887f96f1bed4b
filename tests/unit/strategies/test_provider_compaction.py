"""Compaction by the provider: a real client against a server that answers as OpenAI's reference shows, and as it should not."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from openai import AsyncOpenAI, OpenAI

from compaction import MessageIndex, compact, compact_sync, first, last, nothing, run_sync
from compaction.errors import ConfigurationError, SummaryFailed, SyncDriverError
from compaction.formats import openai_responses
from compaction.index import Replace
from compaction.session import CompactionSession
from compaction.strategies import ProviderCompaction, SlidingWindow, Summarization, Truncation
from compaction.testing import check_strategy
from compaction.triggers import messages_exceed, never, tokens_exceed
from tests.support.limits import examples
from tests.support.servers import FaultServer, body, compacted, error_body, raw, status
from tests.support.wires import Brief, responses_conversations

Items = list[dict[str, Any]]
LONG = "line of output\n" * 40


def said(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": text}


def turn(number: int) -> Items:
    """A question, reasoning, a call with its result, and an answer."""
    call = {"call_id": f"call_{number}", "id": f"fc_{number}"}
    text = {"type": "output_text", "text": f"answer {number}", "annotations": []}
    return [
        said(f"question {number}"),
        {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "gAAAA"},
        {"type": "function_call", **call, "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": f"call_{number}", "output": LONG},
        {"type": "message", "role": "assistant", "id": f"msg_{number}", "content": [text]},
    ]


def talk(turns: int) -> Items:
    return [{"role": "developer", "content": "be brief"}, *[item for number in range(turns) for item in turn(number)]]


def kinds_of(items: list[Any]) -> list[str]:
    return [item.get("role") or item["type"] for item in items]


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer(compacted()) as running:
        yield running


_CLIENTS: list[OpenAI] = []


@pytest.fixture(autouse=True)
def closed_clients() -> Iterator[None]:
    """Close all clients; an open connection would be reported while a later test runs."""
    yield
    while _CLIENTS:
        _CLIENTS.pop().close()


def client_of(server: FaultServer) -> OpenAI:
    _CLIENTS.append(OpenAI(base_url=server.url, api_key="none"))
    return _CLIENTS[-1]


def of(server: FaultServer, **options: Any) -> ProviderCompaction:
    """The strategy, with the last turn kept and one retry."""
    settings = {"keep": last(turns=1), "max_retries": 1, **options}
    return ProviderCompaction("gpt-5.5", client=client_of(server), **settings)


def test_the_item_replaces_all_but_what_the_user_said(server: FaultServer) -> None:
    """The list is what the endpoint documents: the user's messages, then the item as it came, then what is kept."""
    messages = talk(3)
    before = json.dumps(messages)
    done = compact_sync(messages, of(server, instructions="Keep paths."), counter="chars/4")
    assert done.outcome == "compacted"
    assert kinds_of(done.messages) == ["developer", "user", "user", "compaction", *kinds_of(turn(2))]
    item = done.messages[3]
    assert sorted(item) == ["encrypted_content", "id", "type"]
    assert (item["id"][:4], item["encrypted_content"][:6]) == ("cmp_", "gAAAAA")
    assert all(any(raw is old for old in messages) for raw in done.messages if raw is not item)
    assert openai_responses.validate(done.messages) == []
    assert server.requests == [{"model": "gpt-5.5", "input": messages[:11], "instructions": "Keep paths."}]
    assert json.dumps(messages) == before


async def test_an_async_client(server: FaultServer) -> None:
    async with AsyncOpenAI(base_url=server.url, api_key="none") as client:
        strategy = ProviderCompaction("gpt-5.5", client=client, keep=last(turns=1), fallback=Truncation())
        done = await compact(talk(3), strategy, counter="chars/4")
        assert done.messages == compact_sync(talk(3), of(server), counter="chars/4").messages
        with pytest.raises(SyncDriverError):
            compact_sync(talk(3), strategy, counter="chars/4")


async def test_without_a_client_the_environment_decides(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    strategy = ProviderCompaction("gpt-5.5", keep=last(turns=1))
    assert (await compact(talk(3), strategy, counter="chars/4")).outcome == "compacted"
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(ConfigurationError, match="set OPENAI_API_KEY"):
        await compact(talk(3), strategy, counter="chars/4")


def test_a_later_round_replaces_the_item(server: FaultServer) -> None:
    """The next item is made from the last one, which it replaces: in a session, and in a new process with the view alone."""
    session = CompactionSession(of(server, trigger=messages_exceed(12)), counter="chars/4", clock=None)
    first_view = session.view_sync(talk(3))
    later = [*first_view, *turn(3), *turn(4)]
    for view in (session.view_sync(later), compact_sync(later, of(server), counter="chars/4").messages):
        assert kinds_of(view) == ["developer", *["user"] * 4, "compaction", *kinds_of(turn(4))]
        assert view[5]["id"] != first_view[3]["id"]
        assert first_view[3] in server.requests[-1]["input"]
    assert session.view_sync([*later, said("more")])[:6] == view[:6]


def test_again_nothing_is_requested(server: FaultServer) -> None:
    """Nothing is requested if too little is new, on the same index or on one of the view, even if the trigger still fires."""
    index = MessageIndex(talk(3), counter="chars/4")
    strategy = of(server)
    assert [run_sync(index, strategy).outcome for _ in range(2)] == ["compacted", "unchanged"]
    assert compact_sync(index.messages(), strategy, counter="chars/4").outcome == "unchanged"
    assert compact_sync([said("x" * 900) for _ in range(9)], strategy, counter="chars/4").outcome == "unchanged"
    assert len(server.requests) == 1


def test_a_saved_session_goes_on(server: FaultServer) -> None:
    index = MessageIndex(talk(3), counter="chars/4")
    run_sync(index, of(server))
    again = MessageIndex.from_dict(json.loads(json.dumps(index.to_dict())), counter="chars/4")
    assert again.messages() == index.messages()
    again.append([*turn(3), *turn(4)])
    assert run_sync(again, of(server)).outcome == "compacted"
    assert kinds_of(again.messages()).count("compaction") == 1


def test_an_item_that_the_conversation_has_is_refused() -> None:
    """No edit may bring in the item again that the host has: the provider refuses an id that occurs twice."""
    item = {"type": "compaction", "id": "cmp_001", "encrypted_content": "gAAAA"}
    index = MessageIndex([*talk(1), item, *talk(2)], counter="chars/4")
    free = index.removable_ids()
    for id, again in zip(free, (item, dict(item), {**item, "encrypted_content": "other"}), strict=False):
        assert not index.apply(Replace([id], [openai_responses.read(again)], "again"))
    rule = "a replacement must not repeat a summary of the provider that the conversation has"
    assert {refusal.rule for refusal in index.refused} == {rule}


FAULTS: list[Any] = [
    pytest.param(status(404, "no such path"), "gpt-5.5 answered HTTP 404: no such path", id="404"),
    pytest.param(status(400, "no such model"), "answered HTTP 400: no such model", id="400"),
    pytest.param(status(503), "answered HTTP 503", id="503"),
    pytest.param(raw(b"<html>", content_type="text/html"), "with no items", id="a page"),
    pytest.param(raw(b"{"), "sent a body that cannot be read", id="malformed"),
    pytest.param(error_body("overloaded"), "with no items", id="error body"),
    pytest.param(body({"object": "response.compaction", "output": []}), "with no items", id="empty"),
    pytest.param(compacted({"type": "web_search_call", "id": "w", "status": "completed"}), "web_search_call, comp", id="more"),
    pytest.param(compacted({"type": "compaction", "id": "c", "encrypted_content": "x"}), "compaction, compaction", id="two"),
    pytest.param(compacted(content=""), "cannot be used: it is empty", id="empty item"),
]


@pytest.mark.parametrize(("answer", "says"), FAULTS)
def test_every_fault_runs_the_fallback(answer: Any, says: str) -> None:
    with FaultServer(answer) as server:
        fallback = Summarization(Brief(), keep=last(turns=1))
        done = compact_sync(talk(3), of(server, fallback=fallback), counter="chars/4")
        alone = compact_sync(talk(3), of(server), counter="chars/4")
    (failure,) = done.failures
    assert isinstance(failure.error, SummaryFailed)
    assert says in str(failure.error)
    assert (done.outcome, failure.strategy, failure.policy) == ("degraded", "ProviderCompaction", "Summarization ran instead")
    assert "What was said before." in json.dumps(done.messages)
    assert (alone.messages, alone.failures[0].policy) == (talk(3), "nothing was compacted")


def test_after_a_failure_it_pauses() -> None:
    """For a minute after a failure only the fallback runs; then the endpoint is asked again; its item covers the summary."""
    now = 0.0
    with FaultServer(status(404), compacted()) as server:
        fallback = Summarization(Brief(), trigger=messages_exceed(8), keep=last(turns=1))
        strategy = of(server, fallback=fallback, trigger=messages_exceed(8))
        session = CompactionSession(strategy, counter="chars/4", clock=lambda: now)
        session.view_sync(talk(3))
        now = 59.0
        assert "What was said before." in json.dumps(session.view_sync(talk(5)))
        assert len(server.requests) == 1
        now = 61.0
        view = session.view_sync(talk(8))
    assert len(server.requests) == 2
    assert "What was said before." in json.dumps(server.requests[1]["input"])
    assert kinds_of(view).count("compaction") == 1
    assert "What was said before." not in json.dumps(view)


def test_a_forced_run(server: FaultServer) -> None:
    strategy = of(server, trigger=never, fallback=Summarization(Brief(), trigger=never))
    assert compact_sync(talk(3), strategy, counter="chars/4").outcome == "unchanged"
    assert compact_sync(talk(3), strategy.forced(), counter="chars/4").outcome == "compacted"


def test_an_object_that_is_in_the_list_twice_is_sent_where_it_stands(server: FaultServer) -> None:
    again = said("continue")
    messages = [message for number in range(3) for message in [*turn(number), again]]
    compact_sync(messages, of(server, keep=last(turns=2)), counter="chars/4")
    [request] = server.requests
    assert request["input"] == messages[: len(request["input"])]
    assert len(request["input"]) < len(messages) - 2


def test_its_fallback_never_waits() -> None:
    """The name and the trigger are its own; the fallback is due only after a failure."""
    index = MessageIndex(talk(1), counter="chars/4")
    waits = ProviderCompaction("gpt-5.5", trigger=tokens_exceed(10**6), fallback=Summarization())
    assert [text.partition(" ")[0] for text in waits.waiting(index)] == ["ProviderCompaction"]
    due = ProviderCompaction("gpt-5.5", fallback=Summarization(trigger=tokens_exceed(10**6)))
    assert [*due.waiting(index)] == []


def test_only_responses_items() -> None:
    chat = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}] * 9
    with pytest.raises(ConfigurationError, match=r"the format openai-chat; use Summarization\(OpenAISummarizer"):
        compact_sync(chat, ProviderCompaction("gpt-5.5"), counter="chars/4")
    with pytest.raises(ConfigurationError, match="ProviderCompaction: 'client' must be"):
        ProviderCompaction("gpt-5.5", client=object())
    with pytest.raises(ConfigurationError, match="'model' must be a name"):
        ProviderCompaction("")


def test_it_is_a_value() -> None:
    strategy = ProviderCompaction("gpt-5.5", trigger=tokens_exceed(9), fallback=Truncation())
    assert pickle.loads(pickle.dumps(strategy)) == strategy
    assert strategy.with_children([SlidingWindow()]).children == (SlidingWindow(),)
    assert ProviderCompaction("gpt-5.5").with_children([]).children == ()


@pytest.fixture(scope="module")
def endpoints() -> Iterator[list[OpenAI]]:
    """Clients of an endpoint that compacts, and of one that fails."""
    with FaultServer(compacted()) as good, FaultServer(status(400)) as bad, client_of(good) as one, client_of(bad) as other:
        yield [one, other]


@examples(4)
@given(messages=responses_conversations())
def test_it_keeps_the_laws(endpoints: list[OpenAI], messages: Items) -> None:
    for client in endpoints:
        for keep in (nothing, first(messages=2) | last(groups=1)):
            options: dict[str, Any] = {"keep": keep, "max_retries": 0, "fallback": Truncation(keep=last(groups=2))}
            check_strategy(ProviderCompaction("gpt-5.5", client=client, **options), messages=messages, format=openai_responses)


async def test_an_error_names_no_argument_that_the_strategy_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    strategy = ProviderCompaction("gpt-5.5", keep=last(turns=1))
    with pytest.raises(ConfigurationError, match=r"set OPENAI_API_KEY, or pass client=$"):
        await compact(talk(3), strategy, counter="chars/4")

"""Windows of models: the table's, corrected by refusals, by a header and by usage, and kept in the store."""

from __future__ import annotations

import json
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from compaction import presets
from compaction.errors import StateError
from compaction.gateway import GatewaySettings
from compaction.gateway.windows import ModelWindows, ServedModel, UnknownWindow, known_window
from compaction.stores import SessionStore
from compaction.tokens import LengthRefusal
from tests.support.gateways import (
    CHAT,
    Got,
    ScriptedUpstream,
    answer,
    body_of,
    chat_reply,
    in_process,
    served,
    tool_chat,
)

KNOWN = "gpt-4o"  # the table says 112,000
REAL = 6_000


def chat(name: str = "a", rounds: int = 100, model: str = KNOWN) -> bytes:
    return body_of(tool_chat(rounds, name=name), model=model)


def size_of(got: Got) -> int:
    """The tokens of a request with its JSON, by four characters each."""
    return len(json.dumps(got.json["messages"], ensure_ascii=False)) // 4


def too_long(window: int, tokens: int) -> Any:
    said = f"This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} tokens."
    return answer(400, {"error": {"message": said, "code": "context_length_exceeded"}})


async def test_another_conversation_with_the_model_is_never_refused(tmp_path: Path) -> None:
    """Also after a restart; the page shows the window that was learned."""
    refusal = too_long(REAL, 16_000)
    first = await served([refusal, chat_reply()], chat(), chat("b"), window="auto", store=tmp_path / "s.db")
    assert [size < 9_000 for size in map(size_of, first.got)] == [False, True, True]
    ((name, window),) = first.status["windows"].items()
    assert (name.partition(" at ")[0], window) == (KNOWN, REAL)
    with ScriptedUpstream(refusal, chat_reply()) as upstream:
        for place in range(2):
            async with in_process(upstream, window="auto", store=tmp_path / "t.db") as client:
                for body in (chat(f"{place}"), chat(f"other {place}", model="gpt-4o-mini")):
                    await client.post(CHAT, content=body)
    assert [size < 9_000 for size in map(size_of, upstream.got)] == [False, True, False, True, False]


async def test_a_window_that_was_learned_is_no_conversation(tmp_path: Path) -> None:
    """It is neither forgotten after a time nor deleted by a name: the next start of the gateway still knows it."""
    path = tmp_path / "s.db"
    with ScriptedUpstream(too_long(REAL, 16_000), chat_reply()) as upstream:
        async with in_process(upstream, window="auto", store=path) as client:
            await client.post(CHAT, content=chat())
            (name,) = [each["id"] for each in (await client.get("/status.json")).json()["conversations"]]
            found = [(await client.delete(f"/conversations/{each}")).status_code for each in (name, "gateway:windows")]
        assert found == [204, 404]
        assert SessionStore(path).delete_unused(before=200.0, now=100.0) == []
        async with in_process(upstream, window="auto", store=path) as client:
            assert list((await client.get("/status.json")).json()["windows"].values()) == [REAL]


async def test_a_limit_in_bytes_is_no_window() -> None:
    """A refusal with 413 that names no figure shortens its own conversation only."""
    refusal = answer(413, b"<html><h1>413 Request Entity Too Large</h1></html>", content_type="text/html")
    found = await served([refusal, chat_reply()], chat(), chat("b"), window="auto")
    sizes = list(map(size_of, found.got))
    assert sizes[1] < sizes[0] == sizes[2]
    assert found.status["windows"] == {}


@pytest.mark.parametrize("model", [KNOWN, "unknown"])
@pytest.mark.parametrize(
    "words", ["maximum context length is 300 tokens", "Maximum context\\u0020length is 300 TOKENS", "context_length_exceeded"]
)
async def test_a_client_cannot_set_the_window_of_others(words: str, model: str) -> None:
    """If an error quotes a parameter of the request, the windows of other clients stay as they are."""
    said = words.replace("\\u0020", " ")
    refusal = answer(400, {"error": {"message": f"Invalid value: '{said}'. Supported values are: 'low', 'high'."}})
    attack = chat(model=model).replace(b'"messages"', b'"effort": "%s", "messages"' % words.encode(), 1)
    refusals = [refusal] * (1 + (model == KNOWN))  # the attacker's own conversation is shortened and sent again
    found = await served([*refusals, chat_reply()], attack, chat("b", model=model), window="auto")
    assert found.got[-1].body == chat("b", model=model)
    assert found.status["windows"] == {}


@pytest.mark.parametrize(("beta", "is_cut"), [("context-1m-2025-08-07", False), ("other", True)])
async def test_a_header_may_ask_for_a_million_tokens(beta: str, is_cut: bool) -> None:
    """With ``context-1m`` in ``anthropic-beta``, a request above the table's window is not cut."""
    messages = [{"role": "user", "content": "word " * 500}, {"role": "assistant", "content": "ok"}] * 400
    body = body_of(messages[:-1], model="claude-3-5-haiku-latest", max_tokens=9)
    reply = answer(200, {"type": "message", "content": []})
    found = await served([reply], body, path="/v1/messages", headers={"anthropic-beta": beta}, window="auto")
    assert (found.got[0].body != body) == is_cut


def model_of(model: str = KNOWN, *, is_long: bool = False) -> ServedModel:
    return ServedModel("u", model, is_long)


def windows_of(store: SessionStore | None = None, window: Any = "auto") -> ModelWindows:
    return ModelWindows(GatewaySettings(strategy=presets.adaptive, window=window), store)


def test_an_accepted_request_raises_the_window_in_steps() -> None:
    """A step is a quarter of the table's window. Each upstream, model and header has a window of its own."""
    table = known_window(KNOWN)
    assert table == 112_000
    windows = windows_of()
    for tokens, steps in ((112_000, 0), (112_001, 1), (140_000, 1), (5, 1), (140_001, 2), (200_000, 4)):
        windows.accepted(model_of(), tokens)
        assert windows.of(model_of()) == table + 28_000 * steps
    assert windows.of(ServedModel("other", KNOWN)) == table
    assert windows.of(model_of(is_long=True)) == windows.of(model_of("claude-3-5-haiku-latest", is_long=True)) == 1_000_000
    windows.refused(model_of(), LengthRefusal(window=150_000), 0)
    assert windows.of(model_of()) == 200_000  # it has accepted that many


def test_only_a_refusal_names_the_window_of_an_unknown_model() -> None:
    """An accepted request says nothing of it, and the page shows nothing."""
    windows = windows_of()
    windows.accepted(model_of("new"), 9_000)
    with pytest.raises(UnknownWindow, match="new"):
        windows.of(model_of("new"))
    assert windows.learned() == {}
    windows.refused(model_of(""), LengthRefusal(), 1_000)
    assert list(windows.learned()) == ["unnamed model at u"]
    windows.refused(model_of("new", is_long=True), LengthRefusal(window=7), 1_000)
    assert windows.learned()["new with a long context at u"] == windows.of(model_of("new", is_long=True)) == 7


def test_a_configured_window_is_never_raised() -> None:
    windows = windows_of(window=20_000)
    windows.accepted(model_of(), 150_000)
    windows.refused(model_of("a"), LengthRefusal(window=30_000), 0)
    windows.refused(model_of("b"), LengthRefusal(window=9_000), 0)
    assert [windows.of(model_of(name)) for name in (KNOWN, "a", "b")] == [20_000, 20_000, 9_000]
    assert windows.learned() == {"a at u": 30_000, "b at u": 9_000}


def test_what_changes_is_saved_and_told_once(tmp_path: Path) -> None:
    """The file and the other workers get each change whole, and keep the largest request. What changes nothing is not told."""
    told: list[list[Any]] = []
    store = SessionStore(tmp_path / "s.db")
    windows, other = windows_of(store), windows_of()
    windows.publish = told.append
    other.accepted(model_of(), 170_000)
    windows.accepted(model_of(), 90_000)
    windows.accepted(model_of(), 120_000)
    windows.accepted(model_of(), 110_000)
    windows.refused(model_of("new"), LengthRefusal(window=7_000), 0)
    assert [len(rows) for rows in told] == [1, 2]
    for found in (windows_of(store), other):
        for rows in told:
            found.learn_from(rows)
        assert found.of(model_of("new")) == 7_000
    assert (windows_of(store).of(model_of()), other.of(model_of())) == (140_000, 196_000)
    other.learn_from([["u", "new", False, None, 5]])
    assert other.of(model_of("new")) == 7_000


def test_a_file_that_cannot_be_written_loses_nothing_in_memory(tmp_path: Path) -> None:
    """The next change is saved with what was learned before."""
    store = SessionStore(tmp_path / "s.db", timeout_seconds=0.01)
    windows, holder = windows_of(store), sqlite3.connect(tmp_path / "s.db")
    holder.execute("BEGIN EXCLUSIVE")
    windows.refused(model_of("a"), LengthRefusal(window=7_000), 0)
    holder.close()
    windows.refused(model_of("b"), LengthRefusal(window=8_000), 0)
    assert windows_of(store).learned() == {"a at u": 7_000, "b at u": 8_000}


@pytest.mark.parametrize("saved", [{}, {"windows": [["u", "m", False, -5, 0]]}, {"windows": [[1]]}], ids=str)
def test_a_damaged_state_is_refused(tmp_path: Path, saved: dict[str, Any]) -> None:
    store = SessionStore(tmp_path / "s.db")
    store.save("gateway:windows", saved)
    with pytest.raises(StateError, match="'gateway:windows' of the gateway is damaged"):
        windows_of(store)


def test_the_least_recently_learned_is_forgotten() -> None:
    """The gateway knows 256 models. One that reports again counts as the newest."""
    windows = windows_of()
    for name in [*map(str, range(256)), "0", "more"]:
        windows.refused(model_of(name), LengthRefusal(window=7_000), 0)
    assert len(windows.learned()) == 256
    assert windows.of(model_of("0")) == windows.of(model_of("2")) == 7_000
    with pytest.raises(UnknownWindow):
        windows.of(model_of("1"))


def test_a_window_stays_known_while_a_report_changes_it() -> None:
    """Another thread that asks for it in between gets the old window or the new one."""
    windows, found = windows_of(), list[int | Exception]()
    windows.refused(model_of("new"), LengthRefusal(window=7_000), 0)

    def ask() -> None:
        try:
            found.append(windows.of(model_of("new")))
        except UnknownWindow as error:
            found.append(error)

    other = threading.Thread(target=ask)

    class Tokens(int):
        """A reported number, in whose comparison another thread asks."""

        def __gt__(self, value: int) -> bool:
            if other.ident is None:
                other.start()
                other.join(0.2)
            return super().__gt__(value)

    windows.accepted(model_of("new"), Tokens(8_000))
    other.join()
    assert found in ([7_000], [8_000])

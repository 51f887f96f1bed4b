"""The context engine for Hermes Agent: when it compacts, its results, its failures and its settings."""

from __future__ import annotations

import copy
import itertools
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from compaction import last, validate
from compaction.config import dump
from compaction.errors import ConfigurationError, InputError, StateError, SummaryFailed
from compaction.integrations.hermes import CompactionEngine, EngineSettings, apply_cache_control, hygiene_due, pressure_notice
from compaction.stores import SQLiteStore
from compaction.strategies import Clear, Lossless, Offload, Pipeline, Summarization, ToolResult, Truncation
from compaction.testing import agent_session
from compaction.triggers import tokens_below, tokens_exceed
from tests.support.chats import tool_turns
from tests.support.scripted import Scripted
from tests.support.servers import FaultServer, reply, status

CHAT = agent_session(200, lines=20)
SMALL = EngineSettings(threshold=0.5, protect_last_n=4)


def engine(settings: EngineSettings = SMALL, **options: Any) -> CompactionEngine:
    return CompactionEngine(settings, **{"context_length": 8_000, "counter": "chars/4", **options})


class TestContract:
    """The parts of the host's contract besides compaction."""

    def test_status(self) -> None:
        """The status reports five figures; a host's -1, meaning "not reported yet", counts as 0."""
        made = engine()
        made.update_model("m", 200_000)
        made.update_from_response({"prompt_tokens": 50_000})
        figures = {
            "last_prompt_tokens": 50_000,
            "threshold_tokens": 100_000,
            "context_length": 200_000,
            "usage_percent": 25.0,
            "compression_count": 0,
        }
        assert {name: made.get_status()[name] for name in figures} == figures
        for tokens, percent in ((-1, 0), (300_000, 100)):
            made.last_prompt_tokens = tokens
            assert made.get_status()["usage_percent"] == percent
        with pytest.raises(ConfigurationError):
            engine(context_length=0)


class TestWhen:
    """When the engine compacts."""

    def test_documented_figures(self) -> None:
        """At the default threshold, a window of 200,000 tokens is compacted from exactly 100,000 tokens."""
        tiny = CompactionEngine(context_length=2)
        assert [tiny.should_compress(tokens) for tokens in (0, 1)] == [False, True]
        tiny.threshold_tokens = 0
        assert tiny.should_compress(0) is False
        made = CompactionEngine(counter="chars/4")
        assert (made.threshold_tokens, made.should_compress(99_999), made.should_compress(100_000)) == (100_000, False, True)
        assert (made.context_length, made.store) == (200_000, None)

    def test_reported_usage(self) -> None:
        """Without an argument the last report counts; an argument overrides it; a missing figure is 0."""
        made = engine()
        made.update_from_response({"prompt_tokens": 4_000, "completion_tokens": 5})
        assert (made.last_total_tokens, made.should_compress(), made.should_compress(3_999)) == (4_005, True, False)
        made.update_from_response({"total_tokens": None})
        assert (made.last_prompt_tokens, made.last_completion_tokens, made.last_total_tokens) == (0, 0, 0)
        made.update_from_response({"prompt_tokens": 0, "total_tokens": 7})
        assert made.last_total_tokens == 7

    @pytest.mark.parametrize(
        "usage", [{"prompt_tokens": "9"}, {"prompt_tokens": -1}, {"completion_tokens": True}, 5, ["x"]], ids=repr
    )
    def test_usage_of_the_wrong_type(self, usage: Any) -> None:
        made = engine()
        made.update_from_response({"prompt_tokens": 7, "completion_tokens": 1})
        with pytest.raises(InputError):
            made.update_from_response(usage)
        assert made.last_prompt_tokens == 7

    def test_preflight(self) -> None:
        """A rough estimate decides before a request; after a compaction the engine waits for reported usage."""
        made = engine()
        assert (made.should_compress_preflight(CHAT), made.should_compress_preflight(CHAT[:2])) == (True, False)
        assert made.should_compress_preflight([*CHAT, 5]) is False
        assert "InvalidMessage" in str(made.last_error)
        assert made.should_defer_preflight_to_real_usage(9_000) is False
        made.awaiting_real_usage_after_compression = True
        assert [made.should_defer_preflight_to_real_usage(tokens) for tokens in (3_999, 4_000)] == [False, True]
        made.update_from_response({"prompt_tokens": 1})
        assert made.should_defer_preflight_to_real_usage(9_000) is False

    def test_two_strikes(self) -> None:
        """After two compactions without effect the engine waits until usage falls or a compaction is forced."""
        made = engine()
        for _ in range(2):
            made.compress(CHAT)
            made.update_from_response({"prompt_tokens": 5_000})
        assert (made.should_compress(), made.get_status()["waiting"]) == (False, True)
        made.update_from_response({"prompt_tokens": 3_000})
        assert made.should_compress(4_000) is True
        for _ in range(2):
            made.compress(CHAT)
            made.update_from_response({"prompt_tokens": 5_000})
        made.compress(CHAT, force=True)
        assert made.should_compress(5_000) is True


class TestCompress:
    """The result of a compaction."""

    def test_result(self) -> None:
        """It is a shorter, valid list with a summary, or one of shorter messages; the given list is unchanged."""
        made, before = engine(), copy.deepcopy(CHAT)
        out = made.compress(CHAT)
        assert before == CHAT
        assert validate(out) == []
        assert out[-1] is CHAT[-1]
        assert (len(out) < len(CHAT) / 2, made.compression_count, made.get_status()["outcome"]) == (True, 1, "compacted")
        out = engine(strategy=ToolResult(Clear(min_chars=1))).compress(CHAT)
        assert len(out) == len(CHAT)
        assert out is not CHAT
        assert out != CHAT

    def test_rounds(self) -> None:
        """A result with newer messages is compacted again; each round counts, and there is always one summary."""
        made = engine()
        view: list[Any] = []
        for start in range(0, 200, 50):
            view = made.compress([*view, *CHAT[start : start + 50]])
            assert validate(view) == []
        assert made.compression_count == 4
        assert sum("[compaction " in str(message["content"]) for message in view) == 1

    def test_due_or_forced(self) -> None:
        """A compaction that is due stops where clearing results frees enough; one that was asked for summarizes too."""
        made, chat = engine(), agent_session(60, lines=20)
        assert made.should_compress(5_000)
        assert len(made.compress(chat)) == 60
        assert len(engine().compress(chat)) < 20

    def test_nothing_to_do(self) -> None:
        """A short conversation is returned as the same object, also if forced, and the compaction is not counted."""
        made = engine()
        short = CHAT[:3]
        for force in (False, True):
            assert made.compress(short, force=force) is short
            assert (made.compression_count, made.last_error, made.get_status()["outcome"]) == (0, None, "unchanged")

    def test_current_tokens(self) -> None:
        """A pipeline's triggers include the reported tokens outside the messages."""
        pipeline = Truncation(trigger=tokens_exceed(50_000), target=tokens_below(45_000), keep=last(groups=2))
        assert engine(strategy=pipeline).compress(CHAT) is CHAT
        assert len(engine(strategy=pipeline).compress(CHAT, current_tokens=60_000)) < len(CHAT)

    def test_in_any_thread(self) -> None:
        """``compress`` works while an event loop runs, and in several threads at once."""

        async def main() -> list[Any]:
            return engine().compress(CHAT)

        made = engine()
        results: list[int] = []
        threads = [threading.Thread(target=lambda: results.append(len(made.compress(CHAT)))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {len(anyio.run(main)), *results} == {len(engine().compress(CHAT))}
        assert len(results) == 4


class TestFailure:
    """After any failure, the conversation continues unchanged."""

    def test_unreadable(self) -> None:
        """A list with an unreadable message is returned unchanged, and ``last_error`` has the reason."""
        made = engine()
        broken = [*CHAT, 5]
        assert made.compress(broken) is broken
        assert "InvalidMessage" in str(made.last_error)
        assert len(made.compress(CHAT)) < len(CHAT)
        assert made.last_error is None

    @pytest.mark.parametrize("key", [None, "SUMMARY_KEY"])
    def test_model(self, key: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
        """The configured model writes the summary, with or without a key; if its server refuses, a digest replaces it."""
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        monkeypatch.setenv("SUMMARY_KEY", "one")
        text = "## Goal\nFind the time-outs.\n\n## Next Steps\nRead the handler.\n\n## Critical Context\nPort 9090."
        with FaultServer(reply(text), status(401)) as server:
            made = engine(EngineSettings(summary_model="m", summary_base_url=server.url, summary_key_env=key, protect_last_n=4))
            out = made.compress(CHAT[:100])
            assert (made.last_error, "Port 9090." in str(out)) == (None, True)
            out = made.compress([*out, *CHAT[100:]])
            assert (len(server.requests), "401" in str(made.last_error), validate(out)) == (2, True, [])
            assert len(out) < 40

    def test_raising_pipeline(self) -> None:
        """If a pipeline raises, the conversation is unchanged and the error is reported."""

        def broken(index: Any) -> Any:
            raise ZeroDivisionError
            yield

        made = engine(strategy=broken)
        assert made.compress(CHAT) is CHAT
        assert "ZeroDivisionError" in str(made.last_error)

    def test_damaged_store(self, tmp_path: Path) -> None:
        made = engine(EngineSettings(store=tmp_path / "store.db"))
        (tmp_path / "store.db").write_bytes(b"not a database" * 99)
        assert made.compress(CHAT) is CHAT
        assert "stay in the view" in str(made.last_error)


class TestHost:
    """Changes in the host: the model, the session, copies."""

    def test_model_switch(self) -> None:
        """A change of model recomputes the budgets, clears reported usage, and keeps earlier compactions."""
        made = engine()
        out = made.compress(CHAT)
        made.update_from_response({"prompt_tokens": 4_500})
        made.update_model("large", 64_000)
        assert (made.threshold_tokens, made.last_prompt_tokens, made.compression_count) == (32_000, 0, 1)
        assert made.compress(out) == out
        assert made.session.status().window == 64_000
        made.threshold_percent = 0.25  # a host may lower it for a model
        made.threshold_tokens = 1_000  # or for a session
        assert made.should_compress(1_000) is True
        made.update_model("small", 8_000)
        assert made.should_compress(1_000) is False
        with pytest.raises(ConfigurationError):
            made.update_model("broken", 0)
        assert (made.context_length, made.threshold_percent, made.threshold_tokens) == (8_000, 0.5, 4_000)

    def test_reset(self) -> None:
        """After a reset the engine has no messages, counts or outcome of the conversation."""
        made = engine()
        made.compress(CHAT)
        made.on_session_reset()
        assert (made.compression_count, made.get_status()["outcome"], made.session.index.total.messages) == (0, None, 0)

    def test_another_conversation(self) -> None:
        """A conversation starts without the token figures and the outcome of the one before; its own name changes nothing."""
        made = engine()
        made.on_session_start("kim")
        made.update_from_response({"prompt_tokens": 150_000, "completion_tokens": 10})
        made.compress(CHAT)
        made.update_from_response({"prompt_tokens": 150_000, "completion_tokens": 10})
        assert made.should_compress()
        before = made.get_status()
        made.on_session_start("kim")
        assert made.get_status() == before
        made.on_session_start("lee")
        assert not made.should_compress()
        new = engine()
        assert (made.get_status(), made.last_total_tokens, made.session.id) == (new.get_status(), 0, "lee")

    def test_copy(self, tmp_path: Path) -> None:
        """A deep copy has the same settings and an empty conversation, even with a store."""
        made = engine(EngineSettings(store=tmp_path / "store.db"))
        made.compress(CHAT)
        copied = copy.deepcopy(made)
        copied.update_model("m", 64_000)
        assert (made.context_length, copied.context_length, copied.session.index.total.messages) == (8_000, 64_000, 0)
        given = Pipeline(Truncation(target=tokens_below(500), keep=last(groups=1)), trigger=tokens_exceed(50_000))
        made = engine(strategy=given, session_id="kim")
        made.threshold_tokens, made.threshold_percent = 1_000, 0.125
        copied = copy.deepcopy(made)
        assert (copied.threshold_tokens, copied.threshold_percent, copied.session.id) == (1_000, 0.125, "kim")
        assert copied.compress(CHAT) is CHAT  # a cut that no trigger asks for does not run, as in any forced run

    def test_content_to_compress(self) -> None:
        made = engine()
        assert (made.has_content_to_compress(CHAT[:7]), made.has_content_to_compress(CHAT[:8])) == (False, True)
        assert engine(strategy=Truncation()).has_content_to_compress([])

    def test_the_flags_that_hermes_reads(self) -> None:
        """After each compaction the flags say whether anything changed, failed, or was replaced by a digest."""

        def flags(made: CompactionEngine) -> tuple[bool, bool, bool, bool]:
            said = made._last_summary_error
            assert said == made.last_error
            return (
                made._last_compression_made_progress,
                made._last_compress_aborted,
                made._last_summary_fallback_used,
                said is not None,
            )

        made = engine()
        assert (made._last_summary_dropped_count, made.last_compression_rough_tokens) == (0, 0)
        assert flags(made) == (False, False, False, False)
        for messages, expected in (
            (CHAT[:3], (False, False, False, False)),
            ([*CHAT, 5], (False, True, False, True)),
            (CHAT, (True, False, False, False)),
        ):
            made.compress(messages)
            assert flags(made) == expected
        made = engine(summarizer=Scripted(SummaryFailed("the server is away")))
        assert len(made.compress(CHAT)) < len(CHAT)
        assert flags(made) == (True, False, True, True)
        assert "the server is away" in str(made.get_status()["error"])
        made.on_session_reset()
        assert flags(made) == (False, False, False, False)


class TestLossless:
    """With a store no message is lost, and the agent has tools to read it."""

    def ids(self, view: list[Any]) -> str:
        return str(next(message["content"] for message in view if "by Summarization" in str(message["content"]))).split()[1]

    def expanded(self, made: CompactionEngine, id: str) -> list[str]:
        """Return everything stored under an id, page by page, as a line of JSON for each message."""
        pages, offset = [""], 0
        while offset is not None:
            arguments = {"id": id, "form": "json", "offset": offset, "limit": 50_000}
            answer = json.loads(made.handle_tool_call("compaction_expand", arguments))
            pages.append(answer["content"])
            offset = answer.get("next_offset")
        return "".join(pages).split("\n")

    def test_tools(self, tmp_path: Path) -> None:
        """Tool schemas have the form that a host expects, and the tools read only their conversation's part of the store."""
        made = engine(EngineSettings(protect_last_n=4, store=tmp_path / "store.db"))
        made.on_session_start("kim")
        assert "min_chars=200" in repr(made._strategy())
        out = made.compress(CHAT)
        assert [each["name"] for each in made.get_tool_schemas()] == [
            "compaction_grep",
            "compaction_expand",
            "compaction_describe",
        ]
        answer = json.loads(made.handle_tool_call("compaction_expand", {"id": self.ids(out), "limit": 100_000}, messages=out))
        assert CHAT[7]["content"] in answer["content"]
        made.on_session_start("lee")
        assert "error" in json.loads(made.handle_tool_call("compaction_expand", {"id": self.ids(out)}))
        assert json.loads(made.handle_tool_call("compaction_describe", {}))["messages"] == 0

    def test_a_pipelines_own_store_wins(self, tmp_path: Path) -> None:
        own = SQLiteStore(tmp_path / "own.db")
        made = engine(EngineSettings(store=tmp_path / "store.db"), strategy=Lossless(ToolResult() >> Summarization(), own))
        made.compress(CHAT)
        assert made.store == own
        assert engine(EngineSettings(store=tmp_path / "store.db"), strategy=Truncation()).store is not None
        assert json.loads(made.handle_tool_call("compaction_describe", {}))["messages"] > 100

    def test_no_store(self, tmp_path: Path) -> None:
        """An engine without a store offers no tools, and one with a store no others."""
        store = engine(EngineSettings(store=tmp_path / "store.db"))
        assert "there is no tool 'nope'" in json.loads(store.handle_tool_call("nope", {}))["error"]
        assert engine().get_tool_schemas() == []
        assert "error" in json.loads(engine().handle_tool_call("compaction_grep", {"query": "x"}))

    def test_same_conversation_under_another_name(self, tmp_path: Path) -> None:
        """A host that continues a conversation under a new id after a compaction keeps its stored messages."""
        made = engine(EngineSettings(protect_last_n=4, store=tmp_path / "store.db"))
        made.on_session_start("first")
        out = made.compress(CHAT)
        session = made.session
        made.on_session_start("second", boundary_reason="compression", old_session_id="first")
        made.on_session_start("first")
        assert made.session is session
        assert "content" in json.loads(made.handle_tool_call("compaction_expand", {"id": self.ids(out)}))
        for about in ({"boundary_reason": "compression"}, {"old_session_id": "first"}):
            made.on_session_start(f"another {len(about)}", **about)
            assert made.session is not session
            made.on_session_start("first")
            session = made.session

    @pytest.mark.parametrize(
        "wrap",
        [
            lambda store: Offload(store, min_chars=500) >> ToolResult(),
            lambda store: Pipeline(Lossless(Summarization(), store), trigger=tokens_exceed(1)),
        ],
        ids=["offload", "nested"],
    )
    def test_store_of_a_pipeline(self, wrap: Callable[[SQLiteStore], Any], tmp_path: Path) -> None:
        """A store anywhere in the pipeline is found, and each conversation has its own part of it."""
        store = SQLiteStore(tmp_path / "store.db")
        made = engine(strategy=wrap(store))
        made.on_session_start("kim")
        made.compress(CHAT)
        assert made.store == store
        assert sum(tally.messages for tally in store.describe("kim").tallies) > 0
        assert sum(tally.messages for tally in store.describe("default").tallies) == 0


class TestSettings:
    """Settings from a host's ``config.yaml``."""

    def test_documented_blocks(self) -> None:
        """The keys of the newer documentation are read."""
        config = {
            "model": "some/model",
            "context": {"engine": "compaction", "store": "~/store.db"},
            "compression": {"enabled": False, "threshold": 0.6, "target_ratio": 0.3, "protect_last_n": 9, "in_place": True},
            "auxiliary": {"compression": {"model": "small", "provider": "auto", "base_url": "http://127.0.0.1:1/v1"}},
            "prompt_caching": {"cache_ttl": "1h"},
        }
        assert EngineSettings.from_config(config) == EngineSettings(
            enabled=False,
            threshold=0.6,
            target_ratio=0.3,
            protect_last_n=9,
            summary_model="small",
            summary_base_url="http://127.0.0.1:1/v1",
            cache_ttl="1h",
            store=Path("~/store.db").expanduser(),
        )

    def test_older_spellings_and_empty_blocks(self) -> None:
        """Older keys are read if the newer ones are missing; empty blocks give the documented defaults."""
        older = {"compression": {"summary_model": "old"}, "model": {"cache_ttl": "1h"}}
        assert EngineSettings.from_config(older) == EngineSettings(summary_model="old", cache_ttl="1h")
        newer = {"auxiliary": {"compression": {"model": "new"}}, "prompt_caching": {"cache_ttl": "5m"}}
        assert EngineSettings.from_config({**older, **newer}) == EngineSettings(summary_model="new", cache_ttl="5m")
        blank = {"compression": None, "auxiliary": {"compression": {"model": "", "base_url": None}}}
        assert EngineSettings.from_config({}) == EngineSettings.from_config(blank) == EngineSettings()
        assert (EngineSettings().threshold, EngineSettings().target_ratio, EngineSettings().protect_last_n) == (0.5, 0.2, 20)

    @pytest.mark.parametrize(
        ("config", "told"),
        [
            ({"compression": {"threshold": "half"}}, "compression.threshold must be a number"),
            ({"compression": {"threshold": True}}, "compression.threshold must be a number"),
            ({"compression": {"threshold": 0}}, "threshold="),
            ({"compression": {"threshold": 1.5}}, "threshold="),
            ({"compression": {"target_ratio": 0.9}}, "0.10 <= target_ratio <= 0.80"),
            ({"compression": {"protect_last_n": 2.5}}, "compression.protect_last_n must be a whole number"),
            ({"compression": {"protect_last_n": 0}}, "'protect_last_n' must be a whole number >= 1"),
            ({"compression": {"enabled": "maybe"}}, "compression.enabled must be true or false"),
            ({"compression": ["threshold"]}, "compression must be a block"),
            ({"auxiliary": 3}, "config.yaml: auxiliary must be a block"),
            ({"auxiliary": {"compression": 3}}, "auxiliary.compression must be a block"),
            ({"auxiliary": {"compression": {"model": 3}}}, "auxiliary.compression.model must be a text"),
            ({"prompt_caching": {"cache_ttl": "2h"}}, "must be one of 5m, 1h"),
            ({"context": {"store": 5}}, "context.store must be a text"),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_wrong_values(self, config: dict[str, Any], told: str) -> None:
        """A value of the wrong type or out of range raises a ``ConfigurationError`` that names its key."""
        with pytest.raises(ConfigurationError) as caught:
            EngineSettings.from_config(config)
        assert told in str(caught.value)

    def test_any_pipeline(self, tmp_path: Path) -> None:
        """A pipeline file replaces the default pipeline; a missing file raises a ``ConfigurationError`` at construction."""
        pipeline = Truncation(keep=last(groups=2), target=tokens_below(500))
        dump(pipeline, tmp_path / "p.toml")
        out = engine(EngineSettings(pipeline=tmp_path / "p.toml")).compress(tool_turns(60))
        assert len(out) < 240
        with pytest.raises(ConfigurationError, match=r"none\.toml"):
            engine(EngineSettings(pipeline=tmp_path / "none.toml"))

    def test_store_that_cannot_be(self, tmp_path: Path) -> None:
        with pytest.raises(StateError, match=r"no/such"):
            engine(EngineSettings(store=tmp_path / "no/such/store.db"))


@pytest.mark.parametrize(
    ("reported", "count", "due"),
    [(850, 4, True), (849, 4, False), (850, 3, False), (None, 4, False), (0, 100, True), (-1, 100, True)],
)
def test_hygiene(reported: int | None, count: int, due: bool) -> None:
    """A compaction is due at 85 % of the window and four messages; by reported tokens, else by an estimate."""
    messages = [{"role": "user", "content": "word " * 8}] * count
    assert hygiene_due(messages, 1_000, reported_tokens=reported) is due


@pytest.mark.parametrize(
    ("value", "due"),
    [(True, True), (None, True), (1, True), (False, False), ("no", False), ("false", False), (0, False), ("Yes", True)],
)
def test_hermes_setting(value: Any, due: bool) -> None:
    """``compression.enabled`` in Hermes' configuration disables the engine, also if written as a word."""
    settings = EngineSettings.from_config({"compression": {"enabled": value}})
    assert settings.enabled is due
    made = engine(settings)
    assert (made.should_compress(190_000), made.should_compress_preflight(CHAT)) == (due, due)


def test_notice_once_until_usage_falls() -> None:
    """A notice is given at 85 % of the threshold, and again only after usage fell below it; the engine's status has it."""
    reports = [0, 42_499, 42_500, 49_000, 60_000, 42_499, 43_000]
    told = [pressure_notice(tokens, 50_000, before) is not None for before, tokens in itertools.pairwise(reports)]
    assert told == [False, True, False, False, False, True]
    made, notices = CompactionEngine(context_length=100_000), []
    for tokens in reports[1:]:
        made.update_from_response({"prompt_tokens": tokens})
        notices.append(made.get_status()["notice"])
    assert [notice is not None for notice in notices] == told
    assert "(42,500/50,000 tokens)" in notices[1]
    made.on_session_reset()
    assert made.get_status()["notice"] is None
    assert pressure_notice(5, 0) is pressure_notice(5, 0, -1) is None


def test_a_notice_ends_with_its_model_and_its_compaction() -> None:
    """It names a threshold and a size that are then past. A report without tokens neither ends nor repeats it."""
    near = {"prompt_tokens": 45_000}
    made = CompactionEngine(context_length=100_000)
    made.update_from_response(near)
    notice = made.notice
    made.update_from_response({})
    assert made.notice == notice is not None
    made.update_from_response(near)
    assert made.notice is None
    for ends in (lambda: made.update_model("m", 100_000), lambda: made.compress(CHAT, force=True)):
        made.on_session_reset()
        made.update_from_response(near)
        assert made.notice == notice
        ends()
        assert made.notice is None
    assert made.compression_count == 1


def test_breakpoints_of_the_main_model() -> None:
    """They last as the settings say, and are set as the provider wants them; other models get none."""
    made = CompactionEngine(EngineSettings(cache_ttl="1h"))
    request = [{"role": "user", "content": "hi"}, {"role": "tool", "tool_call_id": "c", "content": "x"}]
    assert made.with_breakpoints(request) == request
    for provider in ("anthropic", "openrouter"):
        made.update_model("claude-sonnet-4-5", 200_000, provider=provider)
        assert made.with_breakpoints(request) == apply_cache_control(request, "1h", native=provider == "anthropic")


def test_a_home_that_nobody_has_is_a_name_of_a_folder() -> None:
    """A mistyped ``~user`` in the configuration is a file that is missing, and no error of the path library."""
    settings = EngineSettings.from_config({"context": {"store": "~nobody-has-this-name/x.db"}})
    assert settings.store == Path("~nobody-has-this-name/x.db")

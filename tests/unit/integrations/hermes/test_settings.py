"""Settings in detail: whose model writes summaries, how Hermes is asked, and how it loads the engine."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from compaction.errors import ConfigurationError, SummaryFailed
from compaction.integrations.hermes import CompactionEngine, EngineSettings
from compaction.integrations.hermes.plugin import engine_class, register
from compaction.integrations.hermes.settings import HermesProviderModel, MainModel
from compaction.summarizers import OpenAISummarizer
from compaction.summarizers.text_generator import GeneratorSummarizer
from compaction.triggers import tokens_exceed

URL, MAIN_URL = "http://127.0.0.1:7/v1", "http://127.0.0.1:8/v1"
OPENROUTER = "https://openrouter.ai/api/v1"
MAIN = MainModel("large", MAIN_URL, "sk-main")


@pytest.mark.parametrize(
    ("settings", "main", "expected"),
    [
        ({}, MAIN, None),
        ({"summary_model": "small"}, MAIN, ("small", MAIN_URL, "sk-main", None)),
        ({"summary_model": "small"}, MainModel(), ("small", None, "none", None)),
        ({"summary_model": "small", "summary_key_env": "KEY"}, MAIN, ("small", MAIN_URL, None, "KEY")),
        ({"summary_model": "small", "summary_base_url": URL}, MAIN, ("small", URL, "none", None)),
        ({"summary_model": "small", "summary_base_url": URL, "summary_key_env": "KEY"}, MAIN, ("small", URL, None, "KEY")),
        ({"summary_model": "small", "summary_base_url": URL, "summary_provider": "nous"}, MAIN, ("small", URL, "none", None)),
        ({"summary_provider": "main"}, MAIN, ("large", MAIN_URL, "sk-main", None)),
        ({"summary_provider": "main"}, MainModel(), None),
        ({"summary_provider": "main", "summary_model": "small"}, MAIN, ("small", MAIN_URL, "sk-main", None)),
        ({"summary_model": "small"}, MainModel("large", "", "sk-ant-1"), ("small", None, "none", None)),
        ({"summary_provider": "main"}, MainModel("large", "", "sk-ant-1"), ("large", None, "none", None)),
        ({"summary_provider": "openrouter"}, MAIN, None),
        ({"summary_provider": "openrouter", "summary_model": "m"}, MAIN, ("m", OPENROUTER, None, "OPENROUTER_API_KEY")),
        (
            {"summary_provider": "openrouter", "summary_model": "m", "summary_key_env": "KEY"},
            MAIN,
            ("m", OPENROUTER, None, "KEY"),
        ),
        ({"summary_provider": "openrouter", "summary_model": "m", "summary_base_url": URL}, MAIN, ("m", URL, "none", None)),
    ],
    ids=str,
)
def test_whose_model_writes_summaries(
    settings: dict[str, Any], main: MainModel, expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The named server, the main model's, or OpenRouter's, with its key; a server without any key gets the word none."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    made = EngineSettings(**settings).summarizer(main)
    if expected is None:
        assert made is None
        return
    assert isinstance(made, OpenAISummarizer)
    assert (made.model, made.base_url, made.api_key, made.api_key_env) == expected
    monkeypatch.setenv("OPENAI_API_KEY", "sk-env")
    made = EngineSettings(**settings).summarizer(main)
    assert isinstance(made, OpenAISummarizer)
    assert made.api_key == (None if expected[2] == "none" else expected[2])


@pytest.mark.parametrize("as_dict", [False, True])
def test_a_provider_that_only_hermes_knows(as_dict: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hermes' client is asked with the prompt; an answer without a text is a failed summary."""
    asked: list[dict[str, Any]] = []
    answers: list[Any] = ["a summary", None, 7]

    def call_llm(**options: Any) -> Any:
        asked.append(options)
        message: Any = {"content": answers.pop(0)}
        return SimpleNamespace(choices=[SimpleNamespace(message=message if as_dict else SimpleNamespace(**message))])

    monkeypatch.setitem(sys.modules, "agent", ModuleType("agent"))
    monkeypatch.setitem(sys.modules, "agent.auxiliary_client", SimpleNamespace(call_llm=call_llm))
    made = EngineSettings(summary_provider="nous", summary_model="small").summarizer(MAIN)
    assert isinstance(made, GeneratorSummarizer)
    assert made.model == HermesProviderModel("nous", "small")
    assert made.model.generate("Summarize.") == "a summary"
    assert asked == [{"provider": "nous", "model": "small", "messages": [{"role": "user", "content": "Summarize."}]}]
    for _ in range(2):
        with pytest.raises(SummaryFailed, match="answered without a text"):
            made.model.generate("Summarize.")
    monkeypatch.setitem(sys.modules, "agent.auxiliary_client", SimpleNamespace())
    with pytest.raises(SummaryFailed, match="set base_url"):
        made.model.generate("Summarize.")


def test_the_preset_of_a_threshold() -> None:
    """A threshold that the host lowered replaces the configured one, only for this preset."""
    settings = EngineSettings(threshold=0.5)
    assert [settings.preset(100_000, threshold=each).trigger for each in (None, 0.25)] == [
        tokens_exceed(49_999),
        tokens_exceed(24_999),
    ]


def test_what_a_file_may_say() -> None:
    """A server of the user's own needs no provider, and the store is a path. Empty or wrong settings are errors."""
    read = EngineSettings.from_config
    assert read({"compression": {"threshold": 1, "protect_first_n": 0}}) == EngineSettings(threshold=1, protect_first_n=0)
    assert read({"auxiliary": {"compression": {"provider": "nous", "base_url": URL}}}).summary_provider == "auto"
    assert read({"auxiliary": {"compression": {"provider": "nous", "base_url": ""}}}).summary_provider == "nous"
    assert read({"auxiliary": {"compression": {"model": "~/m"}}}).summary_model == "~/m"
    assert read({"context": {"store": "a.db"}}).store == Path("a.db")
    for settings in ({"summary_provider": ""}, {"cache_ttl": "2h"}):
        with pytest.raises(ConfigurationError):
            EngineSettings(**settings)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="protect_last_n must be a whole number"):
        read({"compression": {"protect_last_n": ""}})


def test_how_hermes_loads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The registered engine is an instance of Hermes' class and ours, with the settings of Hermes' file."""

    class ContextEngine:
        """Hermes' base class."""

    monkeypatch.setitem(sys.modules, "agent", ModuleType("agent"))
    monkeypatch.setitem(sys.modules, "agent.context_engine", SimpleNamespace(ContextEngine=ContextEngine))
    monkeypatch.setitem(sys.modules, "hermes_cli", ModuleType("hermes_cli"))
    config = SimpleNamespace(load_config=lambda: {"compression": {"threshold": 0.7}})
    monkeypatch.setitem(sys.modules, "hermes_cli.config", config)
    registered: list[Any] = []
    engine_class.cache_clear()
    try:
        register(SimpleNamespace(register_context_engine=registered.append))
        assert engine_class() is type(registered[0])
    finally:
        engine_class.cache_clear()
    [engine] = registered
    assert isinstance(engine, ContextEngine)
    assert isinstance(engine, CompactionEngine)
    assert (engine.settings.threshold, engine.name) == (0.7, "compaction")

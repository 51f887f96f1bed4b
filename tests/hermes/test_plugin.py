"""The plugin inside real Hermes Agent: found, loaded, copied, called, and removed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import plugins.context_engine as directory
import pytest
from agent.context_engine import ContextEngine

from compaction.integrations.hermes import CompactionEngine
from compaction.integrations.hermes.plugin import engine_class, hermes_status, install_plugin, uninstall_plugin
from compaction.integrations.hermes.settings import EngineSettings, MainModel
from compaction.summarizers import OpenAISummarizer
from compaction.summarizers.text_generator import GeneratorSummarizer
from tests.hermes.conftest import CONFIG

ENGINES = Path(directory.__file__).parent


@pytest.fixture
def in_directory(home: Path) -> Iterator[Path]:
    """Return the plugin's folder among Hermes' own context engines, written by the command."""
    program = "import sys; from compaction.cli import main; sys.argv[0] = 'compaction'; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, "hermes", "install", "--path", str(ENGINES)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    yield ENGINES / "compaction"
    uninstall_plugin(ENGINES)
    for name in [name for name in sys.modules if name.startswith("plugins.context_engine.compaction")]:
        del sys.modules[name]


def is_ours(engine: Any) -> bool:
    return isinstance(engine, ContextEngine) and isinstance(engine, CompactionEngine) and engine.name == "compaction"


def test_version() -> None:
    """These tests run with the documented release."""
    assert version("hermes-agent").startswith("0.19.")


class TestLoading:
    """Hermes' own loaders find the engine."""

    def test_directory(self, in_directory: Path) -> None:
        """In the folder of context engines, it is found with its description and loaded by its name."""
        [found] = [each for each in directory.discover_context_engines() if each[0] == "compaction"]
        assert found[2] is True
        assert "context window" in found[1]
        assert is_ours(directory.load_context_engine("compaction"))

    def test_entry_point(self, home: Path, loaded: Callable[[], Any]) -> None:
        assert not (home / "plugins" / "compaction").exists()
        assert is_ours(loaded())

    def test_plugins_of_the_user(self, home: Path, loaded: Callable[[], Any]) -> None:
        """In the user's plugins it is found too; if both exist, one of them is loaded."""
        folder = install_plugin()
        assert folder == home / "plugins" / "compaction"
        assert is_ours(loaded())
        assert hermes_status()[0]

    def test_not_enabled(self, home: Path, loaded: Callable[[], Any]) -> None:
        (home / "config.yaml").write_text("context: {engine: compaction}\n")
        assert loaded() is None
        assert hermes_status()[0] is False

    def test_wrong_configuration(self, home: Path, loaded: Callable[[], Any]) -> None:
        """With a value of the wrong type the engine is not registered, and Hermes uses its own."""
        (home / "config.yaml").write_text("plugins: {enabled: [compaction]}\ncompression: {threshold: half}\n")
        assert loaded() is None


class TestAgent:
    """A real agent uses the engine that ``config.yaml`` names."""

    @pytest.mark.parametrize("way", ["directory", "entry point"])
    def test_engine(self, way: str, request: pytest.FixtureRequest) -> None:
        """It is chosen, gets the model's window, and its tools are offered."""
        if way == "directory":
            request.getfixturevalue("in_directory")
        engine = request.getfixturevalue("agent")().context_compressor
        assert is_ours(engine)
        assert (engine.context_length, engine.threshold_tokens) == (200_000, 100_000)

    def test_tools(self, agent: Callable[[], Any]) -> None:
        made = agent()
        names = [tool["function"]["name"] for tool in made.tools if tool["function"]["name"].startswith("compaction_")]
        assert (
            sorted(names)
            == ["compaction_describe", "compaction_expand", "compaction_grep"]
            == sorted(made._context_engine_tool_names)
        )

    def test_copies(self, agent: Callable[..., Any]) -> None:
        """Each agent has another engine: switching one agent's model changes no other."""
        from hermes_cli import plugins

        first = agent().context_compressor
        shared = plugins.get_plugin_context_engine()
        second = agent(fresh=False).context_compressor
        assert plugins.get_plugin_context_engine() is shared
        assert shared not in (first, second)
        first.update_model("small", 64_000)
        assert first is not second
        assert (first.threshold_tokens, second.threshold_tokens) == (32_000, 100_000)

    def test_not_chosen(self, home: Path, agent: Callable[[], Any]) -> None:
        (home / "config.yaml").write_text("plugins: {enabled: [compaction]}\n")
        assert not isinstance(agent().context_compressor, CompactionEngine)


class TestContract:
    """The contract of Hermes' documents and its base class."""

    @pytest.fixture
    def engine(self) -> Any:
        return engine_class()(context_length=200_000, counter="chars/4")

    def test_is_an_engine(self, engine: Any) -> None:
        """It is an instance of Hermes' class, and overrides every abstract method."""
        assert is_ours(engine)
        with pytest.raises(TypeError):
            ContextEngine()  # type: ignore[abstract]

    def test_every_method_of_the_base(self, engine: Any) -> None:
        known = {name for name in vars(ContextEngine) if not name.startswith("_")}
        assert known - {name for kind in CompactionEngine.__mro__ for name in vars(kind)} - set(vars(engine)) == set()

    def test_arguments_of_compress(self, engine: Any) -> None:
        from agent.conversation_compression import _supported_compression_kwargs

        passed = _supported_compression_kwargs(
            engine.compress, current_tokens=1, focus_topic="x", force=True, memory_context="memory"
        )
        assert set(passed) == {"current_tokens", "focus_topic", "force"}


@pytest.mark.parametrize("provider", ["nous", "anthropic", "custom"])
def test_a_provider_that_hermes_knows(
    provider: str, home: Path, loaded: Callable[[], Any], coding: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plugin loads, and its summaries come from Hermes' own client for that provider."""
    auxiliary = f"auxiliary:\n  compression:\n    provider: {provider}\n    model: small\n"
    (home / "config.yaml").write_text(CONFIG.format(store=home / "store.db", threshold=0.5) + auxiliary)
    asked: list[dict[str, Any]] = []

    def call_llm(**options: Any) -> Any:
        asked.append(options)
        text = "## Goal\nFind the time-outs.\n\n## Next Steps\nRead the handler.\n\n## Critical Context\nPort 9090."
        message = SimpleNamespace(content=text)
        return SimpleNamespace(choices=[SimpleNamespace(message=message)])

    monkeypatch.setattr("agent.auxiliary_client.call_llm", call_llm)
    engine = loaded()
    assert "Find the time-outs." in str(engine.compress(coding))
    assert {(each["provider"], each["model"]) for each in asked} == {(provider, "small")}


def test_every_provider_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each provider that Hermes knows, by any of its names, writes the summaries: Hermes' client, or ours for three of them."""
    from hermes_cli.auth import PROVIDER_REGISTRY
    from hermes_cli.models import _PROVIDER_ALIASES

    answer = SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content="Find the time-outs."))])
    asked: list[str] = []
    monkeypatch.setattr("agent.auxiliary_client.call_llm", lambda *, provider, **_: asked.append(provider) or answer)
    monkeypatch.setenv("OPENROUTER_API_KEY", "none")
    ours, names = (
        {"auto", "main", "openrouter"},
        {*PROVIDER_REGISTRY, *_PROVIDER_ALIASES, "auto", "custom", "main", "openrouter"},
    )
    for name in sorted(names):
        settings = EngineSettings.from_config({"auxiliary": {"compression": {"provider": name, "model": "small"}}})
        summarizer = settings.summarizer(MainModel("large", "http://127.0.0.1:9/v1", "none"))
        if isinstance(summarizer, GeneratorSummarizer):
            assert summarizer.model.generate("Summarize.") == "Find the time-outs."
        else:
            assert isinstance(summarizer, OpenAISummarizer)
    assert asked == sorted(names - ours)
    assert len(asked) > 20

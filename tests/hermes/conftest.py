"""Real Hermes Agent, with its home in the test's folder; ``make test-hermes`` builds the environment of these tests."""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# Hermes reads its home, and writes logs there, as soon as it is imported.
os.environ["HERMES_HOME"] = tempfile.mkdtemp(prefix="hermes-home-")

ROOT = Path(__file__).resolve().parents[2]
CONFIG = """
plugins:
  enabled: [compaction]
context:
  engine: compaction
  store: {store}
compression:
  threshold: {threshold}
  target_ratio: 0.2
  protect_last_n: 6
"""


@pytest.fixture
def configured(home: Path) -> Callable[[float], None]:
    """Write Hermes' configuration: the plugin, a store, and this threshold."""

    def write(threshold: float) -> None:
        (home / "config.yaml").write_text(CONFIG.format(store=home / "store.db", threshold=threshold))

    return write


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "hermes"
    folder.mkdir()
    (folder / "config.yaml").write_text(CONFIG.format(store=folder / "store.db", threshold=0.5))
    monkeypatch.setenv("HERMES_HOME", str(folder))
    return folder


@pytest.fixture
def loaded(home: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """Have Hermes search for plugins again, and return the registered engine, if any."""
    from hermes_cli import plugins

    def load() -> Any:
        manager = plugins.PluginManager()
        monkeypatch.setattr(plugins, "_plugin_manager", manager)
        manager.discover_and_load()
        return manager._context_engine

    return load


@pytest.fixture
def agent(loaded: Callable[[], Any]) -> Callable[..., Any]:
    """Return a function that creates a real agent with the engine of ``config.yaml``; nothing is sent anywhere."""
    from run_agent import AIAgent

    def make(*, fresh: bool = True, **options: Any) -> Any:
        if fresh:
            loaded()
        quiet = {"quiet_mode": True, "skip_memory": True, "skip_context_files": True}
        model = {"model": "anthropic/claude-sonnet-4", "api_key": "none", "base_url": "http://127.0.0.1:9/v1"}
        return AIAgent(**{**model, **quiet, **options})

    return make


@pytest.fixture(scope="session")
def recorded() -> list[dict[str, Any]]:
    """Return a recorded coding session of 668 messages."""
    file = ROOT.parent / "shared" / "corpus" / "dev" / "coding_long.jsonl.gz"
    if not file.is_file():
        pytest.skip("the recorded conversations are not beside this checkout (../shared/corpus/dev)")
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        messages: list[dict[str, Any]] = max((json.loads(line)["messages"] for line in lines), key=len)
    return messages


@pytest.fixture(scope="session")
def coding(recorded: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return its first 300 messages, and those that complete them."""
    return recorded[: next(place for place in range(300, len(recorded)) if recorded[place]["role"] == "user")]

"""The parts that every test shares: the recorded conversations, both async backends, how hard Hypothesis looks."""

from __future__ import annotations

import gc
import gzip
import json
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

ROOT = Path(__file__).resolve().parent.parent
_NO_CORPUS = "the recorded conversations are not beside this checkout (../shared/corpus/dev)"

pytest.register_assert_rewrite("tests.support.rulebook")  # what it expects is shown like a test's own

settings.register_profile(
    "ci", derandomize=True, max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)  # no test depends on how busy the machine is
settings.register_profile("quick", settings.get_profile("ci"), phases=[Phase.explicit, Phase.generate])  # no shrinking
settings.register_profile("nightly", max_examples=2_000, deadline=None, print_blob=True)
settings.load_profile("ci")  # another one: pytest --hypothesis-profile=nightly


@pytest.fixture(scope="module", params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """An async test runs once on each backend; the frameworks' environments have no trio."""
    pytest.importorskip(request.param)
    return str(request.param)


@pytest.fixture(scope="session")
def corpus_dir() -> Path:
    """The folder of recorded conversations, which stands beside the repository and is no part of it."""
    folder = ROOT.parent / "shared" / "corpus" / "dev"
    if not folder.is_dir():
        pytest.skip(_NO_CORPUS)
    return folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need the recorded conversations, so that they can run alone: ``-m corpus``."""
    for item in items:
        if "corpus_dir" in getattr(item, "fixturenames", ()):
            item.add_marker("corpus")


def pytest_collection_finish() -> None:
    """Take what the collected tests hold, which lives to the end, out of the garbage collector's rounds."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Give every skip for the missing corpus one place, so that the summary shows them as one line."""
    report = yield
    if isinstance(report.longrepr, tuple) and report.longrepr[2].endswith(_NO_CORPUS):
        report.longrepr = (__file__, 1, report.longrepr[2])
    return report


@pytest.fixture(scope="session")
def corpus(corpus_dir: Path) -> Callable[[str], list[dict[str, Any]]]:
    """``corpus("tau_airline")``: that file's conversations, read anew on each call, each ``{id, source, messages}``."""

    def conversations(name: str) -> list[dict[str, Any]]:
        with gzip.open(corpus_dir / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    return conversations


@pytest.fixture(autouse=True)
def no_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test runner may say how wide its own terminal is; reports written by tests go elsewhere."""
    monkeypatch.delenv("COLUMNS", raising=False)

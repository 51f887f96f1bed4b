"""The wordings of the retention benchmark: complete, different in both sets, and frozen where they are used to judge."""

from __future__ import annotations

import hashlib
import tomllib

import pytest

from benchmarks.retention.wording import FOLDER, LANGUAGES, likeness, load, problems, skeleton

JUDGING = FOLDER / "judging"
FROZEN = FOLDER.parent / "frozen.toml"
LIKE = 0.6

language = pytest.mark.parametrize("language", LANGUAGES)


@pytest.fixture
def judging(language: str) -> str:
    """Return the language if its judging wordings exist, else skip the test."""
    path = JUDGING / f"{language}.toml"
    if not path.is_file():
        pytest.skip(f"wordings/judging/{language}.toml has not been written yet")
    return language


@language
def test_wordings_for_development_are_complete(language: str) -> None:
    """The development wordings have the minimum of each kind, and each text has the marks and slots that its kind needs."""
    assert problems(load("dev", language)) == []


@language
def test_wordings_for_judging_are_complete(judging: str) -> None:
    assert problems(load("judging", judging)) == []


@language
def test_no_wording_is_in_both_sets(judging: str) -> None:
    """No judging wording is equal or nearly equal to a development wording, which was seen while tuning."""
    seen = [skeleton(texts) for each in load("dev", judging).kinds.values() for texts in each]
    written = [texts for each in load("judging", judging).kinds.values() for texts in each]
    assert [texts for texts in written if any(likeness(skeleton(texts), other) > LIKE for other in seen)] == []


@language
def test_wordings_for_judging_are_frozen(judging: str) -> None:
    """The judging wordings have the hashes in ``frozen.toml``: they did not change since the figures were measured."""
    frozen = tomllib.loads(FROZEN.read_text("utf-8"))["judging"]
    assert hashlib.sha256((JUDGING / f"{judging}.toml").read_bytes()).hexdigest() == frozen.get(judging)


def test_all_frozen_wordings_exist() -> None:
    frozen = tomllib.loads(FROZEN.read_text("utf-8"))["judging"]
    assert [name for name in frozen if not (JUDGING / f"{name}.toml").is_file()] == []

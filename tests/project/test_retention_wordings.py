"""The wordings of the retention benchmark: complete, apart from each other, and frozen where they judge."""

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
    """The file of wordings that judge, where it has been written."""
    path = JUDGING / f"{language}.toml"
    if not path.is_file():
        pytest.skip(f"wordings/judging/{language}.toml has not been written yet")
    return language


@language
def test_wordings_for_development_are_complete(language: str) -> None:
    """Each kind has its minimum, and each text has the marks and slots that its kind needs."""
    assert problems(load("dev", language)) == []


@language
def test_wordings_for_judging_are_complete(judging: str) -> None:
    """The same rules hold for both sets."""
    assert problems(load("judging", judging)) == []


@language
def test_no_wording_is_in_both_sets(judging: str) -> None:
    """Nor is one nearly the same as one of the other set: what was seen while tuning must not judge."""
    seen = [skeleton(texts) for each in load("dev", judging).kinds.values() for texts in each]
    alike = [
        texts
        for each in load("judging", judging).kinds.values()
        for texts in each
        if any(likeness(skeleton(texts), other) > LIKE for other in seen)
    ]
    assert alike == []


@language
def test_wordings_for_judging_are_frozen(judging: str) -> None:
    """A file that changed after the figures were taken is another benchmark."""
    frozen = tomllib.loads(FROZEN.read_text("utf-8"))["judging"]
    assert hashlib.sha256((JUDGING / f"{judging}.toml").read_bytes()).hexdigest() == frozen.get(judging)


def test_all_frozen_wordings_exist() -> None:
    """None of them was removed."""
    frozen = tomllib.loads(FROZEN.read_text("utf-8"))["judging"]
    assert [name for name in frozen if not (JUDGING / f"{name}.toml").is_file()] == []

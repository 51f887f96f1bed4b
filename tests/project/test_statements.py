"""The examples of statements: every kind in every language, enough of them, none twice, and none that judges."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

STATEMENTS = Path(__file__).parents[2] / "benchmarks" / "statements"
KINDS = (
    *("rule", "prohibition", "preference", "fact", "value", "change", "decision", "task", "request", "question"),
    *("others_rule", "hypothetical", "small_talk", "acknowledgement", "program"),
)
LANGUAGES = sorted(path.name for path in (STATEMENTS / "examples").iterdir())
JUDGING = sorted((STATEMENTS / "judging").glob("*.tsv"))


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_kind_has_its_examples(language: str) -> None:
    """Each language has at least 150 ideas of each kind, English 400; no line is empty or stands twice in its file."""
    least = 400 if language == "en" else 150
    for kind in KINDS:
        found = lines(STATEMENTS / "examples" / language / f"{kind}.txt")
        assert sum(not line.startswith("  ") for line in found) >= least
        assert [line for line, count in Counter(map(str.strip, found)).items() if count > 1 or not line] == []


@pytest.mark.parametrize("path", JUDGING, ids=lambda path: path.stem)
def test_what_judges_trains_nothing(path: Path) -> None:
    """Each kind has ten sentences, and none of them is an example."""
    judging = [line.split("\t") for line in lines(path)]
    assert Counter(kind for kind, _ in judging) == dict.fromkeys(KINDS, 10)
    folder = STATEMENTS / "examples" / path.stem
    known = {line.strip().casefold() for example in folder.glob("*.txt") for line in lines(example)}
    assert [sentence for _, sentence in judging if sentence.strip().casefold() in known] == []

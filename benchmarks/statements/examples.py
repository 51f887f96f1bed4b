"""The examples to train with, and the sentences that judge."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs

from benchmarks.retention.wording import CHANGED, LANGUAGES, fill, load
from compaction.summarizers.extractive.classifier import KINDS
from compaction.summarizers.extractive.sentences import sentences

FOLDER: Final = Path(__file__).parent
JUDGING: Final = FOLDER / "judging"
UNSEEN: Final = JUDGING / "unseen"
"""More sentences that judge, in languages that had no examples when they were written."""

RULES: Final = ("rule", "prohibition")
KEPT: Final = (*RULES, "preference", "fact", "value", "change", "decision", "task")
"""The kinds that are worth keeping."""


@attrs.frozen
class Example:
    """A sentence with its language and its kind.

    Args:
        text: The sentence.
        kind: One of `KINDS`.
        language: The code of the language.
    """

    text: str
    kind: str
    language: str


def examples(folder: Path = FOLDER / "examples") -> Iterator[Example]:
    """Yield the examples, each wording of an idea by itself."""
    for language in sorted(path.name for path in folder.iterdir()):
        for kind in KINDS:
            for line in (folder / language / f"{kind}.txt").read_text("utf-8").splitlines():
                yield Example(line.strip(), kind, language)


def judging(folder: Path = JUDGING) -> Iterator[Example]:
    """Yield the sentences that judge."""
    for path in sorted(folder.glob("*.tsv")):
        for line in path.read_text("utf-8").splitlines():
            kind, text = line.split("\t")
            yield Example(text, kind, path.stem)


_SEED: Final = 0
_WORDINGS: Final = {
    **{kind: kind for kind in ("prohibition", "preference", "fact", "value", "decision", "task", "hypothetical")},
    "rule": "rule",
    "chatter": "small_talk",
    "quoted_rule": "others_rule",
    **dict.fromkeys(CHANGED, "change"),
}


def wordings() -> Iterator[Example]:
    """Yield the wordings for development of the retention benchmark, filled; of a rule of two sentences the second.

    The first wording of a value that changes is a value.
    """
    rng = random.Random(_SEED)
    for language in LANGUAGES:
        known = load("dev", language)
        for kind, ours in _WORDINGS.items():
            for texts in known.kinds[kind]:
                for place, said in enumerate(fill(texts, known.pools, rng)):
                    *_, last = sentences(said.text)
                    yield Example(last, "value" if ours == "change" and not place else ours, language)

"""Counters by name, as far as they need no vocabulary; test_exact.py tests the vocabularies."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

from compaction.errors import ConfigurationError, UnknownCounter
from compaction.tokens import CharsPerToken, TokenCounter, counter

ROOT = Path(__file__).resolve().parents[3]
WORDS = ["chars/4", "bytes/4", "estimate"]


@attrs.frozen
class Words:
    name: str = "words"
    exact: bool = True

    def count_text(self, text: str) -> int:
        return len(text.split())


@pytest.mark.parametrize("spec", WORDS)
def test_a_counter_is_named_by_its_word(spec: str) -> None:
    assert counter(counter(spec).name) is counter(spec)


def test_an_own_counter_is_taken_as_it_is() -> None:
    words = Words()
    assert counter(words) is words


@pytest.mark.parametrize("spec", [None, 4, len, object()])
def test_what_is_no_counter_is_refused(spec: Any) -> None:
    with pytest.raises(UnknownCounter, match="'name', 'exact' and 'count_text"):
        counter(spec)


def test_a_class_of_counters_is_no_counter() -> None:
    with pytest.raises(ConfigurationError, match=r"CharsPerToken\(\.\.\.\)"):
        counter(CharsPerToken)  # type: ignore[arg-type]


@pytest.mark.parametrize("spec", ["claude-sonnet-4-5", "words", ""])
def test_an_unknown_word_is_refused(spec: str) -> None:
    """An unknown name, or a model without a published tokenizer, raises an `UnknownCounter` that lists the known names."""
    with pytest.raises(UnknownCounter, match=r"o200k_base, .* use 'auto' or 'estimate'"):
        counter(spec)


@pytest.mark.parametrize("original", [*(counter(word) for word in WORDS), Words()], ids=lambda each: each.name)
def test_pickles_by_what_it_is(original: TokenCounter) -> None:
    original.count_text("something to remember " * 100)
    pickled = pickle.dumps(original)
    assert len(pickled) < 200
    assert pickle.loads(pickled) == original


def test_an_estimate_loads_no_tokenizer() -> None:
    program = (
        f"import sys; from compaction.tokens import counter; [counter(each).count_text('x') for each in {WORDS}];"
        "print({'tiktoken', 'toktok'} & set(sys.modules) or 'none')"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("none\n", "")

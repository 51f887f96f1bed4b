"""From a word to a counter, for what every machine has; the vocabularies are in test_tokens_exact.py."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

from compaction.errors import UnknownCounter
from compaction.tokens import BytesPerToken, CharsPerToken, Memoized, TokenCounter, counter

ROOT = Path(__file__).resolve().parents[3]
WORDS = ["chars/4", "bytes/4", "estimate"]


@attrs.frozen
class Words:
    """Someone's own counter."""

    name: str = "words"
    exact: bool = True

    def count_text(self, text: str) -> int:
        return len(text.split())


def test_ratios() -> None:
    """The two ratios, by the names the seeds of this field know them by."""
    assert (counter("chars/4"), counter("bytes/4")) == (CharsPerToken(), BytesPerToken())


@pytest.mark.parametrize("spec", WORDS)
def test_a_counter_is_named_by_its_word(spec: str) -> None:
    """The name leads back to the counter."""
    assert counter(counter(spec).name) is counter(spec)


@pytest.mark.parametrize(("spec", "remembers"), [("chars/4", False), ("bytes/4", False), ("estimate", True)])
def test_remembers_what_costs_more_than_remembering(spec: str, remembers: bool) -> None:
    """Dividing a length is cheaper than looking it up."""
    assert isinstance(counter(spec), Memoized) == remembers


def test_an_own_counter_is_taken_as_it_is() -> None:
    """Any object of the protocol is a counter."""
    words = Words()
    assert counter(words) is words


@pytest.mark.parametrize("spec", [None, 4, len, object()])
def test_what_is_no_counter_is_refused(spec: Any) -> None:
    """The error names the three members a counter has."""
    with pytest.raises(UnknownCounter, match="'name', 'exact' and 'count_text"):
        counter(spec)


@pytest.mark.parametrize("spec", ["claude-sonnet-4-5", "words", ""])
def test_an_unknown_word_is_refused(spec: str) -> None:
    """A model whose tokenizer is not published gets no other one's counts; the error lists what there is."""
    with pytest.raises(UnknownCounter, match=r"o200k_base, .* use 'auto' or 'estimate'"):
        counter(spec)


@pytest.mark.parametrize("original", [*(counter(word) for word in WORDS), Words()], ids=lambda each: each.name)
def test_pickles_by_what_it_is(original: TokenCounter) -> None:
    """A named counter is the process's own wherever it arrives; memory does not travel."""
    original.count_text("something to remember " * 100)
    pickled = pickle.dumps(original)
    assert len(pickled) < 200
    assert pickle.loads(pickled) == original


def test_importing_loads_no_tokenizer() -> None:
    """The tokenizers load when a counter needs them, not when the package is imported."""
    program = "import compaction.tokens, sys; print({'tiktoken', 'toktok'} & set(sys.modules) or 'none')"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("none\n", "")


@pytest.mark.parametrize("spec", WORDS)
def test_an_estimate_loads_no_tokenizer(spec: str) -> None:
    """Asking for an estimate costs no second of loading."""
    program = (
        f"import sys; from compaction.tokens import counter; counter({spec!r}).count_text('x'); print('toktok' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("False\n", "")

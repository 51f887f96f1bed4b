"""Search for whole strings and verbatim spans in recorded texts, by an index."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.replay.text_search import SPAN_CHARACTERS, SpanIndex, TextSearch, occurs_in, search_keys, spans_in

pieces = st.lists(
    st.sampled_from(["app.py", "src/", "30", "2030", "user_id", "_2", " ", ".", ",", "설정은", "파일", "x", "é", "-", "\n"]),
    max_size=12,
).map("".join)


@pytest.mark.parametrize(
    ("string", "text", "expected"),
    [
        ("30", "in 30 days", True),
        ("30", "in 2030", False),
        ("30", "3.30 of", False),
        ("30", "30, 31", True),
        ("30", "it is 30.", True),
        ("user_id", "user_id_2", False),
        ("user_id", "(user_id)", True),
        ("app.py", "src/app.py", True),
        ("app.py", "mapp.py", False),
        ("config.yaml", "config.yaml에", True),
        ("mapp.py app.py", "mapp.py app.py", True),
        ("30", "2030 and 30", True),
    ],
)
def test_a_string_occurs_by_itself(string: str, text: str, expected: bool) -> None:
    """A string inside a longer word or number is not found, but a later one is; a Korean particle may follow a word."""
    assert occurs_in(string, text) is expected


@given(st.lists(pieces, max_size=6), pieces.filter(bool))
def test_the_index_finds_what_reading_finds(texts: list[str], string: str) -> None:
    assert TextSearch(texts).places_of(string) == tuple(at for at, text in enumerate(texts) if occurs_in(string, text))


@given(pieces, pieces.filter(bool))
def test_what_occurs_in_a_text_shares_its_keys(text: str, string: str) -> None:
    """Search keys exclude only texts that do not contain the string."""
    if occurs_in(string, text):
        assert search_keys(string) <= search_keys(text)


@given(st.text(alphabet="ab1 ./", max_size=60))
def test_spans_are_twelve_solid_characters(text: str) -> None:
    """A span is any twelve characters in a row with at least six letters or digits."""
    stretches = [text[at : at + SPAN_CHARACTERS] for at in range(len(text) - SPAN_CHARACTERS + 1)]
    assert list(spans_in(text)) == [each for each in stretches if sum(map(str.isalnum, each)) >= 6]


def test_the_span_index_knows_only_the_spans_of_answers() -> None:
    """Other spans take no memory; a span of an answer is found in every text."""
    texts = ["the quick brown fox", "jumped over it all", "quick brown fox!"]
    index = SpanIndex(texts, [2])
    assert index.spans_of_answer(2)["quick brown "] == [0, 2]
    assert index.known_spans("jumped over it all") == set()

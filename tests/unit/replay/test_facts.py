"""Facts are extracted from the recorded answer alone, by patterns that do not depend on how a summary is written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.formats import openai_chat
from compaction.replay.facts import NeededFactKind, answer_facts, flat_text, long_words_in, strings_in
from tests.support.chats import assistant, call, result


def kinds_in(text: str) -> dict[str, str]:
    return {fact: kind.value for fact, kind in answer_facts(openai_chat.read(assistant(text))).items()}


@pytest.mark.parametrize(
    ("text", "fact", "kind"),
    [
        ("see https://x.org/a?b=1, then", "https://x.org/a?b=1", "url"),
        ("open src/app.py.", "src/app.py", "path"),
        ("in /etc/hosts now", "/etc/hosts", "path"),
        ("edit setup.cfg first", "setup.cfg", "path"),
        ("mail a.b@x.org soon", "a.b@x.org", "id"),
        ("flight HAT083 left", "HAT083", "id"),
        ("user mia_li_3668 paid", "mia_li_3668", "id"),
        ("on 2024-05-16 it", "2024-05-16", "number"),
        ("costs 1,234.50 now", "1,234.50", "number"),
        ("call retry_limit once", "retry_limit", "identifier"),
        ("the readFile helper", "readFile", "identifier"),
        ("pass --dry-run here", "--dry-run", "identifier"),
        ('it says "too low" again', "too low", "quoted"),
        ("run `make all` now", "make all", "quoted"),
    ],
)
def test_kinds_of_facts(text: str, fact: str, kind: str) -> None:
    """Each kind of fact is found in prose, without the punctuation around it."""
    assert kinds_in(text)[fact] == kind


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("Let us look at 3 of the files, and then decide.", {}),
        ("https://x.org/issues/4593/snake_case", {"https://x.org/issues/4593/snake_case": "url"}),
        ("`make all` or `make test`", {"make all": "quoted", "make test": "quoted"}),
    ],
    ids=["plain words", "parts of a link", "between quotations"],
)
def test_what_is_not_a_fact(text: str, facts: dict[str, str]) -> None:
    """Plain words and digits, which can be guessed; the parts of a link or a path; and the text between two quotations."""
    assert kinds_in(text) == facts


@pytest.mark.parametrize(
    ("message", "facts"),
    [
        (
            call("c1", arguments=json.dumps({"reservation_id": "4WQ150", "note": "window seat", "n": 7})),
            {"4WQ150": NeededFactKind.ID, "window seat": NeededFactKind.QUOTED},
        ),
        (call("c1", arguments='{"path": "src/app.py'), {"src/app.py": NeededFactKind.PATH, "path": NeededFactKind.QUOTED}),
        ({"role": "assistant", "content": "done", "reasoning_content": "src/app.py?"}, {}),
    ],
    ids=["values of arguments, not their names", "arguments that are not JSON", "no reasoning"],
)
def test_facts_come_from_what_the_model_did(message: Any, facts: dict[str, NeededFactKind]) -> None:
    """One recorded call in a thousand has broken arguments, which are read as text."""
    assert answer_facts(openai_chat.read(message)) == facts


def test_flat_text_reads_arguments_as_the_tool_gets_them() -> None:
    """An escaped line end in JSON is a line end, and white space counts as one blank."""
    answer = openai_chat.read(call("c1", name="write", arguments='{"text": "one\\n  two"}', text="Now:"))
    assert flat_text(answer) == "Now: write text one two"
    assert flat_text(openai_chat.read(result("c1", "a\n\tb"))) == "a b"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_any_json_can_be_argument(value: object) -> None:
    """Arguments of any shape are read without an exception, every string in them."""
    strings = strings_in(json.dumps(value))
    assert all(isinstance(string, str) for string in strings)
    if isinstance(value, dict):
        assert set(value) <= set(strings)


@given(st.text(max_size=200))
def test_facts_occur_in_the_answer(text: str) -> None:
    answer = openai_chat.read(assistant(text))
    assert [fact for fact in answer_facts(answer) if fact not in flat_text(answer)] == []


def test_long_words_are_whole_words() -> None:
    """A part of an identifier is not a word."""
    assert long_words_in("frobnicate user_quokka quokka2 quokkas; tiny") == {"frobnicate", "quokkas"}

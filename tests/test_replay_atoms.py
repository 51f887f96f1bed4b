"""What an action needs is read from the action alone, by patterns that know no summary's dialect."""

from __future__ import annotations

import json

import pytest
from chats import assistant, call, result
from hypothesis import given
from hypothesis import strategies as st

from compaction.formats import openai_chat
from compaction.replay.atoms import AtomKind, atoms_of, rare_words_of, spoken, strings_in


def kinds_in(text: str) -> dict[str, str]:
    """The atoms of an answer, each with its kind's name."""
    return {atom: kind.value for atom, kind in atoms_of(openai_chat.read(assistant(text))).items()}


@pytest.mark.parametrize(
    ("text", "atom", "kind"),
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
def test_kinds_of_atoms(text: str, atom: str, kind: str) -> None:
    """Each kind of atom is found where it stands in prose, without the punctuation around it."""
    assert kinds_in(text)[atom] == kind


def test_plain_words_are_no_atoms() -> None:
    """Words and single digits can be guessed."""
    assert kinds_in("Let us look at 3 of the files, and then decide.") == {}


def test_what_a_link_holds_is_counted_once() -> None:
    """The numbers and names inside a link or a path are part of it, not atoms beside it."""
    assert kinds_in("https://x.org/issues/4593/snake_case") == {"https://x.org/issues/4593/snake_case": "url"}


def test_a_quotation_ends_where_it_closes() -> None:
    """What stands between two quotations is not one."""
    assert kinds_in("`make all` or `make test`") == {"make all": "quoted", "make test": "quoted"}


def test_argument_values_count_and_their_names_do_not() -> None:
    """The schema gives a parameter's name; the value is what the agent had to know."""
    action = openai_chat.read(call("c1", arguments=json.dumps({"reservation_id": "4WQ150", "note": "window seat", "n": 7})))
    assert atoms_of(action) == {"4WQ150": AtomKind.ID, "window seat": AtomKind.QUOTED}


def test_arguments_that_are_no_json_are_read_as_text() -> None:
    """One recorded call in a thousand has broken arguments; its atoms are still atoms."""
    atoms = atoms_of(openai_chat.read(call("c1", arguments='{"path": "src/app.py')))
    assert atoms == {"src/app.py": AtomKind.PATH, "path": AtomKind.QUOTED}


def test_reasoning_is_no_action() -> None:
    """What the model thought and did not do needs nothing."""
    assert atoms_of(openai_chat.read({"role": "assistant", "content": "done", "reasoning_content": "src/app.py?"})) == {}


def test_spoken_reads_arguments_as_the_tool_gets_them() -> None:
    """An escaped line end in JSON is a line end, and white space counts as one blank."""
    action = openai_chat.read(call("c1", name="write", arguments='{"text": "one\\n  two"}', text="Now:"))
    assert spoken(action) == "Now: write text one two"
    assert spoken(openai_chat.read(result("c1", "a\n\tb"))) == "a b"


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
def test_atoms_stand_in_the_action(text: str) -> None:
    """No atom is made up: each stands in the action as it is searched for."""
    action = openai_chat.read(assistant(text))
    assert [atom for atom in atoms_of(action) if atom not in spoken(action)] == []


def test_rare_words_are_whole_words() -> None:
    """A part of an identifier is no word."""
    assert rare_words_of("frobnicate user_quokka quokka2 quokkas; tiny") == {"frobnicate", "quokkas"}

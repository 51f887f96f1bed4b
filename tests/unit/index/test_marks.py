"""The mark on what this package wrote: found again by another process, and not found where the text was changed."""

from __future__ import annotations

import pytest

from compaction.errors import ConfigurationError
from compaction.formats import openai_chat
from compaction.index.marks import Mark, marked, read_mark
from tests.support.chats import said, thought


def read(text: str, role: str = "user") -> Mark | None:
    """The mark of a chat message with that text."""
    return read_mark(openai_chat.read(said(role, text)))


@pytest.mark.parametrize("role", ["user", "assistant", "system"])
def test_a_marked_text_is_recognized_in_any_role(role: str) -> None:
    """Who wrote it, in which round, and the text without the mark."""
    text = marked("The user wants tea.", by="Summarization", round=3)
    mark = read(text, role)
    assert mark is not None
    assert (mark.by, mark.round, mark.body) == ("Summarization", 3, "The user wants tea.")
    assert text == f"[compaction {mark.id} by Summarization round 3]\nThe user wants tea."


@pytest.mark.parametrize("body", ["", "한국어 요약", "a\nb\n\nc", "\ud800 alone", "[compaction 3a70adca by X round 1]\nnested"])
def test_any_body_can_be_marked(body: str) -> None:
    """Every script, empty texts, lone surrogates, and a text that holds a mark itself."""
    mark = read(marked(body, by="X"))
    assert mark is not None
    assert mark.body == body


@pytest.mark.parametrize(
    "edited",
    [
        "[compaction 3a70adca by Summarization round 1]\nThe user wants coffee.",
        "[compaction 3a70adcb by Summarization round 1]\nThe user wants tea.",
        "[compaction 3a70adca by Summarization round 2]\nThe user wants tea.",
        "[compaction 3a70adca by Somebody round 1]\nThe user wants tea.",
        "[compaction 3a70adca by Summarization round 0]\nThe user wants tea.",
        "[compaction 3a70adca by Summarization round 1] The user wants tea.",
        " [compaction 3a70adca by Summarization round 1]\nThe user wants tea.",
        "Look: [compaction 3a70adca by Summarization round 1]\nThe user wants tea.",
        "[compaction whatever",
        "[compaction 3a70adca by Summarization round 1]",
        "",
    ],
)
def test_an_edited_mark_is_no_mark(edited: str) -> None:
    """A digest that does not fit, or a line that is not exactly ours, makes an ordinary message."""
    assert read("[compaction 3a70adca by Summarization round 1]\nThe user wants tea.") is not None
    assert read(edited) is None


def test_space_around_the_body_does_not_matter() -> None:
    """Stores and servers strip texts; the mark survives that."""
    text = marked("\n  The user wants tea.  \n", by="X")
    mark = read(text.rstrip())
    assert mark is not None
    assert mark.body == "\n  The user wants tea."


def test_the_mark_stands_in_the_first_text() -> None:
    """Reasoning before it does not hide it; a mark in a later part does not count, and a message without text has none."""
    text = marked("sum", by="X")
    assert read_mark(openai_chat.read({**thought(), "content": text})) is not None
    parts = [{"type": "text", "text": "see"}, {"type": "text", "text": text}]
    assert read_mark(openai_chat.read({"role": "user", "content": parts})) is None
    assert read_mark(openai_chat.read(thought())) is None


def test_different_texts_have_different_marks() -> None:
    """The id is a digest of body, name and round, so two summaries are never taken for one."""
    ids = {
        text.split()[1]
        for text in (marked("a", by="X"), marked("b", by="X"), marked("a", by="Y"), marked("a", by="X", round=2))
    }
    assert len(ids) == 4


@pytest.mark.parametrize(("by", "round"), [("two words", 1), ("", 1), ("1st", 1), ("x" * 65, 1), ("X", 0), ("X", 1_000_000)])
def test_a_mark_that_could_not_be_read_is_not_written(by: str, round: int) -> None:
    """A name or round of another shape is an error at once, not a summary that nobody recognizes."""
    with pytest.raises(ConfigurationError, match="would not be recognized"):
        marked("body", by=by, round=round)

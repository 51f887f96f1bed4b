"""Edits that are undone because of messages that came later: which of them, and which stay."""

from __future__ import annotations

from typing import Any

import pytest

from compaction import Drop, MessageIndex, Rewrite
from compaction.formats import Side
from tests.support.letters import Letters

ROLES = {"s": "system", "u": "user", "v": "user"}


def index_of(letters: str, forbidden: dict[str, Side]) -> MessageIndex:
    """A message for each letter, in a format that forbids these pairs; ``-`` is the start. A call ``c`` waits for a result."""
    messages: list[dict[str, Any]] = [
        {"role": ROLES.get(letter, "assistant"), "text": f"{letter}{at} word word word"}
        | ({"calls": ["k"]} if letter == "c" else {})
        for at, letter in enumerate(letters)
    ]
    rules: dict[tuple[str, str], tuple[str, Side]] = {
        (pair[0].replace("-", ""), pair[1]): ("rule", side) for pair, side in forbidden.items()
    }
    return MessageIndex(messages, counter="chars/4", format=Letters(rules))


RESULT = {"role": "tool", "text": "r", "answers": "k"}


def test_several_are_undone_one_after_another() -> None:
    """One beside the new result, then one beside the call that it brought back, which comes first of all."""
    index = index_of("cbvau", {"cv": "after", "vr": "after"})
    edits = [Drop(0), Drop(1), Rewrite(4, [index.format.new("user", "v")])]
    assert all(index.apply(edit) for edit in edits)
    index.append([RESULT])
    assert index.undone == (edits[2], edits[1])
    assert index.included_ids == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("letters", "pair", "side", "more"),
    [
        ("v", "vu", "before", "u"),
        ("sv", "vu", "before", "u"),
        ("av", "vu", "both", "u"),
        ("s", "-a", "after", "a"),
        ("s", "-a", "both", "a"),
        ("ss", "-a", "both", "a"),
    ],
)
def test_what_is_wrong_in_the_source_too_undoes_nothing(letters: str, pair: str, side: Side, more: str) -> None:
    """The message that was rewritten is blamed by the same rule there, with the neighbours it has there."""
    index = index_of(letters, {pair: side})
    last = len(letters) - 1
    edit = Rewrite(last, [index.format.new(ROLES.get(letters[-1], "assistant"), letters[-1])])
    assert index.apply(edit)
    index.append([{"role": ROLES.get(more, "assistant"), "text": more}])
    assert (index.edits, index.undone) == ((edit,), ())

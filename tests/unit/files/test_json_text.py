"""Lists inside JSON texts are replaced, and everything else keeps its bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compaction.files import replace_list

TEXT = b'{"n": 1.50, "contents":[{"a":1},  {"a":2.0}, {"a":3}], "inner": {"x": [0], "list" :[ {"b": "\\u00e9"} ]}}\n'


@pytest.mark.parametrize(
    ("path", "change", "expected"),
    [
        (["contents"], lambda old: old[1:], TEXT.replace(b'{"a":1},  {"a":2.0}, {"a":3}', b'{"a":2.0},  {"a":3}')),
        (["contents"], lambda old: [old[2], old[0]], TEXT.replace(b'{"a":1},  {"a":2.0}, {"a":3}', b'{"a":3},  {"a":1}')),
        (
            ["contents"],
            lambda old: [{"a": 2.0}, *old[1:]],
            TEXT.replace(b'{"a":1},  {"a":2.0}, {"a":3}', b'{"a":2.0},  {"a":2.0},  {"a":3}'),
        ),
        (["contents"], lambda _: [], TEXT.replace(b'[{"a":1},  {"a":2.0}, {"a":3}]', b"[]")),
        (["inner", "list"], lambda _: [{"b": "ü"}], TEXT.replace(b"u00e9", b"u00fc")),
        (["inner", "list"], list, TEXT),
    ],
    ids=["dropped", "other order", "an equal value is new", "none", "in an object", "unchanged"],
)
def test_the_rest_of_the_text_stays(path: list[str], change: Any, expected: bytes) -> None:
    """Only the list changes, and elements that were in it before keep their own bytes."""
    old: Any = json.loads(TEXT)
    for key in path:
        old = old[key]
    assert replace_list(TEXT, old, change(old), path) == expected


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (b'{"messages": [1], "messages": [1]}', ["messages"]),
        (b'{"messages": [1, 2]}', ["messages"]),
        (b'{"a": [1]}', ["a", "b"]),
    ],
    ids=["twice", "another length", "not there"],
)
def test_a_text_without_that_list_is_an_error(text: bytes, path: list[str]) -> None:
    """``ValueError`` is raised if the text does not have exactly one such list of the same length."""
    with pytest.raises(ValueError, match="does not have exactly one list of 1 elements"):
        replace_list(text, [1], [], path)

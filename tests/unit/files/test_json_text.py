"""Lists inside JSON texts are replaced, and everything else keeps its bytes."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.files import json_text, replace_list

TEXT = b'{"n": 1.50, "contents":[{"a":1},  {"a":2.0}, {"a":3}], "list" :[ {"b": "\\u00e9"} ], "x": [0]}\n'


@pytest.mark.parametrize(
    ("key", "change", "expected"),
    [
        ("contents", lambda old: old[1:], TEXT.replace(b'{"a":1},  {"a":2.0}, {"a":3}', b'{"a":2.0},  {"a":3}')),
        ("contents", lambda old: [old[2], old[0]], TEXT.replace(b'{"a":1},  {"a":2.0}, {"a":3}', b'{"a":3},  {"a":1}')),
        (
            "contents",
            lambda old: [{"a": 2.0}, *old[1:]],
            TEXT.replace(b'{"a":1},  {"a":2.0}, {"a":3}', b'{"a":2.0},  {"a":2.0},  {"a":3}'),
        ),
        ("contents", lambda _: [], TEXT.replace(b'[{"a":1},  {"a":2.0}, {"a":3}]', b"[]")),
        ("list", lambda _: [{"b": "ü"}], TEXT.replace(b"u00e9", b"u00fc")),
        ("list", list, TEXT),
    ],
    ids=["dropped", "other order", "an equal value is new", "none", "with escapes", "unchanged"],
)
def test_the_rest_of_the_text_stays(key: str, change: Any, expected: bytes) -> None:
    """Only the list changes, and elements that were in it before keep their own bytes."""
    old = json.loads(TEXT)[key]
    assert replace_list(TEXT, old, change(old), key) == expected


@pytest.mark.parametrize(
    ("text", "key"),
    [(b'{"messages": [1], "messages": [1]}', "messages"), (b'{"messages": [1, 2]}', "messages"), (b'{"a": [1]}', "b")],
    ids=["twice", "another length", "not there"],
)
def test_a_text_without_that_list_is_an_error(text: bytes, key: str) -> None:
    with pytest.raises(ValueError, match="does not have exactly one list of 1 elements"):
        replace_list(text, [1], [], key)


_TEXTS = st.sampled_from(["", "a", "é", "😀", '"', "\\", "messages", '"messages": [', "}, {"])
_VALUES = st.recursive(
    st.none() | st.integers(0, 9) | _TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_TEXTS, inner, max_size=2),
)
_MESSAGES = st.lists(st.fixed_dictionaries({"role": _TEXTS, "content": _VALUES}), min_size=1, max_size=5)
_STYLES: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{}, {"separators": (",", ":")}, {"indent": 2}, {"ensure_ascii": False}]
)
_KEYS = ("messages", "mess\\u0061ges")


@given(_MESSAGES, st.dictionaries(_TEXTS, _VALUES, max_size=2), _STYLES, st.sampled_from(_KEYS), st.data())
def test_dividing_a_line_without_parsing_it_changes_nothing(
    messages: list[Any], fields: dict[str, Any], style: dict[str, Any], key: str, data: st.DataObject
) -> None:
    """With and without msgspec, the text is the same, and so is the error."""
    text = json.dumps({**fields, "messages": messages}, **style).replace('"messages"', f'"{key}"', 1).encode()
    read: Any = json.loads(text).get("messages")
    if not isinstance(read, list):  # a text contained the key
        return
    old = cast("list[Any]", read)
    new = [message for message in old if data.draw(st.booleans())]
    if data.draw(st.booleans()):
        new.append({"role": "user", "content": "é"})
    assert _replaced(text, old, new) == _replaced_plainly(text, old, new)


def _replaced(text: bytes, old: list[Any], new: list[Any]) -> bytes | str:
    try:
        return replace_list(text, old, new)
    except ValueError as error:
        return str(error)


def _replaced_plainly(text: bytes, old: list[Any], new: list[Any]) -> bytes | str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_text, "_divide", None)
        return _replaced(text, old, new)

"""Secrets that are known by their place: in headers, URLs, commands, and sentences that put the value first."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from .names import NAME
from .table import TABLE, Search, any_of, replaced, secrets_found
from .values import is_strong

_SECRET_ENTRY: Final = re.compile(
    r"(?m)^[ \t]{1,16}[\w.-]{1,253}:[ \t]{1,4}[\"']?(?P<value>[A-Za-z0-9+/]{4,65536}={0,2})(?=[\"']?[ \t]{0,4}$)"
)
"""A value of a Kubernetes Secret."""


def _entries(text: str, found: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield the values of a Kubernetes Secret."""
    yield from (entry.span("value") for entry in _SECRET_ENTRY.finditer(text, *found.span()))


def _argument(text: str, found: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield the password of a command; a port, an option and a redacted one are not one."""
    value = found["value"]
    if not value.isdecimal() and value[0] not in "-[{*" and value != "password":
        yield found.span("value")


def _strong_word(text: str, found: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield the password of a sentence, if it looks like one."""
    if is_strong(found["value"].rstrip(".!?:,")):
        yield found.span("value")


_PARTS: Final = {
    "<word>": r"""\\?["']?(?P<value>[^\s"'`\\|;&<>$()]{4,256})""",
    "<arguments>": r"[^\n|;&]{0,160}?[ \t]",
    "<piped>": r"""\\?["']?[ ]?\|[ ]?""",
    "<unspaced>": r"""[`"']?(?P<value>[^\s"'`|;&<>()\[\]{}]{6,256})""",
    "<name>": NAME,
    "<given>": any_of(TABLE["sentences"]["given"]),
}
"""The expressions that stand for parts of those in the table."""

_PART: Final = re.compile("|".join(_PARTS))


def _with_parts(shape: str) -> re.Pattern[str]:
    return re.compile(_PART.sub(lambda part: _PARTS[part[0]], shape))


PLACES: Final = (
    Search(
        ("kind: secret",),
        re.compile(r"(?m)^[ \t]{0,16}(?:stringData|data):[ \t]*\n(?:[ \t]{1,16}\S[^\n]{0,65536}\n?){1,64}"),
        "secret",
        _entries,
    ),
    *(Search(tuple(row["words"]), re.compile(row["shape"]), row["kind"]) for row in TABLE["places"]),
    *(Search((word,), _with_parts(shape), "password", _argument) for word, shape in TABLE["commands"].items()),
    *(Search(tuple(row["words"]), _with_parts(row["shape"]), "password", _strong_word) for row in TABLE["said"]),
    Search(
        tuple([word + end for word in TABLE["sentences"]["given"] for end in " :"]),
        _with_parts(r"(?i)\b<given>(?: are| is| with| as| sind)?:? {1,4}[\w.@+-]{1,64} ?/ ?<unspaced>"),
        "password",
        _strong_word,
    ),
)
"""The searches, in order: a later one sees what the others left."""


def without_placed_secrets(text: str, small: str, words: set[str]) -> str:
    """Return the text, given in small letters too, without these secrets; O(characters). These words may be in it."""
    for search in PLACES if words else ():
        if search.may_find(words, small):
            text = replaced(text, secrets_found(text, search.spans))
    return text

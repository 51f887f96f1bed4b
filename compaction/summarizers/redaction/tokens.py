"""Secrets that are recognizable by themselves: tokens of well-known services, hashes of passwords, and private keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from .table import TABLE, Search, WordScan, replaced, run_of, secrets_found


def without_tokens(text: str, data: bytes) -> str:
    """Return the text, given in UTF-8 too, without private keys and tokens; O(characters)."""
    if "PRIVATE KEY" in text or "Private-Lines" in text:
        text = replaced(text, _PRIVATE_KEYS.spans(text))
    words = _WORDS.perhaps_in(text) if _may_hold_token(data) else set[str]()
    for search in _TOKENS if words else ():
        if search.may_find(words, text):
            text = replaced(text, secrets_found(text, search.spans))
    return text


# ---------------------------------------------------------------- tokens

_BEFORE: Final = "(?<![A-Za-z0-9_-]{0})"
"""The place before a token that starts with a text: no other part of the same word."""


def _started(starts: list[str], rest: str) -> re.Pattern[str]:
    """Return the expression for a token; a beginning that comes first is looked for quickest."""
    begun = "|".join(re.escape(start) + _BEFORE.format(re.escape(start)) for start in starts)
    return re.compile(f"(?P<value>(?:{begun})(?:{rest}))")


_TOKENS: Final = (
    *(
        Search(tuple(row["starts"]), _started(row["starts"], row["rest"]), row.get("kind", name))
        for name, row in TABLE["tokens"].items()
    ),
    *(
        Search(tuple(row["holds"]), re.compile(f"{_BEFORE.format('')}(?P<value>{row['shape']})"), row.get("kind", name))
        for name, row in TABLE["inner_tokens"].items()
    ),
)
_may_hold_token: Final = run_of(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.~+/=:%$@{}-", 15)

_WORDS: Final = WordScan([word for search in _TOKENS for word in search.words], stops="$ZQJ{qKxSAvygfkp:/c86-dln")


# ---------------------------------------------------------------- private keys

_BREAK: Final = r"(?:\s|\\{1,3}[nrt]){1,8}"
_KEY_LINES: Final = re.compile(
    rf"(?:{_BREAK}(?:Proc-Type|DEK-Info): [\w,-]{{1,80}})*(?:{_BREAK}[A-Za-z0-9+/=]{{16,128}})*"
    rf"(?:{_BREAK}(?:[A-Za-z0-9+/]{{1,64}}={{1,2}}|[A-Za-z0-9+/]{{1,64}}\Z))?"
)
"""The lines of a private key that has no end."""

_KEY_CHARS: Final = 20_000
_KEY_END: Final = "-----END "


def _private_key(text: str, found: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield a private key, given its first line; one without an end goes as far as its lines look like a key."""
    start = found.end()
    end = text.find(_KEY_END, start, start + _KEY_CHARS + len(_KEY_END)) if found[0].startswith("-----") else -1
    closing = text.find("-----", end + len(_KEY_END), end + 100) if end >= 0 else -1
    if closing >= 0:
        yield found.start(), closing + len("-----")
    else:
        lines = _KEY_LINES.match(text, start)
        yield found.start(), start if lines is None else lines.end()


_PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?-----|---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----"
    r"|Private-Lines: [0-9]{1,4}(?=\s|\\[nr])"
)
"""The first line of a private key."""

_PRIVATE_KEYS: Final = Search((), _PRIVATE_KEY, "private_key", _private_key)

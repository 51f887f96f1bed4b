"""The table of secrets, and expressions for the words in it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, TypeAlias

TABLE: Final[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("secrets.toml").read_text("utf-8"))

SecretSpan: TypeAlias = tuple[int, int, str]
"""Where a secret starts and ends, and its kind."""


def any_of(words: Iterable[str]) -> str:
    """Return an expression for the words, letter by letter, so that it fails early; a space in a word is any blank."""
    tails: dict[str, set[str]] = {}
    for word in words:
        tails.setdefault(word[0], set()).add(word[1:])
    branches = ["[ _-]" if first == " " else re.escape(first) for first in tails]
    for number, rest in enumerate(tails.values()):
        longer = rest - {""}
        branches[number] += (any_of(sorted(longer)) + "?" * (len(longer) < len(rest))) if longer else ""
    return f"(?:{'|'.join(branches)})"


def in_small_letters(text: str) -> str:
    """Return the text in small letters, each character in its place."""
    small = text.lower()
    if len(small) == len(text):
        return small  # no capital becomes two letters
    return "".join(one if len(one := character.lower()) == 1 else character for character in text)

"""Tests of a value by its look: a password, a generated key, code, a placeholder or words."""

from __future__ import annotations

import re
from typing import Final

from .searches import TABLE, any_of

_CODE: Final = re.compile(
    r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+"  # self.password
    r"|[a-z]+(?:_[a-z]+)+[0-9]?|[A-Z]+(?:_[A-Z]+)+"  # user_token, DB_PASSWORD
    r"|[a-z]+(?:[A-Z][a-z]+)+|(?:[A-Z][a-z]+){2,}"  # userToken, UserToken
    r"|\$\w+|%\w+%|0x[0-9a-fA-F]{1,40}|[~.]{0,2}/.*"  # $TOKEN, %TOKEN%, 0x7f, ~/.netrc
)
_SAID: Final = {name: any_of(words) for name, words in TABLE["placeholders"].items()}
_PLACEHOLDER: Final = re.compile(
    r"(?i)[*x.•_-]+|\$\{.*|\{\{.*|%\(.*|<.*|\[.*"  # ****, ${TOKEN}, {{ token }}, %(token)s, <token>, [token]
    rf"|(?:{_SAID['before']}[ _-]?){{0,2}}{_SAID['instead']}s?(?:[ _-]?{_SAID['behind']})?"  # your-api-key-here
    rf"|{_SAID['terms']}[-_]?[0-9]{{1,4}}"  # sha256, page-2
    r"|[0-9]{1,3}[-+]?(?:[a-z]{1,12}|[0-9]{1,3})"  # 12px, 10-20
)
_WORDS: Final = re.compile(r"[^\W\d_]+(?:['’/-][^\W\d_]+)*")
_RESOURCE: Final = re.compile(r"[a-z]+(?:[-./][a-z]+)+(?:[-/]?v?[0-9]{1,4})?")
_HASH_OR_TERM: Final = re.compile(r"[0-9a-f-]{7,}|[a-z]+[-_]?[0-9]", re.ASCII)  # 9116169cf0d2, german1
_MIXED: Final = re.compile(
    r"(?=[^a-z]{0,512}[a-z])(?=[^A-Z]{0,512}[A-Z])(?=[^0-9]{0,512}[0-9])(?:base64:)?[A-Za-z0-9+/=_.%-]{16,}"
)
_RANDOM: Final = re.compile(  # hexadecimal, base 36, base 32, pairs as in 3f:a0:..., 0x3fa0...
    r"[0-9a-f]{32,}|[0-9a-z]{24,}|[A-Z2-7]{16,}|(?:[0-9A-Fa-f]{2}:){15,}[0-9A-Fa-f]{2}|0x[0-9a-f]{64}"
)
_SYMBOLS: Final = frozenset("!@#$%^&*()+=?")
_MIN_RANDOM_CHARS: Final = 16


def is_placeholder(value: str) -> bool:
    """Return whether a value stands for another one, as ``your-key-here`` does, or is a type or a number with a unit."""
    return _PLACEHOLDER.fullmatch(value) is not None


def is_code(value: str) -> bool:
    """Return whether a value is a name in a program, a variable, an address or a path."""
    return _CODE.fullmatch(value) is not None


def is_not_word(value: str) -> bool:
    """Return whether a value is neither a word, nor several with hyphens between them."""
    return _WORDS.fullmatch(value) is None


def may_be_key(value: str) -> bool:
    """Return whether a value is long enough and without blanks, and neither a number nor a name such as ``eu-central-1``."""
    is_one = not any(character.isspace() for character in value)
    return is_one and len(value) >= 8 and not value.isdecimal() and _RESOURCE.fullmatch(value) is None


def is_strong(value: str) -> bool:
    """Return whether a word is a password by its look alone: six characters or more, letters with digits, and no common term.

    >>> is_strong("hunter22"), is_strong("page2"), is_strong("sha256"), is_strong("9116169cf0d2")
    (True, False, False, False)
    """
    digits = sum(character.isdigit() for character in value)
    letters = sum(character.isalpha() for character in value)
    if len(value) < 6 or not digits or not letters or is_placeholder(value) or is_code(value):
        return False
    if _HASH_OR_TERM.fullmatch(value) or "://" in value:
        return False
    return digits >= 2 or any(character.isupper() for character in value) or not value.isalnum()


def is_mixed(value: str) -> bool:
    """Return whether a value has sixteen characters or more, small letters, capitals and digits among them, and no blank."""
    return _MIXED.fullmatch(value) is not None


def looks_random(value: str) -> bool:
    """Return whether a value is as long and as mixed as a generated key, and not a path, a URL or a UUID."""
    if len(value) < _MIN_RANDOM_CHARS or "://" in value:
        return False
    if len(value) >= 2 * _MIN_RANDOM_CHARS and len(_SYMBOLS.intersection(value)) > 3 and " " not in value:
        return True
    return is_mixed(value) or _RANDOM.fullmatch(value) is not None

"""Values beside names: how a name and its value are written, and when the value is a secret.

The weaker the operator between the two, the more the value must look like a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from .table import TABLE, SecretSpan, any_of, in_small_letters
from .values import is_code, is_mixed, is_placeholder, is_resource, is_strong, is_words, looks_random

# ---------------------------------------------------------------- how a name and its value are written

_NAMES: Final[dict[str, list[str]]] = TABLE["names"]
_SPELLED: Final[dict[str, str]] = {
    "password": rf"{any_of(_NAMES['password'])}|(?P<short>{any_of(_NAMES['short'])})",
    "secret": rf"{any_of(_NAMES['secret'])}(?:[ _-]?(?:access[ _-]?)?(?:key|키))?",
    "token": any_of(_NAMES["token"]),
    "weak": any_of(_NAMES["weak"]),
    "key": any_of(_NAMES["key"]),
}
NAME: Final = "(?:" + "|".join(f"(?P<{kind}>{shape})" for kind, shape in _SPELLED.items()) + ")"
NAME_ENDING: Final = "(?:[_-]?(?:base|prod|production|dev|data|staging|test|live|value|old|new|v?[0-9]{1,2}))?"
QUOTE: Final = r"""\\{0,3}["'`]"""
_TYPE: Final = r"(?::[ \t]?(?:str|string|String|&str|Optional\[str\]|str \| None)[ \t]?)?"
_VALUE_KEY: Final = rf"(?:{QUOTE})?[Vv]alue(?:{QUOTE})?[ \t]?[:=][ \t]?"
_SAID: Final = TABLE["sentences"]
_FOR: Final = rf"(?:[ \t]{any_of(_SAID['for'])}[ \t][^\n.,:;|]{{1,48}}?)?"
_OPERATORS: Final[dict[str, str]] = {
    "pair": rf"{QUOTE},?\s{{0,40}}{_VALUE_KEY}"
    rf"|{QUOTE} ?\{{[^{{}}\"']{{0,160}}\bdefault\s{{0,16}}=[ \t]?"
    rf"|\s{{0,4}}\n\s{{0,40}}{_VALUE_KEY}|</key>\s{{0,40}}<string>",
    "assign": rf"(?:{QUOTE})?\]?\*{{0,2}}[ \t]{{0,8}}(?:{_TYPE}=[=>]?|:=|[:：])\*{{0,2}}"
    r"(?:[ \t]{0,8}[|>][+-]?[ \t]{0,8}\n)?[ \t]{0,40}\*{0,2}",
    "field": rf"(?:{QUOTE})?</t[dh]>\s{{0,40}}<t[dh][^<>\n]{{0,64}}>",
    "tag": rf"(?:{QUOTE})?>",
    "cell": r"[`*]{0,3}[ \t]{0,40}[|│┃║][ \t]{0,40}",
    "says": rf"{_FOR}[ \t]{{1,4}}{any_of(_SAID['verbs'])}(?:[ \t](?:now|set|changed|reset|updated))?(?:[ \t]to)?:?"
    rf"[ \t]{{1,4}}\*{{0,2}}|[ \t]?{any_of(_SAID['particles'])}[ \t]{{0,4}}[「『“«]?"
    rf"|{_FOR}[ \t]?[:：][ \t]{{1,4}}|[ \t][—–][ \t]",
    "comma": rf"{QUOTE}[ \t]?,[ \t]?(?={QUOTE})",
    "call": rf"\([ \t]?(?={QUOTE})",
    "gap": r"[ \t]{1,8}",
}
"""The operators between a name and its value, in the order in which they are tried.

Examples: pair ``"name": "password", "value": "x"``; assign ``password = x``; field ``<td>password</td><td>x``; tag
``<password>x``; cell ``password | x``; says ``the password for the server is x``; comma ``("password", "x")``; call
``password("x")``; gap ``--password x``."""

_OPERATOR: Final = "(?:" + "|".join(f"(?P<{name}>{shape})" for name, shape in _OPERATORS.items()) + ")"
_DOUBLE: Final = r'\\{0,3}"(?P<double>(?:[^"\n\\]|\\(?!["\\])[^\n]){4,4096})\\{0,3}"'
_SINGLE: Final = r"\\{0,3}'(?P<single>(?:[^'\n\\]|\\(?!['\\])[^\n]){4,4096})\\{0,3}'"
_TICKED: Final = r"`(?P<ticked>[^`\n]{4,4096})`"
_BARE: Final = r"""(?P<bare>[^\s。，、；！？「」【】（）"'`\\,;&<>(){}\[\]|│┃║]{4,4096})(?P<code>[(\[])?"""
_VALUE: Final = f"(?:{_DOUBLE}|{_SINGLE}|{_TICKED}|{_BARE})"

NAME_WORDS: Final = frozenset(word for words in _NAMES.values() for word in words)
"""The words of which a text with a named secret has one."""

_SPOT: Final = re.compile(any_of(sorted(NAME_WORDS)))
_ASCII_SPOT: Final = re.compile(any_of(filter(str.isascii, sorted(NAME_WORDS))))  # quicker

_NAMED: Final = re.compile(f"(?i){NAME}{NAME_ENDING}{_OPERATOR}(?={_VALUE})")
"""A name, alone or at the end of a longer name, an operator, and in a lookahead the value.

The groups say which kind of name, which operator, and which quotation marks these are."""

_KEY_KIND: Final = re.compile(
    "(?i)(?:" + "|".join(f"(?P<{kind}>{any_of(words)})" for kind, words in TABLE["keys"].items()) + r")[ ._-]?\Z"
)
"""The word before ``key`` that makes it a name for secrets."""

_KINDS: Final = ("password", "secret", "token", "weak")
_QUOTES: Final = ("double", "single", "ticked", "bare")
_LONG_CHARS: Final = 256
_BEFORE_CHARS: Final = 64


def name_places(text: str) -> list[int]:
    """Return where a name for secrets may begin; O(characters)."""
    spot = _ASCII_SPOT if text.isascii() else _SPOT
    return [found.start() for found in spot.finditer(in_small_letters(text))]


def name_kind(found: re.Match[str], start: int) -> str | None:
    """Return the kind of secret that a name is for, which a match of `NAME` begins at a place of its text.

    ``None`` for ``key`` alone, as in ``primary key``.
    """
    if not found["key"]:
        return next(kind for kind in _KINDS if found[kind])
    word = _KEY_KIND.search(_before(found, start))
    return None if word is None else word.lastgroup


def _before(found: re.Match[str], start: int) -> str:
    return found.string[max(0, start - _BEFORE_CHARS) : start]


# ---------------------------------------------------------------- when the value is a secret


def named_secrets(text: str, places: list[int]) -> Iterator[SecretSpan]:
    """Yield the values beside the names at these places; a value may be a name that has one itself."""
    done, judged = 0, 0
    for place in places:
        found = _NAMED.match(text, place) if place >= judged else None
        if found is None:
            continue
        quote = next(quote for quote in _QUOTES if found[quote])
        start, end = found.span(quote)
        if start < done:
            continue
        kind = name_kind(found, place)
        if kind is not None and _NamedValue(found, quote, kind).is_secret():
            end = start + len(found[quote].rstrip(".?:*")) if quote == "bare" else end
            yield start, end, "secret" if kind == "weak" else kind
            done = end
        elif quote == "bare" and end - start > _LONG_CHARS:  # one long word: names in it would all have the same end
            judged = end


class _NamedValue:
    """A value beside a name that people give to secrets, and all by which it is judged."""

    def __init__(self, found: re.Match[str], quote: str, kind: str) -> None:
        self._found = found
        self._quote = quote
        self._kind = kind
        self._before = _before(found, found.start())
        self._value = found[quote].rstrip(".!?:*")
        self._is_quoted = quote != "bare"
        operator = next(operator for operator in _OPERATORS if found[operator] is not None)
        self._sign = found[operator]  # the text of the operator
        self._operator = "assign" if operator == "gap" and _OPTION.search(self._before) else operator

    def is_secret(self) -> bool:
        """Return whether the value is a secret of the kind that the name is for."""
        if self._is_harmless() or not self._fits_operator() or (self._found["short"] and not self._fits_short_name()):
            return False
        return self._is_password() if self._kind == "password" else self._is_key()

    def _is_harmless(self) -> bool:
        """Return whether the value stands for another one, or is code; or whether the name is in a mark of ours."""
        if not self._value or is_placeholder(self._value) or _IN_MARK.search(self._before):
            return True
        return not self._is_quoted and (bool(self._found["code"]) or is_code(self._value))

    def _fits_operator(self) -> bool:
        """Return whether the text around allows the operator: a cell ends, a call has arguments."""
        if self._operator == "cell":
            return _CELL_END.match(self._found.string, self._found.end(self._quote) + self._is_quoted) is not None
        if self._operator == "comma":
            return _ARGUMENT.search(self._before) is not None
        return self._operator != "call" or self._found["password"] is not None

    def _fits_short_name(self) -> bool:
        """Return whether ``pass``, ``pw`` or ``psk`` is a name of its own, and not part of a word or a verdict of a test."""
        name, last = self._found["short"], self._before[-1:]
        is_own = not last.isalpha() or (last.islower() and name[0].isupper()) or self._before.lower().endswith(_COMPOUND)
        if not is_own:
            return False
        if self._value.isdecimal() or self._operator in ("says", "gap", "call", "cell"):
            return self._operator == "cell" and last in "_.-" and is_strong(self._value)
        if name.isupper() and not last.strip() and ":" in self._sign:  # the verdict of a test
            return False
        is_joined = last in ("_", "-", ".") or last.isalpha()
        is_sure = is_joined or self._is_quoted or self._operator == "tag" or "=" in self._sign
        return is_sure or (is_strong(self._value) and "." not in self._value)

    def _is_password(self) -> bool:
        """Return whether the value looks like a password: it may be a word where code cannot be."""
        value, operator, is_quoted = self._value, self._operator, self._is_quoted
        if operator == "says" and not is_quoted and not self._sign.isascii():
            value = _FOREIGN.split(value, maxsplit=1)[0]  # a language without blanks goes on behind the password
        is_one = not any(character.isspace() for character in value)
        if operator == "says" and not is_quoted:
            return any(character.isdigit() for character in value) and (len(value) >= 6 or not value.isdecimal())
        if operator in ("cell", "field", "gap") and not is_quoted:
            return is_strong(value)
        if operator in ("cell", "comma", "gap", "call"):
            return is_one and not is_words(value)
        return ((is_quoted or self._is_shouted()) and is_one) or not is_words(value)

    def _is_key(self) -> bool:
        """Return whether the value looks like a key or token: these hold digits, and are not names of things."""
        value, operator = self._value, self._operator
        if any(character.isspace() for character in value) or value.isdecimal() or len(value) < 8 or is_resource(value):
            return False
        if self._kind == "weak" or (operator == "gap" and not self._is_quoted):
            return is_mixed(value)
        if operator in ("comma", "cell", "field"):
            return is_strong(value) or len(value) >= 32
        return any(character.isdigit() for character in value) or (self._is_shouted() and not is_words(value))

    def _is_shouted(self) -> bool:
        """Return whether the name is a variable in capitals, as in ``DB_PASSWORD=``."""
        key = self._found["key"] if self._kind == "secret" else None
        name = self._found["password"] or self._found["secret"] or key or ""
        return self._operator == "assign" and "=" in self._sign and name.isupper()


_FOREIGN: Final = re.compile(r"[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
# "[REDACTED:password" is a mark of ours: the word in it does not name a value
_IN_MARK: Final = re.compile(r"\[REDACTED:[a-z-]{0,40}\Z")
_OPTION: Final = re.compile(r"--?[\w-]*$")
_ARGUMENT: Final = re.compile(r"""[(,]\s?\\?["'][\w.-]*$""")
_CELL_END: Final = re.compile(r"[`*]{0,3}[ \t]{0,40}(?:[|│┃║]|\n|\Z)")
_COMPOUND: Final = ("store", "key", "user", "db", "root", "admin")


# ---------------------------------------------------------------- variables in capitals, whose names say less

_VARIABLE: Final = re.compile(
    r"""[A-Z](?<![\w$.{][A-Z])[A-Z0-9_]{0,63}(?<!_)=(?:"(?P<double>[^"\n]{8,512})"|'(?P<single>[^'\n]{8,512})'|(?P<bare>[^\s。，、；！？「」【】（）"'`;&|<>]{8,512}))"""
)
"""A variable in capitals, as in an ``.env`` file, and its value."""


def secrets_in_variables(text: str) -> Iterator[SecretSpan]:
    """Yield the values of variables whose last word is one of the table's, if they look random."""
    words = TABLE["variables"]
    for found in _VARIABLE.finditer(text):
        parts = found[0].partition("=")[0].split("_")
        group = found.lastgroup or "bare"
        start, end = found.span(group)
        if not set(parts).isdisjoint(words["harmless"]):
            continue
        user, colon, password = found[group].partition(":")
        if parts[-1] in words["login"] and colon and user.isalnum() and is_strong(password):
            yield start + len(user) + 1, end, "password"
        elif parts[-1] in words["secret"] and looks_random(found[group]):
            yield start, end, "secret"

"""Values beside names: how a name and its value are written, and when the value is a secret.

The weaker the operator between the two, the more the value must look like a secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, TypeAlias

from .searches import REDACTED, TABLE, SecretSpan, any_of, expression, in_small_letters
from .values import is_code, is_mixed, is_not_word, is_placeholder, is_strong, looks_random, may_be_key

# ---------------------------------------------------------------- how a name and its value are written

_OPERATORS: Final[dict[str, list[str]]] = TABLE["operators"]
_OPERATOR: Final = "|".join([f"(?P<{name}>{'|'.join(shapes)})" for name, shapes in _OPERATORS.items()])
_NAME_WORDS: Final = sorted({word for words in TABLE["names"].values() for word in words})  # a text with a named secret has one
_SPOT: Final = re.compile(any_of(_NAME_WORDS))
_ASCII_SPOT: Final = re.compile(any_of(filter(str.isascii, _NAME_WORDS)))  # quicker

# a name, alone or at the end of a longer name, an operator, and in a lookahead the value.
# The groups say which kind of name, which operator, and which quotation marks these are.
_NAMED: Final = re.compile(expression(f"(?i)<name><ending>(?:{_OPERATOR})(?=<value>)"))
# the word before ``key`` that makes it a name for secrets
_KEY_KIND: Final = re.compile(
    "(?i)(?:" + "|".join(f"(?P<{kind}>{any_of(words)})" for kind, words in TABLE["keys"].items()) + r")[ ._-]?\Z"
)
_KINDS: Final = ("password", "secret", "token", "weak")
_QUOTES: Final = ("double", "single", "ticked", "bare")
_LONG_CHARS: Final = 256
_BEFORE_CHARS: Final = 64


def name_places(text: str) -> list[int]:
    """Return where a name for secrets may begin; O(characters)."""
    spot = _ASCII_SPOT if text.isascii() else _SPOT
    return [found.start() for found in spot.finditer(in_small_letters(text))]


def name_kind(found: re.Match[str], start: int) -> str | None:
    """Return the kind of secret that a name stands for; the match of ``<name>`` begins at ``start``.

    ``None`` for ``key`` alone, as in ``primary key``.
    """
    if not found["key"]:
        return next(kind for kind in _KINDS if found[kind])
    word = _KEY_KIND.search(_before(found, start))
    return None if word is None else word.lastgroup


def _before(found: re.Match[str], start: int) -> str:
    return found.string[max(0, start - _BEFORE_CHARS) : start]


# ---------------------------------------------------------------- when the value is a secret

# behind a value: of "a\"b", which is one value, \"b; behind the last cell of a table
_BEHIND_ESCAPE: Final = re.compile(r"""(?:\\["'][^\s"'\\]{1,512}){1,8}""")
_CELL_END: Final = re.compile(r"[`*]{0,3}[ \t]{0,40}(?:[|│┃║]|\n|\Z)")
# before a name: a mark of ours, whose kind names no value; the dash of an option; the bracket or comma of an argument
_IN_MARK: Final = re.compile(rf"{re.escape(REDACTED)}[a-z-]{{0,40}}\Z")
_OPTION: Final = re.compile(r"--?[\w-]*$")
_ARGUMENT: Final = re.compile(r"""[(,]\s?\\?["'][\w.-]*$""")
_COMPOUND: Final = ("store", "key", "user", "db", "root", "admin")  # before a short name: storepass, dbpw


def named_secrets(text: str, places: list[int]) -> Iterator[SecretSpan]:
    """Yield the values beside the names at these places; a value may be a name that has one itself."""
    done = 0  # where the last secret ends
    judged = 0  # where a long word ends that is none
    for place in places:
        found = _NAMED.match(text, place) if place >= judged else None
        value = None if found is None else _NamedValue(found)
        if value is None or value.start < done:
            continue
        if value.kind and value.is_secret():
            done = value.end_of_secret()
            yield value.start, done, "secret" if value.kind == "weak" else value.kind
        elif not value.is_quoted and value.end - value.start > _LONG_CHARS:  # values of names in it would have the same end
            judged = value.end


class _NamedValue:
    """A value beside a name that people give to secrets, and all by which it is judged."""

    def __init__(self, found: re.Match[str]) -> None:
        quote = next(quote for quote in _QUOTES if found[quote])
        self._found = found
        self._before = _before(found, found.start())
        self._value = found[quote].rstrip(".!?:*")
        self.start, self.end = found.span(quote)
        self.is_quoted = quote != "bare"
        self.kind = name_kind(found, found.start())
        operator = next(operator for operator in _OPERATORS if found[operator] is not None)
        self._sign = found[operator]  # the text of the operator
        is_option = operator == "gap" and _OPTION.search(self._before)  # --password x
        self._operator = "assign" if is_option else operator

    def is_secret(self) -> bool:
        """Return whether the value is a secret of the kind that the name is for."""
        if self._is_harmless() or not self._fits_operator() or (self._found["short"] and not self._fits_short_name()):
            return False
        looks = _LOOKS["variable" if self._is_variable() else self._operator]
        if self.kind == "password":
            return (looks.quoted_password if self.is_quoted else looks.password)(self._value)
        look = is_mixed if self.kind == "weak" else looks.quoted_key if self.is_quoted else looks.key
        return may_be_key(self._value) and look(self._value)

    def end_of_secret(self) -> int:
        """Return where the secret ends: without the marks of the sentence around it, and with what an escaped quote parts."""
        if not self.is_quoted:
            return self.start + len(self._found["bare"].rstrip(".?:*"))
        text = self._found.string
        rest = None if text[self.start - 2 : self.start - 1] == "\\" else _BEHIND_ESCAPE.match(text, self.end)
        return rest.end() if rest else self.end

    def _is_harmless(self) -> bool:
        """Return whether the value stands for another one, or is code; or whether the name is in a mark of ours."""
        if not self._value or is_placeholder(self._value) or _IN_MARK.search(self._before):
            return True
        return not self.is_quoted and (bool(self._found["code"]) or is_code(self._value))

    def _fits_operator(self) -> bool:
        """Return whether the text around allows the operator: a cell ends, and a name among arguments is one itself."""
        if self._operator == "cell":
            return _CELL_END.match(self._found.string, self.end + self.is_quoted) is not None
        if self._operator != "argument":
            return True
        if "," in self._sign:  # ("password", "x")
            return _ARGUMENT.search(self._before) is not None
        return self._found["password"] is not None and self._found["short"] is None  # password("x")

    def _fits_short_name(self) -> bool:
        """Return whether ``pass``, ``pw`` or ``psk`` is a name of its own, and not part of a word or a verdict of a test.

        | fits | does not |
        |---|---|
        | ``smtpPass: b2``, ``storepass: b2`` | ``compass: b2`` |
        | ``pass=b2`` | ``pass=3``, ``the pass is b2`` |
        | a cell: ``db_pass``, then ``b2c3d4`` | ``pass``, then ``b2c3d4`` |
        | ``db_pass: b2``, ``pass: "b2"``, ``<pass>b2`` | ``PASS: test-b2`` |
        | ``pass: b2c3d4`` | ``pass: report-2024.v2`` |
        """
        name, last = self._found["short"], self._before[-1:]
        begins_word = not last.isalpha() or (last.islower() and name[0].isupper())
        if not begins_word and not self._before.lower().endswith(_COMPOUND):
            return False
        if self._value.isdecimal() or self._operator in ("says", "foreign", "gap"):
            return False
        if self._operator == "cell":
            return last in ("_", ".", "-") and is_strong(self._value)
        if name.isupper() and not last.strip() and ":" in self._sign:
            return False
        is_joined = last in ("_", "-", ".") or last.isalpha()
        if is_joined or self.is_quoted or "=" in self._sign or ">" in self._sign:
            return True
        return is_strong(self._value) and "." not in self._value

    def _is_variable(self) -> bool:
        """Return whether the name is in capitals, and ``=`` behind it, as in an ``.env`` file."""
        key = self._found["key"] if self.kind == "secret" else None
        name = self._found["password"] or self._found["secret"] or key or ""
        return self._operator == "assign" and "=" in self._sign and name.isupper()


_FOREIGN: Final = re.compile(r"[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def _code_like(value: str) -> bool:
    """Return whether a value has no blank, and is neither a word nor several with hyphens between them."""
    return is_not_word(value) and not any(character.isspace() for character in value)


def _told(value: str) -> bool:
    """Return whether a bare value in a sentence is a password and not the next word or a short number."""
    return _has_digit(value) and (len(value) >= 6 or not value.isdecimal())


def _told_foreign(value: str) -> bool:
    """Return the same of a language without blanks, which goes on behind the password."""
    return _told(_FOREIGN.split(value, maxsplit=1)[0])


def _has_digit(value: str) -> bool:
    return any(character.isdigit() for character in value)


def _digit_or_not_word(value: str) -> bool:
    return _has_digit(value) or is_not_word(value)


def _strong_or_long(value: str) -> bool:
    return is_strong(value) or len(value) >= 32


_Look: TypeAlias = Callable[[str], bool]
_any: Final[_Look] = bool  # a value is never empty


class _Looks(NamedTuple):
    """How a value beside a name must look to be a secret."""

    password: _Look
    quoted_password: _Look
    key: _Look  # or a token; it must also pass `may_be_key`
    quoted_key: _Look


# How a value must look behind each operator, with a password, or a token, that does.
_LOOKS: Final = {
    "variable": _Looks(_any, _any, _digit_or_not_word, _digit_or_not_word),  # DB_PASSWORD=hunter
    "assign": _Looks(is_not_word, _any, _has_digit, _has_digit),  # password = hunter2, password: "let me in"
    "says": _Looks(_told, _any, _has_digit, _has_digit),  # the password for the server is hunter2
    "foreign": _Looks(_told_foreign, _any, _has_digit, _has_digit),  # 비밀번호는 hunter2
    "field": _Looks(is_strong, _any, _strong_or_long, _strong_or_long),  # <td>password</td><td>german12</td>
    "cell": _Looks(is_strong, _code_like, _strong_or_long, _strong_or_long),  # | password | german12 |
    "argument": _Looks(is_strong, _code_like, _strong_or_long, _strong_or_long),  # ("password", "let-me!in")
    "gap": _Looks(is_strong, _code_like, is_mixed, _has_digit),  # password hunter22, token aB3dE5fG7hI9jK1lM
}

# ---------------------------------------------------------------- variables in capitals, whose names say less

# a variable in capitals, as in an ``.env`` file, and its value
_VARIABLE: Final = re.compile(
    r"""[A-Z](?<![\w$.{][A-Z])[A-Z0-9_]{0,63}(?<!_)=(?:"(?P<double>[^"\n]{8,512})"|'(?P<single>[^'\n]{8,512})'|(?P<bare>[^\s。，、；！？「」【】（）"'`;&|<>]{8,512}))"""
)


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

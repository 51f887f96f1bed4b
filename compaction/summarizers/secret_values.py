"""Judgement of what stands beside a name for secrets: a secret, or code, a placeholder, a word of a sentence.

Over-redaction damages a summary, so the weaker the sign that a value belongs to the name, the more it must look like a secret.
"""

from __future__ import annotations

import re
from typing import Final

from .secret_shapes import KEY_KIND

_CODE: Final = re.compile(
    r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|[a-z]+(?:_[a-z]+)+[0-9]?|[a-z]+(?:[A-Z][a-z]+)+|(?:[A-Z][a-z]+){2,}|\$\w+|%\w+%"
    r"|0x[0-9a-fA-F]+|[~.]{0,2}/.*"
)
_PLACEHOLDER: Final = re.compile(
    r"(?i)[*x.•_-]+|\$\{.*|\{\{.*|%\(.*|<.*|\[.*"
    r"|(?:(?:your|my|some|the|a|an|new|old|test|dummy|fake|example|sample)[ _-]?){0,2}"
    r"(?:password|passwd|pwd|secret|token|key|api[ _-]?key|value|string|str|text|none|null|nil|true|false|bytes|bool|optional"
    r"|required|undefined|changeme|placeholder|redacted|hidden|masked|input|prompt|field|name)s?(?:[ _-]?(?:here|value|name))?"
    r"|(?:u?int|float|varchar|char|text|string|base|utf|sha|md|hs|rs|es|bcrypt|argon|scrypt|pbkdf|oauth|hmac|aes|rsa|ssl|tls|http"
    r"|v|version|step|field|page|line|option|level|part|phase|section|table|column|row|test)[-_]?[0-9]{1,4}"
    r"|[0-9]{1,3}[-+]?(?:[a-z]{1,12}|[0-9]{1,3})"
)
_WORDS: Final = re.compile(r"[A-Za-z]+(?:['’/-][A-Za-z]+)*")
_RESOURCE: Final = re.compile(r"[a-z]+(?:[-./][a-z]+)+(?:[-/]?v?[0-9]{1,4})?")
_MIXED: Final = re.compile(
    r"(?=[^a-z]{0,512}[a-z])(?=[^A-Z]{0,512}[A-Z])(?=[^0-9]{0,512}[0-9])(?:base64:)?[A-Za-z0-9+/=_.%-]{16,}"
)
_OPTION: Final = re.compile(r"--?[\w-]*$")
_ARGUMENT: Final = re.compile(r"""[(,]\s?\\?["'][\w.-]*$""")
_BEFORE_CHARS: Final = 64
_KINDS: Final = ("password", "secret", "token", "weak")
_OPERATORS: Final = ("assign", "pair", "tag", "cell", "says", "comma", "call", "gap")
_COMPOUND: Final = ("store", "key", "user", "db", "root", "admin")


def is_strong(value: str) -> bool:
    """Return whether a word is a password by its look alone: six characters or more, letters with digits, and no common term.

    >>> is_strong("hunter22"), is_strong("page2"), is_strong("sha256"), is_strong("9116169cf0d2")
    (True, False, False, False)
    """
    digits = sum(character.isdigit() for character in value)
    letters = sum(character.isalpha() for character in value)
    if len(value) < 6 or not digits or not letters or _PLACEHOLDER.fullmatch(value) or _CODE.fullmatch(value):
        return False
    if re.fullmatch(r"[0-9a-f-]{7,}|[a-z]+[-_]?[0-9]", value, re.ASCII) or "://" in value:
        return False
    return digits >= 2 or any(character.isupper() for character in value) or not value.isalnum()


def named_kind(found: re.Match[str], group: str) -> str | None:
    """Return the kind of secret that a match of `NAMED` holds, such as ``"password"``; ``None`` if it holds none.

    Args:
        found: The match.
        group: The group of the value: ``"double"``, ``"single"``, ``"ticked"`` or ``"bare"``.
    """
    value = found[group].rstrip(".!?:*")
    quoted = group != "bare"
    if _PLACEHOLDER.fullmatch(value) or (not quoted and (found["code"] or _CODE.fullmatch(value))):
        return None
    before = found.string[max(0, found.start() - _BEFORE_CHARS) : found.start()]
    kind = secret_kind(found, before)
    operator = next(operator for operator in _OPERATORS if found[operator] is not None)
    if operator == "gap" and _OPTION.search(before):
        operator = "assign"
    if kind is None or not _operator_fits(found, operator, group, before):
        return None
    if found["short"] and not _short_name_fits(found, operator, value, before, quoted=quoted):
        return None
    judge = _looks_like_password if kind == "password" else _looks_like_key
    return kind if judge(found, kind, operator, value, quoted=quoted) else None


def secret_kind(found: re.Match[str], before: str) -> str | None:
    """Return the kind of secret that a name is for; ``None`` for ``key`` alone, as in ``primary key``.

    Args:
        found: A match with the groups of `NAMED`.
        before: The text before the name.
    """
    if not found["key"]:
        return next(kind for kind in _KINDS if found[kind])
    word = KEY_KIND.search(before)
    return None if word is None else word.lastgroup


def _operator_fits(found: re.Match[str], operator: str, group: str, before: str) -> bool:
    """Return whether the text around allows the operator: a cell ends, a call has arguments."""
    if operator == "cell":
        end = found.end(group) + (group != "bare")
        return re.match(r"[`*]{0,3}[ \t]{0,40}(?:\||\n|\Z)", found.string[end : end + 48]) is not None
    if operator == "comma":
        return _ARGUMENT.search(before) is not None
    return operator != "call" or found["password"] is not None


def _short_name_fits(found: re.Match[str], operator: str, value: str, before: str, *, quoted: bool) -> bool:
    """Return whether ``pass``, ``pw`` or ``psk`` is a name of its own, and no part of a word or a verdict of a test."""
    name, last = found["short"], before[-1:]
    own = not last.isalpha() or (last.islower() and name[0].isupper()) or before.lower().endswith(_COMPOUND)
    if not own or value.isdecimal() or operator in ("says", "gap", "call", "cell"):
        return own and operator == "cell" and last in "_.-" and is_strong(value)
    if name.isupper() and not last.strip() and ":" in found[operator]:  # the verdict of a test
        return False
    joined = last in ("_", "-", ".") or last.isalpha()
    return joined or quoted or operator == "tag" or "=" in found[operator] or (is_strong(value) and "." not in value)


def _looks_like_password(found: re.Match[str], kind: str, operator: str, value: str, *, quoted: bool) -> bool:
    """Return whether a value is a password: it may be a word where code cannot be."""
    digits = any(character.isdigit() for character in value)
    spaced = any(character.isspace() for character in value)
    if operator == "says" and not quoted:
        return digits and (len(value) >= 6 or not value.isdecimal())
    if operator in ("cell", "gap") and not quoted:
        return is_strong(value)
    if operator in ("cell", "comma", "gap", "call"):
        return not spaced and (digits or not value.isalnum()) and _WORDS.fullmatch(value) is None
    shouted = found["password"].isupper() and operator == "assign" and "=" in found[operator]
    return digits or ((quoted or shouted) and not spaced) or _WORDS.fullmatch(value) is None


def _looks_like_key(found: re.Match[str], kind: str, operator: str, value: str, *, quoted: bool) -> bool:
    """Return whether a value is a key or token: these hold digits, and are no names of things."""
    if any(character.isspace() for character in value) or value.isdecimal() or len(value) < 8 or _RESOURCE.fullmatch(value):
        return False
    if kind == "weak" or (operator == "gap" and not quoted):
        return _MIXED.fullmatch(value) is not None
    if operator == "comma" or operator == "cell":
        return is_strong(value) or len(value) >= 32
    shouted = (
        kind == "secret" and (found["secret"] or found["key"]).isupper() and operator == "assign" and "=" in found[operator]
    )
    return any(character.isdigit() for character in value) or (shouted and not _WORDS.fullmatch(value))

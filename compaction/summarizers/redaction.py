"""Redaction of secrets in what is sent to a summarizer and in what it returns.

A summary outlives the conversation: it is sent again with every request, stored, and shown to other models, so secrets must
not get into it. `redact` recognizes a secret by its form or by the name it is assigned to. It is a safety net, not a
guarantee: a secret described in other words is not found.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from .secret_shapes import (
    ASSIGNED,
    AUTHORIZATION,
    CODE,
    COOKIE,
    OPTION,
    PLACEHOLDER,
    PRIVATE_KEY,
    TOKEN,
    URL_PASSWORD,
    USER_PASSWORD,
)

__all__ = ["redact"]

_BREAK: Final = r"(?:\s|\\{1,3}[nrt]){1,8}"
_KEY_LINES: Final = re.compile(
    rf"(?:{_BREAK}(?:Proc-Type|DEK-Info): [\w,-]{{1,80}})*(?:{_BREAK}[A-Za-z0-9+/=]{{16,128}})*"
    rf"(?:{_BREAK}(?:[A-Za-z0-9+/]{{1,64}}={{1,2}}|[A-Za-z0-9+/]{{1,64}}\Z))?"
)
_KEY_CHARS: Final = 20_000
_KINDS: Final = ("password", "secret", "api_key", "token")


def redact(text: str) -> str:
    """Return the text with every recognized secret replaced by ``[REDACTED:kind]``.

    It finds private keys, the tokens of well-known services, JSON web tokens, credentials in headers, cookies, passwords in
    URLs and connection strings, and values assigned to a name such as ``password``, ``api_key`` or ``token``, unless they look
    like code. Identifiers, checksums, commit ids, UUIDs and paths stay, and so does what is already redacted.

    Cost: linear in the text; 0.3 s a megabyte for a recorded conversation, 2 s for the most hostile text we know.

    >>> redact("export DB_PASSWORD=hunter2 && psql postgres://app:s3cr3t@db/main")
    'export DB_PASSWORD=[REDACTED:password] && psql postgres://app:[REDACTED:password]@db/main'
    >>> redact("git show 9116169cf0d2 # token = tokens[0]")
    'git show 9116169cf0d2 # token = tokens[0]'
    """
    text = TOKEN.sub(_kind, _without_private_keys(text))
    lowered = text.lower()
    for words, shape, replacement in _PLACES:
        if any(word in lowered for word in words):
            text = shape.sub(replacement, text)
    return text


def _mark(kind: str) -> str:
    return f"[REDACTED:{kind.replace('_', '-')}]"


def _kind(found: re.Match[str]) -> str:
    return _mark(found.lastgroup or "token")


def _value(found: re.Match[str]) -> str:
    """Return the assignment without its value, or unchanged if the value is not a secret."""
    kind = next(kind for kind in _KINDS if found[kind])
    group = next(group for group in ("double", "single", "bare") if found[group])
    value = found[group].rstrip(".!?:")
    if PLACEHOLDER.fullmatch(value) or (group == "bare" and (found["call"] or CODE.fullmatch(value))):
        return found[0]
    if not _looks_secret(kind, value, quoted=group != "bare", shouted=found[kind].isupper()):
        return found[0]
    start, end = found.span(group)
    return found.string[found.start() : start] + _mark(kind) + found.string[end : found.end()]


def _looks_secret(kind: str, value: str, *, quoted: bool, shouted: bool) -> bool:
    """Return whether a value under such a name is a secret: a password may be a word where code cannot be, keys hold digits."""
    digits = any(character.isdigit() for character in value)
    spaced = any(character.isspace() for character in value)
    if kind == "password":
        return digits or (quoted and not spaced) or (shouted and not spaced) or not value.isalpha()
    return not spaced and digits and len(value) >= 8 and not value.isdecimal()


def _without_private_keys(text: str) -> str:
    """Return the text without private keys; one without an end is removed as far as its lines look like a key."""
    pieces: list[str] = []
    done, end = 0, 0
    for start in PRIVATE_KEY.finditer(text):
        if start.start() < done:
            continue
        if 0 <= end < start.end():
            end = text.find("-----END ", start.end())
        pieces += [text[done : start.start()], _mark("private_key")]
        done = _key_end(text, start.end(), end)
    return "".join([*pieces, text[done:]]) if pieces else text


def _key_end(text: str, start: int, end: int) -> int:
    """Return where a private key ends whose first line ends at ``start``; ``end`` is the next closing line, or -1."""
    if 0 <= end <= start + _KEY_CHARS:
        closing = text.find("-----", end + len("-----END "), end + 100)
        if closing >= 0:
            return closing + len("-----")
    lines = _KEY_LINES.match(text, start)
    return start if lines is None else lines.end()


_NAMES: Final = (
    "pass", "pwd", "secret", "key", "token", "credential", "session", "sessid", "connect.sid", "signature",
    "비밀번호", "암호", "密码", "密碼", "口令", "パスワード",
)  # fmt: skip
_PLACES: Final[tuple[tuple[tuple[str, ...], re.Pattern[str], str | Callable[[re.Match[str]], str]], ...]] = (
    (("authorization", "bearer", "basic"), AUTHORIZATION, r"\1[REDACTED:credential]"),
    (("cookie",), COOKIE, r"\1[REDACTED:cookie]"),
    (("://",), URL_PASSWORD, r"\1[REDACTED:password]"),
    (("-u",), USER_PASSWORD, r"\1[REDACTED:password]"),
    (_NAMES, ASSIGNED, _value),
    (("--",), OPTION, _value),
)
"""The searches in order, each with words of which one must occur in the text."""

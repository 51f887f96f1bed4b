"""Redaction of secrets in what is sent to a summarizer and in what it returns.

A summary outlives the conversation: it is sent again with every request, stored, and shown to other models, so secrets must
not get into it. `redact` recognizes a secret by its form, by the name it is assigned to, or by the head of its column. It is a
safety net, not a guarantee: a secret described in other words is not found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator
from typing import Final

from .secret_shapes import (
    AUTHORIZATION,
    COMMANDS,
    COOKIE,
    NAME_ALONE,
    NAMED,
    SECRET_DATA,
    SECRET_ENTRY,
    SENTENCES,
    URL_PASSWORD,
    URL_SIGNATURE,
)
from .secret_tokens import KEY_LINES, PRIVATE_KEY, TOKEN, TOKEN_PARTS
from .secret_values import is_strong, named_kind, secret_kind

_RULE: Final = re.compile(r"^[ \t]{0,8}[|+]?[ \t]{0,2}:?-{2}[-|+: \t]{0,4096}$", re.MULTILINE)
_HEAD_CHARS: Final = 4_096
_NAME_CHARS: Final = 64


def _without_secret_columns(text: str, mark: str) -> str:
    r"""Return the text with a mark in place of each word that looks like a secret under a head such as ``password``.

    A table has a head, a line of dashes, and rows; ``|`` stands between the cells. Cost: linear in the text.

    >>> print(_without_secret_columns("| user | password |\n|---|---|\n| dan | hunter22 |", "[REDACTED]"))
    | user | password |
    |---|---|
    | dan | [REDACTED] |
    """
    if "|" not in text or "--" not in text:
        return text
    pieces: list[str] = []
    done = 0
    for start, end in _secret_cells(text):
        if start >= done:
            pieces += [text[done:start], mark]
            done = end
    return "".join([*pieces, text[done:]]) if pieces else text


def _secret_cells(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each such word starts and ends."""
    read = 0
    for rule in _RULE.finditer(text):
        if rule.start() < read:
            continue
        end_of_head = rule.start() - 1
        head = text[text.rfind("\n", max(0, end_of_head - _HEAD_CHARS), max(0, end_of_head)) + 1 : max(0, end_of_head)]
        columns = {number for number, cell in enumerate(head.split("|")) if "|" in head and _is_for_secrets(cell)}
        if columns:
            read = yield from _cells_under(text, rule.end() + 1, columns)


def _is_for_secrets(head: str) -> bool:
    """Return whether a head names secrets."""
    found = NAME_ALONE.fullmatch(head) if len(head) <= _NAME_CHARS else None
    return found is not None and secret_kind(found, head[: found.start("name")]) is not None


def _cells_under(text: str, start: int, columns: set[int]) -> Generator[tuple[int, int], None, int]:
    """Yield the words that look like a secret in these columns of the rows from ``start``; return where the rows end."""
    while start < len(text):
        end = text.find("\n", start)
        row = text[start : end if end >= 0 else len(text)]
        if "|" not in row:
            break
        place = start
        for number, cell in enumerate(row.split("|")):
            word = cell.strip(" \t`*")
            if number in columns and is_strong(word) and " " not in word:
                begins = place + cell.index(word)
                yield begins, begins + len(word)
            place += len(cell) + 1
        start += len(row) + 1
    return start


_KEY_CHARS: Final = 20_000
_LONG_CHARS: Final = 256
_QUOTES: Final = ("double", "single", "ticked", "bare")


def redact(text: str) -> str:
    """Return the text with every recognized secret replaced by ``[REDACTED:kind]``.

    It finds private keys, the tokens of well-known services, JSON web tokens, credentials in headers, cookies, passwords in
    URLs, connection strings, commands and SQL, and values that belong to a name such as ``password``, ``api_key`` or ``token``:
    assigned, in a tag, in a table, in a sentence, unless they look like code. Identifiers, checksums, commit ids, UUIDs and
    paths stay, and so does what is already redacted.

    Cost: linear in the text; the figures are in ``docs/prompts.md``.

    >>> redact("export DB_PASSWORD=hunter2 && psql postgres://app:s3cr3t@db/main")
    'export DB_PASSWORD=[REDACTED:password] && psql postgres://app:[REDACTED:password]@db/main'
    >>> redact("git show 9116169cf0d2 # token = tokens[0]")
    'git show 9116169cf0d2 # token = tokens[0]'
    """
    text = _without_private_keys(text)
    if any(part in text for part in TOKEN_PARTS):
        text = TOKEN.sub(_kind, text)
    lowered = text.lower()
    for words, shape, replacement in _PLACES:
        if any(word in lowered for word in words):
            text = shape.sub(replacement, text)
    if any(name in lowered for name in _NAME_PARTS):
        text = _without_named(_without_secret_columns(text, _mark("column")))
    return text


def _mark(kind: str) -> str:
    return f"[REDACTED:{kind.replace('_', '-')}]"


def _kind(found: re.Match[str]) -> str:
    return _mark(found.lastgroup or "token")


def _without_named(text: str) -> str:
    """Return the text without the secrets that stand beside a name for them; a value may be a name that has one itself."""
    pieces: list[str] = []
    done, judged = 0, 0
    for found in NAMED.finditer(text):
        group = next(group for group in _QUOTES if found[group])
        start, end = found.span(group)
        if start < done or found.start() < judged:
            continue
        kind = named_kind(found, group)
        if kind is not None:
            end = start + len(found[group].rstrip(".?:*")) if group == "bare" else end
            pieces += [text[done:start], _mark("secret" if kind == "weak" else kind)]
            done = end
        elif end - start > _LONG_CHARS:  # names in it are not judged: they would all have the same end
            judged = end
    return "".join([*pieces, text[done:]]) if pieces else text


def _argument(found: re.Match[str]) -> str:
    """Return a command without its password; a port, an option and a redacted one are none."""
    value = found["value"]
    if value.isdecimal() or value[0] in "-[{*" or value == "password":
        return found[0]
    return _with_value(found, _mark("password"))


def _strong_word(found: re.Match[str]) -> str:
    """Return a sentence without its password, if that looks like one."""
    return _with_value(found, _mark("password")) if is_strong(found["value"].rstrip(".!?:,")) else found[0]


def _with_value(found: re.Match[str], mark: str) -> str:
    start, end = found.span("value")
    return found.string[found.start() : start] + mark + found.string[end : found.end()]


def _credential(found: re.Match[str]) -> str:
    return (found["basic"] or found["head"]) + _mark("credential")


def _secret_data(found: re.Match[str]) -> str:
    return SECRET_ENTRY.sub(rf"\1{_mark('secret')}", found[0])


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
        done = _key_end(text, start.end(), end if start[0].startswith("-----") else -1)
    return "".join([*pieces, text[done:]]) if pieces else text


def _key_end(text: str, start: int, end: int) -> int:
    """Return where a private key ends whose first line ends at ``start``; ``end`` is the next closing line, or -1."""
    if 0 <= end <= start + _KEY_CHARS:
        closing = text.find("-----", end + len("-----END "), end + 100)
        if closing >= 0:
            return closing + len("-----")
    lines = KEY_LINES.match(text, start)
    return start if lines is None else lines.end()


_NAME_PARTS: Final = (
    "pass", "pw", "psk", "secret", "key", "token", "credential", "sess", "connect.sid", "auth",
    "contraseña", "senha", "dockerconfigjson", "비밀번호", "암호", "密码", "密碼", "口令", "パスワード",
)  # fmt: skip
_PLACES: Final[tuple[tuple[tuple[str, ...], re.Pattern[str], str | Callable[[re.Match[str]], str]], ...]] = (
    (("kind: secret",), SECRET_DATA, _secret_data),
    (("authorization", "bearer", "basic"), AUTHORIZATION, _credential),
    (("cookie", "-b "), COOKIE, rf"\1{_mark('cookie')}"),
    (("://", "jdbc:"), URL_PASSWORD, rf"\1{_mark('password')}"),
    (("sig=", "signature="), URL_SIGNATURE, rf"\1{_mark('secret')}"),
    *(((word,), shape, _argument) for word, shape in COMMANDS.items()),
    *(((word,), shape, _strong_word) for word, shape in SENTENCES.items()),
)
"""The searches in order, each with words of which one must occur in the text."""

"""`redact`, and what it knows: secrets that belong to a name, and those with a form, a checksum, a label or a command.

The forms and the names are the table ``secrets.toml``.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias


def redact(text: str) -> str:
    """Return the text with every recognized secret replaced by ``[REDACTED:kind]``.

    It finds private keys, the tokens of well-known services, JSON web tokens, hashes of passwords, credentials in headers,
    cookies, passwords in URLs, connection strings, commands and SQL, numbers of cards and bank accounts, recovery codes and
    word lists of wallets. It also finds values that belong to a name such as ``password``, ``api_key`` or ``Kennwort``:
    assigned, in a tag, in a table, a CSV file or a list, or in a sentence, unless they look like code. Identifiers, checksums,
    commit ids, UUIDs and paths stay, and so does what is already redacted.

    Cost: linear in the text; the figures are in ``docs/prompts.md``.

    >>> redact("export DB_PASSWORD=hunter2 && psql postgres://app:s3cr3t@db/main")
    'export DB_PASSWORD=[REDACTED:password] && psql postgres://app:[REDACTED:password]@db/main'
    >>> redact("git show 9116169cf0d2 # token = tokens[0]")
    'git show 9116169cf0d2 # token = tokens[0]'
    """
    if len(text) < _SHORTEST:
        return text
    data = text.encode("utf-8", "surrogatepass")
    if "PRIVATE KEY" in text or "Private-Lines" in text:
        text = _replaced(text, _PRIVATE_KEYS.spans(text))
    words = _TOKEN_SCAN.perhaps_in(text) if _holds(data, *_IN_TOKENS) else set[str]()
    for search in _TOKENS if words else ():
        if search.may_find(words, text):
            text = _replaced(text, search.spans(text))
    small = in_small_letters(text)
    words = (_ASCII_SCAN if len(data) == len(text) else _SCAN).perhaps_in(small)
    if words.isdisjoint(NAME_WORDS):
        words.discard(" as ")  # as the password
    for search in _PLACES if words else ():
        if search.may_find(words, small):
            text = _replaced(text, search.spans(text))
    small = in_small_letters(text)
    numbers = (search for search in _NUMBERS if (_holds(data, *search.run) if search.run else search.may_find(words, small)))
    text = _replaced(text, [span for search in numbers for span in search.spans(text, small)])
    return _replaced(text, beside_names(text, words))


# ---------------------------------------------------------------- the table

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


# ---------------------------------------------------------------- values beside names

_NAMES: Final[dict[str, list[str]]] = TABLE["names"]
_SPELLED: Final[dict[str, str]] = {
    "password": rf"{any_of(_NAMES['password'])}|(?P<short>{any_of(_NAMES['short'])})",
    "secret": rf"{any_of(_NAMES['secret'])}(?:[ _-]?(?:access[ _-]?)?(?:key|키))?",
    "token": any_of(_NAMES["token"]),
    "weak": any_of(_NAMES["weak"]),
    "key": any_of(_NAMES["key"]),
}
NAME: Final = "(?:" + "|".join(f"(?P<{kind}>{shape})" for kind, shape in _SPELLED.items()) + ")"
_ENDING: Final = "(?:[_-]?(?:base|prod|production|dev|data|staging|test|live|value|old|new|v?[0-9]{1,2}))?"
_QUOTE: Final = r"""\\{0,3}["'`]"""
_TYPE: Final = r"(?::[ \t]?(?:str|string|String|&str|Optional\[str\]|str \| None)[ \t]?)?"
_VALUE_KEY: Final = rf"(?:{_QUOTE})?[Vv]alue(?:{_QUOTE})?[ \t]?[:=][ \t]?"
_SAID: Final = TABLE["sentences"]
_FOR: Final = rf"(?:[ \t]{any_of(_SAID['for'])}[ \t][^\n.,:;|]{{1,48}}?)?"
_OPERATORS: Final[dict[str, str]] = {
    "pair": rf"{_QUOTE},?\s{{0,40}}{_VALUE_KEY}"
    rf"|{_QUOTE} ?\{{[^{{}}\"']{{0,160}}\bdefault\s{{0,16}}=[ \t]?"
    rf"|\s{{0,4}}\n\s{{0,40}}{_VALUE_KEY}|</key>\s{{0,40}}<string>",
    "assign": rf"(?:{_QUOTE})?\]?\*{{0,2}}[ \t]{{0,8}}(?:{_TYPE}=[=>]?|:=|[:：])\*{{0,2}}"
    r"(?:[ \t]{0,8}[|>][+-]?[ \t]{0,8}\n)?[ \t]{0,40}\*{0,2}",
    "field": rf"(?:{_QUOTE})?</t[dh]>\s{{0,40}}<t[dh][^<>\n]{{0,64}}>",
    "tag": rf"(?:{_QUOTE})?>",
    "cell": r"[`*]{0,3}[ \t]{0,40}[|│┃║][ \t]{0,40}",
    "says": rf"{_FOR}[ \t]{{1,4}}{any_of(_SAID['verbs'])}(?:[ \t](?:now|set|changed|reset|updated))?(?:[ \t]to)?:?"
    rf"[ \t]{{1,4}}\*{{0,2}}|[ \t]?{any_of(_SAID['particles'])}[ \t]{{0,4}}[「『“«]?"
    rf"|{_FOR}[ \t]?[:：][ \t]{{1,4}}|[ \t][—–][ \t]",
    "comma": rf"{_QUOTE}[ \t]?,[ \t]?(?={_QUOTE})",
    "call": rf"\([ \t]?(?={_QUOTE})",
    "gap": r"[ \t]{1,8}",
}
_OPERATOR: Final = "(?:" + "|".join(f"(?P<{name}>{shape})" for name, shape in _OPERATORS.items()) + ")"
_DOUBLE: Final = r'\\{0,3}"(?P<double>(?:[^"\n\\]|\\(?!["nrt\\])[^\n]){4,4096})\\{0,3}"'
_SINGLE: Final = r"\\{0,3}'(?P<single>(?:[^'\n\\]|\\(?!['nrt\\])[^\n]){4,4096})\\{0,3}'"
_TICKED: Final = r"`(?P<ticked>[^`\n]{4,4096})`"
_BARE: Final = r"""(?P<bare>[^\s。，、；！？「」【】（）"'`\\,;&<>(){}\[\]|│┃║]{4,4096})(?P<code>[(\[])?"""
_VALUE: Final = f"(?:{_DOUBLE}|{_SINGLE}|{_TICKED}|{_BARE})"

NAME_WORDS: Final = frozenset(word for words in _NAMES.values() for word in words)
SPOT: Final = re.compile(any_of(sorted(NAME_WORDS)))
"""Where a name for a secret may begin, in small letters."""

ASCII_SPOT: Final = re.compile(any_of(filter(str.isascii, sorted(NAME_WORDS))))
"""The same in a text without other letters, which is quicker."""

NAMED: Final = re.compile(f"(?i){NAME}{_ENDING}{_OPERATOR}(?={_VALUE})")
"""A name that people give to secrets, alone or at the end of a longer name, and in a lookahead the value that belongs to it.

The groups say the kind of name, the operator between the two, and how the value is quoted."""

NAME_ALONE: Final = re.compile(f"(?i)[*`\"' ]{{0,4}}[\\w. -]{{0,40}}?(?P<name>{NAME}){_ENDING}[*`\"' ]{{0,4}}")
"""The head of a column of secrets, if `KEY_KIND` knows a name that ends in ``key``."""

LISTED: Final = re.compile(f"(?i){NAME}(?:e?s)?(?:{_QUOTE})?[ \\t]{{0,4}}[:=][ \\t]{{0,4}}(?:(?P<bracket>[\\[(])|(?=\\n))")
"""A name for secrets at the head of a list."""

KEY_KIND: Final = re.compile(
    "(?i)(?:" + "|".join(f"(?P<{kind}>{any_of(words)})" for kind, words in TABLE["keys"].items()) + r")[ ._-]?\Z"
)
"""The word before ``key`` that makes it a name for secrets."""

_KINDS: Final = ("password", "secret", "token", "weak")
_QUOTES: Final = ("double", "single", "ticked", "bare")
_LONG_CHARS: Final = 256
_BEFORE_CHARS: Final = 64


def beside_names(text: str, words: set[str]) -> Iterator[SecretSpan]:
    """Yield the secrets that belong to a name: assigned to it, under it in a table or a list, or in a variable."""
    if not words.isdisjoint(NAME_WORDS):
        spots = [found.start() for found in (ASCII_SPOT if text.isascii() else SPOT).finditer(in_small_letters(text))]
        yield from _named(text, spots)
        yield from _in_columns(text, spots)
        yield from _in_lists(text, spots)
    if "=" in text:
        yield from _in_variables(text)


def _named(text: str, spots: list[int]) -> Iterator[SecretSpan]:
    """Yield the values beside these names; a value may be a name that has one itself."""
    done, judged = 0, 0
    for spot in spots:
        found = NAMED.match(text, spot) if spot >= judged else None
        if found is None:
            continue
        group = next(group for group in _QUOTES if found[group])
        start, end = found.span(group)
        if start < done:
            continue
        kind = _named_kind(found, group)
        if kind is not None:
            end = start + len(found[group].rstrip(".?:*")) if group == "bare" else end
            yield start, end, "secret" if kind == "weak" else kind
            done = end
        elif group == "bare" and end - start > _LONG_CHARS:  # one long word: names in it would all have the same end
            judged = end


def _named_kind(found: re.Match[str], group: str) -> str | None:
    """Return the kind of secret that a match of `NAMED` holds in this group; ``None`` if it holds none."""
    value = found[group].rstrip(".!?:*")
    quoted = group != "bare"
    if not value or _PLACEHOLDER.fullmatch(value) or (not quoted and (found["code"] or _CODE.fullmatch(value))):
        return None
    before = found.string[max(0, found.start() - _BEFORE_CHARS) : found.start()]
    if _IN_MARK.search(before):
        return None
    kind = _secret_kind(found, before)
    operator = next(operator for operator in _OPERATORS if found[operator] is not None)
    sign = found[operator]
    if operator == "gap" and _OPTION.search(before):
        operator = "assign"
    if kind is None or not _operator_fits(found, operator, group, before):
        return None
    if found["short"] and not _short_name_fits(found["short"], operator, sign, value, before, quoted=quoted):
        return None
    name = found["password"] or found["secret"] or (found["key"] if kind == "secret" else "") or ""
    shouted = operator == "assign" and "=" in sign and name.isupper()
    if kind == "password":
        return kind if _looks_like_password(value, operator, sign, quoted=quoted, shouted=shouted) else None
    return kind if _looks_like_key(value, operator, kind, quoted=quoted, shouted=shouted) else None


def _secret_kind(found: re.Match[str], before: str) -> str | None:
    """Return the kind of secret that a name is for, after this text; ``None`` for ``key`` alone, as in ``primary key``."""
    if not found["key"]:
        return next(kind for kind in _KINDS if found[kind])
    word = KEY_KIND.search(before)
    return None if word is None else word.lastgroup


def _operator_fits(found: re.Match[str], operator: str, group: str, before: str) -> bool:
    """Return whether the text around allows the operator: a cell ends, a call has arguments."""
    if operator == "cell":
        end = found.end(group) + (group != "bare")
        return re.match(r"[`*]{0,3}[ \t]{0,40}(?:[|│┃║]|\n|\Z)", found.string[end : end + 48]) is not None
    if operator == "comma":
        return _ARGUMENT.search(before) is not None
    return operator != "call" or found["password"] is not None


def _short_name_fits(name: str, operator: str, sign: str, value: str, before: str, *, quoted: bool) -> bool:
    """Return whether ``pass``, ``pw`` or ``psk`` is a name of its own, and not part of a word or a verdict of a test."""
    last = before[-1:]
    own = not last.isalpha() or (last.islower() and name[0].isupper()) or before.lower().endswith(_COMPOUND)
    if not own or value.isdecimal() or operator in ("says", "gap", "call", "cell"):
        return own and operator == "cell" and last in "_.-" and is_strong(value)
    if name.isupper() and not last.strip() and ":" in sign:  # the verdict of a test
        return False
    joined = last in ("_", "-", ".") or last.isalpha()
    return joined or quoted or operator == "tag" or "=" in sign or (is_strong(value) and "." not in value)


def _looks_like_password(value: str, operator: str, sign: str, *, quoted: bool, shouted: bool) -> bool:
    """Return whether a value is a password: it may be a word where code cannot be."""
    if operator == "says" and not quoted and not sign.isascii():  # a language without blanks goes on behind the password
        value = _FOREIGN.split(value, maxsplit=1)[0]
    digits = any(character.isdigit() for character in value)
    spaced = any(character.isspace() for character in value)
    if operator == "says" and not quoted:
        return digits and (len(value) >= 6 or not value.isdecimal())
    if operator in ("cell", "field", "gap") and not quoted:
        return is_strong(value)
    if operator in ("cell", "comma", "gap", "call"):
        return not spaced and (digits or not value.isalnum()) and _WORDS.fullmatch(value) is None
    return digits or ((quoted or shouted) and not spaced) or _WORDS.fullmatch(value) is None


def _looks_like_key(value: str, operator: str, kind: str, *, quoted: bool, shouted: bool) -> bool:
    """Return whether a value is a key or token: these hold digits, and are not names of things."""
    if any(character.isspace() for character in value) or value.isdecimal() or len(value) < 8 or _RESOURCE.fullmatch(value):
        return False
    if kind == "weak" or (operator == "gap" and not quoted):
        return _MIXED.fullmatch(value) is not None
    if operator in ("comma", "cell", "field"):
        return is_strong(value) or len(value) >= 32
    return any(character.isdigit() for character in value) or (shouted and not _WORDS.fullmatch(value))


_CODE: Final = re.compile(
    r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|[a-z]+(?:_[a-z]+)+[0-9]?|[A-Z]+(?:_[A-Z]+)+|[a-z]+(?:[A-Z][a-z]+)+|(?:[A-Z][a-z]+){2,}|\$\w+|%\w+%"
    r"|0x[0-9a-fA-F]{1,40}|[~.]{0,2}/.*"
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
_WORDS: Final = re.compile(r"[^\W\d_]+(?:['’/-][^\W\d_]+)*")
_RESOURCE: Final = re.compile(r"[a-z]+(?:[-./][a-z]+)+(?:[-/]?v?[0-9]{1,4})?")
_MIXED: Final = re.compile(
    r"(?=[^a-z]{0,512}[a-z])(?=[^A-Z]{0,512}[A-Z])(?=[^0-9]{0,512}[0-9])(?:base64:)?[A-Za-z0-9+/=_.%-]{16,}"
)
_FOREIGN: Final = re.compile(r"[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
# "[REDACTED:password" is a mark of ours: the word in it does not name a value
_IN_MARK: Final = re.compile(r"\[REDACTED:[a-z-]{0,40}\Z")
_OPTION: Final = re.compile(r"--?[\w-]*$")
_ARGUMENT: Final = re.compile(r"""[(,]\s?\\?["'][\w.-]*$""")
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


# Columns of tables and CSV files, and lists.

_SEPARATORS: Final = ("|", "│", "║", "┃", "\t", ";", ",")
_SPACES: Final = re.compile(r"[ \t]{2,}")
_RULE: Final = re.compile(r"[ \t]{0,8}[|+│├╟]?[ \t]{0,2}:?[-─═]{2}[-|+: \t─═┼┤╢│║╫]{0,4096}")
_HEAD_CHARS: Final = 4_096
_NAME_CHARS: Final = 64


def _in_columns(text: str, spots: list[int]) -> Iterator[SecretSpan]:
    """Yield each word that looks like a secret under a head such as ``password``.

    A table is a head, perhaps a line of dashes, and rows with as many cells. Between the cells stand ``|``, tabs, semicolons,
    commas, or two spaces and more. Cost: linear in the text.
    """
    read = 0
    for spot in spots:
        if spot < read:
            continue
        start = text.rfind("\n", max(0, spot - _HEAD_CHARS), spot) + 1
        end = text.find("\n", spot, spot + _HEAD_CHARS)
        if end < 0 or start < read:
            continue
        read = end
        head = text[start:end]
        separator = next((each for each in _SEPARATORS if each in head), "  ")
        if separator == "," and ", " in head:  # a sentence, or arguments
            continue
        cells = _cells(head, separator)
        columns = [number for number, (_, cell) in enumerate(cells) if _is_for_secrets(cell)]
        if columns and sum(bool(cell.strip()) for _, cell in cells) > 1:  # not a list with a comma at the end of each line
            read = yield from _cells_under(text, end + 1, separator, len(cells), columns)


def _cells(line: str, separator: str) -> list[tuple[int, str]]:
    """Return the cells of a line and where each starts."""
    if separator != "  ":
        places = [0, *(place + 1 for place, character in enumerate(line) if character == separator)]
        return list(zip(places, line.split(separator), strict=True))
    gaps = [found.span() for found in _SPACES.finditer(line.rstrip()) if found.start()]
    starts = [0, *(end for _, end in gaps)]
    ends = [*(start for start, _ in gaps), len(line.rstrip())]
    return [(start, line[start:end]) for start, end in zip(starts, ends, strict=True)]


def _is_for_secrets(head: str) -> bool:
    """Return whether a head names secrets."""
    found = NAME_ALONE.fullmatch(head.strip(" \t\"'")) if len(head) <= _NAME_CHARS else None
    return found is not None and _secret_kind(found, found.string[: found.start("name")]) is not None


def _cells_under(text: str, start: int, separator: str, width: int, columns: list[int]) -> Generator[SecretSpan, None, int]:
    """Yield the words that look like a secret in these columns of the rows from ``start``; return where the rows end."""
    while start < len(text):
        end = text.find("\n", start)
        end = end if end >= 0 else len(text)
        row = text[start:end]
        cells = _cells(row, separator)
        if not _RULE.fullmatch(row) and (len(cells) != width or not row.strip()):
            break
        for number in columns:
            word = cells[number][1].strip(" \t`*\"'") if len(cells) == width else ""
            if is_strong(word) and " " not in word:
                begins = start + cells[number][0] + cells[number][1].index(word)
                yield begins, begins + len(word), "column"
        start = end + 1
    return start


LIST_LINES: Final = re.compile(r"(?:\n[ \t]{0,32}(?:-[ \t]|[ \t][\w-]{1,64}:)[^\n]{0,4096}){1,256}")
"""The lines of a YAML list."""

LIST_ITEM: Final = re.compile(
    r"""\n[ \t]{0,32}(?:-[ \t]{1,4})?(?:value:[ \t]{1,4})?["']?(?P<line>[^\s"':]{6,512})["']?[ \t]*(?=\n|\Z)"""
)
"""A line of a YAML list with one word."""

BRACKET_ITEM: Final = re.compile(r"""["'`](?P<quoted>[^"'`\s]{6,512})["'`]|(?<=[\s,\[(])(?P<plain>[^\s,"'`\[\](){}]{6,512})""")
"""A word in brackets."""

_LIST_CHARS: Final = 8_192


def _in_lists(text: str, spots: list[int]) -> Iterator[SecretSpan]:
    """Yield the items that look like secrets in a list under a name such as ``passwords``."""
    read = 0
    for spot in spots:
        found = LISTED.match(text, spot) if spot >= read else None
        if found is None or found["short"]:
            continue
        kind = _secret_kind(found, text[max(0, spot - _BEFORE_CHARS) : spot])
        lines = None if found["bracket"] else LIST_LINES.match(text, found.end())
        if kind is None or (lines is None and not found["bracket"]):
            continue
        if lines is not None:
            start, read, item = found.end(), lines.end(), LIST_ITEM
        else:
            close = text.find("]" if found["bracket"] == "[" else ")", found.end(), found.end() + _LIST_CHARS)
            start, read, item = found.end() - 1, max(found.end(), close), BRACKET_ITEM
        for each in item.finditer(text, start, read):
            word = each[each.lastgroup or 0]
            if is_strong(word) if kind == "password" else _looks_random(word):
                yield *each.span(each.lastgroup or 0), kind


# Variables in capitals, as in an ``.env`` file, whose names say less.

VARIABLE: Final = re.compile(
    r"""[A-Z](?<![\w$.{][A-Z])[A-Z0-9_]{0,63}(?<!_)=(?:"(?P<double>[^"\n]{8,512})"|'(?P<single>[^'\n]{8,512})'|(?P<bare>[^\s。，、；！？「」【】（）"'`;&|<>]{8,512}))"""
)
"""A variable in capitals and its value."""

_RANDOM: Final = re.compile(r"[0-9a-f]{32,}|[0-9a-z]{24,}|[A-Z2-7]{16,}|(?:[0-9A-Fa-f]{2}:){15,}[0-9A-Fa-f]{2}|0x[0-9a-f]{64}")
_SYMBOLS: Final = frozenset("!@#$%^&*()+=?")
_MIN_RANDOM_CHARS: Final = 16


def _in_variables(text: str) -> Iterator[SecretSpan]:
    """Yield the values of variables whose last word is one of the table's, if they look random."""
    words = TABLE["variables"]
    for found in VARIABLE.finditer(text):
        parts = found[0].partition("=")[0].split("_")
        group = found.lastgroup or "bare"
        start, end = found.span(group)
        if not set(parts).isdisjoint(words["harmless"]):
            continue
        user, colon, password = found[group].partition(":")
        if parts[-1] in words["login"] and colon and user.isalnum() and is_strong(password):
            yield start + len(user) + 1, end, "password"
        elif parts[-1] in words["secret"] and _looks_random(found[group]):
            yield start, end, "secret"


def _looks_random(value: str) -> bool:
    """Return whether a value is as long and as mixed as a generated key, and not a path, a URL or a UUID."""
    if len(value) < _MIN_RANDOM_CHARS or "://" in value:
        return False
    if len(value) >= 2 * _MIN_RANDOM_CHARS and len(_SYMBOLS.intersection(value)) > 3 and " " not in value:
        return True
    return _MIXED.fullmatch(value) is not None or _RANDOM.fullmatch(value) is not None


# ---------------------------------------------------------------- other secrets

_SHORTEST: Final = 7  # characters of a name, a sign and a password


def _replaced(text: str, spans: Iterable[SecretSpan]) -> str:
    """Return the text with a mark in place of each span; of spans that overlap, the first to start stays."""
    pieces: list[str] = []
    done = 0
    for start, end, kind in sorted(spans):
        if start >= done:
            pieces += [text[done:start], f"[REDACTED:{kind.replace('_', '-')}]"]
            done = end
    return "".join([*pieces, text[done:]]) if pieces else text


def _value(text: str, found: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield where the group ``value`` of a match is: all of it is a secret."""
    yield found.span("value")


class _Search(NamedTuple):
    """A search for secrets of one kind."""

    words: tuple[str, ...]  # of which a text with such a secret has one; in small letters, except for tokens
    shape: re.Pattern[str]
    kind: str
    secrets: Callable[[str, re.Match[str]], Iterator[tuple[int, int]]] = _value  # where those in a match start and end
    is_small: bool = False  # whether the expression is for a text in small letters
    run: tuple[bytes, int] | None = None  # characters of which such a text has so many in a row, in place of words

    def may_find(self, words: set[str], text: str) -> bool:
        """Return whether a text, in which these words may be, has one of its words."""
        return not words.isdisjoint(self.words) and any(word in text for word in self.words)

    def spans(self, text: str, small: str = "") -> Iterator[SecretSpan]:
        """Yield the secrets in a text, which is also given in small letters if the expression needs these."""
        for found in self.shape.finditer(small if self.is_small else text):
            for start, end in self.secrets(text, found):
                yield start, end, self.kind


class _WordScan:
    """Finds which of many words may be in a text, in one scan that misses none.

    A scan is quick where few letters stop it. So each word is looked for from one of its rare letters on.

    Args:
        words: The words; a space in one is any blank.
        stops: The letters to look for, the rarest first; in a word without one, the first letter.
    """

    def __init__(self, words: Iterable[str], stops: str) -> None:
        words = list(words)
        blanks = "[ _-]" if any(" " in word for word in words) else " "
        words_of: dict[str, set[str]] = {}
        for word in words:
            end = _from_rare_letter(word, stops)
            words_of.setdefault(end[0] + re.sub(blanks, " ", end[1:]), set()).add(word)
        self._words: list[set[str]] = []
        branches: dict[str, list[str]] = {}
        last = ""
        for end in sorted(words_of):
            if not last or not end.startswith(last):  # no end begins another, so that a place has at most one
                last = end
                self._words.append(set())
                rest = "".join(blanks if letter == " " else re.escape(letter) for letter in end[1:])
                branches.setdefault(end[0], []).append(f"{rest}()")
            self._words[-1] |= words_of[end]
        self._shape = re.compile("|".join(f"{re.escape(stop)}(?={'|'.join(rests)})" for stop, rests in branches.items()))

    def perhaps_in(self, text: str) -> set[str]:
        """Return the words that may be in a text; O(characters)."""
        numbers = {found.lastindex or 0 for found in self._shape.finditer(text)}
        return {word for number in numbers for word in self._words[number - 1]}


def _from_rare_letter(word: str, stops: str) -> str:
    """Return a word from its rarest letter on, or a little before: two letters at least."""
    places = [at for at, letter in enumerate(word[: max(1, len(word) - 1)]) if letter in stops or not letter.isascii()]
    at = min(places, key=lambda at: stops.find(word[at]), default=len(word) - len(word.lstrip()))
    return word[at:]


def _holds(data: bytes, characters: bytes, length: int) -> bool:
    """Return whether so many of these characters follow one another; many times quicker than an expression."""
    return b"1" * length in data.translate(_marking(characters))


@functools.cache
def _marking(characters: bytes) -> bytes:
    """Return the table that makes these characters a one, and all others a blank."""
    return bytes(49 if byte in characters else 32 for byte in range(256))


# Tokens that are recognizable by themselves, and private keys.

_BEFORE: Final = r"(?:(?<![A-Za-z0-9_-]{0})|(?<=\\[nrt]{0}))"
"""The place before a token that starts with a text: no other part of the same word."""


def _started(starts: list[str], rest: str) -> re.Pattern[str]:
    """Return the expression for a token; a beginning that comes first is looked for quickest."""
    begun = "|".join(re.escape(start) + _BEFORE.format(re.escape(start)) for start in starts)
    return re.compile(f"(?P<value>(?:{begun})(?:{rest}))")


_TOKENS: Final = (
    *(
        _Search(tuple(row["starts"]), _started(row["starts"], row["rest"]), row.get("kind", name))
        for name, row in TABLE["tokens"].items()
    ),
    *(
        _Search(tuple(row["holds"]), re.compile(f"{_BEFORE.format('')}(?P<value>{row['shape']})"), row.get("kind", name))
        for name, row in TABLE["inner_tokens"].items()
    ),
)
_IN_TOKENS: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.~+/=:%$@{}-", 15
_TOKEN_SCAN: Final = _WordScan([word for search in _TOKENS for word in search.words], stops="$ZQJ{qKxSAvygfkp:/c86-dln")

_BREAK: Final = r"(?:\s|\\{1,3}[nrt]){1,8}"
KEY_LINES: Final = re.compile(
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
        lines = KEY_LINES.match(text, start)
        yield found.start(), start if lines is None else lines.end()


PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?-----|---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----"
    r"|Private-Lines: [0-9]{1,4}(?=\s)"
)
"""The first line of a private key."""

_PRIVATE_KEYS: Final = _Search((), PRIVATE_KEY, "private_key", _private_key)


# Numbers with a checksum, and codes under a label.

_ISSUER: Final = re.compile(r"4|5[0-8]|6|2[2-7]|3[04-9]")
_CARD_LABEL: Final = re.compile(any_of(TABLE["labels"]["card"]))
_LABEL_CHARS: Final = 48
_CARD_CHARS: Final = 32  # of the longest number, and of what may stand around it
_IBAN_CHARS: Final = {word[:2]: int(word[2:]) for word in TABLE["iban"]["chars"].split()}
_WALLET_KEY_LABEL: Final = re.compile(
    r"""(?:wallet\(|from_?key\(|toaccount\(|\baccounts\\?["']?\s?[:=]\s?\[|(?:^|\n)[ \t]{0,4}\([0-9]{1,2}\)"""
    r"""|\bprivate keys?\b[^\n]{0,24})\s{0,4}\\?["']?\Z"""
)
CODE_ITEM: Final = re.compile(
    r"""(?:[\s,;:=：*•>"'`\[(-]|\\n|is |are |ist |sind |lautet ){0,24}(?:[0-9]{1,2}[.)][ \t]{1,4})?["'`]?"""
    r"""(?P<code>[0-9]{3,5}(?: [0-9]{3,5}){1,3}|[A-Za-z0-9]{4,8}(?:-[A-Za-z0-9]{4,8}){0,9})(?=["'`\s,;\].)]|\Z)"""
)
"""A recovery code with what separates it from the one before."""

WALLET_WORDS: Final = re.compile(r"(?<!\w)(?:[a-z]{3,8}(?:,?[ ]|\s{1,2}(?:[0-9]{1,2}[.)][ ]?)?)){11,23}[a-z]{3,8}(?!\w)")
"""Twelve to twenty-four words such as a wallet's."""

_NEVER_IN_WALLETS: Final = frozenset(TABLE["labels"]["never_words"])
_MOST_CODES: Final = 64
_WORDS_WITHIN: Final = 320


def _card(text: str, found: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield a number whose checksum is a card's, and those that follow it after a blank."""
    start, number = found.start(), found[0]
    while number and _is_card(number, text[max(0, start - _LABEL_CHARS) : start].lower()):
        end = start + len(number)
        yield start, end
        following = found.re.match(text[end + 1 : end + _CARD_CHARS]) if text[end : end + 1] == " " else None
        start, number = end + 1, following[0] if following else ""


def _is_card(number: str, before: str) -> bool:
    """Return whether a number has a card's checksum; one without groups must be said to be a card's."""
    digits = [int(character) for character in number if character.isdigit()]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    if (sum(digits[-1::-2]) + sum(doubled)) % 10 or _ISSUER.match(number) is None or len(set(digits)) == 1:
        return False
    return not number.isdigit() or _CARD_LABEL.search(before) is not None


def _iban(text: str, found: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield an account number, if it is as long as those of its country and its checksum is right."""
    needed = _IBAN_CHARS.get(found[0][:2], 0)
    chars = ""
    for end, character in enumerate(found[0], found.start() + 1):
        chars += character.strip()
        if len(chars) == needed:
            number = "".join(str(int(each, 36)) for each in chars[4:] + chars[:4])
            if int(number) % 97 == 1 and not text[end : end + 1].isalnum():
                yield found.start(), end
            return


def _wallet_key(text: str, found: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield a key of an Ethereum account, if the words before it say so: it may be a hash."""
    if _WALLET_KEY_LABEL.search(found.string, max(0, found.start() - _LABEL_CHARS), found.start()):
        yield found.span("value")


def _pin(text: str, found: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield a number that belongs to its name: a short one in small letters needs a sign between them."""
    short = text[slice(*found.span("short"))] if found["short"] else ""
    if found["sign"] is not None or not short or (short.isupper() and found.end("short") < found.start("value")):
        yield found.span("value")


def _codes(text: str, label: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield the codes that follow a label one after another."""
    place = label.end()
    for _ in range(_MOST_CODES):
        found = CODE_ITEM.match(text, place)
        if found is None or len(found["code"]) < 6 or not any(character.isdigit() for character in found["code"]):
            return
        yield found.span("code")
        place = found.end()


def _wallet_words(text: str, label: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield the first run of words of a wallet after a label, unless the words are a sentence's."""
    found = WALLET_WORDS.search(text, label.end(), label.end() + _WORDS_WITHIN)
    if found is not None and _NEVER_IN_WALLETS.isdisjoint(found[0].split()):
        yield found.span()


_JUDGES: Final = {"value": _value, "card": _card, "iban": _iban, "wallet_key": _wallet_key}
_LABELS: Final = TABLE["labels"]
_PINS: Final = TABLE["pins"]
_NUMBERS: Final = (
    *(
        _Search(
            tuple(row.get("words", ())),
            re.compile(row["shape"]),
            row["kind"],
            _JUDGES[row.get("judge", "value")],
            is_small=row.get("small", False),
            run=(row["run"].encode(), row["length"]) if "run" in row else None,
        )
        for row in TABLE["numbers"]
    ),
    _Search(
        (*[name.partition(" ")[0] for name in _PINS["names"]], *_PINS["long"]),
        re.compile(
            rf"""(?:(?<![\w-])(?:(?:sms-)?(?P<short>{any_of(_PINS["names"])}))|{any_of(_PINS["long"])})"""
            rf"""(?: {any_of(TABLE["sentences"]["for"])} (?:\w{{1,12}} ){{0,3}}\w{{1,24}}?)?"""
            r"""["'`]?(?P<sign>[ \t]?[:=：]|[ ](?:is|ist|lautet|war|es|est)|は|은|는)?"""
            r"""[ \t]{0,4}["'`]?(?P<value>[0-9]{4,8})(?![.:/-]?[0-9a-z])"""
        ),
        "pin",
        _pin,
        is_small=True,
    ),
    _Search(
        tuple(_LABELS["codes"]), re.compile(any_of(_LABELS["codes"]) + r"(?:e?s|n)?"), "recovery_code", _codes, is_small=True
    ),
    _Search(tuple(_LABELS["words"]), re.compile(any_of(_LABELS["words"])), "wallet_words", _wallet_words, is_small=True),
)


# Headers, URLs, commands, and sentences that put the value first.

SECRET_ENTRY: Final = re.compile(
    r"(?m)^[ \t]{1,16}[\w.-]{1,253}:[ \t]{1,4}[\"']?(?P<value>[A-Za-z0-9+/]{4,65536}={0,2})(?=[\"']?[ \t]{0,4}$)"
)
"""A value of a Kubernetes Secret."""


def _entries(text: str, found: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield the values of a Kubernetes Secret."""
    yield from (entry.span("value") for entry in SECRET_ENTRY.finditer(text, *found.span()))


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


_PLACES: Final = (
    _Search(
        ("kind: secret",),
        re.compile(r"(?m)^[ \t]{0,16}(?:stringData|data):[ \t]*\n(?:[ \t]{1,16}\S[^\n]{0,65536}\n?){1,64}"),
        "secret",
        _entries,
    ),
    *(_Search(tuple(row["words"]), re.compile(row["shape"]), row["kind"]) for row in TABLE["places"]),
    *(_Search((word,), _with_parts(shape), "password", _argument) for word, shape in TABLE["commands"].items()),
    *(_Search(tuple(row["words"]), _with_parts(row["shape"]), "password", _strong_word) for row in TABLE["said"]),
    _Search(
        tuple([word + end for word in TABLE["sentences"]["given"] for end in " :"]),
        _with_parts(r"(?i)\b<given>(?: are| is| with| as| sind)?:? {1,4}[\w.@+-]{1,64} ?/ ?<unspaced>"),
        "password",
        _strong_word,
    ),
)
"""The searches in order."""

_RULE_WORDS: Final = {word for search in (*_PLACES, *_NUMBERS) for word in search.words} | NAME_WORDS
_STOPS: Final = "zjkpwcg|bmuf-:"
_SCAN: Final = _WordScan(_RULE_WORDS, _STOPS)
_ASCII_SCAN: Final = _WordScan(filter(str.isascii, _RULE_WORDS), _STOPS)

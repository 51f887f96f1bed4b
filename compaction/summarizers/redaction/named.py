"""Secrets that belong to a name: assigned to it, or under it in a table, a list or a file of variables."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from typing import Final

from .table import TABLE, SecretSpan, any_of, in_small_letters

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
        elif end - start > _LONG_CHARS:  # names in it are not judged: they would all have the same end
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

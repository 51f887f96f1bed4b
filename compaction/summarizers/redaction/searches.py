"""`redact`, and the searches for what is a secret by its form, its checksum, the label before it, or the command it is in."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from .named import NAME, NAME_WORDS, beside_names, is_strong
from .table import TABLE, SecretSpan, any_of, in_small_letters


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

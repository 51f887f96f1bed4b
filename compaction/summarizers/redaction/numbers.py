"""Secrets of digits, and those under a label: numbers with a checksum, PINs, recovery codes and word lists of wallets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from .searches import TABLE, SecretSpan, any_of, expression, in_small_letters, search_for, whole_value

_ISSUER: Final = re.compile(r"4|5[0-8]|6|2[2-7]|3[04-9]")  # the first digits of a card's number
_CARD_LABEL: Final = re.compile(expression("<card>"))
_LABEL_CHARS: Final = 48
_CARD_CHARS: Final = 32  # of the longest number, and of what may stand around it
_IBAN_CHARS: Final = {word[:2]: int(word[2:]) for word in TABLE["iban"]["chars"].split()}
_WALLET_KEY_LABEL: Final = re.compile(
    r"""(?i)(?:wallet\(|from_?key\(|toaccount\("""  # Wallet("0x...
    r"""|\baccounts\\?["']?\s?[:=]\s?\[|(?:^|\n)[ \t]{0,4}\([0-9]{1,2}\)"""  # accounts: ["0x...; (0) 0x... in a list
    r"""|\bprivate keys?\b[^\n]{0,24})\s{0,4}\\?["']?\Z"""  # private key: 0x...
)
# a recovery code with what separates it from the one before
_CODE_ITEM: Final = re.compile(
    r"""(?:[\s,;:=：*•>"'`\[(\\-]|is |are |ist |sind |lautet ){0,24}(?:[0-9]{1,2}[.)][ \t]{1,4})?["'`]?"""  # ": 1. "
    r"""(?P<code>[0-9]{3,5}(?: [0-9]{3,5}){1,3}"""  # 471 104, 4711 0815
    r"""|[A-Za-z0-9]{4,8}(?:-[A-Za-z0-9]{4,8}){0,9})(?=["'`\s,;\].)\\]|\Z)"""  # ab12cd34, 1234-5678
)
# twelve to twenty-four words such as a wallet's
_WALLET_WORDS: Final = re.compile(r"(?<!\w)(?:[a-z]{3,8}(?:,?[ ]|\s{1,2}(?:[0-9]{1,2}[.)][ ]?)?)){11,23}[a-z]{3,8}(?!\w)")
_NEVER_IN_WALLETS: Final = frozenset(TABLE["labels"]["never_words"])
_MOST_CODES: Final = 64
_WORDS_WITHIN: Final = 320


def _card(found: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield a number whose checksum is a card's, and those that follow it after a blank."""
    text, start, number = found.string, found.start(), found[0]
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


def _iban(found: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield an account number, if it is as long as those of its country and its checksum is right."""
    needed = _IBAN_CHARS.get(found[0][:2], 0)
    chars = ""
    for end, character in enumerate(found[0], found.start() + 1):
        chars += character.strip()
        if len(chars) == needed:
            number = "".join(str(int(each, 36)) for each in chars[4:] + chars[:4])
            if int(number) % 97 == 1 and not found.string[end : end + 1].isalnum():
                yield found.start(), end
            return


def _wallet_key(found: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield a key of an Ethereum account, if the words before it say so: it may be a hash."""
    if _WALLET_KEY_LABEL.search(found.string, max(0, found.start() - _LABEL_CHARS), found.start()):
        yield found.span("value")


def _codes(label: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield the codes that follow a label one after another."""
    place = label.end()
    for _ in range(_MOST_CODES):
        found = _CODE_ITEM.match(label.string, place)
        if found is None or len(found["code"]) < 6 or not any(character.isdigit() for character in found["code"]):
            return
        yield found.span("code")
        place = found.end()


def _wallet_words(label: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield the first run of words of a wallet after a label, unless the words are a sentence's."""
    found = _WALLET_WORDS.search(label.string, label.end(), label.end() + _WORDS_WITHIN)
    if found is not None and _NEVER_IN_WALLETS.isdisjoint(found[0].split()):
        yield found.span()


# the searches for what follows one of these labels; they are for texts with a label, in small letters
LABELLED: Final = (
    search_for(TABLE["labels"]["codes"], "(?i)<codes>(?:e?s|n)?", "recovery_code", _codes),
    search_for(TABLE["labels"]["words"], "(?i)<words>", "wallet_words", _wallet_words),
)
_JUDGES: Final = {"value": whole_value, "card": _card, "iban": _iban, "wallet_key": _wallet_key}


def _has_run(characters: str, length: int) -> Callable[[str], bool]:
    """Return a function that tells whether a text has so many of these characters in a row, quicker than an expression."""
    marks = bytes(49 if chr(byte) in characters else 32 for byte in range(256))  # a one for these characters
    run = b"1" * length
    return lambda text: run in text.encode("utf-8", "surrogatepass").translate(marks)


# whether a text has characters of a number, and the search for it
_RUNS: Final = [
    (_has_run(row["run"], row["length"]), search_for((), row["shape"], row["kind"], _JUDGES[row.get("judge", "value")]))
    for row in TABLE["numbers"]
]
_PINS: Final = TABLE["pins"]
_PIN_WORDS: Final = (*[name.partition(" ")[0] for name in _PINS["names"]], *_PINS["long"])
# a number that belongs to its name, such as a PIN or a TAN, with or without a sign between them
_PIN: Final = re.compile(
    rf"""(?:(?<![\w-])(?:(?:sms-)?(?P<short>{any_of(_PINS["names"])}))|{any_of(_PINS["long"])})"""
    rf"""(?: {expression("<for>")} (?:\w{{1,12}} ){{0,3}}\w{{1,24}}?)?"""
    r"""["'`]?(?P<sign>[ \t]?[:=：]|[ ](?:is|ist|lautet|war|es|est)|は|은|는)?"""
    r"""[ \t]{0,4}["'`]?(?P<value>[0-9]{4,8})(?![.:/-]?[0-9a-z])"""
)


def _pins(text: str, small: str) -> Iterator[SecretSpan]:
    """Yield the number behind a name such as PIN; behind a short name in small letters only with a sign, such as ``:``.

    The text is also given in small letters, which is quicker than an expression for all letters.
    """
    for found in _PIN.finditer(small) if any(word in small for word in _PIN_WORDS) else ():
        short = text[slice(*found.span("short"))] if found["short"] else ""
        if found["sign"] is not None or not short or (short.isupper() and found.end("short") < found.start("value")):
            yield *found.span("value"), "pin"


def secret_numbers(text: str) -> Iterator[SecretSpan]:
    """Yield numbers with a checksum or a form of their own, and PINs; O(characters)."""
    for has_run, search in _RUNS:
        if has_run(text):
            yield from search.spans(text)
    yield from _pins(text, in_small_letters(text))

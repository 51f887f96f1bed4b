"""`redact`: all searches for secrets, in their order."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from .columns import secrets_in_columns, secrets_in_lists
from .names import NAME_WORDS, name_places, named_secrets, secrets_in_variables
from .numbers import LABELLED, secret_numbers
from .places import PLACES, without_placed_secrets
from .table import SecretSpan, WordScan, in_small_letters, replaced, secrets_found
from .tokens import without_tokens

_SHORTEST: Final = 7  # characters of a name, an operator and a password
_WORDS: Final = {word for search in (*PLACES, *LABELLED) for word in search.words} | NAME_WORDS
_STOPS: Final = "zjkpwcg|bmuf-:"
_SCAN: Final = WordScan(_WORDS, _STOPS)
_ASCII_SCAN: Final = WordScan(filter(str.isascii, _WORDS), _STOPS)  # quicker


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
    text = without_tokens(text, data)
    small = in_small_letters(text)
    words = (_ASCII_SCAN if text.isascii() else _SCAN).perhaps_in(small)
    if words.isdisjoint(NAME_WORDS):
        words.discard(" as ")  # "use hunter2 as the password" has a name, too
    text = without_placed_secrets(text, small, words)
    text = replaced(text, secrets_found(text, partial(secret_numbers, data=data, words=words)))
    return replaced(text, secrets_found(text, partial(_beside_names, words=words)))


def _beside_names(text: str, words: set[str]) -> Iterator[SecretSpan]:
    """Yield the secrets that belong to a name: assigned to it, under it in a table or a list, or in a variable."""
    if not words.isdisjoint(NAME_WORDS):
        places = name_places(text)
        yield from named_secrets(text, places)
        yield from secrets_in_columns(text, places)
        yield from secrets_in_lists(text, places)
    if "=" in text:
        yield from secrets_in_variables(text)

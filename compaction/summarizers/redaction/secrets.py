"""`redact`: all searches for secrets, in their order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from .columns import secrets_in_columns, secrets_in_lists
from .forms import without_forms
from .names import name_places, named_secrets, secrets_in_variables
from .numbers import secret_numbers
from .searches import SecretSpan, without

_SHORTEST: Final = 7  # characters of a name, an operator and a password


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
    return without(without(without_forms(text), secret_numbers), _beside_names)


def _beside_names(text: str) -> Iterator[SecretSpan]:
    """Yield the secrets that belong to a name: assigned to it, under it in a table or a list, or in a variable."""
    if places := name_places(text):
        yield from named_secrets(text, places)
        yield from secrets_in_columns(text, places)
        yield from secrets_in_lists(text, places)
    if "=" in text:
        yield from secrets_in_variables(text)

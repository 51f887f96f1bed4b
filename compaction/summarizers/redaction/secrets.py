"""`redact`: all searches for secrets, in their order; and the first of these, for secrets that are known by form or place.

These are private keys, tokens and hashes, and what stands in headers, URLs, commands and sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from .columns import secrets_in_columns, secrets_in_lists
from .names import name_places, named_secrets, secrets_in_variables
from .numbers import LABELLED, secret_numbers
from .searches import REDACTED, TABLE, Search, Searches, SecretSpan, in_small_letters, search_for, without
from .values import is_strong

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
    return without(without(_without_forms(text), secret_numbers), _beside_names)


def _beside_names(text: str) -> Iterator[SecretSpan]:
    """Yield the secrets that belong to a name: assigned to it, under it in a table or a list, or in a variable."""
    if places := name_places(text):
        yield from named_secrets(text, places)
        yield from secrets_in_columns(text, places)
        yield from secrets_in_lists(text, places)
    if "=" in text:
        yield from secrets_in_variables(text)


def _without_forms(text: str) -> str:
    """Return the text without secrets that are known by form or place; a later search sees what the others left."""
    for search in _TOKENS.for_text(text):
        text = without(text, search.spans)
    for search in _PLACES.for_text(in_small_letters(text)):
        text = without(text, search.spans)
    return text


# ---------------------------------------------------------------- private keys

_BREAK: Final = r"(?:\s|\\{1,3}[nrt]){1,8}"
# the first line of a private key, and the lines behind it that look like a key
_PRIVATE_KEY: Final = re.compile(
    r"(?P<first>-----BEGIN (?:[A-Z0-9]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?-----|---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----"
    r"|Private-Lines: [0-9]{1,4}(?=\s|\\[nr]))"
    rf"(?:{_BREAK}(?:Proc-Type|DEK-Info): [\w,-]{{1,80}})*(?:{_BREAK}[A-Za-z0-9+/=]{{16,128}})*"
    rf"(?:{_BREAK}(?:[A-Za-z0-9+/]{{1,64}}={{1,2}}|[A-Za-z0-9+/]{{1,64}}\Z))?"
)
_KEY_CHARS: Final = 20_000
_KEY_END: Final = "-----END "


def _private_key(found: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield a private key; one without an end goes as far as its lines look like a key."""
    text, start = found.string, found.end("first")
    end = text.find(_KEY_END, start, start + _KEY_CHARS + len(_KEY_END)) if found["first"].startswith("-----") else -1
    closing = text.find("-----", end + len(_KEY_END), end + 100) if end >= 0 else -1
    yield found.start(), found.end() if closing < 0 else closing + len("-----")


# ---------------------------------------------------------------- tokens

# the place before a token that starts with a text: no other part of the same word
_BEFORE: Final = "(?<![A-Za-z0-9_-]{0})"


def _started(starts: list[str], rest: str) -> str:
    """Return the expression for a token; a beginning that comes first is looked for quickest."""
    begun = "|".join(re.escape(start) + _BEFORE.format(re.escape(start)) for start in starts)
    return f"(?P<value>(?:{begun})(?:{rest}))"


_TOKENS: Final = Searches(
    [
        Search(("PRIVATE KEY", "Private-Lines"), _PRIVATE_KEY, "private_key", _private_key),
        *[
            search_for(row["starts"], _started(row["starts"], row["rest"]), row.get("kind", name))
            for name, row in TABLE["tokens"].items()
        ],
        *[
            search_for(row["holds"], f"{_BEFORE.format('')}(?P<value>{row['shape']})", row.get("kind", name))
            for name, row in TABLE["inner_tokens"].items()
        ],
    ],
    stops="$ZQJ{qKxSAvygfkp:/c86-dln",
)

# ---------------------------------------------------------------- places

# a value of a Kubernetes Secret
_SECRET_ENTRY: Final = re.compile(
    r"(?m)^[ \t]{1,16}[\w.-]{1,253}:[ \t]{1,4}[\"']?(?P<value>[A-Za-z0-9+/]{4,65536}={0,2})(?=[\"']?[ \t]{0,4}$)"
)


def _entries(found: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield the values of a Kubernetes Secret."""
    yield from (entry.span("value") for entry in _SECRET_ENTRY.finditer(found.string, *found.span()))


# an option, a number, a mark of ours, ***, {{ password }}, {password}, {config["password"]}, [password]
_NO_ARGUMENT: Final = re.compile(rf"-.*|\d+|{re.escape(REDACTED)}.*|\*+|\{{\{{.*|\{{[A-Za-z_.]*[}}\[]|\[[A-Za-z_.]*\]|password")


def _argument(found: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield the password of a command; a port, an option and what stands for a password are not one."""
    if not _NO_ARGUMENT.fullmatch(found["value"]):
        yield found.span("value")


def _strong_word(found: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield the password of a sentence, if it looks like one."""
    if is_strong(found["value"].rstrip(".!?:,")):
        yield found.span("value")


_PLACES: Final = Searches(
    [
        search_for(
            ["kind: secret"],
            r"(?m)^[ \t]{0,16}(?:stringData|data):[ \t]*\n(?:[ \t]{1,16}\S[^\n]{0,65536}\n?){1,64}",
            "secret",
            _entries,
        ),
        *[search_for(row["words"], row["shape"], row["kind"]) for row in TABLE["places"]],
        *[search_for([word], shape, "password", _argument) for word, shape in TABLE["commands"].items()],
        *[search_for(row["words"], row["shape"], "password", _strong_word) for row in TABLE["said"]],
        search_for(
            [word + end for word in TABLE["sentences"]["given"] for end in " :"],
            r"(?i)\b<given>(?: are| is| with| as| sind)?:? {1,4}[\w.@+-]{1,64} ?/ ?<unspaced>",
            "password",
            _strong_word,
        ),
        *LABELLED,
    ],
    stops="zjkpwcg|bmuf-:",
)

"""Takes secrets out of a text before it leaves for a summarizer, and out of what comes back.

A summary outlives the conversation: it is resent with every request, stored, and shown to other models. So what nobody should read
twice does not get into it. `redact` finds what looks like a secret by its shape or by the name it is assigned to; it is a net,
not a proof, and a secret in a sentence of its own words passes it.
"""

from __future__ import annotations

import re
from typing import Final

from .secret_shapes import (
    ASSIGNMENT,
    AUTHORIZATION,
    COOKIE,
    CREDENTIALS,
    OPTION,
    PLACEHOLDERS,
    PRIVATE_KEY,
    SAID,
    TOKENS,
    URL_PASSWORD,
)

__all__ = ["redact"]

_KEY_LINES: Final = re.compile(r"(?:(?:\s|\\[nrt]){1,8}[A-Za-z0-9+/=]{16,128})*(?:(?:\s|\\[nrt]){1,8}[A-Za-z0-9+/]{1,64}={1,2})?")
_KEY_END: Final = "-----END "
_KEY_CHARS: Final = 20_000
_DASHES: Final = "-----"


def redact(text: str) -> str:
    """The text with every secret that can be recognized replaced by ``[REDACTED:kind]``.

    Found are private keys, the tokens of well-known services, JSON web tokens, bearer and basic credentials, cookies, passwords in
    URLs and connection strings, and what is assigned to a name such as ``password``, ``api_key`` or ``token`` if it looks like a value
    rather than code. Ordinary identifiers, checksums, commit ids, UUIDs and paths stay. Redacting twice changes nothing more.

    Cost: linear in the text, about {speed} a megabyte.

    >>> redact("export DB_PASSWORD=hunter2 && psql postgres://app:s3cr3t@db/main")
    'export DB_PASSWORD=[REDACTED:password] && psql postgres://app:[REDACTED:password]@db/main'
    >>> redact("commit 9116169 sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")
    'commit 9116169 sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'
    """
    text = _without_private_keys(text)
    text = TOKENS.sub(_token, text)
    text = AUTHORIZATION.sub(r"\1 [REDACTED:credential]", text)
    text = COOKIE.sub(r"\1[REDACTED:cookie]", text)
    text = URL_PASSWORD.sub(r"\1[REDACTED:password]", text)
    text = CREDENTIALS.sub(r"\1[REDACTED:password]", text)
    text = ASSIGNMENT.sub(_assigned, text)
    text = OPTION.sub(_assigned, text)
    return SAID.sub(_assigned, text)

"""`LengthRefusal`: a provider's refusal of a request that is too long, read from its error, with the token counts stated there.

Each provider words this error differently, some with figures. The wordings, and a sample of each, are the table
``length_errors.toml``; the library, the gateway and the integrations all read errors here. If an exception was raised from
another, as by LiteLLM and the frameworks, its causes are read too.

An error may quote the request, which is untrusted text. So only the first 2,000 characters are read, only errors with certain
HTTP statuses count, and figures that contradict each other are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, cast

import attrs

from ..json_data import member_of

_READ_CHARS: Final = 2_000
_MOST_CAUSES: Final = 5
_MAY_BE_TOO_LONG: Final = frozenset({0, 400, 413, 422, 500})
_TOO_LARGE: Final = "request too large"
_TABLE: Final = Path(__file__).with_name("length_errors.toml")
_NO_LETTERS: Final = re.compile(r"[\W_]+")
_NUMBER: Final = r"(\d[\d,]{0,11})"


@cache
def _patterns(kind: str) -> tuple[re.Pattern[str], ...]:
    """Return the patterns of a list in the table, in their order.

    Args:
        kind: ``in_any_error`` and ``in_answers``, which tell an error of length, or ``tokens``, ``window`` and ``reply``, which
            find its figures.
    """
    import tomllib  # here, as most programs never read such an error

    rows: list[str] = tomllib.loads(_TABLE.read_text("utf-8"))[kind]
    return tuple(re.compile(row.replace("<N>", _NUMBER), re.IGNORECASE) for row in rows)


def _says(kind: str, words: str) -> bool:
    return any(pattern.search(words) for pattern in _patterns(kind))


@attrs.frozen
class LengthRefusal:
    """A provider's refusal of a request that is too long.

    Args:
        tokens: Tokens of the messages and tools, by the provider's count; ``None`` if the error does not say.
        window: Tokens they may have: the model's window less the tokens that the request reserved for the reply; ``None`` if
            the error does not say.

    >>> LengthRefusal.read(ValueError("prompt is too long: 208310 tokens > 200000 maximum"))
    LengthRefusal(tokens=208310, window=200000)
    """

    tokens: int | None = None
    window: int | None = None

    @classmethod
    def read(cls, error: object) -> LengthRefusal | None:
        """Read an error; O(1), because at most 2,000 characters are read.

        Args:
            error: An exception of a client, a framework or a server, or the body of an answer.

        Returns:
            The refusal; ``None`` if the error does not say that the request was too long.
        """
        found = _refusal_in(error)
        return None if found is None else found[1]

    @classmethod
    def of(cls, words: str) -> LengthRefusal:
        """Return the refusal with the figures in these words."""
        tokens, window, reply = (_first(kind, words) for kind in ("tokens", "window", "reply"))
        if window is not None and reply is not None and reply < window:
            window -= reply
        if tokens is not None and window is not None and tokens <= window:
            return cls(None, window)  # the two figures are not of the same thing
        return cls(tokens, window)


def is_too_long(status: int, says: str) -> bool:
    """Return whether an error means that a shorter request may succeed.

    A rate limit (status 429) counts if the request alone is larger than the limit, so that waiting does not help.

    Args:
        status: The HTTP status; 0 if there is none.
        says: The server's message.
    """
    if status == 429:
        return _TOO_LARGE in says.lower()
    return status == 413 or (status in _MAY_BE_TOO_LONG and _says("in_answers", says))


def is_quoted(error: object, request: str) -> bool:
    """Return whether all that makes an error a length error stands in the request too: the server may quote that.

    O(characters of the request).
    """
    kinds = ("in_answers", "in_any_error", "tokens", "window", "reply")
    says, _ = _refusal_in(error) or ("", None)
    found = [each[0] for kind in kinds for pattern in _patterns(kind) if (each := pattern.search(says))]
    asked = _letters(request)
    return bool(found) and all(_letters(each) in asked for each in found)


def _letters(text: str) -> str:
    """Return the letters and digits of a text, however it was escaped."""
    return _NO_LETTERS.sub("", text).lower()


def _first(kind: str, words: str) -> int | None:
    """Return the first figure above 0 that a pattern of this kind finds."""
    found = (pattern.search(words) for pattern in _patterns(kind))
    return next((int(each[1].replace(",", "")) or None for each in found if each), None)


def _refusal_in(error: object) -> tuple[str, LengthRefusal] | None:
    """Return the words of the first among an error and its causes that says that a request was too long, and the refusal."""
    for each in _with_causes(error):
        status, words = _status(each), _words(each)[:_READ_CHARS]
        found = LengthRefusal.of(words)
        # without a status, a phrase alone is not enough
        if is_too_long(status, words) and (status or found != LengthRefusal() or _says("in_any_error", words)):
            return words, found
    return None


def _with_causes(error: object) -> Iterator[object]:
    """Yield an error and its causes, up to five in all, also one hidden by ``raise ... from None``."""
    for _ in range(_MOST_CAUSES):
        if error is None:
            return
        yield error
        error = getattr(error, "__cause__", None) or getattr(error, "__context__", None)


def _status(error: object) -> int:
    """Return the HTTP status that an error carries; 0 if there is none."""
    response = member_of(error, "response")
    places = (
        member_of(error, "status_code"),
        member_of(error, "code"),
        member_of(response, "status_code"),
        member_of(member_of(response, "ResponseMetadata"), "HTTPStatusCode"),
    )
    return next((each for each in places if type(each) is int), 0)


def _words(error: object) -> str:
    """Return an error's message, and the body of the answer if the error carries it."""
    body = member_of(error, "body")
    said = str(cast(object, error)) if isinstance(error, BaseException | Mapping | str) else ""
    return said if body is None else f"{said[: _READ_CHARS // 2]} {str(cast(object, body))[:_READ_CHARS]}"

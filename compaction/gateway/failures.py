"""Refusals of upstreams: which of them say that a request is too long."""

from __future__ import annotations

from typing import Final

from ..tokens import LengthError
from .bodies import Unreadable, decoded
from .headers import as_mapping
from .upstream import MOST_ERROR_BYTES, WholeAnswer

REFUSALS: Final = (400, 413, 422, 500)
"""The statuses with which an upstream may refuse a request for its length; Ollama answers 500."""


class UpstreamRefusal(Exception):
    """An upstream's refusal of a request, in the shape that `LengthError` reads.

    Attributes:
        status_code: The HTTP status.
        body: The text of the answer.
    """

    def __init__(self, status: int, body: str) -> None:
        super().__init__(f"HTTP {status}")
        self.status_code = status
        self.body = body


def length_error(answer: WholeAnswer) -> UpstreamRefusal | None:
    """Return the refusal of a request that was too long; ``None`` for any other answer.

    >>> error = length_error(WholeAnswer(400, [], b'{"error": {"message": "prompt is too long: 9 tokens > 5 maximum"}}'))
    >>> error.status_code
    400
    """
    if answer.status not in REFUSALS:
        return None
    refusal = UpstreamRefusal(answer.status, _text(answer))
    return refusal if LengthError.read(refusal) is not None else None


def _text(answer: WholeAnswer) -> str:
    try:
        encoding = as_mapping(answer.headers).get("content-encoding", "")
        return decoded(answer.body, encoding, MOST_ERROR_BYTES).decode(errors="replace")
    except Unreadable:
        return ""

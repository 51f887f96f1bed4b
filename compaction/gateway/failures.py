"""What went wrong at an upstream, and the files in which faults of our own are kept for a report, without any text."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, Final

from ..formats import fields_of, items_of
from ..tokens import LengthError
from .bodies import Unreadable, decoded
from .headers import as_mapping
from .upstream import MOST_ERROR_BYTES, WholeAnswer

_KEPT_KEYS: Final = frozenset(("type", "role", "status", "finish_reason", "stop_reason", "phase"))
_SHORT: Final = re.compile(r"[a-z][a-z0-9_.-]{0,39}", re.ASCII)
_WORD: Final = re.compile(r"\w+")
_MOST_CASES: Final = 20


class UpstreamRefusal(Exception):
    """An answer of an upstream that refuses a request, as `LengthError` reads it.

    Attributes:
        status_code: The HTTP status.
        body: What the upstream said.
    """

    def __init__(self, status: int, body: str) -> None:
        super().__init__(f"HTTP {status}")
        self.status_code = status
        self.body = body


def length_error(answer: WholeAnswer) -> UpstreamRefusal | None:
    """Return the refusal of a request that was too long; ``None`` if the answer says something else.

    >>> error = length_error(WholeAnswer(400, [], b'{"error": {"message": "prompt is too long: 9 tokens > 5 maximum"}}'))
    >>> error.status_code
    400
    """
    if answer.status not in (400, 413, 422):
        return None
    refusal = UpstreamRefusal(answer.status, _text(answer))
    return refusal if LengthError.read(refusal) is not None else None


def _text(answer: WholeAnswer) -> str:
    try:
        encoding = as_mapping(answer.headers).get("content-encoding", "")
        return decoded(answer.body, encoding, MOST_ERROR_BYTES).decode(errors="replace")
    except Exception as error:
        if isinstance(error, Unreadable):
            return ""
        raise


def masked(value: Any, key: str = "") -> Any:
    """Return JSON data with every text replaced by as many ``x``; names of fields, types and roles stay.

    >>> masked({"role": "user", "content": [{"type": "text", "text": "my secret"}], "n": 7})
    {'role': 'user', 'content': [{'type': 'text', 'text': 'xx xxxxxx'}], 'n': 7}
    """
    if (fields := fields_of(value)) is not None:
        return {_key(name): masked(each, name) for name, each in fields.items()}
    if (items := items_of(value)) is not None:
        return [masked(each, key) for each in items]
    if isinstance(value, str):
        return value if key in _KEPT_KEYS and _SHORT.fullmatch(value) else _WORD.sub(lambda word: "x" * len(word[0]), value)
    return value


def _key(name: str) -> str:
    return name if _SHORT.fullmatch(name) or name.isidentifier() else "x" * len(name)


def _refusal_words(answer: WholeAnswer, requests: list[Any]) -> str:
    """Return what an upstream said, with every word masked that a text of the requests has."""
    said = json.dumps(requests, ensure_ascii=False)
    words = set(_WORD.findall(said)) - set(_WORD.findall(json.dumps(masked(requests))))
    return _WORD.sub(lambda word: "x" * len(word[0]) if word[0] in words else word[0], _text(answer))[:2_000]


def write_case(folder: Path, name: str, *, given: Any, sent: Any, answer: WholeAnswer) -> Path | None:
    """Write a request that an upstream refused only as we had changed it; all texts are masked.

    Args:
        folder: Where to write it; made if it does not exist. It keeps at most twenty cases.
        name: The file's name without its ending.
        given: The messages as they came.
        sent: The messages as they were sent.
        answer: The upstream's answer to them.

    Returns:
        The file; ``None`` if there are enough cases already.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if sum(1 for _ in folder.glob("*.json")) >= _MOST_CASES:
        return None
    case = {
        "status": answer.status,
        "said": _refusal_words(answer, [given, sent]),
        "given": masked(given),
        "sent": masked(sent),
    }
    path = folder / f"{name}.json"
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump(case, file, indent=1)
    return path

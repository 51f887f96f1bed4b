"""Cases of requests that were refused only in their compacted form: files for a bug report, in which every text is masked."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

from ..files import open_replacement
from ..formats import fields_of, items_of
from .upstream import UpstreamRefusal

_KEPT_KEYS: Final = frozenset(("type", "role", "status", "finish_reason", "stop_reason", "phase"))
_DATA_KEYS: Final = frozenset(("input", "args", "arguments", "response", "json"))  # of tool calls and results, in each format
_SHORT: Final = re.compile(r"[a-z][a-z0-9_.-]{0,39}", re.ASCII)
_WORD: Final = re.compile(r"\w+")
_ESCAPE: Final = re.compile(r"\\{1,8}(?:u([0-9A-Fa-f]{4})|[bfnrt])")
_MOST_CASES: Final = 20


def masked(value: Any, key: str = "") -> Any:
    """Return JSON data with the words of every string replaced by as many ``x``; names of fields, types and roles are kept.

    In the data of a tool call or result, no field is a type or a role, whatever its name.
    """
    if (fields := fields_of(value)) is not None:
        return {_key(name): masked(each, key if key in _DATA_KEYS else name) for name, each in fields.items()}
    if (items := items_of(value)) is not None:
        return [masked(each, key) for each in items]
    if isinstance(value, str):
        return value if key in _KEPT_KEYS and _SHORT.fullmatch(value) else _WORD.sub(lambda word: "x" * len(word[0]), value)
    return value


def _key(name: str) -> str:
    return name if _SHORT.fullmatch(name) or name.isidentifier() else "x" * len(name)


def _words(data: Any) -> set[str]:
    text = json.dumps(data, ensure_ascii=False)
    return {*_WORD.findall(text), *_WORD.findall(_unescaped(text))}  # in a path, the letter behind a backslash is of the word


def _unescaped(text: str) -> str:
    r"""Return a text with characters for JSON's escapes, also of JSON within JSON.

    >>> _unescaped(r"a\nword, Z\u00fcrich")
    'a word, Zürich'
    """
    plain = _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)) if escape[1] else " ", text)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def write_case(folder: Path, name: str, *, given: Any, sent: Any, beside: Any, refusal: UpstreamRefusal) -> Path | None:
    """Write the case of a request that an upstream refused only in its compacted form; all texts are masked.

    The fields ``beside`` the messages, such as instructions and tools, are not written, but the refusal may quote them. Return
    the file; ``None`` if the folder already has twenty cases.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if sum(1 for _ in folder.glob("*.json")) >= _MOST_CASES:
        return None
    words = _words([given, sent, beside]) - _words(masked([given, sent, beside]))
    said = _WORD.sub(lambda word: "x" * len(word[0]) if word[0] in words else word[0], _unescaped(refusal.body))[:2_000]
    case = {"status": refusal.status_code, "said": said, "given": masked(given), "sent": masked(sent)}
    with open_replacement(path := folder / f"{name}.json", mode=0o600) as file:
        file.write(json.dumps(case, indent=1).encode())
    return path

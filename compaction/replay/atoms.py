"""Atoms: what an action cannot do without and cannot guess: paths, identifiers, numbers, quotations, links, ids.

They are taken from the recorded action alone, and looked for as they stand in whatever was sent: nothing here knows how
a summary is written. It is on purpose not the extractor that the digest uses, so that no summary can be tuned to its examiner.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

from ..messages import Media, Message, Text, ToolCall

__all__ = ["AtomKind", "atoms_of", "rare_words_of", "spoken", "strings_in"]

_URL: Final = re.compile(r"\b[a-z][a-z0-9+.-]{1,9}://[^\s\"'`<>()\[\]{}|\\]+")
_EMAIL: Final = re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b")
_PATH: Final = re.compile(r"(?:(?<![\w/.~-])[~.]{0,2}/)?(?:[\w.@+-]+/)+[\w.@+-]*|(?<![\w/.~-])[~.]{0,2}/[\w.@+-]{2,}")
_FILE: Final = re.compile(
    r"\b[\w-]+\.(?:[a-z]{1,4}|json5?|jsonl|ipynb|jinja2?|[a-z]{2}\d|lock|patch|proto|swift|scala)\b(?![(.\w])"
)
_CALLED: Final = re.compile(r"\b[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*\b")
_TELLING: Final = re.compile(r"[A-Za-z\d]_[A-Za-z\d]|[a-z][A-Z]|[A-Z]{2,}[a-z]|^__\w+__$|\w\.\w")
_OPTION: Final = re.compile(r"(?<![\w-])--[a-z][\w-]+")
_ID: Final = re.compile(r"\b(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*\b")
_NUMBER: Final = re.compile(r"(?<![\w.])[-+]?\d+(?:[.,:/-]\d+)*(?![\w])")
_QUOTED: Final = re.compile(
    r"\"(\S[^\"\n]{2,78}\S)\"|(?<!\w)'(\S[^'\n]{2,78}\S)'(?!\w)|`(\S[^`\n]{2,78}\S)`|“(\S[^”\n]{2,78}\S)”"
    r"|「([^」\n]{2,80})」|『([^』\n]{2,80})』"
)
_WORD: Final = re.compile(r"[^\W\d_]{5,}")
_LONGEST: Final = 200
_SHORTEST_ID: Final = 4


class AtomKind(enum.Enum):
    """What an atom is; an atom that fits several is the first of them."""

    URL = "url"
    PATH = "path"
    ID = "id"
    NUMBER = "number"
    IDENTIFIER = "identifier"
    QUOTED = "quoted"

    def __repr__(self) -> str:
        return f"AtomKind.{self.name}"


def spoken(message: Message) -> str:
    """All that a message says, on one line: texts, reasoning, results, and each call's name and the strings in its arguments.

    Runs of white space count as one blank, so that a quotation that was wrapped anew is still verbatim. O(characters).
    """
    pieces: list[str] = [message.name] if message.name else []
    for part in message.parts:
        if isinstance(part, ToolCall):
            pieces += [part.name, *strings_in(part.arguments)]
        elif not isinstance(part, Media):
            pieces.append(part.text)
    return " ".join(" ".join(pieces).split())


def strings_in(arguments: str) -> list[str]:
    r"""The values in a call's arguments, as the tool gets them; the text itself where it is no JSON.

    >>> strings_in('{"path": "a.py", "lines": [3, 4], "text": "one\\ntwo"}')
    ['path', 'a.py', 'lines', '3', '4', 'text', 'one\ntwo']
    """
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return [arguments]
    try:
        return list(_leaves(value))
    except RecursionError:
        return [arguments]


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, field in cast("dict[str, Any]", value).items():
            yield name
            yield from _leaves(field)
    elif isinstance(value, list):
        for item in cast("Sequence[Any]", value):
            yield from _leaves(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def atoms_of(action: Message) -> dict[str, AtomKind]:
    r"""The atoms that an action uses: its text and the values of its call arguments. O(characters).

    >>> from compaction.formats import openai_chat
    >>> said = {"role": "assistant", "content": "Open src/app.py, line 120: `retry_limit` of order A-17 is \"too low\"."}
    >>> for text, kind in atoms_of(openai_chat.read(said)).items():
    ...     print(kind.value, text)
    path src/app.py
    id A-17
    number 120
    identifier retry_limit
    quoted too low
    """
    found: dict[AtomKind, dict[str, None]] = {kind: {} for kind in AtomKind}
    for part in action.parts:
        if isinstance(part, Text):
            _collect(part.text, found)
        elif isinstance(part, ToolCall):
            values = _values(part.arguments)
            for value in [part.arguments] if values is None else values:
                _collect(value, found)
            whole = [value for value in values or () if 4 <= len(value) <= 80 and "\n" not in value and not value.isdigit()]
            found[AtomKind.QUOTED].update(dict.fromkeys(whole))
    atoms: dict[str, AtomKind] = {}
    for kind in AtomKind:
        for text in found[kind]:
            atom = " ".join(text.split())
            if 1 < len(atom) <= _LONGEST:
                atoms.setdefault(atom, kind)
    return atoms


def _values(arguments: str) -> list[str] | None:
    """The values of a call's arguments without its parameters' names, which a schema gives; ``None`` if it is no JSON."""
    try:
        value = json.loads(arguments)
        if isinstance(value, dict):
            return [leaf for field in cast("dict[str, Any]", value).values() for leaf in _leaves(field)]
        return list(_leaves(value))
    except (ValueError, RecursionError):
        return None


def _collect(text: str, found: dict[AtomKind, dict[str, None]]) -> None:
    """Add a text's atoms. What a link or a path holds is not counted again as an identifier or a number."""
    for match in _QUOTED.finditer(text):
        found[AtomKind.QUOTED][match[match.lastindex or 0].strip()] = None
    rest = text
    for kind, pattern in ((AtomKind.URL, _URL), (AtomKind.ID, _EMAIL), (AtomKind.PATH, _PATH), (AtomKind.PATH, _FILE)):
        if taken := [match.rstrip(".,:;!?/") for match in pattern.findall(rest)]:
            found[kind].update(dict.fromkeys(match for match in taken if not match.isalnum()))
            rest = pattern.sub(" ", rest)
    found[AtomKind.IDENTIFIER].update(dict.fromkeys(_OPTION.findall(rest)))
    found[AtomKind.ID].update(dict.fromkeys(id for id in _ID.findall(rest) if len(id) >= _SHORTEST_ID))
    rest = _ID.sub(" ", rest)
    for name in _CALLED.findall(rest):
        if len(name) >= _SHORTEST_ID and _TELLING.search(name):
            found[AtomKind.IDENTIFIER][name] = None
    for number in _NUMBER.findall(rest):
        if sum(map(str.isdigit, number)) > 1:
            found[AtomKind.NUMBER][number.lstrip("+-")] = None


def rare_words_of(text: str) -> set[str]:
    """The words of five letters or more: whether one is rare, the conversation says.

    >>> sorted(rare_words_of("a frobnicated file_name of 7 quokkas"))
    ['frobnicated', 'quokkas']
    """
    return {match[0] for match in _WORD.finditer(text) if not _joined(text, match.start(), match.end())}


def _joined(text: str, start: int, end: int) -> bool:
    """Whether a word is part of a longer identifier."""
    return (start > 0 and (text[start - 1] == "_" or text[start - 1].isdigit())) or (
        end < len(text) and (text[end] == "_" or text[end].isdigit())
    )

"""Facts that a recorded answer uses and could not have guessed, and a user's instructions.

Facts are extracted from the recorded answer alone and searched for verbatim in each request, so the search does not depend on
how a summary is written. The digest summarizer uses a different extractor on purpose: no summary can be tuned to this one.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

from ..messages import MediaPart, Message, TextPart, ToolCallPart

# Each pattern with examples; tests/unit/replay/test_facts.py has more, also of texts that contain no fact.

# https://example.com/a?b=1
_URL: Final = re.compile(r"\b[a-z][a-z0-9+.-]{1,9}://[^\s\"'`<>()\[\]{}|\\]+")
# kim.lee@mail.example.com
_EMAIL: Final = re.compile(r"\b[\w.+-]{1,64}@[\w-]{1,255}(?:\.[\w-]+)+\b")
# src/app.py, ~/notes, /etc, ../up; not the second half of a word
_PATH: Final = re.compile(
    r"(?:(?<![\w/.~-])[~.]{0,2}/)?(?<![\w.@+-])(?:[\w.@+-]+/)+[\w.@+-]*|(?<![\w/.~-])[~.]{0,2}/[\w.@+-]{2,}"
)
# file names: setup.cfg, data.json5, go.mod; but not a call such as os.path(x)
_FILE: Final = re.compile(
    r"\b[\w-]+\.(?:[a-z]{1,4}|json5?|jsonl|ipynb|jinja2?|[a-z]{2}\d|lock|patch|proto|swift|scala)\b(?![(.\w])"
)
# any word of a program or of prose, also dotted: retry, os.path.join
_NAME: Final = re.compile(r"\b[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*\b")
# the words among these that prose does not have: retry_limit, maxSize, HTTPServer, __init__, os.path
_IN_CODE_ONLY: Final = re.compile(r"[A-Za-z\d]_[A-Za-z\d]|[a-z][A-Z]|[A-Z]{2}[a-z]|^__\w+__$|\w\.\w")
# --dry-run
_OPTION: Final = re.compile(r"(?<![\w-])--[a-z][\w-]+")
# A-17, 4WQ150, user_7b: a word with a letter and a digit
_ID: Final = re.compile(r"\b(?=[\w-]{0,199}\d)(?=[\w-]{0,199}[A-Za-z])[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*\b")
# 120, 2026-11-28, 3.14, 12:30
_NUMBER: Final = re.compile(r"(?<![\w.])[-+]?\d+(?:[.,:/-]\d+)*(?![\w])")
# "too low", `retry`, 「設定」
_QUOTED: Final = re.compile(
    r"\"(\S[^\"\n]{2,78}\S)\"|(?<!\w)'(\S[^'\n]{2,78}\S)'(?!\w)|`(\S[^`\n]{2,78}\S)`|“(\S[^”\n]{2,78}\S)”"
    r"|「([^」\n]{2,80})」|『([^』\n]{2,80})』"
)
# a word of five letters or more, in any script
_LONG_WORD: Final = re.compile(r"\b[^\W\d_]{5,}\b")
_LONGEST: Final = 200  # characters of a fact
_SHORTEST_ID: Final = 4  # characters; also of a name


class NeededFactKind(enum.Enum):
    """The kind of a fact; a fact that fits several kinds gets the first of them."""

    URL = "url"
    PATH = "path"
    ID = "id"
    NUMBER = "number"
    IDENTIFIER = "identifier"
    QUOTED = "quoted"

    def __repr__(self) -> str:
        return f"NeededFactKind.{self.name}"


_REMOVED_WHEN_FOUND: Final = (
    (NeededFactKind.URL, _URL),
    (NeededFactKind.ID, _EMAIL),
    (NeededFactKind.PATH, _PATH),
    (NeededFactKind.PATH, _FILE),
)
"""The patterns whose matches are removed from a text before the next pattern."""


def flat_text(message: Message) -> str:
    """Return everything in a message as one line: texts, reasoning, results, and each call's name and argument strings.

    Runs of white space become one blank, so that a quotation with other line breaks is still verbatim. O(characters).
    """
    pieces: list[str] = [message.name] if message.name else []
    for part in message.parts:
        if isinstance(part, ToolCallPart):
            pieces += [part.name, *strings_in(part.arguments)]
        elif not isinstance(part, MediaPart):
            pieces.append(part.text)
    return " ".join(" ".join(pieces).split())


def strings_in(arguments: str) -> list[str]:
    """Return the names and values in a call's arguments, as the tool gets them; the text itself if it is not JSON."""
    values = _values(arguments, with_names=True)
    return [arguments] if values is None else values


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


def answer_facts(answer: Message) -> dict[str, NeededFactKind]:
    r"""Return the facts in a recorded answer's text and in the values of its call arguments. O(characters).

    >>> from compaction.formats import openai_chat
    >>> said = {"role": "assistant", "content": "Open src/app.py, line 120: `retry_limit` of order A-17 is \"too low\"."}
    >>> for text, kind in answer_facts(openai_chat.read(said)).items():
    ...     print(kind.value, text)
    path src/app.py
    id A-17
    number 120
    identifier retry_limit
    quoted too low
    """
    found: dict[NeededFactKind, dict[str, None]] = {kind: {} for kind in NeededFactKind}
    for part in answer.parts:
        if isinstance(part, TextPart):
            _collect(part.text, found)
        elif isinstance(part, ToolCallPart):
            values = _values(part.arguments, with_names=False)
            for value in [part.arguments] if values is None else values:
                _collect(value, found)
            whole = [value for value in values or () if 4 <= len(value) <= 80 and "\n" not in value and not value.isdigit()]
            found[NeededFactKind.QUOTED].update(dict.fromkeys(whole))
    facts: dict[str, NeededFactKind] = {}
    for kind in NeededFactKind:
        for text in found[kind]:
            fact = " ".join(text.split())
            if 1 < len(fact) <= _LONGEST:
                facts.setdefault(fact, kind)
    return facts


def _values(arguments: str, *, with_names: bool) -> list[str] | None:
    """Return the values in a call's arguments, with or without the parameter names; ``None`` if they are not JSON."""
    try:
        value = json.loads(arguments)
        fields = [value] if with_names or not isinstance(value, dict) else cast("dict[str, Any]", value).values()
        return [leaf for field in fields for leaf in _leaves(field)]
    except (ValueError, RecursionError):
        return None


def _collect(text: str, found: dict[NeededFactKind, dict[str, None]]) -> None:
    """Add a text's facts. Parts of a link or path are not counted again as identifiers or numbers."""
    for match in _QUOTED.finditer(text):
        found[NeededFactKind.QUOTED][match[match.lastindex or 0].strip()] = None
    rest = text
    for kind, pattern in _REMOVED_WHEN_FOUND:
        if taken := [match.rstrip(".,:;!?/") for match in pattern.findall(rest)]:
            found[kind].update(dict.fromkeys(match for match in taken if not match.isalnum()))
            rest = pattern.sub(" ", rest)
    found[NeededFactKind.IDENTIFIER].update(dict.fromkeys(_OPTION.findall(rest)))
    found[NeededFactKind.ID].update(dict.fromkeys(id for id in _ID.findall(rest) if len(id) >= _SHORTEST_ID))
    rest = _ID.sub(" ", rest)
    for name in _NAME.findall(rest):
        if len(name) >= _SHORTEST_ID and _IN_CODE_ONLY.search(name):
            found[NeededFactKind.IDENTIFIER][name] = None
    for number in _NUMBER.findall(rest):
        if sum(map(str.isdigit, number)) > 1:
            found[NeededFactKind.NUMBER][number.lstrip("+-")] = None


def long_words_in(text: str) -> set[str]:
    """Return the words of five letters or more; the transcript decides which of them are rare."""
    return set(_LONG_WORD.findall(text))


# up to the end of the line or a full stop; one inside a word, as in v1.2, does not end it
_SENTENCE: Final = re.compile(r"[^\n.!?。！？]*(?:[.!?](?=\S)[^\n.!?。！？]*)*[.!?。！？]?")
_INSTRUCTS: Final = re.compile(
    r"\b(?:must|never|always|only|do not|don['’]t|cannot|can['’]t|make sure|ensure|required?|forbidden|at (?:most|least)"
    r"|no more than|without|avoid|prefer|instead of)\b"
    r"|반드시|절대|항상|하지 ?마|말아|금지|必须|不要|绝不|总是|禁止|必ず|決して|しないで",
    re.IGNORECASE,
)
_SHORTEST_SENTENCE: Final = 12
_LONGEST_SENTENCE: Final = 300


def user_sentences_in(text: str) -> Iterator[str]:
    r"""Yield the sentences of 12 to 300 characters in a user's text; O(characters). A line ends a sentence.

    Runs of white space become single blanks.

    >>> list(user_sentences_in("Fix v1.2 first. Never touch  prod.db!\nThanks"))
    ['Fix v1.2 first.', 'Never touch prod.db!']
    """
    for match in _SENTENCE.finditer(text):
        sentence = " ".join(match[0].split())
        if _SHORTEST_SENTENCE <= len(sentence) <= _LONGEST_SENTENCE:
            yield sentence


def is_constraint(sentence: str) -> bool:
    """Return whether a sentence is an instruction: whether it has a word such as *must* or *never*.

    >>> is_constraint("Never touch prod.db!"), is_constraint("Fix v1.2 first.")
    (True, False)
    """
    return _INSTRUCTS.search(sentence) is not None

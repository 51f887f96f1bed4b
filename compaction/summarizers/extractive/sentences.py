"""Sentences of a text, word for word, for the quotations in a digest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

CUT: Final = "…"
"""The end of a word that was cut; a whole word before a cut is followed by a blank and three dots."""

READ_CHARS: Final = 200_000
"""The characters above which only both ends of a text are read; such a text is data, and its middle is rarely mentioned."""

_FENCE: Final = re.compile(r"^\s{0,3}(?:```|~~~)")
_BULLET: Final = re.compile(r"\s*(?:[-*+•>#]+|\d{1,3}[.)])\s+")
_END: Final = re.compile(r"[.!?…。！？](?:(?<=[。！？])|(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<!\bcf\.)[\"')\]*]*\s+)")
_VALUE: Final = re.compile(r"(?<![A-Za-z0-9_.])(?:[A-Za-z_-]{0,40}\d[A-Za-z0-9_.,:/-]*|[0-9a-f]{7,}(?![A-Za-z0-9_]))")
_HAS_VALUE: Final = re.compile(r"\d|[a-f]{7}")
_DIGITS: Final = re.compile(r"\d+")
_LETTERS: Final = re.compile(r"[A-Za-z]+")
_OPEN_END: Final = re.compile(r"[^\s.!?:;。！？：；]\s*$")


def both_ends(text: str) -> str:
    """Return the text, or `READ_CHARS` characters of it: two thirds from its beginning, one third from its end."""
    if len(text) <= READ_CHARS:
        return text
    return f"{text[: READ_CHARS * 2 // 3]}\n{text[-(READ_CHARS // 3) :]}"


def sentences(text: str) -> Iterator[str]:
    r"""Yield the sentences of a text, without list marks and fenced code; O(characters).

    A line that starts in lower case after a line without an end mark continues the sentence.

    >>> list(sentences("Use tabs. Please never\ntouch the cache!\n- 파일은 지우지 마세요"))
    ['Use tabs.', 'Please never touch the cache!', '파일은 지우지 마세요']
    """
    for paragraph in paragraphs(text):
        yield from sentences_in(paragraph)


def sentences_in(paragraph: str) -> Iterator[str]:
    """Yield the sentences of a paragraph."""
    start = 0
    for end in _END.finditer(paragraph):
        if sentence := paragraph[start : end.start() + 1].strip():
            yield sentence
        start = end.end()
    if sentence := paragraph[start:].strip():
        yield sentence


def prose(text: str) -> str:
    """Return the text without fenced code."""
    if "```" not in text and "~~~" not in text:
        return text
    lines: list[str] = []
    fenced = False
    for line in text.splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            lines.append(line)
    return "\n".join(lines)


def paragraphs(text: str) -> Iterator[str]:
    """Yield the lines, joined where a sentence continues in the next."""
    pending: list[str] = []
    for line in prose(text).splitlines():
        bullet = _BULLET.match(line)
        if pending and not (bullet is None and line[:1].islower() and _OPEN_END.search(pending[-1][-80:])):
            yield " ".join(pending)
            pending = []
        pending.append((line[bullet.end() :] if bullet else line).strip())
    if pending:
        yield " ".join(pending)


def one_line(text: str, chars: int) -> str:
    r"""Return the text on one line of at most ``chars`` characters.

    >>> one_line("8 passed,\n2 failed", 15)
    '8 passed, ...'
    """
    return clipped(" ".join(text[: 8 * chars].split()), chars)


def clipped(text: str, chars: int) -> str:
    """Return at most ``chars`` characters of the text, cut after a word if possible; a word that is cut ends in ``…``."""
    if len(text) <= chars:
        return text
    room = max(0, chars - 4)
    blank = max(text.rfind(" ", room // 2, room + 1), text.rfind("\n", room // 2, room + 1))
    return f"{text[:room].rstrip()}{CUT}" if blank < 0 else f"{text[:blank].rstrip()} ..."


def values_of(sentence: str) -> tuple[tuple[str, str], ...]:
    """Return the values of a sentence, each with its shape."""
    if _HAS_VALUE.search(sentence) is None:
        return ()
    found = [match.rstrip(".,:/-") for match in _VALUE.findall(sentence)]
    return tuple([(_shape_of(value), value) for value in found])


def _shape_of(value: str) -> str:
    if value.isalnum() and not value.isalpha() and len(value) >= (7 if value.isdigit() else 6):
        return "x"
    return _LETTERS.sub("a", _DIGITS.sub("0", value.replace(",", "")))

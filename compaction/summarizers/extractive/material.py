r"""The lines of a message that others wrote, as their layout shows: chats, transcripts, records, consoles, marked text.

One such line says little; people write a label, a time or a prompt, too. What tells is that lines are laid out alike, that a
closing line answers an opening one, or that output stands below a prompt. Nothing here reads a language.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

_LEAST_ALIKE: Final = 3  # lines with a repeated beginning
_LEAST_FIELDS: Final = 3  # lines of a record
_FIELD_WORDS: Final = 3
_SPEAKER_CHARS: Final = 60
_HEAD_LINES: Final = 30
_TOP_LINES: Final = 20

_TIME: Final = r"\d{1,2}[:.]\d\d(?:[:.]\d\d)?(?:[.,]\d{1,3})?"
_BEGINNING: Final = re.compile(
    rf"\s{{0,8}}(?:\[[^\]\n]{{1,40}}\](?:[ \t]*\[[^\]\n]{{1,40}}\])?[ \t]*(?:[^\W\d_][^:\n]{{0,30}}:|<[^<>\n]{{1,30}}>)?"
    rf"|[^:\n]{{0,20}}{_TIME}[^:\n]{{0,30}}[:\t](?:[^\t\n]{{1,30}}\t)?"
    r"|<[^<>\n]{1,30}>(?=[ \t])|[\w./-]{1,60}:\d{1,6}:|[\w.-]{1,30}[ \t]*\|(?=[ \t])|\+(?=[^\s+])"
    r"|[^\W\d_][\w.'-]{0,40}(?: [(\w][\w.'()-]{0,20}){0,2}:(?=[ \t])|[^'\"\n]{4,60}[(=<,][ ]?['\"])"
)
_SIGN: Final = re.compile(r"[\d|<>\[\]+\t/(=]")
_VARYING: Final = re.compile(r"\A[\w./-]{1,60}(?=:\d{1,6}:)|\d+")
_SPEAKER_LINE: Final = re.compile(rf"[^\n]*(?<!\d){_TIME}(?!\d)[^\n]*(?<![.!?。！？])")
_HEAD: Final = re.compile(rf"[^\n]{{0,80}}<[\w.+-]{{1,64}}@[\w.-]{{1,64}}>[^\n]{{0,40}}{_TIME}[^\n]{{0,20}}")
_PAGE: Final = re.compile(r"[^\w\n]{0,8}[^\W\d_]{1,12} \d{1,4}(?: [^\W\d_]{1,8} \d{1,4}|/\d{1,4}| ?[-=*_]{2,8})[^\w\n]{0,8}")
_PROMPT: Final = re.compile(
    r"\s{0,4}(?:\$ [a-z./~]|>>> |(?:In|Out) ?\[\d{0,4}\]: ?|PS [A-Z]:\\|[A-Z]:\\[^\s>]*>"
    r"|[\w.-]{1,32}@[\w.-]{1,64}:[^\s@:]{0,80}[$#] |[❯➜] )"
)
_RULER: Final = re.compile(r"[ \t]*-{2,}(?:\+-{2,})+[ \t]*")
_OPENING: Final = re.compile(r"\s{0,3}(?P<line>\"\"\"|'''|(?P<sign>[-=*#])(?P=sign){2,}[ ]?(?P<word>BEGIN|START)\b[^\n]*)\s*")
_FIELD: Final = re.compile(r"\s{0,4}[^\W\d_][\w ./-]{0,30}[:：][ \t]*(?P<value>[^\n]*)")


def lines_of_others(lines: list[str]) -> set[int]:
    """Return the numbers of the lines that others than the user wrote; O(characters).

    Args:
        lines: The lines of the message.

    >>> chat = ["read this:", "ANN: always pay", "BOB: never", "ANN: ok", "BOB: good", "Tests: always run them"]
    >>> sorted(lines_of_others(chat)), sorted(lines_of_others(["Tests: run them", "Style: tabs", "Docs: never skip them"]))
    ([1, 2, 3, 4], [])
    """
    found = set(_alike(lines))
    found.update(_spoken(lines))
    found.update(_marked(lines))
    for start, end in _blocks(lines):
        found.update(_console(lines, start, end))
        found.update(_record(lines, start, end))
    return found


def _blocks(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Yield where each run of lines without a blank one starts and ends."""
    start = 0
    for at, line in enumerate([*lines, ""]):
        if not line.strip():
            if at > start:
                yield start, at
            start = at + 1


def _alike(lines: list[str]) -> Iterator[int]:
    """Yield the lines with a beginning that comes again: of speakers, files, services, times, or what was added."""
    beginnings: dict[int, str] = {}
    for at, line in enumerate(lines):
        if found := _BEGINNING.match(line):
            beginnings[at] = _VARYING.sub("0", found[0].strip(" "))
    times = Counter(beginnings.values())
    speakers = {each for each, count in times.items() if count > 1}
    signed = {each for each in times if _SIGN.search(each)} if any(map(_SIGN.search, speakers)) else set[str]()
    alike = signed | (speakers if len(speakers) > 1 else set[str]())
    if sum(times[each] for each in alike) >= _LEAST_ALIKE:
        yield from (at for at, each in beginnings.items() if each in alike)


def _spoken(lines: list[str]) -> Iterator[int]:
    """Yield the lines from a mail's head, the first page or the first speaker with a time on; they end with the message."""
    pages = [at for at, line in enumerate(lines) if _PAGE.fullmatch(line.strip())]
    heads = [at for at, line in enumerate(lines) if _HEAD.fullmatch(line.strip())]
    filled = [at for at, line in enumerate(lines) if line.strip()]
    speakers = [
        at
        for at, after in itertools.pairwise(filled)
        if _is_speaker(lines[at]) and lines[after].strip() and not _is_speaker(lines[after]) and after == at + 1
    ]
    starts = [found[0] for found, least in ((pages, 2), (heads, 1), (speakers, 2)) if len(found) >= least]
    if starts and min(starts) < _TOP_LINES:  # further down, it may be part of a demonstration, with the task below it
        yield from range(min(starts), len(lines))


def _is_speaker(line: str) -> bool:
    return len(line) <= _SPEAKER_CHARS and _SPEAKER_LINE.fullmatch(line.strip()) is not None


def _marked(lines: list[str]) -> Iterator[int]:
    """Yield the lines between an opening line and the last that closes it, and all lines behind the head of a document."""
    filled = next((at for at, line in enumerate(lines) if line.strip()), 0)
    if lines and lines[filled].rstrip() == "---":
        close = next((at for at in range(filled + 1, min(len(lines), filled + _HEAD_LINES)) if lines[at].rstrip() == "---"), 0)
        if close > filled + 1 and all(_FIELD.fullmatch(line) for line in lines[filled + 1 : close]):
            yield from range(filled, len(lines))
            return
    at = 0
    last = {line.strip(): number for number, line in enumerate(lines)}
    while at < len(lines):
        opening = _OPENING.fullmatch(lines[at])
        closing = lines[at].strip()
        if opening is not None and opening["word"]:
            closing = closing.replace(opening["word"], "END", 1)
        end = last.get(closing, at) if opening is not None else at
        yield from range(at, end + 1 if end > at else at)
        at = end + 1


def _console(lines: list[str], start: int, end: int) -> Iterator[int]:
    """Yield the lines below a prompt, and the rows below a ruler that only programs draw."""
    first = next((at for at in range(start, end) if _PROMPT.match(lines[at]) or _RULER.fullmatch(lines[at])), end)
    yield from range(first, end if end > first + 1 else first)


def _record(lines: list[str], start: int, end: int) -> Iterator[int]:
    """Yield the text below the fields of a record, each a label with a short value: of a ticket, an issue, or a page."""
    fields = 0
    for at in range(start, end):
        found = _FIELD.fullmatch(lines[at])
        if found is not None and found["value"].strip() and len(found["value"].split()) <= _FIELD_WORDS:
            fields += 1
        elif fields >= _LEAST_FIELDS:
            yield at

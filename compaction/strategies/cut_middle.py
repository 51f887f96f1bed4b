"""Cutting the middle out of a long text: the sizes of its two ends, and the note between them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from .. import summarizers

_NOTE: Final = "\n[... {:,} characters cut{} ...]\n"
_VALUES: Final = "; values in them: "
_ERRORS: Final = "; errors in them: "
_ANY_NOTE: Final = re.compile(
    rf"\[\.\.\. (\d{{1,3}}(?:,\d{{3}}){{0,4}}) characters cut(?:(?:{_VALUES}|{_ERRORS})([^\n]*))? \.\.\.\]", re.ASCII
)
_NOTE_WITH_VALUES: Final = re.compile(rf"\n\[\.\.\. [0-9,]{{1,15}} characters cut{_VALUES}[^\n]* \.\.\.\]\n")
_NOTE_CHARS: Final = 47  # about as many as the note has without values
_WORTH_CUTTING: Final = 0.8
_LINE_SLACK: Final = 200


def cut_middle(text: str, chars: int, *, values: int = 0, errors: bool = False) -> str:
    """Return a text without its middle, and with a note of how much was cut; see `HeadTail`.

    With ``errors``, the note quotes the lines of the middle that name an error. What an earlier cut removed counts as cut.

    The text is returned unchanged if it is only slightly longer than ``chars``, if it was cut to this size before, or if the
    values in the note would leave it less than a fifth shorter.
    """
    if len(text) <= chars + _NOTE_CHARS or (values and _is_cut(text, chars, values)):
        return text
    slack = min(_LINE_SLACK, chars // 6)
    head_end = _line_end(text, chars * 2 // 3, -slack)
    tail_start = _line_end(text, len(text) - chars // 3, slack)
    head, middle, tail = text[:head_end], text[head_end:tail_start], text[tail_start:]
    removed = len(middle) + sum(int(note[1].replace(",", "")) for note in _ANY_NOTE.finditer(middle))
    middle = _ANY_NOTE.sub(r"\2", middle)
    found = _values_only_in(middle, (head, tail), values) if values else []
    more = f"{_VALUES}{summarizers.extractive.listed(found)}" if found else ""
    if errors and (told := summarizers.extractive.errors_within(middle)):
        more = f"{_ERRORS}{told}"
    cut = head + _NOTE.format(removed, more) + tail
    return text if found and len(cut) > _WORTH_CUTTING * len(text) else cut


def _is_cut(text: str, chars: int, values: int) -> bool:
    """Return whether both ends of a text, and a note with values between them, are as short as a cut leaves them.

    Any text may say so: all that it gains is that it stays as long as a cut one would be.
    """
    most = _NOTE_CHARS + len(_VALUES) + 2 * values  # values in quotation marks are longer
    return any(
        note.start() <= chars * 2 // 3 and len(text) - note.end() <= chars // 3 and len(note[0]) <= most
        for note in _NOTE_WITH_VALUES.finditer(text)
    )


def _values_only_in(middle: str, others: Sequence[str], chars: int) -> list[str]:
    """Return the exact values of a text that the others do not have, in at most so many characters."""
    known = {value for other in others for value in summarizers.extractive.facts_in(other)}
    shown: list[str] = []
    for value in summarizers.extractive.facts_in(middle):
        if value not in known:
            chars -= len(value) + 1
            if chars < 0:
                break
            shown.append(value)
    return shown


def _line_end(text: str, place: int, slack: int) -> int:
    """Return the place of a line end within ``slack`` characters after ``place`` (before it, if negative), or ``place``."""
    found = text.rfind("\n", place + slack, place) if slack < 0 else text.find("\n", place, place + slack)
    return place if found < 0 else found + (slack > 0)

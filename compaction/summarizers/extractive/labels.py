"""Blocks that are not the user's: the labels above them, and where each of them ends.

`OPENINGS` lists the lines that show where their own block ends: what opens it, what closes it, and an example. Below any other
label, sign or tag, the block ends

1. where the label's own line shows an end, as ``<log>`` does;
2. or where the first block below it shows one, such as a fence, with what follows that without a blank line;
3. or with the last line that answers the label, as ``[end of log]`` answers ``[log]``, or that is a prompt;
4. or else with the message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, TypeAlias

from .lines import BULLET, CERTAIN, FENCE, OF_USER, QUOTED_LINE, any_shape, blocks, end_of_fence, printed_weight
from .sentences import WORDS

_MOST_BLOCKS: Final = 64  # that are read one by one; so many labels, or blocks without a blank line between, are a program's

# ---------------------------------------------------------------- blocks that show their end


_OPEN_TAG: Final = re.compile(r"\s*<([A-Za-z][\w:.-]{0,40})(?:\s[^<>]*)?>")
_DATA: Final = re.compile(r"\s*[{\[]")


def _first(shows: Callable[[str], object], lines: Sequence[str], at: int) -> int | None:
    return next((n for n in range(at, len(lines)) if shows(lines[n])), None)


def _last(closes: Callable[[str], object], lines: Sequence[str], at: int) -> int | None:
    return next((n for n in range(len(lines), at, -1) if closes(lines[n - 1])), None)


def _last_closing_tag(lines: Sequence[str], at: int) -> int | None:
    opening = _OPEN_TAG.match(lines[at])
    return opening and _last(lambda line: line.rstrip().endswith(f"</{opening[1]}>"), lines, at)


def _end_of_data(lines: Sequence[str], at: int) -> int | None:
    text = "\n".join(lines[at:])
    behind = end_of_json(text)
    return None if behind is None else at + text.count("\n", 0, behind) + 1


def _next_blank(lines: Sequence[str], at: int) -> int:
    blank = _first(lambda line: not line.strip(), lines, at)
    return len(lines) if blank is None else blank


_Opens: TypeAlias = Callable[[str], object]
_End: TypeAlias = Callable[[Sequence[str], int], int | None]  # lines and the place of the first -> that behind the last, if any
OPENINGS: Final[tuple[tuple[_Opens, _End, str], ...]] = (
    (FENCE.match, end_of_fence, "```\nalways pay\n```"),
    (QUOTED_LINE.match, partial(_last, QUOTED_LINE.match), "> always pay\n\n> always knock"),
    (_OPEN_TAG.match, _last_closing_tag, "<log>\n</log>\n\nalways pay\n</log>"),
    (_DATA.match, _end_of_data, '{"a":\n\n"always pay"}'),
    (lambda line: printed_weight(line) == CERTAIN, _next_blank, "2026-01-03 10:11:12 INFO paid\nalways pay"),
)
"""Whether a line opens a block that shows its end, where that is, and such a block. The first that fits decides.

What is inside a block may hold a closing line, too.
"""


def end_of(lines: Sequence[str], at: int) -> int | None:
    """Return the line behind what a line begins, as its own layout shows; ``None`` if that shows no end.

    What follows without a blank line belongs to it, and must show its own end.
    """
    for _ in range(_MOST_BLOCKS):
        end = _end_of_one(lines, at)
        if end is None or end >= len(lines) or not lines[end].strip():
            return end
        at = end
    return None


def _end_of_one(lines: Sequence[str], at: int) -> int | None:
    return next((end(lines, at) for opens, end, _ in OPENINGS if opens(lines[at])), None)


_DECODER: Final = json.JSONDecoder()


def end_of_json(text: str) -> int | None:
    """Return where the value ends that a text begins with, up to the end of its line; ``None`` if that shows no end."""
    start = len(text) - len(text.lstrip())
    try:
        end = _DECODER.raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        return None
    rest = text[end:]
    return None if rest.partition("\n")[0].strip() else end + (0 if rest.strip() else len(rest))


# ---------------------------------------------------------------- labels


_SIGN: Final = re.compile(any_shape("signs"))
_PROMPT: Final = re.compile(any_shape("prompts"))
_WORDS: Final = re.compile(r"[^\n:：]{1,120}[:：]\s*")  # "Output:"
_FIELD: Final = re.compile(r"[^\n:：]{1,120}[:：] ?(?!//)[^\W\d_]\S*(?: \S+){0,2}")  # "Status: 200 OK"
_LABEL_CHARS: Final = 40
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_LEAST_LETTERS: Final = 3  # of a word by which one line answers another
_CLOSING: Final = re.compile(
    r"(?=[^\w\s]*[^\s})\];,])"  # not "});", which only closes code
    r"(?:[^\w\s].*"  # "*** END ***"
    r"|.*[$>\])}]"  # "end of log]"
    r"|[^:：]{1,60}[:：](?:\s*\S+){0,3})"  # "End of log: 3 pages"
)


def blocks_below_labels(lines: Sequence[str]) -> Iterator[range]:
    """Yield the lines of each block with a label, a sign or a tag that is not the user's.

    After `_MOST_BLOCKS` of them the rest of the message is one.
    """
    behind, count = 0, 0
    for block in blocks(lines):
        below = _first(str.strip, lines, block.start + 1)
        label = "" if below is None or block.start < behind else label_of(lines[block.start], lines[below])
        if not label:
            continue
        count += 1
        if count == _MOST_BLOCKS:
            behind = len(lines)
        elif _SIGN.fullmatch(label) or _WORDS.fullmatch(label):
            behind = _end_below(lines, block.start, label)
        else:  # "Status: 200 OK"
            behind = block.stop
        yield range(block.start, behind)


def label_of(line: str, following: str) -> str:
    """Return the label, the sign or the tag in a line; empty if the next line does not stand under it, or it is the user's.

    >>> label_of("Output:", "always pay"), label_of("Rules:", "always pay")
    ('Output:', '')
    """
    text = line.strip()
    if OF_USER.match(text) or BULLET.match(text):
        return ""
    if not _SIGN.fullmatch(text) and (BULLET.match(following) or not (_WORDS.fullmatch(text) or _FIELD.fullmatch(text))):
        return ""
    return text if WORDS["labels_of_user"].isdisjoint(_LETTERS.findall(text[:_LABEL_CHARS].lower())) else ""


def _end_below(lines: Sequence[str], start: int, label: str) -> int:
    """Return the line behind a block with a label; the numbers are those at the top of this file."""
    if (end := end_of(lines, start)) is not None:
        return end  # 1
    if (below := _first(str.strip, lines, start + 1)) is not None:
        end_below = _end_of_one if FENCE.match(lines[below]) else end_of  # behind a fence, nothing more belongs to it
        if (end := end_below(lines, below)) is not None:
            return end  # 2
    for block in reversed([*blocks(lines, start + 1)]):
        inside = [lines[at].strip() for at in block]
        introduces = len(inside) == 1 and inside[0].endswith((":", "："))  # what stands below it
        if not introduces and any(_answers(label, line) or _PROMPT.fullmatch(line) for line in inside):
            return block.stop  # 3
    return len(lines)  # 4


def _answers(label: str, line: str) -> bool:
    """Return whether a line closes what a label opened.

    It is set apart by a sign or a colon, and begins with the same sign as the label, or names the same thing. ``[done]`` does
    not answer ``[log] of today``, which continues behind its bracket: what was handed over may hold such lines, too.

    >>> [line for line in ("[done]", "end of log:", "The log is long.", "- [log]") if _answers("[log]", line)]
    ['[done]', 'end of log:']
    >>> [line for line in ("[done]", "[end of log]") if _answers("[log] of today", line)]
    ['[end of log]']
    """
    if not _CLOSING.fullmatch(line) or BULLET.match(line):
        return False
    continues = label[0] in "[<{(" and label[-1] not in "]>})"
    if line[0] == label[0] and not label[0].isalnum() and not continues:
        return True
    names, answer = ({word for word in _LETTERS.findall(text.lower()) if len(word) >= _LEAST_LETTERS} for text in (label, line))
    return not names.isdisjoint(answer)

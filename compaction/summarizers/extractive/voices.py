"""Who speaks in each line of a user's message: the user, somebody whom the user quotes, or a program.

`DETECTORS` is the whole of it: each finds lines of one voice. The first that claims a line decides, and what none claims is the
user's own. They go by shapes, which are the same in every language: fences, lines of logs and code, headers, beginnings that
come again, a line that answers an opening one (`labels`). Only three things depend on words: frameworks' labels, the labels
with which people head their own lists, and whether a line speaks of the user. A list alone says nothing, because people write
lists, too. A label, a time or a prompt alone says little for the same reason.

The `excerpt` asks `own_lines` the same question, and gets another answer where a line leaves doubt. Here doubt counts against a
line: an order of somebody else must not be written among the user's rules. There it counts for the line: the user's words must
not be lost, and what was pasted costs room at most.
"""

from __future__ import annotations

import enum
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from .kinds import concerns_user, demands
from .labels import blocks_below_labels, end_of, end_of_json
from .lines import (
    BULLET,
    CERTAIN,
    FIELD,
    HEADING,
    QUOTED_LINE,
    ROW,
    TAG,
    any_shape,
    as_item,
    blocks,
    fenced_blocks,
    is_table,
    printed_weight,
)
from .sentences import ASKING, ENDS, first_and_last

_MOST_LINES: Final = 4_000
_HEAD_CHARS: Final = 200  # of a paragraph that introduces what stands below it
_INTRODUCING: Final = (*ASKING, ":", "：")
_LONG: Final = 1_500  # a longer message is a task with its material


class Voice(enum.Enum):
    """Who speaks in a passage."""

    OWN = enum.auto()
    UNKNOWN = enum.auto()  # perhaps pasted
    LABELLED = enum.auto()  # below a label, a sign or a tag that is not the user's
    QUOTED = enum.auto()  # in quotation marks, of a mail or a chat, or below words that introduce it as somebody else's
    PROGRAM = enum.auto()  # printed by a program, or code


def voices_of(text: str) -> tuple[list[str], list[Voice]]:
    r"""Return the lines of a user's message, and who speaks in each; O(characters).

    >>> lines, voices = voices_of("Please read this.\n\n[page 12]\nAlways pay.\n[end of page]\n\nNever touch prod.db.")
    >>> [voice.name for line, voice in zip(lines, voices) if line]
    ['OWN', 'LABELLED', 'LABELLED', 'LABELLED', 'OWN']
    """
    layout = _Layout(text)
    voices = [Voice.OWN] * len(layout.lines)
    for detect, voice, _ in reversed(DETECTORS):  # the first detector decides, so it is the last to write
        for at in detect(layout):
            voices[at] = voice
    return layout.lines, voices


class _Layout:
    """The lines of a message, and what several detectors ask of them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = [*map(as_item, first_and_last(text.splitlines(), _MOST_LINES))]
        self.filled = [at for at, line in enumerate(self.lines) if line.strip()]  # the numbers of lines that are not blank
        self.fenced = [at for block in fenced_blocks(self.lines) for at in block]  # from each fence to the one that closes it
        self.printed: list[int] = []  # outside of them, runs of lines that programs wrote, and single ones that only they do
        self.written: list[range] = []  # the other blocks: lines without a blank one, a fence or such a run between them
        unfenced = [*self.lines]
        for at in self.fenced:
            unfenced[at] = ""
        for block in blocks(unfenced):
            printed, written = _divided(self.lines, block)
            self.printed += printed
            self.written += written
        self.labelled = {each.start: each for each in blocks_below_labels(self.lines)}  # by the line of the label
        self.head = self._head()  # the first line, if it is a paragraph of its own that may introduce the rest, or ""

    def _head(self) -> str:
        if len(self.filled) < 2 or len(self.text) > _LONG or is_handed_over(self.text):
            return ""
        first, second, *_ = self.filled
        head, below = self.lines[first].rstrip(), self.lines[second]
        if second == first + 1 or len(head) > _HEAD_CHARS:
            return ""  # no short paragraph of its own
        if first in self.labelled and self.labelled[first].stop < len(self.lines):
            return ""  # "<log>": its block ends before the message does
        if BULLET.match(head) or HEADING.fullmatch(head) or QUOTED_LINE.match(head) or head.endswith((",", "，", "、")):
            return ""  # "- tabs", "## Rules", "> Shall I?", "Hi Ann,": the user's words follow
        is_layout = any(shape(below) for shape in (BULLET.match, TAG.fullmatch, ROW.fullmatch))
        return "" if is_layout and not head.endswith(ASKING) else head  # a list is the user's, unless a question is about it

    def to_end(self, start: int) -> range:
        """Return the lines from one on to where the layout shows an end of what begins there."""
        if start in self.labelled:
            return self.labelled[start]
        end = end_of(self.lines, start) if start < len(self.lines) else None
        return range(start, len(self.lines) if end is None else end)


def _divided(lines: list[str], block: range) -> tuple[Iterable[int], list[range]]:
    """Return the lines of a block that programs wrote, and the others: people write before and behind what they paste."""
    said = lines[block.start : block.stop]
    weights = {at: weight for at, weight in zip(block, map(printed_weight, said), strict=True) if weight}
    if len(weights) > 1 and not all(map(BULLET.match, said)) and not is_table(said):
        first, behind = min(weights), max(weights) + 1
        if 5 * len(weights) >= 3 * (behind - first):  # three in five
            return range(first, behind), [each for each in (range(block.start, first), range(behind, block.stop)) if each]
    return [at for at, weight in weights.items() if weight == CERTAIN and not BULLET.match(lines[at])], [block]


# ---------------------------------------------------------------- detectors, which return the numbers of lines


_ADDRESS: Final = re.compile(r"[\w.+-]@\w|\b(?:Re|Fwd|Fw|AW|WG|RE|FW)\s?:")


def _mails(layout: _Layout) -> Iterable[int]:
    """Return the message from the first block that begins with fields of a mail: two or more, of which one has an address.

    If there are words above it, and it has a body, the last paragraph may be the user's again.
    """
    for block in layout.written:
        top = layout.lines[block.start : min(block.stop, block.start + 6)]
        if sum(FIELD.match(line) is not None for line in top) >= 2 and any(map(_ADDRESS.search, top)):
            body = [each for each in layout.written if each.start > block.start]
            is_framed = block.start > layout.filled[0] and len(body) > 1
            is_own = is_framed and concerns_user("\n".join(layout.lines[body[-1].start : body[-1].stop]))
            return range(block.start, body[-1].start if is_own else len(layout.lines))
    return ()


def _below_mails(layout: _Layout) -> Iterable[int]:
    """Return what follows a mail: the user's words, or its last paragraph."""
    mail = [*_mails(layout)]
    return range(mail[-1] + 1, len(layout.lines)) if mail else ()


_LEAST_ALIKE: Final = 3
_TIME: Final = r"\d{1,2}[:.]\d\d(?:[:.]\d\d)?(?:[.,]\d{1,3})?"
_BEGINNING: Final = re.compile(
    r"//"  # "// always"
    r"|\+(?=\S)"  # "+always"
    rf"|(?![-*+•]\s)\[?(?:{_TIME}|[^:\]>|\t\n]){{1,40}}+(?:[\]>|\t]|:(?!//))"  # "ANN:", "[10:02] Ann:", "a.py:12:", "web-1 |"
)
_SIGN: Final = re.compile(r"[<|\t+]|//|\[(?!0?\])|0[:.]0")  # in a beginning whose numbers are zeros: a time is "0:0"


def _alike(layout: _Layout) -> Iterable[int]:
    """Return the lines with a beginning that comes again: of two speakers or files, or of one with a sign or a time in it."""
    lines = enumerate(layout.lines)
    beginnings = {at: re.sub(r"\d+", "0", found[0]) for at, line in lines if (found := _BEGINNING.match(line))}
    repeated = {each for each, times in Counter(beginnings.values()).items() if times > 1}
    if len(repeated) < 2 and not any(map(_SIGN.search, repeated)):
        return ()
    alike = [at for at, each in beginnings.items() if each in repeated or _SIGN.search(each)]
    return alike if len(alike) >= _LEAST_ALIKE else ()


_SPEAKER_CHARS: Final = 60
_LEAST_SPEAKERS: Final = 2
_LEAST_TIMES: Final = 3
_TOP_LINES: Final = 20
_SPEAKER_LINE: Final = re.compile(rf"[^\n]*(?<!\d){_TIME}(?!\d)[^\n]*(?<![{''.join(ENDS)}])")  # "Ann  0:12"
_TIME_ALONE: Final = re.compile(rf"[\[(]?{_TIME}(?: ?[AP]M)?[\])]?")


def _below_speakers(layout: _Layout) -> Iterable[int]:
    """Return the message from the first speaker or time on, each in a line of its own above what is said.

    Further down it may be part of a demonstration, with the task below it.
    """
    lines = layout.lines
    pairs = enumerate(itertools.pairwise(lines))
    speakers = [at for at, (line, after) in pairs if _is_speaker(line) and after.strip() and not _is_speaker(after)]
    times = [block.start for block in blocks(lines) if any(_TIME_ALONE.fullmatch(lines[at].strip()) for at in block)]
    starts = [found[0] for found, least in ((speakers, _LEAST_SPEAKERS), (times, _LEAST_TIMES)) if len(found) >= least]
    return range(min(starts), len(lines)) if starts and min(starts) < _TOP_LINES else ()


def _is_speaker(line: str) -> bool:
    return len(line) <= _SPEAKER_CHARS and _SPEAKER_LINE.fullmatch(line.strip()) is not None


_HANDED_OVER: Final = re.compile(rf"\s*{any_shape('handed_over')}", re.IGNORECASE)
_PROMPT_AFTER: Final = re.compile(rf"\n{any_shape('prompts')}\s*\Z")
_OUTPUT: Final = re.compile(
    r"\s*(?:exit ?code:|[\[{]\s*\"(?:observation|tool\w*|function\w*|results?|output|stdout|stderr|exit_?code|status)\")",
    re.IGNORECASE,
)


def is_handed_over(text: str) -> bool:
    """Return whether a user's message begins or ends as frameworks hand over what a program returned.

    >>> is_handed_over("[Tool: fetch] Always pay."), is_handed_over("Observation: Always pay."), is_handed_over("Always pay.")
    (True, True, False)
    """
    return _HANDED_OVER.match(text) is not None or _PROMPT_AFTER.search(text[-400:]) is not None


def is_output(text: str) -> bool:
    r"""Return whether a user's message is a result alone, in a form that only programs write.

    >>> is_output('{"result": "Always pay."}'), is_output('{"result": 1}\nIs this right?')
    (True, False)
    """
    return _OUTPUT.match(text) is not None and (text.lstrip()[0] not in "{[" or end_of_json(text) in (None, len(text)))


def _handed_over(layout: _Layout) -> Iterable[int]:
    """Return what a framework handed over; a long message that speaks of the user is a task, as SWE-agent ends it."""
    first = next((layout.lines[at] for at in layout.filled), "")
    if not is_handed_over(layout.text) or (len(layout.text) > _LONG and concerns_user(first)):
        return ()
    return layout.to_end(min(layout.labelled, default=0))


def _introduced(layout: _Layout) -> Iterable[int]:
    """Return what stands below an introduction that ends in a colon or asks, and demands nothing itself."""
    introduces = layout.head.endswith(_INTRODUCING) and not demands(layout.head)
    return layout.to_end(layout.filled[1]) if introduces else ()


def _discussed(layout: _Layout) -> Iterable[int]:
    """Return what a question or a head may be about.

    If the last line asks without speaking of the user, that is the whole message, or the part from the first label on.
    Otherwise, if the head does not speak of the user, it is all below the head.
    """
    if not layout.head or layout.head.endswith(_INTRODUCING):
        return ()
    last = layout.lines[layout.filled[-1]].rstrip()
    if last.endswith(ASKING) and not concerns_user(last):
        return layout.to_end(min(layout.labelled, default=layout.filled[0]))
    return () if concerns_user(layout.head) else layout.to_end(layout.filled[1])


_Detector: TypeAlias = Callable[[_Layout], Iterable[int]]
DETECTORS: Final[tuple[tuple[_Detector, Voice, str], ...]] = (
    (lambda layout: layout.fenced, Voice.PROGRAM, "Look:\n```\nalways = 1\n```"),
    (lambda layout: layout.printed, Voice.PROGRAM, "Look.\n2026-01-03 10:11:12 INFO always\n2026-01-03 10:11:13 INFO always"),
    (
        lambda layout: [at for at in layout.filled if QUOTED_LINE.match(layout.lines[at])],
        Voice.QUOTED,
        "The port is 80.\n> always knock",
    ),
    (_mails, Voice.QUOTED, "See below.\n\nFrom: Ann <always@b.org>\nSubject: always\n\nalways knock"),
    (
        _below_mails,
        Voice.UNKNOWN,
        "See below.\n\nFrom: Ann <a@b.org>\nSubject: keys\n\nCome in.\n\nWe always knock, I think.",
    ),
    (_alike, Voice.QUOTED, "read this:\nANN: always pay\nBOB: always\nANN: always\nBOB: always"),
    (_below_speakers, Voice.QUOTED, "I met them.\nAnn  0:12 always\nalways hello\n\nBob  0:31 always\nalways pay"),
    (_handed_over, Voice.LABELLED, "[Tool: always]\nalways pay"),
    (_introduced, Voice.QUOTED, "A letter from the town hall:\n\nalways knock"),
    (_discussed, Voice.UNKNOWN, "The nurse left a sheet.\n\nalways skip a dose"),
    (
        lambda layout: itertools.chain(*layout.labelled.values()),
        Voice.LABELLED,
        "Look here, please.\n\n[exec always] done\nalways pay",
    ),
)
"""The detectors in order of precedence, each with the voice of its lines, and an example: it finds the lines with "always"."""

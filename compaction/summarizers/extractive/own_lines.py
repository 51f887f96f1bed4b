"""The user's own lines of one message, and shortening a message to them.

People paste into their messages. Where there is little room, what they wrote themselves stays before what they pasted. Here
only fences and lines that look like those of programs count as pasted: a mistake would lose the user's words. `voices` marks
more lines. Its mistakes cost less, since it only decides what is written as a rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import groupby, pairwise, takewhile
from typing import Final, TypeAlias

import attrs

from .kinds import Kind, Statement, judge
from .lines import BULLET, FENCE, FIELD, HEADING, ROW, TAG, as_item, blocks, enclosed, fenced_blocks, is_printed
from .sentences import LONGEST_SENTENCE, chars_within, sentences_in

Count: TypeAlias = Callable[[str], int]  # counts the tokens of a text

LONG_LINE: Final = 300  # characters above which the sentences of a line are judged apart
LONG_MESSAGE: Final = 1_500  # characters above which the long lines of a message may be pasted prose, such as a chapter
LEFT_OUT: Final = "[...]"  # stands in place of lines that are left out

_LEAST_WRAPPED: Final = 3  # lines of a paragraph
_FULL_LINE: Final = 50  # characters
_MUCH_LESS: Final = 0.25  # of the characters of prose
_LEAST_FIELDS: Final = 3  # of a mail; people write lists of fields, too
_MAIL: Final = re.compile(  # "Ann Lee <ann@b.org>", "Subject: Re: keys"
    r"<[^<>@\s]+@[^<>@\s]+>|:\s*(?:Re|RE|Fwd|Fw|FW|AW|WG)\s?:"
)
_DICTATED: Final = range(600, 12_000)  # characters; people who dictate use no full stops
_DICTATED_WORDS: Final = 16  # of a part of it
_STEP_WORDS: Final = 4
_LEAST: Final = 24  # tokens below which a shortened message says too little


@attrs.frozen
class WrittenLine:
    """A line of a message, a sentence of a long one, or a part of a very long sentence.

    Prose stands inside a long line or a wrapped paragraph of a long message, and may be pasted. What people say about a text
    that they paste stands at an end of the message, or in short lines of its own.
    """

    text: str
    is_own: bool  # whether the user probably wrote it
    number: int  # the line of the text that it is, or is a part of
    is_prose: bool = False


def lines_by_writer(text: str, longest: int = LONG_LINE) -> list[WrittenLine]:
    """Return the lines of a text, each with who probably wrote it.

    Lines of more than ``longest`` characters are split into sentences, and very long sentences into parts.
    """
    text_is_long = len(text) > LONG_MESSAGE
    found: list[WrittenLine] = []
    lines = text.split("\n")
    others = _mail_fields(lines).union(*fenced_blocks(lines))
    prose = _pasted_prose(lines) if text_is_long else set[int]()
    for number, line in enumerate(lines):
        if number in others or len(line) <= longest:
            found.append(WrittenLine(line, number not in others and not is_printed(line), number, number in prose))
        else:
            for sentence in sentences_in(line):
                is_own = not is_printed(sentence)
                parts = _dictated(sentence) if is_own else [sentence]
                found += [WrittenLine(each, is_own, number, number in prose) for each in parts]
    said = [place for place, line in enumerate(found) if line.text.strip()]
    for place in {*said[:1], *said[-1:]}:
        found[place] = attrs.evolve(found[place], is_prose=False)
    return found


def _mail_fields(lines: Sequence[str]) -> set[int]:
    """Return the numbers of the lines in the headers of mails: runs of fields, of which one shows that they are a mail's.

    >>> _mail_fields(["See below.", "", "From: Ann Lee <ann@b.org>", "To: Bob", "Subject: keys", "", "Bob: Never knock."])
    {2, 3, 4}
    """
    found = set[int]()
    for is_field, run in groupby(range(len(lines)), lambda number: FIELD.match(lines[number]) is not None):
        fields = [*run]
        if is_field and len(fields) >= _LEAST_FIELDS and any(_MAIL.search(lines[number]) for number in fields):
            found.update(fields)
    return found


def _pasted_prose(lines: Sequence[str]) -> set[int]:
    """Return the numbers of the lines of prose that may be pasted: long lines, and those of wrapped paragraphs.

    Of the two layouts, the one in which much less is written is the user's.
    """

    def chars(numbers: Iterable[int]) -> int:
        return sum(len(lines[number]) for number in numbers)

    wrapped = _wrapped(lines)
    long = {number for number, line in enumerate(lines) if len(line) > LONG_LINE} - wrapped
    rarer, other = sorted([wrapped, long], key=chars)
    return other if chars(rarer) < _MUCH_LESS * chars(other) else wrapped | long


def _wrapped(lines: Sequence[str]) -> set[int]:
    """Return the numbers of the lines in paragraphs that are wrapped: several full lines, and none of a list or a heading.

    >>> _wrapped(["- no tabs", "- no mocks", "", *["a chapter of a book, in lines that are all of about the same length"] * 3])
    {3, 4, 5}
    """
    found = set[int]()
    for block in blocks(lines):
        said = [lines[at] for at in block]
        is_layout = any(shape(line) for line in said for shape in (BULLET.match, HEADING.fullmatch, ROW.fullmatch))
        if len(said) >= _LEAST_WRAPPED and min(map(len, said[:-1])) >= _FULL_LINE and not is_layout:
            found.update(block)
    return found


def _dictated(sentence: str) -> list[str]:
    """Return the parts of a very long sentence: those of 16 words that weigh as much as a task, and what is between them.

    >>> walk = "and then the dog saw a cat and we went home because of the rain " * 6
    >>> [part for part in _dictated(f"{walk}and you must never store the code of it {walk}") if "never" in part]
    ['a cat and we went home because of the rain and you must never store the']
    """
    if len(sentence) not in _DICTATED:
        return [sentence]
    words, cuts, at = sentence.split(" "), [0], 0
    while at < len(words):
        is_heavy = judge(" ".join(words[at : at + _DICTATED_WORDS])).kind >= Kind.TASK
        if is_heavy or at - cuts[-1] >= _DICTATED_WORDS:
            cuts.append(at)
        at += _DICTATED_WORDS if is_heavy else _STEP_WORDS
        if is_heavy:
            cuts.append(at)
    return [" ".join(words[start:end]) for start, end in pairwise([*cuts, len(words)]) if start < end]


def joined(lines: Sequence[WrittenLine], chosen: Collection[int]) -> str:
    """Return the text of the lines at these places, with a mark where others are left out; empty without any."""
    if not chosen:
        return ""
    parts: list[str] = []
    before: WrittenLine | None = None
    for place, line in enumerate(lines):
        text = line.text if place in chosen else LEFT_OUT
        if text == LEFT_OUT and (not line.text.strip() or (parts and parts[-1] == LEFT_OUT)):
            continue
        parts += [" " if before and before.number == line.number else "\n", text]
        before = line
    return "".join(parts[1:])


def shortened(text: str, tokens: int, count: Count, judged: Callable[[str], Statement] = judge) -> str:
    r"""Return a text in at most so many tokens: whole if it fits, or else its own lines before those that look pasted.

    Lines that are left out are marked with ``[...]``. Of too many own lines the first and the last are kept. If no line fits,
    sentences are. None of them is cut, since a part may mean something else; the text is empty if none fits, unless one is so
    long that hardly a person wrote it. ``judged`` is `judge`, or remembers its results.

    >>> shortened("Fix this:\n```\n" + "0xff " * 99 + "\n```\nNever touch Y.", 30, len)
    'Fix this:\n[...]\nNever touch Y.'
    >>> shortened("The budget is 4200 euros. My wife does not want grey tiles, on any account.", 40, len)
    'The budget is 4200 euros. [...]'
    """
    if count(text) <= tokens:
        return text
    if tokens < _LEAST:
        return ""
    lines = lines_by_writer(text)
    short = _those_that_fit(lines, tokens, count, judged) or _those_that_fit(lines_by_writer(text, 0), tokens, count, judged)
    is_cut = not short and any(len(line.text) > LONGEST_SENTENCE for line in lines)
    return _without_middle(text, tokens, count) if is_cut else short


def _those_that_fit(lines: Sequence[WrittenLine], tokens: int, count: Count, judged: Callable[[str], Statement]) -> str:
    """Return the most important lines that fit, with marks where others are left out; empty if none does."""
    sizes = [count(line.text) + 1 for line in lines]
    gap = count(LEFT_OUT) + 1
    ends = {-1, len(lines)}  # no mark is needed there
    chosen, room = set[int](), tokens + 1 - gap
    for place in _by_importance(lines, judged):
        # a line between two that are left out needs one more mark; between two that are chosen, one less
        more_gaps = 1 - sum(beside in chosen or beside in ends for beside in (place - 1, place + 1))
        if sizes[place] + more_gaps * gap <= room:
            chosen.add(place)
            room -= sizes[place] + more_gaps * gap
    return joined(lines, chosen)


def _without_middle(text: str, tokens: int, count: Count) -> str:
    """Return the beginning and the end of a text whose every sentence is too long, in at most so many tokens with the mark."""

    def ends(chars: int) -> str:
        head, tail = text[: 2 * chars // 3], text[len(text) - chars // 3 :]
        head = head[: head.rfind(" ")] if " " in head else head
        tail = tail[tail.find(" ") :] if " " in tail else tail
        return f"{head.rstrip()} {LEFT_OUT} {tail.lstrip()}"

    return ends(chars_within(len(text), tokens, lambda chars: count(ends(chars)), least=1))


def _by_importance(lines: Sequence[WrittenLine], judged: Callable[[str], Statement]) -> list[int]:
    """Return the places of the lines: the user's own, those that matter most first, and then the others.

    The first line says what the message is about, or else the last. Sentences between tags of a user follow; then rules,
    preferences, decisions and open tasks; and then the other lines: all from the ends inwards, since people write before and
    behind what they paste. Long prose comes after that. A tag alone says nothing, and a heading says little without the line
    below it.
    """
    found: list[int] = []
    for is_prose in (False, True):
        own = [place for place, line in enumerate(lines) if line.is_own and line.is_prose is is_prose and _says(line.text)]
        heavy = [place for place in own if judged(enclosed(as_item(lines[place].text))).kind >= Kind.TASK]
        tagged = [place for place in own if as_item(lines[place].text) != lines[place].text]
        headings = len([*takewhile(lambda place: HEADING.fullmatch(lines[place].text), own)])
        found += [*own[: headings + 1], *own[-1:], *_ends_first(tagged), *_ends_first(heavy), *_ends_first(own)]
    others = [place for place, line in enumerate(lines) if not line.is_own and _says(line.text) and not FENCE.match(line.text)]
    return list(dict.fromkeys([*found, *others]))


def _says(line: str) -> bool:
    return bool(line.strip()) and TAG.fullmatch(line) is None


def _ends_first(places: Sequence[int]) -> list[int]:
    """Return the places with those near an end first."""
    last = len(places) - 1
    return [places[n] for n in sorted(range(len(places)), key=lambda n: (min(n, last - n), n))]

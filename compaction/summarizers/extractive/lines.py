"""The shapes of a line alone: an item of a list, a heading, a tag, a row, a quotation, a fence, or a line of a program.

Each expression has an example behind it. What a line says is not judged here, and neither are the lines around it.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

FENCE: Final = re.compile(r"\s{0,3}(?:```(?![^`\n]*`)|~~~)")  # not "```make``` fails"
_PLAIN_MARKS: Final = "-*+•▪◦‣·●○■□▶►➤–—"  # they say nothing, unlike a number or a box
MARK: Final = re.compile(rf"\s*(?:[{_PLAIN_MARKS}]|\d{{1,3}}[.)])\s+(?=\S)")  # "- tabs", "2) tabs"
BULLET: Final = re.compile(  # these and "(a) tabs", "- [x] tabs", "✅ tabs", "① tabs"
    rf"(\s*)((?:[{_PLAIN_MARKS}✓✔✗✘☐☑☒✅❌❗⚠➡👉🔹🔸⭐📌🚫⛔]\ufe0f?"
    r"|\(?\d{1,3}[.)、．]|\(?[a-zA-Z][.)]|[①-⑳])"
    r"(?:\s*\[[ xX]\])?)\s+(?=\S)"
)
HEADING: Final = re.compile(  # "## Rules", "**Rules**:", "【Rules】", "[Rules]:", "== Rules =="
    r"\s{0,3}(?:#{1,6}\s+\S.*|(\*\*|__)[^*_\n]{1,120}\1[:：]?|【[^】\n]{1,60}】|\[[^\]\n]{2,40}\]:?|={2,}\s*\S.*={2,})\s*"
)
UNDERLINE: Final = re.compile(r"\s{0,3}(?:=|-){3,}\s*")  # "-----"
TAG: Final = re.compile(r"\s*<(/?)([\w][\w:.-]{0,40})>\s*")  # "<rules>", "</rules>"
OF_USER: Final = re.compile(  # "<rules>", "</user_query>"
    r"</?(?:user[_-]?)?(?:task|query|question|feedback|instructions?|requests?|message|prompt|input|rules?|role|goals?|constraints?"
    r"|requirements?|guidelines?|preferences?|objectives?|todo)?(?:\s[^<>]*)?>",
    re.IGNORECASE,
)
_ELEMENT: Final = re.compile(  # "<rule>No tabs, please.</rule>"
    r"(\s*)(<([A-Za-z][\w:.-]{0,40})(?:\s[^<>]*)?>)\s*(\S.*?)\s*</\3>\s*"
)
_PAIR: Final = re.compile(r'\s*"[^"\n]{1,60}"\s*:\s*"((?:[^"\\\n]|\\.)+)(?:",?)?\s*')  # '"task": "Move the old files.",'
ROW: Final = re.compile(r"\s*\|.*\|\s*|[^|\n]{1,80}(?:\|[^|\n]{1,120}){2,}")  # "| a | b |", "a|b|c"
RULED: Final = re.compile(r"[\s|:+=_.–—*~#-]+")  # "|---|:-:|", "+---+", "***"
SPEAKER: Final = re.compile(  # "Ann: We leave at 9.", not 'Legal says: "Delete it."'
    r"([^\W\d_][^:!?\n]{0,40}): (?![\"'“„‘«「『])"
)
FIELD: Final = re.compile(r"\s*([^\W\d_][\w .-]{0,20})\s?[:：]\s*\S")  # "Subject: keys"
QUOTED_LINE: Final = re.compile(r"\s{0,3}>\s?")  # "> never park here"
CERTAIN: Final = 2  # the `printed_weight` of a line that only a program writes
DASH: Final = re.compile(rf"\s*[{_PLAIN_MARKS}]\s+(?=\S)")  # "- tabs", not "2) tabs"
_READ: Final = 400  # characters of a line by which it is judged
_LEAST_WORDS: Final = 3  # of a sentence


def are_named(messages: Sequence[str]) -> bool:
    """Return whether half of the messages begin with the name of a speaker, which comes again; O(messages).

    >>> are_named(["Ann: We leave at 9.", "Bob: Fine.", "Ann: Bring cash.", "Bob: I will."])
    True
    >>> are_named(["Legal says: Delete it. I say no.", "And point 2: the rent.", "My aim: a house."])
    False
    """
    heads = Counter(found[1] for each in messages if (found := SPEAKER.match(each)))
    return 2 * sum(count for count in heads.values() if count > 1) >= max(2, len(messages))


def blocks(lines: Sequence[str], start: int = 0) -> Iterator[range]:
    """Yield each run of lines without a blank one, from a line on."""
    for at in range(start, len(lines) + 1):
        if at == len(lines) or not lines[at].strip():
            if at > start:
                yield range(start, at)
            start = at + 1


def fenced_blocks(lines: Sequence[str]) -> Iterator[range]:
    """Yield the lines from each fence to the one that closes it, or else to the last line; a lone ``~~~`` only divides."""
    end = 0
    for at, line in enumerate(lines):
        if at >= end and FENCE.match(line) and (line.strip() != "~~~" or end_of_fence(lines, at)):
            end = end_of_fence(lines, at) or len(lines)
            yield range(at, end)


def end_of_fence(lines: Sequence[str], opening: int) -> int | None:
    """Return the line behind the fence that closes one: the next of the same sign; ``None`` if there is none."""
    sign = lines[opening].lstrip()[:3]
    following = range(opening + 1, len(lines))
    return next((at + 1 for at in following if FENCE.match(lines[at]) and lines[at].lstrip().startswith(sign)), None)


def as_item(line: str) -> str:
    """Return a sentence between tags of a user as an item of a list; any other line as it is.

    >>> as_item('<rule id="1">No tabs, please.</rule>'), as_item("<name>Ann Lee</name>")
    ('- No tabs, please.', '<name>Ann Lee</name>')
    """
    found = _ELEMENT.fullmatch(line)
    return f"{found[1]}- {found[4]}" if found and OF_USER.match(found[2]) else line


def enclosed(line: str) -> str:
    """Return a sentence between tags that are not those of HTML, or in a string of JSON; any other line as it is.

    >>> enclosed("<note>No tabs, please.</note>"), enclosed('"task": "Move the old files.",'), enclosed('"name": "Ann Lee"')
    ('No tabs, please.', 'Move the old files.', '"name": "Ann Lee"')
    """
    element, pair = _ELEMENT.fullmatch(line), _PAIR.fullmatch(line)
    said = pair[1] if pair else element[4] if element and not _HTML.fullmatch(element[3]) else ""
    words = sum(_PLAIN.fullmatch(piece) is not None for piece in said.split())
    return said if words >= _LEAST_WORDS or UNSPACED.search(said) else line


def is_table(lines: Sequence[str]) -> bool:
    """Return whether one of these lines rules off the header of a table."""
    return len(lines) > 1 and any(RULED.fullmatch(line) and "|" in line and "-" in line for line in lines)


def without_bullet(item: str, match: Callable[[str], re.Match[str] | None] = BULLET.match) -> str:
    """Return an item of a list without the mark before it: any mark, number or box, or one of those that are given."""
    mark = match(item)
    return item[mark.end() :] if mark else item


# ---------------------------------------------------------------- lines of programs

SHAPES: Final[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("shapes.toml").read_text("utf-8"))


def any_shape(name: str) -> str:
    """Return an expression for all shapes of this name."""
    return f"(?:{'|'.join([row['shape'] for row in SHAPES[name]])})".replace("<given>", SHAPES["given"])


_HTML: Final = re.compile(  # tags in which programs write; others around a sentence are somebody's own
    r"a|b|body|div|em|h[1-6]|head|html|i|li|[ou]l|option|p|script|span|strong|style|table|t(?:body|d|h|head|r)|u", re.IGNORECASE
)
_PRINTED: Final = re.compile(any_shape("printed"))
CODE: Final = re.compile(any_shape("code"))
_SIGNED: Final = re.compile(any_shape("signed"))
_CODE_END: Final = re.compile(r".*(?:[{};]|\)\s*:|=>|\\)\s*")
_CODE_SIGNS: Final = "{};:>\\"  # the last sign of such an end
_SIGNS: Final = re.compile(r"[=|{}\[\]<>;\\`$^~@]|\w\(|\)\.|[^\s:/]/[^\s/]|_\w|\w_|::|->|--?\w|\w\.\w|\d")
_PLAIN: Final = re.compile(r"[\"'“”‘’„«»(¿¡*_]*[^\W\d_]+(?:['’-][^\W\d_]+)*[\"'“”‘’«»).,:;!?…*_]*")  # a word, with its marks
_NUMBER: Final = re.compile(r"\W?\d+(?:[.:,-]\d+)*\W?")  # "8", "(12)", "17:30,"
UNSPACED: Final = re.compile(  # a character of Thai, Korean, Japanese or Chinese, which need no blanks or question marks
    r"[\u0e00-\u0eff\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
)


def is_printed(line: str) -> bool:
    """Return whether a program wrote a line, as far as the line alone shows.

    >>> is_printed("-rw-r--r-- 1 app app 31213 assets/mail.json"), is_printed("booking=AX-1 guest=Ines nights=3")
    (True, True)
    >>> is_printed("<note>No tabs, please.</note>"), is_printed("<li>No tabs, please.</li>")
    (False, True)
    >>> is_printed("2026-12-01 10:00 dentist, if Tom comes"), is_printed("2026-12-01 10:00 INFO dentist is full")
    (False, True)
    >>> is_printed("The port is 8080."), is_printed("Rather 15:20."), is_printed("tabs, two wide"), is_printed("端口是8080")
    (False, False, False, False)
    """
    signed = _SIGNED.match(line)
    return printed_weight(enclosed(line)) > 0 and not (signed and _is_said(line[signed.end() :]))


def _is_said(text: str) -> bool:
    r"""Return whether a cell of a row, or the whole text, is a phrase: three words or more and perhaps numbers, and no code.

    >>> _is_said("Supplier 7 Ltd\t30\tdelete, merged with 104"), _is_said("import os"), _is_said("x = the first of these")
    (True, False, False)
    """
    for cell in text.split("\t"):
        others = [piece for piece in cell[:_READ].split() if not _PLAIN.fullmatch(piece)]
        words = len(cell[:_READ].split()) - len(others)
        is_phrase = words >= _LEAST_WORDS and all(map(_NUMBER.fullmatch, others))
        if (is_phrase or UNSPACED.search(cell)) and not printed_weight(cell):
            return True
    return False


def printed_weight(line: str) -> int:
    """Return 2 for a line that only a program writes, 1 for one that mostly programs write, 0 for any other.

    A line that no expression knows is judged by its plain words and its signs, such as ``=``, ``/`` and digits:

    | a program's line | a person's line | the difference |
    |---|---|---|
    | ``id=7 a=1 ok``: 4 signs | ``id=7 ok``: 2 signs | few words, and four signs or more |
    | the same: 1 word of 3 | ``id=7 a=1 in use``: 2 words of 4 | at most a third are words |
    | ``go(x) = done {``: 1 word, 3 signs | ``Keep tabs;``: 1 sign | ends like code, and has two signs or more |
    | ``if (x == y):``: 3 words, 2 signs | ``Ask Ann, Bob or one of us at 12;``: 8 words, 3 signs | at most two words a sign |
    """
    if _PRINTED.match(line):
        return CERTAIN
    read = line[:_READ]
    pieces = read.split()
    if not pieces or UNSPACED.search(line):
        return 0
    if CODE.match(line):
        return 1
    ends_like_code = pieces[-1][-1] in _CODE_SIGNS and _CODE_END.fullmatch(read) is not None
    if not ends_like_code and next(islice(filter(_PLAIN.fullmatch, pieces), len(pieces) // 3, None), None):
        return 0  # as most lines of people, at once: more than a third are words
    words = sum(_PLAIN.fullmatch(piece) is not None for piece in pieces)
    signs = len(_SIGNS.findall(read))
    has_few_words = signs >= 4 and 3 * words <= len(pieces) and 2 * words <= signs
    return int(has_few_words or (ends_like_code and signs >= 2 and words <= 2 * signs))

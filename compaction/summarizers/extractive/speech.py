"""Who speaks in a message, and its passages: the user's own words, what the user quotes, and what a program printed.

Only shapes decide that are the same in every language: size, fences, quotation marks, headers, the lines of logs, stack
traces, listings and code, and the labels of frameworks. A list is no such shape: people write lists. What is ambiguous is
kept: as the user's own words or, behind a framework's label, as words of unknown origin, which are never rules.
"""

from __future__ import annotations

import enum
import itertools
import re
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import attrs

from .material import lines_of_others
from .sentences import sentences_in

_LEAD_CHARS: Final = 200
_LONG: Final = 1_500  # a longer message is a task with its material
_MOST_LINES: Final = 4_000
_CERTAIN: Final = 2
_WRAPPED: Final = 24  # characters of a line that may continue in the next

_BLANK: Final = re.compile(r"\n[ \t\r]*\n\s*")
_FENCE: Final = re.compile(r"\s{0,3}(?:```|~~~)")
_BULLET: Final = re.compile(
    r"(\s*)((?:[-*+•▪◦‣·●○■□▶►➤✓✔✗✘☐☑☒✅❌❗⚠➡👉🔹🔸⭐📌🚫⛔–—]\ufe0f?|\(?\d{1,3}[.)、．]|\(?[a-zA-Z][.)]|[①-⑳])"
    r"(?:\s*\[[ xX]\])?)\s+(?=\S)"
)
_PLAIN_BULLET: Final = re.compile(r"\s*[-*+•▪◦‣·●○■□▶►➤–—]\s+(?=\S)")
_HEADING: Final = re.compile(
    r"\s{0,3}(?:#{1,6}\s+\S.*|(\*\*|__)[^*_\n]{1,120}\1[:：]?|【[^】\n]{1,60}】|\[[^\]\n]{2,40}\]:?|={2,}\s*\S.*={2,})\s*"
)
_UNDERLINE: Final = re.compile(r"\s{0,3}(?:=|-){3,}\s*")
_TAG: Final = re.compile(r"\s*<(/?)([\w][\w:.-]{0,40})>\s*")
_ROW: Final = re.compile(r"\s*\|.*\|\s*|[^|\n]{1,80}(?:\|[^|\n]{1,120}){2,}")
_RULED: Final = re.compile(r"[\s|:+=_.–—*~#-]+")
_QUOTED_LINE: Final = re.compile(r"\s{0,3}>\s?")
_CHAT: Final = re.compile(r"\s*(?:\[?\d{1,2}[:.]\d\d(?:[:.]\d\d)?\]?\s*-?\s*[^\s:][^:]{0,30}:|<[^\s<>]{1,20}>)\s+\S")
_HEADER: Final = re.compile(r"\s*[^\W\d_][\w .-]{0,20}\s?[:：]\s*\S")
_ADDRESS: Final = re.compile(r"[\w.+-]@\w|\b(?:Re|Fwd|Fw|AW|WG|RE|FW)\s?:")
_SIGNS: Final = re.compile(r"[=|{}\[\]<>;\\`$^~@]|\w\(|\)\.|[^\s:/]/[^\s/]|_\w|\w_|::|->|--?\w|\w\.\w|\d")
_PLAIN: Final = re.compile(r"[\"'“”‘’„«»(¿¡*_]*[^\W\d_]+(?:['’-][^\W\d_]+)*[\"'“”‘’«»).,:;!?…*_]*")
_SCRIPT: Final = re.compile(r"[\u0e00-\u0eff\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")

# Lines that only programs write, in any language: logs, stack traces, differences, listings, data.
_PRINTED: Final = re.compile(
    r"\s*\W?\d{4}[-/.]\d\d[-/.]\d\d[T ,]+\d\d:\d\d:\d\d|\s*\[?\d\d:\d\d:\d\d[\].,]?|[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d "
    r"|npm ERR!|\s+at [\w$.<>]+[.(]|\s*File \"[^\"]+\", line \d+|Traceback \(|\s*[A-Za-z_][\w.]*(?:Error|Exception)(?:[:(]|$)"
    r"|\s*[~^]{2,}\s*$|\s*\^\s*$|\s*#\d+ +0x|goroutine \d+ |\s*Caused by: |E\s{2,}\S|={5,} |-{5,} |FAILED \S+::"
    r"|@@ -\d|(?:\+\+\+|---) [ab/]|diff --git |index [0-9a-f]{7,}\.\.|\s*>>> |\w+@[\w-]+[:~][^\n]{0,60}[$#] |C:\\[^\s>]*>"
    r"|\s{0,8}\d{1,6}\t|[-dlbcps][-rwxsStT]{9}[.+@]? |\(Open file: |\(Current directory: |\[File: |bash-\$"
    r"|\s*[{}\[\]()]+[,;]?\s*$|\s*\"[^\"\n]{1,60}\"\s*:\s*[\"\d{\[tfn-]|\s*\{\"|\s*<\?xml|\s*<!DOCTYPE"
    r"|\s*</?[a-zA-Z][\w:-]*(?:\s[^<>]*=[^<>]*)?/?>.*</"
)
# Lines that programs mostly write.
_CODE: Final = re.compile(
    r"\s*\W?(?:DEBUG|INFO|WARN|WARNING|ERROR|FATAL|TRACE|CRITICAL|SEVERE)\b\W?[:\s\]-]\s*\S|\s*\$ [a-z]|\s*\.\.\. |total \d+$"
    r"|\s*\W?\d{4}[-/.]\d\d[-/.]\d\d[T ,]+\d\d:\d\d|\s{0,8}\d{1,6}(?::(?=\S)(?!\d)|:\s{2,}|:$|\|| ?│)"
    r"|\s*(?:import [\w.{*]+(?: as \w+|;|$)|from [\w.]+ import |(?:async )?def \w+\(|class \w+[(:{]|func \w+\(|function \w*\(|"
    r"(?:const|let|var|val|int|auto) \w+ =|#include|package [\w.]+;?$|using [\w.:]+;|return\b.*;$|@\w+(?:\(|$)|"
    r"[\w.\[\]]+ \+?= \S)"
)
_CODE_END: Final = re.compile(r".*(?:[{};]|\)\s*:|=>|\\)\s*")

# How agents' frameworks, browsers and retrieval hand texts of programs to a model in a user's message.
_GIVEN: Final = r"(?:outputs?|results?|responses?|std(?:out|err)|observations?|returned|return ?code|url|logs?)"
_FOUND: Final = r"(?:documents?|passages?|context|pages?|chunks|snippets|sources?|content)"
_HANDED_OVER: Final = re.compile(
    r"\s*(?:"
    rf"\[(?:tool|function|mcp|browser|terminal|command|event|{_GIVEN})\b[^\]\n]{{0,80}}\]"
    r"|\[\w+ for '[^'\n]{0,200}'\] result\b"
    r"|[#*=\s]{0,6}(?:"
    rf"[^:.!?\n]{{0,60}}\b{_GIVEN}(?: (?:from|of|for)\b[^:.!?\n]{{0,200}})?:"
    rf"|#[^:.!?\n]{{0,60}}\b{_GIVEN}\n|tool_(?:result|output|response)s?\b|event: ?\w+\n"
    rf"|[^:.!?\n]{{0,40}}\b(?:retrieved|search|web|page)\b[^:.!?\n]{{0,20}}\b{_FOUND}\b[^:\n]{{0,120}}:"
    r"|(?:tool|function|mcp|browser)(?: ?\([\w.-]{1,60}\))?\s?:|observation of\b|thought:|interactive elements"
    rf"|(?:results?|output) (?:of|from) (?:calling|running|the)\b|mcp tool\b)"
    r"|[*=-]{3,} ?response from\b|exit ?code:|executed code block|execution result\b|[io]\w*> "
    r"|[\w.-]{1,32}@[\w.-]{1,64}:[^\s@:]{0,200}[$#] "
    r"|context information is below|(?:use|answer\b[^\n]{0,60} (?:using|from|based on)) (?:only )?the following\b"
    rf"[^\n]{{0,40}}\b(?:{_FOUND}|results?)\b"
    rf"|<(?:[\w:-]{{0,24}}[_-])?(?:{_GIVEN}|{_FOUND})\b[^>\n]{{0,80}}>"
    r"|\[1\] [^\n]*\n(?:[^\n]*\n)*?\[2\] )",
    re.IGNORECASE,
)
_PROMPT_AFTER: Final = re.compile(
    r"\n(?:\(Open file: [^\n]*\)|\(Current directory: [^\n]*\)|bash-\$"
    r"|\[(?:The command|Command) (?:completed|finished) with [^\n]*\])\s*\Z"
)


def is_handed_over(text: str) -> bool:
    """Return whether a user's message begins or ends as frameworks hand over what a program returned.

    >>> is_handed_over("[Tool: fetch] Always pay."), is_handed_over("Observation: Always pay."), is_handed_over("Always pay.")
    (True, True, False)
    """
    return _HANDED_OVER.match(text) is not None or _PROMPT_AFTER.search(text[-400:]) is not None


_MOST_FRAMES: Final = 8
_OPENING_CHARS: Final = 600
_LEAST_OPENING: Final = 16
_LONG_OPENING: Final = 60
_FRAME: Final = re.compile(
    r"(?P<sign>[\[<{(=][=<\[{(]{0,24}[\w /.-]{0,24}|[$>★@~*](?!\s*\*))[^\n]*|(?P<label>[^\n:：]{1,120}[:：])(?P<rest>[^\n]*)"
    r"|(?=[^\n]*[\d,;|_][^\n])(?P<data>[^\n]*[^\s.!?。！？])"
)
_VARYING: Final = re.compile(
    r"\d[\w.:/-]*|[\w.-]{0,64}[/@\\][\w./@\\-]*|[a-z_]{1,64}\.[a-z]\w*|(?<==)\S+|'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`"
)
_WHEN: Final = re.compile(r"\d\d?[:.]\d\d|\d[-/.]\d\d?[-/.]\d")
_OF_USER: Final = re.compile(
    r"</?(?:user[_-]?)?(?:task|query|question|feedback|instructions?|requests?|message|prompt|input|rules?)?>", re.IGNORECASE
)


def frames_in(text: str) -> Iterator[tuple[str, int]]:
    r"""Yield how the paragraphs of a message begin that a program may have framed, each with its place; O(characters).

    What varies from one to the next, as numbers, names of files and quoted words, is left out. People seldom begin two
    paragraphs with one bracket, label or line of data, and programs always do: one such paragraph says nothing, but two in
    messages of one conversation come from a program.

    >>> list(frames_in("OBSERVATION:\nno such file")), list(frames_in("Look here.\n\n[exec 12] done"))
    ([('OBSERVATION:', 0)], [('[exec 0', 12)])
    >>> list(frames_in("Never push to main.\n\n- never push\n\nAlso: use tabs\n\n<task>\nRun it."))
    []
    """
    starts = itertools.chain([0], (found.end() for found in _BLANK.finditer(text)))
    frames = (
        (_frame_of(*text[start : start + 400].partition("\n")[::2]) or _opening_of(text, start), start) for start in starts
    )
    return itertools.islice(((frame, start) for frame, start in frames if frame), _MOST_FRAMES)


def _opening_of(text: str, start: int) -> str:
    """Return how a template opens a paragraph: a heading, or one long line or two that come again word for word."""
    first, _, below = text[start : start + _OPENING_CHARS].partition("\n")
    second = below.partition("\n")[0]
    if not below.strip() or _BULLET.match(first) or _OF_USER.match(re.sub(r"^#+\s*([\w-]+).*", r"<\1>", first)):
        return ""
    if first.startswith("#"):
        return first if second.strip() and not _BULLET.match(second) else ""
    if start or len(first) + len(second) < _LEAST_OPENING or not second.strip() or _BULLET.match(second):
        return ""
    return _VARYING.sub("0", first if len(first) >= _LONG_OPENING else f"{first}\n{second}")


def _frame_of(first: str, below: str) -> str:
    """Return how a paragraph with this first line begins, without what varies; ``""`` if people begin paragraphs so."""
    first = first.strip()
    found = None if _OF_USER.match(first) or _BULLET.match(first) else _FRAME.fullmatch(first)
    if found is None:
        return ""
    if found["label"] is not None:
        under = below.partition("\n")[0] if found["rest"].strip() else below.lstrip()
        if not under.strip() or _BULLET.match(under):
            return ""
    if found["sign"] is not None:
        return _VARYING.sub("0", found["sign"]).rstrip()
    line = _VARYING.sub("0", found["label"] or found["data"])
    return re.sub(r"[^\W\d_]+", "w", line) if _WHEN.search(first) else line


class Voice(enum.Enum):
    """Who speaks in a passage."""

    OWN = enum.auto()
    UNKNOWN = enum.auto()  # perhaps pasted, or what a program returned
    QUOTED = enum.auto()  # in quotation marks, of a mail or a chat, or below words that introduce it
    PROGRAM = enum.auto()  # printed by a program, or code


@attrs.frozen
class Passage:
    """Lines of a message that belong together.

    Args:
        text: The text, without the mark of a list.
        voice: Who speaks.
        lead: The heading, the words before a list, the tag, or the header of a table that it stands under; ``""`` without one.
        is_whole: Whether it is an item of a list or a row of a table, which is not split into sentences.
    """

    text: str
    voice: Voice = Voice.OWN
    lead: str = ""
    is_whole: bool = False


def unnumbered(item: str) -> str:
    """Return an item of a list without its number or box."""
    mark = _BULLET.match(item)
    return item[mark.end() :] if mark else item


def is_printed(line: str) -> bool:
    """Return whether a program wrote a line, as far as the line alone shows.

    >>> is_printed("-rw-r--r-- 1 app app 31213 assets/mail.json"), is_printed("booking=AX-1 guest=Ines nights=3")
    (True, True)
    >>> is_printed("The port is 8080."), is_printed("Rather 15:20."), is_printed("tabs, two wide"), is_printed("端口是8080")
    (False, False, False, False)
    """
    return _weight(line) > 0


def _weight(line: str) -> int:
    """Return 2 for a line that only a program writes, 1 for one with few plain words and many signs, 0 for any other."""
    if _PRINTED.match(line):
        return _CERTAIN
    pieces = line[:400].split()
    if not pieces or _SCRIPT.search(line):
        return 0
    plain = sum(_PLAIN.fullmatch(piece) is not None for piece in pieces)
    signs = len(_SIGNS.findall(line[:400]))
    if _CODE.match(line):
        return 1
    if plain == 0:
        return int(signs >= 4)
    if _CODE_END.fullmatch(line[:400]):
        return int(signs >= 2 and plain <= 2 * signs)
    return int(signs >= 4 and plain * 3 <= len(pieces) and signs >= 2 * plain)


Asks: TypeAlias = Callable[[str], bool]


def passages(text: str, demands: Asks = lambda _: True, concerns_user: Asks = lambda _: True) -> Iterator[Passage]:
    r"""Yield the passages of a user's message, in order; O(characters).

    What stands below a short introduction that ends in a colon or asks, and demands nothing itself, is `Voice.QUOTED`, and so
    are the lines of mails and chats, and those behind ``>``. What stands below a first paragraph that does not speak of the
    user is `Voice.UNKNOWN`, and so is a message that `is_handed_over`. A list, a table or a tag is the user's, unless a
    question about it introduces it.

    Args:
        text: The message.
        demands: Whether a line asks for something; then what it introduces is the user's own.
        concerns_user: Whether a line speaks of what the user wants or does.

    >>> rules = "Please keep to this:\n- tabs\n- never touch prod.db\n\n2026-01-03 10:11:12 ERROR no disk"
    >>> for each in passages(rules):
    ...     print(each.voice.name, repr(each.lead), repr(each.text))
    OWN 'Please keep to this:' 'tabs'
    OWN 'Please keep to this:' 'never touch prod.db'
    PROGRAM '' '2026-01-03 10:11:12 ERROR no disk'
    """
    return _Reader(text, demands, concerns_user).passages()


class _Reader:
    """Reads one message line by line. Holds state: what the lines so far introduce."""

    def __init__(self, text: str, demands: Asks, concerns_user: Asks) -> None:
        self.lines = text.splitlines()[:_MOST_LINES]
        self.demands = demands
        self.concerns_user = concerns_user
        self.lead, self.lead_at = "", 0
        self.lead_used = True
        self.parents: list[tuple[int, str]] = []  # indents and texts of the list items above
        self.quoting = False  # up to the end of the message
        self.pending: list[str] = []  # lines of prose that may continue
        self.end, self.is_table = 0, False
        self.pasted, self.voice = self._introduced(text)
        self.pasted_end = self._closed(self.pasted)
        self.others = lines_of_others(self.lines)

    def _introduced(self, text: str) -> tuple[int, Voice]:
        """Return the line from which on the message may be pasted, and whose words these are then."""
        none = len(self.lines), Voice.OWN
        filled = [at for at, line in enumerate(self.lines) if line.strip()]
        if is_handed_over(text) and not (len(text) > _LONG and self.concerns_user(self.lines[filled[0]])):
            return 0, Voice.UNKNOWN  # a long one that speaks of the user is a task, as SWE-agent ends it with a prompt
        if len(filled) < 2 or len(text) > _LONG:
            return none
        first, second = filled[:2]
        head, below = self.lines[first].rstrip(), self.lines[second]
        is_block = second > first + 1
        if len(head) > _LEAD_CHARS or _BULLET.match(head) or _HEADING.fullmatch(head) or not (is_block or _CHAT.match(below)):
            return none
        if head.endswith((",", "，", "、")) or _QUOTED_LINE.match(head):  # a greeting, or a quotation and the answer to it
            return none
        if not head.endswith(("?", "？")) and any(shape(below) for shape in (_BULLET.match, _TAG.fullmatch, _ROW.fullmatch)):
            return none
        if head.endswith(("?", "？", ":", "：")):
            return none if self.demands(head) else (second, Voice.QUOTED)
        last = self.lines[filled[-1]].rstrip()
        if last.endswith(("?", "？")) and not self.concerns_user(last):
            return first, Voice.UNKNOWN
        return none if self.concerns_user(head) else (second, Voice.UNKNOWN)

    def passages(self) -> Iterator[Passage]:
        at = 0
        while at < len(self.lines):
            end = at
            while end < len(self.lines) and self.lines[end].strip() and not _FENCE.match(self.lines[end]):
                end += 1
            if end > at:
                if self.lead_used and not (_HEADING.fullmatch(self.lead) or _TAG.fullmatch(self.lead)):
                    first = self.lines[at]
                    if not (_BULLET.match(first) and self.parents) and not first[:1].isspace():
                        self.lead, self.parents = "", []
                yield from self._block(at, end)
                at = end
            elif _FENCE.match(self.lines[at]):
                close = next((n for n in range(at + 1, len(self.lines)) if _FENCE.match(self.lines[n])), len(self.lines))
                yield from self._flush()
                yield Passage("\n".join(self.lines[at + 1 : close]), Voice.PROGRAM)
                at = close + 1
            else:
                at += 1
        yield from self._flush()

    def _flush(self) -> Iterator[Passage]:
        """Yield the lead as a passage of its own if nothing stood under it."""
        if not self.lead_used:
            yield Passage(self.lead, self._voice(self.lead_at))
        self.lead, self.lead_used, self.parents = "", True, []

    def _voice(self, at: int) -> Voice:
        if self.quoting or at in self.others:
            return Voice.QUOTED
        return self.voice if self.pasted <= at < self.pasted_end else Voice.OWN

    def _closed(self, start: int) -> int:
        """Return the line behind what is pasted from a line on: its own last ``>`` or closing tag, or the end of the message.

        What is inside can hold a closing tag, too, but none behind the last.
        """
        first = self.lines[start] if start < len(self.lines) else ""
        tag = _TAG.fullmatch(first)
        if tag is not None:
            closing = f"</{tag[2]}>"
            return next(
                (at for at in range(len(self.lines), start, -1) if self.lines[at - 1].strip() == closing), len(self.lines)
            )
        if _QUOTED_LINE.match(first):
            return next(at for at in range(len(self.lines), start, -1) if _QUOTED_LINE.match(self.lines[at - 1]))
        return len(self.lines)

    def _block(self, start: int, end: int) -> Iterator[Passage]:
        """Yield the passages of lines without a blank line between them."""
        lines = self.lines[start:end]
        weights = [_weight(line) for line in lines]
        printed = [at for at, weight in enumerate(weights) if weight]
        if len(printed) > 1 and not all(map(_BULLET.match, lines)) and not _is_table(lines):
            first, behind = printed[0], printed[-1] + 1  # people write before and behind what they paste
            if 5 * len(printed) >= 3 * (behind - first):
                yield from self._block(start, start + first) if first else ()
                yield from self._flush()
                yield Passage("\n".join(lines[first:behind]), Voice.PROGRAM)
                yield from self._block(start + behind, end) if behind < len(lines) else ()
                return
        if _is_mail(lines):
            yield from self._flush()
            self.quoting = True
        self.end, self.is_table, at = end, _is_table(lines), start
        while at < end:
            behind = self._wrapped(at) if _BULLET.match(self.lines[at]) else at + 1
            yield from self._line(at, behind, weights[at - start])
            at = behind
        yield from self._prose(end - 1)

    def _line(self, at: int, behind: int, weight: int) -> Iterator[Passage]:
        """Yield what a line completes; an item of a list ends before the line ``behind``."""
        line = self.lines[at]
        bullet = _BULLET.match(line)
        if bullet is None and weight == _CERTAIN:
            yield from self._prose(at - 1)
            yield Passage(line, Voice.PROGRAM)
        elif bullet is None and self._is_lead(line, at):
            yield from self._prose(at - 1)
            yield from self._take_lead(line, at)
        elif bullet is not None:
            yield from self._prose(at - 1)
            yield from self._item(" ".join([line, *map(str.strip, self.lines[at + 1 : behind])]), bullet, behind)
        elif self.is_table and _ROW.fullmatch(line):
            yield from self._prose(at - 1)
            yield from self._row(line, at)
        elif _QUOTED_LINE.match(line) or _CHAT.match(line):
            yield from self._prose(at - 1)
            yield Passage(_QUOTED_LINE.sub("", line, count=1).strip(), Voice.QUOTED)
        elif any(map(str.isalnum, line)):
            if self.pending and not (_continues(self.pending[-1], line) and (at in self.others) is (at - 1 in self.others)):
                yield from self._prose(at - 1)
            self.pending.append(line.strip())

    def _wrapped(self, at: int) -> int:
        """Return the line behind a list item: lines with an indent that are no items belong to it."""
        at += 1
        while at < self.end and self.lines[at][:1].isspace() and not _BULLET.match(self.lines[at]):
            at += 1
        return at

    def _prose(self, at: int) -> Iterator[Passage]:
        """Yield the lines of prose so far."""
        if self.pending:
            text = " ".join(self.pending)
            self.pending.clear()
            self.lead_used = True
            yield Passage(text, self._voice(at), self.lead)

    def _is_lead(self, line: str, at: int) -> bool:
        """Return whether a line introduces what stands below it."""
        bare = line.strip()
        if len(bare) > _LEAD_CHARS or _CODE.match(line):
            return False
        following = self.lines[at + 1] if at + 1 < len(self.lines) else ""
        if _HEADING.fullmatch(line) or _TAG.fullmatch(line) or (_UNDERLINE.fullmatch(following) and not _ROW.fullmatch(line)):
            return True
        if bare.endswith((":", "：")):
            return at + 1 < len(self.lines)
        return _BULLET.match(following) is not None and not bare.endswith((".", "!", "。", "！")) and not line[:1].isspace()

    def _take_lead(self, line: str, at: int) -> Iterator[Passage]:
        tag = _TAG.fullmatch(line)
        if tag and tag[1]:
            yield from self._flush()
            return
        if not self.lead_used and not _HEADING.fullmatch(self.lead) and not _TAG.fullmatch(self.lead):
            yield Passage(self.lead, self._voice(self.lead_at))
        *before, lead = [line.strip()] if _HEADING.fullmatch(line) else sentences_in(line.strip())
        for sentence in before:
            yield Passage(sentence, self._voice(at))
        self.lead, self.lead_at, self.lead_used, self.parents = lead, at, False, []

    def _item(self, line: str, bullet: re.Match[str], end: int) -> Iterator[Passage]:
        following = self.lines[end] if end < len(self.lines) else ""
        indent = len(bullet[1].expandtabs(4))
        while self.parents and self.parents[-1][0] >= indent:
            self.parents.pop()
        plain = _PLAIN_BULLET.match(line)
        text = (line[plain.end() :] if plain else line).strip()
        lead = self.parents[-1][1] if self.parents else self.lead
        self.parents.append((indent, text))
        inner = _BULLET.match(following)
        self.lead_used = True
        if inner and len(inner[1].expandtabs(4)) > indent and len(text) <= _LEAD_CHARS:
            return  # it stands with what is below it
        yield Passage(text, self._voice(end - 1), lead, is_whole=True)

    def _row(self, line: str, at: int) -> Iterator[Passage]:
        following = self.lines[at + 1] if at + 1 < len(self.lines) else ""
        if _RULED.fullmatch(line):
            return
        if _RULED.fullmatch(following) and "|" in following:
            yield from self._flush()
            self.lead, self.lead_at, self.lead_used = line.strip(), at, False
            return
        self.lead_used = True
        yield Passage(line.strip(), self._voice(at), self.lead, is_whole=True)


def _is_table(lines: list[str]) -> bool:
    return len(lines) > 1 and any(_RULED.fullmatch(line) and "|" in line and "-" in line for line in lines)


def _is_mail(lines: list[str]) -> bool:
    head = lines[:6]
    return sum(_HEADER.match(line) is not None for line in head) >= 2 and any(_ADDRESS.search(line) for line in head)


def _continues(before: str, line: str) -> bool:
    """Return whether a line continues the sentence of the line before it."""
    return len(before) >= _WRAPPED and line[:1].islower() and before[-1:] not in ".!?:;。！？：；"

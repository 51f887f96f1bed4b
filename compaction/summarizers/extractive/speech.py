"""Who speaks in a message, and its passages: the user's own words, what the user quotes, and what a program printed.

Shapes decide, which are the same in every language: size, fences, quotation marks, headers, the lines of logs, stack traces,
listings and code, lines that are laid out alike, and a line that answers an opening one. So do two sets of labels: those of
frameworks, and those with which people head their own lists. A list alone says nothing, because people write lists, too.
Ambiguous text is kept as the user's own words. Below a label, a sign or a tag that is not the user's, it is kept as words of
unknown origin, which are never rules.
"""

from __future__ import annotations

import enum
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

import attrs

from .scoring import concerns_user, demands
from .sentences import sentences_in, word_set

_LEAD_CHARS: Final = 200
_LONG: Final = 1_500  # a longer message is a task with its material
_MOST_LINES: Final = 4_000
_CERTAIN: Final = 2
_WRAPPED: Final = 24  # characters of a line that may continue in the next

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
_HEADER: Final = re.compile(r"\s*([^\W\d_][\w .-]{0,20})\s?[:：]\s*\S")
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
    r"|\s*[{}\[\]()]+[,;]?\s*$|\s*\"[^\"\n]{1,60}\"\s*:\s*[\"\d{\[tfn-]|\s*\[?\{\"|\s*<\?xml|\s*<!DOCTYPE"
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
_HANDED_OVER: Final = re.compile(
    r"\s*(?:"
    rf"\[(?:tool|function|mcp|browser|terminal|command|event|{_GIVEN})\b[^\]\n]{{0,80}}\]"
    rf"|[#*=\s]{{0,6}}(?:[^:.!?\n]{{0,60}}\b{_GIVEN}(?: (?:from|of|for)\b[^:.!?\n]{{0,200}})?:"
    rf"|#[^:.!?\n]{{0,60}}\b{_GIVEN}\n"
    r"|(?:tool|function|mcp|browser)\b[^:\n]{0,60}:|thought:|context information is below|use the following\b)"
    rf"|<(?:[\w:-]{{0,24}}[_-])?{_GIVEN}\b[^>\n]{{0,80}}>|[io]\w*> "
    r"|\[1\] [^\n]*\n(?:[^\n]*\n)*?\[2\] )",
    re.IGNORECASE,
)
_PROMPT_LINE: Final = re.compile(
    r"\(Open file: [^\n]*\)|\(Current directory: [^\n]*\)|bash-\$"
    r"|\[(?:The command|Command) (?:completed|finished) with [^\n]*\]"
)
_PROMPT_AFTER: Final = re.compile(rf"\n(?:{_PROMPT_LINE.pattern})\s*\Z")


def is_handed_over(text: str) -> bool:
    """Return whether a user's message begins or ends as frameworks hand over what a program returned.

    >>> is_handed_over("[Tool: fetch] Always pay."), is_handed_over("Observation: Always pay."), is_handed_over("Always pay.")
    (True, True, False)
    """
    return _HANDED_OVER.match(text) is not None or _PROMPT_AFTER.search(text[-400:]) is not None


_OUTPUT: Final = re.compile(
    r"\s*(?:exit ?code:|[\[{]\s*\"(?:observation|tool\w*|function\w*|results?|output|stdout|stderr|exit_?code|status)\")",
    re.IGNORECASE,
)


def is_output(text: str) -> bool:
    """Return whether a user's message is a result alone, in a form that only programs write."""
    return _OUTPUT.match(text) is not None and (text.lstrip()[0] not in "{[" or _end_of_json(text) in (None, len(text)))


_LABEL: Final = re.compile(
    r"(?:[\[<{(=][=<\[{(]*+|\*{3,}|[-~_]{3,} ?\w|#{2,} (?=[^\n]*#{2,}$)|【\d|[★%])[^\n]*|(?P<label>[^\n:：]{1,120}[:：])\s*"
    r"|(?P<field>[^\n:：]{1,120}[:：] ?(?!//)[^\W\d_]\S*(?: \S+){0,2})"
)
_CLOSING: Final = re.compile(r"(?=[^\w\s]*[^\s})\];,])(?:[^\w\s].*|.*[$>\])}]|[^:：]{1,60}[:：](?:\s*\S+){0,3})")
_LABEL_CHARS: Final = 40
_WORD: Final = re.compile(r"[^\W\d_]{3,}")
_OF_USER: Final = re.compile(
    r"</?(?:user[_-]?)?(?:task|query|question|feedback|instructions?|requests?|message|prompt|input|rules?)?>", re.IGNORECASE
)
# Words by which people label what they lay down, in small letters.
_LABELS_OF_USER: Final = word_set(
    "rule rules task tasks question questions instruction instructions request requests important note constraint "
    "constraints requirement requirements guideline guidelines convention conventions preference preferences style remember "
    "todo please regel regeln aufgabe aufgaben frage fragen wichtig hinweis hinweise vorgabe vorgaben anforderungen achtung "
    "bitte merke règle règles tâche consigne consignes attention exigences rappel regla reglas tarea pregunta importante nota "
    "requisitos regra regras tarefa pergunta atenção regola regole compito domanda attenzione regels taak vraag belangrijk "
    "zasady zadanie ważne uwaga pytanie правила правило задача вопрос важно внимание kurallar kural görev soru önemli "
    "قواعد مهم سؤال नियम महत्वपूर्ण 规则 任务 问题 注意 要求 重要 規則 ルール 質問 タスク お願い 규칙 질문 중요 주의 작업 요청"
)


def _foreign_label(first: str, following: str) -> re.Match[str] | None:
    """Return the label, the sign or the tag of a line if what follows stands under it, and it is not the user's."""
    first = first.strip()
    if not following.strip() or _OF_USER.match(first) or _BULLET.match(first):
        return None
    found = _LABEL.fullmatch(first)
    if found is None or ((found["label"] or found["field"]) and _BULLET.match(following)):
        return None
    words = re.findall(r"[^\W\d_]+", first[:_LABEL_CHARS].lower())
    return found if _LABELS_OF_USER.isdisjoint(words) else None


def _answers(first: str, line: str) -> bool:
    """Return whether a line closes what another one opened: it begins with the same sign, or names the same thing.

    A line in brackets does not close one that goes on behind its bracket: what was handed over may hold such a line.
    """
    if not _CLOSING.fullmatch(line) or _BULLET.match(line):
        return False
    goes_on = first[0] in "[<{(" and first[-1] not in "]>})"
    if not first[0].isalnum() and line[0] == first[0] and not goes_on:
        return True
    return not set(_WORD.findall(first.lower())).isdisjoint(_WORD.findall(line.lower()))


class Voice(enum.Enum):
    """Who speaks in a passage."""

    OWN = enum.auto()
    UNKNOWN = enum.auto()  # perhaps pasted
    LABELLED = enum.auto()  # below a label, a sign or a tag that is not the user's
    QUOTED = enum.auto()  # in quotation marks, of a mail or a chat, or below words that introduce it as somebody else's
    PROGRAM = enum.auto()  # printed by a program, or code


@attrs.frozen
class Passage:
    """Lines of a message that belong together.

    Args:
        text: The text, without the mark of a list.
        voice: Who speaks.
        lead: The heading, the words before a list, the tag, or the header of a table that it stands under; ``""`` without one.
        is_whole: Whether it is an item of a list or a row of a table, which is not split into sentences.
        block: The first line of its block: the lines without a blank one between them.
    """

    text: str
    voice: Voice = Voice.OWN
    lead: str = ""
    is_whole: bool = False
    block: int = 0


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


def passages(text: str) -> Iterator[Passage]:
    r"""Yield the passages of a user's message, in order; O(characters).

    What stands below a short introduction that ends in a colon or asks, and demands nothing itself, is `Voice.QUOTED`, as are
    the lines of mails and chats, and those behind ``>``. What stands below a first paragraph that does not speak of the user is
    `Voice.UNKNOWN`. A block below a foreign label, and a message that `is_handed_over`, is `Voice.LABELLED`. A list, a table or
    a tag is the user's, unless a question about it introduces it.

    Args:
        text: The message.

    >>> rules = "Please keep to this:\n- tabs\n- never touch prod.db\n\n2026-01-03 10:11:12 ERROR no disk"
    >>> for each in passages(rules):
    ...     print(each.voice.name, repr(each.lead), repr(each.text))
    OWN 'Please keep to this:' 'tabs'
    OWN 'Please keep to this:' 'never touch prod.db'
    PROGRAM '' '2026-01-03 10:11:12 ERROR no disk'
    """
    return _Reader(text).passages()


class _Reader:
    """Reads one message line by line. Holds state: what the lines so far introduce."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()[:_MOST_LINES]
        self.lead, self.lead_at = "", 0
        self.lead_used = True
        self.parents: list[tuple[int, str]] = []  # indents and texts of the list items above
        self.mail = range(0)
        self.block_of = {at: start for start, end in _blocks(self.lines) for at in range(start, end)}
        self.pending: list[str] = []  # lines of prose that may continue
        self.end, self.is_table = 0, False
        self.others = lines_of_others(self.lines)
        self.labelled = dict(self._below_labels())
        self.pasted, self.voice = self._introduced(text)
        end = self.labelled.get(self.pasted)
        if end is None and self.pasted < len(self.lines):
            end = _end_of(self.lines, self.pasted)
        self.pasted_end = len(self.lines) if end is None else end

    def _below_labels(self) -> Iterator[tuple[int, int]]:
        """Yield where each block below a label, a sign or a tag that is not the user's starts and ends.

        After `_MOST_BLOCKS` of them the rest of the message is one: so many are a program's.
        """
        behind, count = 0, 0
        blocks = [*_blocks(self.lines), (len(self.lines), 0)]
        for (start, end), (next_start, _) in itertools.pairwise(blocks):
            if start < behind:
                continue
            following = self.lines[min(start + 1 if start + 1 < end else next_start, len(self.lines) - 1)]
            found = _foreign_label(self.lines[start], following) if start + 1 < len(self.lines) else None
            if found is not None:
                count += 1
                behind = end if found["field"] else self._end_below(start)
                behind = behind if count < _MOST_BLOCKS else len(self.lines)
                yield start, behind

    def _end_below(self, start: int) -> int:
        """Return the line behind a block with a label: where its layout shows an end, or a line answers the label."""
        following = next((at for at in range(start + 1, len(self.lines)) if self.lines[at].strip()), None)
        shown = _end_of(self.lines, start)
        if shown is None and following is not None:
            is_fence = _FENCE.match(self.lines[following])
            shown = (_end_of_one if is_fence else _end_of)(self.lines, following)
        if shown is not None:
            return shown
        first = self.lines[start].strip()
        for begin, end in reversed([*_blocks(self.lines)]):
            lines = [line.strip() for line in self.lines[max(begin, start + 1) : end]]
            if len(lines) == 1 and lines[0].endswith((":", "：")):
                continue  # it introduces what stands below it
            if any(_answers(first, line) or _PROMPT_LINE.fullmatch(line) for line in lines):
                return end
        return len(self.lines)

    def _introduced(self, text: str) -> tuple[int, Voice]:
        """Return the line from which on the message may be pasted, and whose words these are then."""
        none = len(self.lines), Voice.OWN
        filled = [at for at, line in enumerate(self.lines) if line.strip()]
        if is_handed_over(text) and not (len(text) > _LONG and concerns_user(self.lines[filled[0]])):
            # a long one that speaks of the user is a task, as SWE-agent ends it with a prompt
            return min(self.labelled, default=0), Voice.LABELLED
        if len(filled) < 2 or len(text) > _LONG:
            return none
        first, second = filled[:2]
        if self.labelled.get(first, len(self.lines)) < len(self.lines):
            return none
        head, below = self.lines[first].rstrip(), self.lines[second]
        is_block = second > first + 1
        if len(head) > _LEAD_CHARS or _BULLET.match(head) or _HEADING.fullmatch(head) or not is_block:
            return none
        if head.endswith((",", "，", "、")) or _QUOTED_LINE.match(head):  # a greeting, or a quotation and the answer to it
            return none
        if not head.endswith(("?", "？")) and any(shape(below) for shape in (_BULLET.match, _TAG.fullmatch, _ROW.fullmatch)):
            return none
        if head.endswith(("?", "？", ":", "：")):
            return none if demands(head) else (second, Voice.QUOTED)
        last = self.lines[filled[-1]].rstrip()
        if last.endswith(("?", "？")) and not concerns_user(last):
            return min(self.labelled, default=first), Voice.UNKNOWN
        return none if concerns_user(head) else (second, Voice.UNKNOWN)

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
                yield self._passage("\n".join(self.lines[at + 1 : close]), at, Voice.PROGRAM)
                at = close + 1
            else:
                at += 1
        yield from self._flush()

    def _flush(self) -> Iterator[Passage]:
        """Yield the lead as a passage of its own if nothing stood under it."""
        if not self.lead_used:
            yield self._passage(self.lead, self.lead_at)
        self.lead, self.lead_used, self.parents = "", True, []

    def _passage(self, text: str, at: int, voice: Voice | None = None, *, lead: str = "", is_whole: bool = False) -> Passage:
        """Return a passage that ends with a line; whose words it is decides the line, unless it is known."""
        return Passage(text, voice or self._voice(at), lead, is_whole, self.block_of[at])

    def _voice(self, at: int) -> Voice:
        if at in self.mail or at in self.others:
            return Voice.QUOTED
        if self.pasted <= at < self.pasted_end:
            return self.voice
        return Voice.LABELLED if any(start <= at < end for start, end in self.labelled.items()) else Voice.OWN

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
                yield self._passage("\n".join(lines[first:behind]), start + first, Voice.PROGRAM)
                yield from self._block(start + behind, end) if behind < len(lines) else ()
                return
        if _is_mail(lines):
            yield from self._flush()
            self.mail = range(start, len(self.lines))
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
            yield self._passage(line, at, Voice.PROGRAM)
        elif bullet is None and self._is_lead(line, at):
            yield from self._prose(at - 1)
            yield from self._take_lead(line, at)
        elif bullet is not None:
            yield from self._prose(at - 1)
            yield from self._item(" ".join([line, *map(str.strip, self.lines[at + 1 : behind])]), bullet, behind)
        elif self.is_table and _ROW.fullmatch(line):
            yield from self._prose(at - 1)
            yield from self._row(line, at)
        elif _QUOTED_LINE.match(line):
            yield from self._prose(at - 1)
            yield self._passage(_QUOTED_LINE.sub("", line, count=1).strip(), at, Voice.QUOTED)
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
            yield self._passage(text, at, lead=self.lead)

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
            yield self._passage(self.lead, self.lead_at)
        *before, lead = [line.strip()] if _HEADING.fullmatch(line) else sentences_in(line.strip())
        for sentence in before:
            yield self._passage(sentence, at)
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
        yield self._passage(text, end - 1, lead=lead, is_whole=True)

    def _row(self, line: str, at: int) -> Iterator[Passage]:
        following = self.lines[at + 1] if at + 1 < len(self.lines) else ""
        if _RULED.fullmatch(line):
            return
        if _RULED.fullmatch(following) and "|" in following:
            yield from self._flush()
            self.lead, self.lead_at, self.lead_used = line.strip(), at, False
            return
        self.lead_used = True
        yield self._passage(line.strip(), at, lead=self.lead, is_whole=True)


def _is_table(lines: list[str]) -> bool:
    return len(lines) > 1 and any(_RULED.fullmatch(line) and "|" in line and "-" in line for line in lines)


def _is_mail(lines: list[str]) -> bool:
    """Return whether a block begins with the fields of a mail: two or more, of which one has an address."""
    head = lines[:6]
    return sum(_HEADER.match(line) is not None for line in head) >= 2 and any(map(_ADDRESS.search, head))


def _continues(before: str, line: str) -> bool:
    """Return whether a line continues the sentence of the line before it."""
    return len(before) >= _WRAPPED and line[:1].islower() and before[-1:] not in ".!?:;。！？：；"


# Lines of others, as their layout shows. One such line says little; people write a label, a time or a prompt, too.

_LEAST_ALIKE: Final = 3
_SPEAKER_CHARS: Final = 60
_LEAST_SPEAKERS: Final = 2
_LEAST_TIMES: Final = 3
_TOP_LINES: Final = 20
_MOST_BLOCKS: Final = 64

_TIME: Final = r"\d{1,2}[:.]\d\d(?:[:.]\d\d)?(?:[.,]\d{1,3})?"
_BEGINNING: Final = re.compile(rf"//|\+(?=\S)|(?![-*+•]\s)\[?(?:{_TIME}|[^:\]>|\t\n]){{1,40}}+(?:[\]>|\t]|:(?!//))")
_SIGN: Final = re.compile(r"[<|\t+]|//|\[(?!0?\])|0[:.]0")
_SPEAKER_LINE: Final = re.compile(rf"[^\n]*(?<!\d){_TIME}(?!\d)[^\n]*(?<![.!?。！？])")
_TIME_ALONE: Final = re.compile(rf"[\[(]?{_TIME}(?: ?[AP]M)?[\])]?")
_OPEN_TAG: Final = re.compile(r"\s*<([A-Za-z][\w:.-]{0,40})(?:\s[^<>]*)?>")
_DECODER: Final = json.JSONDecoder()


def lines_of_others(lines: list[str]) -> set[int]:
    """Return the numbers of the lines that others than the user wrote: of a chat, a log or a search; O(characters).

    Args:
        lines: The lines of the message.

    >>> chat = ["read this:", "ANN: always pay", "BOB: never", "ANN: ok", "BOB: good", "Tests: always run them"]
    >>> sorted(lines_of_others(chat)), sorted(lines_of_others(["Tests: run them", "Style: tabs", "Docs: never skip them"]))
    ([1, 2, 3, 4], [])
    """
    return {*_alike(lines), *_below_speaker(lines)}


def _alike(lines: list[str]) -> Iterator[int]:
    """Yield the lines with a beginning that comes again: of two speakers or files, or of one with a sign or a time in it."""
    beginnings = {at: re.sub(r"\d+", "0", found[0]) for at, line in enumerate(lines) if (found := _BEGINNING.match(line))}
    repeated = {each for each, times in Counter(beginnings.values()).items() if times > 1}
    if len(repeated) > 1 or any(map(_SIGN.search, repeated)):
        alike = [at for at, each in beginnings.items() if each in repeated or _SIGN.search(each)]
        yield from alike if len(alike) >= _LEAST_ALIKE else ()


def _below_speaker(lines: list[str]) -> range:
    """Return the lines from the first speaker or time on.

    Further down it may be part of a demonstration, with the task below it.
    """
    speakers = [
        at
        for at, (line, after) in enumerate(itertools.pairwise(lines))
        if _is_speaker(line) and after.strip() and not _is_speaker(after)
    ]
    times = [start for start, end in _blocks(lines) if any(_TIME_ALONE.fullmatch(line.strip()) for line in lines[start:end])]
    starts = [found[0] for found, least in ((speakers, _LEAST_SPEAKERS), (times, _LEAST_TIMES)) if len(found) >= least]
    return range(min(starts), len(lines)) if starts and min(starts) < _TOP_LINES else range(0)


def _blocks(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Yield where each run of lines without a blank one starts and ends."""
    start = 0
    for at, line in enumerate([*lines, ""]):
        if not line.strip():
            if at > start:
                yield start, at
            start = at + 1


def _end_of(lines: list[str], at: int) -> int | None:
    """Return the line behind what a line begins, as its own layout shows; ``None`` if that shows no end.

    What follows without a blank line belongs to it, and must show its own end.
    """
    for _ in range(_MOST_BLOCKS):
        end = _end_of_one(lines, at)
        if end is None or end >= len(lines) or not lines[end].strip():
            return end
        at = end
    return None


def _end_of_one(lines: list[str], at: int) -> int | None:
    """Return the line behind what a line begins alone.

    Only the line itself tells, and what answers it: what is inside may hold a closing line, too, but none behind the last.
    """
    first = lines[at]
    if _FENCE.match(first):
        return next((n + 1 for n in range(at + 1, len(lines)) if _FENCE.match(lines[n])), None)
    if _QUOTED_LINE.match(first):
        return next(n for n in range(len(lines), at, -1) if _QUOTED_LINE.match(lines[n - 1]))
    if tag := _OPEN_TAG.match(first):
        closing = f"</{tag[1]}>"
        return next((n for n in range(len(lines), at, -1) if lines[n - 1].rstrip().endswith(closing)), None)
    if first.lstrip().startswith(("{", "[")):
        text = "\n".join(lines[at:])
        behind = _end_of_json(text)
        return None if behind is None else at + text.count("\n", 0, behind) + 1
    if _weight(first) == _CERTAIN:
        return next((n for n in range(at, len(lines)) if not lines[n].strip()), len(lines))
    return None


def _end_of_json(text: str) -> int | None:
    """Return where the value ends that a text begins with, up to the end of its line; ``None`` if that shows no end."""
    start = len(text) - len(text.lstrip())
    try:
        end = _DECODER.raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        return None
    rest = text[end:]
    return None if rest.partition("\n")[0].strip() else end + (0 if rest.strip() else len(rest))


def _is_speaker(line: str) -> bool:
    return len(line) <= _SPEAKER_CHARS and _SPEAKER_LINE.fullmatch(line.strip()) is not None

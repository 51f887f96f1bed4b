"""The user's messages, word for word: an excerpt that stands in every summary before what the summarizer wrote.

What people say is a few per cent of an agent's conversation, and the part that nobody can recreate. So a strategy that
replaces messages quotes what the user said in them: the task first, then the newest message and the others. If not everything
fits, pasted lines give way first, then small talk; rules and open tasks stay longest. A list stays a list.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice, takewhile
from typing import Final

import attrs

from ...messages import Message, TextPart
from ..redaction import redact as redact_secrets
from .scoring import Kind, score
from .sentences import chars_within, sentences_in, values_of
from .speech import is_handed_over, is_printed

_HEADING: Final = "The user's messages, word for word:"
_LEFT_OUT: Final = "[...]"
_HANDED_OVER: Final = "[perhaps the output of a program]"
_OPENING: Final = 4  # user messages before the first answer: examples, and then the task
_MOST_OPENING: Final = 32  # messages that are looked at for it
_TASK_SHARE: Final = 0.7
_PASTED_SHARE: Final = 0.1  # of the excerpt, for a few lines of a long block: later parts of a growing summary need the rest
_LEAST: Final = 24  # tokens below which a shortened message says too little
_FRAME: Final = 8
_READ_CHARS: Final = 32  # characters that are read for each token of the excerpt, from the newest message back
_LEAST_READ: Final = 20_000  # characters that are read in any case
_MOST_READ: Final = 2_000  # the most characters that one message counts for
_NOTE: Final = re.compile(r" \(message \d{1,9}\)\Z")
_ENTRY: Final = 4
_SHORT_ANSWER: Final = 100  # characters of an answer that may say nothing without its question
_QUESTION_CHARS: Final = 300
_ASKS: Final = re.compile(r"[?？؟]")
_OPTION: Final = re.compile(r"(?:^|[\s(])(?:[A-Fa-f]|[1-6])[.):]\s+\S")

Count = Callable[[str], int]


def excerpt(
    messages: Iterable[Message],
    tokens: int,
    count: Count,
    *,
    task: object = None,
    earlier: Sequence[str] = (),
    redact: Callable[[str], str] | None = redact_secrets,
    numbers: Mapping[int, int] | None = None,
    before: Mapping[int, Message] | None = None,
) -> str:
    r"""Return what the user said in these messages, word for word, in at most so many tokens; empty if nothing fits.

    A message that a framework seems to have handed over for a program is labelled. Secrets are replaced, since an excerpt is
    stored and stays in every later request.

    If not everything fits, lines that look pasted or printed by a program are left out first, and so are messages that a
    framework handed over. Then the sentences that matter least are left out: rules, preferences, decisions and open tasks stay
    longest. The task comes first, and may have seven tenths, or more if the newest message needs less; the newest message
    follows, what the user said before the task, and then the other messages from the newest back. What was said twice is
    quoted once.

    Cost: O(characters of the user's messages).

    Args:
        messages: Messages of all roles, oldest first.
        tokens: Most tokens of the text, >= 0.
        count: Counts the tokens of a text.
        task: The caller's object of the message with the task; by default the first message, see `task_of`.
        earlier: Entries of an earlier excerpt, see `split_excerpt`, whose messages are not available.
        redact: Removes secrets from each message; ``None`` keeps them.
        numbers: The number of each message, by the identity of the caller's object. It is added where a message has a value,
            so that of two values the later can be told.
        before: The message before each short one of the user, by the identity of the caller's object of the latter, see
            `is_short_answer`. A question in it is quoted behind the answer, which says little without it.

    >>> from compaction import MessageIndex
    >>> index = MessageIndex([{"role": "user", "content": "Rules:\n- no tabs\n- no mocks"}], counter="chars/4")
    >>> print(excerpt(index.included_groups[0].messages, 100, len))
    The user's messages, word for word:
    - Rules:
      - no tabs
      - no mocks
    """
    spoken = [(message.raw, text) for message in messages if (text := message.said)]
    said = [*earlier, *[text for _, text in spoken]]
    room = tokens - count(_HEADING) - _FRAME
    if not said or room <= 0:
        return ""
    first = next((at for at, (raw, _) in enumerate(spoken) if task is not None and raw is task), -len(earlier)) + len(earlier)
    order = dict.fromkeys([first, len(said) - 1, *range(first), *reversed(range(len(said)))])
    asked = [""] * len(earlier) + [_question((before or {}).get(id(raw)), text) for raw, text in spoken]
    times = Counter(asked)
    entries: dict[tuple[str, str], _Entry] = {}
    unread = max(_LEAST_READ, _READ_CHARS * tokens)
    for place in order:
        question = asked[place] if times[asked[place]] == 1 else ""  # one that is asked again and again says nothing
        if (said[place], question) in entries:
            continue
        label = f"{_HANDED_OVER} " if place != first and _lacks_label(said[place]) else ""
        number = (numbers or {}).get(id(spoken[place - len(earlier)][0])) if place >= len(earlier) else None
        text = redact(said[place]) if redact else said[place]
        question = redact(question) if redact else question
        entries[said[place], question] = _Entry(place, text, _lines(text), label, number, question)
        unread -= min(len(text), _MOST_READ)
        if unread < 0:
            break
    chosen = _Room(room, count).chosen([*entries.values()], tokens)
    if not chosen:
        return ""
    return "\n".join([_HEADING, *[_as_entry(chosen[place]) for place in sorted(chosen)]])


@attrs.frozen
class _Line:
    """A line, or a sentence of a long one.

    Args:
        text: Its text.
        is_own: Whether the user probably wrote it.
        number: The line of the text that it is, or is a part of.
    """

    text: str
    is_own: bool
    number: int


@attrs.frozen
class _Entry:
    """A message to be quoted: its place, text and lines, the label before it, its number if that is named, what it answers."""

    place: int
    text: str
    lines: Sequence[_Line]
    label: str
    number: int | None
    question: str

    def quoted(self, text: str, *, answers: bool = False) -> str:
        """Return the text as it is quoted: behind the label, and before the message's number if the text contains a value.

        Args:
            text: The text.
            answers: Whether the question that it answers follows.
        """
        question = f' (the assistant had asked: "{self.question}")' if answers and self.question else ""
        note = f" (message {self.number})" if self.number and values_of(text[:_LONG_LINE]) else ""
        return text and f"{self.label}{text}{question}{note}"

    def own_words(self) -> str:
        """Return the lines that the user probably wrote; what is between them is marked as left out."""
        if self.label:
            return ""
        if all(line.is_own for line in self.lines):
            return self.text
        return _joined(self.lines, {place for place, line in enumerate(self.lines) if line.is_own and line.text.strip()})

    def weights(self) -> list[float]:
        """Return the weight of each line: 0 if the user probably did not write it."""
        is_own = [not self.label and line.is_own and bool(line.text.strip()) for line in self.lines]
        return [score(line.text).kind if own else 0.0 for line, own in zip(self.lines, is_own, strict=True)]


@attrs.define
class _Room:
    """Quotes messages until the room is full. Holds state: the tokens that are left, and what is quoted, by place."""

    _left: int
    _count: Count
    _quoted: dict[int, str] = attrs.field(factory=dict[int, str], init=False)

    def chosen(self, entries: Sequence[_Entry], tokens: int) -> dict[int, str]:
        """Return what is quoted of each message; the first is the task, the second the newest."""
        whole = {entry.place: entry.quoted(entry.text, answers=True) for entry in entries}
        if sum(map(self._size, whole.values())) <= self._left:
            return whole
        task, *others = entries
        newest = min(self._size(others[0].text) + _ENTRY, int((1 - _TASK_SHARE) * tokens)) if others else 0
        most = max(self._left - newest, min(self._left, int(_TASK_SHARE * tokens)))
        own = {entry.place: entry.own_words() for entry in entries}
        self._put(task, own[task.place], most)
        for entry in others[:1]:
            self._put(entry, own[entry.place], tokens)
        if sum(self._size(own[entry.place]) for entry in others[1:]) > self._left:
            self._put_weighty(others[1:])
        known = {own[entry.place] for entry in entries[:2]}
        for entry in others[1:]:
            if own[entry.place] not in known:  # the same words beside something else that was pasted
                self._put(entry, own[entry.place])
                known.update([own[entry.place]] if entry.place in self._quoted else [])
        known.discard("")
        for entry in entries:
            if entry.place not in self._quoted and own[entry.place] not in known:
                self._put(entry, own[entry.place], tokens)
        self._put_questions(entries)
        self._put_pasted(entries, tokens)
        for entry in entries:
            is_repeated = own[entry.place] in known
            if entry.place not in self._quoted:
                self._put(entry, entry.text, None if is_repeated else most if entry is task else tokens)
        return self._quoted

    def _put_pasted(self, entries: Sequence[_Entry], tokens: int) -> None:
        """Quote the other lines of what is quoted: short blocks whole, and of the long ones a few lines in all."""
        more = int(_PASTED_SHARE * tokens)
        for entry in sorted(entries, key=lambda each: self._size(each.text)):
            if entry.place in self._quoted:
                self._put(entry, entry.text)
                before = self._left
                self._put(entry, entry.text, self._size(self._quoted[entry.place]) + more)
                more -= before - self._left

    def _put_weighty(self, entries: Sequence[_Entry]) -> None:
        """Quote the lines that matter most: rules and what weighs as much in all messages, and then facts."""
        weights = {entry.place: entry.weights() for entry in entries}
        for least in (Kind.TASK, Kind.FACT):
            for entry in entries:
                some = {at for at, weight in enumerate(weights[entry.place]) if weight >= least}
                self._put(entry, _joined(entry.lines, some))

    def _put_questions(self, entries: Sequence[_Entry]) -> None:
        """Quote the questions behind the answers that are quoted whole."""
        for entry in entries:
            if self._quoted.get(entry.place) == entry.quoted(entry.text):
                self._put(entry, entry.text, answers=True)

    def _size(self, text: str) -> int:
        return self._count(text) + _ENTRY if text else 0

    def _put(self, entry: _Entry, text: str, most: int | None = None, *, answers: bool = False) -> None:
        """Quote a message with this text instead of what is quoted of it; with ``most``, shorten it to so many tokens."""
        if self._quoted.get(entry.place) == entry.quoted(entry.text, answers=True):
            return
        before = self._size(self._quoted.get(entry.place, ""))
        if most is not None:
            around = self._size(entry.quoted(text)) - self._count(text)
            text = shortened(text, min(most, self._left + before) - around, self._count)
        text = entry.quoted(text, answers=answers)
        if text and self._size(text) - before <= self._left:
            self._left -= self._size(text) - before
            self._quoted[entry.place] = text


def split_excerpt(text: str) -> tuple[tuple[str, ...], str]:
    r"""Return the entries of the excerpts in a summary, and the rest of the summary.

    >>> split_excerpt("The user's messages, word for word:\n- Fix X.\n  Not Y.\n\n## Done\n- X")
    (('Fix X.\nNot Y.',), '## Done\n- X')
    """
    entries: list[list[str]] = []
    rest: list[str] = []
    inside = False
    for line in text.split("\n"):
        if line == _HEADING:
            inside = True
        elif inside and line.startswith("- "):
            entries.append([line[2:]])
        elif inside and entries and (line.startswith("  ") or not line):
            entries[-1].append(line[2:])
        else:
            inside = False
            rest.append(line)
    return tuple([_NOTE.sub("", "\n".join(lines).rstrip()) for lines in entries]), "\n".join(rest).strip()


def _lacks_label(text: str) -> bool:
    return is_handed_over(text) and not text.startswith(_HANDED_OVER)


def is_short_answer(message: Message) -> bool:
    """Return whether the user says so little in a message that it may be an answer which needs its question."""
    said = message.said
    return 0 < len(said) <= _SHORT_ANSWER and not _ASKS.search(said)


def _question(before: Message | None, answer: str) -> str:
    """Return the question, or the choice, with which the assistant's message before a short answer ends; empty if none."""
    if before is None or before.role != "assistant" or len(answer) > _SHORT_ANSWER:
        return ""
    text = " ".join(" ".join(part.text for part in before.parts if isinstance(part, TextPart)).split())
    text = text.replace('"', "'")  # what it quotes from a program must not end the quotation
    found = ""
    for sentence in reversed([*sentences_in(text[-4 * _QUESTION_CHARS :])]):
        if len(sentence) + len(found) > _QUESTION_CHARS:
            break
        found = f"{sentence} {found}".strip()
        if _ASKS.search(sentence) or len(_OPTION.findall(found)) > 1:
            return found
    return ""


def _as_entry(text: str) -> str:
    first, *others = text.split("\n")
    return "\n".join([f"- {first}", *[f"  {line}" if line.strip() else "" for line in others]])


def task_of(messages: Iterable[Message]) -> object:
    """Return the caller's object of the message with the task: the last user message before the first answer.

    The messages before it are examples or background. Of more than four, which is no opening but a conversation without
    answers, the first is the task. ``None`` if the user says nothing. O(messages before the first answer).
    """
    said = [message.raw for message in islice(takewhile(_is_opening, messages), _MOST_OPENING) if message.said]
    return None if not said else said[-1] if len(said) <= _OPENING else said[0]


def _is_opening(message: Message) -> bool:
    return message.role in ("system", "developer", "user")


# ------------------------------------------------------------------------ of a long message, the user's own lines


def shortened(text: str, tokens: int, count: Count) -> str:
    r"""Return a text in at most so many tokens: whole if it fits, or else its own lines before those that look pasted.

    Lines that are left out are marked with ``[...]``. Of too many own lines the first and the last are kept.

    >>> shortened("Fix this:\n```\n" + "0xff " * 99 + "\n```\nNever touch Y.", 30, len)
    'Fix this:\n[...]\nNever touch Y.'
    """
    if count(text) <= tokens:
        return text
    if tokens < _LEAST:
        return ""
    lines = _lines(text)
    sizes = [count(line.text) + 1 for line in lines]
    gap = count(_LEFT_OUT) + 1
    chosen = {-1, len(lines)}
    room = tokens + 1 - gap
    for place in _by_importance(lines):
        gaps = (place - 1 not in chosen) + (place + 1 not in chosen) - 1
        if sizes[place] + gaps * gap <= room:
            chosen.add(place)
            room -= sizes[place] + gaps * gap
    chosen -= {-1, len(lines)}
    return _joined(lines, chosen) if chosen else _both_ends(text, room, count)


def _both_ends(text: str, tokens: int, count: Count) -> str:
    """Return the beginning and the end of a text whose every line is too long."""
    chars = chars_within(len(text), tokens, lambda chars: count(text[:chars]), least=_LEAST)
    head, tail = text[: 2 * chars // 3], text[len(text) - chars // 3 :]
    head = head[: head.rfind(" ")] if " " in head else head
    tail = tail[tail.find(" ") :] if " " in tail else tail
    return f"{head.rstrip()} {_LEFT_OUT} {tail.lstrip()}"


def _by_importance(lines: Sequence[_Line]) -> list[int]:
    """Return the places of the lines: the user's own, those that matter most first, and then the others.

    The first line says what the message is about. Rules, preferences, decisions and open tasks follow, and then the other
    lines; both from the ends inwards, since people write before and behind what they paste.
    """
    own = [place for place, line in enumerate(lines) if line.is_own and line.text.strip()]
    others = [place for place, line in enumerate(lines) if not line.is_own and not _FENCE.match(line.text)]
    heavy = [place for place in own if score(lines[place].text).kind >= Kind.TASK]
    return list(dict.fromkeys([*own[:1], *_from_both_ends(heavy), *_from_both_ends(own), *others]))


def _from_both_ends(places: Sequence[int]) -> list[int]:
    """Return the places with those near an end first."""
    last = len(places) - 1
    return [places[n] for n in sorted(range(len(places)), key=lambda n: (min(n, last - n), n))]


def _joined(lines: Sequence[_Line], chosen: set[int]) -> str:
    if not chosen:
        return ""
    parts: list[str] = []
    before: _Line | None = None
    for place, line in enumerate(lines):
        text = line.text if place in chosen else _LEFT_OUT
        if text == _LEFT_OUT and (not line.text.strip() or (parts and parts[-1] == _LEFT_OUT)):
            continue
        parts += [" " if before and before.number == line.number else "\n", text]
        before = line
    return "".join(parts[1:])


_FENCE: Final = re.compile(r"^\s*(?:```|~~~)")
_LONG_LINE: Final = 300
_SENTENCE_END: Final = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？।؟])\s*")


def _lines(text: str) -> list[_Line]:
    """Return the lines of a text, long ones by sentences, each with whether the user probably wrote it."""
    found: list[_Line] = []
    fenced = False
    for number, line in enumerate(text.split("\n")):
        if _FENCE.match(line):
            fenced = not fenced
            found.append(_Line(line, False, number))
        elif fenced or len(line) <= _LONG_LINE:
            found.append(_Line(line, not fenced and not is_printed(line), number))
        else:
            found += [_Line(each, not is_printed(each), number) for each in _SENTENCE_END.split(line)]
    return found

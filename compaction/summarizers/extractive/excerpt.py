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
from .kinds import Kind, judge
from .own_lines import LONG_LINE, Count, WrittenLine, joined, lines_by_writer, shortened
from .sentences import sentences_in
from .statements import speaker_of
from .subjects import values_of
from .voices import is_handed_over

_HEADING: Final = "The user's messages, word for word:"
_HANDED_OVER: Final = "[perhaps the output of a program]"
_OPENING: Final = 4  # user messages before the first answer: examples, and then the task
_MOST_OPENING: Final = 32  # messages that are looked at for it
_TASK_SHARE: Final = 0.7  # of the excerpt, more if the newest message needs less
_PASTED_SHARE: Final = 0.1  # of the excerpt, for a few lines of a long block: later parts of a growing summary need the rest
_FRAME: Final = 8  # tokens that are left free for what stands around the excerpt
_READ_CHARS: Final = 32  # characters that are read for each token of the excerpt, from the newest message back
_LEAST_READ: Final = 20_000  # characters that are read in any case
_MOST_READ: Final = 2_000  # the most characters that one message counts for
_NOTE: Final = re.compile(r" \(message \d{1,9}\)\Z")
_ENTRY: Final = 4  # tokens of the mark and the indents of an entry
_SHORT_ANSWER: Final = 100  # characters of an answer that may say nothing without its question
_QUESTION_CHARS: Final = 300
_ASKS: Final = re.compile(r"[?？؟]")
_OPTION: Final = re.compile(r"(?:^|[\s(])(?:[A-Fa-f]|[1-6])[.):]\s+\S")  # as in "A) delete it; B) keep it"


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
    numbers, before, redact = numbers or {}, before or {}, redact or str
    said = [_Words(text) for text in earlier]
    for message in messages:
        text, attached, at = message.said, message.attached, id(message.raw)
        if text or attached:
            question = _question(before.get(at), text)
            said.append(
                _Words(text or attached, message.raw, speaker_of(message), numbers.get(at), question, text and attached)
            )
    room = tokens - count(_HEADING) - _FRAME
    if not said or room <= 0:
        return ""
    first = next((at for at, each in enumerate(said) if task is not None and each.raw is task), 0)
    times = Counter(each.question for each in said)
    entries: dict[tuple[str, str, str], _Entry] = {}
    unread = max(_LEAST_READ, _READ_CHARS * tokens)
    for place in dict.fromkeys([first, len(said) - 1, *range(first), *reversed(range(len(said)))]):
        words = said[place]
        question = words.question if times[words.question] == 1 else ""  # one that is asked again and again says nothing
        key = words.text + words.attached, words.speaker, question
        if key in entries:
            continue
        text = redact(words.text)
        label = f"{_HANDED_OVER} " if place != first and _lacks_label(words.text) else ""
        lines = lines_by_writer(text)
        entries[key] = _Entry(place, text, lines, label, words.speaker, words.number, redact(question), redact(words.attached))
        unread -= min(len(text), _MOST_READ)
        if unread < 0:
            break
    chosen = _Room(room, count).chosen([*entries.values()], tokens)
    if not chosen:
        return ""
    return "\n".join([_HEADING, *[_as_entry(chosen[place]) for place in sorted(chosen)]])


@attrs.frozen
class _Words:
    """The words of the user in a message; nothing more is known of a message of an earlier excerpt."""

    text: str
    raw: object = None  # the caller's object
    speaker: str = ""  # the name of the user, if there are several
    number: int | None = None  # the number of the message, if the excerpt may name it
    question: str = ""  # what it answers
    attached: str = ""  # what was sent beside the words


@attrs.frozen
class _Entry:
    """A message that may be quoted."""

    place: int  # in the order said
    text: str
    lines: Sequence[WrittenLine]
    label: str  # what stands before it if a framework handed it over
    speaker: str
    number: int | None
    question: str
    attached: str

    def quoted(self, text: str, *, answers: bool = False) -> str:
        """Return the text as it is quoted: behind its label and speaker, before the message's number if it contains a value.

        Args:
            text: The text.
            answers: Whether the question that it answers follows.
        """
        question = f' (the assistant had asked: "{self.question}")' if answers and self.question else ""
        note = f" (message {self.number})" if self.number and values_of(text[:LONG_LINE]) else ""
        speaker = f"{self.speaker}: " if self.speaker else ""
        attached = f" {self.attached}" if self.attached else ""
        return text and f"{self.label}{speaker}{text}{attached}{question}{note}"

    def own_words(self) -> str:
        """Return the lines that the user probably wrote; what is between them is marked as left out."""
        if self.label:
            return ""
        if all(line.is_own for line in self.lines):
            return self.text
        return joined(self.lines, {place for place, line in enumerate(self.lines) if line.is_own and line.text.strip()})

    def weights(self) -> list[float]:
        """Return the weight of each line: 0 if the user probably did not write it."""
        is_own = [not self.label and line.is_own and bool(line.text.strip()) for line in self.lines]
        return [judge(line.text).kind if own else 0.0 for line, own in zip(self.lines, is_own, strict=True)]


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
        most_of_task = max(self._left - newest, min(self._left, int(_TASK_SHARE * tokens)))
        own = {entry.place: entry.own_words() for entry in entries}
        # 1. the user's own words: of the task and the newest message, then the weightiest lines, then all that fits
        self._put(task, own[task.place], most_of_task)
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
        # 2. what belongs to them: questions, and what was pasted beside them
        self._put_questions(entries)
        self._put_pasted(entries, tokens)
        # 3. messages without words of the user, or with words that another one has
        for entry in entries:
            if entry.place not in self._quoted:
                most = most_of_task if entry is task else tokens
                self._put(entry, entry.text, None if own[entry.place] in known else most)
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
        for least in (Kind.TASK, Kind.PLAIN):
            for entry in entries:
                some = {at for at, weight in enumerate(weights[entry.place]) if weight >= least}
                self._put(entry, joined(entry.lines, some))

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

"""The excerpt: what the user said, word for word. It stands in every summary before what the summarizer wrote.

What people say is a few per cent of an agent's conversation, and the part that nobody can recreate. So a strategy that replaces
messages quotes what the user said in them. `excerpt_text` shows how. If not everything fits, `_Room.filled` takes these steps,
each as far as the room goes; a later one quotes more of a message that an earlier one shortened:

1. the task, and then the newest message: the user's words, shortened if need be;
2. of the other messages, the user's words: all, or else the lines that matter most, and of each message at least a part;
3. what belongs to them: the questions that short answers need, prose that may be pasted, and then what was pasted;
4. messages in which all is pasted or a program's, and then those that repeat the words of another one.

`own_lines` tells the user's lines from pasted ones, and shortens a message to them; `questions` finds what an answer answers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import islice, takewhile
from typing import Final

import attrs

from ...index import asks_user
from ...messages import Message, TextPart
from ..redaction import redact as redact_secrets
from .actions import argument_values
from .excerpt_text import EXCERPT_HEADING, quotation, read_quotation, write_excerpt
from .kinds import Kind, Statement, judge
from .lines import SPEAKER, are_named
from .own_lines import LONG_LINE, LONG_MESSAGE, Count, WrittenLine, joined, lines_by_writer, shortened
from .questions import QUESTION_CHARS, in_chars, question_of
from .sentences import sentences_in
from .statements import speaker_of
from .subjects import has_value, is_eastern
from .voices import is_handed_over

_HANDED_OVER: Final = "[perhaps the output of a program]"

_READ_CHARS: Final = 32  # characters that are read for each token of the excerpt, from the newest message back
_LEAST_READ: Final = 20_000  # characters that are read in any case
_MOST_READ: Final = 2_000  # the most characters that one message counts for

_TASK_SHARE: Final = 0.7  # of the excerpt, more if the newest message needs less
_PASTED_SHARE: Final = 0.1  # of the excerpt, for a few lines of a long block: later parts of a growing summary need the rest
_FRAME: Final = 8  # tokens that are left free for what stands around the excerpt
_ENTRY: Final = 4  # tokens of the mark and the indents of an entry
_LEAST_QUESTION: Final = 60  # characters below which a shortened question says too little
_LEAST_ROOM: Final = 12  # tokens below which no question and no sentence fits
_MOST_SHARING: Final = 3  # messages that have a word by which two of them are about one thing
_FEW: Final = 25  # tokens of a message that is quoted before longer ones which weigh the same
_LEAST_REPEATED: Final = 24  # characters of a line that is quoted once, in whatever long messages it stands


def excerpt(
    messages: Iterable[Message],
    tokens: int,
    count: Count,
    *,
    task: object = None,
    earlier: Sequence[str] = (),
    earlier_at: int = 0,
    redact: Callable[[str], str] | None = redact_secrets,
    numbers: Mapping[int, int] | None = None,
    before: Mapping[int, Message] | None = None,
) -> str:
    r"""Return what the user said in these messages, word for word, in at most so many tokens; empty if nothing fits.

    What a tool that asks the user returns, such as ``ask_user``, counts as a message of the user. The name that the host gives
    a speaker stands before the words, and what was attached behind them. A message that a framework seems to have handed over
    for a program is labelled. What was said twice is quoted once. If not everything fits, the top of this file says what stays.

    Cost: O(characters of the user's messages).

    Args:
        messages: Messages of all roles, oldest first.
        tokens: Most tokens of the text, >= 0.
        count: Counts the tokens of a text.
        task: The caller's object of the message with the task, see `task_of`; by default the first message. If it is not among
            the messages, an earlier entry is the task, or else none.
        earlier: Entries of an earlier excerpt, see `split_excerpt`, whose messages are not available.
        earlier_at: The number of messages before these entries.
        redact: Removes secrets from each message, since an excerpt stays in every later request; ``None`` keeps them.
        numbers: The number of each message, by the identity of the caller's object. It is added where a message has a value,
            so that of two values the later can be told.
        before: The message before each short one of the user (see `is_short_answer`), by ``id(message.raw)`` of the short one.
            What it asks, with its list, is quoted behind the answer, which says little without it.

    >>> from compaction import MessageIndex
    >>> index = MessageIndex([{"role": "user", "content": "Rules:\n- no tabs\n- no mocks"}], counter="chars/4")
    >>> print(excerpt(index.included_groups[0].messages, 100, len))
    The user's messages, word for word:
    - Rules:
      - no tabs
      - no mocks
    """
    room = tokens - count(EXCERPT_HEADING) - _FRAME
    said, task_at, numbers, before = list[_Entry](), 0 if task is None or earlier else None, numbers or {}, before or {}
    inherited = [_Entry(words, question=question) for words, question in map(read_quotation, earlier)]
    for at, message, asked in _spoken(messages, before):
        if at >= earlier_at:
            said += inherited
            inherited = []
        task_at = len(said) if task is not None and message.raw is task else task_at
        text, attached = (message.said, message.attached) if message.said else (message.attached, "")
        number = numbers.get(id(message.raw))
        question = question_of(asked, message)
        said.append(_Entry(text, speaker_of(message), number, question.text, attached, is_answer=question.is_sure))
    said += inherited
    if not said or room <= 0:
        return ""
    entries = _read(said, task_at, max(_LEAST_READ, _READ_CHARS * tokens), redact or str)
    chosen = _Room(tokens, room, count).filled(entries, has_task=task_at is not None)
    return write_excerpt([chosen[place] for place in sorted(chosen)]) if chosen else ""


def _spoken(messages: Iterable[Message], before: Mapping[int, Message]) -> Iterator[tuple[int, Message, Message | None]]:
    """Yield each message in which the user says something, with its number, from 0, and the message that it may answer.

    The result of a tool that asks the user counts as one; its name and its arguments decide that, no text in a result.
    """
    asking = dict[str, Message]()  # what such a call asks, by its id
    for at, message in enumerate(messages):
        for call in message.tool_calls():
            if asks_user(call.name):
                question = TextPart("\n".join(argument_values(call.arguments)))
                asking[call.id] = attrs.evolve(message, role="assistant", parts=(question,))
        for result in message.tool_results() if asking else ():
            if result.call_id in asking and (answer := result.text.strip()):
                yield at, attrs.evolve(message, role="user", parts=(TextPart(answer),)), asking[result.call_id]
        if message.said or message.attached:
            yield at, message, before.get(id(message.raw))


@attrs.frozen
class _Entry:
    """The words of the user in one message, which may be quoted. Of an earlier excerpt, only words and questions are known."""

    text: str
    speaker: str = ""  # the name that the host gives the user
    number: int | None = None  # the number of the message, if the excerpt may name it
    question: str = ""  # what it answers
    attached: str = ""  # what was sent beside the words
    is_answer: bool = True  # whether it surely answers the question, see `Question`
    place: int = 0  # in the order said
    label: str = ""  # what stands before it if a framework handed it over
    lines: Sequence[WrittenLine] = ()

    def quoted(self, text: str, question: str) -> str:
        """Return the whole text, or lines of it, as it is quoted, with so much of the question that it answers."""
        speaker = f"{self.speaker}: " if self.speaker else ""
        attached = f" {self.attached}" if self.attached else ""
        number = self.number if self.number and has_value(text[:LONG_LINE]) else None
        return text and quotation(f"{self.label}{speaker}{text}{attached}", question, number)

    @cached_property
    def own(self) -> frozenset[int]:
        """The places of the lines that the user probably wrote, without those inside long prose."""
        return frozenset(at for at in self.own_prose if not self.lines[at].is_prose)

    @cached_property
    def own_prose(self) -> frozenset[int]:
        """These places, and those of the user's lines inside long prose."""
        return frozenset(at for at in self._filled if self.lines[at].is_own and not self.label)

    @cached_property
    def own_words(self) -> str:
        """The lines that the user probably wrote, without those inside long prose."""
        return self.words(self.own)

    @cached_property
    def _filled(self) -> list[int]:
        return [at for at, line in enumerate(self.lines) if line.text.strip()]

    def words(self, places: Collection[int]) -> str:
        """Return the lines at these places; what is between them is marked as left out."""
        return self.text if len(places) == len(self._filled) else joined(self.lines, places)

    def without(self, known: set[str]) -> _Entry:
        """Return the entry without the user's lines of a long message that are known; all its lines become known."""
        lines, said, is_long = [*self.lines], set[int](), len(self.text) > LONG_MESSAGE
        for at, line in enumerate(lines):
            if is_long and line.is_own and len(line.text) >= _LEAST_REPEATED and line.text in known:
                lines[at] = attrs.evolve(line, is_own=False)
            else:
                said.add(at)
            known.add(line.text)
        return attrs.evolve(self, text=joined(lines, said), lines=lines) if len(said) < len(lines) else self


def _read(said: Sequence[_Entry], task_at: int | None, chars: int, redact: Callable[[str], str]) -> list[_Entry]:
    """Return the entries in the order in which they are chosen, each once, as far as so many characters go.

    The first is the task, if there is one, and the next the newest. What was said before the task follows, and then the others
    from the newest back. Each is redacted, labelled and split into lines.
    """
    times = Counter(each.question for each in said)
    found: dict[tuple[str, str, str], _Entry] = {}
    first = [] if task_at is None else [task_at, len(said) - 1, *range(task_at)]
    for place in dict.fromkeys([*first, *reversed(range(len(said)))]):
        each = said[place]
        question = each.question if times[each.question] == 1 else ""  # one that is asked again and again says nothing
        key = each.text + each.attached, each.speaker, question
        if key in found:
            continue
        is_labelled = place != task_at and (each.text.startswith(_HANDED_OVER) or is_handed_over(each.text))
        text = redact(each.text.removeprefix(_HANDED_OVER).lstrip() if is_labelled else each.text)
        label, attached = f"{_HANDED_OVER} " if is_labelled else "", redact(each.attached)
        question, lines = redact(question), lines_by_writer(text)
        found[key] = attrs.evolve(each, place=place, text=text, label=label, attached=attached, question=question, lines=lines)
        chars -= min(len(text), _MOST_READ)
        if chars < 0:
            break
    return [*found.values()]


@attrs.define
class _Room:
    """Quotes messages until the room is full. Holds state: the tokens that are left, and what is quoted, by place.

    A message may be quoted again, at greater length. `_put` then replaces its entry and gives back the tokens of the old one.
    """

    _tokens: int  # of the whole excerpt
    _left: int
    _count: Count
    _judged: Callable[[str], Statement] = attrs.field(factory=lambda: cache(judge), init=False)  # for the time of one excerpt
    _quoted: dict[int, str] = attrs.field(factory=dict[int, str], init=False)
    _asked: dict[int, str] = attrs.field(factory=dict[int, str], init=False)  # the questions in it

    def filled(self, entries: Sequence[_Entry], *, has_task: bool) -> dict[int, str]:
        """Return what is quoted of each message, by its place; the first is the task, if there is one, the next the newest.

        The numbers are those at the top of this file.
        """
        whole = {entry.place: entry.quoted(entry.text, in_chars(entry.question, QUESTION_CHARS)) for entry in entries}
        if sum(map(self._size, whole.values())) <= self._left:
            return whole
        once, repeated = _each_once(entries)
        tasks = once[:has_task]
        newest, others = once[len(tasks) :][:1], once[len(tasks) + 1 :]
        # 1: the task has its share, or more, if the newest message leaves more
        of_newest = min(self._size(newest[0].text) + _ENTRY if newest else 0, int((1 - _TASK_SHARE) * self._tokens))
        most_of_task = max(self._left - of_newest, min(self._left, int(_TASK_SHARE * self._tokens)))
        for task in tasks:
            self._shorten(task, task.words(task.own_prose), most_of_task)
        for entry in newest:
            self._shorten(entry, entry.own_words)
        # 2
        if sum(self._size(entry.own_words) for entry in others) > self._left:
            self._put_weightiest(tasks, newest, others)
        for entry in others:
            self._put(entry, entry.own_words)
        for entry in self._without_words(others):
            self._shorten(entry, entry.own_words)
        # 3
        self._put_questions(once)
        self._put_prose([*newest, *others])
        self._put_pasted(once)
        # 4
        for entry in self._without_words(once):
            self._shorten(entry, entry.text, most_of_task if entry in tasks else None)
        for entry in repeated:
            self._put(entry, entry.text)
        return self._quoted

    def _without_words(self, entries: Iterable[_Entry]) -> Iterator[_Entry]:
        """Yield the entries of which nothing is quoted."""
        return (entry for entry in entries if entry.place not in self._quoted)

    def _put_weightiest(self, tasks: Sequence[_Entry], newest: Sequence[_Entry], others: Sequence[_Entry]) -> None:
        """Quote the user's lines, those that matter most first, and the questions that short answers need.

        What was pasted into the task follows the rules, unless it is long: the task is about it. A short message, such as
        "make her age ten", comes before longer plain ones: many have room in place of one of these.
        """
        weights = self._weights(others)

        def put_lines(least: Kind, entries: Sequence[_Entry]) -> None:
            for entry in entries:
                self._put(entry, entry.words({at for at in entry.own if weights[entry.place, at] >= least}))

        put_lines(Kind.TASK, others)
        for task in tasks:
            if len(task.text) <= LONG_MESSAGE:
                self._put(task, task.text)
        put_lines(Kind.VALUE, others)
        self._put_questions([entry for entry in (*tasks, *newest, *others) if entry.is_answer])
        short_first = sorted(others, key=lambda entry: not self._is_short(entry))
        for least in (Kind.PLAIN, Kind.SMALL_TALK, Kind.REMARK):
            put_lines(least, short_first)

    def _weights(self, entries: Sequence[_Entry]) -> dict[tuple[int, int], float]:
        """Return how much each of the user's lines matters, by the places of its message and its own.

        What may withdraw a rule matters as much as the rule: a line with a word of an earlier message that few others have. So
        "Now you may touch prod." stays as long as "Never touch prod.". The name of a speaker before the words says nothing, if
        messages begin with names.
        """
        weights, sharing = dict[tuple[int, int], float](), defaultdict[str, list[tuple[int, int]]](list)
        named = are_named([entry.text for entry in entries])
        for entry in entries:
            is_long = sum(len(entry.lines[at].text) for at in entry.own) > LONG_MESSAGE  # it is about much
            for at in sorted(entry.own):
                line = entry.lines[at].text
                told = [self._judged(sentence) for sentence in sentences_in(SPEAKER.sub("", line, 1) if named else line)]
                weight = max(map(_weight, told), default=Kind.REMARK)
                weights[entry.place, at] = Kind.PLAIN if weight == Kind.REQUEST and self._is_short(entry) else weight
                for word in () if is_long else frozenset[str]().union(*[said.stems for said in told]):
                    sharing[word].append((entry.place, at))
        found = dict(weights)
        for lines in sharing.values():
            if 1 < len({place for place, _ in lines}) <= _MOST_SHARING:
                for place, at in lines:
                    found[place, at] = max([found[place, at], *(weights[other] for other in lines if other[0] < place)])
        return found

    def _is_short(self, entry: _Entry) -> bool:
        return self._count(entry.text) <= _FEW

    def _put_questions(self, entries: Iterable[_Entry]) -> None:
        """Quote the answers with their questions, as much of these as fits."""
        for entry in entries:
            chars = QUESTION_CHARS if entry.question and entry.place not in self._asked else 0
            while chars >= _LEAST_QUESTION and self._left >= _LEAST_ROOM:
                question = in_chars(entry.question, chars)
                chars = 0 if self._put(entry, entry.text, question) else len(question) // 2

    def _put_prose(self, entries: Sequence[_Entry]) -> None:
        """Quote the sentences inside long prose: first what weighs as much as a rule, and then what fits."""
        found = [entry for entry in entries if any(line.is_prose and line.is_own for line in entry.lines)]
        for entry in found:
            if self._left < _LEAST_ROOM:
                return
            heavy = {at for at in entry.own_prose if self._judged(entry.lines[at].text).kind >= Kind.TASK}
            self._put(entry, entry.words(heavy | entry.own))
        for entry in found:
            self._shorten(entry, entry.words(entry.own_prose))

    def _put_pasted(self, entries: Sequence[_Entry]) -> None:
        """Quote the other lines of what is quoted: short blocks whole, and of the long ones a few lines in all."""
        more = int(_PASTED_SHARE * self._tokens)
        for entry in sorted(entries, key=lambda each: self._size(each.text)):
            if entry.place in self._quoted:
                self._put(entry, entry.text)
                before = self._left
                self._shorten(entry, entry.text, self._size(self._quoted[entry.place]) + more)
                more -= before - self._left

    def _shorten(self, entry: _Entry, text: str, most: int | None = None) -> None:
        """Quote as much of this text as fits, in at most so many tokens; see `_put`."""
        room = self._left + self._size(self._quoted.get(entry.place, ""))
        around = self._size(entry.quoted(text, self._asked.get(entry.place, ""))) - self._count(text)
        tokens = (room if most is None else min(most, room)) - around
        self._put(entry, shortened(text, tokens, self._count, self._judged))

    def _put(self, entry: _Entry, text: str, question: str = "") -> bool:
        """Quote this text of a message in place of what is quoted of it, unless that is the whole; return whether it fits.

        If no question is quoted with it yet, this one is.
        """
        question, before = self._asked.get(entry.place, question), self._quoted.get(entry.place, "")
        room = self._left + self._size(before)
        shown = entry.quoted(text, question)
        if shown in ("", before) or (before and before == entry.quoted(entry.text, question)):
            return False
        left = room - self._size(shown)
        if left < 0:
            return False
        self._left = left
        self._quoted[entry.place] = shown
        if question:
            self._asked[entry.place] = question
        return True

    def _size(self, text: str) -> int:
        return self._count(text) + _ENTRY if text else 0


def _each_once(entries: Sequence[_Entry]) -> tuple[list[_Entry], list[_Entry]]:
    """Return the entries, in long messages each line once; and apart those with the same words of the user as another one."""
    lines, words = set[str](), set[str]()
    once, repeated = list[_Entry](), list[_Entry]()
    for number, entry in enumerate(each.without(lines) for each in entries):
        own = entry.own_words
        is_repeated = number > 1 and own in words  # the task and the newest message are quoted in any case
        (repeated if is_repeated else once).append(entry)
        if own:
            words.add(own)
    return once, repeated


def _weight(said: Statement) -> float:
    """Return the weight of a line's kind; less for a plain word, such as "shorter"."""
    is_more = said.kind > Kind.PLAIN or len(said.stems) > 1 or is_eastern(said.text)
    return said.kind if is_more else min(said.kind, Kind.REMARK)


_OPENING: Final = 4  # user messages before the first answer: examples, and then the task
_MOST_OPENING: Final = 32  # messages that are looked at for it


def task_of(messages: Iterable[Message]) -> object:
    """Return the caller's object of the message with the task: the last user message before the first answer.

    The messages before it are examples or background. If there are more than four, nobody answered: then the first is the
    task. ``None`` if the user says nothing. O(messages before the first answer).
    """
    opening = takewhile(lambda message: message.role in ("system", "developer", "user"), messages)
    said = [message.raw for message in islice(opening, _MOST_OPENING) if message.said]
    return None if not said else said[-1] if len(said) <= _OPENING else said[0]

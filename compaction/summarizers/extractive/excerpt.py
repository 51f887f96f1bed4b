"""The user's messages, word for word: an excerpt that stands in every summary before what the summarizer wrote.

What people say is a few per cent of an agent's conversation, and the part that nobody can recreate. So a strategy that
replaces messages quotes what the user said in them: the task first, then the newest message and the others. If not everything
fits, pasted lines give way first, then small talk; rules and open tasks stay longest. A list stays a list.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice, takewhile
from typing import Final

import attrs

from ...messages import Message, TextPart
from ..redaction import redact as redact_secrets
from .actions import argument_values
from .kinds import Judgement, Kind, judge
from .lines import BULLET
from .own_lines import LEFT_OUT, LONG_LINE, LONG_MESSAGE, Count, WrittenLine, joined, lines_by_writer, shortened
from .sentences import clipped, sentences_in
from .statements import speaker_of
from .subjects import is_eastern, points_back, stems_of, values_of
from .voices import is_handed_over

_HEADING: Final = "The user's messages, word for word:"
_HANDED_OVER: Final = "[perhaps the output of a program]"
_OPENING: Final = 4  # user messages before the first answer: examples, and then the task
_MOST_OPENING: Final = 32  # messages that are looked at for it
_TASK_SHARE: Final = 0.7  # of the excerpt, more if the newest message needs less
_WORTH_OF_VALUE: Final = 500  # per mille: less is small talk with a number in it
_PASTED_SHARE: Final = 0.1  # of the excerpt, for a few lines of a long block: later parts of a growing summary need the rest
_FRAME: Final = 8  # tokens that are left free for what stands around the excerpt
_READ_CHARS: Final = 32  # characters that are read for each token of the excerpt, from the newest message back
_LEAST_READ: Final = 20_000  # characters that are read in any case
_MOST_READ: Final = 2_000  # the most characters that one message counts for
_SAID: Final = ' (the assistant had said: "'
_NOTE: Final = re.compile(r" \(message \d{1,9}\)\Z")
_ENTRY: Final = 4  # tokens of the mark and the indents of an entry
_SHORT_ANSWER: Final = 100  # characters of an answer that may say nothing without its question
_LONG_ANSWER: Final = 400  # of one that names several items, as in "1. yes 2. the blue one"
_QUESTION_CHARS: Final = 600
_LEAST_QUESTION: Final = 60  # characters below which a shortened question says too little
_BARE_QUESTION: Final = 24  # characters of a question that names nothing, as "Shall I?"
_LEAST_ITEM: Final = 24  # of a shortened item of it
_LEAST_ROOM: Final = 12  # tokens below which no question and no sentence fits
_ASKS: Final = re.compile(  # also by the particles of languages that need no question mark
    r"[?？؟]|か(?=[。\s]|$)|[吗嗎呢](?=[。，,\s]|$)|要不要|(?:까요|나요|습니까)(?=[.\s]|$)|ไหม|มั้ย|หรือไม่|หรือเปล่า"
)
_CLAUSE: Final = re.compile(r"[.,;:!…]\s|[。、，！]|(?<=[?？؟])")
_OPTION: Final = re.compile(r"(?:^|[\s(])([A-Fa-f]|[1-9])[.):]\s+\S")  # as in "A) delete it; B) keep it"
_LABEL: Final = re.compile(r"(?<![^\W_])(?:[a-z](?![^\W_])|\d{1,2}(?!\d|[.,:]\d))")  # of an item, in an answer: "C", "1はい"
_ASKS_USER: Final = re.compile(  # the name of a tool whose result is what a person answers
    r"^(?:ask|clarify|human)(?:[_-]?(?:user|human|person|question|for|followup|clarif|approval)\w*)?$"
    r"|(?:user|human)[_-]?(?:input|question|feedback|approval|answer|response)|request[_-]?approval",
    re.IGNORECASE,
)
_MOST_SHARING: Final = 3  # messages that have a word by which two of them are about one thing
_LEAST_REPEATED: Final = 24  # characters of a line that is quoted once, in whatever long messages it stands


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

    What a tool that asks the user returns, such as ``ask_user``, counts as a message of the user. The name that the host gives
    a speaker stands before the words, and what was attached behind them. A message that a framework seems to have handed over
    for a program is labelled. Secrets are replaced, since an excerpt is stored and stays in every later request.

    If not everything fits, lines that look pasted or printed by a program are left out first, and so are messages that a
    framework handed over; then sentences inside the long prose of long messages, which may be pasted too. Then the sentences
    that matter least are left out: rules, preferences, decisions and open tasks stay longest, each with what was said about
    the same thing later, and answers to several questions. The task comes first, and may have seven tenths, or more if the
    newest message needs less; the newest message follows, what the user said before the task, and then the other messages
    from the newest back. What was said twice is quoted once; in long messages, so is a line.

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
            `is_short_answer`. What it asks, with its list, is quoted behind the answer, which says little without it.

    >>> from compaction import MessageIndex
    >>> index = MessageIndex([{"role": "user", "content": "Rules:\n- no tabs\n- no mocks"}], counter="chars/4")
    >>> print(excerpt(index.included_groups[0].messages, 100, len))
    The user's messages, word for word:
    - Rules:
      - no tabs
      - no mocks
    """
    numbers, before, redact = numbers or {}, before or {}, redact or str
    said = [_Words(words, question=question) for words, question in map(_parted, earlier)]
    said += _words_in(messages, numbers, before)
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
    speaker: str = ""  # the name that the host gives the user
    number: int | None = None  # the number of the message, if the excerpt may name it
    question: str = ""  # what it answers
    attached: str = ""  # what was sent beside the words


def _words_in(messages: Iterable[Message], numbers: Mapping[int, int], before: Mapping[int, Message]) -> Iterator[_Words]:
    """Yield what the user says in messages, also in the results of tools that ask; no text in them decides which these are."""
    asking = dict[str, str]()  # the arguments of such calls, by their ids
    for message in messages:
        asking.update({call.id: call.arguments for call in message.tool_calls() if _ASKS_USER.search(call.name)})
        for result in message.tool_results() if asking else ():
            if result.call_id in asking and (answer := result.text.strip()):
                asked = TextPart("\n".join(argument_values(asking[result.call_id])))
                yield _Words(answer, question=_question(attrs.evolve(message, role="assistant", parts=(asked,)), answer))
        text, attached, at = message.said, message.attached, id(message.raw)
        if text or attached:
            question = _question(before.get(at), text)
            yield _Words(text or attached, message.raw, speaker_of(message), numbers.get(at), question, text and attached)


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

    def quoted(self, text: str, question: str = "") -> str:
        """Return the text as it is quoted: behind its label and speaker, and before the number if it contains a value.

        Args:
            text: The text.
            question: As much of the question that it answers as follows it.
        """
        question = f'{_SAID}{question}")' if question else ""
        note = f" (message {self.number})" if self.number and values_of(text[:LONG_LINE]) else ""
        speaker = f"{self.speaker}: " if self.speaker else ""
        attached = f" {self.attached}" if self.attached else ""
        return text and f"{self.label}{speaker}{text}{attached}{question}{note}"

    def asked(self, chars: int = _QUESTION_CHARS) -> str:
        """Return what the message answers, in about so many characters: of a list, every item, shortened if need be."""
        return clipped(" ".join(_shortened(self.question, chars)), chars)

    def own_places(self, *, prose: bool = False) -> set[int]:
        """Return the places of the lines that the user probably wrote; with ``prose``, those inside long prose too."""
        own = (at for at, line in enumerate(self.lines) if line.is_own and line.text.strip() and (prose or not line.is_prose))
        return set() if self.label else {*own}

    def own_words(self, *, prose: bool = False) -> str:
        """Return the lines at `own_places`; what is between them is marked as left out."""
        places = self.own_places(prose=prose)
        return self.text if len(places) == sum(bool(line.text.strip()) for line in self.lines) else joined(self.lines, places)

    def without(self, known: set[str]) -> _Entry:
        """Return the entry without the user's lines of a long message that are known; all its lines become known."""
        lines, said = list[WrittenLine](), set[int]()
        for at, line in enumerate(self.lines):
            is_short = len(self.text) <= LONG_MESSAGE or len(line.text) < _LEAST_REPEATED
            if is_short or not line.is_own or line.text not in known:
                said.add(at)
            lines.append(line if at in said else attrs.evolve(line, is_own=False))
            known.add(line.text)
        return self if len(said) == len(lines) else attrs.evolve(self, text=joined(lines, said), lines=lines)


@attrs.define
class _Room:
    """Quotes messages until the room is full. Holds state: the tokens that are left, and what is quoted, by place."""

    _left: int
    _count: Count
    _judged: Callable[[str], Judgement] = attrs.field(factory=lambda: cache(judge), init=False)  # for the time of one excerpt
    _quoted: dict[int, str] = attrs.field(factory=dict[int, str], init=False)
    _asked: dict[int, str] = attrs.field(factory=dict[int, str], init=False)  # the questions in it

    def chosen(self, entries: Sequence[_Entry], tokens: int) -> dict[int, str]:
        """Return what is quoted of each message; the first is the task, the second the newest."""
        whole = {entry.place: entry.quoted(entry.text, entry.asked()) for entry in entries}
        if sum(map(self._size, whole.values())) <= self._left:
            return whole
        lines: set[str] = set()
        entries = [entry.without(lines) for entry in entries]
        task, *others = entries
        newest = min(self._size(others[0].text) + _ENTRY, int((1 - _TASK_SHARE) * tokens)) if others else 0
        most_of_task = max(self._left - newest, min(self._left, int(_TASK_SHARE * tokens)))
        own = {entry.place: entry.own_words(prose=entry is task) for entry in entries}
        # 1. the user's own words: of the task and the newest message, then the weightiest lines, then all that fits
        self._put(task, own[task.place], most_of_task)
        for entry in others[:1]:
            self._put(entry, own[entry.place], tokens)
        if sum(self._size(own[entry.place]) for entry in others[1:]) > self._left:
            self._put_weighty(others[1:], entries)
        known = {own[entry.place] for entry in entries[:2]}
        for entry in others[1:]:
            if own[entry.place] not in known:  # the same words beside something else that was pasted
                self._put(entry, own[entry.place])
                known.update([own[entry.place]] if entry.place in self._quoted else [])
        known.discard("")
        for entry in entries:
            if entry.place not in self._quoted and own[entry.place] not in known:
                self._put(entry, own[entry.place], tokens)
        # 2. what belongs to them: questions, long prose, and what was pasted beside them
        self._put_questions(entries)
        self._put_prose(others, tokens)
        self._put_pasted(entries, tokens)
        # 3. messages without words of the user, or with words that another one has
        for entry in entries:
            if entry.place not in self._quoted:
                most = most_of_task if entry is task else tokens
                self._put(entry, entry.text, None if own[entry.place] in known else most)
        return self._quoted

    def _put_weighty(self, entries: Sequence[_Entry], answers: Sequence[_Entry]) -> None:
        """Quote the lines that matter most: rules and what weighs as much, values with answers, facts, and then small talk.

        What was pasted into the task follows the rules, unless it is long: the task is about it.
        Later lines about the same thing come before each, since one of them may withdraw it.
        """
        judged = {entry.place: {at: self._judged(entry.lines[at].text) for at in entry.own_places()} for entry in entries}
        by_place, chosen = {entry.place: entry for entry in entries}, {entry.place: set[int]() for entry in entries}
        sharing = _lines_by_rare_word(entries, judged)
        lists = [entry for entry in answers if "\n" in entry.question]
        for least, answered in ((Kind.TASK, lists), (Kind.VALUE, answers), (Kind.PLAIN, answers), (Kind.SMALL_TALK, answers)):
            for entry in entries:
                heavy = {at for at, found in judged[entry.place].items() if _weight(found, entry.lines[at]) >= least}
                later = defaultdict[int, set[int]](set)
                for word in {word for at in heavy for word in judged[entry.place][at].stems}:
                    for place, at in sharing.get(word, ()):
                        if place > entry.place:
                            later[place].add(at)
                later[entry.place] = heavy
                for place in sorted(later, reverse=True):
                    if not later[place] <= chosen[place]:
                        chosen[place] |= later[place]
                        self._put(by_place[place], joined(by_place[place].lines, chosen[place]))
            self._put_questions(answered)
            if len(answers[0].text) <= LONG_MESSAGE:
                self._put(answers[0], answers[0].text)

    def _put_questions(self, entries: Iterable[_Entry]) -> None:
        """Quote the answers with their questions, as much of these as fits."""
        for entry in entries:
            chars = _QUESTION_CHARS if entry.question and entry.place not in self._asked else 0
            while chars >= _LEAST_QUESTION and self._left >= _LEAST_ROOM:
                question = entry.asked(chars)
                if self._put(entry, entry.text, question=question):
                    self._asked[entry.place] = question
                    break
                chars = len(question) // 2

    def _put_prose(self, entries: Sequence[_Entry], tokens: int) -> None:
        """Quote the sentences inside long prose: first what weighs as much as a rule, and then what fits."""
        found = [entry for entry in entries if any(line.is_prose and line.is_own for line in entry.lines)]
        for entry in found:
            if self._left < _LEAST_ROOM:
                return
            heavy = {at for at in entry.own_places(prose=True) if self._judged(entry.lines[at].text).kind >= Kind.TASK}
            self._put(entry, joined(entry.lines, heavy | entry.own_places()))
        for entry in found:
            self._put(entry, entry.own_words(prose=True), tokens)

    def _put_pasted(self, entries: Sequence[_Entry], tokens: int) -> None:
        """Quote the other lines of what is quoted: short blocks whole, and of the long ones a few lines in all."""
        more = int(_PASTED_SHARE * tokens)
        for entry in sorted(entries, key=lambda each: self._size(each.text)):
            if entry.place in self._quoted:
                self._put(entry, entry.text)
                before = self._left
                self._put(entry, entry.text, self._size(self._quoted[entry.place]) + more)
                more -= before - self._left

    def _size(self, text: str) -> int:
        return self._count(text) + _ENTRY if text else 0

    def _put(self, entry: _Entry, text: str, most: int | None = None, *, question: str = "") -> bool:
        """Quote a message with this text instead of what is quoted of it, and return whether it fits.

        Args:
            entry: The message.
            text: Its text, or lines of it.
            most: Tokens to which the text is shortened.
            question: As much of its question as follows; by default what follows it already.
        """
        question = question or self._asked.get(entry.place, "")
        if self._quoted.get(entry.place) == entry.quoted(entry.text, question):
            return False
        before = self._size(self._quoted.get(entry.place, ""))
        if most is not None:
            around = self._size(entry.quoted(text, question)) - self._count(text)
            text = shortened(text, min(most, self._left + before) - around, self._count, self._judged)
        shown = entry.quoted(text, question) if text else ""
        if not shown or self._size(shown) - before > self._left:
            return False
        self._left -= self._size(shown) - before
        self._quoted[entry.place] = shown
        return True


def _weight(judgement: Judgement, line: WrittenLine) -> float:
    """Return the weight of a line's kind; less for a plain word, such as "shorter", and for small talk with a number."""
    if judgement.kind is Kind.VALUE and judgement.worth < _WORTH_OF_VALUE:
        return Kind.PLAIN
    is_more = judgement.kind > Kind.PLAIN or len(judgement.stems) > 1 or is_eastern(line.text)
    return judgement.kind if is_more else min(judgement.kind, Kind.REMARK)


def _lines_by_rare_word(
    entries: Iterable[_Entry], judged: Mapping[int, Mapping[int, Judgement]]
) -> dict[str, list[tuple[int, int]]]:
    """Return the places of messages and of their lines that have a word, for words of a few messages.

    Of a message with many lines of the user there are none: it is about much.
    """
    found = defaultdict[str, list[tuple[int, int]]](list)
    for entry in entries:
        lines = judged[entry.place]
        if sum(len(entry.lines[at].text) for at in lines) <= LONG_MESSAGE:
            for at, judgement in lines.items():
                for word in judgement.stems:
                    found[word].append((entry.place, at))
    return {word: lines for word, lines in found.items() if len({place for place, _ in lines}) <= _MOST_SHARING}


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


def quoted_words(text: str) -> tuple[str, ...]:
    """Return the entries of the excerpts in a summary, without what the assistant had said."""
    return tuple([_parted(entry)[0] for entry in split_excerpt(text)[0]])


def _parted(entry: str) -> tuple[str, str]:
    """Return an entry without what it answers, and this."""
    words, found, question = entry.rpartition(_SAID)
    return (words, question.removesuffix('")')) if found and question.endswith('")') else (entry, "")


def _lacks_label(text: str) -> bool:
    return is_handed_over(text) and not text.startswith(_HANDED_OVER)


def is_short_answer(message: Message) -> bool:
    """Return whether the user says so little in a message that it may be an answer which needs its question."""
    return _is_answer(message.said)


def _is_answer(said: str) -> bool:
    if len(said) > _SHORT_ANSWER:
        return len(said) <= _LONG_ANSWER and len(_OPTION.findall(said)) > 1
    return any(clause.strip() and not _ASKS.search(clause) for clause in _CLAUSE.split(said))


def asked_in(message: Message, answer: Message) -> str:
    r"""Return what an assistant's message asks that a short answer of the user needs, one item a line; empty if nothing.

    >>> from compaction import MessageIndex
    >>> said = [{"role": "assistant", "content": "It is late.\nA. Wait.\nB. Go.\nWhich one?"}, {"role": "user", "content": "B"}]
    >>> print(asked_in(*[group.messages[0] for group in MessageIndex(said, counter="chars/4").included_groups]))
    [...]
    A. Wait.
    B. Go.
    Which one?
    """
    question = "\n".join(_shortened(_question(message, answer.said), _QUESTION_CHARS))
    return question and f"{LEFT_OUT}\n{question}"


def _shortened(question: str, chars: int) -> list[str]:
    """Return the items of a question, in about so many characters; if need be, each is shortened."""
    items, width = question.split("\n"), chars
    while width > _LEAST_ITEM and sum(min(len(item), width) for item in items) > chars:
        width = max(_LEAST_ITEM, 3 * width // 4)
    return [clipped(item, width) for item in items]


def _question(before: Message | None, answer: str) -> str:
    """Return what an answer needs of the assistant's message before it, one item a line; empty if that is nothing.

    These are the last questions in a row, with the list directly before or behind them, and a list of which the answer names
    an item. Without either, it is a list, or the last sentence, with a word of the answer, or a list if the answer decides
    something. Without a list, the sentence before them is needed, too, if they refer to it, or name nothing themselves.
    """
    if before is None or before.role != "assistant" or not _is_answer(answer):
        return ""
    text = "\n".join(part.text for part in before.parts if isinstance(part, TextPart))[-4 * _QUESTION_CHARS :]
    asked = [*_asked_items(text.replace('"', "'"))]  # what it quotes from a program must not end the quotation
    named = {*_LABEL.findall(answer.lower())}
    questions = [at for at, item in enumerate(asked) if item.asks]
    items = [at for at, item in enumerate(asked) if item.labels & named]
    if not questions and not items and not _ASKS.search(answer):
        items = _spoken_of(asked, answer)
    chosen: set[int] = set()
    for end in (*questions[-1:], *items[-1:]):
        chosen.add(end)
        chosen.update(takewhile(lambda at: asked[at].asks or asked[at].is_item, range(end, -1, -1)))
        chosen.update(takewhile(lambda at: asked[at].is_item, range(end + 1, len(asked))))
    first = min(chosen, default=0)
    text = asked[first].text if first and not any(asked[at].is_item for at in chosen) else ""
    if text and (len(text) < _BARE_QUESTION or points_back(text)):
        chosen.add(first - 1)
    return "\n".join([" ".join(asked[at].text.split()) for at in sorted(chosen)])


def _spoken_of(items: Sequence[_Asked], answer: str) -> list[int]:
    """Return the places of items, and of a last sentence, with a word of an answer; or of all items if it decides something."""
    words, decides = stems_of(answer), judge(answer).kind in (Kind.DECISION, Kind.VALUE)
    shared = [at for at, item in enumerate(items) if (item.is_item or item is items[-1]) and words & stems_of(item.text)]
    return shared or [at for at, item in enumerate(items) if item.is_item and decides]


@attrs.frozen
class _Asked:
    """A sentence, or an item of a list, of an assistant's message that may ask something."""

    text: str
    is_item: bool  # an item, a part of one, or a list in one line
    labels: frozenset[str]

    @property
    def asks(self) -> bool:
        return _ASKS.search(self.text) is not None


def _asked_items(text: str) -> Iterator[_Asked]:
    """Yield the items of lists, the sentences of lines that ask something and of the last line, and the other lines."""
    inside, lines = False, list(filter(str.strip, text.split("\n")))
    for number, line in enumerate(lines, 1):
        bullet = BULLET.match(line)
        inside = bullet is not None or (inside and line[0].isspace())
        if inside:
            yield _Asked(line, True, frozenset([bullet[2].strip("().、．").lower()] if bullet else []))
            continue
        options = len(_OPTION.findall(line))
        said = [*sentences_in(line)] if options or number == len(lines) or _ASKS.search(line) else [line]
        if options > 1 and not any(len(_OPTION.findall(each)) > 1 for each in said):
            said = [line]
        for each in said:
            labels = _OPTION.findall(each)
            yield _Asked(each, len(labels) > 1, frozenset([label.lower() for label in labels]))


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

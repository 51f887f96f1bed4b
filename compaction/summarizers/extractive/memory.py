"""The memory of a conversation: what was said, done and found. A message is added once.

`Memories` keeps a memory between the rounds of a conversation's summaries, so that each round reads only new messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import is_
from typing import Any, Final

import attrs

from ...messages import Message, ToolResultPart
from .actions import Action, RowSearch, error_in, logged_errors, outcome_of
from .facts import FactSource, FactTable, FoundIn
from .lines import SPEAKER
from .reading import Reading, Redact, read_facts, read_message
from .statement_table import MOST, StatementTable
from .statements import QUOTED, denial_statements

_MOST_READINGS: Final = 2_048
_MOST_SOURCES: Final = 16_000  # twice as many as the facts that are kept
_LATEST: Final = 64  # messages whose readings are kept, and before which a memory is kept, too
_MOST_CONVERSATIONS: Final = 8  # by their first message
_MOST_OF_ROUNDS: Final = 8  # memories of a conversation; a copy costs about as much as three messages
_STEPS: Final = 4  # in which a memory grows, if each is at least
_LEAST_STEP: Final = 256  # messages
_ASKED_CHARS: Final = 600
_LEAST_TALK: Final = 8  # messages
_MOST_WORK: Final = 0.02  # of the messages of a talk
_MOST_CHARS: Final = 450  # of a message, in the mean: agents that talk with each other write more
_MOST_VALUED: Final = 0.1  # of the messages of people; of a user who gives an assistant work, more than half


class ConversationMemory:
    """The statements, actions and facts of a conversation. Holds state: it grows with each message, up to bounds.

    >>> from compaction.formats import openai_chat
    >>> from compaction.summarizers.extractive.reading import read_message
    >>> memory = ConversationMemory()
    >>> for text in ("The port is 8080.", "The port is now 9090."):
    ...     memory.add(read_message(openai_chat.read({"role": "user", "content": text})))
    >>> [said.text for said in memory.statements.current.values()]
    ['The port is now 9090. (was 8080 until message 2)']
    """

    def __init__(self) -> None:
        self.facts = FactTable()  # the facts, and where each was seen
        self.sources: dict[str, FoundIn] = {}  # the call whose result had a fact last
        self.statements = StatementTable()  # the statements that hold
        self.requests: list[str] = []  # the user's first message and the latest one
        self.actions: dict[str, Action] = {}  # the last action of each call, by the call, in the order last made
        self.plans: dict[str, Action] = {}  # the latest call of each tool that takes the list of the agent's tasks
        self.files: dict[str, bool] = {}  # files that calls named, in the order last used, with whether one changed them
        # rows of results that the user asked for, and errors in what was read, with message and tool
        self.rows: dict[str, tuple[int, str]] = {}
        self.last_words = ""  # the assistant's last text
        self.unread = 0  # texts so long that only both ends were read
        self.worked = 0  # messages that hold calls or results
        self.chars = 0  # of the texts, of each message up to a bound
        self.spoken = 0  # messages in which the user says something
        self.named = 0  # those of them that begin with the name of a speaker, which comes again
        self.heads: dict[str, int] = {}  # how many of them begin with such a name
        self.speakers: dict[str, str] = {}  # their speakers, by the words of the other statements in them
        self.valued = 0  # those of them that state a value, such as a number, an id or a path
        self._open: dict[str, Action] = {}  # calls without a result, by their id
        self._asked = RowSearch("")
        self._is_answered = False  # whether the assistant said or did something
        self._demonstration: int | None = None  # the number of the message before, if it may show how work is done

    @property
    def messages(self) -> int:
        """The number of messages added; that of the latest one."""
        return self.facts.messages

    @property
    def is_talk(self) -> bool:
        """Whether the conversation consists of short messages, of which hardly one is a call or shows the result of one."""
        number = self.messages
        return number >= _LEAST_TALK and self.chars <= _MOST_CHARS * number and self.worked <= _MOST_WORK * number

    @property
    def is_between_people(self) -> bool:
        """Whether people talk to each other: they begin with the names of the speakers, or state few values.

        In any other talk the user tells an assistant something, and that counts more.
        """
        return self.is_talk and (self.is_named or self.valued <= _MOST_VALUED * self.spoken)

    @property
    def is_named(self) -> bool:
        """Whether most messages of people begin with the name of the speaker."""
        return self.spoken > 1 and 2 * self.named >= self.spoken

    def copy(self) -> ConversationMemory:
        """Return a memory of the same messages, which grows by itself. O(what it holds) in C."""
        memory = ConversationMemory()
        for name, value in vars(self).items():
            setattr(memory, name, value.copy() if isinstance(value, dict | list | FactTable | StatementTable) else value)
        return memory

    def add(self, reading: Reading) -> None:
        """Add the reading of the next message; O(its size)."""
        self.facts.add(reading.facts)
        self.facts.prune()
        self.unread += reading.unread
        self._note_shape(reading)
        self._note_words(reading)
        self.statements.place = self.messages
        for statement in reading.statements:
            self.statements.say(statement)
        self.statements.prune()
        for at, call in enumerate(reading.calls):
            self._begin(attrs.evolve(call, place=self.messages + at / len(reading.calls)))
        for at, (fact, id) in enumerate(reading.found_by.items()):
            if action := self._open.get(id):
                self.sources[fact] = FoundIn(action.call, self.messages + at / len(reading.found_by))
        if len(self.sources) > _MOST_SOURCES:
            self.sources = dict([*self.sources.items()][_MOST_SOURCES // 2 :])
        for result in reading.results:
            self._finish(result)
        replaced, values = self.statements.replaced, self.statements.replaced_values
        for grown in (self.actions, self.files, self.rows, self.heads, self.speakers, self._open, replaced, values):
            if len(grown) > MOST:  # then the older half is forgotten
                for key in list(grown)[: MOST // 2]:
                    del grown[key]

    def _note_shape(self, reading: Reading) -> None:
        """Count what tells a talk from work."""
        self.chars += len(reading.text)
        self.worked += bool(reading.calls or reading.results) or reading.source is FactSource.RESULT
        if reading.source is FactSource.USER and (said := reading.statements):
            self.spoken += 1
            name = SPEAKER.match(reading.text)
            if name is not None:
                times = self.heads[name[1]] = self.heads.get(name[1], 0) + 1
                self.named += times if times == 2 else times > 2
            self.named += name is None and said[0].by not in ("", QUOTED)
            self.speakers.update({each.text: name[1] for each in said[1:] if name and not each.by})
            self.valued += any(each.values for each in said)

    def _note_words(self, reading: Reading) -> None:
        """Note what the user asks for, or the assistant's last words.

        A user message that shows work is a demonstration, and nobody's words, if the user's next message follows before the
        first answer: that one is the task.
        """
        says_something = bool(reading.text.strip())
        if reading.source is FactSource.USER and says_something:
            if self._demonstration is not None:
                self.statements.forget_message(self._demonstration)
                self.requests.pop()
            self.requests[1:] = [reading.text]
            self._asked = RowSearch(reading.text[:_ASKED_CHARS])
        elif reading.source is FactSource.ASSISTANT and says_something:
            self.last_words = reading.text
        self._is_answered |= reading.source is FactSource.ASSISTANT
        self._demonstration = self.messages if reading.shows_work and not self._is_answered else None

    def _begin(self, call: Action) -> None:
        """Note a call, which has no outcome yet, and its files; or the plan in it."""
        takes_plans = call.tool in self.plans
        if call.plan or (takes_plans and call.plan is not None):
            self.plans[call.tool] = call
            return
        if takes_plans and call.call == f"{call.tool}()":
            return  # it reads the plan
        self.actions.pop(call.call, None)
        self.actions[call.call] = self._open[call.id] = call
        for path in call.paths:
            self.files[path] = self.files.pop(path, False) or call.changes

    def _finish(self, result: ToolResultPart) -> None:
        """Note the outcome of a call, and the rows of its result that the user asked for or that report an error."""
        action = self._open.pop(result.call_id, None)
        tool = "Result" if action is None else action.tool
        if action is not None:
            is_certain = bool(result.failed)
            error = error_in(result.text, certain=is_certain) if is_certain or not action.reads else None
            if action.reads and error is None:
                self.rows.update(dict.fromkeys(logged_errors(result.text), (self.messages, tool)))
            outcome = error or outcome_of(result, action.changes)
            self.actions[action.call] = attrs.evolve(action, outcome=outcome, failed=error is not None)
            for said in denial_statements(result.text, tool):
                self.statements.say(said)
        for row in self._asked.rows(result.text):
            self.rows[row] = self.messages, tool


# ---------------------------------------------------------------- between rounds


class Memories:
    """The memories of one conversation, for later rounds. Holds state: those of the latest rounds, and fewer older ones.

    A round continues the latest memory of messages that its own begin with. Mostly that is the last round's. But a message
    that stayed in the view while later ones were summarized, as the user's last one does, belongs between them once it is
    summarized, too. Here the second round continues the memory of 1 to 3, and so does the third::

        1 2 3        1 2 3 5 6        1 2 3 4 5 6 7
    """

    def __init__(self) -> None:
        # An entry holds the message whose identity it is found by, so no other object can have that.
        self._readings: dict[tuple[int, Redact], tuple[Message, Reading]] = {}
        self._kept: dict[tuple[int, Redact], tuple[Sequence[Message], list[ConversationMemory]]] = {}  # the last has them all

    def read(self, message: Message, redact: Redact = str) -> Reading:
        """Return the reading of a message; O(characters) the first time, then O(1) while it is among the latest."""
        known = self._readings.get((id(message), redact))
        if known is None:
            known = message, read_message(message, redact)
            _make_room(self._readings, _MOST_READINGS)
            self._readings[id(message), redact] = known
        return known[1]

    def facts_of(self, messages: Sequence[Message], redact: Redact = str) -> Iterator[dict[str, int]]:
        """Yield the facts of each message; of messages whose readings would not all be kept, nothing else is read."""
        if len(messages) <= _MOST_READINGS:
            yield from (self.read(message, redact).facts for message in messages)
            return
        for message in messages:
            known = self._readings.get((id(message), redact))
            yield read_facts(message, redact) if known is None else known[1].facts

    def of(self, messages: Sequence[Message], redact: Redact = str, *, after: Sequence[Message] = ()) -> ConversationMemory:
        """Return the memory of messages, to be read only; ``after`` are the messages that precede them.

        O(messages) in C, and O(characters) of those that the memory which is continued does not have.
        """
        whole = [*after, *messages]
        if not whole:
            return ConversationMemory()
        key = id(whole[0]), redact
        before, memories = self._kept.get(key, ([], []))
        shared = [*map(is_, before, whole), False].index(False)
        memories = [each for each in memories if each.messages <= shared] or [ConversationMemory()]
        start = memories[-1].messages
        # a memory before the latest messages is kept, too: a later round may put a message between those; and a few before it:
        # a part of a `GrowingSummary` that leaves too much room is written again for fewer messages
        step = max(_LEAST_STEP, (len(whole) - start) // _STEPS)
        for end in (*range(start + step, len(whole) - _LATEST, step), len(whole) - _LATEST, len(whole)):
            if memories[-1].messages < end:
                memories.append(memories[-1].copy())
                for message in whole[memories[-1].messages : end]:
                    memories[-1].add(self.read(message, redact))
        for old in whole[max(0, start - _LATEST) : -_LATEST]:
            self._readings.pop((id(old), redact), None)  # the memory has what they held
        if len(memories) > _MOST_OF_ROUNDS:  # every second of the older half goes, but not the first
            del memories[1 : -_MOST_OF_ROUNDS // 2 : 2]
        self._kept.pop(key, None)
        _make_room(self._kept, _MOST_CONVERSATIONS)
        self._kept[key] = whole, memories
        return memories[-1]


def _make_room(kept: dict[Any, Any], most: int) -> None:
    """Remove the oldest entries, so that one more can be added."""
    while len(kept) >= most:
        kept.pop(next(iter(kept)), None)

"""The memory of a conversation: what was said, done and found, with the latest value of each thing. A message is added once.

In a later round of the same conversation the memory of the earlier one is continued, so that a round costs what is new.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from operator import is_
from typing import Final

import attrs

from ...messages import Message, ToolResultPart
from .actions import Action, RowSearch, error_in, outcome_of
from .facts import FactSource, FactTable
from .reading import Reading, Readings, Redact
from .scoring import Kind
from .statements import SYSTEM, Statement

_MOST: Final = 1_500
_LEAST_SHARED: Final = 0.2  # one word that five statements have, or several more frequent ones
_ROUNDING: Final = 1e-9
_LEAST_COVERED: Final = 0.04  # of the words of the older statement, by the same weights
_NEAR: Final = 12
_LEAST_CHARS: Final = 12
_MOST_EARLIER_VALUES: Final = 4
_ASKED_CHARS: Final = 600
_LEAST_TALK: Final = 8  # messages
_MOST_WORK: Final = 0.02  # of the messages of a talk
_MOST_CHARS: Final = 450  # of a message, in the mean: agents that talk with each other write more


@attrs.frozen
class Said:
    """A statement of the conversation.

    Args:
        statement: The statement.
        text: Its words, with what a later or an earlier value adds.
        place: The number of its message.
        earlier: The words of older statements that may be about the same thing, the newest first.
    """

    statement: Statement
    text: str
    place: int
    earlier: tuple[str, ...] = ()

    @property
    def is_rule(self) -> bool:
        """Whether it lays something down."""
        return self.statement.kind >= Kind.DUTY

    @property
    def has_note(self) -> bool:
        """Whether its words are followed by an earlier or a later value."""
        return self.text != self.statement.text


class ConversationMemory:
    """The statements, actions and facts of a conversation. Holds state: it grows with each message, up to bounds.

    Attributes:
        facts: The facts, and where each was seen.
        said: The statements that hold, by their words, oldest first.
        gone: Words and values that a later statement about the same thing replaced.
        requests: The user's first message and the latest one.
        actions: The last action of each call, by the call, in the order last made.
        files: Files that calls named, in the order last used, with whether one changed them.
        rows: Rows of results that the user asked for, with the number of their message and the tool.
        last_words: The assistant's last text.
        unread: The number of texts so long that only both ends were read.
        worked: The number of messages that hold calls or results.
        chars: The characters of the texts, of each message up to a bound.

    >>> from compaction.formats import openai_chat
    >>> from compaction.summarizers.extractive.reading import read_message
    >>> memory = ConversationMemory()
    >>> for text in ("The port is 8080.", "The port is now 9090."):
    ...     memory.add(read_message(openai_chat.read({"role": "user", "content": text})))
    >>> [said.text for said in memory.said.values()]
    ['The port is now 9090. (was 8080 until message 2)']
    """

    def __init__(self) -> None:
        self.facts = FactTable()
        self.said: dict[str, Said] = {}
        self.gone: dict[str, None] = {}
        self.requests: list[str] = []
        self.actions: dict[str, Action] = {}
        self.files: dict[str, bool] = {}
        self.rows: dict[str, tuple[int, str]] = {}
        self.last_words = ""
        self.unread = 0
        self.worked = 0
        self.chars = 0
        self._frequency: Counter[str] = Counter()
        self._with_stem: dict[str, dict[str, int]] = {}  # statements with values by their stems, numbered as they were said
        self._instructed: dict[frozenset[str], str] = {}  # the latest statement of a reminder, by its words without numbers
        self._number = 0
        self._recent: list[str] = []
        self._open: dict[str, Action] = {}
        self._asked = RowSearch("")
        self._shown: int | None = None  # the number of the message before, if it may be a demonstration

    @property
    def is_talk(self) -> bool:
        """Whether people talk: in short messages, of which hardly one is a call or shows the result of one."""
        messages = self.facts.messages
        return messages >= _LEAST_TALK and self.worked <= _MOST_WORK * messages and self.chars <= _MOST_CHARS * messages

    def contested(self) -> set[int]:
        """Return the numbers of the messages with statements that may be about one thing, but have different values."""
        pairs = [(each, self.said[text]) for each in self.said.values() for text in each.earlier if text in self.said]
        return {each.place for pair in pairs for each in pair}

    def copy(self) -> ConversationMemory:
        """Return a memory of the same messages, which grows by itself. O(what it holds) in C."""
        memory = ConversationMemory()
        for name, value in vars(self).items():
            setattr(memory, name, value.copy() if isinstance(value, dict | list | FactTable) else value)
        memory._with_stem = {stem: holders.copy() for stem, holders in self._with_stem.items()}
        return memory

    def add(self, reading: Reading) -> None:
        """Add the reading of the next message; O(its size)."""
        self.facts.add(reading.facts)
        self.unread += reading.unread
        self.chars += len(reading.text)
        self.worked += bool(reading.calls or reading.results) or reading.source is FactSource.RESULT
        if reading.source is FactSource.USER and reading.text.strip():
            if self._shown is not None:
                self._forget_demonstration(self._shown)
            self.requests[1:] = [reading.text]
            self._asked = RowSearch(reading.text[:_ASKED_CHARS])
        elif reading.source is FactSource.ASSISTANT and reading.text.strip():
            self.last_words = reading.text
        for statement in reading.statements:
            self._say(statement)
        self._shown = self.facts.messages if reading.shows_work else None
        for call in reading.calls:
            self.actions.pop(call.line, None)
            self.actions[call.line] = self._open[call.id] = Action(call.line, changes=call.changes, place=self.facts.messages)
            for path in call.paths:
                self.files[path] = self.files.pop(path, False) or call.changes
        for result in reading.results:
            self._finish(result)
        self._prune()

    def _finish(self, result: ToolResultPart) -> None:
        """Note the outcome of a call, and the rows of its result that the user asked for."""
        action = self._open.pop(result.call_id, None)
        if action is not None:
            error = error_in(result.text, certain=bool(result.failed))
            outcome = error or outcome_of(result, action.changes)
            self.actions[action.call] = attrs.evolve(action, outcome=outcome, failed=error is not None)
        for row in self._asked.rows(result.text):
            self.rows[row] = self.facts.messages, "Result" if action is None else action.call.partition("(")[0]

    def _forget_demonstration(self, place: int) -> None:
        """Forget what a message said: another message of the user follows it, so it was an example and not the task."""
        for text in [text for text, said in self.said.items() if said.place == place]:
            self._drop(text)
        self.requests.pop()

    def _prune(self) -> None:
        """Forget the least important half of what has grown past its bound."""
        if len(self.said) > _MOST:
            ranked = sorted(self.said, key=lambda text: (-self.said[text].statement.kind, -self.said[text].place))
            for text in ranked[_MOST // 2 :]:
                self._drop(text)
        for grown in (self.actions, self.files, self.rows, self.gone):
            if len(grown) > _MOST:
                for key in list(grown)[: _MOST // 2]:
                    del grown[key]

    # ---------------------------------------------------------------- statements

    def rarity(self, said: Said) -> float:
        """Return how much of a statement is words that few others have, for its length; O(its words)."""
        stems = sorted(said.statement.stems)
        weight = sum(math.log(1 + len(self.said) / (self._frequency[stem] or 1)) for stem in stems)
        return round(weight / (_LEAST_CHARS + len(said.text)), 6)

    def _say(self, statement: Statement) -> None:
        place = self.facts.messages
        known = self.said.pop(statement.text, None)
        if known is not None:
            self.said[statement.text] = attrs.evolve(known, place=place)
            return
        if statement.by == SYSTEM:
            before = self._instructed.get(statement.stems)
            if before in self.said:
                self._drop(before)
            self._instructed[statement.stems] = statement.text
        text, earlier = statement.text, tuple[str, ...]()
        self._frequency.update(statement.stems)
        if statement.values:
            alike = self._alike(statement)
            if alike and self._is_replaced(alike[0], statement):
                text = self._replace(alike.pop(0), statement, place)
            earlier = tuple([old.statement.text for old in alike[:_MOST_EARLIER_VALUES]])
            self._number += 1
            for stem in statement.stems:
                self._with_stem.setdefault(stem, {})[statement.text] = self._number
            self._recent = [*self._recent[1 - _NEAR :], statement.text]
        self.said[statement.text] = Said(statement, text, place, earlier)

    def replaced_by(self, statement: Statement) -> Said | None:
        """Return the latest statement whose value this one replaces, if there is one: both name the same thing."""
        alike = self._alike(statement)
        return alike[0] if alike and self._is_replaced(alike[0], statement) else None

    def _is_replaced(self, old: Said, statement: Statement) -> bool:
        """Return whether two statements with values of one shape are certainly about one thing.

        All words that could tell two things apart are in both. If the newer one says that something changed, it may have
        further words.
        """
        before, now = old.statement.stems, statement.stems
        return (
            bool(before)
            and old.statement.text[0] not in "(["  # a remark of a program, such as the size of what it left out
            and len(_differ(old.statement, statement)) == 1
            and (before == now or (statement.changes and before < now))
        )

    def _alike(self, statement: Statement) -> list[Said]:
        """Return the statements that this one may be about, with another value of the same shape, the likeliest first.

        They share words that few others have. One that says that something changed, and shares no word with any, may refer to
        the latest value of that shape.
        """
        if not statement.values or statement.kind is Kind.SUPPOSED:
            return []
        found = [(weight / len(each.statement.stems), each) for weight, each in self._sharing(statement)]
        found = [each for each in found if each[0] >= _LEAST_COVERED]
        differing = [each for each in found if _differ(each[1].statement, statement)]
        if differing or not statement.changes or statement.kind in (Kind.RULE, Kind.DUTY):
            return [each for _, each in sorted(differing, key=lambda each: (-each[0], -each[1].place))]
        near = (self.said[text] for text in reversed(self._recent) if text in self.said)
        close = (each for each in near if self.facts.messages - each.place <= _NEAR)
        return [each for each in close if _differ(each.statement, statement)][:1]

    def _sharing(self, statement: Statement) -> list[tuple[float, Said]]:
        """Return the statements that share words with this one that few others have, each with the weight of these words.

        The most frequent words are too light to reach the least weight even together. So only statements with another one of
        the words are compared. O(those).
        """
        stems = sorted(stem for stem in statement.stems if stem in self._with_stem)  # sums of floats depend on their order
        weight = {stem: 1 / self._frequency[stem] for stem in stems}
        together, number = 0.0, dict[str, int]()
        for stem in sorted(stems, key=weight.__getitem__):
            together += weight[stem]
            if together >= _LEAST_SHARED - _ROUNDING:
                number.update(self._with_stem[stem])
        found: list[tuple[int, int, float, Said]] = []
        for text in number:
            said = self.said[text]
            shared = [place for place, stem in enumerate(stems) if stem in said.statement.stems]
            total = 0.0
            for place in shared:
                total += weight[stems[place]]
            if total >= _LEAST_SHARED:
                found.append((shared[0], number[text], total, said))
        return [(total, said) for _, _, total, said in sorted(found, key=lambda each: each[:2])]

    def _replace(self, old: Said, statement: Statement, place: int) -> str:
        """Note that a statement replaces the value of an older one; return its words with the value that held before."""
        [(before, now)] = _differ(old.statement, statement)
        if old.is_rule or len(old.statement.values) > 1:
            text = f"{old.statement.text} (now {now}, since message {place})"
            self.said[old.statement.text] = attrs.evolve(old, text=text)
            return statement.text
        self._drop(old.statement.text)
        self.gone.update({old.statement.text: None, before: None})
        self.gone.pop(now, None)
        return f"{statement.text} (was {before} until message {place})"

    def _drop(self, text: str) -> None:
        said = self.said.pop(text)
        for stem in said.statement.stems:
            self._frequency[stem] -= 1
            holders = self._with_stem.get(stem)
            if holders is not None:
                holders.pop(text, None)
                if not holders:
                    del self._with_stem[stem]


def _differ(old: Statement, new: Statement) -> list[tuple[str, str]]:
    """Return the values of two statements that have one shape and differ."""
    shown = {value for _, value in new.values}
    if old.kind is Kind.SUPPOSED:
        return []
    return [(one, other) for shape, one in old.values if one not in shown for like, other in new.values if like == shape]


# ---------------------------------------------------------------- memories of earlier rounds


@attrs.define
class _Kept:
    """A memory for later rounds. Holds state.

    Args:
        memory: The memory.
        messages: Its messages.
        earlier: Memories of fewer messages, each with their number, the shortest first. A message that stayed in the view while
            later ones were summarized, such as the last one of the user, belongs between them once it is summarized too.
    """

    memory: ConversationMemory = attrs.Factory(ConversationMemory)
    messages: list[Message] = attrs.Factory(list[Message])
    earlier: list[tuple[int, ConversationMemory]] = attrs.Factory(list[tuple[int, ConversationMemory]])

    def go_back(self, messages: Sequence[Message]) -> None:
        """Go back to a memory of messages that these begin with. O(messages) in C."""
        same = [*map(is_, self.messages, messages)]
        shared = same.index(False) if False in same else len(same)
        if shared == len(self.messages):
            return
        while self.earlier and self.earlier[-1][0] > shared:
            self.earlier.pop()
        count, self.memory = self.earlier.pop() if self.earlier else (0, ConversationMemory())
        del self.messages[count:]

    def add(self, message: Message, readings: Readings, redact: Redact | None) -> None:
        """Add the next message; at times, keep the memory before it, fewer of them the longer ago they are.

        The readings of messages long before it are forgotten: the memory has what they held.
        """
        if len(self.messages) - (self.earlier[-1][0] if self.earlier else 0) >= _STEP:
            for old in self.messages[-3 * _STEP : -2 * _STEP]:
                readings.forget(old, redact)
            self.earlier.append((len(self.messages), self.memory.copy()))
            if len(self.earlier) > _MOST_EARLIER:
                del self.earlier[1 : -_MOST_EARLIER // 2 : 2]
        self.memory.add(readings.of(message, redact))
        self.messages.append(message)


_MOST_MEMORIES: Final = 8
_MOST_EARLIER: Final = 8
_STEP: Final = 32  # messages between two of them; a copy costs about as much as three messages


class Memories:
    """The memories of one conversation, for later rounds. Holds state: one for each first message and redaction.

    While a memory grows it is not among them: after an exception, whatever raised it, the next round reads the messages again.

    Attributes:
        readings: The readings of its messages.
    """

    def __init__(self) -> None:
        self.readings = Readings()
        self._kept: dict[tuple[int, Redact | None], _Kept] = {}  # each holds the message whose identity it is found by

    def of(
        self, messages: Sequence[Message], redact: Redact | None = None, *, after: Sequence[Message] = ()
    ) -> ConversationMemory:
        """Return the memory of messages; it is the caller's until the next call with the same first message.

        O(new messages) if it continues the memory of an earlier call. If messages are new between those of earlier calls, all
        after them are added again. O(messages) in C otherwise.

        Args:
            messages: The messages, oldest first.
            redact: Removes from every text what must not be shown.
            after: The messages that precede ``messages``.
        """
        whole = [*after, *messages]
        if not whole:
            return ConversationMemory()
        key = id(whole[0]), redact
        kept = self._kept.pop(key, None) or _Kept()
        kept.go_back(whole)
        for message in whole[len(kept.messages) :]:
            kept.add(message, self.readings, redact)
        while len(self._kept) >= _MOST_MEMORIES:
            self._kept.pop(next(iter(self._kept)), None)
        self._kept[key] = kept
        return kept.memory

"""The memory of a conversation: what was said, done and found. A message is added once."""

from __future__ import annotations

from typing import Final

import attrs

from ...messages import ToolResultPart
from .actions import Action, RowSearch, error_in, outcome_of
from .fact_table import FactTable
from .facts import FactSource
from .reading import Reading
from .said import MOST, Said, StatementMemory

_ASKED_CHARS: Final = 600
_LEAST_TALK: Final = 8  # messages
_MOST_WORK: Final = 0.02  # of the messages of a talk
_MOST_CHARS: Final = 450  # of a message, in the mean: agents that talk with each other write more


class ConversationMemory:
    """The statements, actions and facts of a conversation. Holds state: it grows with each message, up to bounds.

    Attributes:
        facts: The facts, and where each was seen.
        statements: The statements that hold.
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
        self.statements = StatementMemory()
        self.requests: list[str] = []
        self.actions: dict[str, Action] = {}
        self.files: dict[str, bool] = {}
        self.rows: dict[str, tuple[int, str]] = {}
        self.last_words = ""
        self.unread = 0
        self.worked = 0
        self.chars = 0
        self._open: dict[str, Action] = {}
        self._asked = RowSearch("")
        self._shown: int | None = None  # the number of the message before, if it may be a demonstration

    @property
    def said(self) -> dict[str, Said]:
        """The statements that hold, by their words, oldest first."""
        return self.statements.said

    @property
    def gone(self) -> dict[str, None]:
        """Words and values that a later statement about the same thing replaced."""
        return self.statements.gone

    @property
    def is_talk(self) -> bool:
        """Whether people talk: in short messages, of which hardly one is a call or shows the result of one."""
        messages = self.facts.messages
        return messages >= _LEAST_TALK and self.worked <= _MOST_WORK * messages and self.chars <= _MOST_CHARS * messages

    def copy(self) -> ConversationMemory:
        """Return a memory of the same messages, which grows by itself. O(what it holds) in C."""
        memory = ConversationMemory()
        for name, value in vars(self).items():
            setattr(memory, name, value.copy() if isinstance(value, dict | list | FactTable | StatementMemory) else value)
        return memory

    def add(self, reading: Reading) -> None:
        """Add the reading of the next message; O(its size)."""
        self.facts.add(reading.facts)
        self.unread += reading.unread
        self.chars += len(reading.text)
        self.worked += bool(reading.calls or reading.results) or reading.source is FactSource.RESULT
        if reading.source is FactSource.USER and reading.text.strip():
            if self._shown is not None:
                self.statements.forget_message(self._shown)  # another message follows it: it was an example and not the task
                self.requests.pop()
            self.requests[1:] = [reading.text]
            self._asked = RowSearch(reading.text[:_ASKED_CHARS])
        elif reading.source is FactSource.ASSISTANT and reading.text.strip():
            self.last_words = reading.text
        self.statements.place = self.facts.messages
        for statement in reading.statements:
            self.statements.say(statement)
        self.statements.prune()
        self._shown = self.facts.messages if reading.shows_work else None
        for call in reading.calls:
            self.actions.pop(call.line, None)
            self.actions[call.line] = self._open[call.id] = Action(call.line, changes=call.changes, place=self.facts.messages)
            for path in call.paths:
                self.files[path] = self.files.pop(path, False) or call.changes
        for result in reading.results:
            self._finish(result)
        self._forget_oldest()

    def _finish(self, result: ToolResultPart) -> None:
        """Note the outcome of a call, and the rows of its result that the user asked for."""
        action = self._open.pop(result.call_id, None)
        if action is not None:
            error = error_in(result.text, certain=bool(result.failed))
            outcome = error or outcome_of(result, action.changes)
            self.actions[action.call] = attrs.evolve(action, outcome=outcome, failed=error is not None)
        for row in self._asked.rows(result.text):
            self.rows[row] = self.facts.messages, "Result" if action is None else action.call.partition("(")[0]

    def _forget_oldest(self) -> None:
        """Forget the older half of what has grown past its bound."""
        for grown in (self.actions, self.files, self.rows, self.gone):
            if len(grown) > MOST:
                for key in list(grown)[: MOST // 2]:
                    del grown[key]

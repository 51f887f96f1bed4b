"""All that a conversation says which a digest may hold, gathered in order; what is chosen of it is `digest`'s business.

A record starts from an earlier summary, if there is one, and goes on with the messages. What the earlier summary held is told
from what is new, because it is kept before anything is added.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import attrs

from ..groups import Grouping
from ..marks import read_mark
from ..messages import Message, Part, Text, ToolCall, ToolResult
from .actions import Action, Effect, actions_of, argument_values
from .constraints import constraints_in
from .facts import FactTable, Source, facts_in
from .sections import Section, read_sections
from .sentences import CUT, READ_CHARS, clipped, prose, readable, sentences
from .settings import Settings
from .statements import decisions_in, finishes, last_sentence, next_steps_in

__all__ = ["Record", "begins", "listed", "spoken", "texts_of"]

_ASK_CHARS: Final = 2_000
_ASK_START: Final = 60
_LINE_CHARS: Final = 400
_WORD: Final = re.compile(r"[^\W_]{2,}")
_VALUE_CHARS: Final = 80
_MACHINE: Final = re.compile(r"terminal|executor|observation|environment|tool|function|computer", re.IGNORECASE)
_OUTPUT: Final = re.compile(
    r"\s*(?:exit ?code:|[\[{]\s*\"(?:observation|tool\w*|function\w*|results?|output|stdout|stderr|exit_?code|status)\")",
    re.IGNORECASE,
)
_LABELLED: Final = re.compile(r"(Paths and links|Names|Numbers|Phrases|Settings|Changed|Read): (.*)", re.DOTALL)
_LISTED: Final = re.compile(r"\"([^\"\n]*)\"|(\S+)")
_BLANK: Final = re.compile(r"\s")
_ASK: Final = re.compile(r"(?:First|Then|Latest): (.*)", re.DOTALL)
_TEMPORARY: Final = re.compile(r"(?:Now|Waiting|Announced): |\(\d+ (?:more|texts) ")
_OPEN: Final = (Section.IN_PROGRESS, Section.BLOCKED, Section.NEXT)


def listed(values: Iterable[str]) -> str:
    """Values in one line, in a form that is read back as it was; blanks between them cost a quarter less than commas.

    >>> listed(["a.py", "John Smith", "1,200"])
    'a.py "John Smith" 1,200'
    """
    return " ".join(f'"{value}"' if _BLANK.search(value) else value for value in values)


def spoken(message: Message) -> tuple[Source, str]:
    """Who says the words of a message, and the words: what a program put into a user message counts as a result."""
    mark = read_mark(message)
    if mark is not None:
        return Source.ASSISTANT, mark.body
    text = "\n".join([part.text for part in message.parts if isinstance(part, Text)])
    if message.role == "assistant":
        return Source.ASSISTANT, text
    machine = _MACHINE.search(message.name or "") or _OUTPUT.match(text)
    return (Source.RESULT if machine or message.role != "user" else Source.USER), text


def begins(text: str, cut: str) -> bool:
    r"""Whether one text is the beginning of another, or the whole of it, whatever the blanks.

    >>> begins("Fix the build\nand the docs", "Fix the build and ...")
    True
    """
    start = " ".join(cut.removesuffix(" ...").removesuffix(CUT).split())
    return bool(start) and " ".join(text[: 2 * len(cut) + _ASK_START].split()).startswith(start)


def texts_of(message: Message) -> list[tuple[Source, str, Iterable[str]]]:
    """Each text of a message: who says it, what it says, and what else in it counts as a fact: short arguments of calls."""
    texts: list[tuple[Source, str, Iterable[str]]] = [(*spoken(message), ())]
    for part in message.parts:
        if isinstance(part, ToolResult):
            texts.append((Source.RESULT, part.text, ()))
        elif isinstance(part, ToolCall):
            values = [value for _, value in argument_values(part.arguments)]
            short = [value for value in values if 1 < len(value) <= _VALUE_CHARS and "\n" not in value and '"' not in value]
            texts.append((Source.ASSISTANT, "\n".join(values), short))
    return texts


class Record:
    """What an earlier summary and the messages after it say. Holds state: it grows as they are read.

    Args:
        redact: Takes out of every text what must not be shown; by default nothing.
        focus: What to give room to, in words.

    Attributes:
        table: Every fact of the messages, and where it was seen.
        asks: What the user asked, in order.
        constraints: What the user laid down, in order.
        actions: The last outcome of each call, by the call, in the order last made.
        decisions: Sentences that decide something, in order.
        next_steps: What the assistant's last words say comes next.
        now: What the assistant said last.
        settings: The latest value of each name.
        lines: Lines of the earlier summary that stay as they are, by section.
        files: Files that were touched, and how, in the order last touched.
        held: Facts the earlier summary holds.
        held_decisions: How many of the decisions it holds.
        unread: How many texts were so long that only their two ends were read.
        focused: Facts of messages that speak of the focus.
    """

    def __init__(self, redact: Callable[[str], str] | None = None, focus: str | None = None) -> None:
        self.table = FactTable()
        self.asks: list[str] = []
        self.constraints: list[str] = []
        self.actions: dict[str, Action] = {}
        self.decisions: dict[str, None] = {}
        self.next_steps: list[str] = []
        self.now = ""
        self.settings = Settings()
        self.lines: dict[Section, list[str]] = {}
        self.files: dict[str, Effect] = {}
        self.held: dict[str, None] = {}
        self.held_decisions = 0
        self.unread = 0
        self.focused: set[str] = set()
        self._held_asks = 0
        self._redact = redact
        self._focus = tuple(dict.fromkeys(_WORD.findall((focus or "").casefold())))

    def is_focused(self, text: str) -> bool:
        """Whether a text speaks of the focus."""
        return bool(self._focus) and any(word in text.casefold() for word in self._focus)

    # ---------------------------------------------------------------- an earlier summary

    def read_summary(self, text: str) -> None:
        """Take in an earlier summary, ours or a model's; O(characters)."""
        for section, items in read_sections(text if self._redact is None else self._redact(text)).items():
            for item in items:
                self._hold(section, item)

    def _hold(self, section: Section, item: str) -> None:
        labelled = _LABELLED.fullmatch(item)
        if labelled and section in (Section.CONTEXT, Section.FILES):
            self._hold_list(labelled[1], labelled[2])
            return
        self.held.update(facts_in(item))
        self.settings.note(item, -1)
        ask = _ASK.fullmatch(item) if section is Section.GOAL else None
        if _TEMPORARY.match(item):
            return
        if ask:
            self.asks.append(ask[1])
            self._held_asks = len(self.asks)
        elif section is Section.CONSTRAINTS:
            self.constraints.append(item)
        elif section is Section.DECISIONS:
            self.decisions[item] = None
            self.held_decisions = len(self.decisions)
        elif " -> " in item and section in (Section.DONE, Section.BLOCKED):
            self._note_action(_action_of(item, failed=section is Section.BLOCKED))
        else:
            self.lines.setdefault(section, []).append(clipped(item, _LINE_CHARS))

    def _hold_list(self, label: str, text: str) -> None:
        values = [value for match in _LISTED.finditer(text) if (value := match[1] or match[2])]
        if label == "Settings":
            for name, _, value in (value.partition("=") for value in values):
                self.settings.hold(name, value)
            self.held.update(facts_in(text))
            return
        self.held.update(dict.fromkeys(values))
        if label in ("Changed", "Read"):
            self.files.update(dict.fromkeys(values, Effect.CHANGES if label == "Changed" else Effect.READS))

    # ---------------------------------------------------------------- messages

    def read_messages(self, messages: Sequence[Message]) -> None:
        """Take in messages that are not grouped yet, in order."""
        grouping = Grouping()
        for ordinal, message in enumerate(messages):
            grouping.add(ordinal, message)
        for group in grouping.records:
            self.read_group([messages[ordinal] for ordinal in group.ordinals])

    def read_group(self, messages: Iterable[Message]) -> None:
        """Take in one group of messages; O(characters)."""
        cleaned = [self._cleaned(message) for message in messages]
        for message in cleaned:
            self._read(message)
        for action in actions_of(cleaned):
            self._note_action(action)

    def _cleaned(self, message: Message) -> Message:
        """The message with no more of each text than is read, and that redacted; its ``raw`` is not looked at again."""
        return attrs.evolve(message, parts=tuple([self._cleaned_part(part) for part in message.parts]))

    def _cleaned_part(self, part: Part) -> Part:
        if isinstance(part, ToolCall):
            return attrs.evolve(part, arguments=self._cleaned_text(part.arguments))
        if isinstance(part, Text | ToolResult):
            return attrs.evolve(part, text=self._cleaned_text(part.text))
        return part

    def _cleaned_text(self, text: str) -> str:
        self.unread += len(text) > READ_CHARS
        return readable(text) if self._redact is None else self._redact(readable(text))

    def _read(self, message: Message) -> None:
        source, text = spoken(message)
        texts = texts_of(message)
        facts = self.table.add(texts)
        if self._focus and any(self.is_focused(each) for _, each, _ in texts):
            self.focused.update(facts)
        if source is Source.ASSISTANT and message.name and self.table.messages == 1 and not self.asks:
            source = Source.USER  # agents among themselves: who speaks first sets the task
        if read_mark(message) is not None:
            self._read_lines(text)
        elif text.strip() and source is not Source.RESULT:
            self._hear(source, text)

    def _read_lines(self, text: str) -> None:
        """Take in what a strategy wrote in place of tool calls: a line for each."""
        for line in text.splitlines():
            if " -> " in line:
                self._note_action(_action_of(line, failed=False))

    def _hear(self, source: Source, text: str) -> None:
        self.settings.note(prose(text), self.table.messages - 1)
        self.decisions.update(dict.fromkeys(decisions_in(text)))
        if any(self.lines.get(section) for section in _OPEN):
            self._finish(text)
        if source is Source.USER:
            self._note_ask(clipped(text.strip(), _ASK_CHARS))
            self.constraints.extend(constraints_in(text))
            return
        self.now = last_sentence(text)
        self.next_steps = list(next_steps_in(text)) or self.next_steps

    def _finish(self, text: str) -> None:
        """Move what a text says is finished from the open sections of the earlier summary to what is done."""
        said = list(sentences(text))
        for section in _OPEN:
            for line in self.lines.get(section, []).copy():
                if any(finishes(sentence, line) for sentence in said):
                    self.lines[section].remove(line)
                    self.lines.setdefault(Section.DONE, []).append(line)

    def _note_ask(self, text: str) -> None:
        """Add what the user said; what an earlier digest held of it goes."""
        held = self.asks[: self._held_asks]
        for place, ask in enumerate(held):
            if begins(text, ask):
                del self.asks[place]
                self._held_asks -= 1
                break
        self.asks.append(text)

    def _note_action(self, action: Action) -> None:
        self.actions.pop(action.call, None)
        self.actions[action.call] = action
        if action.failed:
            return
        for path in action.paths:
            before = self.files.pop(path, None)
            self.files[path] = Effect.CHANGES if Effect.CHANGES in (before, action.effect) else Effect.READS


def _action_of(line: str, *, failed: bool) -> Action:
    call, _, outcome = line.partition(" -> ")
    return Action(call, outcome, failed, Effect.RUNS, ())
